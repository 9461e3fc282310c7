"""Parts of mechanisms whose cells share one secret of a worker: the limit on cells, and the replacement of symbols."""

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.randomness import Source

MAX_ANSWERS = 1_000_000
"""Most cells of one worker for which a loss is computed."""


def require_answers(answers: int | None) -> None:
    """Check the most cells one worker sends, None for any number.

    Raises:
        SettingsError: it is not in 1..1,000,000.
    """
    if answers is not None and not 1 <= answers <= MAX_ANSWERS:
        raise SettingsError(f"answers must be in 1..{MAX_ANSWERS}", value=answers)


def require_cells(cells: int, answers: int | None) -> None:
    """Check a number of cells for which a guarantee is asked.

    Raises:
        SettingsError: it is not in 1..`answers`, or not in 1..1,000,000 where `answers` is None.
    """
    if not 1 <= cells <= (answers or MAX_ANSWERS):
        raise SettingsError(f"a worker sends 1..{answers or MAX_ANSWERS} cells", value=cells)


def require_sendable(cells: int, answers: int | None) -> None:
    """Check a number of cells that a device is about to send.

    Raises:
        SettingsError: it is larger than `answers`.
    """
    if answers is not None and cells > answers:
        raise SettingsError(
            f"this mechanism is promised for at most {answers} cells of one worker",
            value=cells,
            hint="Set answers to the number of tasks (NULL cells count where participation is protected).",
        )


def substitute(
    codes: NDArray[np.integer], shares: NDArray[np.uint64], symbols: int, source: Source
) -> NDArray[np.int64]:
    """Replace each symbol with its own probability: one word per cell, the same operations whatever the answer.

    Args:
        codes: symbols, shape (cells,).
        shares: probability of each other symbol, times 2^48, shape (cells,) or (1,); at most 2^48 / (symbols - 1).
        symbols: number of symbols a cell can hold.

    Returns:
        Symbols, shape (cells,).
    """
    words = source.words(codes.size)
    shift = 1 + words // np.maximum(shares, np.uint64(1))
    replaced = words < np.uint64(symbols - 1) * shares
    return np.where(replaced, codes + shift.astype(np.int64), codes) % symbols
