"""Error by epsilon, mechanism and estimator on four public data sets.

AdultContent2 and web search relevance (ordered labels: error rate, and mean distance in levels), emotion and weather
(numbers: mean absolute error). Everything is chosen before answers are seen: scales, priors, blocks, cuts. Rows go to
`results/real_tables.csv` as they are found, one per fit; a second run goes on where the first stopped.
Run `python experiments/utility/real_tables.py [--quick] [--sets ...] [--seeds N]`; the data directory must be there.
"""

import argparse
import csv
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil import (
    Categories,
    ChannelTable,
    DawidSkene,
    Gaussian,
    MajorityVote,
    OneCoin,
    OrdinalDawidSkene,
    QuantizedResponse,
    RandomizedResponse,
    Scale,
    WeightedMean,
)
from crowdveil.channel_design import design_channel, normal_worker_model, one_coin_worker_model
from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.data.assignment import Assignment
from crowdveil.data.datasets import load
from crowdveil.data.reports import Reports
from crowdveil.demo.crowds import every_nth_task
from crowdveil.em.estimate import Estimate
from crowdveil.estimators import Estimator, WeightedVote
from crowdveil.estimators.gaussian.discretization import normal_prior
from crowdveil.evaluation.metrics import score
from crowdveil.mechanisms import DesignObjective
from crowdveil.privacy.accounting import account_channel_table
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells, simulated_assignment

RESULTS = Path(__file__).parent / "results" / "real_tables.csv"
SCALES = {"n_emotion": Scale(-100, 100, 10), "weather_temperature": Scale(0, 120, 5)}
"""Public scales: the range stated by the emotion task, and temperatures of cities in degrees Fahrenheit."""
EPSILONS = {"adult2": (1.0, 2.0, 3.0, 4.0, 5.0), "weather_temperature": (1.0, 2.0, 3.0, 5.0, 8.0)}
USUAL_EPSILONS = (1.0, 2.0, 3.0, 4.0, 5.0, 8.0)
SETS = ("n_emotion", "weather_temperature", "web_zhou", "adult2")
ABILITY = 0.75
EVERY = {"weather_temperature": 4}
"""Stride of the tasks that are used, to save time."""
LARGE = 16_000
"""Answers beyond which only one prior is used with every seed, to save time: the public one for numbers, the
learned one for labels. The other is used with the first seed; for numbers, with k-RR only."""
FULL, ASKED, PUBLIC = "cell of the campaign", "assigned cell", "answer only"
"""Protected information: participation in every cell, in assigned cells, or the content of answers only."""
PUBLIC_PRIOR, LEARNED = "public", "learned"


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """Data set on its public alphabet, with the public objective.

    Attributes:
        name: of the data set.
        answers, gold: as collected; the first of repeated answers counts.
        objective: uniform labels and workers of ability 3/4; or a normal prior in the middle of the scale, a quarter of
            its range wide, and workers with deviations of one and of five steps. The participation rate is the whole
            number of answers per task that the campaign paid for, over its workers.
    """

    name: str
    answers: Reports
    gold: Mapping[str, Any]
    objective: DesignObjective

    @property
    def numeric(self) -> bool:
        """Whether truths are numbers."""
        return isinstance(self.objective.alphabet, Scale)


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """Mechanism name, protected information, channel, and the cells that report."""

    mechanism: str
    promise: str
    channel: Channel | ChannelTable
    assignment: Assignment | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """Result of one fit: its errors and those of the constant, correlation with gold, and privacy losses.

    `error_rate` is nan for numbers; `mae` counts levels for labels. `constant_*` are the best constants, chosen knowing
    gold. Epsilons are exact, 0 where nothing was protected; a worker's is that of the worker who loses most.
    """

    data: str
    epsilon: float
    mechanism: str
    promise: str
    method: str
    prior: str
    seed: int
    error_rate: float
    mae: float
    correlation: float
    constant_error_rate: float
    constant_mae: float
    exact_cell: float
    exact_worker: float
    reports: int
    steps: int
    converged: bool


KEY = ("data", "epsilon", "mechanism", "method", "prior", "seed")


def case(name: str) -> Case:
    """Return a data set on its public alphabet."""
    data = load(name, duplicates="first")
    answers = every_nth_task(data.answers, EVERY.get(name, 1))
    if name in SCALES:
        answers = replace(answers, value=SCALES[name].encode(answers.value), alphabet=SCALES[name])
    assert answers.alphabet is not None
    per_task = round(len(answers) / len(answers.tasks))
    return Case(
        name=name,
        answers=answers,
        gold=data.gold,
        objective=objective(answers.alphabet, per_task / len(answers.workers)),
    )


