"""Rows of a confusion matrix that share the worker's own ability: a two-level prior whose strength is learned.

With N[i, z, x] expected answers of worker i, n[i, z] their sum over x, and p the answer frequencies, the own prior has
    m[i, z] = a_i e_z + (1 - a_i) p without z,   a_i = (sum_z N[i, z, z] + 2 A) / (sum_z n[i, z] + 2),
A = share of right answers of the crowd. Rows that vary around m as Dirichlet(s m) have
    E sum (N - n m)^2 = sum n (1 - sum_x m^2) (1 + max(n - 1, 0) r),   r = 1 / (1 + s),
which is solved for s (method of moments, as for a Dirichlet-multinomial). Rows of real crowds differ, with s up to 20:
the prior of all workers covers that. What s has more, the own prior has as pseudo-answers.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.kernels import map_row_chunks

OWN_ANSWERS = 2.0
"""Pseudo-answers of the crowd's ability in a worker's own."""
USUAL_STRENGTH, MAX_STRENGTH = 20.0, 200.0
"""Strength up to which rows differ as in real crowds (0.5 to 12 on ten public sets), and upper bound of a learned one."""
TINY = 1e-12


class OwnPrior(NamedTuple):
    """Prior of the rows of every worker by the own ability.

    Attributes:
        strength: learned pseudo-answers s of a row, `MAX_STRENGTH` at most; 0 without answers.
        ability: A, the crowd's share of right answers.
        errors: p without z, indexed [truth, label], rows sum to 1, diagonal 0.
    """

    strength: float
    ability: float
    errors: NDArray[np.float64]

    @property
    def answers(self) -> float:
        """Pseudo-answers of a row: the strength beyond that of real crowds."""
        return max(self.strength - USUAL_STRENGTH, 0.0)

    @property
    def weight(self) -> float:
        """Share of the strength in `answers`, in [0, 1)."""
        return self.answers / max(self.strength, USUAL_STRENGTH)

    def normalized(
        self, answers: NDArray[np.float64], dirichlet_prior: NDArray[np.float64], decimals: int
    ) -> NDArray[np.float64]:
        """Return confusion matrices, [worker, truth, label], from expected answers and both priors, rounded."""

        def of_rows(rows: NDArray[np.float64]) -> NDArray[np.float64]:
            right = np.einsum("wzz->wz", rows).sum(axis=1)
            ability = own_abilities(right, rows.sum(axis=(1, 2)), self.ability)[:, None, None]
            total = rows + dirichlet_prior + (self.answers * (1 - ability)) * self.errors
            np.einsum("wzz->wz", total)[...] += self.answers * ability[:, 0]
            return np.asarray(np.round(total / total.sum(axis=2, keepdims=True), decimals))

        return map_row_chunks(of_rows, answers, np.empty_like(answers))


def own_abilities(right: NDArray[np.float64], answers: NDArray[np.float64], crowd: float) -> NDArray[np.float64]:
    """Return the ability of each worker, shape (workers,), from numbers of right answers and of all, and the crowd's."""
    return np.asarray((right + OWN_ANSWERS * crowd) / (answers + OWN_ANSWERS))


def learn_own_prior(answers: NDArray[np.float64], label_shares: NDArray[np.float64]) -> OwnPrior:
    """Return the own prior of workers with these expected answers.

    Args:
        answers: indexed [worker, truth, label].
        label_shares: positive answer frequencies, shape (labels,).
    """
    total, right = np.einsum("wzx->wz", answers), np.einsum("wzz->wz", answers)
    labels = len(label_shares)
    crowd = float((right.sum() + 1) / (total.sum() + labels))
    errors = np.tile(label_shares, (labels, 1)) * (1 - np.eye(labels))
    errors /= np.maximum(errors.sum(axis=1, keepdims=True), TINY)
    ability = own_abilities(right.sum(axis=1), total.sum(axis=1), crowd)
    miss = 1 - ability
    squares = ability[:, None] ** 2 + miss[:, None] ** 2 * (errors**2).sum(axis=1)
    # sum_x N m, without an array of m.
    product = ability[:, None] * right + miss[:, None] * np.einsum("wzx,zx->wz", answers, errors)
    deviation = float(np.einsum("wzx,wzx->", answers, answers) + (total**2 * squares - 2 * total * product).sum())
    plain, shared = (float((number * (1 - squares)).sum()) for number in (total, total * np.maximum(total - 1, 0)))
    excess = max(deviation - plain, 0.0)
    strength = min(max(shared - excess, 0.0) / max(excess, TINY), MAX_STRENGTH) if total.any() else 0.0
    return OwnPrior(strength, crowd, errors)
