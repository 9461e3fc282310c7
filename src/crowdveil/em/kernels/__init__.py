"""Numerical kernels of inference, by numpy for small data and by compiled loops for large data."""

from crowdveil.em.kernels.dispatch import block_reports, encode, parallel_map, thread_count, use_compiled
from crowdveil.em.kernels.interface import Discount, EncodedBlock, MeanStep, ScoreTables, TableStep, VoteStep
from crowdveil.em.kernels.numpy_backend import softmax
from crowdveil.em.kernels.reductions import (
    Slopes,
    count_symbols,
    floored_log,
    for_row_ranges,
    log_gamma_sums,
    map_row_chunks,
    normalize_confusion,
    softmax_by_label,
    squared_slopes,
)

__all__ = [
    "Discount",
    "EncodedBlock",
    "MeanStep",
    "ScoreTables",
    "Slopes",
    "TableStep",
    "VoteStep",
    "block_reports",
    "count_symbols",
    "encode",
    "floored_log",
    "for_row_ranges",
    "log_gamma_sums",
    "map_row_chunks",
    "normalize_confusion",
    "parallel_map",
    "softmax",
    "softmax_by_label",
    "squared_slopes",
    "thread_count",
    "use_compiled",
]