def objective(alphabet: Alphabet, participation_rate: float) -> DesignObjective:
    """Return the public objective; nothing of it comes from answers."""
    if isinstance(alphabet, Scale):
        prior = np.exp(normal_prior(alphabet.values, *expected_normal(alphabet)))
        workers = normal_worker_model(alphabet, (alphabet.step, 5 * alphabet.step))
    else:
        prior, workers = np.full(alphabet.size, 1 / alphabet.size), one_coin_worker_model(alphabet.size, ABILITY)
    return DesignObjective(alphabet=alphabet, prior=prior, worker_model=workers, participation_rate=participation_rate)


def expected_normal(scale: Scale) -> tuple[float, float]:
    """Return mean and deviation of the public prior: the middle of the scale, a quarter of its range."""
    return (scale.low + scale.high) / 2, scale.range / 4


def settings(this: Case, epsilon: float) -> Iterator[Setting]:
    """Yield the settings at one epsilon; equal channels once."""
    alphabet, answers, objective = this.objective.alphabet, this.answers, this.objective
    response = RandomizedResponse(alphabet=alphabet, epsilon=epsilon).channel()
    quantized = QuantizedResponse.for_objective(objective, epsilon).channel()
    designed = design_channel(objective, epsilon, null_apart=True)
    yield Setting(mechanism="k-RR", promise=FULL, channel=response)
    if quantized.rows != response.rows:
        yield Setting(mechanism="quantized", promise=FULL, channel=quantized)
    if designed.rows not in (response.rows, quantized.rows):
        yield Setting(mechanism="designed", promise=FULL, channel=designed)
    yield Setting(mechanism="cuts dealt", promise=FULL, channel=dealt(objective, epsilon, answers))
    crowd = len(answers.workers)
    per_task = max(round(2 * objective.participation_rate * crowd), int(answers.per_task.max()))
    if per_task < crowd:  # else everyone is asked everything: the full campaign
        assignment = simulated_assignment(answers, per_task, seeded(1))
        rate = objective.participation_rate * crowd / per_task
        chosen = design_channel(replace(objective, participation_rate=rate), epsilon, null_apart=True)
        yield Setting(mechanism="k-RR, assigned", promise=ASKED, channel=response, assignment=assignment)
        if chosen.rows != response.rows:
            yield Setting(mechanism="designed, assigned", promise=ASKED, channel=chosen, assignment=assignment)
    public = RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation="public").channel()
    yield Setting(mechanism="k-RR, participation public", promise=PUBLIC, channel=public)


def dealt(objective: DesignObjective, epsilon: float, answers: Reports) -> ChannelTable:
    """Return single cuts assigned to workers in turn: all cuts of labels; on a scale, those at thirds of the prior."""
    size = objective.alphabet.size
    thirds = np.searchsorted(np.cumsum(objective.prior), (1 / 3, 2 / 3)) + 1
    cuts = thirds.tolist() if isinstance(objective.alphabet, Scale) else range(1, size)
    channels = [QuantizedResponse(alphabet=objective.alphabet, epsilon=epsilon, cuts=(cut,)).channel() for cut in cuts]
    return ChannelTable.by_worker(
        channels, {str(name): place % len(channels) for place, name in enumerate(answers.workers)}
    )


def readers(this: Case, *, naive: bool) -> Iterator[tuple[Estimator[Any, Any], str]]:
    """Yield estimators with the origin of their prior; naive ones read reports as answers."""
    alphabet = this.objective.alphabet
    if isinstance(alphabet, Scale):
        mean, deviation = expected_normal(alphabet)
        if naive:
            yield WeightedMean(), LEARNED
        else:
            settled = alphabet.range / 1000
            yield Gaussian(prior_mean=mean, prior_deviation=deviation, tolerance=settled), PUBLIC_PRIOR
            yield Gaussian(tolerance=settled), LEARNED
    elif naive:
        yield MajorityVote(), LEARNED
        yield WeightedVote(max_steps=50, tolerance=1e-3), LEARNED
    else:
        yield OneCoin(tolerance=1e-4), PUBLIC_PRIOR
        yield DawidSkene(tolerance=1e-4), PUBLIC_PRIOR
        yield DawidSkene(tolerance=1e-4), LEARNED
        yield OrdinalDawidSkene(tolerance=1e-3), PUBLIC_PRIOR
        yield OrdinalDawidSkene(tolerance=1e-3), LEARNED


def fit(this: Case, reports: Reports, setting: Setting | None, estimator: Estimator[Any, Any], prior: str) -> Estimate:
    """Return the estimate; a public prior is uniform for labels, and a setting of the estimator for numbers."""
    alphabet = this.objective.alphabet
    public = prior == PUBLIC_PRIOR and isinstance(alphabet, Categories) and not isinstance(estimator, OneCoin)
    return estimator.fit(
        reports,
        channel=None if setting is None else setting.channel,
        assignment=None if setting is None else setting.assignment,
        prior=dict.fromkeys(alphabet.names, 1 / alphabet.size) if public else None,
    )


