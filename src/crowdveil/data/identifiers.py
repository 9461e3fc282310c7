"""Names of tasks and workers in code order: a numpy array, or names read or made only where they are looked at.

A hundred million names as Python's texts take eight gigabytes; those of an opened folder stay on disk, and numbered
ones (task-000000123) follow from a rule.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.channels.alphabet import is_utf8_encodable
from crowdveil.data.ingest.numbered import Pattern, numbered_text
from crowdveil.errors import ReportsError, SettingsError

NAMES_AT_ONCE = 1 << 18
"""Names made, read or written together."""
NAMES_SHOWN = 3
MAX_MAGNITUDE = 18
"""Digits of the largest numbers in names: they fit into 64 bits."""


class NameList(Protocol):
    """What a numpy array of names and `LazyNames` have in common; `numpy.asarray` makes an array of either."""

    def __len__(self) -> int:
        """Return how many names there are."""
        ...

    def __getitem__(self, key: Any, /) -> Any:
        """Return the name of a code, or those of a slice or an array of codes."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Yield the names in code order."""
        ...

    def __contains__(self, name: object, /) -> bool:
        """Return whether a name is among them."""
        ...

    def __array__(self, dtype: None = None, /, *, copy: bool | None = None) -> NDArray[Any]:
        """Return all names as an array."""
        ...

    def tolist(self) -> Any:
        """Return all names as a list."""
        ...


class LazyNames(ABC):
    """Names that take no memory until they are asked for; read-only. A slice of them is lazy too."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many names there are."""

    @abstractmethod
    def part(self, first: int, stop: int) -> Self:
        """Return the names first .. stop-1."""

    @abstractmethod
    def take(self, codes: NDArray[np.integer]) -> Any:
        """Return the names of these codes, from 0 on, as an Arrow array."""

    def __getitem__(self, key: Any, /) -> Any:
        """Return the name of a code, lazy names of a slice without steps, or an array for anything else."""
        if isinstance(key, slice):
            first, stop, step = key.indices(len(self))
            if step == 1:
                return self.part(first, max(first, stop))
            key = np.arange(first, stop, step)
        codes = np.atleast_1d(np.asarray(key))
        codes = np.flatnonzero(codes) if codes.dtype.kind == "b" else np.where(codes < 0, codes + len(self), codes)
        if codes.size and not (codes.min() >= 0 and codes.max() < len(self)):
            raise IndexError(f"there are {len(self)} names, from 0 on, got {key!r}")
        found = self.take(codes.astype(np.int64)).to_numpy(zero_copy_only=False)
        return found if np.ndim(key) else found[0]

    def pieces(self) -> Iterator[Self]:
        """Yield the names in parts of `NAMES_AT_ONCE`, at least one part."""
        for first in range(0, max(len(self), 1), NAMES_AT_ONCE):
            yield self.part(first, min(first + NAMES_AT_ONCE, len(self)))

    def arrow(self) -> Any:
        """Return all names as an Arrow chunked array."""
        return pa.chunked_array([piece.take(np.arange(len(piece))) for piece in self.pieces()])

    def __iter__(self) -> Iterator[Any]:
        """Yield the names in code order."""
        for piece in self.pieces():
            yield from piece.tolist()

    def __contains__(self, name: object, /) -> bool:
        """Return whether a name is among them."""
        return any(name == one for one in self)

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> NDArray[Any]:
        """Return all names as an array, which takes memory for each."""
        return np.asarray(self.arrow().to_numpy(), dtype=dtype)

    def tolist(self) -> list[Any]:
        """Return all names as a list, which takes memory for each."""
        return list(self.arrow().to_pylist())


@final
@dataclass(frozen=True, eq=False)
class ArrowNames(LazyNames):
    """Names in an Arrow chunked array, such as one that is mapped from a file."""

    column: Any

    def __len__(self) -> int:
        """Return how many names there are."""
        return len(self.column)

    def part(self, first: int, stop: int) -> "ArrowNames":
        """Return the names first .. stop-1, from the same memory."""
        return ArrowNames(self.column.slice(first, stop - first))

    def take(self, codes: NDArray[np.integer]) -> Any:
        """Return the names of these codes."""
        return self.column.take(pa.array(codes)).combine_chunks()

    def arrow(self) -> Any:
        """Return the column itself."""
        return self.column


