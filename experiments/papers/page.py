"""Page of an exhibit in Markdown: verdict, picture, the paper's numbers and ours, open parameters, command."""

import math
import platform
from collections.abc import Sequence
from importlib.metadata import version

from experiments.papers.exhibit import Exhibit, Row, Size, Verdict

from crowdveil.channels.rounding import format_bound

COMMAND = "python -m experiments.papers"
SHOWN_ROWS = 60
"""Largest number of rows on a page; the CSV file has all."""
COLUMNS = ("parameter", "used", "swept", "effect")
"""Columns of the table of parameters."""
LIBRARIES = ("crowdveil", "numpy", "scipy")


def page_text(exhibit: Exhibit, size: Size, rows: Sequence[Row], verdict: Verdict, picture: str | None) -> str:
    """Return the page; `picture` is a file name."""
    stem = exhibit.name.partition("/")[2]
    holds = "" if verdict.inequality else " The inequality behind this sentence does not hold on these rows."
    parts = [
        f"# {exhibit.title}",
        f"{exhibit.source}. **{verdict.outcome.capitalize()}**: {verdict.sentence}{holds}",
        *([f"![{exhibit.title}]({picture})"] if picture else []),
        *exhibit.notes,
        "## The paper's numbers",
        markdown_table(exhibit.paper) if exhibit.paper else "The paper prints no numbers here.",
        "## Our numbers",
        markdown_table(rows[:SHOWN_ROWS], exhibit.columns),
        *(
            [f"The first {SHOWN_ROWS} of {len(rows):,} rows; [{stem}.csv]({stem}.csv) has all."]
            if len(rows) > SHOWN_ROWS
            else []
        ),
        "## Parameters that the paper does not give",
        _parameters(exhibit),
        "## Command",
        f"`{command(exhibit, size)}` (size: {size}), with {_versions()}.",
    ]
    return "\n\n".join(parts) + "\n"


def command(exhibit: Exhibit, size: Size) -> str:
    """Return the command line that makes the page."""
    return f"{COMMAND} {exhibit.name}" + ("" if size == "default" else f" --{size}")


def markdown_table(rows: Sequence[Row], columns: Sequence[str] | None = None) -> str:
    """Return rows as a table; numbers have four significant digits, exact losses are rounded up, None is empty."""
    names = list(columns or dict.fromkeys(name for row in rows for name in row))
    lines = [names, ["---"] * len(names), *([_cell(name, row.get(name)) for name in names] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(name: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        if math.isinf(value):
            return "infinite"
        return format_bound(value, 4) if name.startswith("exact_") else f"{value:.4g}"
    return str(value).replace("|", "\\|")


def _parameters(exhibit: Exhibit) -> str:
    if not exhibit.open_parameters:
        return "None."
    return markdown_table([{"parameter": one["name"], **one} for one in exhibit.open_parameters], COLUMNS)


def _versions() -> str:
    return ", ".join([*(f"{name} {version(name)}" for name in LIBRARIES), f"Python {platform.python_version()}"])
