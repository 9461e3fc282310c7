"""Patterns in labels, read from the answers alone: repeated labels, copies, and agreement by chance.

With the answers N of worker i by the truths that others say (`leave_one_out`), D and the prior of rows as in
`independent_workers`, and frequencies p,
    B_i = D(sum_z N_i[z]; 2 p) - sum_z D(N_i[z]; prior of row z)
is the log Bayes factor of answers that do not depend on the task, M_i = sum of N_i[z, x] over x other than z is the
number of answers that others contradict, and G_i the likelihood-ratio statistic of the worker's labels against those
that the crowd gives on the same tasks. Worker i repeats labels if M_i >= `MIN_WRONG`, and B_i >= `CLEAR` with G_i
beyond its quantile `LIKELY`, or B_i >= `SOME` with `RARE`. Where nearly all truths are one label, a careful worker
repeats it, too: M_i is small.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

from crowdveil.answers.reports import Reports
from crowdveil.em.kernels.report_weights import PairShares
from crowdveil.estimators.confusion.dirichlet_multinomial import log_dirichlet_multinomial, log_evidence_of_rows
from crowdveil.estimators.confusion.independent_workers import (
    LABEL_STRENGTH,
    OTHERS_SMOOTHING,
    OTHERS_STRENGTH,
    total_answers,
)
from crowdveil.estimators.copies.compared_answers import (
    AlikePairs,
    ComparedAnswers,
    first_worker_per_group,
    pairs_alike,
)
from crowdveil.estimators.copies.near_copies import AGREEMENTS
from crowdveil.quality.agreement.alpha import NORMAL_QUANTILE
from crowdveil.quality.review.leave_one_out import VotesOfOthers
from crowdveil.quality.review.listing import CopyingGroup

CLEAR, SOME = 3.0, 2.0
"""Log Bayes factors: 20 and 7 to 1 for answers that do not depend on the task."""
LIKELY, RARE = 0.01, 1e-3
"""Probabilities of labels as unlike those of the crowd, with each of the two factors."""
MIN_WRONG = 4.0
"""Answers contradicted by others, from which a repeated label is no careful work."""
SUSPECT, EXPECTED, MIN_EQUAL = 0.1, 0.5, 5
"""Probabilities of equal answers below which they are suspect, by G and by the share among others, and their number."""
MIN_KAPPA, MIN_ANSWERS, GOOD = 0.1, 10, 0.75
"""Agreement that counts as chance below it, answers from which it is judged, and the quantile of good workers."""
BELOW_CHANCE = 2.33
"""Standard errors by which an agreement below chance counts as contradiction: 99 % on one side."""


@dataclass(frozen=True, eq=False)
class LabelPatterns:
    """Patterns of each worker; all arrays are in worker order.

    Attributes:
        votes: answers by the truths that others say.
    """

    votes: VotesOfOthers

    @classmethod
    def of_reports(cls, reports: Reports) -> "LabelPatterns":
        """Return the patterns of labels, unperturbed."""
        return cls(VotesOfOthers.of_reports(reports))

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """Pseudo-counts of each row of an informed worker, [truth, label]."""
        crowd = total_answers(self.votes.answers, self.votes.weights) + OTHERS_SMOOTHING
        return np.asarray(OTHERS_SMOOTHING + OTHERS_STRENGTH * crowd / crowd.sum(axis=1, keepdims=True))

    @cached_property
    def bayes_factor(self) -> NDArray[np.float64]:
        """B."""
        return self._bayes_factor_of(self.votes.answers)

    @cached_property
    def wrong(self) -> NDArray[np.float64]:
        """M."""
        return _contradicted(self.votes.answers)

    @cached_property
    def unlike_crowd(self) -> NDArray[np.float64]:
        """Probability of labels at least as unlike those of the crowd on the same tasks, by G."""
        return self._probability_of_labels(self.votes.counts)

    @cached_property
    def repeats(self) -> NDArray[np.bool_]:
        """Whether each worker repeats labels."""
        return _is_repeating(self.bayes_factor, self.wrong, self.unlike_crowd)

    @cached_property
    def may_repeat(self) -> NDArray[np.bool_]:
        """Whether a worker repeats one label, unlike the crowd, which cannot be told from careful work."""
        counts, answers = self.votes.counts, self.votes.counts.sum(axis=1)
        label = counts.argmax(axis=1)
        one = (counts.max(axis=1) == answers) & (answers >= MIN_EQUAL)
        others = (counts.sum(axis=0)[label] - answers) / np.maximum(counts.sum() - answers, 1)
        suspect = (self.bayes_factor > 0) & (self.unlike_crowd < SUSPECT) & (others**answers < EXPECTED)
        return np.asarray(one & suspect & ~self.repeats)

    @cached_property
    def hides_repeaters(self) -> NDArray[np.bool_]:
        """Whether a worker who repeats the most frequent label on the same tasks would not be seen."""
        label, counts = int(self.votes.frequencies.argmax()), np.zeros_like(self.votes.counts)
        answers = np.zeros_like(self.votes.answers)
        answers[:, :, label], counts[:, label] = self.votes.answers.sum(axis=2), self.votes.counts.sum(axis=1)
        evidence = self._bayes_factor_of(answers), _contradicted(answers), self._probability_of_labels(counts)
        return np.asarray(~_is_repeating(*evidence) & (counts[:, label] > 0))

    @cached_property
    def kappa_and_error(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Cohen's kappa with the truths that others say, and its standard error; nan without any."""
        answers = self.votes.answers
        compared = answers.sum(axis=(1, 2))
        known = np.maximum(compared, 1e-12)
        agreed = np.einsum("wzz->w", answers) / known
        chance = np.einsum("wz,wz->w", answers.sum(axis=2), answers.sum(axis=1)) / known**2
        scale = np.maximum(1 - chance, 1e-12)
        kappa = np.where(compared > 0, (agreed - chance) / scale, np.nan)
        return kappa, np.sqrt(agreed * (1 - agreed) / known) / scale

    @cached_property
    def near_chance(self) -> NDArray[np.bool_]:
        """Whether the agreement with others is near chance, with 95 % certainty, and far below that of good workers."""
        kappa, error = self.kappa_and_error
        bound = min(MIN_KAPPA, self._kappa_quantile(GOOD) / 2)
        enough = (self.votes.answers.sum(axis=(1, 2)) >= MIN_ANSWERS) & (self.wrong >= MIN_WRONG)
        return np.asarray(enough & ~self.repeats & (kappa + NORMAL_QUANTILE * error < bound))

    @cached_property
    def below_chance(self) -> NDArray[np.bool_]:
        """Whether the agreement with others is below chance, with 99 % certainty."""
        kappa, error = self.kappa_and_error
        return np.asarray(self.near_chance & (kappa + BELOW_CHANCE * error < 0))

    @cached_property
    def agrees_well(self) -> NDArray[np.bool_]:
        """Whether the agreement with others is that of the median worker, or better."""
        return np.asarray(self.kappa_and_error[0] >= self._kappa_quantile(0.5))

    def _kappa_quantile(self, share: float) -> float:
        """Return a quantile of the kappas of workers; infinity without any."""
        kappa = self.kappa_and_error[0]
        known = kappa[np.isfinite(kappa)]
        return float(np.quantile(known, share)) if len(known) else np.inf

    def copying_groups(self) -> list[CopyingGroup]:
        """Return the groups of workers who answer alike, the largest first."""
        if self.votes.copies is None:
            return []
        first, second, *_ = self.votes.copies
        none = np.zeros(0, dtype=np.int64)
        group = first_worker_per_group(AlikePairs(first, second, none, none), self.votes.copies.workers)
        codes = np.flatnonzero(np.bincount(group, minlength=len(group)) > 1)
        groups = (np.flatnonzero(group == code) for code in codes.tolist())
        found = [CopyingGroup(workers, self.votes.copy_weights[workers]) for workers in groups]
        return sorted(found, key=lambda one: -len(one.workers))

    def _bayes_factor_of(self, answers: NDArray[np.float64]) -> NDArray[np.float64]:
        same = log_dirichlet_multinomial(answers.sum(axis=1), LABEL_STRENGTH * self.votes.frequencies)
        return np.asarray(same - log_evidence_of_rows(answers, self.prior))

    def _probability_of_labels(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        truths = self.votes.answers.sum(axis=2) + self.votes.frequencies
        of_crowd = truths @ (self.prior / self.prior.sum(axis=1, keepdims=True))
        expected = counts.sum(axis=1, keepdims=True) * of_crowd / of_crowd.sum(axis=1, keepdims=True)
        ratio = np.divide(counts, expected, out=np.ones_like(counts), where=counts > 0)
        statistic = np.einsum("wx,wx->w", counts, np.log(ratio))
        return np.asarray(gammaincc((counts.shape[1] - 1) / 2, np.maximum(statistic, 0.0)))


def _contradicted(answers: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(answers.sum(axis=(1, 2)) - np.einsum("wzz->w", answers))


def _is_repeating(
    bayes_factor: NDArray[np.float64], wrong: NDArray[np.float64], unlike: NDArray[np.float64]
) -> NDArray[np.bool_]:
    evidence = ((bayes_factor >= CLEAR) & (unlike < LIKELY)) | ((bayes_factor >= SOME) & (unlike < RARE))
    return np.asarray(evidence & (wrong >= MIN_WRONG))


def closest_copies(reports: Reports, copies: PairShares) -> dict[int, tuple[int, int, int]]:
    """Return for each near-copy the common tasks, the equal answers and the worker with the largest share."""
    alike = pairs_alike(ComparedAnswers(reports), AGREEMENTS[-1])
    key, known = alike.first * copies.workers + alike.second, copies.first * copies.workers + copies.second
    place = np.searchsorted(key, known)
    columns = copies.first, copies.second, alike.common[place], alike.same[place], copies.share
    closest: dict[int, tuple[float, tuple[int, int, int]]] = {}
    for first, second, common, same, share in zip(*(column.tolist() for column in columns), strict=True):
        for worker, other in ((first, second), (second, first)):
            if worker not in closest or share > closest[worker][0]:
                closest[worker] = (share, (common, same, other))
    return {worker: found for worker, (_, found) in sorted(closest.items())}
