"""Composition of a worker's cells over campaigns: pure sum, advanced, and exact at a delta, side by side.

A cell's profile comes from the integer table of its channel. Of mechanisms without one only the pure epsilon enters,
with the profile of randomized response over two answers, which dominates every mechanism with that epsilon (Kairouz,
Oh, Viswanath 2015).
Proof: docs/explanation/composition.md.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.guarantee import Participation, Unit
from crowdveil.channels.rounding import float_rounded_up
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import ChannelMechanism, Mechanism
from crowdveil.privacy.loss_distribution import (
    PROFILE_ERROR,
    Cells,
    ComposedBounds,
    PrivacyProfile,
    channel_profile,
    composed_bounds,
    composed_epsilon,
    pure_epsilon,
    require_delta,
)
from crowdveil.standalone.checks import Line, epsilon
from crowdveil.standalone.verification import epsilon_of


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


def composed_losses(mechanism: Mechanism, *, tasks: int, delta: float, rounds: int = 1) -> tuple[Composition, ...]:
    """Return the loss at `delta` per cell and per worker, over all rounds together.

    Args:
        mechanism: mechanism of every worker's device.
        tasks: cells of one worker in a campaign, as for `accounting.account`.
        delta: additive slack, in [1e-15, 0.5].
        rounds: number of campaigns on the same workers and tasks, each with new randomness.

    Raises:
        SettingsError: delta outside its interval, or more tasks than the guarantee covers.
    """
    guarantees, units = (
        mechanism.guarantees_over(tasks, rounds),
        _independent_parts(mechanism, tasks, rounds),
    )
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
    return [(profile_of_pure_epsilon(cell.epsilon), rounds)], [(profile_of_pure_epsilon(worker.epsilon), rounds)]


def profile_of_pure_epsilon(epsilon: float) -> PrivacyProfile:
    """Return the profile of randomized response over two answers, an upper bound for every unit with this epsilon."""

    def delta(epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        excess = -np.expm1(np.minimum(epsilons - epsilon, 0.0)) / (1 + math.exp(-epsilon))
        return np.where(epsilons < epsilon, excess + 2 * PROFILE_ERROR, 0.0)

    return PrivacyProfile(epsilon, delta, epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLoss(ComposedBounds):
    """Loss of a person to one host, or to all; bounds as `ComposedBounds`.

    Attributes:
        host: receiver of the reports; None for all together.
        cells: cells of all campaigns.
    """

    host: str | None
    cells: int


def ledger_losses(lines: Sequence[Line], delta: float) -> tuple[LedgerLoss, ...]:
    """Return the loss to each host, and to all together; empty without lines.

    Raises:
        SettingsError: delta is outside [1e-15, 0.5].
        Refused: a line with a ratio below 1.
    """
    require_delta(delta)
    hosts = sorted({str(line["host"]) for line in lines})
    groups = [(host, [line for line in lines if line["host"] == host]) for host in hosts]
    return tuple(_loss(host, some, delta) for host, some in [*groups, *([(None, list(lines))] if lines else [])])


def _loss(host: str | None, lines: list[Line], delta: float) -> LedgerLoss:
    pure = float_rounded_up(Fraction(epsilon(lines)))  # first: it refuses a ratio below 1
    counts = Counter[Fraction]()
    for line in lines:
        counts[Fraction(line["numerator"], line["denominator"])] += line["cells"]
    cells = [(profile_of_pure_epsilon(epsilon_of(ratio)), count) for ratio, count in counts.items()]
    return LedgerLoss(host=host, cells=counts.total(), **composed_bounds(cells, delta, pure))


STEPS = 14
"""Bisections of an epsilon per cell, on a logarithmic scale."""
MAX_CELLS = 10**6


@lru_cache(maxsize=4096)
def cell_epsilon(budget: float, cells: int, delta: float, most: float) -> float:
    """Return an epsilon per cell that `cells` cells of any mechanism can have within a budget at `delta`.

    Args:
        budget: epsilon of all cells of a worker, in nats.
        cells: cells of the worker who has the most; public, never taken from answers.
        delta: in [1e-15, 0.5], for all cells together.
        most: largest epsilon per cell.

    Raises:
        SettingsError: a budget that is not positive and finite, no cells, or delta outside its interval.
    """
    _require_valid_budget(budget, delta)
    if not 1 <= cells <= MAX_CELLS:
        raise SettingsError(f"a worker has from 1 to {MAX_CELLS:,} cells", value=cells)
    low, high = budget / cells * (1 - 1e-12), min(budget, most)
    if low >= most or _composed_epsilon_of(most, cells, delta) <= budget:
        return most
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _composed_epsilon_of(middle, cells, delta) <= budget else (low, middle)
    return low


def cells_within(budget: float, epsilon: float, delta: float) -> int:
    """Return the largest number of cells of this epsilon whose loss at `delta` is within a budget; 0 if none is."""
    _require_valid_budget(budget, delta)
    if not 0 < epsilon < math.inf:
        raise SettingsError("the epsilon must be positive", value=epsilon, hint="Such as a budget of 6 and epsilon 2.")
    low, high = 0, 1
    while high <= MAX_CELLS and _composed_epsilon_of(epsilon, high, delta) <= budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _composed_epsilon_of(epsilon, middle, delta) <= budget else (low, middle)
    return low


def _composed_epsilon_of(epsilon: float, cells: int, delta: float) -> float:
    return composed_epsilon([(profile_of_pure_epsilon(epsilon), cells)], delta)


def _require_valid_budget(budget: float, delta: float) -> None:
    require_delta(delta)
    if not 0 < budget < math.inf:
        raise SettingsError("a budget per worker must be positive", value=budget, hint="Example: 5.")
