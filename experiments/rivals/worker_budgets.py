"""Truths at equal epsilon of a whole person: one cell, sampling, splitting, hiding, shuffling, and what `plan` chooses.

Unit: a worker; neighbours differ in all answers of one worker; participation is public. A budget is spent thus:
- "sampled": k cells of a worker, drawn without the answers, with budget / k each. k = 1 is one random cell.
- "split": all cells, with the budget over the cells of the worker who has most.
- "split, at delta": the same at delta 1e-6, by the exact composition of losses.
- "shuffled, at delta": the same without names, shuffled among the reports of the task, and read by a pooled method.
- "hidden": one of ten sampled cells, which nobody learns, with the whole budget; the other nine send random labels.
- "plan": the tasks per worker and the mechanism that `crowdveil plan --budget` recommends.
No cell has more than epsilon 8; the rest is then not spent. Needs the folder `CROWDVEIL_DATA`.
`python -m experiments.rivals.worker_budgets` writes `results/worker_budgets.csv` and the table of
docs/explanation/related-work.md, within some minutes on one core.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from experiments.rows import four_digits, read_rows, write_rows
from numpy.typing import NDArray

from crowdveil import Channel, Gaussian, RandomizedResponse, Reports, Scale, infer
from crowdveil.answers.datasets import load
from crowdveil.channels.alphabet import Alphabet
from crowdveil.design.mechanism_from_settings import (
    MechanismSettings,
    build_mechanism,
    settings_within_budget,
)
from crowdveil.inference.scores.metrics import score
from crowdveil.privacy.shuffling import shuffled_worker_guarantee
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells

RESULTS = Path(__file__).parent / "results" / "worker_budgets.csv"
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "related-work.md"
TABLE = re.compile(r"^\| spent \|.*?(?=^[^|])", re.DOTALL | re.MULTILINE)
SCALES = {"n_emotion": Scale(-100, 100, 20)}
METHODS: dict[str, tuple[Any, Any]] = {
    "dog": ("hierarchical-dawid-skene", "pooled-dawid-skene"),
    "n_emotion": (Gaussian(tolerance=SCALES["n_emotion"].range / 1000), None),
}
"""By set: the method for reports with names, and the one for reports without; None: not measured, to save time."""
BUDGETS = {"dog": (4.0, 16.0, 64.0), "n_emotion": (64.0, 256.0)}
CELLS = (1, 3, 10, 30, 100)
DELTA, LARGEST, HIDDEN_AMONG, BISECTIONS = 1e-6, 8.0, 10, 8
PLANNED = {
    ("dog", 4.0): (8, "randomized-response"),
    ("dog", 16.0): (8, "randomized-response"),
    ("dog", 64.0): (30, "randomized-response"),
    ("n_emotion", 64.0): (19, "quantized-response"),
    ("n_emotion", 256.0): (56, "quantized-response"),
}
"""Tasks per worker and mechanism of `plan --participation public`, told budgets, labels or scale, and sizes."""
SEED_SETS = (range(3), range(100, 103))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Error of one way to spend a budget, over the draws of a set of seeds.

    Attributes:
        data, spent: names.
        budget: epsilon of a worker at `delta`.
        delta: 0, or that of all cells of a worker.
        cells: largest number of cells of a worker that report.
        epsilon: of the table of one cell. Of a hidden one it covers this report alone; see `hidden_cell_epsilon`.
        seeds: the first seed.
        draws: number of draws.
        error: share of wrong labels, or mean absolute error; and `deviation`, its standard deviation over draws.
        constant, unprotected: errors of the best constant, and of all answers as they are.
    """

    data: str
    budget: float
    spent: str
    delta: float
    cells: int
    epsilon: float
    seeds: int
    draws: int
    error: float
    deviation: float
    constant: float
    unprotected: float


class Spending(NamedTuple):
    """How a budget is spent: name, delta, cells of a worker, the channel of each, and whether reports bear names."""

    name: str
    delta: float
    cells: int
    channel: Channel
    named: bool = True


@cache
def answers_of(name: str) -> tuple[Reports, dict[Any, Any], float]:
    """Return answers, known truths, and the error of all answers as they are."""
    data = load(name, duplicates="first")
    answers = data.answers
    if name in SCALES:
        answers = replace(answers, value=SCALES[name].encode(answers.value), alphabet=SCALES[name])
    return answers, data.gold, score(infer(answers, METHODS[name][0]).estimate, data.gold).error


def response(alphabet: Alphabet, epsilon: float) -> Channel:
    """Return the channel of randomized response, participation public."""
    return RandomizedResponse(alphabet=alphabet, epsilon=min(epsilon, LARGEST), participation="public").channel()


def hidden_cell_epsilon(epsilon: float, cells: int) -> float:
    """Return the epsilon of one answer among `cells`, one of which is sent with `epsilon` and the others are random.

    A report of all cells has P proportional to sum_j Q(y_j | x_j). If one answer changes, the largest ratio is
    (e^epsilon + cells - 1) / cells, where all other reports are unlike their answers; if all answers change, it is
    e^epsilon, as if one cell had been sent openly.
    """
    return math.log((math.exp(epsilon) + cells - 1) / cells)


