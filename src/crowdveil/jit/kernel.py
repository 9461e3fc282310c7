"""Decorator of compiled functions: kept on disk between processes where a folder for it can be written.

numba writes beside the source, or else into the user's cache folder (`NUMBA_CACHE_DIR` names another one). Where none
of them can be written, as in a read-only container, functions are compiled anew in every process.
"""

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function without Python's lock; `options` are those of `numba.njit`."""

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:
            # No folder can be written.
            return njit(nogil=True, **options)(function)

    return compiled
