"""Table of crowds: who repeats a label, copies, guesses or errs in one direction, and crowds that honest work makes."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from experiments.utility.crowds.crowd import (
    Crowd,
    Make,
    Random,
    coin_tables,
    crowd_by_tables,
    drawn_labels,
    drawn_truths,
    repeated_tables,
)
from numpy.typing import NDArray

TASKS, WORKERS, HONEST = 300, 40, 0.75


class Kind(NamedTuple):
    """A kind of crowd: its family, its name, and the function that draws one."""

    family: str
    name: str
    make: Make


def even(labels: int) -> NDArray[np.float64]:
    """Return even shares of labels."""
    return np.full(labels, 1 / labels)


def repeating(
    rng: Random,
    *,
    labels: int = 3,
    answers: int = 5,
    share: float = 0.4,
    style: str = "one",
    shares: tuple[float, ...] | None = None,
    workers: int = WORKERS,
) -> Crowd:
    """Return a crowd of whom a share repeats: one label, one with 5 % others, two in turn, or each another one."""
    classes = even(labels) if shares is None else np.array(shares)
    truth = drawn_truths(rng, TASKS, classes)
    number = round(share * workers)
    own = np.zeros((number, labels))
    if style == "each":
        own[np.arange(number), rng.integers(labels, size=number)] = 1.0
    elif style == "two":
        own[:, :2] = 0.5
    else:
        own[:, 0] = 1.0 if style == "one" else 0.95
        own[:, 1:] = 0.0 if style == "one" else 0.05 / (labels - 1)
    honest = coin_tables(np.full(workers - number, HONEST), labels)
    crowd = crowd_by_tables(rng, truth, classes, np.concatenate((repeated_tables(own, labels), honest)), answers)
    return _in_turn(crowd, number) if style == "two" else crowd


def _in_turn(crowd: Crowd, number: int) -> Crowd:
    """Return the crowd whose first workers give their two labels in turn."""
    label = crowd.label.copy()
    for worker in range(number):
        own = np.flatnonzero(crowd.worker == worker)
        label[own] = np.arange(len(own)) % 2
    return Crowd(crowd.task, crowd.worker, label, crowd.likelihood, crowd.truth, crowd.shares, crowd.workers)


def copying(
    rng: Random, *, labels: int = 3, copies: int = 7, changed: float = 0.1, source: float = 0.5, sources: int = 1
) -> Crowd:
    """Return eight honest workers, sources, and copies of them of whose answers a share is drawn anew."""
    truth = drawn_truths(rng, TASKS, even(labels))
    ability = np.append(np.full(8, 0.75 if labels == 2 else 0.65), np.full(sources, source))
    honest = crowd_by_tables(rng, truth, even(labels), coin_tables(ability, labels), len(ability))
    original = honest.label[np.lexsort((honest.worker, honest.task))].reshape(TASKS, -1)
    task, worker = np.divmod(np.arange(TASKS * copies), copies)
    anew = rng.random(len(task)) < changed
    label = np.where(anew, rng.integers(labels, size=len(task)), original[task, 8 + worker % sources])
    ones = np.ones((len(task), labels))
    return honest.joined(Crowd(task, worker, label, ones, truth, even(labels), copies))


def by_abilities(
    rng: Random,
    *,
    labels: int = 3,
    answers: int = 5,
    tasks: int = TASKS,
    workers: int = WORKERS,
    low: float = 0.6,
    high: float = 0.9,
    shares: tuple[float, ...] | None = None,
    guessing: float = 0.0,
    adverse: float = 0.0,
) -> Crowd:
    """Return workers with abilities in a range; a share guesses evenly, and a share is wrong more often than right."""
    classes = even(labels) if shares is None else np.array(shares)
    ability = rng.uniform(low, high, workers)
    ability[: round(guessing * workers)] = 1 / labels
    ability[: round(adverse * workers)] = 0.3 / labels
    truth = drawn_truths(rng, tasks, classes)
    return crowd_by_tables(rng, truth, classes, coin_tables(ability, labels), answers)


def by_rows(
    rng: Random, *, rows: tuple[float, ...], answers: int, spread: float = 0.05, shares: tuple[float, ...] = (0.5, 0.5)
) -> Crowd:
    """Return workers of two labels who are right with these probabilities by truth, each a little different."""
    classes = np.array(shares)
    right = np.clip(np.array(rows) + rng.uniform(-spread, spread, (WORKERS, len(rows))), 0.01, 0.99)
    tables = np.stack([np.stack((right[:, 0], 1 - right[:, 0]), 1), np.stack((1 - right[:, 1], right[:, 1]), 1)], 1)
    return crowd_by_tables(rng, drawn_truths(rng, TASKS, classes), classes, tables, answers)


def few_tasks(rng: Random, *, tasks: int, constant: int = 3) -> Crowd:
    """Return two honest workers and three who always say the first of two labels, each on every task."""
    tables = np.concatenate((coin_tables(np.full(2, 0.9), 2), repeated_tables(np.eye(2)[[0] * constant], 2)))
    return crowd_by_tables(rng, drawn_truths(rng, tasks, even(2)), even(2), tables, len(tables))


def experts(rng: Random, *, number: int, others: float, workers: int, labels: int = 3) -> Crowd:
    """Return experts of ability .95 beside others, each on every task."""
    ability = np.append(np.full(number, 0.95), np.full(workers - number, others))
    truth = drawn_truths(rng, TASKS, even(labels))
    return crowd_by_tables(rng, truth, even(labels), coin_tables(ability, labels), workers)


def drifting(rng: Random, *, end: float) -> Crowd:
    """Return workers whose ability changes from .85 in the first task to another one in the last."""
    crowd = crowd_by_tables(rng, drawn_truths(rng, TASKS, even(3)), even(3), coin_tables(np.full(WORKERS, 0.5), 3), 5)
    tables = coin_tables(0.85 + (end - 0.85) * crowd.task / TASKS, 3)
    return _redrawn(rng, crowd, tables)


def difficult(rng: Random) -> Crowd:
    """Return workers of whom each is right more often in some tasks than in others: .95 down to .4."""
    crowd = crowd_by_tables(rng, drawn_truths(rng, TASKS, even(3)), even(3), coin_tables(np.full(WORKERS, 0.5), 3), 5)
    return _redrawn(rng, crowd, coin_tables(rng.uniform(0.4, 0.95, TASKS)[crowd.task], 3))


def grouped(rng: Random, *, groups: int = 4, size: int = 3) -> Crowd:
    """Return labels in groups: most mistakes are within the group of the truth."""
    labels = groups * size
    same = np.kron(np.eye(groups), np.ones((size, size)))
    table = 0.55 * np.eye(labels) + 0.35 * same / size + 0.1 / labels
    tables = np.repeat(table[None], WORKERS, axis=0)
    return crowd_by_tables(rng, drawn_truths(rng, TASKS, even(labels)), even(labels), tables, 5)


def _redrawn(rng: Random, crowd: Crowd, tables: NDArray[np.float64]) -> Crowd:
    """Return the crowd with labels by a table for each answer, [answer, truth, label]."""
    rows = np.arange(len(crowd.task))
    label = drawn_labels(rng, tables[rows, crowd.truth[crowd.task]])
    likelihood = tables[rows, :, label]
    return Crowd(crowd.task, crowd.worker, label, likelihood, crowd.truth, crowd.shares, crowd.workers)


def kinds() -> Iterator[Kind]:
    """Yield all kinds of crowds."""
    for share, labels, answers in product((0.0, 0.2, 0.4, 0.5, 0.6), (2, 3, 5, 10), (3, 5, 10)):
        make = partial(repeating, labels=labels, answers=answers, share=share)
        yield Kind(f"repeaters {share:.0%}", f"{labels} labels, {answers} answers", make)
    for style, family in (("each", "repeaters of different labels"), ("two", "two labels in turn")):
        for share in (0.3, 0.4, 0.5, 0.6):
            yield Kind(family, f"{share:.0%}", partial(repeating, share=share, style=style))
    for share, labels in product((0.4, 0.5, 0.6), (2, 3)):
        make = partial(repeating, labels=labels, share=share, style="others")
        yield Kind("repeaters with 5 % others", f"{share:.0%}, {labels} labels", make)
    for share, answers in product((0.01, 0.02, 0.03, 0.05), (3, 5, 10)):
        make = partial(by_abilities, labels=2, answers=answers, tasks=800, low=0.7, shares=(1 - share, share))
        yield Kind("rare positives", f"{share:.0%}, {answers} answers", make)
    for share in (0.02, 0.05, 0.2):
        make = partial(repeating, labels=2, shares=(1 - share, share))
        yield Kind("rare positives, 40 % repeaters", f"{share:.0%}", make)
    for source, family in ((0.5, "bad"), (0.85, "good")):
        for changed, copies, labels in product((0.0, 0.02, 0.04, 0.1, 0.2, 0.3), (3, 5, 7), (2, 3)):
            ability = 0.55 if labels == 2 and source < HONEST else source
            make = partial(copying, labels=labels, copies=copies, changed=changed, source=ability)
            near = "0-2 %" if changed < 0.03 else "4-30 %"
            yield Kind(f"copies of a {family} source, {near} changed", f"{copies}, {changed:.0%}, {labels}", make)
    yield Kind("copies of a bad source, 4-30 % changed", "two sources", partial(copying, sources=2, copies=8))
    for specificity, answers in product((0.45, 0.55, 0.7), (3, 5, 10)):
        make = partial(by_rows, rows=(specificity, 0.92), answers=answers)
        yield Kind("low specificity", f"{specificity}, {answers} answers", make)
    for tasks in (6, 12, 25, 50):
        yield Kind("two honest, three constant", f"{tasks} tasks", partial(few_tasks, tasks=tasks))
    yield from other_kinds()


def other_kinds() -> Iterator[Kind]:
    """Yield crowds without a common shape."""
    coin = {"one to nine answers": 9, "three answers": 3, "one answer": 1}
    makes: dict[str, Make] = {name: partial(by_abilities, answers=number) for name, number in coin.items()}
    makes |= {
        "half guess": partial(by_abilities, guessing=0.5),
        "80 % guess": partial(by_abilities, guessing=0.8, answers=10),
        "all guess, one label .7": partial(by_abilities, labels=2, guessing=1.0, shares=(0.7, 0.3)),
        "25 % adverse": partial(by_abilities, adverse=0.25),
        "40 % adverse": partial(by_abilities, labels=2, adverse=0.4, answers=10, high=0.95),
        "50 labels": partial(by_abilities, labels=50),
        "many workers": partial(by_abilities, workers=400),
        "unequal classes": partial(by_abilities, shares=(0.6, 0.3, 0.1)),
        "weak": partial(by_abilities, low=0.35, high=0.6),
        "strong": partial(by_abilities, low=0.9, high=0.99),
        "skewed workers": partial(by_rows, rows=(0.9, 0.6), answers=5, spread=0.08, shares=(0.3, 0.7)),
        "two experts": partial(experts, number=2, others=0.5, workers=10),
        "one expert of nine": partial(experts, number=1, others=0.45, workers=9),
        "three judges": partial(experts, number=0, others=0.8, workers=3),
        "drift to .4": partial(drifting, end=0.4),
        "difficulty": difficult,
        "labels in groups": grouped,
    }
    for name, make in makes.items():
        yield Kind("others", name, make)
