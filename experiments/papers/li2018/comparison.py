"""Trials of one-layer and two-layer at equal claimed and equal exact epsilon: Tables 2 and 3, Figures 3 and 4.

Loss per answer and per worker depend on the worker's number k of answers, which is public. "At equal exact epsilon"
gives every worker of one-layer the epsilon that two-layer costs this worker: of one answer, or of all k answers
divided by k. `exact_epsilon` is the largest over workers, of one answer; `exact_worker_epsilon` of all answers.
Trials come in pairs with opposite random numbers u and 1 - u, which halves the noise and more: at claim 0 the reports
of a pair are complements, so that their mean error is 1/2. Every claim and seed has draws, and a simulated crowd, of
its own; the arms of one claim share them, so differences of arms have less noise than the values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Literal

import numpy as np
from experiments.papers.exhibit import Configuration, Row, standard_error
from experiments.papers.li2018.crowds import LABELS, as_reports, crowd_of
from experiments.papers.li2018.hyper_distribution import HyperDistribution, matching_flip, published
from experiments.papers.li2018.printed import PRINTED, TRUTH, VOTE
from experiments.papers.li2018.truth_discovery import (
    WEIGHT_FUNCTIONS,
    Crowd,
    Numbers,
    majority_vote,
    perturbed,
    truth_discovery,
)

from crowdveil import HierarchicalDawidSkene, RandomizedResponse
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.guarantee import MIN_EPSILON

Equal = Literal["claimed", "exact, answer", "exact, worker", "exact, worker, fewer answers"]

SEEDS = (18, 19)
CROWDVEIL = "crowdveil default"
MAIN_WEIGHT = "ln(p / (1 - p))"


@dataclass(frozen=True, slots=True)
class Arm:
    """Mechanism of a comparison: one-layer or two-layer, and the epsilon that is equal."""

    mechanism: Literal["one-layer", "two-layer"]
    equal: Equal = "claimed"


ONE, TWO = Arm("one-layer"), Arm("two-layer")
ONE_PER_ANSWER, ONE_PER_WORKER = Arm("one-layer", "exact, answer"), Arm("one-layer", "exact, worker")
FEWER_ANSWERS = Arm("one-layer", "exact, worker, fewer answers")
ARMS = {f"{arm.mechanism}/{arm.equal}": arm for arm in (ONE, TWO, ONE_PER_ANSWER, ONE_PER_WORKER, FEWER_ANSWERS)}


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """Exact losses of two-layer by worker, shape (workers,): of one answer, and of all answers divided by k."""

    answer: Numbers
    share: Numbers


def measure(step: Configuration) -> list[Row]:
    """Return one row per arm and inference at a claimed epsilon."""
    arms = [ARMS[text] for text in step["arms"].split(";")]
    inferences = [(VOTE, None), *((TRUTH, one) for one in step["weights"].split(";")), (CROWDVEIL, None)]
    pairs = [_pair(step, n, arms, inferences) for n in range(step["trials"] // 2)]
    rows = []
    for arm in arms:
        for name, weight in inferences:
            # Each has shape (2, 5): error, unprotected, constant, exact loss of an answer and of a worker.
            found = [one[arm, name, weight] for one in pairs if (arm, name, weight) in one]
            if found:
                rows.append(_row(step, arm, name, weight, np.array(found)))
    return rows


def _row(step: Configuration, arm: Arm, name: str, weight: str | None, found: Numbers) -> Row:
    """Return the row of an arm and an inference, from the figures of all pairs, shape (pairs, 2, 5)."""
    error, unprotected, constant, answer, worker = np.moveaxis(found, 2, 0)
    change = error - unprotected
    return {
        "crowd": step["crowd"],
        "seed": step["seed"],
        "equal": arm.equal,
        "mechanism": arm.mechanism,
        "inference": name,
        "weight": weight,
        "claimed_epsilon": step["claimed_epsilon"],
        "exact_epsilon": float(answer.max()),
        "exact_worker_epsilon": float(worker.max()),
        "error": float(error.mean()),
        "change": float(change.mean()),
        "standard_error": standard_error(change.mean(axis=1)),
        "deviation": float(change.std()),
        "unprotected": float(unprotected.mean()),
        "constant": float(constant.mean()),
        "repeats": change.size,
        "printed": _printed(PRINTED.get(step["crowd"], ()), arm, name, step["claimed_epsilon"]),
    }


def _printed(printed: Sequence[Row], arm: Arm, inference: str, claimed: float) -> float | None:
    """Return the paper's number for an arm; None where it has none."""
    wanted = (arm.mechanism, inference, claimed)
    own = [row for row in printed if (row["mechanism"], row["inference"], row["claimed_epsilon"]) == wanted]
    return own[0]["change"] if own and arm.equal == "claimed" else None


