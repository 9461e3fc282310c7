"""Sources of randomness: `secure()` on devices, `seeded(n)` in simulations.

A source supplies independent uniform 48-bit words. All randomness of the package comes from these two sources.
Files made from a seed are marked as simulations. The mark prevents mistakes, not fraud: it can be removed, and reports
do not show how they were drawn.
"""

import os
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crowdveil.arguments import require_whole_number

WORD_BITS = 48
WORD_BYTES = WORD_BITS // 8


class Source(Protocol):
    """Source of independent uniform 48-bit words."""

    @property
    def simulation(self) -> bool:
        """Whether the words follow from a seed, which gives no privacy."""
        ...

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` independent words, uniform on 0 .. 2**48 - 1; shape (count,)."""
        ...


@dataclass(frozen=True, slots=True)
class Secure:
    """Secure randomness of the operating system: 6 bytes of `os.urandom` per word, without a seed."""

    @property
    def simulation(self) -> bool:
        """Return False: devices may use these words."""
        return False

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` uniform 48-bit words read from `os.urandom`."""
        raw = np.frombuffer(os.urandom(WORD_BYTES * count), dtype=np.uint8).reshape(count, WORD_BYTES)
        wide = np.zeros((count, 8), dtype=np.uint8)
        wide[:, :WORD_BYTES] = raw
        return wide.view("<u8")[:, 0]


@dataclass(frozen=True, slots=True, eq=False)
class Seeded:
    """Reproducible words for simulations; they give no privacy."""

    seed: int
    generator: np.random.Generator = field(repr=False)

    @property
    def simulation(self) -> bool:
        """Return True: the seed reveals the perturbation."""
        return True

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` uniform 48-bit words of the seeded stream."""
        return self.generator.integers(0, 1 << WORD_BITS, size=count, dtype=np.uint64)


def secure() -> Secure:
    """Return the only source a worker's device may use."""
    return Secure()


def seeded(seed: int) -> Seeded:
    """Return a reproducible source for simulations, without privacy; `seed` is any non-negative integer.

    >>> import crowdveil as cv
    >>> cv.seeded(1).words(1) == cv.seeded(1).words(1)
    array([ True])
    """
    require_whole_number("seed", seed, least=0)
    return Seeded(seed=seed, generator=np.random.Generator(np.random.PCG64(seed)))
