"""The finite channel that says most about the truth at a given epsilon, by linear programming over staircase columns.

Kairouz, Oh and Viswanath (2016), Theorems 2 and 4: where every report adds a sublinear gain, some best channel has only
columns whose entries are 1 or e^epsilon, times a weight; the weights solve a linear program with one equation per
input. Mutual information and the probability of a right guess are such gains.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.special import ndtr

from crowdveil.channel import Channel, ratio_at_most
from crowdveil.errors import CrowdveilError, SettingsError
from crowdveil.guarantee import Participation, require_epsilon
from crowdveil.labels import Alphabet, Scale
from crowdveil.mechanisms import Designed, QuantizedResponse, RandomizedResponse
from crowdveil.mechanisms.block_names import block_names
from crowdveil.mechanisms.question import Question

EXACT_INPUTS = 12
"""Inputs (labels, and NULL where protected) up to which all staircase columns are tried."""

MOST_ENDS = 24
"""Beyond: labels at which the tried intervals begin and end, at most, spread by how often answers are expected."""

MOST_COLUMNS = 4096
"""Comparators with more report symbols than this are left out."""

UNUSED = 1e-11
"""Share of reports below which a column of the optimum is a rounding error."""

Sets = NDArray[np.bool_]
"""Sets of inputs, shape (inputs, sets): where a staircase column is high."""


def design(question: Question, epsilon: float) -> Channel:
    """Return the best channel for a question at `epsilon`, certified: its integer ratio never exceeds e^epsilon.

    Exact up to `EXACT_INPUTS` inputs. Beyond, the best over a family: intervals of an ordered alphabet, small and
    frequent sets of another, their complements, each with and without NULL, and the columns of the comparators. Never
    worse than a comparator that the device could send: where rounding or the family loses, that comparator is returned.

    Raises:
        SettingsError: epsilon is not accepted.
    """
    require_epsilon(epsilon)
    inputs = question.inputs.shape[1]
    sets = _all_sets(inputs) if inputs <= EXACT_INPUTS else _family(question, epsilon)
    candidates = [_optimum(question, epsilon, sets), *_simple_channels(question, epsilon)]
    best = max(candidates, key=lambda channel: question.score(channel.probabilities))
    return Designed.from_channel(best).channel()


def mutual_information(
    channel: Channel, prior: NDArray[np.float64], model: NDArray[np.float64], participation_rate: float = 1.0
) -> float:
    """Return the mutual information of truth and report, in nats per cell.

    Args:
        channel: what cells go through.
        prior: P(truth), shape (truths,).
        model: P(answer | truth), shape (truths, labels).
        participation_rate: share of cells that are answered; where participation is public the others say nothing.
    """
    return _question(channel, prior, model, participation_rate).score(channel.probabilities)


def expected_error(
    channel: Channel, prior: NDArray[np.float64], model: NDArray[np.float64], participation_rate: float = 1.0
) -> float:
    """Return the probability that the best guess of the truth from one cell is wrong; arguments as above."""
    question = Question(
        alphabet=channel.alphabet,
        prior=prior,
        answers=model,
        participation_rate=participation_rate,
        participation=channel.participation,
        objective="correct",
    )
    return 1 - question.score(channel.probabilities)
