"""Davidson's likelihood of a comparison with a side effect, through any finite channel.

Item scores s, and of worker w a slope a, a side bias b and a tie parameter theta. With d = s_left - s_right and
eta = (a d + b) / 2, the answers (left, tie, right) have the probabilities p = softmax(eta, theta, -eta), and the report
y has q_y = sum_k p_k C[k, y] (Davidson 1970; Davidson and Beaver 1977). Scores are exact derivatives of log q; the
information is the expected one, which is never negative.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NO_TIES = -30.0
"""Tie parameter where the answers have no tie."""


class RowTerms(NamedTuple):
    """Log-likelihood of each row, its derivatives by eta and theta, and their expected information, shape (rows,)."""

    log_likelihood: Floats
    eta: Floats
    tie: Floats
    eta_eta: Floats
    eta_tie: Floats
    tie_tie: Floats


def answer_probabilities(eta: Floats, tie: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the probabilities of left, tie and right, each of the shape of `eta`."""
    return _probabilities_and_normaliser(eta, tie)[0]


def _probabilities_and_normaliser(eta: Floats, tie: Floats) -> tuple[tuple[Floats, Floats, Floats], Floats]:
    """Return the probabilities, and the logarithm of the sum of exp(logits)."""
    top = np.maximum(np.abs(eta), tie)
    left, middle, right = np.exp(eta - top), np.exp(tie - top), np.exp(-eta - top)
    total = left + middle + right
    scale = 1 / total
    return (left * scale, middle * scale, right * scale), top + np.log(total)


def report_probabilities(eta: Floats, tie: Floats, table: Floats | None) -> Floats:
    """Return the probabilities of all reports, shape (..., reports); `table` is P(report | answer), or None."""
    answers = np.stack(answer_probabilities(eta, tie), axis=-1)
    return answers if table is None else answers @ table


def row_terms(eta: Floats, tie: Floats, report: NDArray[np.int32], table: Floats | None) -> RowTerms:
    """Return the terms of rows with these reports; `table` is P(report | answer), shape (3, reports), or None."""
    (left, middle, right), normaliser = _probabilities_and_normaliser(eta, tie)
    difference = left - right
    if table is None:
        sign, tied = 1.0 - report, report == 1
        return RowTerms(
            sign * eta + np.where(tied, tie, 0.0) - normaliser,
            sign - difference,
            tied - middle,
            left + right - difference * difference,
            -difference * middle,
            middle * (1 - middle),
        )
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    joint = np.stack([eta, np.broadcast_to(tie, eta.shape), -eta]) - normaliser + logs[:, report]
    top = joint.max(axis=0)
    posterior = np.exp(joint - top)
    total = posterior.sum(axis=0)
    posterior /= total
    return RowTerms(
        top + np.log(total),
        (posterior[0] - left) - (posterior[2] - right),
        posterior[1] - middle,
        *_expected_information(left, middle, right, table),
    )


def _expected_information(left: Floats, middle: Floats, right: Floats, table: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the expected information on (eta, eta), (eta, theta) and (theta, theta) of a report."""
    difference = left - right
    both, mixed, tied = np.zeros_like(left), np.zeros_like(left), np.zeros_like(left)
    for of_left, of_tie, of_right in table.T:
        probability = left * of_left + middle * of_tie + right * of_right
        inverse = np.divide(1.0, probability, out=np.zeros_like(left), where=probability > 0)
        by_eta = (left * of_left - right * of_right) * inverse - difference
        by_tie = middle * of_tie * inverse - middle
        both += probability * by_eta * by_eta
        mixed += probability * by_eta * by_tie
        tied += probability * by_tie * by_tie
    return both, mixed, tied
