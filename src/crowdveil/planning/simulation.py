"""Predictions: simulated campaigns, inferred from as `infer` would, put on top of the closed form.

A simulation gives the gap between the estimator and the exact posterior that knows every worker, both on the same
reports; the closed form gives that posterior's error. The sum is the prediction: most of a simulation's noise is common
to both and drops out. Where only some of a worker's tasks are simulated, workers are known less well than they will be,
and the gap may stay or shrink in proportion to the tasks: the middle is predicted, and both lie in the interval.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import gamma

from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.assignment import Assignment
from crowdveil.data.reports import Reports
from crowdveil.estimators import Estimator, Gaussian
from crowdveil.estimators.gaussian.discretization import step_of
from crowdveil.evaluation.metrics import score
from crowdveil.mechanisms import ChannelMechanism
from crowdveil.planning.bayes_error import CROWDS, Bounds, bounds, known_error, report_table
from crowdveil.planning.campaign import Campaign
from crowdveil.planning.model_error import widened
from crowdveil.planning.population import NumberCrowd
from crowdveil.randomness import Seeded, seeded
from crowdveil.simulate import perturb_cells, perturb_in_rounds

LEVEL = 0.9
"""Share of real runs whose error lies in the interval, if the crowd is as expected."""
MODEL = 0.05
"""Standard deviation of a prediction that nothing here accounts for, as a share of the error."""
SEEDS_OF_LABELS, SEEDS_OF_NUMBERS = 3, 2
"""Campaigns simulated for each prediction, at most."""
ENOUGH = 0.5
"""One is enough where its doubt (`_doubt`) is less than this share of the variance of all else."""
REPORTS_OF_LABELS, REPORTS_OF_NUMBERS = 150_000, 20_000
"""Largest expected number of reports of one simulation, as long as it has `FEWEST` tasks."""
LONG_SCALE = 24
"""Points of a scale from which on there are fewer: a report costs as many operations as there are truths."""
BETWEEN_ROUNDS = 2
"""Points of truth per step of a scale in fits that say where to cut next."""
FEWEST = 10
FIRST_SEED = 101
RESOLVED_TASKS = 3
"""Wrong tasks among the simulated ones below which an error is not resolved: only an upper bound is stated."""
BOUND = 0.95
"""Confidence of that bound."""

Tick = Callable[[], None]
"""Called after each simulation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The error that a real run should measure, over all its tasks.

    Attributes:
        error: expected, if the crowd is as assumed.
        low, high: interval for the error of one run, of probability `LEVEL`, if the crowd is as assumed.
        real_low, real_high: the same widened by the model error of real sets (`crowdveil.planning.model_error`).
        less_than: upper bound of the expected error, of confidence `BOUND`, where the simulation is too small to
            resolve it; else None.
        information: mutual information of truth and report, in nats per cell.
        known, nameless: errors of exact posteriors, see `Bounds`.
        simulated: how many campaigns were simulated; 0 for the closed form alone.
        simulated_tasks: tasks of each of them.
    """

    error: float
    low: float
    high: float
    real_low: float
    real_high: float
    less_than: float | None
    information: float
    known: float
    nameless: float
    simulated: int
    simulated_tasks: int

    @property
    def share(self) -> float:
        """Where the error lies between that of known (0) and of nameless workers (1); above 1 it is worse."""
        room = self.nameless - self.known
        return (self.error - self.known) / room if room > 0 else 0.0


@dataclass(frozen=True, slots=True)
class _Gaps:
    """Errors of the estimator over those of known workers: mean, variance from run to run, runs.

    `tasks` of each run, and `cells` of each of its workers.
    """

    mean: float
    variance: float
    runs: int
    tasks: int
    cells: float


def predict(
    campaign: Campaign,
    mechanism: ChannelMechanism | None,
    *,
    seeds: int | None = None,
    effort: int = 1,
    needed: float = math.inf,
    tick: Tick | None = None,
) -> Prediction:
    """Return the predicted error of a campaign under a mechanism (None: unprotected).

    Args:
        campaign: what is planned.
        mechanism: what devices run; its cells must be perturbed one by one.
        seeds: simulated campaigns; None for `usual_seeds`, or one where that is enough.
        effort: times the usual number of simulated tasks.
        needed: an error that matters; one simulation is enough where even known workers would miss it.
        tick: called after each simulation, or as often for those that are spared.
    """
    channel = None if mechanism is None else mechanism.channel()
    exact, tasks = bounds(campaign, channel), simulated_tasks(campaign, channel, effort)
    cells = tasks * campaign.reporters / _simulated_workers(campaign, tasks)
    most, gaps = seeds or usual_seeds(campaign), list[float]()
    for seed in range(FIRST_SEED, FIRST_SEED + most):
        if seeds is not None or not (gaps and (exact.known > needed or _enough(campaign, exact, gaps))):
            gaps.append(_gap(campaign, mechanism, tasks, seed, exact.known))
        if tick is not None:
            tick()
    return _predicted(campaign, channel, exact, _gaps(gaps, tasks, cells, exact))


def usual_seeds(campaign: Campaign) -> int:
    """Return how many campaigns are simulated for a prediction: fewer of numbers, which take longer."""
    return SEEDS_OF_NUMBERS if isinstance(campaign.crowd, NumberCrowd) else SEEDS_OF_LABELS


def closed_form(campaign: Campaign, channel: Channel | None, share: float, *, crowds: int = CROWDS) -> Prediction:
    """Return the prediction without simulation, the error at `share` of the way from known to nameless workers."""
    exact = bounds(campaign, channel, crowds=crowds)
    gap = share * (exact.nameless - exact.known)
    return _predicted(campaign, channel, exact, _Gaps(gap, (gap / 2) ** 2, 0, campaign.tasks, campaign.cells))


def simulated_tasks(campaign: Campaign, channel: Channel | None, effort: int = 1) -> int:
    """Return how many tasks are simulated: all (of a group), if that is not too much work."""
    crowd = campaign.crowd
    table = np.tensordot(crowd.shares, report_table(crowd.tables(), campaign.rate, channel), axes=1)
    per_task = campaign.reporters * float(np.exp(crowd.log_prior) @ (1 - table[:, -1]))
    most: float = REPORTS_OF_LABELS
    if isinstance(crowd, NumberCrowd):
        most = REPORTS_OF_NUMBERS * min(1.0, LONG_SCALE / crowd.alphabet.size)
    whole = campaign.cells if campaign.grouped else campaign.tasks
    return int(min(whole, max(FEWEST, effort * most / max(per_task, 1.0))))


def _doubt(gap: float, exact: Bounds) -> float:
    """Return the variance of a single gap: as uncertain as it is large, or as half of the room it usually lies in."""
    return max(abs(gap), (exact.nameless - exact.known) / 2) ** 2


def _gaps(gaps: list[float], tasks: int, cells: float, exact: Bounds) -> _Gaps:
    """Return what simulations found."""
    variance = float(np.var(gaps, ddof=1)) if len(gaps) > 1 else _doubt(gaps[0], exact)
    return _Gaps(float(np.mean(gaps)), variance, len(gaps), tasks, cells)


def _enough(campaign: Campaign, exact: Bounds, gaps: list[float]) -> bool:
    """Say whether the one gap that was found matters so little that another adds nothing."""
    return len(gaps) == 1 and _doubt(gaps[0], exact) <= ENOUGH * _other_variance(campaign, exact, exact.known)


def _gap(campaign: Campaign, mechanism: ChannelMechanism | None, tasks: int, seed: int, known: float) -> float:
    """Simulate one campaign; return the estimator's error less that of known workers on the same reports.

    `known` is what that is expected to be.
    """
    crowd = campaign.crowd
    channel: Channel | ChannelTable | None = None if mechanism is None else mechanism.channel()
    made = crowd.make(workers=_simulated_workers(campaign, tasks), tasks=tasks, rate=campaign.rate, source=seeded(seed))
    assignment, answers = None, made.answers
    if campaign.assigned_per_task is not None and not campaign.grouped:
        names = answers.tasks, answers.workers
        assignment = Assignment.balanced(*names, campaign.assigned_per_task, seeded(seed + 20_000))
        answers = _assigned_answers(answers, assignment)
    estimator, through = campaign.estimator_for(known), channel
    if mechanism is None or channel is None:
        reports = answers
    elif campaign.rounds > 1:
        reports, through = _in_rounds(campaign, mechanism, answers, estimator, seeded(seed + 10_000))
    else:
        reports = perturb_cells(answers, channel, seeded(seed + 10_000), assignment=assignment)
    estimate = estimator.fit(
        reports, channel=through, assignment=None if channel is None else assignment, prior=campaign.prior
    )
    kind = np.searchsorted(crowd.kinds, made.quality)[np.searchsorted(answers.workers, reports.workers)]
    exact = known_error(campaign, through, reports, kind, crowd.truths_of(made), assignment)
    return score(estimate, made.gold).error - exact


def _in_rounds(
    campaign: Campaign, mechanism: ChannelMechanism, answers: Reports, estimator: Estimator[Any, Any], source: Seeded
) -> tuple[Reports, Channel | ChannelTable]:
    """Return what is sent in rounds, and through which channels."""
    assert isinstance(estimator, Gaussian)
    # Where a task is cut next is a matter of whole steps.
    rough = step_of(campaign.crowd.alphabet) / 4
    sent = perturb_in_rounds(
        answers,
        mechanism.channel(),
        source,
        epsilon=mechanism.epsilon,
        rounds=campaign.rounds,
        estimator=replace(estimator, tolerance=max(estimator.tolerance, rough), points_per_step=BETWEEN_ROUNDS),
        prior=campaign.prior,
    )
    return sent.reports, sent.channel


def _simulated_workers(campaign: Campaign, tasks: int) -> int:
    """Return with how many workers a part of the tasks is simulated: each has as many tasks as in all, if possible."""
    if campaign.grouped:
        return campaign.reporters
    return max(campaign.reporters, round(campaign.workers * tasks / campaign.tasks))


def _assigned_answers(answers: Reports, assignment: Assignment) -> Reports:
    """Return the answers in assigned cells."""
    crowd = len(answers.workers)
    kept = np.isin(answers.task.astype(np.int64) * crowd + answers.worker, assignment.task * crowd + assignment.worker)
    return replace(answers, task=answers.task[kept], worker=answers.worker[kept], value=answers.value[kept])


def _predicted(campaign: Campaign, channel: Channel | None, exact: Bounds, gaps: _Gaps) -> Prediction:
    """Put closed form and simulations together, with everything that a real run may differ by."""
    shown = min(1.0, gaps.cells / campaign.cells)
    gap = max(gaps.mean, 0.0)
    error = exact.known + gap * (1 + shown) / 2
    unknown = gap * (1 - shown) / math.sqrt(12)
    variance = (
        _other_variance(campaign, exact, error)
        + gaps.variance * (min(1.0, gaps.tasks / campaign.tasks) + (1 / gaps.runs if gaps.runs else 0.0))
        + unknown**2
    )
    low, high = _interval(error, variance, campaign)
    less_than = _upper_bound(campaign, error, exact, gaps.runs * gaps.tasks)
    real_low, real_high = widened(low, max(high, less_than or 0.0), campaign.crowd.constant_error)
    if not isinstance(campaign.crowd, NumberCrowd):
        real_low, real_high = _whole_tasks(real_low, real_high, campaign.tasks)
    return Prediction(
        error=error,
        low=low,
        high=high,
        real_low=real_low,
        real_high=real_high,
        less_than=less_than,
        information=campaign.information(channel),
        known=exact.known,
        nameless=exact.nameless,
        simulated=gaps.runs,
        simulated_tasks=gaps.tasks if gaps.runs else 0,
    )


def _other_variance(campaign: Campaign, exact: Bounds, error: float) -> float:
    """Return the variance of a real run's error that no simulation is needed for."""
    return (
        campaign.crowd.spread(error, exact.losses) / campaign.tasks
        + exact.between / campaign.groups
        + exact.noise
        + (MODEL * error) ** 2
    )


