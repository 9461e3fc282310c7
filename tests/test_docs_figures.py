"""Measured figures in the documents: tables name what made them, or tests compute them again."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NUMBER = re.compile(r"(?<![\w.])\d*\.\d+(?!\w|\.\d)|\d %")
SOURCE = re.compile(
    r"`(?:python -m (?P<module>[\w.]+)|(?:python )?(?P<file>(?:benchmarks|experiments|tests|tools)/[\w./]+\.py)\b)"
)
"""Command or test that makes figures, in backquotes."""
RESULT = re.compile(r"`(?P<file>(?:benchmarks|experiments)/[\w./]+\.(?:md|csv))`")
"""Committed record of figures, in backquotes."""
EXHIBIT = re.compile(r"`crowdveil reproduce (?P<name>[\w/]+)")
"""Command that makes the figures of a paper again."""
RECOMPUTED = {
    "explanation/verdicts.md": "tests/experiments/test_published_bounds.py",
    "explanation/shuffling.md": "tests/test_printed_proofs.py",
    "explanation/synthesis/paper-reproduction.md": "tests/experiments/huai2019",
    "explanation/mechanisms/designed.md": "tests/test_printed_proofs.py",
    "explanation/mechanisms/matrix-factorization.md": "tests/test_printed_proofs.py",
    "explanation/mechanisms/two-layer.md": "tests/mechanisms/test_sun_two_layer.py",
    "explanation/mechanisms/sun-two-layer.md": "tests/mechanisms/test_sun_two_layer.py",
}
"""Pages of proofs, and the tests that compute the figures of their tables again."""
SETTINGS = {"reference/command-line.md"}
"""Pages whose numbers are settings, not measurements."""


def sections(page: Path) -> list[str]:
    """Return the sections of a page, each with its subsections, without code and console examples."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.split(r"^(?=##? )", text, flags=re.MULTILINE)


def table_of_figures(section: str) -> bool:
    """Return whether two rows of tables hold decimal numbers or percentages outside backquotes and formulas."""
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return sum(bool(NUMBER.search(re.sub(r"`[^`]*`|\$[^$]*\$", "", row))) for row in rows) >= 2


def sources(text: str) -> list[Path]:
    """Return the programs and tests that a text names."""
    found = []
    for match in SOURCE.finditer(text):
        module = re.sub(r"^crowdveil\b", "src/crowdveil", match["module"] or "").replace(".", "/")
        path = ROOT / (match["file"] or module)
        found.append(path if match["file"] or path.is_dir() else path.with_suffix(".py"))
    return found


def records(text: str) -> list[Path]:
    """Return the programs, tests and committed results that a text names; the exhibits of papers as their folders."""
    exhibits = [ROOT / "experiments" / "papers" / match["name"].split("/")[0] for match in EXHIBIT.finditer(text)]
    return [*sources(text), *(ROOT / match["file"] for match in RESULT.finditer(text)), *exhibits]


MEASURED = [
    (page, section)
    for page in sorted(DOCS.rglob("*.md"))
    if page.relative_to(DOCS).as_posix() not in RECOMPUTED.keys() | SETTINGS and "decisions" not in page.parts
    for section in sections(page)
    if table_of_figures(section)
]


@pytest.mark.parametrize(("page", "section"), MEASURED, ids=lambda value: value.stem if isinstance(value, Path) else "")
def test_table_of_figures_names_what_made_it(page: Path, section: str) -> None:
    """The section of a table of figures names a command or a test; what it names exists."""
    made_by = sources(section)

    assert made_by, f"{page.relative_to(ROOT)}: name the command that made the table in\n{section[:300]}"
    assert [] == [path for path in made_by if not path.exists()]


def test_recomputed_pages_have_their_tests() -> None:
    """The pages of proofs have tables of figures, and the tests that compute them exist."""
    assert [] == [page for page in RECOMPUTED if not any(map(table_of_figures, sections(DOCS / page)))]
    assert [] == [test for test in RECOMPUTED.values() if not (ROOT / test).exists()]


def test_named_programs_and_records_exist() -> None:
    """Every program, exhibit and committed record that a document names in backquotes exists."""
    named = {path for page in DOCS.rglob("*.md") for path in records(page.read_text("utf-8"))}

    assert named
    assert [] == [path for path in sorted(named) if not path.exists()]


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("| a | 0.5 |\n| b | 0.25 |\n", True),
        ("| a | .5 |\n| b | 12 % |\n", True),
        ("| a | 5 |\n| b | `0.25` |\n| c | $0.5$ |\n| d | 0.1 |\n", False),
    ],
)
def test_tables_of_figures_are_found(text: str, figures: bool) -> None:
    """Decimal numbers and percentages count, whole numbers, code and formulas do not."""
    assert figures == table_of_figures(text)
