"""Groups of tasks with similar posteriors, and a channel for each, designed for the mean posterior of the group.

Every label keeps a tenth of an even share: a mistake of earlier reports can be undone. The groups are the clusters of
Lloyd's algorithm from starts by Gonzalez (1985), each the task farthest from those before, first from the mean. They
depend on the posteriors and the order of tasks alone.
"""

import numpy as np
from numpy.typing import NDArray

MOST_GROUPS, STEPS = 12, 10
"""Largest number of groups, and steps of Lloyd's algorithm."""
FLOOR = 0.1
"""Least probability of a label, in even shares."""


def posterior_groups(
    posterior: NDArray[np.float64], most: int = MOST_GROUPS
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the group of each task, shape (tasks,), and the mean posterior of each group, shape (groups, labels).

    Args:
        posterior: probabilities of the labels, shape (tasks, labels).
        most: largest number of groups.
    """
    raised = np.maximum(posterior, FLOOR / posterior.shape[1])
    raised /= raised.sum(axis=1, keepdims=True)
    starts = [raised[((raised - raised.mean(axis=0)) ** 2).sum(axis=1).argmax()]]
    nearest = ((raised - starts[0]) ** 2).sum(axis=1)
    while len(starts) < most and nearest.max() > 0:
        starts.append(raised[nearest.argmax()])
        nearest = np.minimum(nearest, ((raised - starts[-1]) ** 2).sum(axis=1))
    centres = np.array(starts)
    for _ in range(STEPS):
        closest = np.argmin([((raised - centre) ** 2).sum(axis=1) for centre in centres], axis=0)
        group = np.unique(closest, return_inverse=True)[1]
        centres = np.array([raised[group == index].mean(axis=0) for index in range(int(group.max()) + 1)])
    return group, centres