def crowdveil_default(crowd: Crowd, reports: Numbers, epsilon: Numbers | None) -> Numbers:
    """Return the labels of crowdveil's default method, in -1..1; one channel per worker if epsilon is given."""
    channel = None
    if epsilon is not None:
        levels, place = np.unique(epsilon, return_inverse=True)
        # The table names one channel per distinct epsilon; each is randomized response.
        channels = [
            RandomizedResponse(alphabet=LABELS, epsilon=float(level), participation="public").channel()
            for level in levels
        ]
        channel = ChannelTable.by_worker(channels, {str(worker): int(k) for worker, k in enumerate(place)})
    estimate = HierarchicalDawidSkene().fit(as_reports(crowd, reports), channel=channel)
    chosen = estimate.posterior[:, 1] - estimate.posterior[:, 0]
    return np.asarray(np.sign(np.where(np.abs(chosen) < 1e-9, 0.0, chosen)))


def losses_of(crowd: Crowd, hyper: HyperDistribution) -> Losses:
    """Return the losses of two-layer by worker."""
    answers = np.maximum(crowd.per_worker, 1)
    cell, worker = np.array([_losses(hyper, k) for k in answers.tolist()]).T
    return Losses(cell, worker / answers)


@cache
def _losses(hyper: HyperDistribution, cells: int) -> tuple[float, float]:
    return hyper.cell_loss(cells), hyper.worker_loss(cells)


def opposite_uniforms(crowd: Crowd, generator: np.random.Generator) -> list[tuple[Numbers, Numbers]]:
    """Return one number in [0, 1] per worker and one per answer, then the numbers that make 1 with them."""
    by_worker, by_answer = generator.random(crowd.workers), generator.random(len(crowd.task))
    return [(by_worker, by_answer), (1 - by_worker, 1 - by_answer)]


def key_of(claimed: float) -> int:
    """Return the claim as an integer, part of the seed of its draws."""
    return round(claimed * 1_000_000)


def flips(
    arm: Arm, crowd: Crowd, claimed: float, hyper: HyperDistribution, losses: Losses, by_worker: Numbers
) -> tuple[Numbers, Numbers | None]:
    """Return each worker's flip probability, and for one-layer epsilon of one answer, shapes (workers,)."""
    if arm.mechanism == "two-layer":
        return hyper.quantile(by_worker), None
    epsilon = {
        "claimed": np.full(crowd.workers, claimed),
        "exact, answer": losses.answer,
        "exact, worker": losses.share,
        "exact, worker, fewer answers": losses.share,
    }[arm.equal]
    return matching_flip(epsilon), epsilon


