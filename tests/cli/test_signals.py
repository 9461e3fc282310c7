"""Commands that are interrupted or terminated: exit codes, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.slow

PATIENCE = 60
"""Seconds after which a process that has not done what is waited for fails the test."""
SLOW = """
import sys, time
from crowdveil.cli import start
from crowdveil.answers import write_reports

def slow(*_):
    print("begun", file=sys.stderr, flush=True)
    time.sleep(600)

write_reports._write_csv = slow
start()
"""
"""A command line that stops for ten minutes in the middle of the first CSV file that it writes."""

SLOW_READING = """
import sys, time
from crowdveil.cli import start
from crowdveil.answers.sources import sorted_parts

def slow(*_):
    print("begun", file=sys.stderr, flush=True)
    time.sleep(600)

sorted_parts.write_encoded = slow
start()
"""
"""A command line that stops for ten minutes after it has written temporary files of answers."""


@contextmanager
def started(
    folder: Path, *words: str, program: tuple[str, ...] = ("-m", "crowdveil")
) -> Iterator[subprocess.Popen[str]]:
    """Start a command in a process of its own, which is killed at the end if it still runs.

    It hears every signal, even if the tests run in the background of a shell or under nohup, which ignore some.
    """

    def hear() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    process = subprocess.Popen(
        [sys.executable, *program, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder / "temporary"), "CROWDVEIL_DATA": "/nonexistent"},
        preexec_fn=hear,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def hidden(folder: Path) -> list[Path]:
    """Return temporary folders anywhere below a folder."""
    return [path for path in folder.rglob(".crowdveil-*") if path.is_dir()]


@pytest.fixture
def place(folder: Path) -> Path:
    """Stand in a folder with answers and a folder for temporary files."""
    (folder / "temporary").mkdir()
    return folder


def test_an_interrupted_command_exits_with_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends a command with one word on stderr, nothing on stdout, and the exit code of signal 2."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("crowdveil.storage.evidence.read_evidence", interrupted)
    for words in ((), ("--json",)):
        result = run("infer", "labels.csv", *words, code=130)
        assert ("", "Interrupted.\n") == (result.stdout, result.stderr)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_leaves_nothing_behind(number: signal.Signals, code: int, place: Path) -> None:
    """A command that is ended while it writes leaves no temporary folder, and the output folder as it was."""
    with started(place, "infer", "labels.csv", "--out", "found", program=("-c", SLOW)) as process:
        assert process.stderr is not None
        assert "begun" in process.stderr.readline()
        assert 1 == len(hidden(place / "found"))
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)

    assert code == process.returncode
    assert [] == hidden(place)
    assert not (place / "found").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_a_large_file_is_read(number: signal.Signals, code: int, place: Path) -> None:
    """A command that reads within a limit, and is ended, leaves no temporary file of answers, and no output."""
    lines = (f"t{row // 10},w{row % 10},{'yn'[row // 7 % 2]}\n" for row in range(400_000))
    Path("many.csv").write_text("task,worker,label\n" + "".join(lines), "utf-8")
    words = ("infer", "many.csv", "--memory", "65MB", "--out", "found")
    with started(place, *words, program=("-c", SLOW_READING)) as process:
        assert process.stderr is not None
        assert "begun" in process.stderr.readline()
        [temporary] = hidden(place)
        assert {".codes", ".rows"} == {path.suffix for path in temporary.iterdir()}
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)

    assert code == process.returncode
    assert [] == hidden(place)
    assert not (place / "found").exists()


def test_what_a_killed_command_left_is_removed_by_the_next_one(place: Path, run: Run) -> None:
    """After signal 9 a temporary folder is left; the next command that writes there removes it."""
    with started(place, "infer", "labels.csv", "--out", "found", program=("-c", SLOW)) as process:
        assert process.stderr is not None
        assert "begun" in process.stderr.readline()
        process.kill()
        process.communicate(timeout=PATIENCE)

    assert 1 == len(hidden(place / "found"))
    run("infer", "labels.csv", "--out", "found")
    assert [] == hidden(place / "found")


def test_a_signal_that_was_ignored_stays_ignored(place: Path) -> None:
    """Under nohup, where SIGHUP is ignored from the start, a command continues."""
    program = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + SLOW
    with started(place, "infer", "labels.csv", "--out", "found", program=("-c", program)) as process:
        assert process.stderr is not None
        assert "begun" in process.stderr.readline()
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    assert 143 == process.returncode


QUERY = """
import sys, duckdb
from crowdveil.cli import start

connect = duckdb.connect
connect("answers.duckdb").close()

def begin(*names, **settings):
    print("begun", file=sys.stderr, flush=True)
    return connect(*names, **settings)

duckdb.connect = begin
start()
"""
"""A command line that says when it opens a database."""
ENDLESS = "select range as task, 'u' as worker, 'x' as label from range(1000000000000) where hash(range) = 0"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_query(number: signal.Signals, code: int, place: Path) -> None:
    """A query that would run for hours ends at once with the code of the signal, and leaves nothing behind."""
    pytest.importorskip("duckdb")
    with started(place, "infer", f"answers.duckdb?{ENDLESS}", program=("-c", QUERY)) as process:
        assert process.stderr is not None
        assert "begun" in process.stderr.readline()
        time.sleep(1)
        process.send_signal(number)
        errors = process.communicate(timeout=PATIENCE)[1]

    assert (code, "Interrupted.\n" * (code == 130)) == (process.returncode, errors)
    assert [] == hidden(place)
