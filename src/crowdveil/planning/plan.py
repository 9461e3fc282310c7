"""The plan: every candidate's expected error at every epsilon, the smallest epsilon that will do, and ways out."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from crowdveil.errors import SettingsError
from crowdveil.mechanisms import ChannelMechanism
from crowdveil.planning.campaign import Campaign
from crowdveil.planning.candidates import LINES, Cost, candidates, cost, same_table
from crowdveil.planning.crowds import LabelCrowd
from crowdveil.planning.search import (
    Way,
    full_assignment,
    more_workers,
    public_participation,
    smallest_epsilon,
)
from crowdveil.planning.trials import Prediction, predict, usual_seeds

EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
CLOSER = 3
"""Times the usual number of tasks in the simulation that confirms a recommendation."""
CHECKS = 8
"""Simulations expected after the candidates', for the progress bar."""

Progress = Callable[[int, int], None]
"""Called with the simulations done, and how many are expected in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One candidate.

    Attributes:
        line: its kind, one of `LINES`.
        epsilon: asked for, in nats per cell.
        mechanism: what devices run.
        prediction: the error to expect.
        cost: what it costs a worker.
        same_as: the line whose reports say the same at this epsilon, if one stands before it.
    """

    line: str
    epsilon: float
    mechanism: ChannelMechanism
    prediction: Prediction
    cost: Cost
    same_as: str | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """What came out.

    Attributes:
        campaign: what was planned.
        target: the error wanted.
        constant_error: of the best public constant.
        unprotected: the error without any protection.
        rows: candidates by epsilon, then in the order of `LINES`.
        recommended: the cheapest at the smallest epsilon whose expected error meets the target; None if none does.
        sure: the same, for the upper end of the interval.
        workers: where the target is missed, by epsilon: with how many workers the best candidate would meet it.
        unprotected_workers: the same without protection, where even that misses it.
        ways: other changes of the campaign under which the target is met, at the smallest epsilon where it is.
    """

    campaign: Campaign
    target: float
    constant_error: float
    unprotected: Prediction
    rows: tuple[Row, ...]
    recommended: Row | None
    sure: Row | None
    workers: dict[float, Way | None]
    unprotected_workers: Way | None
    ways: tuple[Way, ...]

    @property
    def best(self) -> Row:
        """Return the candidate with the smallest expected error."""
        return min(self.rows, key=lambda row: row.prediction.error)


class _Ticks:
    """Counts simulations for a progress bar."""

    def __init__(self, expected: int, progress: Progress | None) -> None:
        self.done, self.expected, self.progress = 0, expected, progress

    def __call__(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, max(self.done, self.expected))


def plan(
    campaign: Campaign, *, target: float, epsilons: Sequence[float] = EPSILONS, progress: Progress | None = None
) -> Plan:
    """Return what to expect of every candidate, what to use, and what would make an impossible target possible.

    Args:
        campaign: what is asked of whom.
        target: the error wanted: share of wrong labels, or mean absolute error in units of the answers.
        epsilons: in nats per cell.
        progress: called after every simulation.

    Raises:
        SettingsError: a target that is not positive, no epsilon or one that is not accepted.
    """
    if not 0 < target < math.inf:
        raise SettingsError("the target error must be positive", value=target, way_out="No inference is never wrong.")
    if not epsilons:
        raise SettingsError("a plan needs at least one epsilon", value=tuple(epsilons))
    asked = tuple(sorted(set(epsilons)))
    made = {epsilon: candidates(campaign, epsilon) for epsilon in asked}
    tables = {same_table(one.channel()) for group in made.values() for one in group.values()}
    tick = _Ticks(usual_seeds(campaign) * (len(tables) + 1 + CHECKS), progress)
    unprotected = predict(campaign, None, tick=tick)
    rows = [row for epsilon in asked for row in _rows(campaign, epsilon, made[epsilon], tick)]
    rows, recommended = _confirmed(campaign, rows, target, tick)
    missed = tuple(epsilon for epsilon in asked if recommended is None or epsilon < recommended.epsilon)
    return Plan(
        campaign=campaign,
        target=target,
        constant_error=campaign.crowd.constant_error,
        unprotected=unprotected,
        rows=tuple(rows),
        recommended=recommended,
        sure=_cheapest([row for row in rows if row.prediction.high <= target]),
        workers=_workers(campaign, rows, missed, target, tick),
        unprotected_workers=_unprotected_workers(campaign, unprotected, target, tick),
        ways=tuple(_ways(campaign, missed, target, tick)),
    )


