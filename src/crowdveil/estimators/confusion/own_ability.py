"""Rows of a confusion matrix that share the worker's own ability: a two-level prior whose strength is learned.

With N[i, z, x] expected answers of worker i on truth z, and p the answer frequencies, the own prior has the mean
    m[i, z] = a_i e_z + (1 - a_i) (p without z),   a_i = (sum_z N[i, z, z] + 2 A) / (sum_zx N[i, z, x] + 2),
A = share of right answers of the crowd. Reports have the distribution R = s_i m Q + (1 - s_i) Q[NULL] through the
channel Q, without NULL reports. If rows vary around m as Dirichlet(S m), r = 1 / (1 + S), then n[i, z] reports with
counts M[i, z, y] have E sum (M - n R)^2 = sum n (1 - |R|^2) + r P, with the number of pairs of answers
    P = sum n max(n - 1, 0) s_i^2 (sum_x m_x |Q_x|^2 - |m Q|^2)
(method of moments, as for a Dirichlet-multinomial). With X = the sum of squares less the first term, at least 0,
    r = (X + noise * standard error of X + 30 / 21) / (P + 30):
rows of which little is known vary as in real crowds, S = 20. There S is 0.5 to 12, and the prior of all workers covers
that; what S has beyond 20 are pseudo-answers of the own prior.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.deconvolution import AnswerFrequencies
from crowdveil.em.kernels.reductions import map_row_chunks, normalize_confusion

OWN_ANSWERS = 2.0
"""Pseudo-answers of the crowd's ability in a worker's own."""
USUAL_STRENGTH, MAX_STRENGTH = 20.0, 200.0
"""Strength up to which rows differ as in real crowds, and upper bound of a learned one."""
USUAL_PAIRS = 30.0
"""Pseudo-pairs of answers, from rows of the usual strength: what few answers say of r counts less."""
MAX_WORKERS = 2000
"""Largest number of workers, evenly spaced, from whom the strength is learned."""
TINY = 1e-12


class OwnPrior(NamedTuple):
    """Prior of every worker's rows by the own ability.

    Attributes:
        strength: learned pseudo-answers S of a row, at most `MAX_STRENGTH`; 0 without reports.
        ability: A, the crowd's share of right answers.
        errors: p without z, indexed [truth, label], rows sum to 1, diagonal 0.
    """

    strength: float
    ability: float
    errors: NDArray[np.float64]

    @property
    def pseudo_answers_per_row(self) -> float:
        """Pseudo-answers of a row: the strength beyond that of real crowds."""
        return max(self.strength - USUAL_STRENGTH, 0.0)

    @property
    def answer_share(self) -> float:
        """Share of `answers` in the strength, in [0, 1)."""
        return self.pseudo_answers_per_row / max(self.strength, USUAL_STRENGTH)

    def one_ability_confusion(self, answers: NDArray[np.float64], decimals: int) -> NDArray[np.float64]:
        """Return confusion matrices of the own abilities alone, [worker, truth, label], rounded; answers alike."""
        ability = shrunken_abilities(answers, self.ability)
        total = (1 - ability)[:, None, None] * self.errors
        np.einsum("wzz->wz", total)[...] = ability[:, None]
        return np.asarray(np.round(total, decimals))

    def posterior_confusion(
        self,
        answers: NDArray[np.float64],
        dirichlet_prior: NDArray[np.float64],
        decimals: int,
        *,
        compiled: bool = False,
    ) -> NDArray[np.float64]:
        """Return confusion matrices, [worker, truth, label], from expected answers and both priors.

        They are rounded where data are small.
        """
        if compiled:
            ability = shrunken_abilities(answers, self.ability)
            weights = self.pseudo_answers_per_row * np.stack((ability, 1 - ability), axis=1)
            own = weights, np.stack((np.eye(len(self.errors)), self.errors))
            return normalize_confusion(answers, dirichlet_prior, own, compiled=True)

        def of_rows(rows: NDArray[np.float64]) -> NDArray[np.float64]:
            ability = shrunken_abilities(rows, self.ability)
            total = rows + dirichlet_prior + (self.pseudo_answers_per_row * (1 - ability))[:, None, None] * self.errors
            np.einsum("wzz->wz", total)[...] += (self.pseudo_answers_per_row * ability)[:, None]
            return np.asarray(np.round(total / total.sum(axis=2, keepdims=True), decimals))

        return map_row_chunks(of_rows, answers, np.empty_like(answers))


def shrunken_abilities(answers: NDArray[np.float64], crowd: float) -> NDArray[np.float64]:
    """Return the ability of each worker, (workers,), from expected answers [worker, truth, label] and the crowd's."""
    right, total = np.einsum("wzz->w", answers), np.einsum("wzx->w", answers)
    return np.asarray((right + OWN_ANSWERS * crowd) / (total + OWN_ANSWERS))


