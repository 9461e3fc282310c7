"""Workers to review: abilities credibly below a bound, and answers that look like spam.

Reasons, each with 95 % certainty on one side, for a worker with n answers:
    ability: the upper end of the 90 % credible interval of the ability is below the bound, by default the middle
        between 1 / labels and the median ability;
    constant: the answers are equal, and F^n < .001 for the share F of that label in all answers;
    chance: the share A of equal answers with other workers is below chance + .1 (1 - chance) by 1.645 standard errors
        sqrt(A (1 - A) / n), where chance = sum_c f_c F_c for the worker's own label shares f (Cohen's kappa below .1).
    copies: the worker answers as another one (`evaluation.copies`).
The last three read answers, so that they are left out behind a channel; there the interval includes the noise.

Where truths have labels of their own, reasons are constant answers, and pairs whose errors are alike
(`evaluation.panel`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Categories
from crowdveil.data.evidence import Evidence
from crowdveil.data.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.evaluation.agreement import NORMAL_QUANTILE, agreement
from crowdveil.evaluation.copies import find_copies
from crowdveil.inference.infer import Inference
from crowdveil.inference.panel import PanelFit
from crowdveil.presentation.hints import advice

RARE = 1e-3
"""Probability of equal answers below which they count as constant."""
MIN_KAPPA = 0.1
MIN_ANSWERS = 10
"""Answers from which agreement with others is judged."""


@dataclass(frozen=True, kw_only=True)
class WorkerToReview:
    """One worker to review, with a sentence for each reason."""

    worker: str
    ability: float
    low: float
    high: float
    reports: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Review:
    """Workers to review, the lowest upper end of the interval first.

    Attributes:
        method: estimator.
        bound: ability below which a worker is reviewed; None where truths have labels of their own.
        workers: number of all workers.
        found: workers to review.
        channel_used: whether only intervals through a channel were read.
    """

    method: str
    bound: float | None
    workers: int
    found: tuple[WorkerToReview, ...]
    channel_used: bool


def refuse_reports_without_channel(evidence: Evidence) -> None:
    """Refuse protected reports whose channel is unknown.

    Raises:
        ReportsError: there is no channel.
    """
    if evidence.channel is None and evidence.collection is not None:
        raise ReportsError(
            "protected reports need their channel, or noise looks like bad work",
            source="reports",
            examples=evidence.no_channel_reason,
            hint="Keep certificate.json and crowd.json beside the reports.",
        )


def review_workers(inference: Inference, *, bound: float | None = None) -> Review:
    """Return the workers to review.

    Raises:
        SettingsError: a bound outside (0, 1) or beside truths with labels of their own, or a method without intervals
            of abilities.
        ReportsError: protected reports without a certificate.
    """
    estimate, evidence = inference.estimate, inference.evidence
    refuse_reports_without_channel(evidence)
    if bound is not None and not 0 < bound < 1:
        raise SettingsError(
            "the bound of abilities must be between 0 and 1",
            value=bound,
            hint="Such as 0.5: an ability is the probability of a right answer.",
        )
    if inference.panel is not None:
        if bound is not None:
            raise SettingsError("a bound of abilities does not go with truths", value=bound, hint="Leave it out.")
        return _review_of_panel(inference.panel, evidence)
    workers = estimate.workers
    if not estimate.categorical:
        raise SettingsError(
            "workers are reviewed by their labels, these answers are numbers",
            value=estimate.method,
            hint="The file of workers that `infer` writes has the quality of each worker. "
            + advice(
                "With truths that have labels of their own ({truths}), pairs of workers who answer alike are listed.",
                truths=["no", "yes"],
            ),
            value_in_rule=True,
        )
    if workers.ability_low is None or workers.ability_high is None or estimate.alphabet is None:
        raise SettingsError(
            "a review needs labels and a method with intervals of abilities",
            value=estimate.method,
            hint="Use the method hierarchical-dawid-skene.",
        )
    limit = bound or ability_bound(workers.quality, estimate.reports_per_worker, estimate.alphabet.size)
    reasons: list[list[str]] = [[] for _ in range(len(workers.quality))]
    for worker in np.flatnonzero((workers.ability_high < limit) & (estimate.reports_per_worker > 0)).tolist():
        reasons[worker].append(f"The ability is below {limit:.2f} with 95 % certainty.")
    if not estimate.channel_used and evidence.channel is None:
        _add_constant_copy_and_chance_reasons(reasons, evidence)
    return _review_of_reasons(estimate, limit, reasons)


def _review_of_panel(fit: PanelFit, evidence: Evidence) -> Review:
    """Return the workers to review where truths have labels of their own."""
    place = {str(name): code for code, name in enumerate(fit.estimate.worker_names.tolist())}
    reasons: list[list[str]] = [[] for _ in place]
    if evidence.channel is None:
        _add_constant_answer_reason(reasons, evidence.reports)
    nearest: dict[str, str] = {}
    for pair in fit.alike:
        for worker, other in (pair.workers, pair.workers[::-1]):
            text = f"Answers as {other!r}: errors correlate by {pair.correlation:.2f} on {pair.common:,} common tasks."
            nearest.setdefault(worker, text)
    for worker, text in nearest.items():
        reasons[place[worker]].append(text)
    return _review_of_reasons(fit.estimate, None, reasons)


def _add_constant_answer_reason(reasons: list[list[str]], reports: Reports) -> NDArray[np.bool_]:
    """Add the reason "constant" to those of each worker, for labels or numbers; return who has it."""
    values, codes, counts = np.unique(reports.value, return_inverse=True, return_counts=True)
    first = np.zeros(len(reasons), dtype=np.int64)
    first[reports.worker[::-1]] = codes[::-1]
    others = np.bincount(reports.worker, codes != first[reports.worker], len(reasons))
    totals = np.asarray(reports.per_worker)
    constant = np.asarray((others == 0) & ((counts / len(codes))[first] ** totals < RARE))
    for worker in np.flatnonzero(constant).tolist():
        value = values[first[worker]]
        name = f"{value:g}" if reports.alphabet is None else repr(reports.alphabet.names[int(value)])
        reasons[worker].append(f"All {int(totals[worker]):,} answers are {name}.")
    return constant


def _review_of_reasons(estimate: Estimate, bound: float | None, reasons: list[list[str]]) -> Review:
    """Return the review of the workers with reasons."""
    workers = estimate.workers
    unknown = np.full(len(reasons), np.nan)
    low, high = (unknown if end is None else end for end in (workers.ability_low, workers.ability_high))
    return Review(
        method=estimate.method,
        bound=bound,
        workers=len(reasons),
        channel_used=estimate.channel_used,
        found=tuple(
            WorkerToReview(
                worker=str(estimate.worker_names[worker]),
                ability=float(workers.quality[worker]),
                low=float(low[worker]),
                high=float(high[worker]),
                reports=int(estimate.reports_per_worker[worker]),
                reasons=tuple(reasons[worker]),
            )
            for worker in np.lexsort((workers.quality, high)).tolist()
            if reasons[worker]
        ),
    )


def ability_bound(quality: NDArray[np.float64], reports: NDArray[np.int64], labels: int) -> float:
    """Return the default bound of abilities, the middle between 1 / labels and the median ability.

    Args:
        quality: ability of each worker, shape (workers,).
        reports: their numbers of reports; workers without one are left out.
        labels: number of labels.
    """
    known = quality[(reports > 0) & np.isfinite(quality)]
    return (1 / labels + (float(np.median(known)) if len(known) else 1 / labels)) / 2


def review_columns(review: Review) -> dict[str, NDArray[Any]]:
    """Return the workers to review as columns: worker, ability, ability_low, ability_high, reports, reason."""
    found = review.found
    return {
        "worker": np.array([one.worker for one in found], dtype=np.str_),
        "ability": np.array([one.ability for one in found]),
        "ability_low": np.array([one.low for one in found]),
        "ability_high": np.array([one.high for one in found]),
        "reports": np.array([one.reports for one in found], dtype=np.int64),
        "reason": np.array([" ".join(one.reasons) for one in found], dtype=np.str_),
    }


def _add_constant_copy_and_chance_reasons(reasons: list[list[str]], evidence: Evidence) -> None:
    """Add the reasons "constant" and "chance" to those of each worker."""
    reports, alphabet = evidence.reports, evidence.reports.alphabet
    if not isinstance(alphabet, Categories):
        return
    counts = np.zeros((len(reports.workers), alphabet.size))
    for block in reports.blocks():
        key = block.worker.astype(np.int64) * alphabet.size + block.value
        counts += np.bincount(key, minlength=counts.size).reshape(counts.shape)
    constant = _add_constant_answer_reason(reasons, reports)
    if int(np.max(reports.per_task)) < 2:
        return
    _add_copied_worker_reasons(reasons, reports)
    for worker, kappa in _workers_near_chance(evidence, counts, counts.sum(axis=0) / counts.sum()):
        if not constant[worker]:
            reasons[worker].append(f"The answers agree with others hardly more than by chance (kappa {kappa:.2f}).")


def _add_copied_worker_reasons(reasons: list[list[str]], reports: Reports) -> None:
    """Add for each copy the worker with whom it has the most common tasks."""
    copies = find_copies(reports)
    if copies is None:
        return
    most: dict[int, tuple[int, int, int]] = {}
    for first, second, common, same in zip(*(column.tolist() for column in copies.pairs), strict=True):
        for worker, other in ((first, second), (second, first)):
            most[worker] = max(most.get(worker, (0, 0, 0)), (common, same, other))
    for worker, (common, same, other) in sorted(most.items()):
        reasons[worker].append(
            f"Answers as {str(reports.workers[other])!r}: {same:,} of {common:,} common answers are equal, more than "
            "independent work explains."
        )


def _workers_near_chance(
    evidence: Evidence, counts: NDArray[np.float64], shares: NDArray[np.float64]
) -> list[tuple[int, float]]:
    """Return the workers whose agreement is near chance, with kappa; `counts` indexed [worker, label]."""
    found = agreement(evidence.reports).workers
    assert found is not None
    totals = counts.sum(axis=1)
    chance = counts @ shares / np.maximum(totals, 1)
    share = np.nan_to_num(found.pairwise)
    width = NORMAL_QUANTILE * np.sqrt(share * (1 - share) / np.maximum(totals, 1))
    low = (share + width < chance + MIN_KAPPA * (1 - chance)) & (totals >= MIN_ANSWERS) & (found.pairs >= MIN_ANSWERS)
    kappa = (share - chance) / np.maximum(1 - chance, 1e-12)
    return [(worker, float(kappa[worker])) for worker in np.flatnonzero(low).tolist()]
