"""What the verbs of the command line do, as library calls: files in, one value out, files written whole.

Names are imported on first use: who infers does not wait for the mechanisms and simulations of who perturbs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crowdveil.files.atomic_write import Outputs, write_atomically, write_outputs
    from crowdveil.incremental.saved_fit import fit_outputs
    from crowdveil.workflow.channel_assignment import Setup, set_up
    from crowdveil.workflow.collection import (
        Collection,
        collect,
        collection_files,
        room_for,
        rows_foreseen,
        write_collection,
    )
    from crowdveil.workflow.encoding import encode, encoded_outputs
    from crowdveil.workflow.evidence import Evidence, caveats, crowd_beside, evidence_files, read_channel, read_evidence
    from crowdveil.workflow.export import collection_outputs, estimate_outputs, write_estimate
    from crowdveil.workflow.guarantees import HOLDER
    from crowdveil.workflow.inference import Inference, KeptFits, check_score, infer, infer_from_sums, scored
    from crowdveil.workflow.io import AnswersRead, CampaignLists, default_folder, read_answers, read_lists, read_names
    from crowdveil.workflow.mechanism_settings import (
        Expectation,
        MechanismWanted,
        build_mechanism,
        describe,
        parameters,
    )
    from crowdveil.workflow.methods import Method, build_estimator, unread_channel
    from crowdveil.workflow.resources import Resources
    from crowdveil.workflow.rounds import JOINED_FILES, Joined, cuts_from, cuts_text, join_collections

__all__ = [
    "HOLDER",
    "JOINED_FILES",
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
    "HOLDER": "workflow.guarantees",
    "JOINED_FILES": "workflow.rounds",
    "AnswersRead": "workflow.io",
    "CampaignLists": "workflow.io",
    "Collection": "workflow.collection",
    "Evidence": "workflow.evidence",
    "Expectation": "workflow.mechanism_settings",
    "Inference": "workflow.inference",
    "Joined": "workflow.rounds",
    "KeptFits": "workflow.inference",
    "MechanismWanted": "workflow.mechanism_settings",
    "Method": "workflow.methods",
    "Outputs": "files.atomic_write",
    "Resources": "workflow.resources",
    "Setup": "workflow.channel_assignment",
    "build_estimator": "workflow.methods",
    "build_mechanism": "workflow.mechanism_settings",
    "caveats": "workflow.evidence",
    "check_score": "workflow.inference",
    "collect": "workflow.collection",
    "collection_files": "workflow.collection",
    "collection_outputs": "workflow.export",
    "crowd_beside": "workflow.evidence",
    "cuts_from": "workflow.rounds",
    "cuts_text": "workflow.rounds",
    "default_folder": "workflow.io",
    "describe": "workflow.mechanism_settings",
    "encode": "workflow.encoding",
    "encoded_outputs": "workflow.encoding",
    "estimate_outputs": "workflow.export",
    "evidence_files": "workflow.evidence",
    "fit_outputs": "incremental.saved_fit",
    "infer": "workflow.inference",
    "infer_from_sums": "workflow.inference",
    "join_collections": "workflow.rounds",
    "parameters": "workflow.mechanism_settings",
    "read_answers": "workflow.io",
    "read_channel": "workflow.evidence",
    "read_evidence": "workflow.evidence",
    "read_lists": "workflow.io",
    "read_names": "workflow.io",
    "room_for": "workflow.collection",
    "rows_foreseen": "workflow.collection",
    "scored": "workflow.inference",
    "set_up": "workflow.channel_assignment",
    "unread_channel": "workflow.methods",
    "write_atomically": "files.atomic_write",
    "write_collection": "workflow.collection",
    "write_estimate": "workflow.export",
    "write_outputs": "files.atomic_write",
}

# Hidden from type checkers, which would otherwise accept any attribute of the package.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name when it is first used (PEP 562)."""
        if name not in _HOMES:
            raise AttributeError(f"module 'crowdveil.workflow' has no attribute {name!r}")
        return getattr(import_module(f"crowdveil.{_HOMES[name]}"), name)