def _rows(campaign: Campaign, epsilon: float, made: dict[str, ChannelMechanism], tick: _Ticks) -> list[Row]:
    """Predict the candidates at one epsilon; those that send the same are simulated once."""
    rows: list[Row] = []
    for line, mechanism in made.items():
        table = same_table(mechanism.channel())
        twin = next((row for row in rows if same_table(row.mechanism.channel()) == table), None)
        prediction = predict(campaign, mechanism, tick=tick) if twin is None else twin.prediction
        rows.append(
            Row(
                line=line,
                epsilon=epsilon,
                mechanism=mechanism,
                prediction=prediction,
                cost=cost(campaign, mechanism),
                same_as=None if twin is None else twin.line,
            )
        )
    return rows


def _cheapest(meeting: list[Row]) -> Row | None:
    """Return, of the rows with the smallest epsilon, the one with the fewest bytes, the simplest of equals."""
    return min(meeting, key=lambda row: (row.epsilon, row.cost.bytes, LINES.index(row.line)), default=None)


def _confirmed(campaign: Campaign, rows: list[Row], target: float, tick: _Ticks) -> tuple[list[Row], Row | None]:
    """Choose a row, simulate it closer if not all tasks were, and choose again until the choice stands."""
    closer: set[tuple[float, str]] = set()
    while True:
        chosen = _cheapest([row for row in rows if row.prediction.error <= target])
        if chosen is None or (chosen.epsilon, chosen.line) in closer:
            return rows, chosen
        if chosen.prediction.simulated_tasks in (campaign.tasks, campaign.cells):
            return rows, chosen
        found = predict(campaign, chosen.mechanism, effort=CLOSER, tick=tick)
        table = same_table(chosen.mechanism.channel())
        twins = [row for row in rows if row.epsilon == chosen.epsilon and same_table(row.mechanism.channel()) == table]
        closer |= {(row.epsilon, row.line) for row in twins}
        rows = [replace(row, prediction=found) if row in twins else row for row in rows]


def _workers(
    campaign: Campaign, rows: list[Row], missed: tuple[float, ...], target: float, tick: _Ticks
) -> dict[float, Way | None]:
    """Search for the candidate that takes the fewest workers, at every missed epsilon.

    What is found for labels is checked by simulation; for numbers, which take longer, at the largest epsilon only.
    """
    found: dict[float, Way | None] = {}
    for epsilon in missed:
        check = epsilon == missed[-1] or isinstance(campaign.crowd, LabelCrowd)
        distinct = [row for row in rows if row.epsilon == epsilon and row.same_as is None]
        ways = [(row, _more_workers(campaign, row, target, check=False)) for row in distinct]
        sizes = [(way.campaign.workers, number) for number, (_, way) in enumerate(ways) if way is not None]
        row, way = ways[min(sizes)[1]] if sizes else ways[0]
        found[epsilon] = _more_workers(campaign, row, target, check=True, tick=tick) if way and check else way
    return found


def _more_workers(
    campaign: Campaign, row: Row, target: float, *, check: bool, tick: _Ticks | None = None
) -> Way | None:
    return more_workers(campaign, row.line, row.mechanism, target, share=row.prediction.share, check=check, tick=tick)


def _unprotected_workers(campaign: Campaign, unprotected: Prediction, target: float, tick: _Ticks) -> Way | None:
    if unprotected.error <= target:
        return None
    return more_workers(campaign, "unprotected", None, target, share=unprotected.share, check=True, tick=tick)


def _ways(campaign: Campaign, missed: tuple[float, ...], target: float, tick: _Ticks) -> list[Way]:
    """Try public participation, and assignment, at the epsilons that are missed."""
    ways = []
    public, assigned = public_participation(campaign), full_assignment(campaign)
    if public is not None:
        ways.append(smallest_epsilon("public", public, target, missed, tick))
    if assigned is not None:
        ways.append(smallest_epsilon("assignment", assigned, target, missed, tick))
    return [way for way in ways if way is not None]
