"""Options are named by the command line alone: the library names arguments, which the reader's side renders."""

import ast
import re
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "crowdveil"
COMMAND_LINE = ("cli", "standalone")
"""Folders of programs with options of their own."""
STYLES = {"display/html.py", "display/svg_pictures.py"}
"""Files whose texts are style sheets, which have custom properties such as `--ink`."""
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def options_named(path: Path) -> list[str]:
    """Options in the texts of a file, docstrings and parts of f-strings included."""
    texts = [node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant)]
    return [option for text in texts if isinstance(text, str) for option in OPTION.findall(text)]


def test_the_library_names_no_option() -> None:
    """No text outside the commands names an option, docstrings included."""
    found = {
        path.relative_to(SOURCE).as_posix(): options
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] not in COMMAND_LINE and (options := options_named(path))
    }

    assert {} == {file: options for file, options in found.items() if file not in STYLES}


def test_templates_of_advice_are_literals() -> None:
    """The text that `advice` reads is ours: no variable, and in an f-string no value of a user, is part of it."""
    free = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        if path.name != "hints.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("advice", "command_advice")
        and not isinstance(node.args[0], ast.Constant)
    ]

    assert free == []
