"""Quotes in comma-separated text: the checked stream agrees with the csv module's strict reader, wherever it is cut."""

import csv
import io
from threading import Event, Thread

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crowdveil.data.ingest.csv_reader import QuoteCheck

PIECES = ['"', '""', ",", "\n", "\r\n", "a", "b", '"a"', '"a""b",', '5" disc']
AWKWARD = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


class InParts(io.RawIOBase):
    """Bytes that come in parts of given sizes, again and again."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self.stream, self.sizes, self.turn = io.BytesIO(data), sizes, 0

    def read(self, size: int = -1) -> bytes:
        """Return the next part."""
        self.turn += 1
        return self.stream.read(self.sizes[self.turn % len(self.sizes)])


def sound(data: bytes, sizes: list[int]) -> bool:
    """Return whether the quotes in these bytes are well placed, read in parts."""
    checked = QuoteCheck(InParts(data, sizes))
    while checked.read(1 << 20):
        pass
    checked.finish()
    return checked.sound


def strictly_read(text: str) -> bool:
    """Return whether the csv module reads a text without a complaint about its quotes."""
    try:
        list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return False
    return True


@given(AWKWARD, st.lists(st.integers(1, 7), min_size=1, max_size=5))
@example('"a"4', [1])
@example('a"",b\n"c"', [2])
@example('a,""\n', [3])
@example('"""",b', [3, 1])
@example('"""', [2])
def test_quotes_are_checked_like_a_strict_reader_does(text: str, sizes: list[int]) -> None:
    """Text after a closing quote, and a quote that is never closed, are found wherever the bytes are cut."""
    assert strictly_read(text) == sound(text.encode(), sizes)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'\xef\xbb\xbf"task",worker\n', True),
        (b'\xef\xbb\xbf"task"x,worker\n', False),
        (b"task,worker\n", True),
        (b"", True),
    ],
)
def test_a_mark_before_the_first_cell_is_no_text(data: bytes, expected: bool) -> None:
    """A quote after the byte-order mark opens a cell."""
    assert expected == sound(data, [100])


class Waiting(io.BytesIO):
    """Bytes that come only once they may; `order` notes what has happened."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.asked, self.may = Event(), Event()
        self.order: list[str] = []

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes, later."""
        self.asked.set()
        assert self.may.wait(60)
        self.order.append("read")
        return super().read(size)


def test_closing_waits_for_a_read_and_ends_all_later_ones() -> None:
    """A thread that reads ahead has its bytes before `close` returns, and reads nothing after it."""
    raw = Waiting(b"task,worker\n")
    checked = QuoteCheck(raw)
    reading = Thread(target=checked.read, args=(4,))
    closing = Thread(target=lambda: (checked.close(), raw.order.append("closed")))
    reading.start()
    assert raw.asked.wait(60)
    closing.start()
    closing.join(0.05)
    assert (True, []) == (closing.is_alive(), raw.order)
    raw.may.set()
    for thread in (reading, closing):
        thread.join(60)

    assert ["read", "closed"] == raw.order
    assert (True, b"") == (checked.closed, checked.read(4))
