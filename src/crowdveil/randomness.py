"""Where all random numbers come from: `secure()` on devices, `seeded(n)` in experiments; nothing else makes any.

A device draws 48-bit words from the operating system. A seed exists only in `Seeded`; files made from it bear the mark
of a simulation. The mark prevents mistakes, not deceit: whoever holds the files can take it out and seal them again,
and reports do not show how they were drawn.
"""

import os
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

WORD_BITS = 48
WORD_BYTES = WORD_BITS // 8


class Source(Protocol):
    """A supply of independent uniform 48-bit words."""

    @property
    def simulation(self) -> bool:
        """True when the words follow from a seed and therefore protect nobody."""
        ...

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` independent words, uniform on 0 .. 2**48 - 1; shape (count,)."""
        ...


@dataclass(frozen=True, slots=True)
class Secure:
    """The operating system's secure randomness: one fixed 6-byte read per word, never seeded, never repeated."""

    @property
    def simulation(self) -> bool:
        """Return False: these words are fit for a device."""
        return False

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` uniform 48-bit words read from `os.urandom`."""
        raw = np.frombuffer(os.urandom(WORD_BYTES * count), dtype=np.uint8).reshape(count, WORD_BYTES)
        wide = np.zeros((count, 8), dtype=np.uint8)
        wide[:, :WORD_BYTES] = raw
        return wide.view("<u8")[:, 0]


@dataclass(frozen=True, slots=True, eq=False)
class Seeded:
    """Reproducible words for experiments; carries no privacy whatever it feeds."""

    seed: int
    generator: np.random.Generator = field(repr=False)

    @property
    def simulation(self) -> bool:
        """Return True: anyone who knows the seed can undo the perturbation."""
        return True

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` uniform 48-bit words of the seeded stream."""
        return self.generator.integers(0, 1 << WORD_BITS, size=count, dtype=np.uint64)


def secure() -> Secure:
    """Return the only source a worker's device may use."""
    return Secure()


def seeded(seed: int) -> Seeded:
    """Return a reproducible source for simulations; `seed` is any non-negative integer."""
    return Seeded(seed=seed, generator=np.random.Generator(np.random.PCG64(seed)))
