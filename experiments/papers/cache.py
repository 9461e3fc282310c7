"""Cache of measured rows: one JSON file per configuration, so that an interrupted run continues.

The name of a file is the SHA-256 of the exhibit's name, the configuration, and the programs of experiments and package.
"""

import hashlib
import json
import os
from functools import cache
from pathlib import Path

from experiments.papers.exhibit import Configuration, Exhibit, Row

import crowdveil
from crowdveil.files.atomic_write import write_atomically

FORMAT = "crowdveil-exhibit-rows/1"
KIND = "file of measured rows"
PROGRAMS = (Path(crowdveil.__file__).parent, Path(__file__).parents[1])
"""Folders whose modules may change rows."""


def default_cache() -> Path:
    """Return the folder in the user's cache directory (XDG_CACHE_HOME or ~/.cache)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crowdveil" / "exhibits"


def rows_of(exhibit: Exhibit, configuration: Configuration, folder: Path) -> list[Row] | None:
    """Return the stored rows of a configuration; None if there are none, or the file is damaged."""
    try:
        document = json.loads(_path(exhibit, configuration, folder).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    expected = {"format": FORMAT, "exhibit": exhibit.name, "configuration": configuration}
    if not isinstance(document, dict) or {name: document.get(name) for name in expected} != expected:
        return None
    rows = document.get("rows")
    whole = isinstance(rows, list) and all(isinstance(row, dict) and tuple(row) == exhibit.columns for row in rows)
    return rows if whole else None


def store(exhibit: Exhibit, configuration: Configuration, rows: list[Row], folder: Path) -> None:
    """Write the rows of a configuration atomically.

    Raises:
        SettingsError: the folder cannot be written, or a link or folder has the name.
    """
    document = {"format": FORMAT, "exhibit": exhibit.name, "configuration": configuration, "rows": rows}
    text = json.dumps(document, indent=1)
    write_atomically(_path(exhibit, configuration, folder), text, kind=KIND, recognize=_is_replaceable)


def _path(exhibit: Exhibit, configuration: Configuration, folder: Path) -> Path:
    key = json.dumps([exhibit.name, configuration, programs_digest(PROGRAMS)], sort_keys=True)
    return folder / exhibit.name.replace("/", "-") / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


@cache
def programs_digest(folders: tuple[Path, ...]) -> str:
    """Return the SHA-256 of the modules in some folders."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _is_replaceable(path: Path) -> bool:
    """Return whether the path is a regular file: its name is a hash, so it is one of this cache, perhaps damaged."""
    return path.is_file() and not path.is_symlink()
