"""What the verbs of the command line do, as library calls: files in, one value out, files written whole.

Names are imported on first use: who infers does not wait for the mechanisms and simulations of who perturbs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crowdveil.output import ESTIMATE_FILES, home, write_estimate
    from crowdveil.workflow.choice import MechanismWanted, build_mechanism, describe, parameters
    from crowdveil.workflow.collection import (
        Collection,
        collect,
        collection_files,
        room_for,
        rows_expected,
        rows_of_nobody,
        write_collection,
    )
    from crowdveil.workflow.encoding import encode, encoded_files
    from crowdveil.workflow.evidence import Evidence, read_channel, read_evidence
    from crowdveil.workflow.expectation import Expectation
    from crowdveil.workflow.files import (
        AnswersRead,
        CampaignLists,
        read_answers,
        read_lists,
        read_names,
        refuse_overwriting,
    )
    from crowdveil.workflow.inference import Inference, KeptFits, infer, infer_from_sums, scored
    from crowdveil.workflow.methods import METHODS, Method, build_estimator, unread_channel
    from crowdveil.workflow.promise import HOLDER
    from crowdveil.workflow.resources import Resources
    from crowdveil.workflow.rounds import Joined, cuts_from, cuts_text, join_collections
    from crowdveil.workflow.setup import Setup, set_up

__all__ = [
    "ESTIMATE_FILES",
    "HOLDER",
    "METHODS",
    "AnswersRead",
    "CampaignLists",
    "Collection",
    "Evidence",
    "Expectation",
    "Inference",
    "Joined",
    "KeptFits",
    "MechanismWanted",
    "Method",
    "Resources",
    "Setup",
    "build_estimator",
    "build_mechanism",
    "collect",
    "collection_files",
    "cuts_from",
    "cuts_text",
    "describe",
    "encode",
    "encoded_files",
    "home",
    "infer",
    "infer_from_sums",
    "join_collections",
    "parameters",
    "read_answers",
    "read_channel",
    "read_evidence",
    "read_lists",
    "read_names",
    "refuse_overwriting",
    "room_for",
    "rows_expected",
    "rows_of_nobody",
    "scored",
    "set_up",
    "unread_channel",
    "write_collection",
    "write_estimate",
]

_HOMES = {
    "ESTIMATE_FILES": "output",
    "HOLDER": "workflow.promise",
    "METHODS": "workflow.methods",
    "AnswersRead": "workflow.files",
    "CampaignLists": "workflow.files",
    "Collection": "workflow.collection",
    "Evidence": "workflow.evidence",
    "Expectation": "workflow.expectation",
    "Inference": "workflow.inference",
    "Joined": "workflow.rounds",
    "KeptFits": "workflow.inference",
    "MechanismWanted": "workflow.choice",
    "Method": "workflow.methods",
    "Resources": "workflow.resources",
    "Setup": "workflow.setup",
    "build_estimator": "workflow.methods",
    "build_mechanism": "workflow.choice",
    "collect": "workflow.collection",
    "collection_files": "workflow.collection",
    "cuts_from": "workflow.rounds",
    "cuts_text": "workflow.rounds",
    "describe": "workflow.choice",
    "encode": "workflow.encoding",
    "encoded_files": "workflow.encoding",
    "home": "output",
    "infer": "workflow.inference",
    "infer_from_sums": "workflow.inference",
    "join_collections": "workflow.rounds",
    "parameters": "workflow.choice",
    "read_answers": "workflow.files",
    "read_channel": "workflow.evidence",
    "read_evidence": "workflow.evidence",
    "read_lists": "workflow.files",
    "read_names": "workflow.files",
    "refuse_overwriting": "workflow.files",
    "room_for": "workflow.collection",
    "rows_expected": "workflow.collection",
    "rows_of_nobody": "workflow.collection",
    "scored": "workflow.inference",
    "set_up": "workflow.setup",
    "unread_channel": "workflow.methods",
    "write_collection": "workflow.collection",
    "write_estimate": "output",
}

# Hidden from type checkers, which would otherwise accept any attribute of the package.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name when it is first used (PEP 562)."""
        if name not in _HOMES:
            raise AttributeError(f"module 'crowdveil.workflow' has no attribute {name!r}")
        return getattr(import_module(f"crowdveil.{_HOMES[name]}"), name)
