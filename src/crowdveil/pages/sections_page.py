"""Page of a result for everyone: its first sentences, its sections with pictures, how to read them, and privacy."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from crowdveil.display.quotes import quoted
from crowdveil.pages.results_page import filled_template, style_sheet
from crowdveil.privacy.statement import PrivacyStatement


def sections_page(
    template: str,
    statement: PrivacyStatement,
    *,
    title: str,
    eyebrow: str,
    lead: Sequence[str],
    parts: Sequence[Any],
    reading: Sequence[str],
    **values: Any,
) -> str:
    """Return a page as HTML.

    Args:
        template: name of the template of its sections, which extends that of all pages.
        statement: checked statement of privacy.
        title: heading; words of others unless it is the eyebrow.
        eyebrow: kind of page, above the heading.
        lead: sentences that are read first.
        parts: sections, as the template takes them.
        reading: sentences on how to read the page.
        values: further values of the template.
    """
    return filled_template(
        template,
        statement,
        title=title if title == eyebrow else quoted(title),
        style=sections_style_sheet(),
        heading=title,
        eyebrow=eyebrow,
        lead=lead,
        not_covered=statement.not_covered,
        parts=parts,
        reading=reading,
        **values,
    )


def sections_style_sheet() -> str:
    """Return the style sheet of the page."""
    return style_sheet() + (files("crowdveil.pages") / "templates" / "sections.css").read_text("utf-8")
