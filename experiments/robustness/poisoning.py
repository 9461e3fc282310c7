"""Truths beside workers who send false reports: `python -m experiments.robustness.poisoning`.

Fakes do not randomize: they send what they choose, the same label for a task, and know the mechanism. They know the
truth and send one wrong label, or agree on a random label. They are few names that report on every task, or many names
with as many reports as the median worker; either way a task has as many false reports.

Needs the folder `CROWDVEIL_DATA`; some minutes on one core. Writes `results/poisoning.csv`, and the table of
docs/explanation/threat-model.md.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from experiments.rows import four_digits, read_rows, write_rows
from numpy.typing import NDArray

from crowdveil import Inference, RandomizedResponse, Reports, infer
from crowdveil.answers.datasets import Dataset, load
from crowdveil.channels.channel import Channel
from crowdveil.inference.scores.metrics import score
from crowdveil.quality.review.workers import review_workers
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells

RESULTS = Path(__file__).parent / "results" / "poisoning.csv"
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "threat-model.md"
TABLE = re.compile(r"^\| epsilon \| method \|.*?(?=^[^|])", re.DOTALL | re.MULTILINE)
SHOWN_SET = "dog"
Attack = Literal["wrong", "agreed"]
Names = Literal["few", "many"]
SETS: dict[str, tuple[float | None, ...]] = {"dog": (1.0, 2.0, 4.0, None), "web_zhou": (1.0, 2.0, None)}
"""Epsilons of an answer, participation public; None: answers that are not protected."""
FAKES: dict[tuple[Attack, Names], tuple[int, ...]] = {
    ("wrong", "few"): (0, 1, 2, 3, 4),
    ("wrong", "many"): (2, 4),
    ("agreed", "few"): (2, 4),
    ("agreed", "many"): (4,),
}
"""False reports of a task; without any, attack and names do not matter."""
METHODS = ("hierarchical-dawid-skene", "dawid-skene", "one-coin", "majority-vote")
"""The default first."""
VOTE = METHODS[-1]
KNOWN = 50
"""Known truths that guide some fits of `GUIDED_SET` by the default; the fakes do not know which."""
GUIDED_SET, GUIDED_EPSILONS, GUIDED_FAKES = "dog", (1.0, 2.0), (0, 2, 4)
SEED_SETS = (range(3), range(100, 103))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A method beside fakes, means over the draws of a set of seeds.

    Attributes:
        data, epsilon, method: names; epsilon is None without protection.
        attack: "wrong": one wrong label a task, truths known; "agreed": one random label a task.
        names: "few": each fake reports on every task; "many": each reports as often as the median worker.
        fakes: false reports of each task.
        known: known truths that guide the fit; the others are scored.
        seeds: the first seed.
        draws: number of draws.
        accuracy: share of right truths, ties split; and `deviation`, its standard deviation over draws.
        constant: share of right truths of the best constant.
        first: share of the names of fakes that the review lists before every honest worker; None without one.
        listed: share of them that it lists.
        honest_before: honest workers that it lists before the first fake, or in all if it lists no fake.
    """

    data: str
    epsilon: float | None
    method: str
    attack: str
    names: str
    fakes: int
    known: int
    seeds: int
    draws: int
    accuracy: float
    deviation: float
    constant: float
    first: float | None
    listed: float | None
    honest_before: float | None


class Found(NamedTuple):
    """Accuracy, and what the review of one draw lists: see `Row`."""

    accuracy: float
    constant: float
    first: float | None
    listed: float | None
    honest_before: float | None


@cache
def first_answers(name: str) -> Dataset:
    """Return a set with the first of repeated answers."""
    return load(name, duplicates="first")


def truths_of(data: Dataset) -> NDArray[np.int64]:
    """Return the code of each task's truth, -1 where it is not known."""
    names = data.answers.alphabet.names
    gold = {str(task): names.index(truth) for task, truth in data.gold.items()}
    return np.array([gold.get(str(task), -1) for task in data.answers.tasks])


