"""Address space that is left to this process under a limit of it (`ulimit -v`)."""

from pathlib import Path

SIZE = Path("/proc/self/statm")
"""Its first number counts the pages of the address space."""
LEAST_TO_START = 400_000_000
"""Bytes that the numerical libraries map when they are loaded; with less, some of them wait for ever or abort."""
LEAST_TO_COMPILE = 1 << 30
"""Bytes that a compiler and what it compiles need; it ends the process where it gets none."""


def left() -> int | None:
    """Return the bytes that may still be mapped; None where there is no limit, or the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or not SIZE.is_file():
        return None
    return max(limit - int(SIZE.read_text().split()[0]) * resource.getpagesize(), 0)


def compiler_fits() -> bool:
    """Return whether there is address space enough to compile."""
    free = left()
    return free is None or free >= LEAST_TO_COMPILE
