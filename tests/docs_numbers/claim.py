"""Claims of the documents: passages of pages with figures that are computed again."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
FIGURE = r"(-?[\d.,]*\d(?:e\d+)?)"

Figures = tuple[float | str, ...]
"""Numbers, to be rounded as the page rounds them, and texts that must stand there."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One passage of a page under docs/, with `{}` where its figures stand, and the computation of these figures."""

    page: str
    passage: str
    compute: Callable[[], Figures]

    def places(self, text: str) -> list[re.Match[str]]:
        """Return the places of the passage in the text of a page; a line break counts as a space."""
        parts = [r"\s+".join(map(re.escape, re.split(r"\s", part))) for part in self.passage.split("{}")]
        return list(re.finditer(FIGURE.join(parts), text))

    def differences(self, text: str) -> list[tuple[str, str]]:
        """Return (as printed, as computed) for every figure of the text that is not the computed one."""
        (found,) = self.places(text)
        pairs = [(one, as_printed(value, one)) for one, value in zip(found.groups(), self.compute(), strict=True)]
        return [(printed, computed) for printed, computed in pairs if printed != computed]


def claims_of(pages: dict[str, dict[str, Callable[[], Figures]]]) -> tuple[Claim, ...]:
    """Return claims from the computations of passages by page."""
    return tuple(Claim(page, passage, compute) for page, found in pages.items() for passage, compute in found.items())


def page_text(page: str) -> str:
    """Return the text of a page under docs/."""
    return (DOCS / page).read_text("utf-8")


def as_printed(value: float | str, like: str) -> str:
    """Return a number with the decimals, the thousands' commas and the zero before the point of another text."""
    if isinstance(value, str):
        return value
    text = f"{value:,.{len(like.partition('.')[2])}f}"
    text = text if "," in like else text.replace(",", "")
    return text.removeprefix("0") if like.startswith(".") else text
