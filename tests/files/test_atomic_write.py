"""Output files: what may be replaced, in what order, and what an interruption leaves."""

import errno
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from crowdveil.cli import main
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.atomic_write import Outputs, write_atomically, write_files, write_outputs
from crowdveil.files.filesystem import PREFIX, temporary_folder, write_new_file
from crowdveil.files.output_record import (
    RECORD_FILE,
    OutputEntry,
    read_record,
    refuse_partial_output,
)


def texts(folder: Path) -> dict[str, str]:
    """Contents of the files in a folder by name, without the record."""
    files = (path for path in folder.iterdir() if path.is_file())
    return {path.name: path.read_text() for path in files if path.name != RECORD_FILE}


def test_a_file_of_another_kind_is_not_replaced(tmp_path: Path) -> None:
    """The record names the kind of each file, and outputs of another kind are refused with both."""
    write_atomically(tmp_path / "x", "first", kind="plan")

    with pytest.raises(SettingsError, match="of the kind demo may be replaced, not plan"):
        write_atomically(tmp_path / "x", "second", kind="demo")
    write_atomically(tmp_path / "x", "third", kind="plan")
    assert {"x": "third"} == texts(tmp_path)


def test_files_of_other_kinds_stay_in_the_record(tmp_path: Path) -> None:
    """Writing one kind keeps the entries of the others, except of files that are gone."""
    for name, kind in (("a", "plan"), ("b", "demo"), ("c", "plan")):
        write_atomically(tmp_path / name, name, kind=kind)
    (tmp_path / "c").unlink()
    write_atomically(tmp_path / "b", "new", kind="demo")

    assert (OutputEntry.of(tmp_path / "a", "plan"), OutputEntry.of(tmp_path / "b", "demo")) == read_record(tmp_path)


def test_a_link_is_not_replaced(tmp_path: Path) -> None:
    """A symbolic link is no file that was written here, wherever it leads, even to nothing."""
    write_atomically(tmp_path / "x", "mine", kind="demo")
    (tmp_path / "x").rename(tmp_path / "y")
    for target in ("y", "nothing"):
        (tmp_path / "x").symlink_to(target)

        with pytest.raises(SettingsError, match=r"is not replaced\. Choose another place\."):
            write_atomically(tmp_path / "x", "new", kind="demo")
        assert target == os.readlink(tmp_path / "x")
        (tmp_path / "x").unlink()


def test_a_file_that_came_during_the_work_stays(tmp_path: Path) -> None:
    """The places are checked again at the end: what was put there in the meantime is not replaced."""

    def late(stream: BinaryIO) -> None:
        stream.write(b"new")
        (tmp_path / "x").write_text("theirs")

    with pytest.raises(SettingsError, match=r"is not replaced\. Choose another place\."):
        write_atomically(tmp_path / "x", late, kind="demo")

    assert ["x"] == os.listdir(tmp_path)
    assert {"x": "theirs"} == texts(tmp_path)


def test_a_folder_that_cannot_hold_files_is_refused_before_the_work(tmp_path: Path) -> None:
    """A file in place of a folder on the way to the outputs is found by the check already."""
    (tmp_path / "file").write_text("")

    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(SettingsError, match=r"output folder must be writable.*Not a directory"):
            Outputs(folder=folder, names=("x",), kind="demo").check_replaced_files()


