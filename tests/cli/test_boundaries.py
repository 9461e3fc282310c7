"""Odd words on the command line, and a stdout that takes nothing: each is refused in one line."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from crowdveil.cli import main
from tests.cli.conftest import LABELS, Refusal, written

ASSIGN = ("data", "assign", "--tasks", "tasks.csv", "--workers", "every-worker.csv", "--per-task", 2)
FULL = Path("/dev/full")


def path_options(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return all options and arguments that take a path, each as command and parameter."""
    if isinstance(command, click.Group):
        return [found for name, one in command.commands.items() for found in path_options(one, (*path, name))]
    return [(*path, str(one.name)) for one in command.params if isinstance(one.type, click.Path)]


def started(*words: object, stdout: int) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, with a stdout of its own."""
    command = [sys.executable, "-m", "crowdveil", *map(str, words)]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_full_disk_under_stdout_is_one_line(words: tuple[str, ...], folder: Path) -> None:
    """Where the result cannot be printed, stderr says so in one line and that files are in place; exit code 1."""
    with open(FULL, "w") as full:
        done = started("infer", "labels.csv", *words, "--out", "found", stdout=full.fileno())
        helped = started("infer", "--help", *words, stdout=full.fileno())

    assert (1, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert "No space left on device. Files that the command was to write are in place" in done.stderr
    assert {"truths.csv", "workers.csv"} == written("found")
    assert (1, 1) == (helped.returncode, len(helped.stderr.splitlines()))


@pytest.mark.parametrize("path", path_options(main), ids=" ".join)
def test_every_path_must_not_be_empty(path: tuple[str, ...]) -> None:
    """Every option and argument of every command that takes a path refuses an empty one."""
    command: Any = main
    for name in path[:-1]:
        command = command.commands[name]
    parameter = next(one for one in command.params if one.name == path[-1])

    with pytest.raises(click.UsageError, match="must not be empty"):
        parameter.type.convert("", parameter, None)


def test_an_output_cannot_take_the_place_of_the_record(refusal: Refusal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of a folder, and names that no record can hold, are refused as outputs before the work begins."""
    monkeypatch.setattr("crowdveil.folder.answers.read_names", lambda *_: pytest.fail("the work began"))
    monkeypatch.setattr("crowdveil.inference.inference.infer", lambda *_, **__: pytest.fail("the work began"))

    for name in (".crowdveil.json", ".crowdveil-x", "kk\udcff.csv"):
        assert "must have the name of a file" in refusal(*ASSIGN, "--out", f"new/{name}")
        line = refusal("infer", "labels.csv", "--save-fit", f"new/{name}", "--out", "found")
        assert "must have the name of a file" in line
    assert not Path("new").exists()
    assert not Path("found").exists()


def test_a_pipe_in_the_output_folder_is_not_waited_for(refusal: Refusal) -> None:
    """A record, or a saved fit to be replaced, that is a named pipe is refused at once."""
    Path("found").mkdir()
    os.mkfifo("found/.crowdveil.json")
    os.mkfifo("x.fit")

    assert "the record of a folder must be readable" in refusal("infer", "labels.csv", "--out", "found")
    assert "x.fit" in refusal("infer", "labels.csv", "--save-fit", "x.fit", "--out", "other")


def test_messages_show_names_as_people_wrote_them(refusal: Refusal) -> None:
    """Tasks and truths stand in messages in plain quotes, without the types of a library."""
    Path("known.csv").write_text("task,truth\n1,purple\n")

    for option in ("--score", "--gold"):
        line = refusal("infer", "labels.csv", option, "known.csv", "--out", "found")
        assert "'purple'" in line
        assert "of task '1'" in line
        assert "np." not in line
    assert LABELS[0] in line
