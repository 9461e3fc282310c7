"""Variance of the estimate of a share behind a channel, from the information of one report.

With p = f Q and J = Q diag(1/p) Q', the share g = f(l) / s among the answers has the gradient d(x) = (1[x = l] - g) / s
on labels, 0 on NULL, and the maximum of the likelihood of n reports the variance d' J^-1 d / n (Rao 1973, 5a). For
symmetric randomized response on S = K + 1 symbols, q = 1 / (S - 1 + e^epsilon) and k = (e^epsilon - 1) q, it is
    [p(l) (1 - g)^2 + g^2 (1 - p(l) - p(NULL)) - q^2 (1 - g K)^2] / (k s)^2 / n.
"""

import numpy as np
from numpy.typing import NDArray


def unit_variance(table: NDArray[np.float64], shares: NDArray[np.float64], labels: int, target: int) -> float:
    """Return n times the variance of the share of an input estimated from n reports.

    Args:
        table: P(report | input), indexed [input, report].
        shares: shares of the inputs among the cells asked, shape (inputs,).
        labels: number of labels, the first inputs; NULL may be one more.
        target: input; a label among the answers, or NULL among the cells asked.
    """
    inputs = len(table)
    among = (np.arange(inputs) < (labels if target < labels else inputs)).astype(float)
    total = float(shares @ among)
    gradient = ((np.arange(inputs) == target) - shares[target] / total * among) / total
    reports = shares @ table
    used = reports > 0
    information = table[:, used] / reports[used] @ table[:, used].T
    return float(gradient @ np.linalg.pinv(information, hermitian=True) @ gradient)
