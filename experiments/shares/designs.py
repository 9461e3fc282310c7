"""Simulated samples with weights, channels by person, known totals, several tasks, or clusters, as sums of reports.

Each sampler returns the unclipped shares of `DRAWS` samples and the true share:
- weights: people with weight 3 say yes half as often as those with weight 1;
- heavy weights: lognormal; "by answer": the heavier half of the weighted people says yes .6 times as often as on
  average, the lighter half 1.4 times;
- epsilons: half of the people choose epsilon 3 and say yes a third as often as those who choose the cell's epsilon;
- strata: known totals of two strata, 1 to 3, or of four, 1 to 2 to 3 to 4, sampled in equal numbers;
- tasks: four tasks of each person, whose answers are equal with probability .4;
- clusters: shares of the clusters have a beta distribution; sizes are equal, or lognormal with standard deviation .7.
Everybody protects participation, unless stated otherwise.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil import Categories, RandomizedResponse
from crowdveil.channels.guarantee import Participation
from crowdveil.quality.shares.counts import ReportSums
from crowdveil.quality.shares.weighted import LinearSums, combined_strata, linear_sums

DRAWS = 1000
"""Samples of a cell."""
TOTALS = {2: (0.25, 0.75), 4: (0.1, 0.2, 0.3, 0.4)}
"""Shares of the strata."""
SIZES = 0.7
"""Standard deviation of the logarithm of unequal sizes of clusters."""
KEPT = 0.4
"""Probability that two answers of a person are equal for a reason of the person."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Settings of a sample: share of the first label, people, epsilon, share that answers, labels, participation."""

    share: float
    people: int
    epsilon: float
    response: float = 0.8
    labels: int = 2
    participation: Participation = "protected"

    @property
    def table(self) -> NDArray[np.float64]:
        """P(report | answer) of randomized response."""
        names = Categories(tuple(map(str, range(self.labels))))
        made = RandomizedResponse(alphabet=names, epsilon=self.epsilon, participation=self.participation)
        return made.channel().probabilities

    def cells(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the shares of all cells for shares of the first label; the other labels are equally frequent."""
        others = np.repeat(((1 - share) / (self.labels - 1))[..., None], self.labels - 1, axis=-1)
        answers = np.concatenate((share[..., None], others), axis=-1)
        if self.participation == "public":
            return answers
        silent = np.full((*share.shape, 1), 1 - self.response)
        return np.concatenate((self.response * answers, silent), axis=-1)

    def reports(self, rng: np.random.Generator, share: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return a report of each person, whose probability of the first label is given."""
        cumulative = (self.cells(share) @ self.table).cumsum(axis=-1)[..., :-1]
        return np.asarray((rng.random(share.shape)[..., None] >= cumulative).sum(axis=-1))

    def linear(self, sums: ReportSums) -> LinearSums:
        """Return the unclipped shares of sums of reports."""
        table = self.table
        return linear_sums(sums, table, np.zeros(table.shape[1], dtype=np.int64), self.labels)


def sums_of_people(reports: NDArray[np.int64], weight: NDArray[np.float64], symbols: int) -> ReportSums:
    """Return sums over people, indexed [draw, report]; both arguments are indexed [draw, person]."""
    powers = [
        np.stack([(weight**power * (reports == one)).sum(axis=1) for one in range(symbols)], axis=1)
        for power in (1, 2, 3)
    ]
    total, squares, cubes = powers
    return ReportSums(total, squares, squares, np.stack((squares.sum(axis=1), cubes.sum(axis=1)), axis=1))


def sums_of_units(counts: NDArray[np.float64]) -> ReportSums:
    """Return sums over units of people with weight 1, from counts indexed [draw, unit, report]."""
    total, of_unit = counts.sum(axis=1), counts.sum(axis=2)
    powers = np.stack([(of_unit**power).sum(axis=1) for power in (2, 3)], axis=1)
    return ReportSums(total, np.einsum("dux,duy->dxy", counts, counts), total, powers)


def weighted(rng: np.random.Generator, sample: Sample) -> tuple[LinearSums, float]:
    """Return people of whom half have weight 3."""
    weight = np.repeat([1.0, 3.0], sample.people // 2)
    share = np.broadcast_to(np.where(weight > 1, 0.5, 1.0) * sample.share, (DRAWS, len(weight)))
    found = sums_of_people(sample.reports(rng, share), np.broadcast_to(weight, share.shape), sample.table.shape[1])
    return sample.linear(found), (sample.share + 3 * sample.share / 2) / 4


def heavily_weighted(
    rng: np.random.Generator, sample: Sample, spread: float, *, by_answer: bool
) -> tuple[LinearSums, float]:
    """Return people with lognormal weights; `spread` is the standard deviation of their logarithm."""
    found = _heavy(rng, sample, spread, sample.people, sample.share, by_answer)
    return sample.linear(found), sample.share


def _heavy(
    rng: np.random.Generator, sample: Sample, spread: float, people: int, share: float, by_answer: bool
) -> ReportSums:
    log = spread * rng.standard_normal((DRAWS, people))
    # Of the sum of weights half is that of logarithms above spread^2.
    factor = np.where(log > spread**2, 0.6, 1.4) if by_answer else np.ones(log.shape)
    return sums_of_people(sample.reports(rng, factor * share), np.exp(log), sample.table.shape[1])


def with_totals(
    rng: np.random.Generator, sample: Sample, strata: int = 2, spread: float | None = None
) -> tuple[LinearSums, float]:
    """Return strata with known totals; each has a smaller share than the one before, and may have heavy weights."""
    totals, parts, shares = TOTALS[strata], list[LinearSums](), [sample.share / 2**number for number in range(strata)]
    size = sample.people // strata
    for share in shares:
        if spread is None:
            weight, given = np.ones((DRAWS, size)), np.full((DRAWS, size), share)
            sums = sums_of_people(sample.reports(rng, given), weight, sample.table.shape[1])
        else:
            sums = _heavy(rng, sample, spread, size, share, False)
        parts.append(sample.linear(sums))
    rows = [
        combined_strata(LinearSums(*(np.stack(stratum) for stratum in zip(*one, strict=True))), np.array(totals))
        for one in zip(*(zip(*part, strict=True) for part in parts), strict=True)
    ]
    joined = LinearSums(*(np.concatenate(part) for part in zip(*rows, strict=True)))
    return joined, float(np.dot(totals, shares))


def with_epsilons(rng: np.random.Generator, sample: Sample) -> tuple[LinearSums, float]:
    """Return people of whom half choose epsilon 3."""
    samples = (sample, Sample(sample.share / 3, sample.people, 3.0, sample.response))
    tables = [one.table for one in samples]
    draws = [rng.multinomial(sample.people // 2, one.cells(np.array(one.share)) @ one.table, DRAWS) for one in samples]
    total = np.concatenate(draws, axis=1).astype(float)
    people = total.sum(axis=1)
    sums = ReportSums(total, total, total, np.stack((people, people), axis=1))
    found = linear_sums(sums, np.concatenate(tables, axis=1), np.repeat([0, 1], 3), 2)
    return found, (sample.share + sample.share / 3) / 2


def with_tasks(rng: np.random.Generator, sample: Sample, tasks: int = 4) -> tuple[LinearSums, float]:
    """Return the pooled tasks of each person."""
    cells, people = sample.cells(np.array(sample.share)), sample.people
    cumulative, counts = sample.table.cumsum(axis=1)[:, :-1], list[NDArray[np.float64]]()
    for _ in range(DRAWS // 100):
        common = rng.choice(3, size=(100, people, 1), p=cells)
        own = rng.choice(3, size=(100, people, tasks), p=cells)
        answers = np.where(rng.random((100, people, tasks)) < KEPT**0.5, common, own)
        reports = (rng.random(answers.shape)[..., None] >= cumulative[answers]).sum(axis=-1)
        counts.append(np.eye(3)[reports].sum(axis=2))
    parts = [sums_of_units(one) for one in counts]
    joined = ReportSums(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    return sample.linear(joined), sample.share


def clustered(
    rng: np.random.Generator, sample: Sample, clusters: int, correlation: float, *, equal: bool
) -> tuple[LinearSums, float]:
    """Return clusters of people; `correlation` is that of two answers of a cluster."""
    sizes = np.full((DRAWS, clusters), sample.people / clusters)
    if not equal:
        sizes = sizes * np.exp(SIZES * rng.standard_normal(sizes.shape) - SIZES**2 / 2)
    scale = (1 - correlation) / correlation
    share = rng.beta(sample.share * scale, (1 - sample.share) * scale, sizes.shape)
    counts = rng.multinomial(np.maximum(np.rint(sizes), 1).astype(int), sample.cells(share) @ sample.table)
    return sample.linear(sums_of_units(counts.astype(float))), sample.share
