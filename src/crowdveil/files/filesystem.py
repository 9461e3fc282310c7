"""File-system primitives: regular files, temporary folders and folder locks.

A temporary folder holds a marker file that its process keeps locked (flock); the lock ends with the process. A folder
whose marker is unlocked was abandoned, and is removed by the next process that creates a temporary folder there; so is
one without a marker after an hour, if nothing is in it. On systems without flock nothing is removed.
"""

import os
import stat
import sys
import time
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
"""In every temporary folder; a folder with files and without it is never removed, whatever its name."""
UNMARKED, UNMARKED_SECONDS = "marker", 3600
"""Name of the marker before it is locked, and the age from which a folder with that alone was abandoned."""
NON_BLOCKING = getattr(os, "O_NONBLOCK", 0)
"""Flag with which opening a named pipe does not wait."""


def open_regular(path: str | PathLike[str]) -> BufferedReader:
    """Open a regular file, or a link to one, for reading; a named pipe is refused instead of waited for.

    Raises:
        OSError: the file is absent, or is a pipe, device or folder.
    """
    return open(path, "rb", opener=_open_regular_descriptor)


def _open_regular_descriptor(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | NON_BLOCKING)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no regular file")
    return descriptor


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Yield a new folder inside `parent`, removed with the context; abandoned ones are removed first.

    Raises:
        OSError: the system refuses to write in `parent`.
    """
    remove_abandoned(parent)
    folder = Path(mkdtemp(prefix=PREFIX, dir=parent))
    try:
        with _marked_as_temporary(folder):
            yield folder
    finally:
        _remove_folder(folder)


def remove_abandoned(parent: Path) -> None:
    """Remove this user's temporary folders in `parent` whose process has ended."""
    with suppress(OSError):
        for folder in [Path(entry.path) for entry in os.scandir(parent) if entry.name.startswith(PREFIX)]:
            with suppress(OSError):
                if _is_abandoned(folder):
                    _remove_folder(folder)


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock on a folder; no effect on systems without flock."""
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
def _marked_as_temporary(folder: Path) -> Iterator[None]:
    """Hold a locked marker in a folder; it is renamed after locking, so no live marker is ever seen unlocked."""
    if sys.platform == "win32":
        yield
        return
    with open(folder / UNMARKED, "wb") as stream:
        _try_lock(stream.fileno())
        os.replace(folder / UNMARKED, folder / MARKER_FILE)
        yield


def _remove_folder(folder: Path) -> None:
    """Remove a temporary folder, its marker last: a process that is killed here leaves a folder that is still known."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                rmtree(entry.path, ignore_errors=True)
            elif entry.name != MARKER_FILE:
                os.unlink(entry.path)
    rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    about = folder.lstat()
    if sys.platform == "win32" or not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
        return False
    if set(os.listdir(folder)) <= {UNMARKED}:
        return time.time() - about.st_mtime > UNMARKED_SECONDS
    with open_regular(folder / MARKER_FILE) as stream:
        return _try_lock(stream.fileno())


def _try_lock(descriptor: int) -> bool:
    """Try to acquire a lock that is held until the file is closed; return whether it was free."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
