"""Temporary folders: gone with their context, and removed by the next run where their process has died."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crowdveil.files.atomic_write import write_atomically
from crowdveil.files.filesystem import MARKER_FILE, PREFIX, temporary_folder

HOLD = """
import sys
from pathlib import Path
from crowdveil.files.filesystem import temporary_folder
with temporary_folder(Path(sys.argv[1])) as folder:
    (folder / "data").write_text("half")
    print(folder, flush=True)
    sys.stdin.read()
"""


def holder(place: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start a process that holds a temporary folder, and return both."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_folder_of_a_dead_process_is_removed_by_the_next_one(tmp_path: Path) -> None:
    """A folder stays while its process lives; once that was killed, the next output into the place removes it."""
    process, left = holder(tmp_path)
    with process:
        write_atomically(tmp_path / "x", "", kind="demo")
        assert left.parent == tmp_path
        assert {"data", MARKER_FILE} == set(os.listdir(left))
        process.kill()
        process.wait()
        assert left.exists()
        write_atomically(tmp_path / "x", "", kind="demo")

    assert not left.exists()


def test_a_folder_goes_with_its_context(tmp_path: Path) -> None:
    """A failure inside leaves nothing, and files that were made unreadable go too."""

    def fail() -> None:
        with temporary_folder(tmp_path) as folder:
            (folder / "x").write_text("half")
            (folder / "x").chmod(0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()

    assert [] == os.listdir(tmp_path)


def test_what_was_not_made_here_is_never_removed(tmp_path: Path) -> None:
    """Neither the name of a folder nor a link to one with a marker makes it ours; files of that name stay too."""
    theirs = tmp_path / f"{PREFIX}theirs"
    theirs.mkdir()
    (theirs / "foreign").write_text("dear")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / MARKER_FILE).write_text("")
    (tmp_path / f"{PREFIX}link").symlink_to(elsewhere)
    (tmp_path / f"{PREFIX}file").write_text("")
    with temporary_folder(tmp_path):
        pass

    assert {theirs.name, "elsewhere", f"{PREFIX}link", f"{PREFIX}file"} == set(os.listdir(tmp_path))
    assert ["foreign"] == os.listdir(theirs)
    assert [MARKER_FILE] == os.listdir(elsewhere)
