"""Names of report symbols that stand for several labels: `0`, `1..9`, `no|maybe`, `8..9|NULL`."""

from collections.abc import Sequence
from itertools import pairwise

from crowdveil.labels import NULL, Alphabet


def block_names(alphabet: Alphabet, blocks: Sequence[tuple[int, ...]]) -> tuple[str, ...]:
    """Return one distinct name per block; a block of one label keeps the label's name.

    Neighbours of an ordered alphabet are written `low..high`, everything else is joined by `|`. A composed name that is
    taken already (labels may contain dots and bars) gets a prime.

    Args:
        alphabet: what an answer can be.
        blocks: distinct sets of input codes, each ascending; `alphabet.size` is NULL.
    """
    symbols = (*alphabet.names, NULL)
    taken = set(symbols)
    names = []
    for block in blocks:
        name = symbols[block[0]]
        if len(block) > 1:
            name = "|".join(_runs(alphabet, block))
            while name in taken:
                name += "'"
            taken.add(name)
        names.append(name)
    return tuple(names)


def _runs(alphabet: Alphabet, block: tuple[int, ...]) -> list[str]:
    """Write each unbroken run of an ordered alphabet as one word; NULL is nobody's neighbour."""
    symbols = (*alphabet.names, NULL)
    joined = [alphabet.ordered and b == a + 1 and b < alphabet.size for a, b in pairwise(block)]
    starts = [k for k in range(len(block)) if k == 0 or not joined[k - 1]]
    ends = [*(k - 1 for k in starts[1:]), len(block) - 1]
    words = zip((symbols[block[k]] for k in starts), (symbols[block[k]] for k in ends), strict=True)
    return [first if first == last else f"{first}..{last}" for first, last in words]
