"""The command line as a whole: help in two lengths, narrow terminals, pipes, shells, and documents in step."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from crowdveil.cli import main, progress
from crowdveil.cli.progress import progress_bar
from crowdveil.cli.verb import Verb
from crowdveil.errors import SettingsError
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

    monkeypatch.setattr("crowdveil.storage.answers.read_answers", broken)
    with pytest.raises(ZeroDivisionError, match="a mistake"):
        run(*PERTURB)


def test_progress_is_told_in_lines_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A phase that takes longer than the time between lines tells its progress in words; a shorter one is silent."""
    with progress_bar("reading", unit="bytes") as bar:
        bar(1, 2)
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.0)
    with progress_bar("inferring") as bar:
        bar(1, 10, float("inf"))
        bar(2, 10, 0.25)
    lines = capsys.readouterr().err.splitlines()

    last = "inferring: 2 of 10 steps, largest change 0.25, 0 s"
    assert ["inferring: 1 of 10 steps, 0 s", last, last] == lines


def test_progress_is_told_as_json(run: Run) -> None:
    """With --log-json each phase ends with an object on stderr: work, change and seconds; stdout is the result's."""
    result = run("infer", "labels.csv", "--out", "found", "--log-json", "--json")
    lines = [json.loads(line) for line in result.stderr.splitlines()]
    fits = [line for line in lines if line["phase"] == "inferring"]

    assert ["reading", "reading", "inferring", "writing"] == [line["phase"] for line in lines if line["finished"]]
    assert {"crowdveil-log/1"} == {line["format"] for line in lines}
    assert {"format", "phase", "unit", "done", "total", "change", "seconds", "finished"} == set(fits[-1])
    assert (json.loads(result.stdout)["steps"], "steps") == (fits[-1]["done"], fits[-1]["unit"])
    assert 0 <= fits[-1]["change"] < 1


def test_a_bar_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal a bar is drawn on stderr, and stdout stays free."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("working") as bar:
        bar(1, 3)
    shown = capsys.readouterr()

    assert "working" in shown.err
    assert "" == shown.out


def test_the_page_is_up_to_date() -> None:
    """docs/reference/command-line.md is what tools/command_line_page.py writes from the commands."""
    done = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False)

    assert "" == done.stderr


MAX_LINES = 30
"""Height of a screen, in lines of 80 columns."""
LEAVES = {path: command for path, command in COMMANDS.items() if not isinstance(command, click.Group)}
LONG = {path: command for path, command in LEAVES.items() if isinstance(command, Verb)}
every_command = pytest.mark.parametrize("path", LEAVES, ids=" ".join)
every_long_command = pytest.mark.parametrize("path", LONG, ids=" ".join)


def shown(*words: str) -> str:
    """Return what a command prints."""
    result = CliRunner().invoke(main, words, env={"COLUMNS": "80"})
    assert 0 == result.exit_code
    return result.stdout


def flags(path: tuple[str, ...]) -> list[str]:
    """Return the long names of the options of a command."""
    return [option.opts[0] for option in LEAVES[path].params if isinstance(option, click.Option)]


@every_command
def test_help_fits_on_one_screen(path: tuple[str, ...]) -> None:
    """The help of each command has at most 30 lines."""
    assert len(shown(*path, "--help").splitlines()) <= MAX_LINES


def test_the_first_page_fits_on_a_screen() -> None:
    """The help of crowdveil itself has at most 60 lines and no description is cut off."""
    text = shown("--help")

    assert len(text.splitlines()) <= 60
    assert "..." not in text.replace("[ARGS]...", "")
    assert set(main.commands) <= set(re.findall(r"^  ([a-z-]+) ", text, flags=re.MULTILINE))


def test_every_command_has_an_example() -> None:
    """No command is without the help in two lengths, which begins with an example."""
    assert LEAVES == LONG


@every_command
def test_help_has_every_required_option(path: tuple[str, ...]) -> None:
    """No required option is left to --help-all."""
    required = [p.opts[0] for p in LEAVES[path].params if isinstance(p, click.Option) and p.required]

    assert [] == [flag for flag in required if f"  {flag}" not in shown(*path, "--help")]


@every_command
def test_every_option_has_a_help_text_that_shows_it(path: tuple[str, ...]) -> None:
    """The longest help of a command lists each of its options once."""
    text = shown(*path, "--help-all" if path in LONG else "--help")
    options = re.split(r"^\S.*:$", text, maxsplit=1, flags=re.MULTILINE)[1]

    assert flags(path) == [
        flag for flag in flags(path) if 1 == len(re.findall(rf"^  (?:\S+, )?{flag}\b(?!-)", options, re.M))
    ]


@every_long_command
def test_the_example_comes_first_and_is_accepted(path: tuple[str, ...]) -> None:
    """The example follows the summary; its first line calls the command with each required parameter."""
    command = LONG[path]
    first = re.split(r"\n(?! )", command.example)[0]
    words = shlex.split(first)

    assert shown(*path, "--help").index("Example:") < shown(*path, "--help").index("Options:")
    assert ["crowdveil", *path] == words[: len(path) + 1]
    command.make_context(path[-1], words[len(path) + 1 :])


@every_long_command
def test_main_options_exist(path: tuple[str, ...]) -> None:
    """The main options are parameters of the command."""
    assert set() == LONG[path].main_options - {parameter.name for parameter in LONG[path].params}


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


PROGRAM = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps([name for name in sys.modules if sys.modules[name]])))
from crowdveil.cli import start
start()
"""
SPARED = {
    "narwhals",
    "pandas",
    "matplotlib",
    "jinja2",
    "crowdveil.mechanisms",
    "crowdveil.simulate",
    "crowdveil.design.channel_design",
    "numba",
}


@pytest.mark.slow
def test_infer_loads_only_what_it_needs(folder: Path) -> None:
    """A cold `infer` of a CSV file loads no narwhals, pandas, mechanisms, simulations or compiler."""
    words = ["infer", "labels.csv", "--json"]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, check=True, text=True)

    assert set() == SPARED & set(json.loads(done.stdout.splitlines()[-1]))
    assert Path("truths.csv").exists()


HEAVY = {"numpy", "scipy", "pyarrow", "numba", "matplotlib", "narwhals", "jinja2", "rich"}


def test_help_loads_no_numerical_library() -> None:
    """`crowdveil --help`, `--version` and the help of a command start without any of the heavy libraries."""
    for words in (["--help"], ["--version"], ["infer", "--help"]):
        done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, check=True, text=True)

        assert set() == HEAVY & set(json.loads(done.stdout.splitlines()[-1]))


def test_an_error_stays_on_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message of several lines, as libraries make them, becomes one."""

    def broken(*_: object, **__: object) -> None:
        raise SettingsError("first\n  second", value=1)

    monkeypatch.setattr("crowdveil.storage.answers.read_answers", broken)
    assert "Error: first second, got 1.\n" == run(*PERTURB, code=1).stderr
