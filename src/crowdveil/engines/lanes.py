"""Worker processes of this machine that answer calls over pipes; one that dies is replaced.

Calls and results are pickles (`crowdveil.engines.child`). A worker process ends when its standard input does, so that
none outlives the process that started it, however that one ends.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from crowdveil.engines.parcel import PROTOCOL
from crowdveil.errors import EngineError

# Interruptions are ignored before anything else is loaded: they are for the process that started this one.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); from crowdveil.engines.child import main; main()"
)
COMMAND = (sys.executable, "-P", "-c", PROGRAM)
ATTEMPTS = 3


class Lane:
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
            way_out="Memory may be short: use fewer processes, or set a memory limit.",
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
