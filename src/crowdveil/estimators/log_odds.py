"""Models with one number per worker, whatever the number of labels: from shares of right reports to weights."""

import numpy as np
from numpy.typing import NDArray


def right_share(sums: NDArray[np.float64], reports: NDArray[np.int64], labels: int) -> NDArray[np.float64]:
    """Return the share of right reports of each worker, in [0, 1]; chance (1 / labels) where there is no report.

    Args:
        sums: from `agreement`, shape (workers,).
        reports: reports of each worker, shape (workers,).
        labels: number of labels.
    """
    share = np.full(len(sums), 1.0 / labels)
    # Rounding may carry a sum of posteriors a hair above the number of reports.
    return np.minimum(np.divide(sums, reports, out=share, where=reports > 0), 1.0)


def log_odds_weight(share: NDArray[np.float64], labels: int) -> NDArray[np.float64]:
    """Return log(share (labels - 1) / (1 - share)): how much a report of such a worker speaks for its label.

    0 at chance, negative below it; log(share / (1 - share)) for two labels. Wrong reports are spread evenly over the
    other labels.
    """
    return np.log(share) + np.log(labels - 1.0) - np.log1p(-share)
