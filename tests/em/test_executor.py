"""One process's part of a fit: steps that write over the posterior before, and steps that are broken off."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from crowdveil import DawidSkene, OneCoin, WeightedMean
from crowdveil.em.estimate import WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.executor import BlockWorker, FitTask, Step
from crowdveil.em.memory import MemoryPlan, PosteriorStore
from crowdveil.em.model import EStep, GoldBlock, Summary
from crowdveil.estimators import WeightedVote
from crowdveil.registry import Capabilities
from tests.engines.crowds import GOLD, REPORTS, in_blocks, stored
from tests.engines.test_worker import LocalClient, LocalEngine, captured

METHODS = (DawidSkene(), OneCoin(), WeightedVote(), WeightedMean())


def steps_of(work: FitTask[Any, Any], number: int) -> list[Step[Any, Any]]:
    """Return the first steps of a fit, from a worker of their own."""
    worker, steps = BlockWorker(work, MemoryPlan(1)), [Step(work.model, 1, work.initial)]
    while len(steps) < number:
        parts = [worker.step(index, steps[-1]) for index in range(len(work.blocks))]
        sums = [sum(fields) for fields in zip(*(statistics for statistics, _ in parts), strict=True)]
        parameters = work.model.m_step(type(parts[0][0])(*sums), steps[-1].parameters)
        steps.append(Step(work.model, len(steps) + 1, parameters))
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("scratch", [False, True])
@pytest.mark.parametrize("method", METHODS, ids=lambda one: one.name)
def test_a_step_that_is_broken_off_is_taken_again(method: Any, scratch: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that failed after it wrote over a posterior, or is taken twice, gives the bits of one that did not."""
    monkeypatch.setenv("CROWDVEIL_KERNELS", "compiled")
    with in_blocks():
        work = captured(method)
        steps = steps_of(work, 4)
    whole, broken = (BlockWorker(work, MemoryPlan(1, scratch=scratch)) for _ in range(2))
    for step in steps[:2]:
        for worker in (whole, broken):
            worker.step(1, step)
    store = PosteriorStore.store
    monkeypatch.setattr(PosteriorStore, "store", failing)
    with pytest.raises(OSError, match="full"):
        broken.step(1, steps[2])
    monkeypatch.setattr(PosteriorStore, "store", store)

    expected = whole.step(1, steps[2])
    for _ in range(2):
        again = broken.step(1, steps[2], lambda: steps[1])
        assert expected[1] == again[1] < np.inf
        np.testing.assert_array_equal(again[0][0], expected[0][0])
    last = [worker.step(1, steps[3]) for worker in (whole, broken)]

    assert last[0][1] == last[1][1]
    found = [worker.result(1, steps[3]).posterior for worker in (whole, broken)]
    np.testing.assert_array_equal(*found)


def failing(*_: Any) -> None:
    """Fail as a full disk does."""
    raise OSError("full")


class NoStatistics(NamedTuple):
    """Nothing to merge."""


@dataclass(frozen=True, kw_only=True)
class VoteMargins(Estimator[Summary, NoStatistics]):
    """Shares of votes, and two parameters of each task: its number of votes, and its largest share."""

    name: ClassVar[str] = "vote-margins"
    capabilities: ClassVar[Capabilities] = Capabilities(kind="categorical", iterative=False)
    task_parameters: ClassVar[tuple[str, ...]] = ("votes", "largest_share")
    max_steps: int = 1
    tolerance: float = 0.0

    def initialize(self, summary: Summary) -> Summary:
        """Return the counts."""
        return summary

    def e_step(self, block: GoldBlock, parameters: Summary) -> EStep[NoStatistics]:
        """Return shares of votes, uniform without any."""
        votes = np.zeros((block.block.tasks, parameters.labels))
        np.add.at(votes, (block.block.task, block.block.value), 1.0)
        total = votes.sum(axis=1)
        share = np.where(total[:, None] > 0, votes / np.maximum(total, 1)[:, None], 1 / parameters.labels)
        return EStep(NoStatistics(), share, task_parameters=np.stack((total, share.max(axis=1)), axis=1))

    def m_step(self, statistics: NoStatistics, parameters: Summary) -> Summary:
        """Return the counts."""
        return parameters

    def worker_table(self, statistics: NoStatistics, parameters: Summary) -> WorkerTable:
        """Return equal weights."""
        return WorkerTable(np.ones(parameters.workers), "weight")

    def log_likelihood(self, statistics: NoStatistics) -> None:
        """Return None."""
        return None


@pytest.mark.parametrize(
    "options",
    [{}, {"memory": 10_000_000}, {"engine": LocalEngine(LocalClient(((1, 2), (1, -1))))}],
    ids=["threads", "limited memory", "lost caches"],
)
def test_parameters_of_tasks_are_stored_as_posteriors_are(options: dict[str, Any]) -> None:
    """The estimate has them in task order, in threads, under a memory limit, and on engines whose caches are lost."""
    with in_blocks():
        estimate = VoteMargins().fit(stored(), **options)

    assert estimate.task_parameters is not None
    np.testing.assert_array_equal(REPORTS.per_task, estimate.task_parameters["votes"])
    np.testing.assert_array_equal(estimate.posterior.max(axis=1), estimate.task_parameters["largest_share"])
    assert ["task", "truth"] == [*estimate.tasks_columns()][:2]
    assert ["votes", "largest_share", "reports"] == [*estimate.tasks_columns()][-3:]
    part = estimate.part(3, 5).task_parameters
    assert part is not None
    np.testing.assert_array_equal(REPORTS.per_task[3:5], part["votes"])


@pytest.mark.parametrize("kernels", ["plain", pytest.param("compiled", marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", METHODS, ids=lambda one: one.name)
def test_progress_gets_the_largest_change(method: Any, kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a step is said to have moved is the largest difference of the posteriors of fits one step apart."""
    monkeypatch.setenv("CROWDVEIL_KERNELS", kernels)
    changes: list[float] = []
    with in_blocks():
        ends = [
            replace(method, tolerance=0.0, max_steps=steps).fit(REPORTS, gold=GOLD).posterior for steps in (1, 2, 3)
        ]
        replace(method, tolerance=0.0, max_steps=3).fit(
            REPORTS, gold=GOLD, progress=lambda _, moved: changes.append(moved)
        )

    assert changes == [np.inf, *(np.nanmax(np.abs(new - old)) for old, new in pairwise(ends))]
