"""Measures of rankings of simulated crowds: order, intervals, pairs told apart, and log-loss behind noise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from experiments.utility.comparisons.crowd import Crowd, Kind, draw_crowd, drawn_answers, pairs_of_items
from numpy.typing import NDArray
from scipy.stats import kendalltau

from crowdveil.channels.alphabet import Categories
from crowdveil.estimators.ranking.channels import ReportTable, report_table
from crowdveil.estimators.ranking.methods import RANKING_METHODS
from crowdveil.inference.ranking.rank import rank_comparisons
from crowdveil.inference.ranking.ranking import TOLD_APART, Ranking
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.quality.next_comparisons import next_comparisons

Floats = NDArray[np.float64]
OURS, DAVIDSON = tuple(RANKING_METHODS)[:2]
ROUNDS = (4, 6, 8, 10, 12, 14, 16, 18, 20)
"""Comparisons of each item after each round of proposals."""
NEW_ANSWERS = 2000
"""New answers of honest workers whose log-loss is measured."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """Kendall's tau of each method on a kind of crowd, with the default's less Davidson's and its standard error."""

    crowd: str
    seeds: int
    hierarchical_davidson: float
    davidson: float
    bradley_terry: float
    counting: float
    gain: float
    error: float


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Shares of scores and ranks inside their 90 % intervals, and of pairs told apart that are right."""

    crowd: str
    seeds: int
    score: float
    rank: float
    told_apart_right: float
    told_apart: float
    tau: float


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Tau with comparisons drawn at random and by information, and the standard error of the difference."""

    crowd: str
    seeds: int
    per_item: int
    random: float
    information: float
    error: float


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Behind randomized response: tau, and log-loss of new answers beside the best constant and unprotected answers."""

    crowd: str
    seeds: int
    epsilon: float
    answers: str
    tau: float
    unprotected_tau: float
    log_loss: float
    constant: float
    unprotected: float
    better: int


def tau_of(scores: Floats, truth: Floats) -> float:
    """Return Kendall's tau."""
    return float(kendalltau(scores, truth).statistic)


def orders(kinds: Sequence[Kind], seeds: Sequence[int]) -> Iterator[Order]:
    """Yield the order found on each kind of crowd."""
    for kind in kinds:
        found = {name: list[float]() for name in RANKING_METHODS}
        for crowd in (draw_crowd(kind, seed) for seed in seeds):
            for name, method in RANKING_METHODS.items():
                found[name].append(tau_of(method().fit(crowd.comparisons).posterior.scores, crowd.scores))
        gain = np.subtract(found[OURS], found[DAVIDSON])
        means = {name.replace("-", "_"): float(np.mean(values)) for name, values in found.items()}
        error = float(gain.std(ddof=1) / np.sqrt(len(seeds)))
        yield Order(crowd=kind.name, seeds=len(seeds), gain=float(gain.mean()), error=error, **means)


def coverages(kinds: Sequence[Kind], seeds: Sequence[int]) -> Iterator[Coverage]:
    """Yield the coverage of intervals on each kind of crowd."""
    for kind in kinds:
        rows = []
        for crowd in (draw_crowd(kind, seed) for seed in seeds):
            rows.append(_coverage_of(rank_comparisons(crowd.comparisons), crowd.scores))
        score, rank, right, told, tau = (float(value) for value in np.array(rows).T @ np.ones(len(rows)) / len(rows))
        yield Coverage(
            crowd=kind.name, seeds=len(seeds), score=score, rank=rank, told_apart_right=right / told, told_apart=told,
            tau=tau,
        )  # fmt: skip


def _coverage_of(found: Ranking, truth: Floats) -> tuple[float, float, float, float, float]:
    """Return shares of covered scores and ranks, shares of pairs told apart rightly and at all, and tau."""
    standard = (truth - truth.mean()) / truth.std()
    ranks = len(truth) - truth.argsort().argsort()
    column = found.ranks
    score = np.mean((column.low <= standard) & (standard <= column.high))
    inside = np.mean((column.rank_low <= ranks) & (ranks <= column.rank_high))
    first, second, probability = found._pairs
    told = probability >= TOLD_APART
    right = np.mean(told & (truth[first] > truth[second]))
    return float(score), float(inside), float(right), float(told.mean()), tau_of(found.scored.posterior.scores, truth)


def proposals(kinds: Sequence[Kind], seeds: Sequence[int]) -> Iterator[Proposal]:
    """Yield tau after each round of comparisons, drawn at random and by information; both begin with the same."""
    for kind in kinds:
        found = {
            by_information: np.array([_taus_by_round(draw_crowd(kind, seed), seed, by_information) for seed in seeds])
            for by_information in (False, True)
        }
        gains = found[True] - found[False]
        for place, per_item in enumerate(ROUNDS):
            yield Proposal(
                crowd=kind.name, seeds=len(seeds), per_item=per_item, random=float(found[False][:, place].mean()),
                information=float(found[True][:, place].mean()),
                error=float(gains[:, place].std(ddof=1) / np.sqrt(len(seeds))),
            )  # fmt: skip


