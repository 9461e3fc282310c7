"""Workers to review: who repeats labels or copies first, by the answers alone; then whose ability is credibly low.

Kinds of workers to review, in this order:
    repeats: labels that do not depend on the task (`label_patterns`), or one number (`number_patterns`);
    copies: answers that agree with another worker's more than independent work explains;
    chance: agreement with others that is near chance, or below it;
    unclear: one answer to all tasks, which too few answers of others contradict to tell it from careful work;
    ability: the upper end of the 90 % credible interval of the ability is below the bound, by default the middle
        between 1 / labels and the median ability.
The ability is the fit's, whose truths bad workers can bend: by default nobody is listed for it who agrees with others
as well as the median worker, unless known truths guided the fit. Behind a channel only the interval, which includes the
noise, is read. Where truths have labels of their own, equal answers are listed, and pairs whose errors are alike.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.evidence import Evidence
from crowdveil.channels.alphabet import Categories
from crowdveil.em.estimate import Estimate
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.inference.infer import Inference
from crowdveil.inference.panel.fit import PanelFit
from crowdveil.quality.review.label_patterns import LabelPatterns
from crowdveil.quality.review.label_reasons import add_label_reasons
from crowdveil.quality.review.listing import Kind, Listing
from crowdveil.quality.review.number_patterns import NumberPatterns
from crowdveil.quality.review.number_reasons import add_equal_answers, add_number_reasons


@dataclass(frozen=True, kw_only=True)
class WorkerToReview:
    """One worker to review, with a sentence for each reason.

    Attributes:
        worker: name.
        kind: of the strongest reason.
        ability, low, high: of the fit, with the 90 % credible interval; nan without one.
        weight: what an answer counts in the truths; nan where the method has no weights.
        group: first worker of the group of copies; empty for none.
        reports: number of reports.
        reasons: sentences.
    """

    worker: str
    kind: Kind
    ability: float
    low: float
    high: float
    weight: float
    group: str
    reports: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class GroupOfCopies:
    """Workers who answer alike.

    Attributes:
        workers: names.
        counts_as: number of independent workers that they count as in the truths; nan where the method has no weights.
    """

    workers: tuple[str, ...]
    counts_as: float


@dataclass(frozen=True, kw_only=True)
class Review:
    """Workers to review, in the order of the kinds.

    Attributes:
        method: estimator.
        bound: ability below which a worker is reviewed; None where there is none.
        workers: number of all workers.
        found: workers to review.
        groups: of copies, the largest first.
        notes: sentences on what the answers do not tell.
        channel_used: whether only intervals through a channel were read.
    """

    method: str
    bound: float | None
    workers: int
    found: tuple[WorkerToReview, ...]
    groups: tuple[GroupOfCopies, ...] = ()
    notes: tuple[str, ...] = ()
    channel_used: bool


def refuse_reports_without_channel(evidence: Evidence) -> None:
    """Refuse protected reports whose channel is unknown.

    Raises:
        ReportsError: there is no channel.
    """
    if evidence.channel is None and evidence.collection is not None:
        raise ReportsError(
            "protected reports need their channel: without it, a device's noise counts as a worker's errors",
            source="reports",
            examples=evidence.no_channel_reason,
            hint="Keep certificate.json and crowd.json next to the reports.",
        )


def review_workers(inference: Inference, *, bound: float | None = None) -> Review:
    """Return the workers to review.

    Raises:
        SettingsError: a bound outside (0, 1), beside truths with labels of their own, or for numbers; or a method
            without intervals of abilities.
        ReportsError: protected reports without a certificate.
    """
    estimate, evidence = inference.estimate, inference.evidence
    refuse_reports_without_channel(evidence)
    if bound is not None and not 0 < bound < 1:
        raise SettingsError(
            "the bound on abilities must be between 0 and 1",
            value=bound,
            hint="Such as 0.5: an ability is the probability of a right answer.",
        )
    if inference.panel is not None:
        if bound is not None:
            raise SettingsError(
                "a bound on abilities cannot be combined with truths", value=bound, hint="Leave it out."
            )
        return _review_of_panel(inference.panel, evidence)
    if not estimate.categorical:
        return _review_of_numbers(estimate, evidence, bound)
    workers = estimate.workers
    if workers.ability_low is None or workers.ability_high is None or estimate.alphabet is None:
        raise SettingsError(
            "a review needs labels and a method with intervals of abilities",
            value=estimate.method,
            hint="Use the method hierarchical-dawid-skene.",
        )
    listing, limit = listing_of_answers(evidence), bound
    if limit is None:
        limit = ability_bound(workers.quality, estimate.reports_per_worker, estimate.alphabet.size)
    low = (workers.ability_high < limit) & (estimate.reports_per_worker > 0)
    if bound is None and estimate.gold is None and listing.agrees_well is not None:
        low &= ~listing.agrees_well
    text = f"The ability is below {limit:.2f} with 95 % certainty."
    for worker in np.flatnonzero(low).tolist():
        listing.add(worker, "ability", text, -float(workers.quality[worker]))
    return _review_of_listing(estimate, limit, listing)


def _review_of_numbers(estimate: Estimate, evidence: Evidence, bound: float | None) -> Review:
    """Return the workers to review by their numbers."""
    if bound is not None:
        raise SettingsError("a bound on abilities needs labels, these are numbers", value=bound, hint="Leave it out.")
    if estimate.channel_used or evidence.channel is not None or evidence.sums is not None:
        raise SettingsError(
            "workers are reviewed by their labels, or by numbers that are not perturbed",
            value=estimate.method,
            hint="The file of workers that `infer` writes has the quality of each worker.",
            value_in_rule=True,
        )
    return _review_of_listing(estimate, None, listing_of_answers(evidence))


def listing_of_answers(evidence: Evidence) -> Listing:
    """Return the reasons that answers give, unperturbed; none for reports, sums and panels."""
    listing = Listing()
    if evidence.channel is not None or evidence.collection is not None or evidence.sums is not None or evidence.truths:
        return listing
    if isinstance(evidence.reports.alphabet, Categories):
        add_label_reasons(listing, evidence.reports, LabelPatterns.of_reports(evidence.reports))
    else:
        add_number_reasons(listing, evidence.reports, NumberPatterns.of_reports(evidence.reports))
    return listing


def _review_of_panel(fit: PanelFit, evidence: Evidence) -> Review:
    """Return the workers to review where truths have labels of their own."""
    place = {str(name): code for code, name in enumerate(fit.estimate.worker_names.tolist())}
    listing = Listing()
    if evidence.channel is None:
        add_equal_answers(listing, evidence.reports)
    for pair in fit.alike:
        for worker, other in (pair.workers, pair.workers[::-1]):
            text = (
                f"Answers like {other!r}: errors correlate by {pair.correlation:.2f} on {pair.common:,} shared tasks."
            )
            if listing.kinds.get(place[worker]) != "copies":
                listing.add(place[worker], "copies", text)
    return _review_of_listing(fit.estimate, None, listing)


def _review_of_listing(estimate: Estimate, bound: float | None, listing: Listing) -> Review:
    """Return the review of the workers with reasons."""
    workers = estimate.workers
    unknown = np.full(len(estimate.worker_names), np.nan)
    low, high = (unknown if end is None else end for end in (workers.ability_low, workers.ability_high))
    ability = workers.quality if workers.quality_name == "ability" else unknown
    informed = unknown if workers.independent is None else 1 - workers.independent
    names, groups = estimate.worker_names, listing.groups
    of_group = {worker: group for group in groups for worker in group.workers.tolist()}

    def weight_of(worker: int) -> float:
        """Return what an answer of a worker counts in the truths."""
        group = of_group.get(worker)
        return float(informed[worker] * (1.0 if group is None else group.weight_of(worker)))

    def row(worker: int) -> WorkerToReview:
        group = of_group.get(worker)
        return WorkerToReview(
            worker=str(names[worker]),
            kind=listing.kinds[worker],
            ability=float(ability[worker]),
            low=float(low[worker]),
            high=float(high[worker]),
            weight=weight_of(worker),
            group="" if group is None else str(names[int(group.workers[0])]),
            reports=int(estimate.reports_per_worker[worker]),
            reasons=tuple(listing.reasons[worker]),
        )

    return Review(
        method=estimate.method,
        bound=bound,
        workers=len(names),
        found=tuple(map(row, listing.ordered())),
        groups=tuple(
            GroupOfCopies(
                workers=tuple(str(names[worker]) for worker in group.workers.tolist()),
                counts_as=sum(map(weight_of, group.workers.tolist())),
            )
            for group in groups
        ),
        notes=tuple(listing.notes),
        channel_used=estimate.channel_used,
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
    """Return the workers to review as columns.

    They are worker, kind, ability, ability_low, ability_high, reports, weight, group and reason.
    """
    found = review.found
    return {
        "worker": np.array([one.worker for one in found], dtype=np.str_),
        "kind": np.array([one.kind for one in found], dtype=np.str_),
        "ability": np.array([one.ability for one in found]),
        "ability_low": np.array([one.low for one in found]),
        "ability_high": np.array([one.high for one in found]),
        "reports": np.array([one.reports for one in found], dtype=np.int64),
        "weight": np.array([one.weight for one in found]),
        "group": np.array([one.group for one in found], dtype=np.str_),
        "reason": np.array([" ".join(one.reasons) for one in found], dtype=np.str_),
    }
