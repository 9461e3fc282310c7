"""One-coin crowds of any size in a folder of encoded blocks."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.answers.columnar_store import ReportChunk, save_encoded
from crowdveil.answers.facts.asked import STATED
from crowdveil.answers.identifiers import LazyIdentifiers
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories
from crowdveil.randomness import Seeded
from crowdveil.simulate import uniform_abilities
from crowdveil.simulate.bernoulli import SUCCESSES_PER_CHUNK, bernoulli_indices

TRUTH_FILE = "truth.npy"
TRUTHS_PER_DRAW = 1 << 18
"""Tasks whose truths are drawn together."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CrowdFolder:
    """Simulated crowd with answers and truths in a folder.

    Attributes:
        answers: unprotected answers, mapped from the folder; tasks are named task-000, task-001, ..., workers
            worker-00, worker-01, ..., with equal numbers of digits.
        truth: label code of each task's truth, int16, shape (tasks,), mapped from the folder.
    """

    answers: Reports
    truth: NDArray[np.int16]

    @classmethod
    def open(cls, folder: Path) -> "CrowdFolder":
        """Return the crowd that `categorical_crowd_folder` wrote."""
        answers = Reports.open(folder).with_asked(STATED)
        return cls(answers=answers, truth=np.load(folder / TRUTH_FILE, mmap_mode="r"))


def numbered_names(prefix: str, count: int) -> LazyIdentifiers:
    """Return names of a prefix and a number from 0, as wide as the last number: task-000."""
    digits = pc.utf8_lpad(pc.cast(pa.array(np.arange(count)), pa.string()), len(str(count - 1)), "0")
    return LazyIdentifiers(pa.chunked_array([pc.binary_join_element_wise(prefix, digits, "")]))


def categorical_crowd_folder(
    folder: Path, *, workers: int, tasks: int, labels: Categories, sparsity: float, source: Seeded
) -> CrowdFolder:
    """Return a one-coin crowd of any size in a folder: even labels, abilities uniform on [0.5, 1].

    Memory is that of one block and one number per worker. Each cell is NULL with probability `sparsity`.
    """
    generator = source.generator
    skill = uniform_abilities(generator, workers)
    names = numbered_names("task-", tasks), numbered_names("worker-", workers)
    folder.mkdir(parents=True, exist_ok=True)
    truth = np.lib.format.open_memmap(folder / TRUTH_FILE, mode="w+", dtype="<i2", shape=(tasks,))
    for first in range(0, tasks, TRUTHS_PER_DRAW):
        part = truth[first : first + TRUTHS_PER_DRAW]
        part[:] = generator.integers(labels.size, size=len(part))
    save_encoded(folder, _answers(generator, truth, skill, labels.size, 1 - sparsity), *names, labels)
    return CrowdFolder.open(folder)


def _answers(
    generator: np.random.Generator,
    truth: NDArray[np.int16],
    skill: NDArray[np.float64],
    labels: int,
    probability: float,
) -> Iterator[ReportChunk]:
    """Yield the answers of consecutive ranges of tasks."""
    span = max(1, int(SUCCESSES_PER_CHUNK / (probability * len(skill))))
    for first in range(0, len(truth), span):
        known = np.asarray(truth[first : first + span])
        cells = bernoulli_indices(generator, len(known) * len(skill), probability)
        task, worker = (part.astype(np.int32) for part in np.divmod(cells, len(skill)))
        wrong = generator.random(len(task)) >= skill[worker]
        value = known[task]
        value[wrong] = (value[wrong] + generator.integers(1, labels, np.count_nonzero(wrong), dtype=np.int16)) % labels
        yield ReportChunk(task + np.int32(first), worker, value)
