"""Kinds of workers for ordered labels: a normal error around the truth's level, a bias, or no regard for the truth.

A worker of noise sigma and bias b sees level z as z + b + sigma N(0, 1) and answers the label whose interval holds it;
labels stand at 0, 1, ..., K - 1 and are cut half way. One answer in five is a guess from the crowd's base rate.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

LAPSE = 0.2
"""Share of guesses among everybody's answers; without it one slip over several levels would exclude a truth."""
NOISES = (1 / 3, 1 / 2, 0.8, 1.25, 2.0, 3.0)
"""Deviations in units of the usual one."""
BIASES = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""In levels."""
USUAL_NOISE = 0.15
"""The usual deviation, in units of the range K - 1."""
LEAST_NOISE = 0.2
"""In levels: below it nearly every answer is the truth."""
NOISE_SPREAD, BIAS_SPREAD = 0.7, 0.25
"""Standard deviations of the logarithm of the noise and of the bias over workers."""
CARELESS = 0.15
"""Share of workers whose answers do not depend on the truth."""
STUBBORN = (0.5, 0.95)
"""How often a careless worker with a favourite label gives it; else he guesses."""
FLOOR = 1e-3
"""No answer is quite impossible."""


def ordered_kinds(base_rate: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the tables of all kinds, and the share of each among workers before anything is known.

    Args:
        base_rate: share of each label among answers, shape (labels,), sums to 1.

    Returns:
        Indexed [kind, truth, label], rows sum to 1; and shape (kinds,), sums to 1.
    """
    labels = len(base_rate)
    usual = USUAL_NOISE * (labels - 1)
    careful = [(noise, bias) for noise in NOISES for bias in BIASES]
    tables = [LAPSE * base_rate + (1 - LAPSE) * threshold_table(labels, noise * usual, bias) for noise, bias in careful]
    weights = [
        np.exp(-0.5 * (np.log(noise) / NOISE_SPREAD) ** 2 - 0.5 * (bias / BIAS_SPREAD) ** 2) for noise, bias in careful
    ]
    careless = [(1 - share) * base_rate + share * label for label in np.eye(labels) for share in (*STUBBORN,)] + [
        base_rate
    ]
    tables += [np.tile(row, (labels, 1)) for row in careless]
    unbiased = [CARELESS / 2 / (len(careless) - 1)] * (len(careless) - 1) + [CARELESS / 2]
    shares = np.concatenate((np.array(weights) / sum(weights) * (1 - CARELESS), unbiased))
    floored = np.maximum(np.array(tables), FLOOR)
    return floored / floored.sum(axis=2, keepdims=True), shares


def threshold_table(labels: int, noise: float, bias: float) -> NDArray[np.float64]:
    """Return P(answer | truth) of a normal error, indexed [truth, label]; the extreme labels take the tails."""
    cuts = np.arange(labels - 1) + 0.5
    level = np.arange(labels)[:, None] + bias
    below = ndtr((cuts - level) / max(noise, LEAST_NOISE))
    ends = np.zeros((labels, 1)), np.ones((labels, 1))
    return np.diff(np.concatenate((ends[0], below, ends[1]), axis=1), axis=1)
