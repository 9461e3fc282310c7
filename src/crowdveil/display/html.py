"""Escaped HTML: templates, tables, and the card of an object in a notebook, light or dark as the reader prefers."""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape

MAX_ROWS = 10
"""Default number of rows of a table in a card; more are counted."""
STYLE = """
.crowdveil{--ink:#1f2933;--soft:#5a6675;--paper:#ffffff;--line:#d5dae1;--accent:#0f766e;--quiet:#64748b;
color:var(--ink);background:var(--paper);border:1px solid var(--line);border-radius:6px;padding:10px 14px;
max-width:720px;font:14px/1.45 system-ui,sans-serif;overflow-x:auto}
@media (prefers-color-scheme:dark){.crowdveil{--ink:#e4e7eb;--soft:#a9b4c2;--paper:#161b22;--line:#3a4450;
--accent:#2dd4bf;--quiet:#94a3b8}}
.crowdveil b{font-size:15px}.crowdveil p{margin:4px 0}.crowdveil .soft{color:var(--soft)}
.crowdveil table{border-collapse:collapse;margin:6px 0;color:var(--ink);background:var(--paper)}
.crowdveil th,.crowdveil td{padding:2px 10px 2px 0;text-align:left;border-bottom:1px solid var(--line);
color:var(--ink);background:var(--paper)}.crowdveil th{font-weight:600}
.crowdveil svg{width:100%;max-width:420px;display:block;margin:6px 0;font:12px system-ui,sans-serif}
.crowdveil svg text{fill:var(--ink)}.crowdveil .bar{fill:var(--accent)}.crowdveil .muted{fill:var(--quiet)}
.crowdveil .cell{fill:#0f766e}.crowdveil .whisker{stroke:var(--accent);stroke-width:2}
.crowdveil .line{fill:none;stroke:var(--accent);stroke-width:2}
.crowdveil .line-1{--ink:var(--accent)}.crowdveil .line-2{--accent:#b45309;--ink:#b45309}
.crowdveil .line-3{--accent:#1d4ed8;--ink:#1d4ed8}.crowdveil .line-4{--accent:#be185d;--ink:#be185d}
@media (prefers-color-scheme:dark){.crowdveil .line-2{--accent:#f3b562;--ink:#f3b562}
.crowdveil .line-3{--accent:#8ab4ff;--ink:#8ab4ff}.crowdveil .line-4{--accent:#f58fc0;--ink:#f58fc0}}
.crowdveil .axis,.crowdveil .limit{stroke:var(--soft);stroke-width:1}.crowdveil .limit{stroke-dasharray:4 3}
"""
"""Style of a card; contrast of text is at least 4.5:1 and of marks 3:1 in both schemes."""


class Html(str):
    """Escaped HTML, which templates insert unchanged."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return the text itself, as markupsafe and jinja2 expect."""
        return str(self)


def filled(template: str, /, **values: object) -> Html:
    """Return a template with escaped values; values that are `Html` stay unchanged."""
    return Html(template.format_map({name: escaped(value) for name, value in values.items()}))


def escaped(value: object) -> Html | int | float:
    """Return text as HTML; numbers stay numbers, so that a template can format them."""
    if isinstance(value, Html | int | float):
        return value
    return Html(escape(str(value)))


def joined_html(parts: Sequence[Html]) -> Html:
    """Return parts one after the other."""
    return Html("".join(parts))


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, total: int | None = None, most: int = MAX_ROWS
) -> Html:
    """Return a table of text.

    Args:
        header: names of the columns.
        rows: cells; the first ones are shown.
        total: number of rows of the whole, if `rows` are its first ones.
        most: largest number of rows that are shown.
    """
    shown = rows[:most]
    head = joined_html([filled("<th>{name}</th>", name=name) for name in header])
    body = [
        filled("<tr>{cells}</tr>", cells=joined_html([filled("<td>{cell}</td>", cell=cell) for cell in row]))
        for row in shown
    ]
    found = filled(
        "<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>", head=head, body=joined_html(body)
    )
    left = (len(rows) if total is None else total) - len(shown)
    return found if left <= 0 else joined_html([found, paragraph(f"and {left:,} more")])


def policy_source(text: str) -> str:
    """Return the source expression of an inline script or style in a Content-Security-Policy."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def paragraph(text: str) -> Html:
    """Return a paragraph of secondary text."""
    return filled('<p class="soft">{text}</p>', text=text)


def notebook_card(title: str, facts: Sequence[str], *parts: Html | None) -> str:
    """Return an object as HTML for a notebook: title, sentences, then tables and pictures."""
    body = joined_html([*map(paragraph, facts), *(part for part in parts if part is not None)])
    style = Html(STYLE)
    return filled(
        '<div class="crowdveil"><style>{style}</style><b>{title}</b>{body}</div>', style=style, title=title, body=body
    )
