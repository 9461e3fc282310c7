"""Sum over workers of matrix-factorization reports, from the devices of a crowd."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.reports import Reports
from crowdveil.mechanisms import MatrixFactorization
from crowdveil.randomness import Seeded, Source


class Sums(NamedTuple):
    """Sum over workers of their reports, shape (2 * dimensions,), and their mechanism."""

    mechanism: MatrixFactorization
    summed: NDArray[np.int64]


def worker_answer_codes(answers: Reports) -> Iterator[NDArray[np.int64]]:
    """Yield each worker's answers in the form of a device: one code per task, `labels` where NULL."""
    order = np.argsort(answers.worker, kind="stable")
    for own in np.split(order, np.cumsum(answers.per_worker)[:-1]):
        codes = np.full(len(answers.tasks), answers.labels, dtype=np.int64)
        codes[answers.task[own]] = answers.value[own]
        yield codes


def sum_device_reports(
    answers: Reports,
    mechanism: MatrixFactorization,
    source: Source,
    progress: Callable[[int, int], None] | None = None,
) -> Sums:
    """Return the sum of the reports of all devices; a seeded source draws the noise of all workers at once."""
    tasks, workers = len(answers.tasks), len(answers.workers)
    if isinstance(source, Seeded):
        return Sums(mechanism, mechanism.simulate_sum_of_reports(answers.task, answers.value, tasks, workers, source))
    summed = np.zeros(2 * (mechanism.dimensions or tasks), dtype=np.int64)
    for done, codes in enumerate(worker_answer_codes(answers), start=1):
        summed += mechanism.perturb(codes, source)
        if progress is not None:
            progress(done, workers)
    return Sums(mechanism, summed)
