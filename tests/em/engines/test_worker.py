"""Payloads of a distributed fit, and the cache of a worker process."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from crowdveil import DawidSkene, Gaussian, OneCoin, Reports
from crowdveil.answers.facts.asked import LISTED
from crowdveil.em.engines import worker
from crowdveil.em.engines.dask import DaskExecutor, check_versions, require_extra
from crowdveil.em.engines.executor import FitTask, Step
from crowdveil.em.engines.worker import (
    StoredFolder,
    block_statistics,
    drop_cache,
    dump,
    load,
    shared_parts,
)
from crowdveil.em.kernels.jit import KERNELS_VARIABLE
from crowdveil.errors import EngineError, ReportsError
from crowdveil.estimators import ESTIMATORS
from tests.em.engines.crowds import GOLD, REPORTS, assert_same, crowd, in_blocks, stored
from tests.estimators.dense import blocks_channel, random_reports, sent_alphabet


class LocalClient:
    """Client of a cluster of one worker in this process, whose futures are the results.

    Attributes:
        clear: step and block before which the worker loses its cache; block -1 is the collection of posteriors.
        awaited: how often there is no worker yet.
        environment: choice of kernels in the environment of the worker; None for that of this process.
        sent: all bytes sent.
    """

    def __init__(
        self, clear: tuple[tuple[int, int], ...] = (), awaited: int = 0, environment: str | None = None
    ) -> None:
        self.clear, self.awaited, self.environment = clear, awaited, environment
        self.sent: list[bytes] = []

    def nthreads(self) -> dict[str, int]:
        """Return a thread for each block, after the worker was awaited."""
        self.awaited -= 1
        return {} if self.awaited >= 0 else {"here": 100}

    def wait_for_workers(self, number: int, timeout: float) -> None:
        """Do nothing."""

    def submit(self, function: Any, *values: Any, **settings: Any) -> Any:
        """Return a future of the result of a function."""
        arguments = [self._arrived(value) for value in values]
        if function is bytes:
            self.sent.append(arguments[0])
        elif (
            arguments[0].step,
            arguments[0].block if function is block_statistics else -1,
        ) in self.clear:
            drop_cache(arguments[0].fit_id)
        changed = {} if self.environment is None else {KERNELS_VARIABLE: self.environment}
        with patch.dict("os.environ", changed):
            done = pickle.loads(pickle.dumps(function(*arguments)))
        return SimpleNamespace(result=lambda timeout: done, release=lambda: None, content=done)

    def _arrived(self, value: Any) -> Any:
        return getattr(value, "content", value)


@dataclass
class LocalEngine:
    """The engine `dask` on a client in this process."""

    client: LocalClient = field(default_factory=LocalClient)

    @contextmanager
    def open(self, work: FitTask[Any, Any]) -> Iterator[DaskExecutor]:
        """Open an executor."""
        yield DaskExecutor(self.client, work, work.memory)


@pytest.mark.slow
@pytest.mark.parametrize("cls", ESTIMATORS.values(), ids=lambda cls: cls.name)
def test_distributed_fits_give_the_same_bits(cls: Any) -> None:
    """Every estimator has the same bits from block tasks."""
    estimator = cls(max_steps=4)
    with in_blocks():
        assert_same(estimator.fit(stored(), gold=GOLD, engine=LocalEngine()), estimator.fit(REPORTS, gold=GOLD))


@pytest.mark.slow
@pytest.mark.parametrize("cls", ESTIMATORS.values(), ids=lambda cls: cls.name)
def test_the_order_in_memory_changes_no_bit(cls: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Compiled code, which rounds nothing, has the same bits from arrays that lost their order, and after a loss."""
    monkeypatch.setenv("CROWDVEIL_KERNELS", "compiled")
    reports = crowd(cls.capabilities.kind)
    reports.save(tmp_path)
    with in_blocks(500):
        engine = LocalEngine(LocalClient(((2, 0), (4, 1), (5, -1))))
        there = cls(max_steps=5).fit(Reports.open(tmp_path), engine=engine)
        assert_same(there, cls(max_steps=5).fit(reports))


def test_the_environment_of_a_worker_changes_no_bit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The process that begins a fit chooses its kernels, and not the environment of a worker."""
    reports = crowd("categorical")
    reports.save(tmp_path)
    with in_blocks(500):
        monkeypatch.setenv("CROWDVEIL_KERNELS", "compiled")
        expected = DawidSkene(max_steps=3).fit(reports)
        engine = LocalEngine(LocalClient(environment="plain"))
        assert_same(DawidSkene(max_steps=3).fit(Reports.open(tmp_path), engine=engine), expected)
        monkeypatch.setenv("CROWDVEIL_KERNELS", "plain")
        plain = DawidSkene(max_steps=3).fit(reports)
    assert not np.array_equal(plain.posterior, expected.posterior)


@pytest.mark.slow
def test_channels_and_compiled_code_give_the_same_bits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A channel, compiled code and a memory limit leave the bits unchanged."""
    channel = blocks_channel()
    reports = random_reports(np.random.default_rng(1), sent_alphabet(channel), tasks=30, workers=9, share=0.5)
    monkeypatch.setenv("CROWDVEIL_KERNELS", "compiled")
    reports.save(tmp_path)
    with in_blocks():
        expected = DawidSkene(max_steps=4).fit(reports, channel=channel)
        actual = DawidSkene(max_steps=4).fit(
            Reports.open(tmp_path).with_asked(LISTED), channel=channel, engine=LocalEngine(), memory=1_000_000
        )

    assert_same(actual, expected)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [DawidSkene(max_steps=6), OneCoin(max_steps=6), Gaussian(max_steps=6)], ids=str)
