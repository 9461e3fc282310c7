"""Shells complete commands and options."""

import os
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str) -> None:
    """Each shell has a script, and completes the name of a command."""
    script = {"_CROWDVEIL_COMPLETE": f"{shell}_source"}
    words = {"_CROWDVEIL_COMPLETE": f"{shell}_complete", "COMP_WORDS": "crowdveil ver", "COMP_CWORD": "1"}
    found = [
        subprocess.run(
            [sys.executable, "-c", "from crowdveil.cli import main; main(prog_name='crowdveil')"],
            env=os.environ | variables, capture_output=True, text=True, check=False,
        ).stdout
        for variables in (script, words | {"COMP_CWORD": "ver"} if shell == "fish" else words)
    ]  # fmt: skip

    assert "_CROWDVEIL_COMPLETE" in found[0] or (shell == "bash" and not found[0])
    assert "verify" in found[1]