def distribution_of_wrong_answers(pool: AnswerFrequencies) -> NDArray[np.float64]:
    """Return p without z, the distribution of wrong answers, indexed [truth, label]."""
    errors = pool.label_shares * (1 - np.eye(pool.labels))
    return np.asarray(errors / np.maximum(errors.sum(axis=1, keepdims=True), TINY))


def own_ability_prior(
    reports: NDArray[np.float64],
    answers: NDArray[np.float64],
    participation: NDArray[np.float64],
    pool: AnswerFrequencies,
    weights: NDArray[np.float64] | None = None,
) -> OwnPrior:
    """Return the own prior of workers.

    Args:
        reports: posterior sums over listed reports, and then others, indexed [worker, truth, report].
        answers: expected answers, indexed [worker, truth, label].
        participation: P(answered), shape (workers,); 1 if it is public.
        pool: channel and answer frequencies.
        weights: of each worker, shape (workers,); None for 1.
    """
    errors, weights = distribution_of_wrong_answers(pool), np.ones(len(answers)) if weights is None else weights
    right = float(np.einsum("w,wzz->", weights, answers))
    crowd = float((right + 1) / (np.einsum("w,wzx->", weights, answers) + pool.labels))
    some = slice(None, None, -(-len(reports) // MAX_WORKERS) or 1)
    ability = shrunken_abilities(answers[some], crowd)
    ratio = excess_row_variance_share(reports[some], ability, participation[some], errors, pool, weights[some])
    strength = min(1 / max(ratio, TINY) - 1, MAX_STRENGTH) if right else 0.0
    return OwnPrior(max(strength, 0.0), crowd, errors)


def excess_row_variance_share(
    reports: NDArray[np.float64],
    ability: NDArray[np.float64],
    participation: NDArray[np.float64],
    errors: NDArray[np.float64],
    pool: AnswerFrequencies,
    weights_of_workers: NDArray[np.float64] | None = None,
) -> float:
    """Return r of the rows: 0 if rows vary around m as independent answers do, 1 if each always gives one answer.

    Only reports other than NULL count, and R is their distribution. Arguments as in
    `own_ability_prior` and `OwnPrior`.
    """
    model = pool.model
    told = np.flatnonzero(model.is_informative)
    table, counts = model.table[:, told], reports if len(told) == reports.shape[2] else reports[:, :, told]
    # R is a mixture of three distributions over reports: of the right answer, of wrong ones, and of no answer.
    right = table[: len(errors)]
    parts = np.stack((right, errors @ right, np.broadcast_to(table[-1], right.shape)))
    weights = np.stack((participation * ability, participation * (1 - ability), 1 - participation))[:, :, None]
    weights = weights / np.maximum((weights * parts.sum(axis=2)[:, None]).sum(axis=0), TINY)
    products = np.einsum("azy,bzy->abz", parts, parts)
    squares = np.einsum("awz,bwz,abz->wz", weights, weights, products)
    given = weights[:2] / np.maximum(participation, TINY)[:, None]
    scale = given.sum(axis=0)
    lengths = np.stack((products[0, 0], errors @ products[0, 0]))[:, None]
    spread = scale * (given * lengths).sum(axis=0) - np.einsum("awz,bwz,abz->wz", given, given, products[:2, :2])
    spread = spread * participation[:, None] ** 2
    number = np.einsum("wzy->wz", counts)
    met = sum(weight * np.einsum("wzy,zy->wz", counts, part) for weight, part in zip(weights, parts, strict=True))
    counted = np.ones((len(reports), 1)) if weights_of_workers is None else weights_of_workers[:, None]
    deviation = np.einsum("wzy,wzy->wz", counts, counts) + number**2 * squares - 2 * number * met
    pairs = counted * number * np.maximum(number - 1, 0)
    excess = max(float((counted * (deviation - number * (1 - squares))).sum()), 0.0)
    error = np.sqrt(2 * (pairs * (1 - squares) ** 2).sum() / max(len(told) - 1, 1))
    known = float((pairs * spread).sum())
    return (excess + pool.noise * float(error) + USUAL_PAIRS / (1 + USUAL_STRENGTH)) / (known + USUAL_PAIRS)
