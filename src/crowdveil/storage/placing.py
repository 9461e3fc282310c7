"""Files that appear whole or not at all: written to a temporary folder beside their place, then renamed in order."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from crowdveil.errors import SettingsError

Writer = Callable[[BinaryIO], None]


def write_atomically(path: str | PathLike[str], contents: bytes | str | Writer) -> None:
    """Write one file that appears whole or not at all; `contents` are bytes, text, or a function that writes them.

    Raises:
        SettingsError: the system refuses to write there.
    """
    write_together(Path(path).parent, {Path(path).name: contents})


def write_together(directory: str | PathLike[str], files: Mapping[str, bytes | str | Writer]) -> None:
    """Write several files into a folder: first all to temporaries, then, once all are whole, renamed in order.

    Raises:
        SettingsError: the system refuses to write there.
    """
    with placed(directory, list(files)) as temporary:
        for name, contents in files.items():
            with open(temporary / name, "wb") as stream:
                _fill(stream, contents)


@contextmanager
def placed(directory: str | PathLike[str], names: Sequence[str]) -> Iterator[Path]:
    """Give a temporary folder; at the end, its files of these names are renamed into `directory`, in order.

    Raises:
        SettingsError: the system refuses to write there.
    """
    folder = Path(directory)
    with refusals_named(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".crowdveil-", dir=folder) as temporary:
            yield Path(temporary)
            for name in names:
                replace(Path(temporary, name), folder / name)


@contextmanager
def refusals_named(folder: Path) -> Iterator[None]:
    """Turn what the system says against a folder into a SettingsError."""
    try:
        yield
    except OSError as error:
        way_out = f"{error.strerror or error}. Choose another folder, or make room."
        raise SettingsError("the output folder must be writable", value=str(folder), way_out=way_out) from error


def _fill(stream: BinaryIO, contents: bytes | str | Writer) -> None:
    if callable(contents):
        contents(stream)
    else:
        stream.write(contents.encode("utf-8") if isinstance(contents, str) else contents)
