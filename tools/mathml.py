"""Sphinx extension: formulas become MathML when the site is built, so that pages need no script and no network.

A LaTeX command that the converter does not know is a warning, and so an error of the strict build.
"""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

REWRITTEN = (
    (re.compile(r"\\tag\{(.*?)\}"), r"\\qquad(\\text{\1})"),
    (re.compile(r"\\arg\b"), r"\\operatorname{arg}"),
    (re.compile(r"\{aligned\}"), "{align*}"),
)
"""LaTeX that the converter does not know, and equivalents that it knows."""
logger = logging.getLogger(__name__)


def to_mathml(formula: nodes.Element, display: str) -> str:
    """Return a formula's MathML; warn where a command stays unconverted."""
    known = source = formula.astext().strip()
    for pattern, replacement in REWRITTEN:
        known = pattern.sub(replacement, known)
    mathml = convert(known, display=display)
    if "\\" in mathml or "<mi>&</mi>" in mathml:
        logger.warning("unknown command in the formula %s", source, location=formula)
    return mathml


def visit_inline(translator: Any, node: nodes.Element) -> None:
    """Write a formula inside a line."""
    translator.body.append(to_mathml(node, "inline"))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.Element) -> None:
    """Write a formula on a line of its own."""
    translator.body.append(f'<div class="math">{to_mathml(node, "block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer `mathml` (called by Sphinx)."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
