"""Output files: whole or not at all, and in place of earlier outputs of the same kind only.

Files are written to a temporary folder beside their place, then renamed in order. A file that exists already is
replaced if the folder's record (`crowdveil.files.output_record`) says that it was written as an output of the same
kind, and it has not changed since. All other files of a folder are left as they are.
"""

import os
import signal
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EACCES, ENOTDIR
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from crowdveil.errors import SettingsError
from crowdveil.files.filesystem import folder_lock, temporary_folder
from crowdveil.files.output_record import RECORD_FILE, OutputEntry, file_name_fault, read_record, record_text

Writer = Callable[[BinaryIO], None]
RENAME = "Choose another name (--out, --save-fit)."
ELSEWHERE = "Give the output another place (--out, --save-fit), or move that file away."
PRIVATE_FILE, PRIVATE_FOLDER, USUAL_FOLDER = 0o600, 0o700, 0o777
"""Rights of files and folders that only their owner reads, and of others before the process's mask."""
OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""Rights of everyone but the owner."""


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Files that one command writes into one folder.

    Attributes:
        folder: where to; need not exist.
        names: of the files, in the order in which they are put in place; the last one comes when the others are there.
        kind: of output, such as "estimate"; a file is replaced by outputs of its own kind only.
        whole: whether the earlier files of this kind belong together: those that are not written again are removed.
        alone: further names of files that are replaced or refused with the others.
        fresh: the rule that no earlier file may be there, as a clause; empty where earlier files are replaced.
        private: whether only the owner may read the files.
        recognized: returns whether the contents of a file are of this kind, in place of the record; None to record.
    """

    folder: Path
    names: tuple[str, ...]
    kind: str
    whole: bool = False
    alone: tuple[str, ...] = ()
    fresh: str = ""
    private: bool = False
    recognized: Callable[[Path], bool] | None = None

    @property
    def paths(self) -> list[Path]:
        """Paths of the files that are written."""
        return [self.folder / name for name in self.names]

    def check(self, *, inputs: Iterable[str | PathLike[str] | None] = ()) -> list[Path]:
        """Return the files that will be replaced or removed; change nothing.

        Args:
            inputs: files that the command reads, and what else must stay; None is passed over.

        Raises:
            SettingsError: a name is none of a file, or is kept for the record; a file in the way is a folder, an input,
                of another kind, not recorded, or was changed; files are there that must not be; or the system refuses
                to write there.
        """
        self._refuse_names()
        with refusals_named(self.folder):
            _refuse_unwritable(self.folder)
            if self.private and self.names:
                _refuse_shared(self.folder)
            record = read_record(self.folder)
            existing = [path for path in self._affected(record) if os.path.lexists(path)]
            _refuse_folders(existing)
            _refuse_inputs([*self.paths, *existing], [Path(path) for path in inputs if path is not None])
            if self.fresh and existing:
                raise SettingsError(
                    self.fresh,
                    value=str(existing[0]),
                    hint="Choose another folder (--out), or --replace: it removes the files that were recorded "
                    f"there as a {self.kind}, and no others.",
                )
            for path in existing:
                self._refuse_foreign(path, record)
            return existing

    def _refuse_names(self) -> None:
        """Refuse names that no output can have."""
        for name in self.names:
            fault = file_name_fault(name)
            if fault:
                raise SettingsError(f"an output must have the name of a file: {fault}", value=name, hint=RENAME)

    def _affected(self, record: Sequence[OutputEntry]) -> list[Path]:
        """Return the paths that are written or removed."""
        earlier = [entry.name for entry in record if self.whole and entry.kind == self.kind]
        return [self.folder / name for name in dict.fromkeys((*self.names, *self.alone, *earlier))]

    def _refuse_foreign(self, path: Path, record: Sequence[OutputEntry]) -> None:
        """Refuse to replace what is not an output of this kind, as it was written."""
        if self.recognized is not None:
            if not self.recognized(path):
                raise _refusal(f"only a {self.kind} is replaced by a {self.kind}", path)
            return
        entries = [entry for entry in record if self.folder / entry.name == path]
        if path.is_symlink() or not entries:
            raise _refusal(f"only a file that {RECORD_FILE} records as an earlier output is replaced", path)
        if self.kind not in {entry.kind for entry in entries}:
            raise _refusal(f"only an output of the kind {self.kind} is replaced, not {entries[0].kind}", path)
        if not any(entry.describes(path) for entry in entries):
            raise _refusal("a file that was changed after it was written is not replaced", path)


