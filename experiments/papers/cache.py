"""Cache of measured rows: one JSON file per configuration, so that an interrupted run continues.

The name of a file is the SHA-256 of the exhibit's name, the configuration, and the programs that the rows depend on:
the package, and what the exhibit's module imports under `experiments`. `WITHOUT_ROWS` names what rows do not depend on.
"""

import ast
import hashlib
import json
import os
from functools import cache
from pathlib import Path

from experiments.papers import EXHIBITS
from experiments.papers.exhibit import Configuration, Exhibit, Row

import crowdveil
from crowdveil.files.atomic_write import write_atomically

FORMAT = "crowdveil-exhibit-rows/1"
KIND = "file of measured rows"
WITHOUT_EFFECT = {"campaign", "cli", "demo", "presentation", "release", "service"}
"""Folders of the package that no exhibit measures."""
WITHOUT_ROWS = {"configurations", "draw", "verdict"}
"""Functions of an exhibit's module that may change while the rows stay."""
ROOT = Path(__file__).parents[2]


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
    key = json.dumps([exhibit.name, configuration, _program(EXHIBITS[exhibit.name]), _package()], sort_keys=True)
    return folder / exhibit.name.replace("/", "-") / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


@cache
def _package() -> str:
    """Return the SHA-256 of the package."""
    package, digest = Path(crowdveil.__file__).parent, hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] not in WITHOUT_EFFECT:
            digest.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


@cache
def _program(module: str) -> str:
    """Return the SHA-256 of a module and of those under `experiments` that it imports, without `WITHOUT_ROWS`."""
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = ROOT.joinpath(*name.split(".")).with_suffix(".py")
        if name not in found and path.is_file():
            tree = ast.parse(path.read_text("utf-8"))
            found[name] = "\n".join(ast.dump(node) for node in tree.body if not _is_without_rows(node))
            waiting += [one for one in _imported(tree) if one.startswith("experiments.")]
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


def _imported(tree: ast.Module) -> list[str]:
    """Return the names of modules that a module may import, at any depth; some are names inside modules."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return names


def _is_without_rows(node: ast.stmt) -> bool:
    """Return whether a statement is a text or defines a name of `WITHOUT_ROWS`."""
    if isinstance(node, ast.FunctionDef):
        return node.name in WITHOUT_ROWS
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(target, ast.Name) and target.id in WITHOUT_ROWS for target in targets)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_replaceable(path: Path) -> bool:
    """Return whether the path is a regular file: its name is a hash, so it is one of this cache, perhaps damaged."""
    return path.is_file() and not path.is_symlink()
