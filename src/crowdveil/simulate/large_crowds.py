"""Made-up crowds of any size, drawn into a folder of encoded blocks: memory follows one block and the workers.

Truths and abilities, which no curator would know, are saved beside the answers, so that any inference can be scored.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Categories
from crowdveil.data.columnar_store import STORE_FILES, ReportChunk, write_encoded
from crowdveil.data.identifiers import NumberedIdentifiers
from crowdveil.data.public_lists import ALL_LISTS
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError
from crowdveil.files.atomic_write import Outputs, staged_outputs
from crowdveil.randomness import Seeded
from crowdveil.simulate.bernoulli import SUCCESSES_PER_CHUNK, bernoulli_indices, tasks_and_workers
from crowdveil.simulate.crowds import Draw, check_crowd, checked_prior, uniform_abilities

TRUTH_FILE, ABILITY_FILE = "truth.npy", "ability.npy"
TASKS_AT_ONCE = 1 << 18
"""Tasks whose truths are drawn together."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CrowdFolder:
    """A made-up crowd whose answers and truths lie in a folder.

    Attributes:
        answers: unprotected answers, read from the folder where they are used; tasks are named task-000, task-001, ...
            and workers worker-00, worker-01, ..., in as many digits as it takes.
        truth: label code of each task's truth, int16, shape (tasks,), read from the folder too.
        ability: probability of a correct answer of each worker, shape (workers,).
    """

    answers: Reports
    truth: NDArray[np.int16]
    ability: NDArray[np.float64]

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> "CrowdFolder":
        """Open what `categorical_crowd_folder` wrote.

        Raises:
            ReportsError: encoded blocks that are damaged, or truths or abilities that are absent or do not fit them.
        """
        answers = Reports.open(folder).with_public_lists(ALL_LISTS)
        truth = _column(Path(folder, TRUTH_FILE), "<i2", len(answers.tasks))
        return cls(
            answers=answers, truth=truth, ability=_column(Path(folder, ABILITY_FILE), "<f8", len(answers.workers))
        )


def categorical_crowd_folder(
    folder: str | PathLike[str],
    *,
    workers: int,
    tasks: int,
    labels: Categories,
    sparsity: float,
    prior: tuple[float, ...] | None = None,
    ability: Draw = uniform_abilities,
    source: Seeded,
    progress: Callable[[int, int], None] | None = None,
) -> CrowdFolder:
    """Make categorical answers as `categorical_crowd` does, but into a folder; the same law, other draws.

    Args:
        folder: where to; its files appear whole or not at all.
        workers, tasks: size of the crowd.
        labels: what an answer can be.
        sparsity: probability that a cell is NULL, in [0, 1), independently for every cell.
        prior: probability of each label to be a task's truth, sums to 1; uniform by default.
        ability: draws one probability per worker, clipped to [0, 1].
        source: seeded.
        progress: called with the tasks done and all tasks.

    Raises:
        SettingsError: a size, sparsity or prior out of range, or a folder that cannot be written.
    """
    check_crowd(workers, tasks, sparsity)
    generator, shares = source.generator, checked_prior(prior, labels.size)
    skill = np.clip(np.asarray(ability(generator, workers), dtype=float), 0.0, 1.0)
    names = NumberedIdentifiers.from_count("task-", tasks), NumberedIdentifiers.from_count("worker-", workers)
    outputs = Outputs(folder=Path(folder), names=(TRUTH_FILE, ABILITY_FILE, *STORE_FILES), kind="made-up crowd")
    with staged_outputs(outputs) as temporary:
        np.save(temporary / ABILITY_FILE, skill)
        truth = np.lib.format.open_memmap(temporary / TRUTH_FILE, mode="w+", dtype="<i2", shape=(tasks,))
        for first in range(0, tasks, TASKS_AT_ONCE):
            part = truth[first : first + TASKS_AT_ONCE]
            part[:] = generator.choice(labels.size, size=len(part), p=shares)
        parts = _answers(generator, truth, skill, labels.size, 1 - sparsity, progress)
        write_encoded(temporary, parts, *names, labels)
    return CrowdFolder.open(folder)


def _answers(
    generator: np.random.Generator,
    truth: NDArray[np.int16],
    skill: NDArray[np.float64],
    labels: int,
    probability: float,
    progress: Callable[[int, int], None] | None,
) -> Iterator[ReportChunk]:
    """Draw ranges of tasks one after the other: each cell by its own coin, wrong answers alike."""
    span = max(1, int(SUCCESSES_PER_CHUNK / (probability * len(skill))))
    for first in range(0, len(truth), span):
        known = np.asarray(truth[first : first + span])
        task, worker = tasks_and_workers(bernoulli_indices(generator, len(known) * len(skill), probability), len(skill))
        wrong = generator.random(len(task)) >= skill[worker]
        value = known[task]
        value[wrong] = (value[wrong] + generator.integers(1, labels, np.count_nonzero(wrong), dtype=np.int16)) % labels
        yield ReportChunk(task + np.int32(first), worker, value)
        if progress is not None:
            progress(first + len(known), len(truth))


def _column(path: Path, kind: str, size: int) -> NDArray[Any]:
    """Map an array from a file."""
    try:
        column: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ReportsError(
            "a made-up crowd must have its truths and abilities", source=str(path), examples=str(error)[:200]
        ) from error
    if column.shape != (size,) or column.dtype != np.dtype(kind):
        raise ReportsError(
            f"there must be {size} numbers of type {kind}", source=str(path), examples=f"{column.shape}, {column.dtype}"
        )
    return column.view(np.ndarray)