@final
@dataclass(frozen=True, kw_only=True)
class NumberedNames(LazyNames):
    """Names of one beginning and digits of one width: task-000000000, task-000000001, ...

    Attributes:
        beginning: what all names begin with.
        digits: how many digits follow; smaller numbers have zeros before them.
        count: how many names.
        first: number of the first.

    Raises:
        SettingsError: numbers that are negative or need more digits, or text that is not UTF-8.
    """

    beginning: str
    digits: int
    count: int
    first: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.digits <= MAX_MAGNITUDE and self.first >= 0 and self.count >= 0):
            raise SettingsError(
                f"names need 1 to {MAX_MAGNITUDE} digits, and numbers that are not negative",
                value=(self.digits, self.first, self.count),
            )
        if self.first + self.count > 10**self.digits:
            raise SettingsError(
                f"the numbers of names must fit into {self.digits} digits", value=self.first + self.count
            )
        if not is_utf8_encodable(self.beginning):
            raise SettingsError("names must be text that can be written in UTF-8", value=self.beginning)

    @classmethod
    def of_count(cls, beginning: str, count: int) -> "NumberedNames":
        """Return the names of so many, from 0 on, in as many digits as the last one needs."""
        return cls(beginning=beginning, digits=len(str(max(count - 1, 0))), count=count)

    def __len__(self) -> int:
        """Return how many names there are."""
        return self.count

    def part(self, first: int, stop: int) -> "NumberedNames":
        """Return the names first .. stop-1, by the same rule."""
        return NumberedNames(beginning=self.beginning, digits=self.digits, count=stop - first, first=self.first + first)

    def take(self, codes: NDArray[np.integer]) -> Any:
        """Return the names of these codes."""
        return numbered_text(codes.astype(np.int64) + self.first, Pattern(self.beginning.encode(), self.digits))

    def place(self, name: str) -> int | None:
        """Return the code of a name, None if there is none."""
        digits = name[len(self.beginning) :]
        written = name.startswith(self.beginning) and len(digits) == self.digits and digits.isascii()
        if not (written and digits.isdigit()):
            return None
        code = int(digits) - self.first
        return code if 0 <= code < self.count else None


def places(names: NameList, wanted: Iterable[Any]) -> dict[str, int]:
    """Return the code of each wanted name that is among the names, both read as text."""
    texts = {str(name) for name in wanted}
    if isinstance(names, NumberedNames):
        found = {text: names.place(text) for text in texts}
        return {text: code for text, code in found.items() if code is not None}
    parts = range(0, len(names) if texts else 0, NAMES_AT_ONCE)
    listed = ((first, names[first : first + NAMES_AT_ONCE].tolist()) for first in parts)
    return {str(name): code for first, part in listed for code, name in enumerate(part, first) if str(name) in texts}


def none_shared(gold: Iterable[Any], tasks: NameList, source: str) -> ReportsError:
    """Return the error for known truths of which none is of a task, with examples of the names on both sides."""
    known = sorted({str(name) for name in gold})
    listed = (", ".join(map(repr, names)) for names in (known[:NAMES_SHOWN], map(str, tasks[:NAMES_SHOWN])))
    return ReportsError(
        f"none of the {len(known):,} gold tasks is among the {len(tasks):,} tasks",
        source=source,
        examples="gold tasks {}; tasks {}".format(*listed),
        hint="Use the same task names in both.",
    )


def held_names(names: Any) -> NameList:
    """Return names as they are if they are lazy, else as a read-only array."""
    if isinstance(names, LazyNames):
        return names
    array = np.asarray(names)
    array.flags.writeable = False
    return array


def as_arrow(names: NameList) -> Any:
    """Return names as an Arrow column."""
    return names.arrow() if isinstance(names, LazyNames) else pa.array(np.asarray(names), from_pandas=True)
