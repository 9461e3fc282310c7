"""Temporary folders that no process leaves behind for good: each carries a marker that its owner holds locked.

The lock (flock) ends with the process, however it ends. A folder whose marker is not locked is left over from a process
that has died, and is removed by the next one that makes a temporary folder in the same place. Where the system has no
such locks, nothing is removed.


Opening of files that the command line does not name: regular files only, so that no named pipe blocks."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from os import PathLike
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

if sys.platform != "win32":
    import fcntl

PREFIX = ".crowdveil-"
MARKER_FILE = ".crowdveil-temporary"
"""In every temporary folder; a folder without it was not made here, whatever its name."""


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Give a new folder inside `parent`, which ends with the context; those of processes that have died are removed.

    Raises:
        OSError: the system refuses to write in `parent`.
    """
    remove_abandoned(parent)
    folder = Path(mkdtemp(prefix=PREFIX, dir=parent))
    try:
        with _marked(folder):
            yield folder
    finally:
        rmtree(folder, ignore_errors=True)


def remove_abandoned(parent: Path) -> None:
    """Remove the temporary folders of this user in `parent` whose owner has died."""
    with suppress(OSError):
        for folder in [Path(entry.path) for entry in os.scandir(parent) if entry.name.startswith(PREFIX)]:
            with suppress(OSError):
                if _abandoned(folder):
                    rmtree(folder, ignore_errors=True)


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, for which other processes wait; without effect where the system has none."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _marked(folder: Path) -> Iterator[None]:
    """Hold a locked marker in a folder; it gets its name once it is locked, so that no marker is ever seen unlocked."""
    if sys.platform == "win32":
        yield
        return
    with open(folder / "marker", "wb") as stream:
        _try_lock(stream.fileno())
        os.replace(folder / "marker", folder / MARKER_FILE)
        yield


def _abandoned(folder: Path) -> bool:
    about = folder.lstat()
    if sys.platform == "win32" or not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
        return False
    with open_regular(folder / MARKER_FILE) as stream:
        return _try_lock(stream.fileno())


def _try_lock(descriptor: int) -> bool:
    """Return whether the lock was free, and is held from now on until the file is closed."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0)


def open_regular(path: str | PathLike[str]) -> BufferedReader:
    """Open a plain file, or a link to one, to read its bytes.

    Raises:
        OSError: there is none, or it is a pipe, a device or a folder.
    """
    return open(path, "rb", opener=_regular)


def _regular(path: str, flags: int) -> int:
    """Return the descriptor of a plain file."""
    descriptor = os.open(path, flags | WITHOUT_WAITING)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no plain file")
    return descriptor
