"""Words of others in sentences of this program: in quotes and in one line, so that none passes for its own."""

import re

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def quoted(text: str) -> str:
    """Return a name or text of others in quotes, with quotes inside escaped; a plain number, which says nothing, as is.

    Lines are joined, and signs that do not print are escaped.
    """
    return text if _NUMBER.fullmatch(text) else repr(" ".join(text.split()))
