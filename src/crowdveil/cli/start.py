"""How the command line starts as a process of its own: what no command needs is not loaded."""

import os
import signal
import sys
from types import FrameType

from crowdveil.cli import main

END_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if name in dir(signal))
"""Signals that end the process in good order; the system does not have all of them everywhere."""


def start() -> None:
    """Run the command line; in a program that goes on afterwards, call `main` instead."""
    for number in END_SIGNALS:
        # One that was ignored when the process started, as under nohup, stays so.
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)
    try:
        main(prog_name="crowdveil")
    finally:
        _drop_unprinted()


def _drop_unprinted() -> None:
    """Drop buffered output that stdout refused: Python would otherwise write it again at exit and fail."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(number: int, _: FrameType | None) -> None:
    """End the process so that its temporary folders and worker processes go with it; a second signal changes nothing.

    Raises:
        SystemExit: with the exit code that a shell has for the signal.
    """
    for other in END_SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise SystemExit(128 + number)
