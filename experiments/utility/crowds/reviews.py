"""Who a review lists first: bad workers of the simulated crowds, and honest ones before them.

python -m experiments.utility.crowds.reviews > experiments/utility/results/reviews.csv

A worker is bad whose answers do not depend on the truth, or are copies, or are more often wrong by table than by any
other label. The source of copies cannot be told from them, and counts as neither.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from experiments.rows import four_digits, write_rows
from experiments.utility.crowds.crowd import Crowd
from experiments.utility.crowds.kinds import Kind, kinds
from experiments.utility.crowds.measure import crowd_of
from numpy.typing import NDArray

from crowdveil import infer
from crowdveil.quality.review.workers import Review, review_workers

SEEDS = (400, 401)
NAMED = ("repeats", "copies")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRow:
    """Reviews of the crowds of a family, sums over crowds.

    Attributes:
        family: name.
        crowds: number of them.
        ordered: crowds in which no honest worker stands before a bad one; who is not listed stands last.
        bad, listed: bad workers, and those of them who are listed.
        named, named_bad: workers listed as repeating or copying, and those of them who are bad.
        honest_listed: honest workers who are listed for any reason.
    """

    family: str
    crowds: int
    ordered: int
    bad: int
    listed: int
    named: int
    named_bad: int
    honest_listed: int


@dataclass(frozen=True, eq=False)
class Roles:
    """Bad and honest workers of a crowd, shapes (workers,)."""

    bad: NDArray[np.bool_]
    honest: NDArray[np.bool_]


def roles_of(crowd: Crowd, *, copied: bool) -> Roles:
    """Return who is bad and who is honest; `copied` tells whether the crowd has copies."""
    own = crowd.likelihood[np.arange(len(crowd.label)), crowd.label]
    worst = own < crowd.likelihood.max(axis=1) - 1e-9
    flat = np.ptp(crowd.likelihood, axis=1) < 1e-9
    answers = np.bincount(crowd.worker, minlength=crowd.workers)
    bad = np.zeros(crowd.workers, dtype=bool)
    for sign in (flat, worst):
        bad |= np.bincount(crowd.worker, sign, crowd.workers) == np.maximum(answers, 1)
    honest = ~bad & (answers > 0)
    if copied:
        honest[_sources(crowd, bad)] = False
    return Roles(bad, honest)


def _sources(crowd: Crowd, copies: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the worker whose answers each copy shares most."""
    label = np.full((crowd.workers, len(crowd.truth)), -1)
    label[crowd.worker, crowd.task] = crowd.label
    equal = np.array([[(label[copy] == other).mean() for other in label] for copy in np.flatnonzero(copies)])
    equal[:, copies] = 0
    return equal.argmax(axis=1)


def is_ordered(review: Review, roles: Roles) -> bool:
    """Return whether no honest worker stands before a bad one; who is not listed stands last."""
    listed = [int(one.worker) for one in review.found]
    honest = [place for place, worker in enumerate(listed) if roles.honest[worker]]
    before = listed[: honest[0]] if honest else listed
    return not honest or set(np.flatnonzero(roles.bad).tolist()) <= set(before)


def reviewed(chosen: Iterable[Kind], seeds: Iterable[int]) -> Iterator[ReviewRow]:
    """Yield the sums of each family."""
    families: dict[str, list[tuple[Review, Roles]]] = {}
    for kind in chosen:
        for seed in seeds:
            crowd = crowd_of(kind, seed)
            found = review_workers(infer(crowd.reports)), roles_of(crowd, copied="copies" in kind.family)
            families.setdefault(kind.family, []).append(found)
    for family, rows in families.items():
        yield _row(family, rows)


def _row(family: str, rows: list[tuple[Review, Roles]]) -> ReviewRow:
    sides = [(np.array([int(one.worker) for one in review.found], dtype=int), roles) for review, roles in rows]
    named = [
        (np.array([int(one.worker) for one in review.found if one.kind in NAMED], dtype=int), roles)
        for review, roles in rows
    ]
    return ReviewRow(
        family=family,
        crowds=len(rows),
        ordered=sum(is_ordered(review, roles) for review, roles in rows),
        bad=sum(int(roles.bad.sum()) for _, roles in rows),
        listed=sum(int(roles.bad[workers].sum()) for workers, roles in sides),
        named=sum(int((roles.bad | roles.honest)[workers].sum()) for workers, roles in named),
        named_bad=sum(int(roles.bad[workers].sum()) for workers, roles in named),
        honest_listed=sum(int(roles.honest[workers].sum()) for workers, roles in sides),
    )


def main() -> None:
    """Write a row for each family."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--family", default="", help="part of the names of families")
    given = parser.parse_args()
    chosen = [kind for kind in kinds() if given.family in kind.family]
    write_rows(sys.stdout, ReviewRow, reviewed(chosen, given.seeds), four_digits)


if __name__ == "__main__":
    main()
