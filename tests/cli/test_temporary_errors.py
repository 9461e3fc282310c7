"""Failures that may be gone later have an exit code of their own, apart from that of bad data."""

import errno
import socket
import sqlite3
import subprocess
import sys
from urllib.error import URLError

import pytest

from crowdveil.cli.temporary_errors import is_temporary
from crowdveil.errors import DeviceError, EngineError, ReportsError, SettingsError
from tests.cli.conftest import Run


def caused_by(cause: Exception) -> Exception:
    """Return an error of crowdveil that was raised from another one."""
    try:
        raise SettingsError("the output folder must be writable", value="found") from cause
    except SettingsError as error:
        return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (caused_by(OSError(errno.ENOSPC, "No space left on device")), True),
        (caused_by(OSError(errno.EACCES, "Permission denied")), False),
        (caused_by(URLError(ConnectionRefusedError())), True),
        (URLError(socket.gaierror(socket.EAI_AGAIN, "again")), True),
        (URLError(socket.gaierror(socket.EAI_NONAME, "no such host")), False),
        (TimeoutError(), True),
        (FileNotFoundError(errno.ENOENT, "No such file"), False),
        (ReportsError("labels must not be empty"), False),
        (caused_by(sqlite3.DatabaseError()), False),
        (EngineError("No scheduler answers", hint="Start one.", temporary=True), True),
        (EngineError("The engine needs a package", hint="Install it."), False),
        (DeviceError("busy", "The service cannot be reached."), True),
        (DeviceError("closed", "The campaign is closed."), False),
    ],
    ids=repr,
)
def test_network_locks_and_full_disks_are_temporary(error: Exception, expected: bool) -> None:
    """The class, the number of the system and the cause decide; no text does."""
    assert expected == is_temporary(error)


def test_a_full_disk_ends_with_75_and_bad_data_with_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler can tell what is worth another try; the document of the error says it, too."""
    with open("bad.csv", "w") as stream:
        stream.write("task,worker,label\na,b,\n")
    run("infer", "bad.csv", code=1)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "found/truths.csv")

    monkeypatch.setattr("crowdveil.files.atomic_write._commit", full)
    result = run("infer", "labels.csv", "--out", "found", "--json", code=75)
    assert "No space left" in result.stderr
    assert '"temporary": true' in result.stdout


WRITER = """
import duckdb, sys
with duckdb.connect("answers.duckdb") as base:
    base.execute("create table votes as select * from read_csv('labels.csv')")
    print("written", flush=True)
    sys.stdin.read()
"""


def test_a_locked_database_ends_with_75_until_it_is_free(run: Run) -> None:
    """While another process writes a DuckDB file, its reading is worth another try; a missing table is not."""
    pytest.importorskip("duckdb")
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", WRITER], stdin=pipe, stdout=pipe) as writer:
        assert writer.stdout
        writer.stdout.readline()
        result = run("infer", "answers.duckdb?votes", "--out", "found", code=75)
        assert "no other process may have the database open for writing. Try again" in result.stderr
        writer.communicate()

    run("infer", "answers.duckdb?votes", "--out", "found")
    run("infer", "answers.duckdb?voices", "--out", "found", code=1)
