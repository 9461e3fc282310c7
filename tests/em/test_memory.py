"""A fit in blocks: under a memory limit, and with steps that are broken off."""

import errno
import os
import tracemalloc
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.crowd_folder import categorical_crowd_folder

from crowdveil import (
    Categories,
    DawidSkene,
    Gaussian,
    OneCoin,
    OrdinalDawidSkene,
    RandomizedResponse,
    Reports,
    WeightedMean,
)
from crowdveil.answers.facts.asked import LISTED
from crowdveil.em import loop, memory
from crowdveil.em.engines.executor import Blocks, BlockWorker, FitTask, Step
from crowdveil.em.memory import MemoryNeeds, MemoryPlan, PosteriorStore, TooLittleMemory
from crowdveil.em.model import EStep, GoldBlock, MemoryUse
from crowdveil.errors import SettingsError
from crowdveil.estimators import ESTIMATORS, Estimator, Glad, WeightedVote
from crowdveil.randomness import seeded
from tests.em.engines.crowds import GOLD, REPORTS, assert_same, in_blocks, stored
from tests.em.engines.test_worker import LocalClient, LocalEngine, captured

ENOUGH = 1 << 40
KERNELS = ("plain", "compiled")
THREE = Categories(("1", "2", "3"), ordered=True)
LOAD = MemoryNeeds(
    reports=1000,
    tasks=100,
    blocks=4,
    all_tasks=4000,
    columns=2,
    workers=10,
    labels=2,
    counts=1840,
    compiled=True,
    extra=MemoryUse(10),
)


def least(estimator: Estimator[Any, Any]) -> int:
    """Return the smallest limit that a fit accepts, from its refusal of none."""
    with pytest.raises(SettingsError) as refused:
        estimator.fit(REPORTS, memory=0)
    assert isinstance(refused.value, TooLittleMemory)
    return refused.value.least