def _taus_by_round(crowd: Crowd, seed: int, by_information: bool) -> list[float]:
    """Return tau after each round; each comparison is answered by a worker drawn at random."""
    items = crowd.kind.items
    random, columns = np.random.default_rng([seed, 48]), np.empty((4, 0), dtype=np.int32)
    taus, ranking = list[float](), None
    for per_item in ROUNDS:
        count = items * per_item // 2 - columns.shape[1]
        left, right = pairs_of_items(random, items, count)
        if by_information and ranking is not None:
            chosen = next_comparisons(ranking, count)
            left, right = chosen.left.astype(np.int32), chosen.right.astype(np.int32)
        worker = random.integers(0, crowd.kind.workers, count).astype(np.int32)
        answer = drawn_answers(random, crowd.probabilities(left, right, worker))
        columns = np.concatenate([columns, [left, right, worker, answer]], axis=1)
        rows = replace(
            crowd.comparisons, left=columns[0], right=columns[1], worker=columns[2], answer=columns[3], weight=None
        )
        ranking = rank_comparisons(rows)
        taus.append(tau_of(ranking.scored.posterior.scores, crowd.scores))
    return taus


def noises(kinds: Sequence[Kind], seeds: Sequence[int], epsilons: Sequence[float]) -> Iterator[Noise]:
    """Yield order and log-loss behind randomized response of three answers, and of two with ties tossed."""
    for kind in kinds:
        for epsilon in epsilons:
            for labels in (("left", "tie", "right"), ("left", "right")):
                alphabet = Categories(labels)
                channel = RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation="public").channel()
                sent = report_table(channel)
                rows = np.array([_behind_noise(draw_crowd(kind, seed), sent, seed) for seed in seeds])
                tau, plain_tau, loss, constant, plain = (float(value) for value in rows.mean(axis=0))
                yield Noise(
                    crowd=kind.name, seeds=len(seeds), epsilon=epsilon, answers=" ".join(labels), tau=tau,
                    unprotected_tau=plain_tau, log_loss=loss, constant=constant, unprotected=plain,
                    better=int((rows[:, 2] < rows[:, 3]).sum()),
                )  # fmt: skip


def _behind_noise(crowd: Crowd, sent: ReportTable, seed: int) -> tuple[float, float, float, float, float]:
    """Return tau with and without noise, and the log-losses behind noise, of the constant and without noise.

    The constant is the distribution of answers that the reports determine; where ties are tossed, losses are of
    answers without a tie.
    """
    random = np.random.default_rng([seed, 47])
    rows = crowd.comparisons
    reports = rows.with_answers(drawn_answers(random, sent.table[rows.answer]))
    private = rank_comparisons(replace(reports, symbols=sent.outputs), sent=sent)
    plain = rank_comparisons(rows)
    left, right = pairs_of_items(random, crowd.kind.items, NEW_ANSWERS)
    worker = random.choice(np.flatnonzero(crowd.honest), NEW_ANSWERS)
    truth = crowd.probabilities(left, right, worker)
    predicted = [one.predict_rows(left, right, worker) for one in (private, plain)]
    constant = np.broadcast_to(_constant(reports.answer, sent), truth.shape)
    if len(sent.answers) < 3:
        sides = [_without_tie(one) for one in (truth, *predicted)]
        truth, predicted = sides[0], sides[1:]
    losses = [-float((truth * np.log(np.maximum(one, 1e-12))).sum(axis=1).mean()) for one in (*predicted, constant)]
    taus = [tau_of(one.scored.posterior.scores, crowd.scores) for one in (private, plain)]
    return taus[0], taus[1], losses[0], losses[2], losses[1]


def _without_tie(probabilities: Floats) -> Floats:
    kept = probabilities * np.array([1.0, 0.0, 1.0])
    return kept / kept.sum(axis=1, keepdims=True)


def _constant(reports: NDArray[np.int32], sent: ReportTable) -> Floats:
    """Return the distribution of the answers by maximum likelihood of the reports (EM)."""
    counts = np.bincount(reports, minlength=sent.table.shape[1])
    kept = np.array([name in sent.answers for name in ("left", "tie", "right")], dtype=np.float64)
    found = kept / kept.sum()
    for _ in range(500):
        joint = found[:, None] * sent.table
        found = (joint / joint.sum(axis=0) * counts).sum(axis=1) / counts.sum()
    return found
