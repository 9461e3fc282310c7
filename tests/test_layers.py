"""Layers of the package: which file may import which, and what may be loaded on a worker's device."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import crowdveil

SOURCE = Path(__file__).parent.parent / "src" / "crowdveil"

ARCHITECTURE = SOURCE.parents[1] / "docs" / "explanation" / "architecture.md"
"""Page with the table of layers, lowest first."""

PUBLIC_FACE = "__init__"
"""The package's own `__init__.py` is above all layers: it only exports names."""

ON_DEVICES = (
    *("hints", "errors", "arguments", "randomness", "registry", "standalone", "display", "channels", "mechanisms"),
    *("campaign.rules", "campaign.settings", "campaign.device"),
)
"""Modules that run on a worker's device, by dotted prefix."""
PLACES_OF_PATHS = {
    "answers.assignment": "reader of assigned cells",
    "answers.columnar_store": "encoded blocks",
    "answers.datasets": "data sets",
    "answers.frames": "names a path in place of a frame, which it refuses; it opens none",
    "answers.identifiers": "names of encoded blocks",
    "answers.importers": "exports of labelling tools",
    "answers.ingest": "readers of columns",
    "answers.published_sets": "downloads of published sets",
    "answers.reports": "readers of answers",
    "answers.sources": "sources of answers",
    "answers.spreadsheets": "sheets of workbooks",
    "answers.store_manifest": "manifest of encoded blocks",
    "campaign": "folder, settings, token, device and service of a campaign",
    "cli": "arguments of commands",
    "em.engines": "workers open encoded blocks",
    "em.kernels.jit": "memory of the process, as Linux states it",
    "files": "atomic writes and records",
    "privacy.audit.command": "commands that are audited, with their files",
    "standalone": "programs of one file",
    "storage": "files into values and back",
}
"""Modules that may name a path, by dotted prefix, and why; all others take and give values."""
SEPARATE = {"mechanisms", "estimators"}
OPTIONAL = ("dask", "duckdb", "pandas", "plots", "polars", "relay", "remote", "service", "spreadsheets")
"""Extras of the library: engines, sources and pictures."""
BROUGHT_ALONG = {"llvmlite", "markupsafe"}
"""Packages that a dependency cannot be without: the compiler of numba, the safe text of jinja2."""


def module_name(path: Path) -> str:
    """Dotted name inside the package: `mechanisms.laplace`; a folder's `__init__.py` bears the folder's name."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def folder_of(module: str) -> str:
    """The file or folder directly under the package that a module belongs to."""
    return module.split(".")[0]


@cache
def modules() -> dict[str, ast.Module]:
    """Syntax tree of every module of the package, by dotted name."""
    return {module_name(path): ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


def imports(tree: ast.Module) -> set[str]:
    """Every absolute name a module imports, at any depth: imports inside functions count."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def inner_imports(module: str) -> set[str]:
    """Modules of the package that a module imports, by dotted name; `from folder import file` names the file."""
    known = modules()
    found = set()
    for name in imports(known[module]):
        parts = name.split(".")
        if parts[0] != "crowdveil" or len(parts) < 2:
            continue
        longest = next(".".join(parts[1:end]) for end in range(len(parts), 1, -1) if ".".join(parts[1:end]) in known)
        found.add(longest)
    return found


def layers() -> list[str]:
    """Return the layers of the table in the page on architecture, lowest first."""
    return re.findall(r"^\| `(\w+)` \|", ARCHITECTURE.read_text("utf-8"), flags=re.MULTILINE)


def test_table_names_every_layer() -> None:
    """Each file and folder of the package stands in the table of the architecture, and no other does."""
    placed = {folder_of(module) for module in modules()} - {PUBLIC_FACE, "__main__"}

    assert sorted(layers()) == sorted(placed)


def test_nothing_imports_a_lower_row() -> None:
    """A module imports its own layer and lower ones only, the rows above it in the table."""
    rank = {layer: place for place, layer in enumerate((*layers(), "__main__"))}
    climbing = {
        (module, other)
        for module in modules()
        if module != PUBLIC_FACE
        for other in inner_imports(module)
        if rank[folder_of(other)] > rank[folder_of(module)]
    }

    assert climbing == set()


def names_a_path(tree: ast.Module) -> bool:
    """Return whether a module names the classes of paths: it imports them, or the module that has them."""
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return "PathLike" in attributes or any(
        name == "os.PathLike" or name.split(".")[0] == "pathlib" for name in imports(tree)
    )


