"""File-system primitives: regular files, temporary folders and folder locks.

A temporary folder is locked (flock) by its process; the lock ends with the process. An unlocked one was abandoned, and
is removed by the next process that creates a temporary folder there. On systems without flock nothing is removed.
"""

import os
import re
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
_TEMPORARY = re.compile(re.escape(PREFIX) + "[a-z0-9_]{8}")
"""Names of temporary folders; others with the prefix are never removed."""
NEW_SECONDS = 60
"""Age below which a folder may not be locked yet."""
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
    remove_abandoned_temporary_folders(parent)
    folder = Path(mkdtemp(prefix=PREFIX, dir=parent))
    try:
        with folder_lock(folder):
            yield folder
    finally:
        rmtree(folder, ignore_errors=True)


def remove_abandoned_temporary_folders(parent: Path) -> None:
    """Remove this user's temporary folders in `parent` whose process has ended."""
    with suppress(OSError):
        for folder in [Path(entry.path) for entry in os.scandir(parent) if _TEMPORARY.fullmatch(entry.name)]:
            with suppress(OSError):
                if _is_abandoned_temporary_folder(folder):
                    rmtree(folder, ignore_errors=True)


def _is_abandoned_temporary_folder(folder: Path) -> bool:
    about = folder.lstat()
    if sys.platform == "win32" or not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
        return False
    if time.time() - about.st_mtime < NEW_SECONDS:
        return False
    with folder_lock(folder, wait=False) as is_free:
        return is_free


@contextmanager
def folder_lock(folder: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold an exclusive lock on a folder; yield whether it is held, which it never is on systems without flock."""
    if sys.platform == "win32":
        yield False
        return
    descriptor, held = os.open(folder, os.O_RDONLY), False
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        yield held
    finally:
        os.close(descriptor)