def write_atomically(
    path: str | PathLike[str],
    contents: bytes | str | Writer,
    *,
    kind: str,
    recognized: Callable[[Path], bool] | None = None,
) -> None:
    """Write one file that appears whole or not at all; `contents` are bytes, text, or a function that writes them.

    Raises:
        SettingsError: as `Outputs.check`.
    """
    outputs = Outputs(folder=Path(path).parent, names=(Path(path).name,), kind=kind, recognized=recognized)
    write_outputs(outputs, {Path(path).name: contents})


def write_files(directory: str | PathLike[str], files: Mapping[str, bytes | str | Writer], *, kind: str) -> None:
    """Write several files into a folder: first all to temporaries, then, once all are whole, renamed in order.

    Raises:
        SettingsError: as `Outputs.check`.
    """
    write_outputs(Outputs(folder=Path(directory), names=tuple(files), kind=kind), files)


def write_outputs(outputs: Outputs, files: Mapping[str, bytes | str | Writer]) -> None:
    """Write the contents of all files of `outputs`, by name.

    Raises:
        SettingsError: as `Outputs.check`.
    """
    with staged_outputs(outputs) as temporary:
        for name in outputs.names:
            with open(temporary / name, "wb") as stream:
                _fill(stream, files[name])


def remove_outputs(folder: Path, kind: str) -> list[Path]:
    """Remove the recorded files of one kind, and the folder if nothing else is in it; return what was removed.

    Raises:
        SettingsError: a file was changed after it was written, or the system refuses.
    """
    outputs = Outputs(folder=folder, names=(), kind=kind, whole=True)
    removed = outputs.check()
    if removed:
        with refusals_named(folder):
            with temporary_folder(folder) as temporary, folder_lock(folder):
                _put_in_place(outputs, temporary, removed, [])
            if os.listdir(folder) == [RECORD_FILE]:
                (folder / RECORD_FILE).unlink()
                folder.rmdir()
    return removed


@contextmanager
def staged_outputs(outputs: Outputs) -> Iterator[Path]:
    """Give a temporary folder; at the end, its files of these names are renamed into their folder, in order.

    Raises:
        SettingsError: as `Outputs.check`, before anything is written and again at the end.
    """
    folder = outputs.folder
    outputs.check()
    with refusals_named(folder), _made(folder, private=outputs.private), temporary_folder(folder) as temporary:
        yield temporary
        entries = [OutputEntry.of(temporary / name, outputs.kind) for name in outputs.names]
        with folder_lock(folder):
            _put_in_place(outputs, temporary, outputs.check(), entries)


@contextmanager
def _made(folder: Path, *, private: bool) -> Iterator[None]:
    """Make a folder, and those that it lies in; at a failure, those that were made and are empty are removed."""
    missing = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=PRIVATE_FOLDER if private else USUAL_FOLDER, exist_ok=True)
        yield
    except BaseException:
        with suppress(OSError):
            for place in missing:
                place.rmdir()
        raise


@contextmanager
def refusals_named(folder: Path) -> Iterator[None]:
    """Turn what the system says against a folder into a SettingsError; what it says against other files stays."""
    try:
        yield
    except OSError as error:
        if not _concerns(error, folder):
            raise
        hint = f"{error.strerror or error}. Choose another folder, or make room."
        raise SettingsError("the output folder must be writable", value=str(folder), hint=hint) from error


def _concerns(error: OSError, folder: Path) -> bool:
    """Return whether the system refused a file of this folder, a folder on the way to it, or one that it left unnamed.

    Writing to a file that is open names none.
    """
    if not isinstance(error.filename, str | bytes):
        return True
    named, whole = Path(os.fsdecode(error.filename)).absolute(), folder.absolute()
    return named.is_relative_to(whole) or whole.is_relative_to(named)


