"""The heavy loops of inference; nothing outside this folder knows which of them are compiled."""

from crowdveil.em.kernels.dispatch import block_reports, encode, side_by_side, thread_count, use_compiled
from crowdveil.em.kernels.interface import CodedBlock, MeanStep, ScoreTables, TableStep, VoteStep
from crowdveil.em.kernels.numpy_backend import softmax
from crowdveil.em.kernels.reductions import (
    Slopes,
    count_symbols,
    in_pieces,
    log_gamma_sums,
    logs_of_rows,
    on_rows,
    shares_of_rows,
    squared_slopes,
)

__all__ = [
    "CodedBlock",
    "MeanStep",
    "ScoreTables",
    "Slopes",
    "TableStep",
    "VoteStep",
    "block_reports",
    "count_symbols",
    "encode",
    "in_pieces",
    "log_gamma_sums",
    "logs_of_rows",
    "on_rows",
    "shares_of_rows",
    "side_by_side",
    "softmax",
    "squared_slopes",
    "thread_count",
    "use_compiled",
]