def test_the_last_file_is_absent_while_others_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old and new files never lie together, readers refuse what a crash left, and the next run replaces it."""
    write_files(tmp_path, {"a": "old", "b": "old", "last": "old"}, kind="demo")
    moved = os.replace
    seen = []

    def crash(source: Path, target: Path) -> None:
        if target.parent == tmp_path:
            seen.append(set(texts(tmp_path)))
        if target.name == "b":
            raise KeyboardInterrupt
        moved(source, target)

    monkeypatch.setattr("os.replace", crash)
    with pytest.raises(KeyboardInterrupt):
        write_files(tmp_path, {"a": "new", "b": "new", "last": "new"}, kind="demo")
    monkeypatch.undo()

    assert [{"a", "b", "last"}, set(), {"a"}] == seen
    assert {"a": "new"} == texts(tmp_path)
    with pytest.raises(ReportsError, match=r"must have ended. Found: it was interrupted, and b is absent"):
        refuse_partial_output(tmp_path)
    write_files(tmp_path, {"a": "next", "b": "next", "last": "next"}, kind="demo")
    assert {"a": "next", "b": "next", "last": "next"} == texts(tmp_path)
    assert 3 == len(read_record(tmp_path))
    refuse_partial_output(tmp_path)


def test_private_outputs_are_read_by_their_owner_only(tmp_path: Path) -> None:
    """Private files have mode 0600, the record too, and a folder that is made for them has 0700."""
    outputs = Outputs(folder=tmp_path / "own", names=("x",), kind="demo", private=True)
    write_outputs(outputs, {"x": "mine"})

    assert 0o700 == stat.S_IMODE((tmp_path / "own").stat().st_mode)
    assert [0o600, 0o600] == [stat.S_IMODE((tmp_path / "own" / name).stat().st_mode) for name in ("x", RECORD_FILE)]


def test_outputs_that_belong_together_leave_no_earlier_one(tmp_path: Path) -> None:
    """Earlier files of the kind that are not written again are removed, and those of other kinds are not."""
    write_files(tmp_path, {"a": "old", "b": "old"}, kind="demo")
    write_atomically(tmp_path / "c", "other", kind="plan")
    outputs = Outputs(folder=tmp_path, names=("b", "d"), kind="demo", remove_stale=True)

    assert [tmp_path / "b", tmp_path / "a"] == outputs.check_replaced_files()
    write_outputs(outputs, {"b": "new", "d": "new"})
    assert {"b": "new", "c": "other", "d": "new"} == texts(tmp_path)


@pytest.mark.parametrize("last_fails", [False, True])
def test_renames_need_no_free_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last_fails: bool) -> None:
    """Nothing is written between the first rename and the last; a record that cannot be put last fails nothing."""
    write_files(tmp_path, {"a": "old", "b": "old"}, kind="demo")
    moved, renamed = os.replace, 0

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def move(source: Path, target: Path) -> None:
        nonlocal renamed
        if Path(target).parent == tmp_path:
            monkeypatch.setattr(Path, "write_text", full)
            monkeypatch.setattr(Path, "write_bytes", full)
            renamed += target.name == RECORD_FILE
            if last_fails and target.name == RECORD_FILE and renamed == 2:
                full()
        moved(source, target)

    monkeypatch.setattr("os.replace", move)
    write_files(tmp_path, {"a": "new", "b": "new"}, kind="demo")
    monkeypatch.undo()

    assert 2 == renamed
    assert {"a": "new", "b": "new"} == texts(tmp_path)
    write_files(tmp_path, {"a": "next", "b": "next"}, kind="demo")
    assert {"a": "next", "b": "next"} == texts(tmp_path)
    assert 2 == len(read_record(tmp_path))


def test_a_failure_removes_the_folders_that_it_made(tmp_path: Path) -> None:
    """A folder that was made for outputs that failed goes again, with those it lies in; older ones stay."""
    (tmp_path / "old").mkdir()

    def full(_: BinaryIO) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for folder in (tmp_path / "old", tmp_path / "old" / "new" / "newer"):
        with pytest.raises(SettingsError, match="No space left on device"):
            write_atomically(folder / "x", full, kind="demo")
        assert [tmp_path / "old"] == list(tmp_path.rglob("*"))


def test_an_unreadable_input_is_not_called_an_unwritable_folder(tmp_path: Path) -> None:
    """What the system says of another file while outputs are written is not said of the output folder."""

    def reading(_: BinaryIO) -> None:
        (tmp_path / "input").read_bytes()

    with pytest.raises(FileNotFoundError, match="input"):
        write_atomically(tmp_path / "out" / "x", reading, kind="demo")
    assert [] == Outputs(folder=tmp_path, names=("x",), kind="demo").check_replaced_files(
        inputs=["dataset:" + "n" * 5000]
    )


KILLED = """
import os, signal, sys, tempfile
from click.testing import CliRunner
import crowdveil.cli, crowdveil.simulate.perturbed_collection
import crowdveil.inference.infer, crowdveil.pages.results_page
words = sys.argv[2:]
tempfile.gettempdir()  # tries to write, once
for stop in range(1, 200):
    child = os.fork()
    if not child:
        count = 0
        def hook(event, args):
            global count
            writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir") or writes:
                count += 1
                if count == stop:
                    os.kill(os.getpid(), signal.SIGKILL)
        folder = f"{sys.argv[1]}{stop}"
        os.chdir(folder)
        sys.addaudithook(hook)
        os._exit(CliRunner().invoke(crowdveil.cli.main, words).exit_code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(stop, status, flush=True)
    if status != -signal.SIGKILL:
        break
"""
"""Program that runs a command in a child for every write of it, and kills the child there."""
LISTS = {"answers.csv": "task,worker,label\na,u,yes\nb,u,no\na,v,yes\nb,v,no\n", "tasks.csv": "task\na\nb\n",
    "workers.csv": "worker\nu\nv\n"}  # fmt: skip
PERTURB = ("perturb", "answers.csv", "--mechanism", "randomized-response", "--epsilon", "20", "--labels", "no,yes",
    "--tasks", "tasks.csv", "--workers", "workers.csv", "--replace", "--out", "sent")  # fmt: skip
INFER = ("infer", "answers.csv", "--method", "majority-vote", "--out", "found")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize(("words", "reader"), [(PERTURB, "infer"), (INFER, "report")])
def test_a_command_that_is_killed_at_any_write_leaves_all_or_what_is_refused(
    words: tuple[str, ...], reader: str, earlier: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed command leaves is complete, refused or absent; the same command then ends, with nothing beside."""
    out, first = words[-1], tmp_path / "first"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    first.mkdir()
    for name, text in LISTS.items():
        (first / name).write_text(text)
    monkeypatch.chdir(first)
    if earlier:
        assert 0 == CliRunner().invoke(main, words).exit_code
    for stop in range(1, 200):
        shutil.copytree(first, tmp_path / f"run{stop}")
    program = [sys.executable, "-c", KILLED, str(tmp_path / "run"), *words]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    stops = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]

    assert (0, "") == (stops[-1][1], done.stderr)
    assert len(stops) > 10
    for stop, _ in stops:
        monkeypatch.chdir(tmp_path / f"run{stop}")
        before, found = texts(Path(out)) if Path(out).is_dir() else {}, Path(out, "reports.csv")
        source = [str(found), "--out", "read"] if reader == "infer" else [out, "--reports", "answers.csv"]
        read = CliRunner().invoke(main, [reader, *source])
        complete = (
            {"truths.csv", "workers.csv"} if reader == "report" else {"reports.csv", "certificate.json", "crowd.json"}
        )
        assert (read.exit_code == 0) == (complete <= set(before)), (stop, read.output)
        assert 0 == CliRunner().invoke(main, words).exit_code, stop
        assert not [name for name in os.listdir(out) if name.startswith(PREFIX)], stop
        with temporary_folder(temporary):
            assert 1 == len(os.listdir(temporary)), stop


def test_a_new_file_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed write leaves nothing in its place, an existing file stays, and links are not needed."""
    path = tmp_path / "token.txt"
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
        with pytest.raises(OSError, match="No space"):
            write_new_file(path, b"half")
    assert [] == os.listdir(tmp_path)

    with monkeypatch.context() as unlinked:
        unlinked.setattr(os, "link", Mock(side_effect=PermissionError))
        write_new_file(path, b"first", mode=0o600)
        with pytest.raises(FileExistsError):
            write_new_file(path, b"second")
    with pytest.raises(FileExistsError):
        write_new_file(path, b"second")
    assert b"first" == path.read_bytes()
    assert 0o600 == os.stat(path).st_mode & 0o777
    assert ["token.txt"] == os.listdir(tmp_path)


@pytest.mark.parametrize("url", ["s3://bucket/found", "file:///tmp/found", "gs://bucket"])
def test_a_url_is_no_folder(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs are written on this machine: a URL is refused, with what to do instead, and makes no folder."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SettingsError, match=r"outputs are written on this machine, and to no URL.*copy the files"):
        write_files(Path(url), {"truths.csv": "task,truth"}, kind="estimate")
    assert [] == os.listdir()
