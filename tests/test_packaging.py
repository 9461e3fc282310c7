"""Packaging: ranges of dependencies and their pins, Pythons that are tested, and what a release tag must name."""

import re
import tomllib
from pathlib import Path

import pytest
from tools.release_notes import release_notes

ROOT = Path(__file__).parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = SETTINGS["project"]
OPTIONAL = PROJECT["optional-dependencies"]
PINNED = ("plots", "test", "test-slow", "lint")
REQUIREMENTS = sorted({*PROJECT["dependencies"], *(one for extra in PINNED for one in OPTIONAL[extra])})
RANGE = re.compile(r"([a-z0-9-]+)>=([0-9.]+),<([0-9.]+)")


def pins(name: str) -> dict[str, str]:
    """Return the version of every package that a file of constraints names."""
    return dict(line.split("==") for line in (ROOT / "constraints" / f"{name}.txt").read_text("utf-8").split())


def numbers(version: str) -> tuple[int, ...]:
    """Return the parts of a version, without zeros at its end: 3.8.0 equals 3.8."""
    parts = [int(part) for part in re.findall(r"\d+", version)]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


@pytest.mark.parametrize(
    "requirement", sorted({text for extra in OPTIONAL.values() for text in extra} | {*REQUIREMENTS})
)
def test_a_dependency_has_a_range(requirement: str) -> None:
    """A requirement names its lowest version, and the first version that it excludes."""
    assert RANGE.fullmatch(requirement)


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_the_lowest_pin_is_the_lower_bound(requirement: str) -> None:
    """`constraints/lowest.txt` pins the first release that a range allows."""
    name, low, _ = RANGE.fullmatch(requirement).groups()
    pinned = numbers(pins("lowest")[name])

    assert numbers(low) == pinned[: len(numbers(low))]


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_the_newest_pin_is_within_the_range(requirement: str) -> None:
    """`constraints/newest.txt` pins a version between the two bounds."""
    name, low, stop = RANGE.fullmatch(requirement).groups()

    assert numbers(low) <= numbers(pins("newest")[name]) < numbers(stop)


def test_every_supported_python_is_tested() -> None:
    """The Pythons of the classifiers are those of the workflow: the oldest runs everything, the others all tests."""
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    named = re.findall(r"^Programming Language :: Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    oldest, *others = (re.findall(r'"([0-9.]+)"', line) for line in re.findall(r"python.*: .*3\..*", workflow))

    assert [named[0]] == oldest
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert named[1:] in others


def test_mypy_settings_name_modules_that_exist() -> None:
    """Every module of the project that an override of mypy names exists: a moved one would lose its settings."""
    patterns = [one for override in SETTINGS["tool"]["mypy"]["overrides"] for one in override["module"]]
    paths = [
        one.removesuffix(".*").replace(".", "/")
        for one in patterns
        if one.startswith(("crowdveil.", "tests.", "experiments."))
    ]

    assert paths
    assert [] == [path for path in paths if not [*ROOT.glob(f"{path}*"), *(ROOT / "src").glob(f"{path}*")]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the three files that name a version: 1.2.0 in each."""
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n', "utf-8")
    (tmp_path / "CITATION.cff").write_text("title: x\nversion: 1.2.0\n", "utf-8")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 1.2.0, 2027-01-31\n\n- New.\n\n## 1.1.0, 2027-01-01\n\n- Old.\n"
    )
    return tmp_path


def test_release_notes_are_the_section_of_the_tag(project: Path) -> None:
    """The notes of a tag are what the changelog says of its version, and nothing of older ones."""
    assert release_notes("v1.2.0", project) == "- New.\n"


@pytest.mark.parametrize(
    ("tag", "file", "text"),
    [
        ("v1.1.0", "CHANGELOG.md", "## 1.1.0, 2027-01-01\n\n- Old.\n"),
        ("1.2.0", "CHANGELOG.md", "## 1.2.0, 2027-01-31\n\n- New.\n"),
        ("v1.2.0", "CITATION.cff", "version: 1.1.0\n"),
        ("v1.2.0", "CHANGELOG.md", "## 1.2.0, not released yet\n\n- New.\n"),
        ("v1.2.0", "CHANGELOG.md", "## 1.2.0, 2027-01-31\n\n## 1.1.0, 2027-01-01\n\n- Old.\n"),
    ],
)
def test_a_tag_that_the_files_contradict_is_refused(project: Path, tag: str, file: str, text: str) -> None:
    """A tag is refused if a file names another version, or the changelog has no dated section with changes for it."""
    (project / file).write_text(text, "utf-8")

    with pytest.raises(SystemExit, match="must"):
        release_notes(tag, project)
