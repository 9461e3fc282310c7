"""Help in two lengths, over all commands."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from crowdveil.cli import main
from crowdveil.cli.verb import Verb
from tests.cli.test_main import COMMANDS

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
