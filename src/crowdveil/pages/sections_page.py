"""Page of a result for everyone: its first sentences, its sections with pictures, how to read them, and privacy."""

from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from crowdveil.display.html import policy_source
from crowdveil.pages.results_page import code_as_html, style_sheet
from crowdveil.privacy.statement import PrivacyStatement, statement_sentences


def sections_page(
    template: str,
    statement: PrivacyStatement,
    *,
    title: str,
    eyebrow: str,
    lead: Sequence[str],
    parts: Sequence[Any],
    reading: Sequence[str],
) -> str:
    """Return a page as HTML.

    Args:
        template: name of the template of its sections, which extends that of all pages.
        statement: checked statement of privacy.
        title: heading.
        eyebrow: kind of page, above the heading.
        lead: sentences that are read first.
        parts: sections, as the template takes them.
        reading: sentences on how to read the page.
    """
    environment = Environment(
        loader=PackageLoader("crowdveil.pages", "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    filters: dict[str, Callable[..., str]] = {"code": code_as_html}
    environment.filters |= filters
    style = style_sheet() + (files("crowdveil.pages") / "templates" / "sections.css").read_text("utf-8")
    return environment.get_template(template).render(
        title=title,
        eyebrow=eyebrow,
        style=Markup(style),
        policy=f"default-src 'none'; style-src {policy_source(style)}; base-uri 'none'; form-action 'none'",
        version=version("crowdveil"),
        lead=lead,
        sentences=statement_sentences(statement),
        privacy_class="" if statement.status == "protected" else "warn",
        not_covered=statement.not_covered,
        parts=parts,
        reading=reading,
    )
