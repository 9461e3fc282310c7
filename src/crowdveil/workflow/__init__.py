"""What the verbs of the command line do, as library calls: files in, one value out, files written whole."""

from crowdveil.output import ESTIMATE_FILES, home, write_estimate
from crowdveil.workflow.choice import MechanismWanted, build_mechanism, describe, parameters
from crowdveil.workflow.collection import (
    Collection,
    collect,
    collection_files,
    room_for,
    rows_expected,
    write_collection,
)
from crowdveil.workflow.encoding import encode
from crowdveil.workflow.evidence import Evidence, read_evidence
from crowdveil.workflow.expectation import Expectation
from crowdveil.workflow.files import read_answers, read_names, refuse_overwriting
from crowdveil.workflow.inference import METHODS, Inference, KeptFits, Method, infer, infer_from_sums, scored
from crowdveil.workflow.resources import Resources
from crowdveil.workflow.setup import Setup, set_up

__all__ = [
    "ESTIMATE_FILES",
    "METHODS",
    "Collection",
    "Evidence",
    "Expectation",
    "Inference",
    "KeptFits",
    "MechanismWanted",
    "Method",
    "Resources",
    "Setup",
    "build_mechanism",
    "collect",
    "collection_files",
    "describe",
    "encode",
    "home",
    "infer",
    "infer_from_sums",
    "parameters",
    "read_answers",
    "read_evidence",
    "read_names",
    "refuse_overwriting",
    "room_for",
    "rows_expected",
    "scored",
    "set_up",
    "write_collection",
    "write_estimate",
]
