"""Rooms stay small enough to be read in one sitting: files, functions and module docstrings have a largest size."""

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "src").rglob("*.py")) + sorted((ROOT / "tests").rglob("*.py"))
MAX_FILE, MAX_FUNCTION, MAX_MODULE_DOCSTRING = 600, 60, 15
MAX_FOLDER = 15

EXCEPTIONS: dict[str, str] = {
    "src/crowdveil/campaign/standalone/device.py": "one file that a worker reads and runs alone",
    "src/crowdveil/privacy/verification.py": "one file that a reader runs alone, without the package",
}
"""Path (for a function: path::name) to the reason why it may be larger."""


def place(path: Path) -> str:
    """Path from the root of the project, with slashes."""
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", FILES, ids=place)
def test_file_is_of_readable_size(path: Path) -> None:
    """A file has at most 600 lines and none of its functions more than 60."""
    text = path.read_text("utf-8")
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    sizes = {place(path): len(text.splitlines()) / MAX_FILE}
    sizes |= {f"{place(path)}::{f.name}": (f.end_lineno - f.lineno + 1) / MAX_FUNCTION for f in functions}  # type: ignore[operator]

    assert [name for name, size in sizes.items() if size > 1 and name not in EXCEPTIONS] == []


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.name != "__init__.py" or "src" in path.parts], ids=place
)
def test_file_says_what_it_is(path: Path) -> None:
    """A file begins with a docstring of at most 15 lines."""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")))

    assert docstring is not None
    assert 1 <= len(docstring.splitlines()) <= MAX_MODULE_DOCSTRING


def test_folder_has_at_most_fifteen_source_files() -> None:
    """A folder of the package has at most 15 files of Python."""
    folders = Counter(place(path.parent) for path in FILES if "src" in path.parts)

    assert {} == {folder: count for folder, count in folders.items() if count > MAX_FOLDER}


def test_there_is_no_drawer_for_odds_and_ends() -> None:
    """No file is called utils: what a function is about decides where it lives."""
    assert [place(path) for path in FILES if path.stem in {"utils", "util", "helpers", "misc", "common"}] == []


def test_every_exception_names_a_file_that_exists() -> None:
    """An exception names a file that exists."""
    for name in EXCEPTIONS:
        assert (ROOT / name.split("::")[0]).exists()
