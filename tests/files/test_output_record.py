"""Records of outputs, and what file systems allow."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import Outputs, write_atomically, write_outputs
from crowdveil.files.filesystem import PREFIX, remove_abandoned_temporary_folders, temporary_folder
from crowdveil.files.output_record import RECORD_FILE, OutputEntry, read_record


def write_record(folder: Path, *entries: dict[str, Any]) -> None:
    """Write a record."""
    folder.mkdir(exist_ok=True)
    (folder / RECORD_FILE).write_text(json.dumps({"format": "crowdveil-record/1", "files": entries}))


def named(name: str, like: Path) -> dict[str, Any]:
    """Return an entry of the kind demo under a name, with size and digest of a file."""
    entry = OutputEntry.of(like, "demo")._asdict()
    return {member: value for member, value in entry.items() if value != ""} | {"name": name}


@pytest.mark.parametrize("name", ["../victim", "{}/victim", "deeper/../../victim", "own/../../victim"])
def test_a_record_reaches_no_file_outside_its_folder(tmp_path: Path, name: str) -> None:
    """A record that names a file of another folder is refused, also with a true entry of that name."""
    folder, victim = tmp_path / "folder", tmp_path / "victim"
    victim.write_text("mine")
    folder.mkdir()
    write_record(folder, named(name.format(tmp_path), victim), named("victim", victim))
    outputs = Outputs(folder=folder, names=("x",), kind="demo", remove_stale=True)

    with pytest.raises(SettingsError, match="the record of a folder must be readable"):
        write_outputs(outputs, {"x": "new"})
    assert "mine" == victim.read_text()
    assert [RECORD_FILE] == os.listdir(folder)


@pytest.mark.parametrize(
    "changed",
    [
        *({"name": name} for name in ("", ".", "..", "a/", "/", "a/b", "a\0b", "\ud800", RECORD_FILE, ".crowdveil-x")),
        {"kind": "\ud800"},
        {"size": -1},
        {"size": True},
        {"sha256": "0" * 63},
        {"sha256": "\udcff" * 64},
        {"more": 1},
    ],
    ids=repr,
)
def test_an_entry_that_no_command_writes_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    """Each part of an entry is checked: a name of this folder, a kind that prints, a size, a digest."""
    write_atomically(tmp_path / "x", "first", kind="demo")
    write_record(tmp_path, named("x", tmp_path / "x"))
    assert "x" == read_record(tmp_path)[0].name
    write_record(tmp_path, named("x", tmp_path / "x") | changed)

    with pytest.raises(SettingsError, match="the record of a folder must be readable"):
        read_record(tmp_path)


@pytest.mark.parametrize("name", [RECORD_FILE, ".crowdveil-temporary", "", "..", "a/b", "bad\udcff.csv"])
def test_an_invalid_file_name_is_refused_by_the_check(tmp_path: Path, name: str) -> None:
    """The record, temporary folders and what is not UTF-8 are refused before any work, with the name."""
    with pytest.raises(SettingsError, match="an output must have the name of a file") as refused:
        Outputs(folder=tmp_path, names=(name,), kind="demo").check_replaced_files()

    assert name == refused.value.value
    assert [] == os.listdir(tmp_path)


def test_a_pipe_in_place_of_a_record_is_refused(tmp_path: Path) -> None:
    """A named pipe is never waited for: neither as the record, nor where an output was recorded."""
    os.mkfifo(tmp_path / RECORD_FILE)
    with pytest.raises(SettingsError, match="the record of a folder must be readable"):
        read_record(tmp_path)
    (tmp_path / RECORD_FILE).unlink()

    write_atomically(tmp_path / "x", "", kind="demo")
    (tmp_path / "x").unlink()
    os.mkfifo(tmp_path / "x")
    with pytest.raises(SettingsError, match="not a regular file"):
        write_atomically(tmp_path / "x", "new", kind="demo")


def test_a_record_takes_memory_of_its_own_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more bytes are asked for than the record has, and one beyond the limit is not read."""
    write_atomically(tmp_path / "x", "first", kind="demo")
    size = (tmp_path / RECORD_FILE).stat().st_size
    asked = []

    class Counting(io.FileIO):
        def read(self, count: int | None = -1) -> bytes | Any:
            asked.append(count)
            return super().read(count)

    monkeypatch.setattr("crowdveil.files.output_record.open_regular", Counting)
    assert 1 == len(read_record(tmp_path))
    monkeypatch.setattr("crowdveil.files.output_record.MAX_RECORD_BYTES", size - 1)
    with pytest.raises(SettingsError, match="the record of a folder must be readable"):
        read_record(tmp_path)
    assert [size] == asked


HOLD = """
import sys
from pathlib import Path
from tempfile import mkdtemp
from crowdveil.files.filesystem import temporary_folder
with temporary_folder(Path(sys.argv[1])) as folder:
    (folder / "data").write_text("half")
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_a_folder_of_a_dead_process_is_removed_by_the_next_one(tmp_path: Path) -> None:
    """A folder stays while its process lives; after a kill the next output into the place removes it."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        write_atomically(tmp_path / "x", "", kind="demo")
        assert left.exists()
        process.kill()
        process.wait()
        write_atomically(tmp_path / "x", "", kind="demo")
        assert not left.exists()
        assert left.parent == tmp_path


def test_a_refused_repeat_leaves_no_folder_of_a_killed_command(tmp_path: Path) -> None:
    """A command killed after its last file: the repeat, which finds all written, is refused and removes the folder."""
    write_atomically(tmp_path / "x", "", kind="demo")
    outputs = Outputs(folder=tmp_path, names=("x",), kind="demo", must_be_new="it must be new")
    with temporary_folder(tmp_path) as used:
        left = Path(mkdtemp(prefix=PREFIX, dir=tmp_path))
        with pytest.raises(SettingsError, match="must be new"):
            outputs.check_replaced_files()

        assert not left.exists()
        assert used.exists()


def test_a_folder_that_is_removed_before_it_is_locked_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that finds its new folder removed makes another one, which the next remover leaves."""
    made: list[str] = []

    def removed_once(**options: Any) -> str:
        made.append(mkdtemp(**options))
        if len(made) == 1:
            remove_abandoned_temporary_folders(tmp_path)
        return made[-1]

    monkeypatch.setattr("crowdveil.files.filesystem.mkdtemp", removed_once)
    with temporary_folder(tmp_path) as folder:
        remove_abandoned_temporary_folders(tmp_path)
        assert [folder.name] == os.listdir(tmp_path)
    assert 2 == len(made)


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
    """Neither the prefix of a folder, nor a link or a file with the name of a temporary folder, makes it ours."""
    for folder in (f"{PREFIX}theirs", "elsewhere"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "foreign").write_text("dear")
    (tmp_path / f"{PREFIX}a_link_8").symlink_to(tmp_path / "elsewhere")
    (tmp_path / f"{PREFIX}a_file_8").write_text("")
    before = {path: os.listdir(path) for path in tmp_path.iterdir() if path.is_dir()}
    with temporary_folder(tmp_path):
        pass

    assert before == {path: os.listdir(path) for path in tmp_path.iterdir() if path.is_dir()}
    assert (tmp_path / f"{PREFIX}a_file_8").exists()
