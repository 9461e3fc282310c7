"""Differences of the shares of two groups, and the test of no difference between groups.

Groups with one channel each: let L(g) be the largest log-likelihood of a group with its share of a label held at g (its
share of no answer is free). The interval of a difference D holds the values with
    2 [L_A + L_B - max_g (L_A(g + D) + L_B(g))] <= z^2,
and the test of no difference rejects large 2 [sum L_i - max_g sum L_i(g)], chi-squared with one degree of freedom fewer
than groups (Wilks 1938). Score and Wald tests of the same hypothesis reject too often when shares are near 0.

Weighted sums: intervals by the method of variance estimates recovery (MOVER; Newcombe 1998, method 10) from those of
each group, and Wald's test with the standard errors.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import Akima1DInterpolator
from scipy.stats import chi2

from crowdveil.quality.shares.mixture import determined_inputs, fit, fit_with_share, share_of
from crowdveil.quality.shares.result import Difference, GroupTest
from crowdveil.quality.shares.score import EDGE, ShareEstimates, normal_quantile
from crowdveil.quality.shares.variance import unit_variance

WIDE, NEAR = 65, 257
"""Shares at which a profile likelihood is computed: over [0, 1], and near the estimate."""
ERRORS = 6.0
"""Standard errors from the estimate up to which shares are near."""
REFINED, ROUNDS = 33, 3
"""Points of each round in which the largest sum of two profiles is searched, and rounds."""
BISECTIONS = 22
"""Steps of the search of an end: it is at most 5e-7 too far out."""


class Profile(NamedTuple):
    """Profile log-likelihood of the share of a label in one group, as a function; the largest value, and where."""

    value: Any
    nodes: NDArray[np.float64]
    best: float
    share: float


def profile(counts: NDArray[np.float64], table: NDArray[np.float64], labels: int, target: int) -> Profile:
    """Return the profile likelihood of one row of counts, interpolated between shares (Akima 1970)."""
    best = fit(counts[None], table)
    share = float(np.clip(share_of(best.shares, target, labels)[0], EDGE, 1 - EDGE))
    n = max(float(counts.sum()), 1.0)
    error = np.sqrt(max(unit_variance(table, best.shares[0], labels, target), 0.0) / n)
    near = share + ERRORS * max(error, 1 / n) * np.linspace(-1, 1, NEAR)
    wide = np.sin(np.linspace(0, np.pi / 2, WIDE)) ** 2
    wide = wide[(wide < near[0]) | (wide > near[-1])]  # equal steps near the estimate: interpolation is exact there
    nodes = np.unique(np.clip(np.concatenate((near, wide)), EDGE, 1 - EDGE))
    values = fit_with_share(np.repeat(counts[None], len(nodes), axis=0), table, labels, target, nodes).log_likelihood
    return Profile(Akima1DInterpolator(nodes, values), nodes, float(best.log_likelihood[0]), share)


def largest_sum(profiles: Sequence[Profile], offsets: Sequence[float]) -> float:
    """Return the largest sum of profiles, each at a share plus its offset, over the shares where all are in [0, 1]."""
    low = max(EDGE - offset for offset in offsets)
    high = min(1 - EDGE - offset for offset in offsets)
    if low >= high:
        low = high = (low + high) / 2
    found = np.unique(np.clip(np.concatenate([p.nodes - o for p, o in zip(profiles, offsets, strict=True)]), low, high))
    for _ in range(ROUNDS):
        values = sum(p.value(np.clip(found + o, EDGE, 1 - EDGE)) for p, o in zip(profiles, offsets, strict=True))
        place = int(np.argmax(values))
        found = np.linspace(found[max(place - 1, 0)], found[min(place + 1, len(found) - 1)], REFINED)
    return float(np.max(values))


def difference_interval(first: Profile, second: Profile, level: float) -> tuple[float, float]:
    """Return the ends of the interval of the share of the first group minus that of the second."""
    best, bound = first.best + second.best, normal_quantile(level) ** 2 / 2
    ends = []
    for outer in (-1.0, 1.0):
        inner, end = first.share - second.share, outer
        for _ in range(BISECTIONS):
            middle = (inner + end) / 2
            held = best - largest_sum((first, second), (middle, 0.0)) <= bound
            inner, end = (middle, end) if held else (inner, middle)
        ends.append(end)
    return ends[0], ends[1]


def no_difference_statistic(profiles: Sequence[Profile]) -> float:
    """Return the likelihood ratio statistic of one share in all groups."""
    return max(2 * (sum(p.best for p in profiles) - largest_sum(profiles, [0.0] * len(profiles))), 0.0)


def recovered_interval(
    shares: tuple[float, float], first: tuple[float, float], second: tuple[float, float]
) -> tuple[float, float]:
    """Return the interval of a difference of shares from the interval of each (MOVER)."""
    difference = shares[0] - shares[1]
    below = np.hypot(shares[0] - first[0], second[1] - shares[1])
    above = np.hypot(first[1] - shares[0], shares[1] - second[0])
    return max(difference - float(below), -1.0), min(difference + float(above), 1.0)


class GroupsOfTask(NamedTuple):
    """Groups of one column in one task.

    Attributes:
        task, by, names: as in the result.
        tables: P(report | input) of each group's channel; empty if groups are compared by weighted sums.
        counts: reports of each group, in the order of its table.
        found: estimates of each group, indexed [group, input].
    """

    task: Any
    by: str
    names: tuple[str, ...]
    tables: Sequence[NDArray[np.float64]]
    counts: Sequence[NDArray[np.float64]]
    found: ShareEstimates


def compare_groups(
    groups: GroupsOfTask, labels: Sequence[str], level: float, *, pairs: bool
) -> tuple[list[Difference], list[GroupTest]]:
    """Return the differences of each two groups, and the test of no difference, for each label.

    Args:
        groups: at least two groups.
        labels: names of the labels, the first inputs.
        level: level of the intervals.
        pairs: whether differences are computed, or the test only.
    """
    differences, tests = list[Difference](), list[GroupTest]()
    for target, label in enumerate(labels):
        profiles = list(_profiles(groups, len(labels), target))
        statistic = no_difference_statistic(profiles) if profiles else _wald_statistic(groups.found, target)
        degrees = len(groups.names) - 1
        p_value = float(chi2.sf(statistic, degrees))
        tests.append(GroupTest(groups.task, groups.by, label, round(statistic, 6), degrees, round(p_value, 6)))
        for first, second in combinations(range(len(groups.names)), 2) if pairs else ():
            ends = (
                difference_interval(profiles[first], profiles[second], level)
                if profiles
                else _recovered_ends(groups.found, target, first, second)
            )
            share, unclipped = (values[:, target] for values in (groups.found.share, groups.found.unclipped))
            differences.append(
                Difference(
                    *(groups.task, groups.by, groups.names[first], groups.names[second], label),
                    difference=round(float(share[first] - share[second]), 6),
                    unclipped=round(float(unclipped[first] - unclipped[second]), 6),
                    low=round(ends[0], 6),
                    high=round(ends[1], 6),
                )
            )
    return differences, tests


def _profiles(groups: GroupsOfTask, labels: int, target: int) -> Iterator[Profile]:
    """Yield the profile of each group; nothing where the reports of a group do not determine its share."""
    if not all(determined_inputs(table, labels)[target] for table in groups.tables):
        return
    for counts, table in zip(groups.counts, groups.tables, strict=True):
        yield profile(counts, table, labels, target)


def _wald_statistic(found: ShareEstimates, target: int) -> float:
    """Return the weighted squared distances of the unclipped shares from their mean; nan where one is unknown."""
    share, error = found.unclipped[:, target], found.standard_error[:, target]
    if np.isnan(share).any() or not (error > 0).all():
        return float("nan")
    weight = 1 / error**2
    return float(weight @ (share - weight @ share / weight.sum()) ** 2)


def _recovered_ends(found: ShareEstimates, target: int, first: int, second: int) -> tuple[float, float]:
    share, low, high = (values[:, target] for values in (found.share, found.low, found.high))
    if np.isnan(share[[first, second]]).any():
        return -1.0, 1.0
    shares = (float(share[first]), float(share[second]))
    ends = tuple((float(low[group]), float(high[group])) for group in (first, second))
    return recovered_interval(shares, ends[0], ends[1])
