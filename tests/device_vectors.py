"""Test vectors that every device passes, and a source of randomness that replays their bytes."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.randomness import WORD_BYTES

VECTORS = Path(__file__).parent / "vectors"


def read_vectors(name: str) -> list[dict[str, Any]]:
    """Return the vectors of a file of tests/vectors."""
    vectors: list[dict[str, Any]] = json.loads((VECTORS / name).read_text("ascii"))["vectors"]
    return vectors


@dataclass(frozen=True)
class Replayed:
    """Source of the words in a given run of bytes; each call begins where the last one ended."""

    raw: bytearray
    simulation: bool = True

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` words and remove their bytes."""
        taken = bytes(self.raw[: count * WORD_BYTES])
        del self.raw[: count * WORD_BYTES]
        pieces = (taken[first : first + WORD_BYTES] for first in range(0, len(taken), WORD_BYTES))
        words = np.array([int.from_bytes(piece, "little") for piece in pieces], dtype=np.uint64)
        assert count == len(words)
        return words
