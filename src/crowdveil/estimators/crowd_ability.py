"""The crowd's usual ability, learned with the workers' own: the centre that each of them is shrunk to.

Abilities are Beta variables whose strength (in pseudo-answers) is given and whose centre is one of a few candidates.
It is where the joint density of everything is largest, so that a step that learns it never lowers the objective.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

SPREAD = 0.1
"""Standard deviation of the crowd's ability around the expected one, before a single report is seen."""
STEPS = 20
LEAST = 1e-12


def candidates(expected: float) -> NDArray[np.float64]:
    """Return the centres to choose from, in [0, 1), the expected one among them; ascending, shape (candidates,)."""
    return np.unique(np.append(np.arange(STEPS) / STEPS, expected))


def log_density(
    centre: NDArray[np.float64] | float,
    expected: float,
    share: NDArray[np.float64],
    right: NDArray[np.float64],
    wrong: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the log-density of a centre and of the workers' shares given it, in log-odds.

    Args:
        centre: the crowd's ability, shape (candidates,) or one number.
        expected: where it is expected.
        share: each worker's probability of being right, shape (workers,).
        right, wrong: pseudo-answers that are right and wrong, indexed [candidate, worker] or broadcast to that.

    Returns:
        Shape (candidates,), up to one constant.
    """
    logs = np.log(np.maximum(share, LEAST)), np.log(np.maximum(1 - share, LEAST))
    workers = right * logs[0] + wrong * logs[1] - betaln(right, wrong)
    return np.sum(workers, axis=-1) - 0.5 * ((np.asarray(centre) - expected) / SPREAD) ** 2


def best_centre(
    expected: float, share: NDArray[np.float64], right: NDArray[np.float64], wrong: NDArray[np.float64]
) -> int:
    """Return the index of the likeliest of the candidates for `expected`; the arguments are those of `log_density`."""
    return int(log_density(candidates(expected), expected, share, right, wrong).argmax())
