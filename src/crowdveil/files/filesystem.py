"""File-system primitives: regular files, temporary folders and folder locks.

A temporary folder is locked (flock) by its process; the lock ends with the process. An unlocked one was abandoned, and
is removed by the next process that creates a temporary folder there. A process whose folder was removed before it held
the lock makes another one. On systems without flock nothing is removed.
"""

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from os import PathLike
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import IO

from crowdveil.errors import ReportsError

if sys.platform != "win32":
    import fcntl

PREFIX = ".crowdveil-"
_TEMPORARY = re.compile(re.escape(PREFIX) + "[a-z0-9_]{8}")
"""Names of temporary folders; others with the prefix are never removed."""
_URL = re.compile("([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
_SCHEME_FOLDER = re.compile("[a-z][a-z0-9+.-]+:", re.IGNORECASE)
"""First folder of a URL that became a path."""
NON_BLOCKING = getattr(os, "O_NONBLOCK", 0)
"""Flag with which opening a named pipe does not wait."""


def scheme_of(source: str) -> str:
    """Return the scheme of a URL, in lower case; empty for a path."""
    found = _URL.match(source)
    return found[1].lower() if found else ""


def is_url_as_path(path: Path) -> bool:
    """Return whether a path is what `pathlib` makes of a URL, such as s3:/bucket/found."""
    return bool(path.parts) and _SCHEME_FOLDER.fullmatch(path.parts[0]) is not None


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
        raise OSError(f"{path} is not a regular file")
    return descriptor


@contextmanager
def refuse_change_while_read(stream: IO[bytes], source: str) -> Iterator[None]:
    """Context in which an open file is read; at its end the file must be as it was, or rows of two files were read.

    Raises:
        ReportsError: its size or its time of change differs.
    """
    descriptor = os.dup(stream.fileno())  # the reader may close the stream
    try:
        before = os.fstat(descriptor)
        yield
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if stat.S_ISREG(before.st_mode) and (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise ReportsError(
            "a file must not change while it is read",
            source=source,
            examples=f"{before.st_size:,} bytes at the start, {after.st_size:,} at the end",
            hint="Read it again. To update a file safely, write a new version next to it, then rename that.",
        )


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Yield a new folder inside `parent`, removed with the context; abandoned ones are removed first.

    Raises:
        OSError: the system refuses to write in `parent`.
    """
    remove_abandoned_temporary_folders(parent)
    folder, lock = _new_locked_folder(parent)
    try:
        with lock:
            yield folder
    finally:
        rmtree(folder, ignore_errors=True)


def _new_locked_folder(parent: Path) -> tuple[Path, ExitStack]:
    """Return a new folder with the lock on it; one that another process removed before it was locked is replaced."""
    while True:
        folder = Path(mkdtemp(prefix=PREFIX, dir=parent))
        with ExitStack() as stack, suppress(FileNotFoundError):
            stack.enter_context(folder_lock(folder))
            folder.lstat()
            return folder, stack.pop_all()


def write_new_file(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Write a file that is not there yet, durably; it appears whole or not at all.

    Args:
        path: new file.
        data: its content.
        mode: permission bits, before the umask.

    Raises:
        FileExistsError: there is such a file.
        OSError: the system refuses to write in its folder.
    """
    with temporary_folder(path.parent) as temporary:
        staged = temporary / "new"
        with os.fdopen(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        move_to_new_name(staged, path)


def move_to_new_name(staged: Path, path: Path) -> None:
    """Give a file in a temporary folder its name, unless another file has it.

    Raises:
        FileExistsError: there is such a file.
    """
    try:
        os.link(staged, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        with path.open("xb"):
            os.replace(staged, path)


def remove_abandoned_temporary_folders(parent: Path) -> None:
    """Remove this user's temporary folders in `parent` whose process has ended."""
    with suppress(OSError):
        for folder in [Path(entry.path) for entry in os.scandir(parent) if _TEMPORARY.fullmatch(entry.name)]:
            with suppress(OSError):
                _remove_unlocked_folder(folder)


def _remove_unlocked_folder(folder: Path) -> None:
    about = folder.lstat()
    if sys.platform == "win32" or not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
        return
    with folder_lock(folder, wait=False) as is_free:
        if is_free:
            rmtree(folder, ignore_errors=True)


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


def is_locked_by_other(path: str | PathLike[str]) -> bool:
    """Return whether another process has locked a file against reading, as databases do while they write."""
    if sys.platform == "win32":
        return False
    with suppress(OSError), open_regular(path) as stream:
        try:
            fcntl.lockf(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno in (errno.EAGAIN, errno.EACCES)
    return False