def hidden_channel(alphabet: Alphabet, epsilon: float, cells: int) -> Channel:
    """Return the channel of a cell of `cells` of which one, unknown, is sent by randomized response."""
    table = response(alphabet, epsilon).probabilities / cells + (1 - 1 / cells) / alphabet.size
    return Channel.from_probabilities(alphabet, "public", alphabet.names, table, None)


def split_epsilon(alphabet: Alphabet, budget: float, cells: int) -> float:
    """Return the epsilon of a cell of randomized response whose loss over all cells is within a budget at delta."""
    settings = MechanismSettings(name="randomized-response", budget=budget, participation="public")
    return min(settings_within_budget(settings, alphabet, tasks=cells, cells=cells, delta=DELTA).epsilon, LARGEST)


@cache
def shuffled_epsilon(alphabet: Alphabet, budget: float, cells: int, reports: int) -> float:
    """Return an epsilon of a cell whose loss, shuffled among `reports`, is within a worker's budget at delta.

    It is at most a fiftieth below the largest one, or a sixth of it is the epsilon without shuffling.
    """
    low = split_epsilon(alphabet, budget, cells)
    high = min(6 * low, LARGEST)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        channel = response(alphabet, middle)
        loss = shuffled_worker_guarantee(channel, reports=reports, cells=cells, delta=DELTA).epsilon
        low, high = (middle, high) if loss <= budget else (low, middle)
    return low


def spendings(name: str, budget: float) -> Iterator[Spending]:
    """Yield the ways to spend a budget."""
    answers = answers_of(name)[0]
    alphabet, most = answers.alphabet, int(answers.per_worker.max())
    for cells in CELLS:
        yield Spending(f"sampled, {cells}", 0.0, cells, response(alphabet, budget / cells))
    yield Spending("split", 0.0, most, response(alphabet, budget / most))
    composed = response(alphabet, split_epsilon(alphabet, budget, most))
    yield Spending("split, at delta", DELTA, most, composed)
    if METHODS[name][1] is not None:
        least = int(answers.per_task.min())
        shuffled = response(alphabet, shuffled_epsilon(alphabet, budget, most, least))
        yield Spending(f"shuffled in batches of {least}, at delta", DELTA, most, shuffled, named=False)
    yield Spending("hidden, 1 of 10", 0.0, HIDDEN_AMONG, hidden_channel(alphabet, budget, HIDDEN_AMONG))
    cells, mechanism = PLANNED[name, budget]
    settings = MechanismSettings(name=mechanism, epsilon=min(budget / cells, LARGEST), participation="public")
    channel = build_mechanism(settings, alphabet, tasks=len(answers.tasks)).channel()
    assert isinstance(channel, Channel)
    yield Spending("plan", 0.0, cells, channel)


def sampled(answers: Reports, cells: int, rng: np.random.Generator) -> Reports:
    """Return at most `cells` answers of each worker, drawn without the answers."""
    order = rng.permutation(len(answers))
    order = order[np.argsort(answers.worker[order], kind="stable")]
    starts = np.cumsum(answers.per_worker) - answers.per_worker
    rank: NDArray[np.int64] = np.arange(len(order)) - np.repeat(starts, answers.per_worker)
    kept = np.sort(order[rank < cells])
    return replace(answers, task=answers.task[kept], worker=answers.worker[kept], value=answers.value[kept])


def measured(name: str, budget: float, seeds: range) -> Iterator[Row]:
    """Yield the rows of a set and budget."""
    answers, gold, unprotected = answers_of(name)
    for spending in spendings(name, budget):
        found = []
        for seed in seeds:
            part = sampled(answers, spending.cells, np.random.default_rng(seed))
            reports = perturb_cells(part, spending.channel, seeded(seed))
            estimate = infer(reports, METHODS[name][0 if spending.named else 1], channel=spending.channel).estimate
            found.append(score(estimate, gold))
        errors = [one.error for one in found]
        yield Row(
            data=name,
            budget=budget,
            spent=spending.name,
            delta=spending.delta,
            cells=spending.cells,
            epsilon=spending.channel.epsilon,
            seeds=seeds[0],
            draws=len(seeds),
            error=float(np.mean(errors)),
            deviation=float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0,
            constant=found[0].baseline,
            unprotected=unprotected,
        )


def rows() -> Iterator[Row]:
    """Yield all rows."""
    for name in METHODS:
        for budget, seeds in product(BUDGETS[name], SEED_SETS):
            yield from measured(name, budget, seeds)


def table_of_page(found: list[Row]) -> str:
    """Return the errors by set and budget, means over all draws, with those of the constant and without protection."""
    places = [(name, budget) for name in METHODS for budget in BUDGETS[name]]
    lines = [("spent", *(f"{name}, {budget:g}" for name, budget in places)), ("---",) * (len(places) + 1)]
    for spent in dict.fromkeys(row.spent for row in found):
        cells = [[row.error for row in found if (row.spent, row.data, row.budget) == (spent, *at)] for at in places]
        lines.append((spent, *(f"{np.mean(errors):.3g}" if errors else "-" for errors in cells)))
    known = {row.data: row for row in found}
    lines.append(("best constant", *(f"{known[name].constant:.3g}" for name, _ in places)))
    lines.append(("no protection", *(f"{known[name].unprotected:.3g}" for name, _ in places)))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows(), four_digits)
    made = table_of_page(read_rows(RESULTS, Row))
    PAGE.write_text(TABLE.sub(lambda _: made, PAGE.read_text("utf-8"), count=1), encoding="utf-8")
