"""Outputs of a black box as comparable parts: numbers, bytes and named files of many draws.

An output is a number, text, bytes, an array or list of numbers, or a mapping of names to these, such as the files of a
folder. Anything else is compared by its `repr`. A part is one name of a mapping, as text or as numbers. Whatever is
read from a part is a function of the single output, never of the other draws: else events would differ by sample.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Drawn = Sequence[Any] | NDArray[Any]
"""Outputs of several draws; an array has one output per row."""
Values = NDArray[Any]
MAX_ENTRIES = 1 << 26
"""Largest number of bytes or numbers of one part that are compared by position; the rest is compared as a whole."""
ABSENT = -1
"""Size of an absent part, and number at a position after the end."""
NUMBERS = "numbers"
"""Name of the part of numbers of an output without names, and suffix of parts of numbers with names."""
_WORDS = re.compile(rb"[^\s,;:\"'\[\]{}()]+")
_MULTIPLIERS = np.random.Generator(np.random.PCG64(0)).integers(1, 1 << 63, size=4096, dtype=np.uint64) | np.uint64(1)


@dataclass(frozen=True, eq=False)
class Part:
    """One part of the outputs of N draws.

    Attributes:
        size: number of bytes or numbers, -1 where the part is absent; shape (N,).
        form: hash of type and shape, shape (N,).
        content: hash of everything, shape (N,).
        numbers: bytes or numbers by position, -1 after the end; shape (N, width).
        raw: text of each draw, empty for parts of numbers.
    """

    size: NDArray[np.int64]
    form: NDArray[np.int64]
    content: NDArray[np.int64]
    numbers: NDArray[Any]
    raw: tuple[bytes, ...] = ()

    @cached_property
    def text_pieces(self) -> tuple[dict[bytes, int], ...]:
        """Lines, and words between separators, of every draw, each with its first position in the text."""
        return tuple(map(_first_place_of_each_piece, self.raw))


@dataclass(frozen=True, eq=False)
class DrawnOutputs:
    """Outputs of N draws, by part."""

    draws: int
    parts: Mapping[str, Part]

    def part(self, name: str) -> Part:
        """Return a part; one that no draw has is absent everywhere."""
        if name in self.parts:
            return self.parts[name]
        absent = (None,) * self.draws
        return _part_of_number_arrays(absent) if name.endswith(NUMBERS) else _text_part(absent)

    def part_names_hash(self) -> NDArray[np.int64]:
        """Return a hash of the names of the parts that each draw has, shape (N,)."""
        names = sorted(self.parts)
        there = np.array([self.parts[name].size >= 0 for name in names]).reshape(len(names), self.draws)
        return np.array([hash(tuple(names[k] for k in np.flatnonzero(draw))) for draw in there.T], dtype=np.int64)


def drawn_outputs_by_part(drawn: Drawn) -> DrawnOutputs:
    """Return the outputs of several draws by part."""
    if isinstance(drawn, np.ndarray) and drawn.dtype != object:
        return DrawnOutputs(len(drawn), {NUMBERS: _part_of_equal_shape_arrays(drawn)})
    texts: defaultdict[str, list[bytes | None]] = defaultdict(lambda: [None] * len(drawn))
    arrays: defaultdict[str, list[Values | None]] = defaultdict(lambda: [None] * len(drawn))
    for number, output in enumerate(drawn):
        for name, value in _outputs_by_name(output).items():
            array = _as_numbers(value)
            if array is not None:
                arrays[f"{name} {NUMBERS}".strip()][number] = array
            elif value is not None:
                texts[name][number] = _as_bytes(value)
    parts = {name: _text_part(own) for name, own in texts.items()}
    return DrawnOutputs(len(drawn), parts | {name: _part_of_number_arrays(own) for name, own in arrays.items()})


def _outputs_by_name(output: Any) -> Mapping[str, Any]:
    return {str(name): value for name, value in output.items()} if isinstance(output, Mapping) else {"": output}


def _as_numbers(value: Any) -> Values | None:
    """Return the value as an array of numbers; None if it is no number or array of numbers."""
    if isinstance(value, list | tuple) and not all(isinstance(one, Real) for one in value):
        return None
    array = np.asarray(value) if isinstance(value, np.ndarray | Real | list | tuple) else None
    return array if array is not None and array.dtype.kind in "biuf" else None


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else repr(value).encode()


def _part_of_number_arrays(arrays: Sequence[Values | None]) -> Part:
    """Return the part of arrays; None is absent."""
    shapes: dict[tuple[Any, ...], list[int]] = {}
    for number, array in enumerate(arrays):
        if array is not None:
            shapes.setdefault((array.shape, array.dtype.kind), []).append(number)
    groups = {}
    for numbers in shapes.values():
        stacked = np.stack([arrays[number] for number in numbers])  # type: ignore[misc]
        groups[tuple(numbers)] = _part_of_equal_shape_arrays(stacked)
    if len(groups) == 1 and len(next(iter(groups))) == len(arrays):
        return next(iter(groups.values()))
    width = min(max((part.numbers.shape[1] for part in groups.values()), default=0), _compared_positions(len(arrays)))
    whole = Part(
        size=np.full(len(arrays), ABSENT, dtype=np.int64),
        form=np.full(len(arrays), ABSENT, dtype=np.int64),
        content=np.full(len(arrays), ABSENT, dtype=np.int64),
        numbers=np.full((len(arrays), width), float(ABSENT)),
    )
    for rows, part in groups.items():
        at = list(rows)
        whole.size[at], whole.form[at], whole.content[at] = part.size, part.form, part.content
        own = part.numbers[:, :width]
        whole.numbers[at, : own.shape[1]] = own
    return whole


def _part_of_equal_shape_arrays(arrays: Values) -> Part:
    """Return the part of arrays of one shape and type, the rows of `arrays`."""
    draws = len(arrays)
    numbers = arrays.reshape(draws, -1)
    bits = np.ascontiguousarray(numbers, dtype=np.float64 if numbers.dtype.kind == "f" else np.int64).view(np.uint64)
    content = np.zeros(draws, dtype=np.uint64)
    for column in range(bits.shape[1]):
        content = (content + bits[:, column]) * _MULTIPLIERS[column % len(_MULTIPLIERS)]
        content ^= content >> np.uint64(29)
    kept = numbers[:, : _compared_positions(draws)]
    return Part(
        size=np.full(draws, numbers.shape[1], dtype=np.int64),
        form=np.full(draws, hash((arrays.shape[1:], arrays.dtype.kind)), dtype=np.int64),
        content=content.view(np.int64),
        numbers=kept.astype(np.int64) if kept.dtype.kind == "b" else kept,
    )


def _text_part(texts: Sequence[bytes | None]) -> Part:
    raw = tuple(b"" if text is None else text for text in texts)
    width = min(max(map(len, raw), default=0), _compared_positions(len(raw)))
    numbers = np.full((len(raw), width), ABSENT, dtype=np.int16)
    for row, own in zip(numbers, raw, strict=True):
        row[: min(width, len(own))] = np.frombuffer(own[:width], dtype=np.uint8)
    return Part(
        size=np.array([ABSENT if text is None else len(text) for text in texts], dtype=np.int64),
        form=np.array([ABSENT if text is None else 0 for text in texts], dtype=np.int64),
        content=np.array([ABSENT if text is None else hash(text) for text in texts], dtype=np.int64),
        numbers=numbers,
        raw=raw,
    )


def _compared_positions(draws: int) -> int:
    """Return the number of positions that are compared one by one."""
    return max(1, MAX_ENTRIES // max(draws, 1))


def _first_place_of_each_piece(text: bytes) -> dict[bytes, int]:
    found = {word: number for number, word in reversed(list(enumerate(_WORDS.findall(text))))}
    return found | {line: number for number, line in reversed(list(enumerate(text.splitlines())))}
