"""Aggregators with the names, arguments and attributes of `crowdkit.aggregation` 1.4.2; needs pandas.

Tasks, workers and labels are sorted in every result. A tie goes to the first label. Missing values are refused;
repeated answers of a worker to a task are counted, with a warning.
"""

from crowdveil.compat.crowdkit.answer_table import NotFittedError
from crowdveil.compat.crowdkit.dawid_skene import DawidSkene
from crowdveil.compat.crowdkit.glad import GLAD
from crowdveil.compat.crowdkit.kos import KOS
from crowdveil.compat.crowdkit.mace import MACE
from crowdveil.compat.crowdkit.majority_vote import MajorityVote
from crowdveil.compat.crowdkit.mmsr import MMSR
from crowdveil.compat.crowdkit.one_coin import OneCoinDawidSkene
from crowdveil.compat.crowdkit.skill_votes import GoldMajorityVote, Wawa, ZeroBasedSkill

__all__ = [
    "GLAD",
    "KOS",
    "MACE",
    "MMSR",
    "DawidSkene",
    "GoldMajorityVote",
    "MajorityVote",
    "NotFittedError",
    "OneCoinDawidSkene",
    "Wawa",
    "ZeroBasedSkill",
]
