"""Cache of measured rows: one JSON file per configuration, so that an interrupted run continues.

The name of a file is the SHA-256 of the exhibit's name, the configuration, and the source files that the rows may
depend on: after a change of the program nothing old is read.
"""

import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from experiments.papers.exhibit import Configuration, Exhibit, Row

import crowdveil
from crowdveil.files.atomic_write import write_atomically

FORMAT = "crowdveil-exhibit-rows/1"
KIND = "file of measured rows"
WITHOUT_EFFECT = {"campaign", "cli", "demo", "presentation", "release", "service"}
"""Folders of the package that no exhibit measures."""
PAPERS = Path(__file__).parent


def default_cache() -> Path:
    """Return the folder in the user's cache directory (XDG_CACHE_HOME or ~/.cache)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crowdveil" / "exhibits"


def rows_of(exhibit: Exhibit, configuration: Configuration, folder: Path) -> list[Row] | None:
    """Return the stored rows of a configuration; None if there are none, or the file is damaged."""
    try:
        document = json.loads(_path(exhibit, configuration, folder).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return document["rows"] if _is_ours(document) and document["configuration"] == configuration else None


def store(exhibit: Exhibit, configuration: Configuration, rows: list[Row], folder: Path) -> None:
    """Write the rows of a configuration atomically.

    Raises:
        SettingsError: the folder cannot be written, or another file has the name.
    """
    document = {"format": FORMAT, "exhibit": exhibit.name, "configuration": configuration, "rows": rows}
    text = json.dumps(document, indent=1)
    write_atomically(_path(exhibit, configuration, folder), text, kind=KIND, recognize=_is_replaceable)


def _path(exhibit: Exhibit, configuration: Configuration, folder: Path) -> Path:
    key = json.dumps([exhibit.name, configuration, _sources(exhibit.name.partition("/")[0])], sort_keys=True)
    return folder / exhibit.name.replace("/", "-") / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


@cache
def _sources(paper: str) -> str:
    """Return the SHA-256 of the paper's programs and of the package."""
    package = Path(crowdveil.__file__).parent
    files = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in WITHOUT_EFFECT]
    digest = hashlib.sha256()
    for path in sorted([*files, *(PAPERS / paper).glob("*.py"), *(PAPERS.parent / "theory").glob("*.py")]):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _is_replaceable(path: Path) -> bool:
    """Return whether the path is a regular file: its name is a hash, so it is one of this cache, perhaps damaged."""
    return path.is_file() and not path.is_symlink()


def _is_ours(document: Any) -> bool:
    return isinstance(document, dict) and document.get("format") == FORMAT
