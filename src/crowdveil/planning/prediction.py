"""Predicted error of a campaign: its Bayes error plus the simulated excess error of the estimator.

A simulation gives the difference between the errors of the estimator and of the posterior with known worker classes, on
the same reports; most simulation noise cancels in it. If only some tasks are simulated, worker quality is estimated
less well than in the campaign, and the excess may stay, or shrink in proportion to the tasks: the middle is predicted,
and the interval covers both.

The interval for real crowds is widened by the largest departures of public sets from such plans (split conformal
prediction, Vovk et al. 2005): if the next crowd is exchangeable with these n sets, it lies inside with probability
n / (n + 1) on either side. `experiments/utility/real_sets.py` measures the departures. After a pilot the interval is
that of crowds that share mistakes, see `shared_mistakes`.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaincinv

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.reports import Reports
from crowdveil.channels.channel import Channel
from crowdveil.em.estimator import fit_without_intervals
from crowdveil.errors import SettingsError
from crowdveil.inference.scores.metrics import score
from crowdveil.mechanisms import ChannelMechanism
from crowdveil.planning.bayes_error import CROWDS, BayesErrors, bayes_errors, known_classes_error, report_given_truth
from crowdveil.planning.campaign import PlannedCampaign
from crowdveil.planning.population import LabelCrowd, NumberCrowd, beta_abilities
from crowdveil.planning.shared_mistakes import Pilot, SharedMistakes
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells

UNMODELLED_SHARE = 0.05
"""Standard deviation from unmodelled causes, as a share of the error."""
INTERVAL_LEVEL = 0.9
"""Probability that the error of a run lies in the interval, if the crowd is as assumed."""
MAX_SEEDS_LABELS, MAX_SEEDS_NUMBERS = 3, 2
"""Simulated campaigns per prediction, at most."""
LEAST_TASKS_LABELS, LEAST_TASKS_NUMBERS = 100, 50
"""Simulated tasks per prediction, at least: small campaigns are simulated more often."""
FEW_TASKS, FEW_TASKS_RUNS = 10, 50
"""Campaigns of labels with fewer tasks are simulated as often: with 17 runs of six tasks, an error of .05 has a
standard error of .02, and protected answers may seem better than unprotected ones."""
NEGLIGIBLE_VARIANCE = 0.5
"""One campaign is enough if the variance of its excess is less than this share of all other variance."""
MAX_REPORTS_LABELS, MAX_REPORTS_NUMBERS = 150_000, 10_000
"""Expected reports of one simulation, at most, if it has `MIN_TASKS` tasks."""
LONG_SCALE = 24
"""Labels of a scale beyond which fewer reports are simulated: the cost of a report grows with them."""
MIN_TASKS = 10
"""Tasks of one simulation, at least."""
FIRST_SEED = 101
MIN_WRONG_TASKS = 3
"""Wrong tasks below which an error rate is not resolved, and an upper bound is stated."""
BOUND_LEVEL = 0.95
"""Confidence of that bound."""

OnSimulation = Callable[[], None]
"""Callback after each simulation."""


@dataclass(frozen=True, slots=True)
class Departure:
    """Largest departure of a real set from the intervals planned for it.

    Attributes:
        name: of the set.
        below: (low - measured) / low, at least 0.
        above: (measured - high) / (constant - high), at least 0.
        underestimated: number of conditions whose error was larger than predicted.
        conditions: number of conditions.
    """

    name: str
    below: float
    above: float
    underestimated: int
    conditions: int = 5


LABEL_DEPARTURES = (
    Departure("adult2", 0.274, 0.318, 3),
    Departure("bluebird", 0.0, 0.24, 5),
    Departure("d_possent", 0.0, 0.064, 5),
    Departure("d_product", 0.688, 0.0, 0),
    Departure("dog", 0.014, 0.183, 4),
    Departure("duchenne", 0.0, 0.488, 5),
    Departure("s_rel", 0.0, 0.481, 5),
    Departure("snow_rte", 0.0, 0.021, 4),
    Departure("snow_wsd", 0.855, 0.0, 0),
    Departure("web_zhou", 0.122, 0.246, 3),
)
"""Departures of public sets of labels with at least 100 known truths, planned with default settings; rounded up to
thousandths.

