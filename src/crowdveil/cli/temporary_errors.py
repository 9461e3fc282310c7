"""Errors whose cause may be gone at another time: the network, a lock, or a full disk."""

import errno
import socket
from collections.abc import Iterator

TEMPORARY_ERRORS = frozenset(
    getattr(errno, name)
    for name in (
        *("ENOSPC", "EDQUOT", "EAGAIN", "EBUSY", "ENOLCK", "EDEADLK", "ESTALE", "ENFILE", "ETIMEDOUT", "EPIPE"),
        *("ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EHOSTUNREACH", "EHOSTDOWN", "ENETUNREACH", "ENETDOWN"),
    )
    if hasattr(errno, name)
)
"""Errors of the system that may be gone at another time: a full disk, a lock, or the network."""


def is_temporary(error: BaseException) -> bool:
    """Return whether the cause of an error may be gone at another time: network, lock, or full disk."""
    return any(getattr(one, "temporary", False) or _is_temporary_cause(one) for one in _chain(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it was raised from; urllib has the cause in `reason`."""
    while error is not None:
        yield error
        reason = getattr(error, "reason", None)
        error = error.__cause__ or (reason if isinstance(reason, BaseException) else None)


def _is_temporary_cause(error: BaseException) -> bool:
    if isinstance(error, socket.gaierror):
        return error.errno == socket.EAI_AGAIN
    return isinstance(error, TimeoutError | ConnectionError) or (
        isinstance(error, OSError) and error.errno in TEMPORARY_ERRORS
    )
