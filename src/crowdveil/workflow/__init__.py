"""What the verbs of the command line do, as library calls: files in, one value out, files written whole.

Names are imported on first use: who infers does not wait for the mechanisms and simulations of who perturbs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crowdveil.incremental.saved_fit import fit_outputs
    from crowdveil.output import collection_outputs, estimate_outputs, write_estimate
    from crowdveil.storage.placing import Outputs, write_atomically, write_outputs
    from crowdveil.workflow.choice import MechanismWanted, build_mechanism, describe, parameters
    from crowdveil.workflow.collection import (
        Collection,
        collect,
        collection_files,
        room_for,
        rows_foreseen,
        write_collection,
    )
    from crowdveil.workflow.encoding import encode, encoded_outputs
    from crowdveil.workflow.evidence import (
        Evidence,
        caveats,
        crowd_beside,
        evidence_files,
        read_channel,
        read_evidence,
    )
    from crowdveil.workflow.expectation import Expectation
    from crowdveil.workflow.files import (
        AnswersRead,
        CampaignLists,
        default_folder,
        read_answers,
        read_lists,
        read_names,
    )
    from crowdveil.workflow.inference import Inference, KeptFits, check_score, infer, infer_from_sums, scored
    from crowdveil.workflow.methods import METHODS, Method, build_estimator, unread_channel
    from crowdveil.workflow.promise import HOLDER
    from crowdveil.workflow.resources import Resources
    from crowdveil.workflow.rounds import JOINED_FILES, Joined, cuts_from, cuts_text, join_collections
    from crowdveil.workflow.setup import Setup, set_up

__all__ = [
    "HOLDER",
    "JOINED_FILES",
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
    "Outputs",
    "Resources",
    "Setup",
    "build_estimator",
    "build_mechanism",
    "caveats",
    "check_score",
    "collect",
    "collection_files",
    "collection_outputs",
    "crowd_beside",
    "cuts_from",
    "cuts_text",
    "default_folder",
    "describe",
    "encode",
    "encoded_outputs",
    "estimate_outputs",
    "evidence_files",
    "fit_outputs",
    "infer",
    "infer_from_sums",
    "join_collections",
    "parameters",
    "read_answers",
    "read_channel",
    "read_evidence",
    "read_lists",
    "read_names",
    "room_for",
    "rows_foreseen",
    "scored",
    "set_up",
    "unread_channel",
    "write_atomically",
    "write_collection",
    "write_estimate",
    "write_outputs",
]

_HOMES = {
    "HOLDER": "workflow.promise",
    "JOINED_FILES": "workflow.rounds",
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
    "Outputs": "storage.placing",
    "Resources": "workflow.resources",
    "Setup": "workflow.setup",
    "build_estimator": "workflow.methods",
    "build_mechanism": "workflow.choice",
    "caveats": "workflow.evidence",
    "check_score": "workflow.inference",
    "collect": "workflow.collection",
    "collection_files": "workflow.collection",
    "collection_outputs": "output",
    "crowd_beside": "workflow.evidence",
    "cuts_from": "workflow.rounds",
    "cuts_text": "workflow.rounds",
    "default_folder": "workflow.files",
    "describe": "workflow.choice",
    "encode": "workflow.encoding",
    "encoded_outputs": "workflow.encoding",
    "estimate_outputs": "output",
    "evidence_files": "workflow.evidence",
    "fit_outputs": "incremental.saved_fit",
    "infer": "workflow.inference",
    "infer_from_sums": "workflow.inference",
    "join_collections": "workflow.rounds",
    "parameters": "workflow.choice",
    "read_answers": "workflow.files",
    "read_channel": "workflow.evidence",
    "read_evidence": "workflow.evidence",
    "read_lists": "workflow.files",
    "read_names": "workflow.files",
    "room_for": "workflow.collection",
    "rows_foreseen": "workflow.collection",
    "scored": "workflow.inference",
    "set_up": "workflow.setup",
    "unread_channel": "workflow.methods",
    "write_atomically": "storage.placing",
    "write_collection": "workflow.collection",
    "write_estimate": "output",
    "write_outputs": "storage.placing",
}

# Hidden from type checkers, which would otherwise accept any attribute of the package.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name when it is first used (PEP 562)."""
        if name not in _HOMES:
            raise AttributeError(f"module 'crowdveil.workflow' has no attribute {name!r}")
        return getattr(import_module(f"crowdveil.{_HOMES[name]}"), name)