def unprotected(this: Case) -> Iterator[Row]:
    """Yield the rows of unprotected answers."""
    for naive in (True, False):
        for estimator, prior in readers(this, naive=naive):
            estimate = fit(this, this.answers, None, estimator, prior)
            yield row(this, estimate, None, epsilon=np.inf, prior=prior, seed=0, reports=len(this.answers))


def measure(this: Case, setting: Setting, epsilon: float, seed: int, done: set[tuple[str, ...]]) -> Iterator[Row]:
    """Perturb once and yield the missing rows: channel-aware, and for k-RR naive too."""
    wanted = [(estimator, prior, False) for estimator, prior in readers(this, naive=False)]
    if setting.mechanism == "k-RR":
        wanted += [(estimator, prior, True) for estimator, prior in readers(this, naive=True)]
    table = isinstance(setting.channel, ChannelTable) or setting.assignment is not None
    if len(this.answers) > LARGE and (seed > 0 or (this.numeric and setting.mechanism != "k-RR")):
        main = PUBLIC_PRIOR if this.numeric else LEARNED
        wanted = [one for one in wanted if one[1] == main or isinstance(one[0], OneCoin)]
    todo = []
    for estimator, prior, naive in wanted:
        name = "naive" if naive else setting.mechanism
        made = key(this.name, epsilon, name, estimator.name, prior, seed)
        if made not in done and (estimator.capabilities.reads_channel_tables or not table):
            todo.append((estimator, prior, naive))
    if not todo:
        return
    reports = perturb_cells(this.answers, setting.channel, seeded(seed), assignment=setting.assignment)
    for estimator, prior, naive in todo:
        estimate = fit(this, reports, None if naive else setting, estimator, prior)
        told = replace(setting, mechanism="naive") if naive else setting
        yield row(this, estimate, told, epsilon=epsilon, prior=prior, seed=seed, reports=len(reports))


def row(
    this: Case,
    estimate: Estimate,
    setting: Setting | None,
    *,
    epsilon: float,
    prior: str,
    seed: int,
    reports: int,
) -> Row:
    """Return the row of an estimate."""
    wrong = None if this.numeric else score(estimate, this.gold, error="error_rate")
    away = score(estimate, this.gold, error="mae")
    cell, worker = (0.0, 0.0) if setting is None else promised(this, setting)
    return Row(
        data=this.name,
        epsilon=epsilon,
        mechanism="unprotected" if setting is None else setting.mechanism,
        promise="none" if setting is None else setting.promise,
        method=estimate.method,
        prior=prior,
        seed=seed,
        error_rate=np.nan if wrong is None else wrong.error,
        mae=away.error,
        correlation=away.correlation,
        constant_error_rate=np.nan if wrong is None else wrong.baseline,
        constant_mae=away.baseline,
        exact_cell=cell,
        exact_worker=worker,
        reports=reports,
        steps=estimate.steps,
        converged=estimate.converged,
    )


def promised(this: Case, setting: Setting) -> tuple[float, float]:
    """Return the exact epsilon of a cell, and the largest of a worker."""
    table = setting.channel
    if isinstance(table, Channel):
        if table.participation == "public":
            return table.epsilon, table.epsilon * int(this.answers.per_worker.max())
        table = ChannelTable(channels=(table,), choice=((0,),))
    cell, worker = account_channel_table(
        table, tasks=this.answers.tasks, workers=this.answers.workers, assignment=setting.assignment
    )
    return cell.exact, worker.exact


def key(*parts: object) -> tuple[str, ...]:
    """Return the key of a row as text."""
    return tuple(map(str, parts))


def rows_done(path: Path) -> set[tuple[str, ...]]:
    """Return the keys of the rows in a file, which is created if missing."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(",".join(column.name for column in fields(Row)) + "\n", encoding="utf-8")
        return set()
    with path.open(encoding="utf-8", newline="") as stream:
        return {tuple(line[name] for name in KEY) for line in csv.DictReader(stream)}


def add(path: Path, found: Row) -> None:
    """Append a row to the file, numbers to six digits, and print it."""
    values = [f"{value:.6g}" if type(value) is float else str(value) for value in asdict(found).values()]
    values[1] = str(found.epsilon)
    with path.open("a", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerow(values)
    print(" ".join(values), flush=True)


def main() -> None:
    """Measure the missing rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, and epsilon 3 only")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    done = rows_done(given.out)
    for name in given.sets:
        this = case(name)
        if not any(name == data and mechanism == "unprotected" for data, _, mechanism, *_ in done):
            for found in unprotected(this):
                add(given.out, found)
        epsilons = (3.0,) if given.quick else EPSILONS.get(name, USUAL_EPSILONS)
        prepared = [(epsilon, setting) for epsilon in epsilons for setting in settings(this, epsilon)]
        for seed in range(1 if given.quick else given.seeds):
            for epsilon, setting in prepared:
                for found in measure(this, setting, epsilon, seed, done):
                    add(given.out, found)


if __name__ == "__main__":
    main()
