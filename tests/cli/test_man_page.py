"""The manual page names every command and option, and shells complete both."""

import os
import re
import shutil
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from crowdveil.cli import main
from crowdveil.cli.man_page import leaves, man_page


def test_every_command_and_option_is_in_the_manual() -> None:
    """Each command has a heading, and each of its options a line."""
    page = CliRunner().invoke(main, ["--man"]).stdout
    parts = dict(zip(*[iter(re.split(r"^\.SS (.*)\n", page, flags=re.M)[1:])] * 2, strict=True))
    commands = {path.replace("-", "\\-"): command for path, command in leaves(main, ("crowdveil",))}

    assert list(commands) == list(parts)
    for path, command in commands.items():
        options = [o for o in command.params if isinstance(o, click.Option) and not o.hidden]
        assert [] == [o.opts[0] for o in options if o.opts[0].replace("-", "\\-") not in parts[path]]


def test_lines_of_text_are_no_requests() -> None:
    """A line that begins with a dot or an apostrophe, and a backslash, are text."""
    group = click.Group("g", commands=[click.Command("c", help="\b\n.hidden\n'quoted \\\\ back")], help="Name.")

    assert "\\&.hidden\n\\&'quoted \\e" in man_page(group)


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_roff_has_no_warnings() -> None:
    """groff formats the page without a warning."""
    page = man_page(main)
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8"], input=page, capture_output=True, text=True, check=True)

    assert "" == done.stderr
    assert "crowdveil verify" in done.stdout


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
