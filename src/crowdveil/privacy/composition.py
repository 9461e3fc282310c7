"""Composition of a worker's cells over campaigns: pure sum, advanced, and exact at a delta, side by side.

A cell's profile comes from the integer table of its channel. Cells of the two-layer mechanism share a secret and have
one joint profile per campaign. Of other mechanisms only the pure epsilon enters, with the profile of randomized
response over two answers, which dominates every mechanism with that epsilon (Kairouz, Oh, Viswanath 2015).
Proof: docs/explanation/composition.md.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from crowdveil.channels.guarantee import Participation, Unit
from crowdveil.mechanisms import ChannelMechanism, Mechanism, TwoLayer
from crowdveil.mechanisms.two_layer import SharedFlipDistribution
from crowdveil.privacy.loss_distribution import (
    PROFILE_ERROR,
    Cells,
    ComposedBounds,
    PrivacyProfile,
    channel_profile,
    composed_bounds,
    pure_epsilon,
)

MAX_SHARED_CELLS = 100
"""Largest number of cells with a shared secret whose joint profile is enumerated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition(ComposedBounds):
    """Privacy loss of one unit in all campaigns together; bounds as `ComposedBounds`.

    Attributes:
        unit: "cell": one worker's answer to one task; "worker": all answers of one worker.
        participation: whether NULL and an answer are neighbours.
        cells: independent cells, or cells with a shared secret, of one worker in a campaign; 1 for a cell.
        rounds: number of campaigns with independent randomness.
    """

    unit: Unit
    participation: Participation
    cells: int
    rounds: int


def composition(mechanism: Mechanism, *, tasks: int, delta: float, rounds: int = 1) -> tuple[Composition, ...]:
    """Return the loss at `delta` per cell and per worker, over all rounds together.

    Args:
        mechanism: mechanism of every worker's device.
        tasks: cells of one worker in a campaign, as for `accounting.account`.
        delta: additive slack, in [1e-15, 0.5].
        rounds: number of campaigns on the same workers and tasks, each with new randomness.

    Raises:
        SettingsError: delta outside its interval, or more tasks than the guarantee covers.
    """
    guarantees, units = mechanism.guarantees_over(tasks, rounds), _units(mechanism, tasks, rounds)
    return tuple(
        Composition(
            unit=guarantee.unit,
            participation=guarantee.participation,
            cells=tasks if guarantee.unit == "worker" else 1,
            rounds=rounds,
            **composed_bounds(cells, delta, min(pure_epsilon(cells), guarantee.epsilon)),
        )
        for guarantee, cells in zip(guarantees, units, strict=True)
    )


def _units(mechanism: Mechanism, tasks: int, rounds: int) -> tuple[Cells, Cells]:
    """Return the independent parts of a cell and of a worker, over all rounds."""
    if isinstance(mechanism, ChannelMechanism) and mechanism.channel().ratio is not None:
        profile = channel_profile(mechanism.channel())
        return [(profile, rounds)], [(profile, rounds * tasks)]
    cell, worker = mechanism.guarantees(tasks)
    joint = pure_profile(worker.epsilon)
    if isinstance(mechanism, TwoLayer) and tasks <= MAX_SHARED_CELLS and math.isfinite(worker.epsilon):
        joint = shared_flip_profile(mechanism, tasks, worker.epsilon)
    return [(pure_profile(cell.epsilon), rounds)], [(joint, rounds)]


def pure_profile(epsilon: float) -> PrivacyProfile:
    """Return the profile of randomized response over two answers, an upper bound for every unit with this epsilon."""

    def delta(epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        excess = -np.expm1(np.minimum(epsilons - epsilon, 0.0)) / (1 + math.exp(-epsilon))
        return np.where(epsilons < epsilon, excess + 2 * PROFILE_ERROR, 0.0)

    return PrivacyProfile(epsilon, delta, epsilon)


def shared_flip_profile(mechanism: TwoLayer, cells: int, epsilon: float) -> PrivacyProfile:
    """Return the joint profile of `cells` cells that share one secret flip probability.

    The maximum over all numbers j of cells in which two answer vectors differ; the losses of each j are enumerated.

    Args:
        mechanism: two-layer mechanism.
        cells: number of cells with the same secret, at most 100.
        epsilon: pure loss of the worker.
    """
    distribution, error = mechanism.flip_distribution(cells), mechanism.numerical_error(cells)
    logs = np.array([distribution.log_probability(h) for h in range(cells + 1)])
    loss = (logs[:, None] - logs[None, :]).ravel()
    order = np.argsort(-loss)
    masses = [np.exp(mass.ravel() + np.repeat(logs, cells + 1))[order] for mass in _log_counts(distribution)]
    sums = [(np.append(0.0, np.cumsum(m)), np.append(0.0, np.cumsum(m * np.exp(-loss[order])))) for m in masses]

    def delta(epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        above = np.searchsorted(-loss[order], error - epsilons)
        excess = [first[above] - np.exp(epsilons - error) * second[above] for first, second in sums]
        rounding = len(loss) * PROFILE_ERROR * np.max([first[above] for first, _ in sums], axis=0)
        bound = (np.max(excess, axis=0) + rounding) * math.exp(error)
        return np.where(epsilons < epsilon, np.maximum(bound, 0.0), 0.0)

    return PrivacyProfile(epsilon, delta, epsilon)


def _log_counts(distribution: SharedFlipDistribution) -> list[NDArray[np.float64]]:
    """Return ln of the number of reports that differ from two answer vectors in h and in h' cells, indexed [h, h'].

    One array for each number 1..k of cells in which the two vectors differ.
    """
    cells, symbols = distribution.cells, distribution.symbols
    tables = []
    for differing in range(1, cells + 1):
        table = np.zeros((cells + 1, cells + 1))
        same = cells - differing
        for common in range(same + 1):
            kept, moved = np.indices((differing + 1, differing + 1))
            other = differing - kept - moved
            valid = (other >= 0) & ((symbols > 2) | (other == 0))
            kept, moved, other = kept[valid], moved[valid], other[valid]
            ways = _log_choose(same, common) + common * math.log(symbols - 1)
            logs = gammaln(differing + 1) - gammaln(kept + 1) - gammaln(moved + 1) - gammaln(other + 1)
            logs = logs + other * math.log(max(symbols - 2, 1)) + ways
            np.add.at(table, (common + moved + other, common + kept + other), np.exp(logs))
        with np.errstate(divide="ignore"):
            tables.append(np.log(table))
    return tables


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
