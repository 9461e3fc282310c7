"""Composition of a worker's cells over campaigns: pure sum, advanced, and exact at a delta, side by side.

A cell's profile comes from the integer table of its channel. Of mechanisms without one only the pure epsilon enters,
with the profile of randomized response over two answers, which dominates every mechanism with that epsilon (Kairouz,
Oh, Viswanath 2015).
Proof: docs/explanation/composition.md.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.guarantee import Participation, Unit
from crowdveil.mechanisms import ChannelMechanism, Mechanism
from crowdveil.privacy.loss_distribution import (
    PROFILE_ERROR,
    Cells,
    ComposedBounds,
    PrivacyProfile,
    channel_profile,
    composed_bounds,
    pure_epsilon,
)


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
    guarantees, units = mechanism.guarantees_over(tasks, rounds), _independent_parts(mechanism, tasks, rounds)
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


def _independent_parts(mechanism: Mechanism, tasks: int, rounds: int) -> tuple[Cells, Cells]:
    """Return the independent parts of a cell and of a worker, over all rounds."""
    if isinstance(mechanism, ChannelMechanism) and mechanism.channel().ratio is not None:
        profile = channel_profile(mechanism.channel())
        return [(profile, rounds)], [(profile, rounds * tasks)]
    cell, worker = mechanism.guarantees(tasks)
    return [(pure_profile(cell.epsilon), rounds)], [(pure_profile(worker.epsilon), rounds)]


def pure_profile(epsilon: float) -> PrivacyProfile:
    """Return the profile of randomized response over two answers, an upper bound for every unit with this epsilon."""

    def delta(epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        excess = -np.expm1(np.minimum(epsilons - epsilon, 0.0)) / (1 + math.exp(-epsilon))
        return np.where(epsilons < epsilon, excess + 2 * PROFILE_ERROR, 0.0)

    return PrivacyProfile(epsilon, delta, epsilon)
