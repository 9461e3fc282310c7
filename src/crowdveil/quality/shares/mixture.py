"""Likelihood of the shares of inputs behind report counts, and its maximum with one share held.

Reports y on a task are draws from sum_x f(x) Q[x, y], where Q is the channel and f the shares of the cells asked, "no
answer" (NULL) included where it is protected. With s = 1 - f(NULL), g = f(l) / s is the share of label l among the
answers. With g held the model is again a mixture, with the rows Q[NULL] and g Q[l] + (1 - g) Q[x] for every other label
x, so one solver gives the maximum and the profile.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.deconvolution import estimate_frequencies

PSEUDO_COUNT = 1e-6
"""Pseudo-reports of each input symbol, with which the solver stays inside the simplex."""
RANGE_ERROR = 1e-6
"""Relative size of a singular value, and of a distance from the table's range, that counts as 0."""


class Fit(NamedTuple):
    """Largest log-likelihood, shape (rows,); the shares of the mixed rows, and P(report), indexed [row, ...]."""

    log_likelihood: NDArray[np.float64]
    shares: NDArray[np.float64]
    reports: NDArray[np.float64]


def fit(counts: NDArray[np.float64], table: NDArray[np.float64]) -> Fit:
    """Return the fit of a mixture to each row of counts.

    Args:
        counts: indexed [row, report].
        table: P(report | input), indexed [input, report], or [row, input, report].
    """
    shares = estimate_frequencies(counts / PSEUDO_COUNT, table, np.ones(table.shape[-2]))
    reports = (shares[:, None] @ table)[:, 0]
    return Fit((counts * np.log(reports)).sum(axis=1), shares, reports)


def fit_with_share(
    counts: NDArray[np.float64], table: NDArray[np.float64], labels: int, target: int, share: NDArray[np.float64]
) -> Fit:
    """Return the fit of each row whose share of an input is held; of a label among the answers, of NULL among all."""
    return fit(counts, _tables_with_share(table, labels, target, share))


def share_of(fitted: NDArray[np.float64], target: int, labels: int) -> NDArray[np.float64]:
    """Return the share of an input: of a label among the answers, of NULL among all; shape (rows,)."""
    return fitted[:, target] / (fitted[:, :labels].sum(axis=1) if target < labels else 1.0)


def determined_inputs(table: NDArray[np.float64], labels: int) -> NDArray[np.bool_]:
    """Return whether the distribution of reports determines each share: its unit vector lies in the table's range."""
    off = table @ np.linalg.pinv(table, rcond=RANGE_ERROR) - np.eye(len(table))
    inside = np.abs(off).max(axis=0) < RANGE_ERROR
    return np.asarray(inside & inside[labels:].all())


def _tables_with_share(
    table: NDArray[np.float64], labels: int, target: int, share: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the rows of the mixtures in which the share of an input is held, indexed [row, mixed input, report]."""
    others = np.delete(table[:labels], target, axis=0) if target < labels else table[:labels]
    mixed = share[:, None, None] * table[target] + (1 - share)[:, None, None] * others
    if target >= labels:
        return mixed
    free = np.broadcast_to(table[labels:], (len(share), len(table) - labels, table.shape[1]))
    return np.concatenate((mixed, free), axis=1)