@pytest.mark.parametrize("clear", [((1, 2),), ((2, 0), (2, 3), (5, 1)), ((6, 5), (6, -1)), ((5, -1), (4, 4))])
def test_a_lost_cache_changes_no_number(estimator: Any, clear: tuple[tuple[int, int], ...]) -> None:
    """A cache lost in any step, or before posteriors are collected, leaves the same bits."""
    expected_steps: list[tuple[int, float]] = []
    actual_steps: list[tuple[int, float]] = []
    with in_blocks():
        expected = estimator.fit(REPORTS, gold=GOLD, progress=lambda *step: expected_steps.append(step))
        actual = estimator.fit(
            stored(),
            gold=GOLD,
            engine=LocalEngine(LocalClient(clear)),
            progress=lambda *step: actual_steps.append(step),
        )

    assert_same(actual, expected)
    assert expected_steps == actual_steps


@pytest.mark.slow
def test_an_outdated_posterior_is_not_reused() -> None:
    """A process that last had a block two steps ago recomputes its previous posterior."""
    with in_blocks():
        work = captured(DawidSkene())
        first, second = (DaskExecutor(LocalClient(), work, None) for _ in range(2))
        step = Step(work.model, 1, work.initial)
        for number in range(1, 5):
            whole = list(first.map(step))
            second._send_parameters_of_step(step)
            if number != 3:
                away = next(second._run_on_each_block(block_statistics))
            sums = [sum(parts) for parts in zip(*(statistics for statistics, _ in whole), strict=True)]
            parameters = work.model.m_step(type(whole[0][0])(*sums), step.parameters)
            step = Step(work.model, number + 1, parameters)

    assert whole[0][1] == away[1] < np.inf


def captured(estimator: Any) -> FitTask[Any, Any]:
    """Return the fit task of an estimator on the reports."""
    recorded: list[FitTask[Any, Any]] = []

    class RecordingEngine(LocalEngine):
        @contextmanager
        def open(self, work: FitTask[Any, Any]) -> Iterator[DaskExecutor]:
            recorded.append(work)
            with LocalEngine.open(self, work) as executor:
                yield executor

    estimator.fit(stored(), gold=GOLD, engine=RecordingEngine())
    return recorded[0]


def test_constants_are_sent_once() -> None:
    """The payload of a step holds estimated parameters only, and reads back."""
    few = captured(DawidSkene(max_steps=1)).initial
    client = LocalClient()
    DawidSkene(max_steps=2).fit(stored(), engine=LocalEngine(client))

    assert len(client.sent[-1]) < 3000 + few.confusion.nbytes < len(pickle.dumps(few)) + 10_000
    again = load(dump(few, shared_parts(few)), shared_parts(few))
    assert again.summary is few.summary
    np.testing.assert_array_equal(again.confusion, few.confusion)


def test_no_process_gets_the_counts_of_all_tasks(tmp_path: Path) -> None:
    """The context of a fit does not grow with the tasks if all tasks share one channel."""
    lengths = []
    for tasks in (1000, 100_000):
        many = Reports(REPORTS.task, REPORTS.worker, REPORTS.value, np.arange(tasks), np.arange(9), REPORTS.alphabet)
        many.save(tmp_path / f"{tasks:06}")
        client = LocalClient()
        OneCoin(max_steps=1).fit(Reports.open(tmp_path / f"{tasks:06}"), engine=LocalEngine(client))
        lengths.append(len(client.sent[0]))

    assert abs(lengths[1] - lengths[0]) < 200


def test_reports_in_memory_are_refused() -> None:
    """No report is sent to a cluster: blocks lie in a folder, and the refusal says how they get there."""
    with pytest.raises(EngineError, match=r"the reports are in memory\. Save them .*data encode"):
        OneCoin().fit(REPORTS, engine=LocalEngine())


def test_another_folder_is_refused(tmp_path: Path) -> None:
    """A process that finds other blocks under the same path raises an error."""
    REPORTS.save(tmp_path)
    folder = StoredFolder.of(Reports.open(tmp_path).rows)
    Reports(REPORTS.task, REPORTS.worker, REPORTS.value[::-1], REPORTS.tasks, REPORTS.workers, REPORTS.alphabet).save(
        tmp_path
    )

    with pytest.raises(ReportsError, match="all processes must read the same encoded blocks"):
        folder.open()


def test_a_worker_that_dies_before_its_first_task_is_awaited_again() -> None:
    """Blocks wait for another worker if the awaited one dies before it gets any."""
    client = LocalClient(awaited=2)

    assert_same(OneCoin().fit(stored(), engine=LocalEngine(client)), OneCoin().fit(REPORTS))
    assert client.awaited < 0


def test_the_number_of_cached_fits_is_limited() -> None:
    """A process keeps the caches of the last fits only."""
    for _ in range(worker.MAX_CACHED_FITS + 3):
        OneCoin(max_steps=1).fit(stored(), engine=LocalEngine())

    assert len(worker._CACHES) <= worker.MAX_CACHED_FITS


def test_an_absent_package_is_named() -> None:
    """The error of an engine whose package is missing names what to install."""
    with pytest.raises(
        EngineError, match=r'The engine dask needs the package no_such_package, .*pip install "crowdveil\[dask\]"'
    ):
        require_extra("no_such_package")


def test_other_versions_are_refused() -> None:
    """The error names a worker with another version, or with none."""
    from importlib.metadata import version

    check_versions({"tcp://a": version("crowdveil")})
    with pytest.raises(EngineError, match=r"1 of 2 differ: tcp://b has 0\.0\.7\. Install"):
        check_versions({"tcp://a": version("crowdveil"), "tcp://b": "0.0.7"})
    with pytest.raises(EngineError, match="tcp://b has none"):
        check_versions({"tcp://b": ModuleNotFoundError("crowdveil")})