def _put_in_place(outputs: Outputs, temporary: Path, existing: Sequence[Path], entries: Sequence[OutputEntry]) -> None:
    """Remove and rename; the record names old and new files until it is done, so that a crash leaves none unknown.

    Both records are written beforehand: once the first file is in place, nothing needs room on the disk. The first
    record holds for the end too, so that a last step that fails is no failure of the release.
    """
    folder, record = outputs.folder, read_record(outputs.folder)
    gone = {path.name for path in existing}.union(outputs.names)
    kept = [entry for entry in record if entry.name not in gone and os.path.lexists(folder / entry.name)]
    last = outputs.names[-1] if len(outputs.names) > 1 else None
    if outputs.private:
        for entry in entries:
            (temporary / entry.name).chmod(PRIVATE_FILE)
    recorded = outputs.recognized is None
    meanwhile = _write_record(temporary / f"{RECORD_FILE}-1", [*record, *entries], outputs)
    final = _write_record(temporary / f"{RECORD_FILE}-2", [*kept, *entries], outputs)
    with _interruptions_deferred():
        if recorded:
            os.replace(meanwhile, folder / RECORD_FILE)
        for path in existing:
            # Without the last file nobody takes old and new ones for whole.
            if path.name == last or path.name not in outputs.names:
                path.unlink()
        for name in outputs.names:
            os.replace(temporary / name, folder / name)
        if recorded:
            with suppress(OSError):
                os.replace(final, folder / RECORD_FILE)


def _write_record(path: Path, entries: Iterable[OutputEntry], outputs: Outputs) -> Path:
    """Write a record to a file, with the rights of the outputs; return the path."""
    path.write_text(record_text(entries), encoding="utf-8")
    if outputs.private:
        path.chmod(PRIVATE_FILE)
    return path


@contextmanager
def _interruptions_deferred() -> Iterator[None]:
    """Hold signals that end the process back for the short time in which files are renamed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in usual:
        signal.signal(number, lambda sent, _: seen.append(sent))
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for found in seen[:1]:
            signal.raise_signal(found)


def _refuse_unwritable(folder: Path) -> None:
    near = next(place for place in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(place))
    for number, refused in ((ENOTDIR, not near.is_dir()), (EACCES, not os.access(near, os.W_OK | os.X_OK))):
        if refused:
            raise OSError(number, os.strerror(number))


def _refuse_shared(folder: Path) -> None:
    """Refuse a folder for private files that is a link, or that others than its owner may enter."""
    if folder.is_symlink():
        raise SettingsError(
            "a folder for its owner's eyes only must not be a link",
            value=str(folder),
            hint="Remove the link: the folder is made anew.",
        )
    if os.name == "posix" and folder.exists() and folder.stat().st_mode & OTHERS:
        raise SettingsError(
            "a folder for its owner's eyes only must be closed to all others",
            value=f"{folder}, rights {stat.S_IMODE(folder.stat().st_mode):04o}",
            hint=f"Close it (chmod 700 {folder}), or move it away: then it is made anew.",
        )


def _refuse_folders(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            raise _refusal("a file cannot replace a folder", path)


def _refuse_inputs(paths: Iterable[Path], inputs: Sequence[Path]) -> None:
    for path in paths:
        for given in inputs:
            if _same(path, given):
                raise _refusal("an output must not replace an input", path)


def _same(path: Path, given: Path) -> bool:
    """Return whether two paths lead to one file, or would; what is too long to be a path leads to none."""
    with suppress(OSError):
        return path.samefile(given)
    return os.path.realpath(path) == os.path.realpath(given)


def _refusal(rule: str, path: Path) -> SettingsError:
    return SettingsError(rule, value=str(path), hint=ELSEWHERE)


def _fill(stream: BinaryIO, contents: bytes | str | Writer) -> None:
    if callable(contents):
        contents(stream)
    else:
        stream.write(contents.encode("utf-8") if isinstance(contents, str) else contents)
