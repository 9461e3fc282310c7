"""A worker process: calls come in at standard input, results go out at standard output.

Both are pickles, one after the other. The process ends as soon as its input does, even in the middle of a call, so that
it never outlives the process that started it. It is a program of its own, so that the script which began the work is
not run a second time.
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


def answer(calls: Iterable[Call], results: BinaryIO) -> None:
    """Answer calls, (function, argument), by (True, result) or (False, exception)."""
    for function, argument in calls:
        told: tuple[bool, Any]
        try:
            told = True, function(argument)
        except Exception as error:
            told = False, error
        pickle.dump(told, results, PROTOCOL)
        results.flush()


def read_calls(stream: BinaryIO, ended: Callable[[int], Any]) -> Iterator[Call]:
    """Yield calls as they come in; `ended` is called with an exit code when the stream ends, whatever goes on then."""
    waiting = SimpleQueue[Call]()
    Thread(target=_read, args=(stream, waiting, ended), daemon=True).start()
    while True:
        yield waiting.get()


def _read(stream: BinaryIO, waiting: SimpleQueue[Call], ended: Callable[[int], Any]) -> None:
    while True:
        try:
            waiting.put(pickle.load(stream))
        except (EOFError, pickle.UnpicklingError):
            # The process at the other end has ended, perhaps in the middle of a call.
            ended(0)
            return
        except Exception:
            traceback.print_exc()
            ended(1)
            return


def main() -> None:
    """Answer the process that started this one."""
    results = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever a library prints must not get between the results.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    answer(read_calls(sys.stdin.buffer, os._exit), results)
