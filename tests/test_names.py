"""Names are short: a reader meets them in calls, and conditions stand in docstrings."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAX_LETTERS, MAX_WORDS = 34, 4


def defined_names(path: Path) -> Iterator[str]:
    """Yield the names of functions, methods, classes and constants of a file, but those of tests."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def count_words(name: str) -> int:
    """Return the number of words of a name with underscores or capitals."""
    return sum(len(re.findall(r"[A-Z]*[a-z0-9]+|[A-Z]+", part)) for part in name.split("_"))


def test_names_are_short() -> None:
    """A name has at most 34 letters, a public one at most four words; names of tests are sentences."""
    files = [
        path for room in ("src", "tests", "experiments", "benchmarks", "tools") for path in (ROOT / room).rglob("*.py")
    ]
    names = {name for path in files for name in defined_names(path) if not name.startswith("test_")}

    assert [] == sorted(name for name in names if len(name) > MAX_LETTERS)
    assert [] == sorted(name for name in names if count_words(name) > MAX_WORDS and not name.startswith("_"))
