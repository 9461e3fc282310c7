"""Opening of files that the command line does not name: regular files only, so that no named pipe blocks."""

import os
import stat
from io import BufferedReader
from os import PathLike

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
