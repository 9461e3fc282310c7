"""A process of the engine `processes`: calls come in at standard input, results go out at standard output.

Both are pickles, one after the other. It ends when its input does, so it never outlives the fit. It is a program of its
own, so that the script which began the fit is not run a second time.
"""

import os
import pickle
import signal
import sys
from typing import Any, BinaryIO

from crowdveil.engines.parcel import PROTOCOL


def answer(calls: BinaryIO, results: BinaryIO) -> None:
    """Answer calls, (function, argument), by (True, result) or (False, exception), until there are no more."""
    while True:
        try:
            function, argument = pickle.load(calls)
        except EOFError:
            return
        told: tuple[bool, Any]
        try:
            told = True, function(argument)
        except Exception as error:
            told = False, error
        pickle.dump(told, results, PROTOCOL)
        results.flush()


def main() -> None:
    """Answer the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    results = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever a library prints must not get between the results.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    answer(sys.stdin.buffer, results)


if __name__ == "__main__":
    main()
