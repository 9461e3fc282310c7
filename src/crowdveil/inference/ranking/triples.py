"""Intransitive triples: A is preferred to B, B to C, and C to A, by the majority of each pair."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.comparisons.values import Comparisons

CLOSING = 2000
"""Pairs, of the largest margins, that are looked at for examples."""


class Triples(NamedTuple):
    """Triples whose three pairs have majorities.

    Attributes:
        closed: number of these triples.
        intransitive: number of those in a circle.
        examples: first items, each preferred to the next and the last to the first, by the smallest margin.
        margins: smallest margin of votes of each example.
    """

    closed: int
    intransitive: int
    examples: NDArray[np.int64]
    margins: NDArray[np.float64]


def intransitive_triples(comparisons: Comparisons, most: int = 10) -> Triples:
    """Return the triples by majority, with those of the largest smallest margin as examples."""
    from scipy.sparse import coo_array

    items, weight = len(comparisons.items), comparisons.weight
    votes = (1.0 - comparisons.answer) * (1 if weight is None else weight)
    net = coo_array((votes, (comparisons.left, comparisons.right)), shape=(items, items)).tocsr()
    net = (net - net.T).tocoo()
    wins = net.data > 0
    beats = coo_array((np.ones(int(wins.sum())), (net.row[wins], net.col[wins])), shape=(items, items)).tocsr()
    either = beats + beats.T
    closed = round(float((either @ either).multiply(either).sum()) / 6)
    back = (beats @ beats).multiply(beats.T).tocoo()
    circles = round(float(back.sum()) / 3)
    keys = net.row[wins].astype(np.int64) * items + net.col[wins]
    order = np.argsort(keys)
    keys, margins = keys[order], net.data[wins][order]

    def margin(better: NDArray[np.integer], worse: NDArray[np.integer]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = margins[np.searchsorted(keys, better.astype(np.int64) * items + worse)]
        return found

    closing = np.argsort(-margin(back.col, back.row), kind="stable")[:CLOSING]
    triples = _circles(beats, back.row[closing], back.col[closing])
    smallest = np.min([margin(triples[:, one], triples[:, (one + 1) % 3]) for one in range(3)], axis=0)
    order = np.argsort(-smallest, kind="stable")[:most]
    return Triples(closed, circles, triples[order], smallest[order])


def _circles(beats: Any, first: NDArray[np.integer], last: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the distinct circles that end with a pair (last, first), each from its item of the smallest code."""
    back = beats.tocsc()
    found = set[tuple[int, ...]]()
    for one, other in zip(first.tolist(), last.tolist(), strict=True):
        after = beats.indices[beats.indptr[one] : beats.indptr[one + 1]]
        before = back.indices[back.indptr[other] : back.indptr[other + 1]]
        for middle in np.intersect1d(after, before).tolist():
            circle = (one, middle, other)
            start = circle.index(min(circle))
            found.add(circle[start:] + circle[:start])
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 3)
