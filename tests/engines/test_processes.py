"""The engine `processes`: the bits of one thread, whoever dies."""

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
from crowdveil.engines import processes as lanes
from crowdveil.engines.driver import Dispatch
from crowdveil.engines.processes import ProcessHandle
from crowdveil.errors import EngineError, SettingsError
from crowdveil.estimators import ESTIMATORS
from tests.engines.crowds import GOLD, REPORTS, assert_damage_is_refused, assert_same, in_blocks
from tests.estimators.dense import blocks_channel, random_reports, sent_alphabet

DRIVER = """
import time
from crowdveil.engines.processes import ProcessHandle
lane = ProcessHandle()
print(lane.ask(abs, -1, "a short call").result(), flush=True)
lane.ask(time.sleep, 600, "a long call").result()
"""


@dataclass
class Kept:
    """An engine whose processes stay for the next fit, for they take a second to start."""

    lanes: list[ProcessHandle]
    folder: Path

    @contextmanager
    def open(self, work: FitTask[Any, Any]) -> Iterator[processes.ProcessCrew]:
        """Give the same processes again."""
        yield processes.ProcessCrew(Dispatch(work, processes.FileTransport(self.folder), work.memory), self.lanes)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    """Two processes for all tests of this file."""
    both = [ProcessHandle() for _ in range(2)]
    yield Kept(both, tmp_path_factory.mktemp("letters"))
    for lane in both:
        lane.close()


@pytest.mark.parametrize("cls", ESTIMATORS.values(), ids=lambda cls: cls.name)
@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "in a folder"])
def test_processes_give_the_same_bits(cls: Any, stored: bool, kept: Kept, tmp_path: Path) -> None:
    """Every estimator has the same numbers from processes, whether blocks are sent to them or read by them."""
    estimator, reports = cls(max_steps=4), REPORTS
    if stored:
        REPORTS.save(tmp_path)
        reports = Reports.open(tmp_path)
    with in_blocks():
        assert_same(estimator.fit(reports, gold=GOLD, engine=kept), estimator.fit(REPORTS, gold=GOLD))


def test_channels_and_compiled_code_go_along(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a channel, on compiled code and under a limit the bits are the same too."""
    channel = blocks_channel()
    reports = random_reports(np.random.default_rng(1), sent_alphabet(channel), tasks=30, workers=9, share=0.5)
    monkeypatch.setenv("CROWDVEIL_KERNELS", "compiled")
    with in_blocks():
        expected = DawidSkene(max_steps=4).fit(reports, channel=channel)
        actual = DawidSkene(max_steps=4).fit(reports, channel=channel, engine=kept, memory=1_000_000)

    assert_same(actual, expected)


@pytest.mark.parametrize("moment", [1, 2, 5])
def test_a_killed_process_changes_no_number(moment: int, kept: Kept) -> None:
    """A process that is killed after any step, even the first, is replaced, and the fit ends with the same bits."""
    estimator = DawidSkene(max_steps=6)

    def kill(step: int, _: float) -> None:
        if step == moment:
            kept.lanes[moment % 2].process.kill()

    with in_blocks():
        assert_same(estimator.fit(REPORTS, engine=kept, progress=kill), estimator.fit(REPORTS))


def test_a_process_killed_at_work_changes_no_number(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed after it got a block and before it answered is replaced; the block is done again."""
    lane, estimator = kept.lanes[0], DawidSkene(max_steps=3)
    exchange, done = lane._exchange, threading.Event()

    def fatal(function: Any, order: Any) -> Any:
        if order.number == 2 and order.index == 4 and not done.is_set():
            done.set()
            lane.process.stdin.write(pickle.dumps((time.sleep, 60)))  # type: ignore[union-attr]
            lane.process.stdin.flush()  # type: ignore[union-attr]
            threading.Timer(0.1, lane.process.kill).start()
            return pickle.load(lane.process.stdout)  # type: ignore[arg-type]
        return exchange(function, order)

    monkeypatch.setattr(lane, "_exchange", fatal)
    with in_blocks():
        assert_same(estimator.fit(REPORTS, engine=kept), estimator.fit(REPORTS))
    assert done.is_set()


def test_processes_that_die_again_and_again_end_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that nobody survives ends the fit with its number and the way out, not with a hang."""
    monkeypatch.setattr(lanes, "COMMAND", (sys.executable, "-c", "import sys; sys.stdin.buffer.read(1)"))

    with pytest.raises(EngineError, match=r"Processes died while working on block 1 \(3 attempts\)\. Memory may be"):
        OneCoin().fit(REPORTS, engine=Processes(processes=1))


def test_errors_arrive_as_they_are(kept: Kept, tmp_path: Path) -> None:
    """A block that a process finds damaged is refused as in one thread: the same class, the same message."""
    assert_damage_is_refused(kept, tmp_path)


def test_a_fit_starts_and_stops_its_own_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process outlives the fit that began it, and no letter stays behind."""
    started: list[subprocess.Popen[bytes]] = []
    start = lanes._start
    monkeypatch.setattr(lanes, "_start", lambda: started.append(start()) or started[-1])
    monkeypatch.setenv("CROWDVEIL_THREADS", "2")
    with in_blocks():
        assert_same(OneCoin(max_steps=3).fit(REPORTS, engine=Processes()), OneCoin(max_steps=3).fit(REPORTS))

    assert [True, True] == [process.poll() is not None for process in started]


def test_a_child_answers_until_its_input_ends() -> None:
    """Calls are answered in order, refusals among them."""
    results = io.BytesIO()
    process_main.answer([(len, "abc"), (len, 3)], results)
    results.seek(0)

    assert (True, 3) == pickle.load(results)
    good, error = pickle.load(results)
    assert not good
    assert isinstance(error, TypeError)


@pytest.mark.parametrize(
    ("rest", "code"), [(b"", 0), (pickle.dumps((len, "abc"))[:-1], 0), (b"cnowhere\nnothing\n.", 1)]
)
def test_a_child_ends_when_its_input_does(rest: bytes, code: int) -> None:
    """Calls are handed on as they come; the end of the stream and a call that cannot be read end the process."""
    codes = SimpleQueue[int]()
    calls = process_main.read_calls(io.BytesIO(pickle.dumps((len, "abc")) + rest), codes.put)

    assert (len, "abc") == next(calls)
    assert code == codes.get(timeout=60)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_children_end_with_the_process_that_started_them(number: signal.Signals) -> None:
    """Where a process is killed while its worker process is in the middle of a call, that one ends too."""
    started = [sys.executable, "-c", DRIVER]
    with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert "1\n" == driver.stdout.readline()
        driver.send_signal(number)
        # Both processes hold this pipe: it ends when the last of them has ended.
        driver.communicate(timeout=60)

    assert -number == driver.returncode


def test_no_process_is_no_engine() -> None:
    """At least one process is needed."""
    with pytest.raises(SettingsError, match="processes must be at least 1, got 0"):
        Processes(processes=0)


def test_the_registry_knows_every_engine_by_its_name() -> None:
    """Keys are the words of the command line."""
    assert ["threads", "processes", "dask", "spark"] == list(ENGINES)
