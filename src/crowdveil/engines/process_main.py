"""Main program of a worker process: pickled calls on standard input, pickled results on standard output.

The process ends with its input, even in the middle of a call, so that it never outlives the process that started it.
It is a separate program, so that the caller's script is not run a second time.
"""

import os
import pickle
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO

from crowdveil.engines.serialization import PROTOCOL

Call = tuple[Callable[[Any], Any], Any]


def serve(calls: Iterable[Call], results: BinaryIO) -> None:
    """Write (True, result) or (False, exception) for each call (function, argument)."""
    for function, argument in calls:
        outcome: tuple[bool, Any]
        try:
            outcome = True, function(argument)
        except Exception as error:
            outcome = False, error
        pickle.dump(outcome, results, PROTOCOL)
        results.flush()


def read_calls(stream: BinaryIO, on_end: Callable[[int], Any]) -> Iterator[Call]:
    """Yield calls from a stream; a thread calls `on_end` with an exit code as soon as the stream ends."""
    waiting = SimpleQueue[Call]()
    Thread(target=_read, args=(stream, waiting, on_end), daemon=True).start()
    while True:
        yield waiting.get()


def _read(stream: BinaryIO, waiting: SimpleQueue[Call], on_end: Callable[[int], Any]) -> None:
    while True:
        try:
            waiting.put(pickle.load(stream))
        except (EOFError, pickle.UnpicklingError):
            # The driver has ended, perhaps in the middle of a call.
            on_end(0)
            return
        except Exception:
            traceback.print_exc()
            on_end(1)
            return


def main() -> None:
    """Serve the process that started this one."""
    results = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Text printed by libraries must not mix with the results.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(read_calls(sys.stdin.buffer, os._exit), results)
