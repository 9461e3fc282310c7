"""Notes: warnings about answers, with a code where code decides on them."""

from typing import Self

NUMBERED_WORKERS = "numbered workers"
"""Code of the note that workers have numbers in place of addresses."""


class Note(str):
    """Text of a warning, with the code by which it is recognised."""

    code: str

    def __new__(cls, text: str, code: str) -> Self:
        """Return the text with its code."""
        note = super().__new__(cls, text)
        note.code = code
        return note
