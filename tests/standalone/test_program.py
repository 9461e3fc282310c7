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
from crowdveil.standalone.program import is_program, program_bytes, program_digest

MOST_LINES = 1900


def test_the_program_is_written(tmp_path):
    """`campaign page --python` writes the program, and prints its SHA-256; it replaces programs only."""
    path = tmp_path / "my.py"
    words = ["campaign", "page", "--python", str(path), "--json"]
    printed = [json.loads(CliRunner().invoke(main, words).stdout) for _ in range(2)]

    assert path.read_bytes() == program_bytes()
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
    path.write_bytes(program_bytes(name))
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

    assert path.read_bytes() == program_bytes(name)
    assert set() == {module.split(".")[0] for module in imported} - sys.stdlib_module_names
    assert [] == [one for one, count in Counter(defined).items() if count > 1]
    assert "Traceback" not in done.stderr


def code_lines(path):
    """Return the lines of a file that are neither blank nor a comment."""
    return sum(re.fullmatch(r"\s*((#|//).*)?", line) is None for line in path.read_text("utf-8").splitlines())


def test_what_a_worker_must_trust_is_read_in_an_afternoon():
    """The worker's half is five files: the checks and the device in Python, and the device and page in JavaScript."""
    package = Path(device.__file__).parents[1]
    python = [package / "standalone" / name for name in ("checks.py", "device.py")]
    script = [package / "service" / "static" / name for name in ("device.mjs", "hpke.mjs", "page.mjs")]

    assert 0 < sum(map(code_lines, python + script)) <= MOST_LINES