def chosen_labels(truth: NDArray[np.int64], labels: int, attack: Attack, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the label that fakes send for each task; a random one where the truth is not known."""
    agreed = rng.integers(labels, size=len(truth))
    wrong = (truth + rng.integers(1, labels, size=len(truth))) % labels
    return np.where((truth >= 0) & (attack == "wrong"), wrong, agreed)


def with_fakes(
    reports: Reports, label: NDArray[np.int64], fakes: int, names: Names, rng: np.random.Generator
) -> Reports:
    """Return the reports beside `fakes` false ones of each task; the new workers stand last."""
    tasks, workers = len(reports.tasks), len(reports.workers)
    each = tasks if names == "few" else max(1, int(np.median(reports.per_worker)))
    order = np.concatenate([rng.permutation(tasks) for _ in range(fakes)]) if fakes else np.zeros(0, dtype=int)
    # Every round of tasks begins with a new name, so that no name has a task twice.
    rounds = -(-tasks // each)
    place = np.arange(len(order)) // tasks * rounds + np.arange(len(order)) % tasks // each
    number = int(place.max(initial=-1)) + 1
    return Reports(
        np.concatenate((reports.task, order)),
        np.concatenate((reports.worker, workers + place)),
        np.concatenate((reports.value, label[order])),
        reports.tasks,
        np.array([*map(str, reports.workers), *(f"fake {one}" for one in range(number))]),
        reports.alphabet,
    )


def seen_by_review(inference: Inference, honest: int) -> tuple[float | None, float | None, float | None]:
    """Return what the review lists of the workers after the first `honest` ones: first, listed, honest before."""
    fakes = {str(name) for name in inference.estimate.worker_names[honest:]}
    order = [one.worker in fakes for one in review_workers(inference).found]
    before = order.index(True) if True in order else len(order)
    first = order.index(False) if False in order else len(order)
    if not fakes:
        return None, None, float(before)
    return sum(order[:first]) / len(fakes), sum(order) / len(fakes), float(before)


def found(data: Dataset, channel: Channel | None, method: str, settings: dict[str, Any], seed: int) -> Found:
    """Return the result of one draw; settings are attack, names, fakes and known."""
    answers, rng = data.answers, np.random.default_rng(seed)
    label = chosen_labels(truths_of(data), answers.labels, settings["attack"], rng)
    sent = answers if channel is None else perturb_cells(answers, channel, seeded(seed))
    reports = with_fakes(sent, label, settings["fakes"], settings["names"], rng)
    known = set(rng.permutation(sorted(data.gold))[: settings["known"]].tolist())
    guide = {task: truth for task, truth in data.gold.items() if task in known}
    inference = infer(reports, method, channel=channel, gold=guide or None)
    scored = score(inference.estimate, {task: truth for task, truth in data.gold.items() if task not in known})
    seen = (None, None, None) if method == VOTE else seen_by_review(inference, len(answers.workers))
    return Found(1 - scored.error, 1 - scored.baseline, *seen)


def measured(
    name: str, epsilon: float | None, settings: dict[str, Any], seeds: range, methods: tuple[str, ...] = METHODS
) -> Iterator[Row]:
    """Yield the row of each method in one setting."""
    data = first_answers(name)
    public: dict[str, Any] = {"alphabet": data.answers.alphabet, "participation": "public"}
    channel = None if epsilon is None else RandomizedResponse(epsilon=epsilon, **public).channel()
    for method in methods:
        draws = [found(data, channel, method, settings, seed) for seed in seeds]
        means = [None if None in column else float(np.mean(column)) for column in zip(*draws, strict=True)]
        accuracy, constant, first, listed, before = means
        yield Row(
            data=name,
            epsilon=epsilon,
            method=method,
            **settings,
            seeds=seeds[0],
            draws=len(draws),
            accuracy=accuracy,
            deviation=float(np.std([one.accuracy for one in draws], ddof=1)) if len(draws) > 1 else 0.0,
            constant=constant,
            first=first,
            listed=listed,
            honest_before=before,
        )


def rows() -> Iterator[Row]:
    """Yield all rows."""
    for name, (attack, names) in product(SETS, FAKES):
        for epsilon, fakes, seeds in product(SETS[name], FAKES[attack, names], SEED_SETS):
            settings = {"attack": attack, "names": names, "fakes": fakes, "known": 0}
            yield from measured(name, epsilon, settings, seeds)
    for epsilon, fakes, seeds in product(GUIDED_EPSILONS, GUIDED_FAKES, SEED_SETS):
        settings = {"attack": "wrong", "names": "few", "fakes": fakes, "known": KNOWN}
        yield from measured(GUIDED_SET, epsilon, settings, seeds, METHODS[:1])


def table_of_page(found: list[Row]) -> str:
    """Return accuracies beside few names that send wrong labels, and what the review lists, means over all draws."""
    fakes = FAKES["wrong", "few"]
    heads = ("epsilon", "method", *map(str, fakes), "found first", "honest before")
    lines = [heads, ("---",) * len(heads)]
    for epsilon, method in product(SETS[SHOWN_SET], METHODS):
        setting = (SHOWN_SET, epsilon, method, "wrong", "few", 0)
        own = [row for row in found if (row.data, row.epsilon, row.method, row.attack, row.names, row.known) == setting]
        rows = [[row for row in own if row.fakes == number] for number in fakes]
        accuracy = [f"{np.mean([row.accuracy for row in part]):.3f}" for part in rows]
        lists = ["-", "-"]
        if method != VOTE:
            first = [np.mean([row.first for row in part]) for part in rows[1:]]
            before = [np.mean([row.honest_before for row in part]) for part in rows[1:]]
            lists = [", ".join(f"{one:.2g}" for one in first), ", ".join(f"{one:.0f}" for one in before)]
        lines.append(("none" if epsilon is None else f"{epsilon:g}", f"`{method}`", *accuracy, *lists))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows(), four_digits)
    made = table_of_page(read_rows(RESULTS, Row))
    PAGE.write_text(TABLE.sub(lambda _: made, PAGE.read_text("utf-8"), count=1), encoding="utf-8")
