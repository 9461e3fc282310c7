"""The engine `processes`: blocks are worked on by processes of this machine, letters are files.

Worker processes of this machine that answer calls over pipes; one that dies is replaced.
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

from crowdveil.em.executor import ActiveExecutor, FitTask, Part, Step
from crowdveil.em.kernels import thread_count
from crowdveil.em.memory import Posterior
from crowdveil.em.model import GoldBlock
from crowdveil.engines.driver import Dispatch
from crowdveil.engines.serialization import PROTOCOL, Payload
from crowdveil.engines.worker import BlockTask, report, work_on
from crowdveil.errors import EngineError, SettingsError
from crowdveil.files.temporary import temporary_folder

# Interruptions are ignored before anything else is loaded: they are for the process that started this one.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from crowdveil.engines.process_main import main; main()"
)
COMMAND = (sys.executable, "-P", "-c", PROGRAM)
ATTEMPTS = 3


class ProcessHandle:
    """A worker process, and a thread that exchanges calls and results with it."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._open = True
        self.process = _start()

    def ask(self, function: Callable[[Any], Any], argument: Any, what: str) -> Future[Any]:
        """Have a function called with an argument, after the calls before; `what` names the work in an error."""
        return self._pool.submit(self._call, function, argument, what)

    def close(self) -> None:
        """End thread and process at once, finished or not."""
        self._open = False
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.process.kill()
        self._pool.shutdown(wait=True)
        _end(self.process)

    def _call(self, function: Callable[[Any], Any], argument: Any, what: str) -> Any:
        for _ in range(ATTEMPTS):
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
            f"Processes died while working on {what}",
            attempts=ATTEMPTS,
            hint="Memory may be short: use fewer processes, or set a memory limit.",
        )

    def _exchange(self, function: Callable[[Any], Any], argument: Any) -> tuple[bool, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        pickle.dump((function, argument), self.process.stdin, PROTOCOL)
        self.process.stdin.flush()
        told: tuple[bool, Any] = pickle.load(self.process.stdout)
        return told


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


AHEAD = 2
"""Blocks that are given to a process at once, so that it need not wait."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """Processes of this machine, each with its own share of the blocks; a dead one is replaced.

    Attributes:
        processes: how many; None for `CROWDVEIL_THREADS`, or one per free core.

    Raises:
        SettingsError: fewer than one.
    """

    name: ClassVar[str] = "processes"
    processes: int | None = None

    def __post_init__(self) -> None:
        if self.processes is not None and self.processes < 1:
            raise SettingsError("processes must be at least 1", value=self.processes)

    @contextmanager
    def open(self, work: FitTask[Any, Any]) -> Iterator[ActiveExecutor[Any, Any]]:
        """Start the processes, and stop them in the end."""
        count = min(self.processes or thread_count(), len(work.blocks))
        memory = None if work.memory is None else work.memory // count
        with temporary_folder(Path(gettempdir())) as folder, ExitStack() as stack:
            dispatch = Dispatch(work, FileTransport(folder), memory)
            lanes = [ProcessHandle() for _ in range(count)]
            for lane in lanes:
                stack.callback(lane.close)
            yield ProcessCrew(dispatch, lanes)


@dataclass(frozen=True, slots=True)
class FilePayload:
    """A letter in a file."""

    path: Path

    @property
    def value(self) -> bytes:
        """The bytes."""
        return self.path.read_bytes()


class FileTransport:
    """A folder of letters."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0

    def send(self, data: bytes, *, to_all: bool) -> FilePayload:
        """Write a letter; one file does for all."""
        self._count += 1
        letter = FilePayload(self._folder / str(self._count))
        letter.path.write_bytes(data)
        return letter

    def discard(self, letter: Payload) -> None:
        """Remove a letter."""
        assert isinstance(letter, FilePayload)
        letter.path.unlink()


class ProcessCrew:
    """The processes of one fit; every block has its own."""

    def __init__(self, dispatch: Dispatch, lanes: list[ProcessHandle]) -> None:
        self._dispatch, self.lanes = dispatch, lanes

    def map(self, step: Step[Any, Any]) -> Iterator[Part[Any]]:
        """Yield what a step makes of each block, in order."""
        self._dispatch.begin(step)
        return self._ask_all(work_on)

    def collect(self) -> Posterior:
        """Return the posteriors of the last step."""
        return self._dispatch.together(self._ask_all(report))

    def blocks(self) -> Iterator[GoldBlock]:
        """Yield every block, in this process."""
        return self._dispatch.blocks()

    def _ask_all(self, function: Callable[[BlockTask], Any]) -> Iterator[Any]:
        asked = deque[Future[Any]]()
        for index in self._dispatch.indices:
            if len(asked) == AHEAD * len(self.lanes):
                yield asked.popleft().result()
            lane, order = self.lanes[index % len(self.lanes)], self._dispatch.order(index)
            asked.append(lane.ask(function, order, f"block {index + 1}"))
        while asked:
            yield asked.popleft().result()
