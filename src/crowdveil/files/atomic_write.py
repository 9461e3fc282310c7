"""Atomic output of files: stage in a temporary folder, then commit by renaming.

An existing file is replaced only if the folder's output record (`crowdveil.files.output_record`) lists it with the same
kind and its contents are unchanged since. No other file of the folder is touched.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EACCES, EEXIST, ENOTDIR
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from crowdveil.errors import SettingsError
from crowdveil.files.filesystem import (
    folder_lock,
    is_url_as_path,
    remove_abandoned_temporary_folders,
    temporary_folder,
)
from crowdveil.files.output_record import RECORD_FILE, OutputEntry, file_name_fault, read_record, record_text
from crowdveil.hints import advice, command_advice

Writer = Callable[[BinaryIO], None]
RENAME = "Choose another name."
ELSEWHERE = "Write the output elsewhere, or move that file away."
PRIVATE_FILE, PRIVATE_FOLDER, USUAL_FOLDER = 0o600, 0o700, 0o777
"""Permission bits of private files, private folders and other folders (before the umask)."""
OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""Permission bits of everyone but the owner."""


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Files that one command writes into one folder.

    Attributes:
        folder: target folder; created if absent.
        names: file names in the order of renaming. The last one marks the set as complete.
        kind: kind of output, such as "estimate"; files are replaced by outputs of the same kind only.
        remove_stale: whether recorded files of this kind that are not written again are removed.
        also_replaced: further file names that are removed, or refused, with the others.
        must_be_new: error text if an earlier file exists; empty if earlier files may be replaced.
        private: whether only the owner may read the files.
        recognize: predicate on an existing file that replaces the record as the test of its kind; None to use and write
            the record.
        reports_sha256, reading, gold, notes, inputs: of `OutputEntry`.
    """

    folder: Path
    names: tuple[str, ...]
    kind: str
    remove_stale: bool = False
    also_replaced: tuple[str, ...] = ()
    must_be_new: str = ""
    private: bool = False
    recognize: Callable[[Path], bool] | None = None
    reports_sha256: str = ""
    reading: str = ""
    gold: str = ""
    notes: str = ""
    inputs: str = ""

    @property
    def paths(self) -> list[Path]:
        """Paths of the files to write."""
        return [self.folder / name for name in self.names]

    def check_replaced_files(self, *, inputs: Iterable[str | PathLike[str] | None] = ()) -> list[Path]:
        """Return the existing files that a commit would replace or remove; none of them is changed.

        Args:
            inputs: files that must not be replaced, such as inputs of the command; None is ignored.

        Raises:
            SettingsError: an invalid or reserved name; a URL in place of the folder; an existing file that is a folder,
                an input, of another kind, not recorded or changed since; existing files despite `must_be_new`; or no
                permission to write.
        """
        self._refuse_invalid_names()
        if is_url_as_path(self.folder):
            hint = "Write to a path, and copy the files from there."
            raise SettingsError("outputs are written on this machine, and to no URL", value=str(self.folder), hint=hint)
        with folder_errors(self.folder):
            refuse_unwritable(self.folder)
            if self.private:
                _refuse_unsafe_folder(self.folder)
            record = read_record(self.folder)
            existing = [path for path in self._paths_to_write_or_remove(record) if os.path.lexists(path)]
            _refuse_folders(existing)
            _refuse_inputs([*self.paths, *existing], [Path(path) for path in inputs if path is not None])
            if self.must_be_new and existing:
                remove_abandoned_temporary_folders(self.folder)  # a killed command had written all but this
                replacing = advice(", or {replace}: it removes the recorded files", replace=True)
                only = replacing and f" of the kind {self.kind}, and no others"
                hint = f"Choose another folder{command_advice(' ({out})')}{replacing}{only}."
                raise SettingsError(self.must_be_new, value=str(existing[0]), hint=hint)
            for path in existing:
                self._require_own_unchanged_output(path, record)
            return existing

    def _refuse_invalid_names(self) -> None:
        """Refuse names that are not plain file names, or are reserved."""
        for name in self.names:
            fault = file_name_fault(name)
            if fault:
                raise SettingsError(f"an output must have the name of a file: {fault}", value=name, hint=RENAME)

    def _paths_to_write_or_remove(self, record: Sequence[OutputEntry]) -> list[Path]:
        """Return the paths that are written or removed."""
        stale = [entry.name for entry in record if self.remove_stale and entry.kind == self.kind]
        return [self.folder / name for name in dict.fromkeys((*self.names, *self.also_replaced, *stale))]

    def _require_own_unchanged_output(self, path: Path, record: Sequence[OutputEntry]) -> None:
        """Refuse to replace a file that is not an unchanged output of this kind."""
        if self.recognize is not None:
            if not self.recognize(path):
                raise _refusal(f"a {self.kind} may only replace a {self.kind}", path)
            return
        entries = [entry for entry in record if self.folder / entry.name == path]
        if path.is_symlink() or not entries:
            raise SettingsError(
                f"{path} is not an output of crowdveil and is not replaced",
                value=str(path),
                hint=command_advice("Choose another place with {out}.", "Choose another place."),
                value_in_rule=True,
            )
        if self.kind not in {entry.kind for entry in entries}:
            raise _refusal(f"only an output of the kind {self.kind} may be replaced, not {entries[0].kind}", path)
        if not any(entry.is_file_unchanged(path) for entry in entries):
            raise _refusal("a file that was changed after it was written is not replaced", path)


def write_atomically(
    path: str | PathLike[str],
    contents: bytes | str | Writer,
    *,
    kind: str,
    recognize: Callable[[Path], bool] | None = None,
) -> None:
    """Write one file atomically; `contents` are bytes, text, or a function that writes to a stream.

    Raises:
        SettingsError: as `Outputs.check_replaced_files`.
    """
    outputs = Outputs(folder=Path(path).parent, names=(Path(path).name,), kind=kind, recognize=recognize)
    write_outputs(outputs, {Path(path).name: contents})


def write_files(directory: str | PathLike[str], files: Mapping[str, bytes | str | Writer], *, kind: str) -> None:
    """Write several files into a folder: all are staged before the first is renamed.

    Raises:
        SettingsError: as `Outputs.check_replaced_files`.
    """
    write_outputs(Outputs(folder=Path(directory), names=tuple(files), kind=kind), files)


def write_outputs(outputs: Outputs, files: Mapping[str, bytes | str | Writer]) -> None:
    """Write the files of `outputs` from their contents by name.

    Raises:
        SettingsError: as `Outputs.check_replaced_files`.
    """
    with staged_outputs(outputs) as temporary:
        for name in outputs.names:
            with open(temporary / name, "wb") as stream:
                _write_bytes_text_or_call(stream, files[name])


@contextmanager
def staged_outputs(outputs: Outputs) -> Iterator[Path]:
    """Yield a staging folder; at the end, commit its files in the order of `outputs.names`.

    Raises:
        SettingsError: as `Outputs.check_replaced_files`, which runs before staging and before the commit.
    """
    folder = outputs.folder
    outputs.check_replaced_files()
    with folder_errors(folder), _created_folder(folder, private=outputs.private), temporary_folder(folder) as temporary:
        yield temporary
        origin = (outputs.kind, outputs.reports_sha256, outputs.reading, outputs.gold, outputs.notes, outputs.inputs)
        entries = [OutputEntry.of(temporary / name, *origin) for name in outputs.names]
        with folder_lock(folder):
            _commit(outputs, temporary, outputs.check_replaced_files(), entries)


@contextmanager
def _created_folder(folder: Path, *, private: bool) -> Iterator[None]:
    """Create a folder and its parents; on failure, remove those that were created and are empty."""
    missing = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=PRIVATE_FOLDER if private else USUAL_FOLDER, exist_ok=True)
        yield
    except BaseException:
        with suppress(OSError):
            for path in missing:
                path.rmdir()
        raise


@contextmanager
def folder_errors(folder: Path, *, role: str = "the output folder") -> Iterator[None]:
    """Convert an OSError about this folder into a SettingsError; other errors pass unchanged.

    Args:
        folder: folder that is written.
        role: subject of the error.
    """
    try:
        yield
    except OSError as error:
        if not _error_names_folder(error, folder):
            raise
        hint = f"{error.strerror or error}. Choose another folder, or make room."
        raise SettingsError(f"{role} must be writable", value=str(folder), hint=hint) from error


def _error_names_folder(error: OSError, folder: Path) -> bool:
    """Return whether an error names the folder, one of its files or parents, or no file (write to an open file)."""
    if not isinstance(error.filename, str | bytes):
        return True
    named, whole = Path(os.fsdecode(error.filename)).absolute(), folder.absolute()
    return named.is_relative_to(whole) or whole.is_relative_to(named)


def _commit(outputs: Outputs, temporary: Path, existing: Sequence[Path], entries: Sequence[OutputEntry]) -> None:
    """Remove old files and rename staged ones.

    During the commit the record is marked as unfinished and lists old and new files, so that a crash leaves no
    unrecorded file, and readers refuse what it left. All old files are removed before the first new one appears: they
    never lie together. Both records are staged first: after the first rename, no disk space is needed.
    """
    folder, record = outputs.folder, read_record(outputs.folder)
    gone = {path.name for path in existing}.union(outputs.names)
    kept = [entry for entry in record if entry.name not in gone and os.path.lexists(folder / entry.name)]
    if outputs.private:
        for entry in entries:
            (temporary / entry.name).chmod(PRIVATE_FILE)
    recorded = outputs.recognize is None
    interim = _write_record(temporary / f"{RECORD_FILE}-1", [*record, *entries], outputs, unfinished=True)
    final = _write_record(temporary / f"{RECORD_FILE}-2", [*kept, *entries], outputs)
    if recorded:
        os.replace(interim, folder / RECORD_FILE)
    for path in existing:
        # A single file is overwritten: there is no mixture, and it is never absent.
        if len(outputs.names) > 1 or path.name not in outputs.names:
            path.unlink()
    for name in outputs.names:
        os.replace(temporary / name, folder / name)
    if recorded:
        with suppress(OSError):
            os.replace(final, folder / RECORD_FILE)


def publish_by_last(outputs: Outputs, temporary: Path, replaced: Iterable[str]) -> None:
    """Rename staged files of which the last one names the others, then remove the files that it names no more.

    Until the last renaming the folder has its earlier content, and afterwards the new one: a reader, or a crash at any
    time, finds one of the two. Files that a crash leaves besides are recorded.

    Args:
        outputs: files; all but the last one have free names.
        temporary: folder in which they are staged, inside `outputs.folder`.
        replaced: names of the files that are removed.

    Raises:
        FileExistsError: there is a file of a name that was free.
    """
    folder, gone, record = outputs.folder, set(replaced).difference(outputs.names), read_record(outputs.folder)
    entries = [OutputEntry.of(temporary / name, outputs.kind) for name in outputs.names]
    kept = [entry for entry in record if entry.name not in gone.union(outputs.names)]
    *named, last = outputs.names
    interim = _write_record(temporary / f"{RECORD_FILE}-1", [*record, *entries], outputs)
    final = _write_record(temporary / f"{RECORD_FILE}-2", [*kept, *entries], outputs)
    for name in outputs.names:
        with open(temporary / name, "rb+") as stream:
            os.fsync(stream.fileno())
    os.replace(interim, folder / RECORD_FILE)
    try:
        for name in named:
            _rename_to_free_name(temporary / name, folder / name)
        os.replace(temporary / last, folder / last)
    except BaseException:
        if (temporary / last).exists():  # it was not renamed
            for name in named:
                if not (temporary / name).exists():  # it was
                    (folder / name).unlink(missing_ok=True)
        raise
    with suppress(OSError):
        for name in gone:
            (folder / name).unlink(missing_ok=True)
        os.replace(final, folder / RECORD_FILE)


def _rename_to_free_name(path: Path, target: Path) -> None:
    """Rename a file, and replace none."""
    if os.path.lexists(target):
        raise FileExistsError(EEXIST, os.strerror(EEXIST), str(target))
    os.replace(path, target)


def _write_record(path: Path, entries: Iterable[OutputEntry], outputs: Outputs, *, unfinished: bool = False) -> Path:
    """Write a record to a file with the permissions of the outputs; return the path."""
    path.write_text(record_text(entries, unfinished=unfinished), encoding="utf-8")
    if outputs.private:
        path.chmod(PRIVATE_FILE)
    return path


def refuse_unwritable(folder: Path) -> None:
    """Raise an OSError if a folder cannot be written, or cannot be made because of its parents."""
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
    for number, refused in ((ENOTDIR, not existing.is_dir()), (EACCES, not os.access(existing, os.W_OK | os.X_OK))):
        if refused:
            raise OSError(number, os.strerror(number))


def _refuse_unsafe_folder(folder: Path) -> None:
    """Refuse a folder for private files that is a link, or that other users may enter."""
    if folder.is_symlink():
        raise SettingsError(
            "a folder for private files must not be a link",
            value=str(folder),
            hint="Remove the link: the folder is made anew.",
        )
    if os.name == "posix" and folder.exists() and folder.stat().st_mode & OTHERS:
        raise SettingsError(
            "a folder for private files must be closed to all other users",
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
            if _is_same_file(path, given):
                raise _refusal("an output must not replace an input", path)


def _is_same_file(path: Path, given: Path) -> bool:
    """Return whether two paths are, or would be, the same file; a path that is too long is compared as text."""
    with suppress(OSError):
        return path.samefile(given)
    return os.path.realpath(path) == os.path.realpath(given)


def _refusal(rule: str, path: Path) -> SettingsError:
    return SettingsError(rule, value=str(path), hint=ELSEWHERE)


def _write_bytes_text_or_call(stream: BinaryIO, contents: bytes | str | Writer) -> None:
    if callable(contents):
        contents(stream)
    else:
        stream.write(contents.encode("utf-8") if isinstance(contents, str) else contents)
