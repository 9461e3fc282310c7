"""The heavy loops of inference; nothing outside this folder knows which of them are compiled."""

from crowdveil.estimators.kernels.choice import block_reports, encode, side_by_side, thread_count, use_compiled
from crowdveil.estimators.kernels.counts import count_symbols
from crowdveil.estimators.kernels.gammas import log_gamma_sums
from crowdveil.estimators.kernels.plain import softmax
from crowdveil.estimators.kernels.rows import in_pieces, logs_of_rows, on_rows, shares_of_rows
from crowdveil.estimators.kernels.slopes import Slopes, squared_slopes
from crowdveil.estimators.kernels.steps import CodedBlock, MeanStep, ScoreTables, TableStep, VoteStep

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