def _pair(
    step: Configuration, number: int, arms: Sequence[Arm], inferences: Sequence[tuple[str, str | None]]
) -> dict[tuple[Arm, str, str | None], list[tuple[float, ...]]]:
    """Return the figures of both trials of a pair by arm and inference; see `measure`."""
    claimed, seeds = step["claimed_epsilon"], [step["seed"], key_of(step["claimed_epsilon"]), number]
    crowd = crowd_of(step["crowd"], seeds)
    hyper = published(claimed)
    losses = losses_of(crowd, hyper)
    found: dict[tuple[Arm, str, str | None], list[tuple[float, ...]]] = {}
    for trial, (by_worker, by_answer) in enumerate(opposite_uniforms(crowd, np.random.default_rng(seeds))):
        for arm in arms:
            sent, numbers, own = crowd, by_answer, losses
            if arm == FEWER_ANSWERS:
                sent, numbers, own = _part(crowd, by_answer, losses, np.random.default_rng([*seeds, 1]))
            flip, epsilon = flips(arm, sent, claimed, hyper, own, by_worker)
            reports = perturbed(sent, flip, numbers)
            answer, share = (own.answer, own.share) if epsilon is None else (epsilon, epsilon)
            exact = float(answer.max()), float((share * sent.per_worker).max())
            for name, weight in inferences:
                if name == CROWDVEIL and not _is_run(step, arm, 2 * number + trial):
                    continue
                error = crowd.error_rate(_labels(sent, reports, epsilon, name, weight))
                figures = (error, _unprotected(crowd, name, weight), crowd.constant, *exact)
                found.setdefault((arm, name, weight), []).append(figures)
    return found


def _is_run(step: Configuration, arm: Arm, trial: int) -> bool:
    """Return whether crowdveil's default runs; without a channel the reports do not depend on the answers."""
    blind = arm == ONE and step["claimed_epsilon"] < MIN_EPSILON
    return not blind and trial < step["crowdveil_trials"]


def most_informative_count(total: float, answers: int) -> int:
    """Return the m in 1..`answers` with the largest m tanh(total / (2 m))^2, the information of m noisy answers."""
    counts = np.arange(1, answers + 1)
    return int(counts[np.argmax(counts * np.tanh(total / (2 * counts)) ** 2)])


def _part(
    crowd: Crowd, by_answer: Numbers, losses: Losses, generator: np.random.Generator
) -> tuple[Crowd, Numbers, Losses]:
    """Return a random part of each worker's answers, with the worker's loss shared by these; its size is public."""
    given = crowd.per_worker
    totals = losses.share * given
    counts = np.array([_count(total, k) for total, k in zip(totals.tolist(), given.tolist(), strict=True)])
    order = np.lexsort((generator.random(len(crowd.task)), crowd.worker))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - (np.cumsum(given) - given)[crowd.worker[order]]
    kept = rank < counts[crowd.worker]
    part = replace(crowd, task=crowd.task[kept], worker=crowd.worker[kept], answer=crowd.answer[kept])
    return part, by_answer[kept], Losses(losses.answer, totals / counts)


@cache
def _count(total: float, answers: int) -> int:
    return most_informative_count(total, max(answers, 1))


def _labels(crowd: Crowd, reports: Numbers, epsilon: Numbers | None, inference: str, weight: str | None) -> Numbers:
    """Return the inferred labels, in -1..1; `epsilon` of each worker is read by crowdveil's default only."""
    if inference == CROWDVEIL:
        return crowdveil_default(crowd, reports, epsilon)
    if weight is None:
        return majority_vote(crowd, reports)
    return truth_discovery(crowd, reports, WEIGHT_FUNCTIONS[weight])[0]


@lru_cache(maxsize=64)
def _unprotected(crowd: Crowd, inference: str, weight: str | None) -> float:
    return crowd.error_rate(_labels(crowd, crowd.answer, None, inference, weight))


def value(rows: Sequence[Row], name: str, arm: Arm, inference: str, claimed: float, weight: str = MAIN_WEIGHT) -> float:
    """Return one number of the rows; `weight` counts for truth discovery."""
    shown = weight if inference == TRUTH else None
    wanted = (arm.equal, arm.mechanism, inference, claimed, shown)
    (found,) = (
        row for row in rows
        if (row["equal"], row["mechanism"], row["inference"], row["claimed_epsilon"], row["weight"]) == wanted
    )  # fmt: skip
    return found[name]


def claims(rows: Sequence[Row]) -> list[float]:
    """Return the claimed epsilons of the rows, largest first."""
    return sorted({row["claimed_epsilon"] for row in rows}, reverse=True)


def votes_apart(rows: Sequence[Row]) -> float:
    """Return the largest difference of the changes of the majority vote between the mechanisms, at equal claim."""
    return max(abs(value(rows, "change", ONE, VOTE, c) - value(rows, "change", TWO, VOTE, c)) for c in claims(rows))
