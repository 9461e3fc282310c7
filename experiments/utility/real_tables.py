"""Error by epsilon, mechanism and estimator on four public data sets, and its picture in the documents.

AdultContent2 and web search relevance (ordered labels: share of wrong truths), emotions and temperatures (numbers: mean
absolute error). Scales and cuts are chosen before answers are seen; priors are learned. Sets are read from the folder
CROWDVEIL_DATA.

    python -m experiments.utility.real_tables [SET...]   measures sets anew in results/real_tables.csv, and draws
    python -m experiments.utility.real_tables picture    only draws
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from experiments.figure_files import ON_ANY_PAGE, drawn_svg
from experiments.papers.picture import Row as PictureRow
from experiments.papers.picture import draw
from experiments.rows import read_rows, write_rows

from crowdveil import (
    DawidSkene,
    Gaussian,
    OneCoin,
    OrdinalDawidSkene,
    QuantizedResponse,
    RandomizedResponse,
    Reports,
    Scale,
    WeightedMean,
)
from crowdveil.answers.assignment import Assignment
from crowdveil.answers.datasets import load
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.comparison.demo.crowds import every_nth_task
from crowdveil.estimators import Estimator, WeightedVote
from crowdveil.estimators.gaussian.discretization import normal_log_prior
from crowdveil.inference.scores.metrics import score
from crowdveil.privacy.accounting import account_channel_table
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells, simulated_assignment

RESULTS = Path(__file__).parent / "results" / "real_tables.csv"
PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "truth-per-epsilon-real.svg"
SETS = ("adult2", "web_zhou", "n_emotion", "weather_temperature")
SCALES = {"n_emotion": Scale(-100, 100, 10), "weather_temperature": Scale(0, 120, 5)}
"""Public scales: the range stated by the emotion task, and temperatures of cities in degrees Fahrenheit."""
EPSILONS = {"adult2": (1.0, 2.0, 3.0, 4.0, 5.0), "weather_temperature": (1.0, 2.0, 3.0, 5.0, 8.0)}
USUAL_EPSILONS = (1.0, 2.0, 3.0, 4.0, 5.0, 8.0)
EVERY = {"weather_temperature": 4}
"""Stride of the tasks that are used, to save time."""
SEEDS, FEWER_SEEDS = 5, {"n_emotion": 2, "weather_temperature": 1}
"""Draws of the reports at every epsilon; fewer of other mechanisms than `MAIN` on two sets, to save time."""
MAIN = "k-RR"
NAIVE, UNPROTECTED = "naive", "unprotected"
DRAWN = ("ordinal-dawid-skene", "gaussian")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Result of one fit.

    Attributes:
        data, epsilon, mechanism, method, seed: set, epsilon of a cell, and how reports were made and read.
        error: share of wrong labels, or mean absolute error on the scale.
        correlation: of truths with gold.
        constant: error of the best constant, chosen knowing gold.
        exact_cell, exact_worker: exact epsilon of a cell, and of the worker who loses most; 0 without protection.
    """

    data: str
    epsilon: float
    mechanism: str
    method: str
    seed: int
    error: float
    correlation: float
    constant: float
    exact_cell: float
    exact_worker: float


def answers_of(name: str) -> Reports:
    """Return the first answers of a set on its labels or its public scale."""
    answers = every_nth_task(load(name, duplicates="first").answers, EVERY.get(name, 1))
    if name in SCALES:
        answers = replace(answers, value=SCALES[name].encode(answers.value), alphabet=SCALES[name])
    return answers


def settings(answers: Reports, epsilon: float) -> Iterator[tuple[str, Channel | ChannelTable, Assignment | None]]:
    """Yield mechanism, channel, and the cells that report: all, or twice as many as the campaign paid answers for."""
    alphabet, crowd = answers.alphabet, len(answers.workers)
    response = RandomizedResponse(alphabet=alphabet, epsilon=epsilon).channel()
    yield MAIN, response, None
    cuts = [
        QuantizedResponse(alphabet=alphabet, epsilon=epsilon, cuts=(cut,)).channel() for cut in single_cuts(answers)
    ]
    dealt = {str(name): place % len(cuts) for place, name in enumerate(answers.workers)}
    yield "cuts dealt", ChannelTable.by_worker(cuts, dealt), None
    per_task = max(2 * round(len(answers) / len(answers.tasks)), int(answers.per_task.max()))
    if per_task < crowd:  # else everyone is asked everything: the full campaign
        yield "k-RR, assigned", response, simulated_assignment(answers, per_task, seeded(1))
    public = RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation="public")
    yield "k-RR, participation public", public.channel(), None