A test computes them from `experiments/utility/results/real_sets.csv`.
"""
DEPARTURES = (
    *LABEL_DEPARTURES,
    Departure("n_emotion", 0.579, 0.181, 2),
    Departure("snow_valence", 0.038, 0.598, 3),
    Departure("weather_temperature", 0.841, 0.0, 0),
)
"""The same of all such sets, with three of numbers: too few to stand alone."""


def widen_interval(
    low: float, high: float, constant: float, departures: Iterable[Departure] = DEPARTURES
) -> tuple[float, float]:
    """Return an interval widened on either side by the largest departure of real sets.

    Args:
        low, high: interval if the crowd is as assumed.
        constant: planned error of the best public constant.
        departures: of the sets.
    """
    sets = tuple(departures)
    below = max((one.below for one in sets), default=0.0)
    above = max((one.above for one in sets), default=0.0)
    return low * (1 - below), high + above * max(0.0, constant - high)


def real_sets_sentence() -> str:
    """Return a sentence on measured against predicted errors of real sets."""
    sets = len(DEPARTURES)
    optimistic = sum(2 * one.underestimated > one.conditions for one in DEPARTURES)
    above = max(one.above for one in DEPARTURES)
    return (
        f"Such predictions were optimistic: {optimistic} of {sets} public sets, planned with default settings, "
        f"had larger errors than predicted, by up to {100 * above:.0f} % of the way to the error of the best constant. "
        "Intervals for real crowds are widened accordingly."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Predicted error of a campaign, over all its tasks.

    Attributes:
        error: expected error, if the crowd is as assumed; with a pilot, that of crowds with its shared mistakes.
        consensus_error: expected error if the crowd is as assumed and shares no mistake.
        low, high: interval of probability `INTERVAL_LEVEL` for the error of one run, if the crowd is as assumed.
        real_low, real_high: the same widened by the departures of real sets; with a pilot, equal to the former.
        less_than: upper bound on the expected error, of confidence `BOUND_LEVEL`, if the simulation cannot resolve the
            error; else None.
        information: mutual information of truth and report, in nats per cell.
        known_classes, unknown_classes: Bayes errors, see `BayesErrors`.
        simulated: number of simulated campaigns; 0 if the prediction uses Bayes errors alone.
        simulated_tasks: tasks of each of them.
    """

    error: float
    consensus_error: float
    low: float
    high: float
    real_low: float
    real_high: float
    less_than: float | None
    information: float
    known_classes: float
    unknown_classes: float
    simulated: int
    simulated_tasks: int

    @property
    def consensus_position(self) -> float:
        """Position of `consensus_error` between the Bayes errors with known (0) and unknown classes (1)."""
        span = self.unknown_classes - self.known_classes
        return (self.consensus_error - self.known_classes) / span if span > 0 else 0.0


@dataclass(frozen=True, slots=True)
class _ExcessErrors:
    """Excess errors of the estimator over known classes: mean and variance over runs, tasks and cells per worker."""

    mean: float
    variance: float
    runs: int
    tasks: int
    cells: float


def predict_campaign_error(
    campaign: PlannedCampaign,
    mechanism: ChannelMechanism | None,
    *,
    seeds: int | None = None,
    effort: int = 1,
    target: float = math.inf,
    on_simulation: OnSimulation | None = None,
) -> Prediction:
    """Return the predicted error of a campaign with a mechanism.

    Args:
        campaign: to be planned.
        mechanism: per-cell mechanism of the devices; None for unprotected answers.
        seeds: simulated campaigns; None for `default_simulation_count`, or fewer if they are enough.
        effort: factor on the number of simulated tasks.
        target: error wanted; one simulation is enough if even known classes miss it.
        on_simulation: called for each simulation, also for those left out.
    """
    channel = None if mechanism is None else mechanism.channel()
    bayes, tasks = bayes_errors(campaign, channel), affordable_number_of_tasks(campaign, channel, effort)
    cells = tasks * campaign.reporters_per_task / _workers_for_simulated_tasks(campaign, tasks)
    most, excess, least = (
        seeds or default_simulation_count(campaign),
        list[float](),
        _least_tasks(campaign),
    )
    for seed in range(FIRST_SEED, FIRST_SEED + most):
        several = len(excess) * tasks >= least or bayes.known_classes > target
        enough = several and (bayes.known_classes > target or _is_precise_enough(campaign, bayes, excess))
        if not (seeds is None and excess and enough):
            excess.append(_simulated_excess_error(campaign, mechanism, tasks, seed, bayes.known_classes))
        if on_simulation is not None:
            on_simulation()
    return _prediction(campaign, channel, bayes, _excess_error_mean_and_variance(excess, tasks, cells, bayes))


