"""Rooms stay small enough to be read in one sitting: files, functions and module docstrings have a largest size."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "src").rglob("*.py")) + sorted((ROOT / "tests").rglob("*.py"))
MAX_FILE, MAX_FUNCTION, MAX_MODULE_DOCSTRING = 600, 60, 15
MAX_FOLDER = 15

EXCEPTIONS: dict[str, str] = {
    "src/crowdveil/standalone/checks.py": "every rule in one file that a worker reads",
}
"""Path (for a function: path::name) to the reason why it may be larger."""


def place(path: Path) -> str:
    """Path from the root of the project, with slashes."""
    return path.relative_to(ROOT).as_posix()


def sizes(path: Path) -> dict[str, float]:
    """Return the size of a file and of each of its functions, as a share of the largest that is allowed."""
    text = path.read_text("utf-8")
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    found = {place(path): len(text.splitlines()) / MAX_FILE}
    lines = {f"{place(path)}::{node.name}": (node.end_lineno or 0) - node.lineno + 1 for node in functions}
    return found | {name: count / MAX_FUNCTION for name, count in lines.items()}


def test_files_are_of_readable_size() -> None:
    """A file has at most 600 lines and none of its functions more than 60."""
    large = [name for path in FILES for name, size in sizes(path).items() if size > 1]

    assert [] == [name for name in large if name not in EXCEPTIONS]


def test_files_say_what_they_are() -> None:
    """A file begins with a docstring of at most 15 lines."""
    files = [path for path in FILES if path.name != "__init__.py" or "src" in path.parts]
    texts = {place(path): ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "" for path in files}
    lines = {name: len(text.splitlines()) for name, text in texts.items()}

    assert {} == {name: count for name, count in lines.items() if not 1 <= count <= MAX_MODULE_DOCSTRING}


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
