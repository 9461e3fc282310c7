"""The program that workers get: its text, its hash, and the command that writes it."""

import hashlib
import json
from pathlib import Path

from click.testing import CliRunner

from crowdveil.campaign.standalone import device
from crowdveil.campaign.standalone.program import is_program, program_bytes, program_digest
from crowdveil.cli import main


def test_the_program_is_the_module(tmp_path):
    """`campaign page --python` writes the module itself, and prints its SHA-256; it replaces programs only."""
    path = tmp_path / "my.py"
    words = ["campaign", "page", "--python", str(path), "--json"]
    printed = [json.loads(CliRunner().invoke(main, words).stdout) for _ in range(2)]

    assert Path(device.__file__).read_bytes() == path.read_bytes() == program_bytes()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == printed[0]["sha256"] == program_digest()
    assert [[], [str(path)]] == [run["replaced"] for run in printed]


def test_another_file_is_not_replaced(tmp_path):
    """A file that is no device program stays."""
    path = tmp_path / "my.py"
    path.write_text("print('mine')\n")
    refused = CliRunner().invoke(main, ["campaign", "page", "--python", str(path)])

    assert (1, "print('mine')\n") == (refused.exit_code, path.read_text())
    assert not is_program(b"")