def single_cuts(answers: Reports) -> list[int]:
    """Return all cuts of labels; on a scale, those at thirds of a normal prior of a quarter of its range."""
    scale = answers.alphabet
    if not isinstance(scale, Scale):
        return list(range(1, scale.size))
    prior = np.exp(normal_log_prior(scale.values, (scale.low + scale.high) / 2, scale.range / 4))
    return list((np.searchsorted(np.cumsum(prior), (1 / 3, 2 / 3)) + 1).tolist())


def methods(answers: Reports) -> tuple[list[Estimator[Any, Any]], Estimator[Any, Any]]:
    """Return the estimators that read the channel, and the one that reads reports as answers."""
    scale = answers.alphabet
    if isinstance(scale, Scale):
        return [Gaussian(tolerance=scale.range / 1000)], WeightedMean()
    one, each, ordinal = OneCoin(tolerance=1e-4), DawidSkene(tolerance=1e-4), OrdinalDawidSkene(tolerance=1e-3)
    return [one, each, ordinal], WeightedVote(max_steps=50, tolerance=1e-3)


def measured(name: str) -> Iterator[Row]:
    """Yield the rows of a set: unprotected answers, then each epsilon, seed and mechanism."""
    answers, gold = answers_of(name), load(name, duplicates="first").gold
    aware, naive = methods(answers)

    def row(estimator: Estimator[Any, Any], reports: Reports, shown: dict[str, Any], **read: Any) -> Row:
        found = score(estimator.fit(reports, **read), gold, error="mae" if name in SCALES else "error_rate")
        errors: dict[str, Any] = {"error": found.error, "correlation": found.correlation, "constant": found.baseline}
        return Row(data=name, method=estimator.name, **errors, **shown)

    clean = {"mechanism": UNPROTECTED, "epsilon": np.inf, "seed": 0, "exact_cell": 0.0, "exact_worker": 0.0}
    for estimator in (naive, *aware):
        yield row(estimator, answers, clean)
    for epsilon in EPSILONS.get(name, USUAL_EPSILONS):
        for mechanism, channel, assignment in settings(answers, epsilon):
            cell, worker = exact_losses(answers, channel, assignment)
            shown = {"mechanism": mechanism, "epsilon": epsilon, "exact_cell": cell, "exact_worker": worker}
            for seed in range(SEEDS if mechanism == MAIN else FEWER_SEEDS.get(name, SEEDS)):
                reports = perturb_cells(answers, channel, seeded(seed), assignment=assignment)
                if mechanism == MAIN:
                    yield row(naive, reports, shown | {"mechanism": NAIVE, "seed": seed})
                for estimator in aware:
                    if (
                        isinstance(channel, Channel) and assignment is None
                    ) or estimator.capabilities.reads_channel_tables:
                        yield row(estimator, reports, shown | {"seed": seed}, channel=channel, assignment=assignment)


def exact_losses(
    answers: Reports, channel: Channel | ChannelTable, assignment: Assignment | None
) -> tuple[float, float]:
    """Return the exact epsilon of a cell, and the largest of a worker."""
    if isinstance(channel, Channel):
        if channel.participation == "public":
            return channel.epsilon, channel.epsilon * int(answers.per_worker.max())
        channel = ChannelTable(channels=(channel,), choice=((0,),))
    cell, worker = account_channel_table(channel, tasks=answers.tasks, workers=answers.workers, assignment=assignment)
    return cell.exact, worker.exact


def means(rows: list[Row]) -> list[PictureRow]:
    """Return the drawn rows, one per set, mechanism and epsilon: means over seeds, beside constant and unprotected."""
    groups: dict[tuple[str, str, float], list[Row]] = {}
    for row in rows:
        if row.method in DRAWN or row.mechanism == NAIVE:
            groups.setdefault((row.data, row.mechanism, row.epsilon), []).append(row)
    return [
        {"data": data, "mechanism": mechanism, "epsilon": epsilon, "constant": mine[0].constant}
        | {"error": float(np.mean([row.error for row in mine]))}
        | {"unprotected": groups[data, UNPROTECTED, np.inf][0].error}
        for (data, mechanism, epsilon), mine in groups.items()
        if mechanism != UNPROTECTED
    ]


def picture(rows: list[Row]) -> bytes:
    """Return the picture of the means, for light and dark pages."""
    declared = {"panels": ["data"], "lines": ["mechanism"], "x": "epsilon", "y": "error", "across": 2}
    declared |= {"xlabel": "epsilon per cell", "levels": {one: [one] for one in ("constant", "unprotected")}}
    return drawn_svg(partial(draw, declared, means(rows)), style=ON_ANY_PAGE)


if __name__ == "__main__":
    named = tuple(sys.argv[1:]) or SETS
    kept = [row for row in read_rows(RESULTS, Row) if row.data not in named]
    found = [row for name in named if name in SETS for row in measured(name)]
    rows = sorted(kept + found, key=lambda row: SETS.index(row.data))
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows, lambda cell: f"{cell:.6g}" if isinstance(cell, float) else cell)
    PICTURE.write_bytes(picture(rows))
