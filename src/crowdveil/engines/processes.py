"""Local multi-process executor: worker processes answer calls over pipes, payloads travel through temporary files.

A process that dies is replaced, and its call is repeated.
"""

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import Any, ClassVar, final

from crowdveil.em.executor import ActiveExecutor, FitTask, Step
from crowdveil.em.kernels import thread_count
from crowdveil.em.model import EStep, GoldBlock
from crowdveil.engines.driver import FitDriver
from crowdveil.engines.serialization import PROTOCOL, Payload
from crowdveil.engines.worker import BlockTask, read_posterior, run_step
from crowdveil.errors import EngineError, SettingsError
from crowdveil.files.filesystem import temporary_folder

# Interrupts are ignored before anything else is loaded: the driver handles them.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from crowdveil.engines.process_main import main; main()"
)
COMMAND = (sys.executable, "-P", "-c", PROGRAM)
"""Command line of a worker process."""
MAX_ATTEMPTS = 3
"""Calls of one function before the fit ends with an error."""
QUEUED_PER_PROCESS = 2
"""Block tasks given to a process at once, so that it need not wait for the driver."""


class ProcessHandle:
    """Worker process, and a thread that exchanges calls and results with it."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._open = True
        self.process = _start()

    def submit(self, function: Callable[[Any], Any], argument: Any, name: str) -> Future[Any]:
        """Return the future result of a call, queued after earlier ones; errors call it `name`."""
        return self._pool.submit(self._call, function, argument, name)

    def close(self) -> None:
        """End thread and process at once, finished or not."""
        self._open = False
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.process.kill()
        self._pool.shutdown(wait=True)
        _end(self.process)

    def _call(self, function: Callable[[Any], Any], argument: Any, name: str) -> Any:
        for _ in range(MAX_ATTEMPTS):
            try:
                good, result = self._exchange(function, argument)
            except (EOFError, BrokenPipeError, pickle.UnpicklingError):
                _end(self.process)
                if self._open:
                    self.process = _start()
                continue
            if not good:
                raise result
            return result
        raise EngineError(
            f"Worker processes died while working on {name}",
            attempts=MAX_ATTEMPTS,
            hint="Memory may be short: use fewer processes, or set a memory limit.",
        )

    def _exchange(self, function: Callable[[Any], Any], argument: Any) -> tuple[bool, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        pickle.dump((function, argument), self.process.stdin, PROTOCOL)
        self.process.stdin.flush()
        outcome: tuple[bool, Any] = pickle.load(self.process.stdout)
        return outcome


def _start() -> subprocess.Popen[bytes]:
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths}
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and close its pipes."""
    process.kill()
    with suppress(BrokenPipeError):
        process.communicate()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """Engine of worker processes on this machine; a process that dies is replaced.

    Attributes:
        processes: their number; None for `CROWDVEIL_THREADS`, or one per free core.

    Raises:
        SettingsError: fewer than one process.
    """

    name: ClassVar[str] = "processes"
    processes: int | None = None

    def __post_init__(self) -> None:
        if self.processes is not None and self.processes < 1:
            raise SettingsError("processes must be at least 1", value=self.processes)

    @contextmanager
    def open(self, work: FitTask[Any, Any]) -> Iterator[ActiveExecutor[Any, Any]]:
        """Start processes for a fit; they end with the context."""
        count = min(self.processes or thread_count(), len(work.blocks))
        memory = None if work.memory is None else work.memory // count
        with temporary_folder(Path(gettempdir())) as folder, ExitStack() as stack:
            driver = FitDriver(work, FileTransport(folder), memory)
            handles = [ProcessHandle() for _ in range(count)]
            for handle in handles:
                stack.callback(handle.close)
            yield ProcessExecutor(driver, handles)


@dataclass(frozen=True, slots=True)
class FilePayload:
    """Payload in a file."""

    path: Path

    @property
    def value(self) -> bytes:
        """The bytes."""
        return self.path.read_bytes()


class FileTransport:
    """Transport through numbered files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0

    def send(self, data: bytes) -> FilePayload:
        """Return a payload written to a new file."""
        self._count += 1
        payload = FilePayload(self._folder / str(self._count))
        payload.path.write_bytes(data)
        return payload

    def discard(self, payload: Payload) -> None:
        """Remove the file of a payload."""
        assert isinstance(payload, FilePayload)
        payload.path.unlink()


class ProcessExecutor:
    """Executor of one fit on worker processes; each block always goes to the same process."""

    def __init__(self, driver: FitDriver, handles: list[ProcessHandle]) -> None:
        self._driver, self.handles = driver, handles

    def map(self, step: Step[Any, Any]) -> Iterator[tuple[Any, float]]:
        """Yield the statistics of each block, in order."""
        self._driver.begin_step(step)
        return self._run_all(run_step)

    def collect(self) -> EStep[Any]:
        """Return the posterior of all tasks after the last step."""
        return self._driver.assemble(self._run_all(read_posterior))

    def blocks(self) -> Iterator[GoldBlock]:
        """Yield every block, in this process."""
        return self._driver.blocks()

    def _run_all(self, function: Callable[[BlockTask], Any]) -> Iterator[Any]:
        running = deque[Future[Any]]()
        for index in self._driver.indices:
            if len(running) == QUEUED_PER_PROCESS * len(self.handles):
                yield running.popleft().result()
            handle = self.handles[index % len(self.handles)]
            running.append(handle.submit(function, self._driver.task(index), f"block {index + 1}"))
        while running:
            yield running.popleft().result()
