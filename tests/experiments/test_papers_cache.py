"""Key of the cache of exhibits: what rows depend on changes it, what they do not depend on does not."""

from pathlib import Path

import pytest
from experiments.papers import cache

EXHIBIT = """from experiments.shared import value


def measure(step):
    return [{"value": value()}]


def verdict(rows):
    return "a sentence"
"""
SHARED = "def value():\n    return 1\n"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an exhibit and of a module that it imports."""
    folder = tmp_path / "experiments"
    folder.mkdir()
    (folder / "exhibit.py").write_text(EXHIBIT, "utf-8")
    (folder / "shared.py").write_text(SHARED, "utf-8")
    monkeypatch.setattr(cache, "ROOT", tmp_path)
    return folder


def key() -> str:
    """Return the key of the exhibit's program as it is now."""
    cache._program.cache_clear()
    return cache._program("experiments.exhibit")


def test_the_verdict_keeps_the_rows(program: Path):
    """A change of the verdict keeps the key."""
    before = key()
    (program / "exhibit.py").write_text(EXHIBIT.replace("a sentence", "another"), "utf-8")

    assert before == key()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("exhibit.py", "value()}", "2 * value()}"),
        ("shared.py", "return 1", "return 2"),
        ("exhibit.py", "from experiments.shared import value", "from experiments import shared\nvalue = shared.value"),
    ],
)
def test_a_change_of_what_is_measured_asks_for_new_rows(file: str, old: str, new: str, program: Path):
    """A change of the measurement, or of a module that it imports, gives another key."""
    before = key()
    path = program / file
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")

    assert before != key()


@pytest.mark.parametrize("line", ["import experiments.shared", "from experiments import shared"])
def test_every_form_of_import_is_followed(line: str, program: Path):
    """A module counts in whichever form it is imported."""
    (program / "exhibit.py").write_text(line + "\n", "utf-8")
    before = key()
    (program / "shared.py").write_text(SHARED.replace("1", "2"), "utf-8")

    assert before != key()
