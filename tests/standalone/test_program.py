"""The program that workers get: its text, its hash, and the command that writes it."""

import ast
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from crowdveil.cli import main
from crowdveil.standalone import device
from crowdveil.standalone.program import is_program, joined_program, program_digest


def test_the_program_is_written(tmp_path):
    """`campaign page --python` writes the program, and prints its SHA-256; it replaces programs only."""
    path = tmp_path / "my.py"
    words = ["campaign", "page", "--python", str(path), "--json"]
    printed = [json.loads(CliRunner().invoke(main, words).stdout) for _ in range(2)]

    assert path.read_bytes() == joined_program()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == printed[0]["sha256"] == program_digest()
    assert [[], [str(path)]] == [run["replaced"] for run in printed]


def test_another_file_is_not_replaced(tmp_path):
    """A file that is no device program stays."""
    path = tmp_path / "my.py"
    path.write_text("print('mine')\n")
    refused = CliRunner().invoke(main, ["campaign", "page", "--python", str(path)])

    assert (1, "print('mine')\n") == (refused.exit_code, path.read_text())
    assert not is_program(b"")


@pytest.mark.parametrize("name", ["device.py", "verification.py"])
def test_a_program_of_one_file_needs_python_alone(name, tmp_path):
    """A joined program is the same each time, runs without the package, and defines no name twice."""
    path = tmp_path / "program.py"
    path.write_bytes(joined_program(name))
    tree = ast.parse(path.read_text("utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    defined += [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    done = subprocess.run([sys.executable, "-I", path, "--help"], capture_output=True, text=True, check=False)

    assert path.read_bytes() == joined_program(name)
    assert set() == {module.split(".")[0] for module in imported} - sys.stdlib_module_names
    assert [] == [one for one, count in Counter(defined).items() if count > 1]
    assert "Traceback" not in done.stderr


def without_docstrings(program):
    """Return a Python program with an empty line for each line of a docstring."""
    lines = program.splitlines()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return "\n".join(lines)


def code_lines(text):
    """Return the number of lines that are neither blank nor comment."""
    return sum(re.fullmatch(r"\s*((#|//|/?\*).*)?", line) is None for line in text.splitlines())


def test_what_a_worker_must_trust_is_short():
    """What checks, draws, stores and sends is one Python program, with its screens, and two files in JavaScript."""
    static = Path(device.__file__).parents[1] / "service" / "static"
    script = sum(code_lines((static / name).read_text("utf-8")) for name in ("device.mjs", "hpke.mjs"))

    assert code_lines(without_docstrings(joined_program().decode())) + script <= 1600
    assert script <= 750
