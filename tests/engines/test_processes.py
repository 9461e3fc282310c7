"""Engine `processes`: the same bits as threads, also after processes die."""

import io
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from crowdveil import DawidSkene, OneCoin, Reports
from crowdveil.em.executor import FitTask
from crowdveil.engines import ENGINES, Processes, process_main, processes
from crowdveil.engines.driver import FitDriver
from crowdveil.engines.processes import ProcessHandle
from crowdveil.errors import EngineError, SettingsError
from crowdveil.estimators import ESTIMATORS
from tests.engines.crowds import GOLD, REPORTS, assert_damage_is_refused, assert_same, in_blocks
from tests.estimators.dense import blocks_channel, random_reports, sent_alphabet

DRIVER = """
import time
from crowdveil.engines.processes import ProcessHandle
handle = ProcessHandle()
print(handle.submit(abs, -1, "a short call").result(), flush=True)
handle.submit(time.sleep, 600, "a long call").result()
"""


@dataclass
class ReusedProcesses:
    """Engine whose processes serve several fits, since they take a second to start."""

    handles: list[ProcessHandle]
    folder: Path

    @contextmanager
    def open(self, work: FitTask[Any, Any]) -> Iterator[processes.ProcessExecutor]:
        """Open an executor on the same processes."""
        yield processes.ProcessExecutor(
            FitDriver(work, processes.FileTransport(self.folder), work.memory), self.handles
        )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReusedProcesses]:
    """Two processes for all tests of this file."""
    both = [ProcessHandle() for _ in range(2)]
    yield ReusedProcesses(both, tmp_path_factory.mktemp("payloads"))
    for handle in both:
        handle.close()


@pytest.mark.parametrize("cls", ESTIMATORS.values(), ids=lambda cls: cls.name)
@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "in a folder"])
def test_processes_give_the_same_bits(cls: Any, stored: bool, kept: ReusedProcesses, tmp_path: Path) -> None:
    """Every estimator has the same bits from processes, with blocks sent or read from a folder."""
    estimator, reports = cls(max_steps=4), REPORTS
    if stored:
        REPORTS.save(tmp_path)
        reports = Reports.open(tmp_path)
    with in_blocks():
        assert_same(estimator.fit(reports, gold=GOLD, engine=kept), estimator.fit(REPORTS, gold=GOLD))


def test_channels_and_compiled_code_give_the_same_bits(kept: ReusedProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    """A channel, compiled code and a memory limit leave the bits unchanged."""
    channel = blocks_channel()
    reports = random_reports(np.random.default_rng(1), sent_alphabet(channel), tasks=30, workers=9, share=0.5)
    monkeypatch.setenv("CROWDVEIL_KERNELS", "compiled")
    with in_blocks():
        expected = DawidSkene(max_steps=4).fit(reports, channel=channel)
        actual = DawidSkene(max_steps=4).fit(reports, channel=channel, engine=kept, memory=1_000_000)

    assert_same(actual, expected)


@pytest.mark.parametrize("moment", [1, 2, 5])
def test_a_killed_process_changes_no_number(moment: int, kept: ReusedProcesses) -> None:
    """A process that is killed after any step, even the first, is replaced, and the fit ends with the same bits."""
    estimator = DawidSkene(max_steps=6)

    def kill(step: int, _: float) -> None:
        if step == moment:
            kept.handles[moment % 2].process.kill()

    with in_blocks():
        assert_same(estimator.fit(REPORTS, engine=kept, progress=kill), estimator.fit(REPORTS))


def test_a_process_killed_at_work_changes_no_number(kept: ReusedProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process killed while it works on a block is replaced, and the block is repeated."""
    handle, estimator = kept.handles[0], DawidSkene(max_steps=3)
    exchange, done = handle._exchange, threading.Event()

    def fatal(function: Any, task: Any) -> Any:
        if task.step == 2 and task.index == 4 and not done.is_set():
            done.set()
            handle.process.stdin.write(pickle.dumps((time.sleep, 60)))  # type: ignore[union-attr]
            handle.process.stdin.flush()  # type: ignore[union-attr]
            threading.Timer(0.1, handle.process.kill).start()
            return pickle.load(handle.process.stdout)  # type: ignore[arg-type]
        return exchange(function, task)

    monkeypatch.setattr(handle, "_exchange", fatal)
    with in_blocks():
        assert_same(estimator.fit(REPORTS, engine=kept), estimator.fit(REPORTS))
    assert done.is_set()


def test_processes_that_die_again_and_again_end_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that kills every process ends the fit with an error that names the block and a remedy."""
    monkeypatch.setattr(processes, "COMMAND", (sys.executable, "-c", "import sys; sys.stdin.buffer.read(1)"))

    with pytest.raises(
        EngineError, match=r"Worker processes died while working on block 1 \(3 attempts\)\. Memory may be"
    ):
        OneCoin().fit(REPORTS, engine=Processes(processes=1))


def test_errors_arrive_as_they_are(kept: ReusedProcesses, tmp_path: Path) -> None:
    """Damaged blocks raise the same error class and message as in one thread."""
    assert_damage_is_refused(kept, tmp_path)


def test_a_fit_starts_and_stops_its_own_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process outlives the fit that started it."""
    started: list[subprocess.Popen[bytes]] = []
    start = processes._start
    monkeypatch.setattr(processes, "_start", lambda: started.append(start()) or started[-1])
    monkeypatch.setenv("CROWDVEIL_THREADS", "2")
    with in_blocks():
        assert_same(OneCoin(max_steps=3).fit(REPORTS, engine=Processes()), OneCoin(max_steps=3).fit(REPORTS))

    assert [True, True] == [process.poll() is not None for process in started]


def test_a_worker_process_serves_until_its_input_ends() -> None:
    """Results are written in order of the calls, exceptions included."""
    results = io.BytesIO()
    process_main.serve([(len, "abc"), (len, 3)], results)
    results.seek(0)

    assert (True, 3) == pickle.load(results)
    good, error = pickle.load(results)
    assert not good
    assert isinstance(error, TypeError)


@pytest.mark.parametrize(
    ("rest", "code"), [(b"", 0), (pickle.dumps((len, "abc"))[:-1], 0), (b"cnowhere\nnothing\n.", 1)]
)
def test_a_worker_process_ends_when_its_input_does(rest: bytes, code: int) -> None:
    """Calls are yielded as they come; the end of the stream and an unreadable call end the process."""
    codes = SimpleQueue[int]()
    calls = process_main.read_calls(io.BytesIO(pickle.dumps((len, "abc")) + rest), codes.put)

    assert (len, "abc") == next(calls)
    assert code == codes.get(timeout=60)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_worker_processes_end_with_their_driver(number: signal.Signals) -> None:
    """A worker process in the middle of a call ends when its driver is killed."""
    started = [sys.executable, "-c", DRIVER]
    with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert "1\n" == driver.stdout.readline()
        driver.send_signal(number)
        # Both processes hold this pipe: it ends when the last of them has ended.
        driver.communicate(timeout=60)

    assert -number == driver.returncode


def test_zero_processes_are_refused() -> None:
    """The number of processes is at least one."""
    with pytest.raises(SettingsError, match="processes must be at least 1, got 0"):
        Processes(processes=0)


def test_engines_are_listed_by_command_line_name() -> None:
    """Keys of `ENGINES` are the names of the command line."""
    assert ["threads", "processes", "dask"] == list(ENGINES)