def test_paths_stand_at_the_edges() -> None:
    """Only the listed places name a path: a parameter that is one needs its class. Each listed place has one."""
    naming = {module for module, tree in modules().items() if names_a_path(tree)}
    placed = {
        place: {module for module in naming if module == place or module.startswith(place + ".")}
        for place in PLACES_OF_PATHS
    }

    assert [] == sorted(naming.difference(*placed.values()))
    assert [] == [place for place, found in placed.items() if not found]


def test_there_is_no_import_cycle() -> None:
    """The graph of imports, those inside functions included, has no cycle."""
    graph = {module: inner_imports(module) - {module} for module in modules()}
    cycle: tuple[str, ...] = ()
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = tuple(error.args[1])

    assert cycle == ()


def test_mechanisms_and_estimators_never_import_one_another() -> None:
    """The worker's side and the curator's side meet in the channel only."""
    crossing = [
        (module, other)
        for module in modules()
        for other in inner_imports(module)
        if {folder_of(module), folder_of(other)} == SEPARATE
    ]

    assert crossing == []


def test_synthesis_is_separate() -> None:
    """Only its files and command import synthesis; it imports files beside the folders, channels and answers."""
    inside = {
        folder_of(other) for module in modules() if folder_of(module) == "synthesis" for other in inner_imports(module)
    }
    users = {module for module in modules() for other in inner_imports(module) if folder_of(other) == "synthesis"}

    assert inside == {"errors", "hints", "randomness", "channels", "answers", "synthesis"}
    assert {module for module in users if folder_of(module) != "synthesis"} == {
        "cli.data.synthesize",
        "storage.synthesis",
    }


def runs_on_devices(module: str) -> bool:
    """Return whether a module runs on a worker's device."""
    return any(module == place or module.startswith(place + ".") for place in ON_DEVICES)


def test_only_commands_import_campaigns() -> None:
    """The library does not know people: commands alone import campaigns, and hand their facts down as values."""
    users = {
        (module, other)
        for module in modules()
        if folder_of(module) not in {"campaign", "cli"}
        for other in inner_imports(module)
        if folder_of(other) == "campaign"
    }

    assert users == set()


def test_the_workers_half_imports_the_standard_library_and_numpy_only() -> None:
    """No file that runs on a device names another package, or a file of the curator's half."""
    allowed = sys.stdlib_module_names | {"numpy", "crowdveil"}
    for module, tree in modules().items():
        if runs_on_devices(module):
            assert {name.split(".")[0] for name in imports(tree)} - allowed == set(), module
            assert {other for other in inner_imports(module) if not runs_on_devices(other)} == set(), module


def test_the_workers_half_loads_the_standard_library_and_numpy_only() -> None:
    """A fresh interpreter that imports the worker's half has loaded nothing else, numpy's own needs included."""
    half = sorted(module for module in modules() if runs_on_devices(module))
    program = (
        "import importlib, json, sys; before = set(sys.modules); "
        f"[importlib.import_module('crowdveil.' + name) for name in {half}]; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    loaded = json.loads(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)
    roots = {name.split(".")[0] for name in loaded}
    ours = {name.removeprefix("crowdveil.") for name in loaded if name.startswith("crowdveil.")} - {"campaign"}

    installed = roots & set(packages_distributions()) - sys.stdlib_module_names

    assert installed - {"crowdveil"} == {"numpy"}
    assert sorted(ours) == half


def test_every_imported_package_is_a_dependency() -> None:
    """A default install holds every package that the library imports, but for those of the optional engines."""
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    held = {re.split(r"[<>=]", text)[0] for text in project["dependencies"]}
    optional = {
        re.split(r"[<>=]", text)[0].replace("-", "_")
        for name in OPTIONAL
        for text in project["optional-dependencies"][name]
    }
    named = {name.split(".")[0] for tree in modules().values() for name in imports(tree)}

    assert held == named & held
    assert {"numba"} <= held
    assert set() == named - held - optional - sys.stdlib_module_names - BROUGHT_ALONG - {"crowdveil"}


def test_every_public_name_can_be_imported() -> None:
    """Each name of `__all__` is handed out, and `dir` shows exactly these."""
    assert dir(crowdveil) == sorted(crowdveil.__all__)
    for name in crowdveil.__all__:
        assert getattr(crowdveil, name) is not None


def test_an_unknown_name_is_refused_with_the_public_ones() -> None:
    """A misspelt name raises AttributeError, and the message lists what there is."""
    try:
        crowdveil.Chanel  # type: ignore[attr-defined]  # noqa: B018
    except AttributeError as error:
        message = str(error)

    assert "'Chanel'" in message
    assert "Channel" in message
