"""Whole commands as a black box: exit codes, printed text, and bytes, names, modes and links of the files they write.

The command lines have the placeholders `{input}` and `{out}`. Both inputs are copied to the same path and `{out}` is a
path that does not exist before each run, so that paths do not tell the inputs apart.
"""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crowdveil.errors import SettingsError
from crowdveil.privacy.audit.black_box import FAILURE, Pair

INPUT, OUT = "{input}", "{out}"
OUT_NAME, REMOVED = "out", ("removed", b"")
MAX_SECONDS = 600
Run = Callable[[Sequence[str]], tuple[int, bytes, bytes]]
"""Function that runs the words of a command and returns exit code, standard output and standard error."""


def run_process(words: Sequence[str]) -> tuple[int, bytes, bytes]:
    """Run a program and return exit code, standard output and standard error.

    Raises:
        SettingsError: there is no such program, or it does not end.
    """
    try:
        done = subprocess.run(list(words), capture_output=True, check=False, timeout=MAX_SECONDS)
    except (FileNotFoundError, PermissionError, subprocess.TimeoutExpired) as error:
        raise SettingsError("the audited command must run", value=words[0], hint=str(error)) from error
    return done.returncode, done.stdout, done.stderr


@dataclass(frozen=True, slots=True)
class CommandBox:
    """Commands that read an input and write files.

    Attributes:
        commands: words of each command, which run in turn until one fails; `{input}` occurs, and perhaps `{out}`.
        folder: empty folder for inputs and outputs of the runs; all that a run leaves in it is compared.
        run: runs the words of a command.
    """

    commands: tuple[tuple[str, ...], ...]
    folder: Path
    run: Run = run_process

    def __post_init__(self) -> None:
        if not all(self.commands) or not any(INPUT in word for words in self.commands for word in words):
            shown = " && ".join(map(" ".join, self.commands))
            raise SettingsError(
                f"the command must contain {INPUT}, and none may be empty",
                value=shown,
                hint='Such as "program {input}".',
            )

    def pair_of_inputs(self, first: Path, second: Path) -> Pair:
        """Return the pair of two inputs: files, or folders.

        Raises:
            SettingsError: an input does not exist, or one is a folder and the other is not.
        """
        for path in (first, second):
            if not path.exists():
                raise SettingsError("an input must exist", value=str(path), hint="Check its name and folder.")
        if first.is_dir() != second.is_dir():
            raise SettingsError(
                "both inputs are files, or both are folders",
                value=(str(first), str(second)),
                hint="Give two of one kind.",
            )
        suffix = "".join(first.suffixes) if first.is_file() else ""

        def sampler(source: Path) -> Callable[[int], list[dict[str, object]]]:
            return lambda count: [self._run_commands_and_collect_outputs(source, suffix) for _ in range(count)]

        return Pair(f"{first.name} against {second.name}", sampler(first), sampler(second), alternate=True)

    def _run_commands_and_collect_outputs(self, source: Path, suffix: str) -> dict[str, object]:
        """Return what one run leaves: "exit code", "stdout" and "stderr" of each command, and the files by name."""
        for path in self.folder.iterdir():
            _remove(path)
        given, out = self.folder / f"input{suffix}", self.folder / OUT_NAME
        shutil.copytree(source, given) if source.is_dir() else shutil.copyfile(source, given)
        before, left = _modes_and_contents_of_files(self.folder), dict[str, object]()
        for number, words in enumerate(self.commands, start=1):
            of = f" of command {number}" if number > 1 else ""
            code, printed, errors = self.run([word.replace(INPUT, str(given)).replace(OUT, str(out)) for word in words])
            left |= {f"exit code{of}": code, f"stdout{of}": printed, f"stderr{of}": errors}
            if code:
                left[FAILURE] = f"exit code {code}{of}: ".encode() + errors[:200]
                break
        after = _modes_and_contents_of_files(self.folder)
        changed = {name: after.get(name, REMOVED) for name in before | after if before.get(name) != after.get(name)}
        modes = "\n".join(f"{about} {name}" for name, (about, _) in sorted(changed.items()))
        return left | {"modes": modes} | {f"file {name}": data for name, (_, data) in changed.items()}


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _modes_and_contents_of_files(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Return mode and links, and bytes, of all files and folders in a folder, by name; names in `{out}` start there.

    A link is described by its text; a file with several names by the number of names, and the first one in the folder.
    """
    found, first = dict[str, tuple[str, bytes]](), dict[tuple[int, int], str]()
    for path in sorted(folder.rglob("*")):
        name, status = path.relative_to(folder).as_posix().removeprefix(f"{OUT_NAME}/"), path.lstat()
        about = stat.filemode(status.st_mode)
        if path.is_symlink():
            about += f" to {os.readlink(path)!r}"
        elif not path.is_dir() and status.st_nlink > 1:
            about += f" {status.st_nlink} names, {first.setdefault((status.st_dev, status.st_ino), name)!r}"
        found[name] = about, path.read_bytes() if path.is_file() else b""
    return found
