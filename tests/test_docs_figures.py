"""Measured figures in the documents: tables and sentences name what made them, or tests compute them again."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.docs_numbers import computed, measured

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NUMBER = re.compile(r"(?<![\w.])\d*\.\d+(?!\w|\.\d)|\d %")
MEASURE = re.compile(
    NUMBER.pattern + r"|±|\d (?:of \d[\d,]*|times|steps|ms|s|seconds|minutes|hours|[kMG]B|lines|nats)\b"
    r"|\b(?:ten|\w+teen|twenty|thirty|forty|fifty|sixty|hundred) of (?:ten|\w+teen|\w+ty|hundred)\b"
)
"""Number in a sentence that may be measured: decimal, percentage, deviation, or number with a unit or of a total."""
SOURCE = re.compile(
    r"`(?:python -m (?P<module>[\w.]+)|(?:python )?(?P<file>(?:benchmarks|experiments|tests|tools)/[\w./]+\.py)\b)"
)
"""Command or test that makes figures, in backquotes."""
RESULT = re.compile(r"`(?P<file>(?:benchmarks|experiments)/[\w./]+\.(?:md|csv))`")
"""Committed record of figures, in backquotes."""
EXHIBIT = re.compile(r"`crowdveil reproduce (?P<name>[\w/]+)")
"""Command that makes the figures of a paper again."""
RECOMPUTED = {
    "explanation/verdicts.md": "tests/experiments/test_verdicts.py",
    "explanation/shuffling.md": "tests/test_printed_proofs.py",
    "explanation/synthesis/paper-reproduction.md": "tests/synthesis/huai2019",
    "explanation/mechanisms/designed.md": "tests/test_printed_proofs.py",
    "explanation/mechanisms/matrix-factorization.md": "tests/test_printed_proofs.py",
    "explanation/mechanisms/two-layer.md": "tests/mechanisms/test_printed_figures.py",
    "explanation/mechanisms/sun-two-layer.md": "tests/mechanisms/test_printed_figures.py",
}
"""Pages of proofs, and the tests that compute the figures of their tables again."""
SETTINGS = {"reference/command-line.md"}
"""Pages whose numbers are settings, not measurements."""
NO_MEASUREMENTS = re.compile(
    r"`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)"
    r"|(?:[Tt]heorems?|[Ss]ections?|[Ee]quations?|[Aa]lgorithms?|[Dd]efinitions?|[Tt]ables?) \d+\.\d+(?:\.\d+)?"
    r"|\(\d\.\d\)|\d+ % (?:credible )?(?:intervals?|sets|quantile|confidence)"
    r"|(?:[Ee]psilon|claim|claimed|delta) (?:of )?\d*\.\d+",
    re.DOTALL,
)
"""Code, formulas, targets of links, numbers of theorems, levels of intervals, and chosen epsilons and deltas."""

CLAIMS = (*computed.CLAIMS, *measured.CLAIMS)
"""Passages whose figures `tests/docs_numbers` computes again."""
SETTING, EXAMPLE = "setting of the method", "chosen for the example"
NOT_MEASURED = {
    "../README.md": {"(Python 3.11 or newer)": "version", "Apache-2.0": "name of the license"},
    "decisions/0005-few-dependencies.md": {
        "is below 450 MB": "`.ci/run` checks it",
        "(about 210 MB)": "size of the installed packages numba and llvmlite",
        "(70 MB)": "size of the installed package numpy",
    },
    "decisions/0014-campaigns-are-canonical-documents.md": {"the 2 MB of a document": "limit of the format"},
    "decisions/0015-the-page-is-two-modules.md": {
        "at most 600 lines without": "limit, held by `tests/test_sizes.py`",
        "(at most 600 lines, imports nothing)": "limit, held by `tests/test_sizes.py`",
    },
    "explanation/audits.md": {"0.001 by default": SETTING},
    "explanation/estimators/dawid-skene.md": {
        "`anchor_ability` 0.7.": SETTING,
        "0.1 campaigns of answer frequencies": SETTING,
    },
    "explanation/estimators/gaussian.md": {
        "0.01 pseudo-workers": SETTING,
        "2 % of each": SETTING,
        "1 % uniform": SETTING,
        "no factor of 2 holds 90 % of": SETTING,
    },
    "explanation/estimators/one-coin.md": {"= 0.7 with standard deviation 0.1": SETTING},
    "explanation/estimators/ordinal-dawid-skene.md": {
        "below 0.001": SETTING,
        "(factors 0.33 to 3": SETTING,
        "at least 0.2 of a level": SETTING,
        "95 % of their answers": SETTING,
        "standard deviations 0.7 and 0.25), with 15 %": SETTING,
    },
    "explanation/estimators/student-t.md": {"5 % of $s$": SETTING},
    "explanation/estimators/weighted-mean.md": {"(1 %)": SETTING},
    "explanation/estimators/weighted-vote.md": {"40 % of tasks with five labels": EXAMPLE},
    "explanation/estimators/zero-based-skill.md": {"every 20 steps": SETTING},
    "explanation/mechanisms/designed.md": {"72 % of the truths the first, 7 %": EXAMPLE, "ability 0.75": EXAMPLE},
    "explanation/mechanisms/matrix-factorization.md": {
        "1 or 0.5": EXAMPLE,
        "such as 0.1": EXAMPLE,
        ".17 / 1.48, .81 / .89 and .97 / .35": "`tests/test_printed_proofs.py` computes them",
    },
    "explanation/planning.md": {"5 % of the error": SETTING},
    "explanation/synthesis/private.md": {
        "35 % of the task's budget": SETTING,
        "5 % of the smallest budget. The spread": SETTING,
        "90 % of the claims": SETTING,
        "15 % of the smallest budget": SETTING,
    },
    "explanation/synthesis/utility.md": {"spends 35 %": SETTING},
    "explanation/threat-model.md": {'"epsilon=0.01"': EXAMPLE},
    "explanation/uncertainty.md": {"5 % and 95 % quantiles": "level of the interval"},
    "explanation/verdicts.md": {"truth 4.5": EXAMPLE},
    "how-to/add-a-mechanism.md": {
        "5 % wrong": "alternative of the test in `tests/mechanisms/test_mechanism_contract.py`"
    },
    "how-to/plan.md": {'"less than 0.0021"': "form of the output"},
    "how-to/run-a-campaign.md": {"above 0.9 of": SETTING},
    "tutorials/choose-epsilon.md": {"at most 5 % of the truths": EXAMPLE, "the target of 0.05": EXAMPLE},
}
"""Numbers in sentences of a page that are no measurements, each with the reason."""


def without_code(text: str) -> str:
    """Return the text of a page without code and console examples."""
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def sections(page: Path) -> list[str]:
    """Return the sections of a page, each with its subsections, without code and console examples."""
    return re.split(r"^(?=##? )", without_code(page.read_text("utf-8")), flags=re.MULTILINE)


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


def unchecked_sentences(page: str, text: str, exceptions: Iterable[str] = ()) -> Iterator[str]:
    """Yield paragraphs and points with measured numbers that are not computed again and name no record.

    The record stands in the same section, subsections left out.
    """
    text = without_code(text)
    for claim in (claim for claim in CLAIMS if claim.page == page):
        for place in claim.places(text):
            text = text.replace(place[0], "")
    for passage in exceptions:
        text = text.replace(passage, "")
    for section in re.split(r"^(?=#+ )", text, flags=re.MULTILINE):
        lines = [line for line in section.splitlines() if not line.startswith(("|", "#", "<"))]
        if not records(section):
            for item in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", "\n".join(lines)):
                if MEASURE.search(NO_MEASUREMENTS.sub("", item)):
                    yield item.strip()


def name_of(page: Path) -> str:
    """Return the path of a page from docs/."""
    return os.path.relpath(page, DOCS).replace(os.sep, "/")


MEASURED = [
    (page, section)
    for page in sorted(DOCS.rglob("*.md"))
    if page.relative_to(DOCS).as_posix() not in RECOMPUTED.keys() | SETTINGS and "decisions" not in page.parts
    for section in sections(page)
    if table_of_figures(section)
]
PAGES = [page for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))) if name_of(page) not in SETTINGS]


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


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_sentences_with_measured_numbers_name_their_record(page: Path) -> None:
    """A measured number in a sentence is computed again by `tests/docs_numbers`, or its section names its record."""
    name = name_of(page)

    assert [] == list(unchecked_sentences(name, page.read_text("utf-8"), NOT_MEASURED.get(name, {})))


@pytest.mark.parametrize("page", NOT_MEASURED)
def test_every_exception_is_needed(page: str) -> None:
    """Without one of its exceptions a page does not pass; a test that a reason names exists."""
    text, exceptions = (DOCS / page).read_text("utf-8"), NOT_MEASURED[page]
    others = {passage: [one for one in exceptions if one != passage] for passage in exceptions}

    assert [] == [passage for passage, rest in others.items() if not list(unchecked_sentences(page, text, rest))]
    assert [] == [path for reason in exceptions.values() for path in sources(reason) if not path.exists()]


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


@pytest.mark.parametrize(
    "sentence",
    [
        "The error is 0.12.",
        "The error is .12.",
        "It is right in 12 % of the cases.",
        "It takes 3 s.",
        "It needs 40 MB.",
        "It is 11 times slower.",
        "It holds 61 of 65 errors.",
        "It holds in sixteen of twenty cases.",
        "It errs by 3 ± 1.",
        "At epsilon 0.5 the error is 0.12.",
        "accuracy on bluebird is 0.7593, that of `dawid-skene` 0.898.",
    ],
)
@pytest.mark.parametrize(
    "around", ["{}\n", "- {}\n", "A sentence.\n{}\n\n| a | 1 |\n", "```\n`tests/chi_square.py`\n```\n\n{}\n"]
)
def test_a_number_without_record_is_found(sentence: str, around: str) -> None:
    """A measured number in a paragraph or a point fails, also where another section or a code block names a record."""
    text = f"# Other\n\nBy `tests/chi_square.py`.\n\n## Section\n\n{around.format(sentence)}"

    (found,) = unchecked_sentences("page.md", text)

    assert sentence in found
    assert [] == list(unchecked_sentences("page.md", text, [sentence]))


@pytest.mark.parametrize(
    "sentence",
    [
        "The error is 0.12 (`python -m experiments.methods`).",
        "The error is 0.12 (`experiments/methods/results/methods.csv`).",
        "The error is 0.12.\n\nBy `crowdveil reproduce li2018/figure4`.",
        "At epsilon 0.5, by Theorem 6.3 and (2.4), the 90 % interval is `0.5` or $0.5$, for 25 tasks of 3 labels.",
    ],
)
def test_settings_and_numbers_with_a_record_pass(sentence: str) -> None:
    """A number whose section names a program, a committed table or an exhibit passes; settings and formulas do too."""
    assert [] == list(unchecked_sentences("page.md", sentence))


def test_a_computed_passage_passes_only_as_a_whole() -> None:
    """The passage of a claim passes on its page; with another word, or on another page, its numbers are found."""
    page, text = "explanation/composition.md", "5 cells at epsilon 1 have 4.999996 at delta 1e-6."

    assert [] == list(unchecked_sentences(page, text))
    assert [text] == list(unchecked_sentences("explanation/planning.md", text))
    assert 1 == len(list(unchecked_sentences(page, text.replace("have", "lose"))))