def with_crowd_of_pilot(campaign: PlannedCampaign, pilot: Pilot) -> PlannedCampaign:
    """Return the campaign with the crowd of a pilot: its ability, its labels unless a prior is public, its mistakes.

    Raises:
        SettingsError: a campaign whose answers are no labels, or other labels than the pilot's.
    """
    crowd = campaign.crowd
    if not isinstance(crowd, LabelCrowd) or crowd.alphabet.names != pilot.labels:
        raise SettingsError("a pilot must have the labels of the campaign", value=pilot.labels)
    prior = crowd.prior if campaign.prior_public else pilot.shares
    piloted = replace(campaign, crowd=replace(crowd, prior=prior, abilities=beta_abilities(pilot.ability)))
    objective = replace(campaign.objective, participation="public", participation_rate=pilot.answered)
    replayed = replace(piloted, objective=objective, tasks=pilot.tasks, workers=pilot.workers, assigned_per_task=None)
    relative = predict_campaign_error(replayed, None).error / piloted.crowd.constant_error
    return replace(piloted, shared_mistakes=SharedMistakes(pilot=pilot, relative=relative))


def default_simulation_count(campaign: PlannedCampaign) -> int:
    """Return the number of simulated campaigns per prediction: fewer for numbers, more for small campaigns."""
    usual = MAX_SEEDS_NUMBERS if isinstance(campaign.crowd, NumberCrowd) else MAX_SEEDS_LABELS
    return max(usual, -(-_least_tasks(campaign) // campaign.tasks))


def _least_tasks(campaign: PlannedCampaign) -> int:
    if isinstance(campaign.crowd, NumberCrowd):
        return LEAST_TASKS_NUMBERS
    return FEW_TASKS_RUNS * campaign.tasks if campaign.tasks < FEW_TASKS else LEAST_TASKS_LABELS


def predict_from_bayes_errors(
    campaign: PlannedCampaign, channel: Channel | None, relative_excess: float, *, crowds: int = CROWDS
) -> Prediction:
    """Return a prediction without simulation, at a position between the Bayes errors (0: known classes)."""
    bayes = bayes_errors(campaign, channel, crowds=crowds)
    excess = relative_excess * (bayes.unknown_classes - bayes.known_classes)
    none = _ExcessErrors(excess, (excess / 2) ** 2, 0, campaign.tasks, campaign.cells_per_worker)
    return _prediction(campaign, channel, bayes, none)


def affordable_number_of_tasks(campaign: PlannedCampaign, channel: Channel | None, effort: int = 1) -> int:
    """Return the number of tasks to simulate: all (of a group), if affordable."""
    crowd = campaign.crowd
    by_class = report_given_truth(crowd.answer_probabilities(), campaign.answered_cell_share, channel)
    table = np.tensordot(crowd.worker_shares, by_class, axes=1)
    reports_per_task = campaign.reporters_per_task * float(np.exp(crowd.log_truth_prior) @ (1 - table[:, -1]))
    most: float = MAX_REPORTS_LABELS
    if isinstance(crowd, NumberCrowd):
        most = MAX_REPORTS_NUMBERS * min(1.0, LONG_SCALE / crowd.alphabet.size)
    whole = campaign.cells_per_worker if campaign.fits_worker_groups_separately else campaign.tasks
    return int(min(whole, max(MIN_TASKS, effort * most / max(reports_per_task, 1.0))))


def _variance_of_one_excess_error(excess: float, bayes: BayesErrors) -> float:
    """Return the variance of one excess error: its square, or that of half the distance of the Bayes errors."""
    return max(abs(excess), (bayes.unknown_classes - bayes.known_classes) / 2) ** 2


def _excess_error_mean_and_variance(excess: list[float], tasks: int, cells: float, bayes: BayesErrors) -> _ExcessErrors:
    variance = float(np.var(excess, ddof=1)) if len(excess) > 1 else _variance_of_one_excess_error(excess[0], bayes)
    return _ExcessErrors(float(np.mean(excess)), variance, len(excess), tasks, cells)


def _is_precise_enough(campaign: PlannedCampaign, bayes: BayesErrors, excess: list[float]) -> bool:
    """Return whether the mean excess of the runs so far adds little to all other variance; not after two usual runs."""
    most = NEGLIGIBLE_VARIANCE * _base_error_variance(campaign, bayes, bayes.known_classes)
    usual = campaign.tasks >= _least_tasks(campaign)
    return not (usual and len(excess) > 1) and _variance_of_one_excess_error(float(np.mean(excess)), bayes) <= most


def _simulated_excess_error(
    campaign: PlannedCampaign,
    mechanism: ChannelMechanism | None,
    tasks: int,
    seed: int,
    known_classes_expected_error: float,
) -> float:
    """Return the estimator's error in a simulated campaign, less that with known classes on the same reports.

    Args:
        campaign, mechanism: to be simulated.
        tasks: number of simulated tasks.
        seed: of the simulation.
        expected: expected error with known classes, which sets the tolerance of the fit.
    """
    crowd = campaign.crowd
    channel = None if mechanism is None else mechanism.channel()
    workers = _workers_for_simulated_tasks(campaign, tasks)
    simulated = crowd.simulate(workers=workers, tasks=tasks, rate=campaign.answered_cell_share, source=seeded(seed))
    assignment, answers = None, simulated.answers
    if campaign.assigned_per_task is not None and not campaign.fits_worker_groups_separately:
        ids = answers.tasks, answers.workers
        assignment = Assignment.balanced(*ids, campaign.assigned_per_task, seeded(seed + 20_000))
        answers = _assigned_answers(answers, assignment)
    estimator = campaign.simulation_estimator(known_classes_expected_error)
    reports = answers
    if channel is not None:
        reports = perturb_cells(answers, channel, seeded(seed + 10_000), assignment=assignment)
    estimate = fit_without_intervals(
        estimator, reports, channel=channel, assignment=None if channel is None else assignment, prior=campaign.prior
    )
    quality_class = np.searchsorted(crowd.qualities, simulated.quality)
    worker_class = quality_class[np.searchsorted(answers.workers, reports.workers)]
    bayes = known_classes_error(campaign, channel, reports, worker_class, crowd.truths_of(simulated), assignment)
    return score(estimate, simulated.gold).error - bayes


def _workers_for_simulated_tasks(campaign: PlannedCampaign, tasks: int) -> int:
    """Return the number of workers for some of the tasks, so that each has as many as in the campaign if possible."""
    if campaign.fits_worker_groups_separately:
        return campaign.reporters_per_task
    return max(campaign.reporters_per_task, round(campaign.workers * tasks / campaign.tasks))


def _assigned_answers(answers: Reports, assignment: Assignment) -> Reports:
    """Return the answers in assigned cells."""
    workers = len(answers.workers)
    cells = answers.task.astype(np.int64) * workers + answers.worker
    kept = np.isin(cells, assignment.task * workers + assignment.worker)
    return replace(answers, task=answers.task[kept], worker=answers.worker[kept], value=answers.value[kept])


def _prediction(
    campaign: PlannedCampaign, channel: Channel | None, bayes: BayesErrors, excess: _ExcessErrors
) -> Prediction:
    """Return the prediction from Bayes errors and excess errors, with its intervals."""
    simulated_share = min(1.0, excess.cells / campaign.cells_per_worker)
    gap = max(excess.mean, 0.0)
    error = bayes.known_classes + gap * (1 + simulated_share) / 2
    extrapolation = gap * (1 - simulated_share) / math.sqrt(12)
    variance = (
        _base_error_variance(campaign, bayes, error)
        + excess.variance * (min(1.0, excess.tasks / campaign.tasks) + (1 / excess.runs if excess.runs else 0.0))
        + extrapolation**2
    )
    low, high = _error_interval(error, variance, campaign)
    less_than = _upper_bound_of_unresolved_error(campaign, error, bayes, excess.runs * excess.tasks)
    consensus_error, constant = error, campaign.crowd.constant_error
    if campaign.shared_mistakes is None:
        sets = DEPARTURES if isinstance(campaign.crowd, NumberCrowd) else LABEL_DEPARTURES
        real_low, real_high = widen_interval(low, max(high, less_than or 0.0), constant, sets)
    else:
        relative = max(error, less_than or 0.0) / constant
        error, real_low, real_high = campaign.shared_mistakes.expected_error_interval(relative, campaign.tasks)
        low, high, less_than = real_low, real_high, None
    if not isinstance(campaign.crowd, NumberCrowd):
        real_low, real_high = _widened_to_whole_tasks(real_low, real_high, campaign.tasks)
    return Prediction(
        error=error,
        consensus_error=consensus_error,
        low=low,
        high=high,
        real_low=real_low,
        real_high=real_high,
        less_than=less_than,
        information=campaign.mutual_information_of_cell(channel),
        known_classes=bayes.known_classes,
        unknown_classes=bayes.unknown_classes,
        simulated=excess.runs,
        simulated_tasks=excess.tasks if excess.runs else 0,
    )


def _base_error_variance(campaign: PlannedCampaign, bayes: BayesErrors, error: float) -> float:
    """Return the variance of a run's error from all causes but the excess error."""
    return (
        campaign.crowd.loss_variance(error, bayes.losses) / campaign.tasks
        + bayes.crowd_variance / campaign.workers_per_task_reporter
        + bayes.sampling_variance
        + (UNMODELLED_SHARE * error) ** 2
    )


def _error_interval(error: float, variance: float, campaign: PlannedCampaign) -> tuple[float, float]:
    """Return quantiles of a gamma distribution, for labels widened to whole numbers of wrong tasks."""
    if not (error > 0 and variance > 0):
        return error, error
    levels = (1 - INTERVAL_LEVEL) / 2, (1 + INTERVAL_LEVEL) / 2
    low, high = (gammaincinv(error**2 / variance, levels) * variance / error).tolist()
    return (
        (low, high) if isinstance(campaign.crowd, NumberCrowd) else _widened_to_whole_tasks(low, high, campaign.tasks)
    )


def _widened_to_whole_tasks(low: float, high: float, tasks: int) -> tuple[float, float]:
    """Return an interval of error rates widened to whole numbers of wrong tasks."""
    return math.floor(low * tasks) / tasks, min(1.0, math.ceil(high * tasks) / tasks)


def _upper_bound_of_unresolved_error(
    campaign: PlannedCampaign, error: float, bayes: BayesErrors, simulated: int
) -> float | None:
    """Return an upper bound on an error that is not resolved; None if it is.

    An error rate is resolved by `MIN_WRONG_TASKS` wrong tasks among the simulated or drawn ones. The bound is that of a
    Poisson mean (Garwood 1936), 3 / simulated tasks if none is wrong, or the Bayes error with unknown classes if that
    is less. A mean absolute error is resolved down to that of a truth known to its grid point only.

    Args:
        campaign: to be planned.
        error: predicted error.
        bayes: Bayes errors.
        simulated: tasks of all simulations; 0 without simulation.
    """
    if isinstance(campaign.crowd, NumberCrowd):
        smallest = campaign.crowd.spacing / 4
        return smallest if error < smallest else None
    drawn = bayes.losses.size
    if error * max(simulated, drawn) >= MIN_WRONG_TASKS:
        return None
    most = max(bayes.unknown_classes, error, _poisson_bound(0.0, drawn))
    return min(most, _poisson_bound(error, simulated)) if simulated else most


def _poisson_bound(error: float, tasks: int) -> float:
    return min(1.0, float(gammaincinv(error * tasks + 1, BOUND_LEVEL)) / tasks)
