"""The plan: every candidate's expected error at every epsilon, the smallest epsilon that will do, and ways out."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from crowdveil.errors import SettingsError
from crowdveil.mechanisms import ChannelMechanism
from crowdveil.planning.campaign import Campaign
from crowdveil.planning.candidates import LINES, Candidate, Cost, candidates, cost
from crowdveil.planning.population import LabelCrowd
from crowdveil.planning.search import Way, full_assignment, more_workers, public_participation, smallest_epsilon
from crowdveil.planning.simulation import Prediction, predict, usual_seeds

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
        epsilon: asked for, in nats per cell.
        candidate: its kind, what devices run, and the campaign as asked and inferred from in its way.
        prediction: the error to expect.
        cost: what it costs a worker.
        same_as: the line whose reports say the same at this epsilon, if one stands before it.
    """

    epsilon: float
    candidate: Candidate
    prediction: Prediction
    cost: Cost
    same_as: str | None

    @property
    def line(self) -> str:
        """Return its kind, one of `LINES`."""
        return self.candidate.line

    @property
    def mechanism(self) -> ChannelMechanism:
        """Return what devices run, in rounds those of the first."""
        return self.candidate.mechanism

    @property
    def campaign(self) -> Campaign:
        """Return the campaign as asked and inferred from in its way."""
        return self.candidate.campaign


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """What came out.

    Attributes:
        campaign: what was planned.
        target: the error wanted.
        constant_error: of the best public constant.
        unprotected: the error without any protection, by the best of the methods.
        unprotected_method: which one that is.
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
    unprotected_method: str
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
        raise SettingsError("the target error must be positive", value=target, hint="No inference is never wrong.")
    if not epsilons:
        raise SettingsError("a plan needs at least one epsilon", value=tuple(epsilons))
    asked = tuple(sorted(set(epsilons)))
    made = {epsilon: candidates(campaign, epsilon) for epsilon in asked}
    distinct = sum(len({one.sends for one in group}) for group in made.values())
    tick = _Ticks(usual_seeds(campaign) * (distinct + 1 + CHECKS), progress)
    plain, unprotected = _unprotected(campaign, made[asked[0]], tick)
    rows, recommended = _confirmed(campaign, _all_rows(campaign, made, target, tick), target, tick)
    missed = tuple(epsilon for epsilon in asked if recommended is None or epsilon < recommended.epsilon)
    return Plan(
        campaign=campaign,
        target=target,
        constant_error=campaign.crowd.constant_error,
        unprotected=unprotected,
        unprotected_method=plain.estimator.name,
        rows=tuple(rows),
        recommended=recommended,
        sure=_cheapest([row for row in rows if row.prediction.high <= target]),
        workers=_workers(campaign, rows, missed, target, tick),
        unprotected_workers=_unprotected_workers(plain, unprotected, target, tick),
        ways=tuple(_ways(campaign, missed, target, tick)),
    )


def _unprotected(campaign: Campaign, made: list[Candidate], tick: _Ticks) -> tuple[Campaign, Prediction]:
    """Predict the error without protection by every method; return the best, and the campaign with its method."""
    methods = {one.campaign.method: replace(campaign, method=one.campaign.method) for one in made}
    found = [(one, predict(one, None, tick=tick)) for one in methods.values()]
    return min(found, key=lambda pair: pair[1].error)


def _all_rows(campaign: Campaign, made: dict[float, list[Candidate]], target: float, tick: _Ticks) -> list[Row]:
    """Predict all candidates; once where even known workers miss the target, or a smaller epsilon meets it surely."""
    rows: list[Row] = []
    for epsilon, group in made.items():
        sure = any(row.prediction.high <= target for row in rows)
        rows += _rows(campaign, epsilon, group, 0.0 if sure else target, tick)
    return rows


def _rows(campaign: Campaign, epsilon: float, made: list[Candidate], needed: float, tick: _Ticks) -> list[Row]:
    """Predict the candidates at one epsilon; those that send the same, read alike, are simulated together."""
    rows: list[Row] = []
    for one in made:
        twin = next((row for row in rows if row.candidate.sends == one.sends), None)
        rows.append(
            Row(
                epsilon=epsilon,
                candidate=one,
                prediction=predict(one.campaign, one.mechanism, needed=needed, tick=tick)
                if twin is None
                else twin.prediction,
                cost=cost(campaign, one.mechanism),
                same_as=None if twin is None else twin.line,
            )
        )
    return rows


def _cheapest(meeting: list[Row]) -> Row | None:
    """Return, of the rows with the smallest epsilon, the best of those with fewest rounds, then bytes."""
    return min(
        meeting,
        key=lambda row: (row.epsilon, row.campaign.rounds, row.cost.bytes, row.prediction.error, LINES.index(row.line)),
        default=None,
    )


def _confirmed(campaign: Campaign, rows: list[Row], target: float, tick: _Ticks) -> tuple[list[Row], Row | None]:
    """Choose a row, simulate it closer if not all was simulated, and choose again until the choice stands."""
    closer: set[tuple[float, str]] = set()
    while True:
        chosen = _cheapest([row for row in rows if row.prediction.error <= target])
        if chosen is None or (chosen.epsilon, chosen.line) in closer:
            return rows, chosen
        whole = chosen.prediction.simulated_tasks in (campaign.tasks, campaign.cells)
        if whole and chosen.prediction.simulated >= usual_seeds(campaign):
            return rows, chosen
        found = predict(chosen.campaign, chosen.mechanism, seeds=usual_seeds(campaign), effort=CLOSER, tick=tick)
        sent = chosen.candidate.sends
        twins = [row for row in rows if row.epsilon == chosen.epsilon and row.candidate.sends == sent]
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
        ways = [(row, _more_workers(row, target, check=False)) for row in distinct]
        sizes = [(way.campaign.workers, number) for number, (_, way) in enumerate(ways) if way is not None]
        row, way = ways[min(sizes)[1]] if sizes else ways[0]
        found[epsilon] = _more_workers(row, target, check=True, tick=tick) if way and check else way
    return found


def _more_workers(row: Row, target: float, *, check: bool, tick: _Ticks | None = None) -> Way | None:
    return more_workers(
        row.campaign, row.line, row.mechanism, target, share=row.prediction.share, check=check, tick=tick
    )


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
