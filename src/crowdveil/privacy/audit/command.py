"""A whole command as a black box: exit code, printed text and every byte of every file that it writes.

The command line has the placeholders `{input}` and `{out}`. Both inputs are copied to the same path and `{out}` is a
path that does not exist before each run, so that paths do not tell the inputs apart.
"""

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crowdveil.errors import SettingsError
from crowdveil.privacy.audit.black_box import FAILURE, Pair

INPUT, OUT = "{input}", "{out}"
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
    """Command that reads an input and writes files.

    Attributes:
        words: words of the command, with `{input}` and perhaps `{out}`.
        folder: empty folder for inputs and outputs of the runs.
        run: runs the words.
    """

    words: tuple[str, ...]
    folder: Path
    run: Run = run_process

    def __post_init__(self) -> None:
        if not any(INPUT in word for word in self.words):
            raise SettingsError(f"the command must contain {INPUT}", value=" ".join(self.words))

    def pair(self, first: Path, second: Path) -> Pair:
        """Return the pair of two inputs: files, or folders.

        Raises:
            SettingsError: an input does not exist, or one is a folder and the other is not.
        """
        for path in (first, second):
            if not path.exists():
                raise SettingsError("an input must exist", value=str(path))
        if first.is_dir() != second.is_dir():
            raise SettingsError("both inputs are files, or both are folders", value=(str(first), str(second)))
        suffix = "".join(first.suffixes) if first.is_file() else ""

        def sampler(source: Path) -> Callable[[int], list[dict[str, object]]]:
            return lambda count: [self._output(source, suffix) for _ in range(count)]

        return Pair(f"{first.name} against {second.name}", sampler(first), sampler(second), alternate=True)

    def _output(self, source: Path, suffix: str) -> dict[str, object]:
        """Return what one run leaves: "exit code", "stdout", "stderr", and the files by their names."""
        given, out = self.folder / f"input{suffix}", self.folder / "out"
        for path in (given, out):
            _remove(path)
        shutil.copytree(source, given) if source.is_dir() else shutil.copyfile(source, given)
        code, printed, errors = self.run(
            [word.replace(INPUT, str(given)).replace(OUT, str(out)) for word in self.words]
        )
        failed = {FAILURE: f"exit code {code}: ".encode() + errors[:200]} if code else {}
        return {"exit code": code, "stdout": printed, "stderr": errors} | failed | _files(out)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _files(out: Path) -> dict[str, object]:
    """Return the bytes of the files at a path, by name; folders have no bytes."""
    if out.is_file():
        return {"file": out.read_bytes()}
    found = sorted(out.rglob("*")) if out.is_dir() else []
    return {f"file {path.relative_to(out).as_posix()}": path.read_bytes() if path.is_file() else b"" for path in found}
