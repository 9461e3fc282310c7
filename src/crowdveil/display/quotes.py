"""Words of others in sentences of this program: in quotes and in one line, so that none passes for its own."""

import re
import unicodedata

_RIGHT_TO_LEFT = frozenset({"R", "AL"})
"""Classes of signs that are written from right to left."""
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def quoted(text: str) -> str:
    """Return a name or text of others in quotes, with quotes inside escaped; a plain number, which says nothing, as is.

    Lines are joined, and signs that do not print are escaped.
    """
    return text if _NUMBER.fullmatch(text) else repr(" ".join(text.split()))


def isolated(text: str) -> str:
    """Return a name or text of others in quotes, which does not move the numbers after it.

    A sentence puts what follows a text from right to left on its other side, and a minus behind its number; between
    isolates it does not.
    """
    plain = quoted(text)
    if _RIGHT_TO_LEFT.isdisjoint(map(unicodedata.bidirectional, plain)):
        return plain
    return f"\N{FIRST STRONG ISOLATE}{plain}\N{POP DIRECTIONAL ISOLATE}"
