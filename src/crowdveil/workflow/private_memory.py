"""What a command holds for itself while it keeps to a memory limit: code, what allocators keep, what writing takes."""

import ctypes
import platform
from pathlib import Path

import pyarrow as pa

from crowdveil.em.kernels import use_compiled

STATUS = Path("/proc/self/status")
AT_START = 60_000_000
"""Bytes that a command has taken when it begins a fit, where the system does not tell."""
COMPILED_CODE, PLAIN_CODE = 48_000_000, 8_000_000
"""Bytes of code that is loaded while a fit runs."""
WRITING = 24_000_000
"""Bytes that writing truths takes, part by part."""
MMAP_THRESHOLD, FROM_SYSTEM = -3, 1 << 20
"""glibc's number for the size from which on memory goes back to the system as soon as it is free, and that size."""


def private_bytes() -> int:
    """Return how much memory this process has that is not a file's: what Linux calls RssAnon."""
    if not STATUS.is_file():
        return AT_START
    fields = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) * 1024 if "RssAnon" in fields else AT_START


def release_freed_memory() -> None:
    """Have freed memory go back to the system: allocators that keep it for later would keep it beside the limit."""
    pa.set_memory_pool(pa.system_memory_pool())
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, FROM_SYSTEM)


def beside_fit(reports: int) -> int:
    """Return the bytes of a command that fits so many reports which are not the fit's."""
    return private_bytes() + (COMPILED_CODE if use_compiled(reports) else PLAIN_CODE) + WRITING
