"""The command line as a whole: help that teaches, a quick start, narrow terminals, pipes, and documents in step."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from crowdveil.cli import main
from crowdveil.cli.display import progress_bar
from tests.cli.conftest import Run

TOOL = Path(__file__).parent.parent.parent / "tools" / "command_line_page.py"
PERTURB = ("perturb", "labels.csv", "--mechanism", "two-layer", "--epsilon", "1", "--seed", "1", "--out", "sent")


def commands(
    group: click.Command = main, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with the words that call it, groups included."""
    yield path, group
    if isinstance(group, click.Group):
        for name, command in group.commands.items():
            yield from commands(command, (*path, name))


COMMANDS = dict(commands())


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "crowdveil")
def test_every_command_has_help_that_fits(path: tuple[str, ...]) -> None:
    """Each command explains itself in at most 80 columns, and so does each of its options."""
    result = CliRunner().invoke(main, [*path, "--help"])

    assert 0 == result.exit_code
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert COMMANDS[path].help
    assert [] == [p.opts for p in COMMANDS[path].params if isinstance(p, click.Option) and not p.help]


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "crowdveil")
def test_help_that_speaks_of_epsilon_names_unit_and_participation(path: tuple[str, ...]) -> None:
    """Where an epsilon is mentioned, the cell it protects and participation are mentioned too."""
    text = CliRunner().invoke(main, [*path, "--help"]).stdout

    if "epsilon" in text.lower():
        assert "cell" in text
        assert "participation" in text.lower()


@pytest.mark.slow
def test_both_ways_to_start_it_are_the_same(folder: Path) -> None:
    """`python -m crowdveil` runs the same commands, ends with their exit codes, and shows no bar in a pipe."""
    start = [sys.executable, "-m", "crowdveil"]
    done = subprocess.run([*start, *PERTURB, "--json"], capture_output=True, text=True, check=True)
    refused = subprocess.run([*start, "infer", "none.csv"], capture_output=True, text=True, check=False)
    misused = subprocess.run([*start, "infer"], capture_output=True, text=True, check=False)

    assert ("", True) == (done.stderr, json.loads(done.stdout)["simulation"])
    assert (1, "", 1) == (refused.returncode, refused.stdout, refused.stderr.count("\n"))
    assert (2, "") == (misused.returncode, misused.stdout)


def test_a_reader_who_leaves_early_is_no_error(folder: Path) -> None:
    """Writing into a closed pipe ends without a message and without a traceback."""
    command = f"{sys.executable} -m crowdveil account --mechanism one-layer --epsilon 1 --labels a,b --tasks 9 | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)

    assert "" == done.stderr


@pytest.mark.parametrize("width", ["60", "80"])
def test_nothing_essential_is_cut_on_a_narrow_terminal(
    width: str, run: Run, run_json: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 60 and 80 columns no line is longer, and every number of a wide table is still there."""
    infer = ("infer", "sent/reports.csv", "--score", "labels-gold.csv")
    wide = [run(*words).stdout for words in (PERTURB, infer)]
    for earlier in Path("sent").iterdir():
        earlier.unlink()
    monkeypatch.setenv("COLUMNS", width)
    narrow = [run(*words).stdout for words in (PERTURB, infer)]

    for before, after in zip(wide, narrow, strict=True):
        assert max(map(len, after.splitlines())) <= int(width)
        assert re.findall(r"[\d.,]+", before) == re.findall(r"[\d.,]+", after)


def test_an_unexpected_exception_is_not_hidden(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in the program shows as a traceback, a refusal as one line."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr("crowdveil.folder.answers.read_answers", broken)
    with pytest.raises(ZeroDivisionError, match="a mistake"):
        run(*PERTURB)


def test_a_bar_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe there is no bar; on a terminal it is drawn on stderr, and stdout stays free."""
    with progress_bar("working") as bar:
        assert bar is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("working") as bar:
        assert bar is not None
        bar(1, 3)
    shown = capsys.readouterr()

    assert "working" in shown.err
    assert "" == shown.out


def test_the_page_is_up_to_date() -> None:
    """docs/reference/command-line.md is what tools/command_line_page.py writes from the commands."""
    done = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False)

    assert "" == done.stderr
