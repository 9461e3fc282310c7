"""A MkDocs hook: formulas become MathML while the site is built, so that pages need no script and no network.

The Markdown extension `pymdownx.arithmatex` (generic form) leaves formulas between marks; here they are converted.
A command that the converter does not know is a warning, and so an error of the strict build.
"""

import html
import logging
import re
from typing import Any

from latex2mathml.converter import convert

REWRITTEN = (
    (re.compile(r"\\tag\{(.*?)\}"), r"\\qquad(\\text{\1})"),
    (re.compile(r"\\arg\b"), r"\\operatorname{arg}"),
    (re.compile(r"\{aligned\}"), "{align*}"),
)
"""LaTeX that the converter does not know, and what it does."""
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
log = logging.getLogger("mkdocs.plugins.mathml")


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Replace every formula of a page (called by MkDocs)."""

    def to_mathml(match: re.Match[str]) -> str:
        tag, source = match.group(1), html.unescape(match.group(2)).strip()
        known = source
        for pattern, replacement in REWRITTEN:
            known = pattern.sub(replacement, known)
        mathml = convert(known, display="block" if tag == "div" else "inline")
        if "\\" in mathml or "<mi>&</mi>" in mathml:
            log.warning("%s: this formula holds a command unknown to the converter: %s", page.file.src_uri, source)
        return mathml

    return FORMULA.sub(to_mathml, content)