def _interval(error: float, variance: float, campaign: Campaign) -> tuple[float, float]:
    """Return the quantiles of a gamma distribution, for labels widened to whole numbers of wrong tasks."""
    if not (error > 0 and variance > 0):
        return error, error
    low, high = gamma.ppf(((1 - LEVEL) / 2, (1 + LEVEL) / 2), error**2 / variance, scale=variance / error).tolist()
    return (low, high) if isinstance(campaign.crowd, NumberCrowd) else _whole_tasks(low, high, campaign.tasks)


def _whole_tasks(low: float, high: float, tasks: int) -> tuple[float, float]:
    """Return an interval of error rates widened to whole numbers of wrong tasks."""
    return math.floor(low * tasks) / tasks, min(1.0, math.ceil(high * tasks) / tasks)


def _upper_bound(campaign: Campaign, error: float, exact: Bounds, simulated: int) -> float | None:
    """Return the upper bound of an error that is not resolved; None where it is.

    An error rate is resolved by `RESOLVED_TASKS` wrong tasks among those simulated, or drawn for the closed form. Its
    bound is that of a Poisson mean (Garwood 1936), 3 / simulated tasks where none is wrong, or the error of nameless
    workers where that is less. A mean absolute error is resolved from that of a truth known to its grid point only.

    Args:
        campaign: what is planned.
        error: the predicted one.
        exact: the closed form.
        simulated: tasks of all simulations; 0 for the closed form alone.
    """
    if isinstance(campaign.crowd, NumberCrowd):
        smallest = campaign.crowd.spacing / 4
        return smallest if error < smallest else None
    drawn = exact.losses.size
    if error * max(simulated, drawn) >= RESOLVED_TASKS:
        return None
    nameless = max(exact.nameless, error, _poisson_bound(0.0, drawn))
    return min(nameless, _poisson_bound(error, simulated)) if simulated else nameless


def _poisson_bound(error: float, tasks: int) -> float:
    return min(1.0, float(gamma.ppf(BOUND, error * tasks + 1)) / tasks)