@pytest.mark.slow
@pytest.mark.parametrize("cls", ESTIMATORS.values(), ids=lambda cls: cls.name)
@pytest.mark.parametrize("kernels", KERNELS)
def test_a_limit_changes_no_number(cls: Any, kernels: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that are made anew in each step and posteriors in a file give the bits that memory gives."""
    monkeypatch.setenv("CROWDVEIL_KERNELS", kernels)
    monkeypatch.setenv("CROWDVEIL_THREADS", "2")
    REPORTS.save(tmp_path)
    estimator, gold = cls(max_steps=6), {3: "b"}
    with in_blocks():
        free = estimator.fit(REPORTS, gold=gold)
        tight = estimator.fit(Reports.open(tmp_path), gold=gold, memory=least(estimator))
        wide = estimator.fit(REPORTS, gold=gold, memory=ENOUGH)

    assert_same(tight, free)
    assert_same(wide, free)


def test_blocks_are_kept_only_where_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a cache every step and the intervals encode each block again; with it a block is encoded once."""
    made: list[int] = []
    block, coin = Blocks.__getitem__, OneCoin(max_steps=5, tolerance=0.0)

    def counted(self: Blocks, index: int) -> GoldBlock:
        made.append(index)
        return block(self, index)

    with in_blocks():
        limit = least(coin)
        monkeypatch.setattr(Blocks, "__getitem__", counted)
        blocks = len(list(REPORTS.blocks()))
        coin.fit(REPORTS, memory=limit)
        anew, made[:] = list(made), []
        coin.fit(REPORTS, memory=ENOUGH)

    assert blocks > 10
    assert 6 * list(range(blocks)) == anew
    assert list(range(blocks)) == made


def test_a_limit_below_one_block_is_refused() -> None:
    """Where not even one block fits, the error names what it takes."""
    with pytest.raises(SettingsError, match=r"memory must be at least [\d.]+ [KM]B for .* got 10 bytes\. Raise"):
        DawidSkene().fit(REPORTS, memory=10)
    assert WeightedMean().fit(REPORTS, memory=least(WeightedMean())).converged


def test_memory_is_allotted_in_order() -> None:
    """Threads come first, then posteriors, then coded blocks; without a limit all are kept."""
    one, two, posteriors = LOAD.working_set_bytes(1), LOAD.working_set_bytes(2), LOAD.posterior_bytes

    assert MemoryPlan(4) == MemoryPlan.for_limit(None, 4, LOAD)
    assert MemoryPlan(1, 0, scratch=True) == MemoryPlan.for_limit(one, 4, LOAD)
    assert MemoryPlan(1, two - 1 - one, scratch=two - 1 - one < posteriors) == MemoryPlan.for_limit(two - 1, 2, LOAD)
    assert MemoryPlan(2, 7, scratch=True) == MemoryPlan.for_limit(two + 7, 2, LOAD)
    assert MemoryPlan(2, posteriors - 1, scratch=True) == MemoryPlan.for_limit(two + posteriors - 1, 2, LOAD)
    assert MemoryPlan(2, 5, scratch=False) == MemoryPlan.for_limit(two + posteriors + 5, 2, LOAD)


CHANNEL = RandomizedResponse(alphabet=THREE, epsilon=6.0, participation="protected").channel()
SHAPES = {"tasks": (50, 60_000), "workers": (10_000, 4_000), "messages": (4_000, 600), "channel": (5_000, 2_000)}
"""Workers and tasks of crowds: few workers on many tasks, many on few, and smaller ones for slow fits."""
FITS = [
    *((cls, kernels, shape) for cls in ESTIMATORS.values() for kernels in KERNELS for shape in ("tasks", "workers")),
    *((Gaussian, kernels, "messages") for kernels in KERNELS),
    *((cls, "plain", "channel") for cls in (DawidSkene, OneCoin, OrdinalDawidSkene)),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return folders with about five answers to each task of these crowds."""
    found = {shape: tmp_path_factory.mktemp(shape) for shape in SHAPES}
    for shape, (workers, tasks) in SHAPES.items():
        crowd: Any = {"workers": workers, "tasks": tasks, "labels": THREE, "sparsity": 1 - 5 / workers}
        categorical_crowd_folder(found[shape], **crowd, source=seeded(1))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cls", "kernels", "shape"), [fit for fit in FITS if fit[0] is not Gaussian or fit[2] == "messages"]
)
def test_a_fit_takes_no_more_than_its_limit(
    cls: Any, kernels: str, shape: str, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The most that numpy has allocated at once, in one thread or two, is within the limit: the smallest that is
    accepted, and one that allows a cache. Names are on disk."""
    monkeypatch.setenv("CROWDVEIL_KERNELS", kernels)
    steps = 3 if shape in ("tasks", "workers") else 2
    channel = CHANNEL if shape == "channel" else None
    assert_within_limits(cls(max_steps=steps), folders[shape], monkeypatch, channel=channel)


def assert_within_limits(
    estimator: Estimator[Any, Any], crowd_folder: Path, monkeypatch: pytest.MonkeyPatch, channel: Any = None
) -> None:
    """Assert that fits allocate less than the smallest limit, and than larger ones."""
    monkeypatch.setattr(loop, "reports_per_reproducible_block", lambda reports, cells, compiled: 1 << 14)
    monkeypatch.setattr(loop, "BLOCK_REPORTS", 1 << 14)
    with in_blocks(1 << 14):
        with pytest.raises(TooLittleMemory) as refused:
            estimator.fit(Reports.open(crowd_folder).with_asked(LISTED), channel=channel, memory=0)
        least = refused.value.least
        estimator.fit(Reports.open(crowd_folder).with_asked(LISTED), channel=channel)  # loads what there is to load
        for threads, limit in ((1, least), (2, least), (2, 2 * least), (2, 3 * least)):
            monkeypatch.setenv("CROWDVEIL_THREADS", str(threads))
            reports = Reports.open(crowd_folder).with_asked(LISTED)
            tracemalloc.start()
            estimator.fit(reports, channel=channel, memory=limit)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < limit, f"{peak:,} of {limit:,} in {threads} threads"


@pytest.mark.parametrize("scratch", [False, True])
def test_posteriors_are_put_together(scratch: bool) -> None:
    """Posteriors and intervals come back in the order of tasks, whatever the order of putting; the last one counts."""
    held = PosteriorStore(5, scratch=scratch)
    assert held.stored_step_of_block(0, 1) is None
    held.store(2, 1, EStep(None, np.array([3.0, 4.0, 5.0]), np.full((3, 2), 0.5)))
    held.store(0, 1, EStep(None, np.array([9.0, 9.0]), np.zeros((2, 2))))
    held.store(0, 2, EStep(None, np.array([1.0, 2.0]), np.ones((2, 2))))

    _, posterior, interval, *_ = held.assemble_all_blocks()

    assert [1.0, 2.0, 3.0, 4.0, 5.0] == posterior.tolist()
    assert interval is not None
    assert [1.0, 1.0, 0.5, 0.5, 0.5] == interval[:, 1].tolist()
    assert [3.0, 4.0, 5.0] == [*getattr(held.stored_step_of_block(2, 1), "posterior", [])]
    assert held.stored_step_of_block(0, 1) is None


def test_scratch_files_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary folder is empty after a fit, though the estimate still reads its posteriors."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    estimate = Gaussian().fit(REPORTS, memory=least(Gaussian()))

    assert [] == list(tmp_path.iterdir())
    np.testing.assert_array_equal(np.isfinite(estimate.posterior), REPORTS.per_task > 0)


def test_a_scratch_file_without_a_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where temporary files cannot be written, the error says how large they are and where to point them."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))

    with pytest.raises(SettingsError, match=r"need 800 bytes .*TMPDIR"):
        memory.temporary_file_array((50, 2))


@pytest.mark.skipif("posix_fallocate" not in dir(os), reason="this system reserves no disk space")
def test_a_full_disk_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is reserved whole: what does not fit on the disk is refused before the first step, not by a signal."""

    def full(descriptor: int, offset: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)

    with pytest.raises(SettingsError, match=r"need 800 bytes .*No space left.*TMPDIR"):
        memory.temporary_file_array((50, 2))


METHODS = (DawidSkene(), OneCoin(), WeightedVote(), WeightedMean())


def steps_of(work: FitTask[Any, Any], number: int) -> list[Step[Any, Any]]:
    """Return the first steps of a fit, from a worker of their own."""
    worker, steps = BlockWorker(work, MemoryPlan(1)), [Step(work.model, 1, work.initial)]
    while len(steps) < number:
        parts = [worker.run_step_on_block(index, steps[-1]) for index in range(len(work.blocks))]
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
            worker.run_step_on_block(1, step)
    store = PosteriorStore.store
    monkeypatch.setattr(PosteriorStore, "store", failing)
    with pytest.raises(OSError, match="full"):
        broken.run_step_on_block(1, steps[2])
    monkeypatch.setattr(PosteriorStore, "store", store)

    expected = whole.run_step_on_block(1, steps[2])
    for _ in range(2):
        again = broken.run_step_on_block(1, steps[2], lambda: steps[1])
        assert expected[1] == again[1] < np.inf
        np.testing.assert_array_equal(again[0][0], expected[0][0])
    last = [worker.run_step_on_block(1, steps[3]) for worker in (whole, broken)]

    assert last[0][1] == last[1][1]
    one, other = (worker.last_block_result(1, steps[3]).posterior for worker in (whole, broken))
    np.testing.assert_array_equal(one, other)


def failing(*_: Any) -> None:
    """Fail as a full disk does."""
    raise OSError("full")


@pytest.mark.parametrize(
    "options",
    [{}, {"memory": 10_000_000}, {"engine": LocalEngine(LocalClient(((1, 2), (1, -1))))}],
    ids=["threads", "limited memory", "lost caches"],
)
def test_parameters_of_tasks_are_stored_as_posteriors_are(options: dict[str, Any]) -> None:
    """The estimate has them in task order, in threads, under a memory limit, and on engines whose caches are lost."""
    whole = Glad(max_steps=1).fit(REPORTS).task_parameters
    with in_blocks():
        estimate = Glad(max_steps=1).fit(stored(), **options)

    part = estimate.part(3, 5).task_parameters
    assert estimate.task_parameters is not None
    assert whole is not None
    assert part is not None
    np.testing.assert_allclose(estimate.task_parameters["difficulty"], whole["difficulty"], rtol=1e-12)
    np.testing.assert_allclose(part["difficulty"], whole["difficulty"][3:5], rtol=1e-12)
    assert ["difficulty", "reports"] == [*estimate.tasks_columns()][-2:]


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
