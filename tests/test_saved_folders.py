"""Commands say of saved folders what they said when the folders were saved: numbers, truths, guarantees, exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.saved_folders.commands import EXPECTED, SAVED, Said, commands_of, say
from tests.saved_folders.folders import FOLDERS

FAST = [
    ("campaign", "infer"),
    ("campaign", "share"),
    ("answers", "infer gold"),
    ("shuffled-cells", "statement"),
    ("levels", "verify campaign"),
    ("edited", "infer accepted"),
    ("assignment", "aggregate in Python"),
    ("sums", "infer"),
]
"""Folders and commands of the fast run."""
SLOW = [(name, command) for name in FOLDERS for command in commands_of(SAVED / name) if (name, command) not in FAST]


def expected(folder: str) -> dict[str, Said]:
    """Return what commands said of a folder when it was saved, by command."""
    found: dict[str, Said] = json.loads((EXPECTED / f"{folder}.json").read_text("utf-8"))
    return found


def differences(before: Any, now: Any, place: str = "") -> list[str]:
    """Return the places where two JSON values differ; numbers with a point agree up to a relative 1e-9."""
    if isinstance(before, dict) and isinstance(now, dict):
        missing = [f"{place}/{name} is on one side only" for name in sorted(before.keys() ^ now.keys())]
        both = [name for name in before if name in now]
        return missing + [one for name in both for one in differences(before[name], now[name], f"{place}/{name}")]
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = enumerate(zip(before, now, strict=True))
        return [one for number, pair in pairs for one in differences(*pair, f"{place}/{number}")]
    if isinstance(before, float) and isinstance(now, float):
        same = now == pytest.approx(before, rel=1e-9, abs=1e-12, nan_ok=True)
    else:
        same = type(before) is type(now) and before == now
    return [] if same else [f"{place}: {before!r} became {now!r}"]


@pytest.mark.parametrize(
    ("folder", "command"), [*FAST, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in SLOW)]
)
def test_a_command_says_what_it_said(folder: str, command: str, tmp_path: Path) -> None:
    """A command gives the same numbers, truths, guarantees and exit code as when the folder was saved."""
    now = json.loads(json.dumps(say(SAVED / folder, command, tmp_path)))

    assert [] == differences(expected(folder)[command], now)


def test_every_command_on_every_folder_is_expected() -> None:
    """The saved folders are those that the program makes, and each command on them has a saved result."""
    assert sorted(FOLDERS) == sorted(path.name for path in SAVED.iterdir())
    assert {name: commands_of(SAVED / name) for name in FOLDERS} == {name: [*expected(name)] for name in FOLDERS}


def test_a_difference_is_found() -> None:
    """A changed number, text, type, length or name is named by its place."""
    before = {"a": [1.0, "x"], "b": 2, "c": None}

    assert [] == differences(before, {"a": [1.0 + 1e-12, "x"], "b": 2, "c": None})
    assert ["/a/0: 1.0 became 1.1"] == differences(before, {"a": [1.1, "x"], "b": 2, "c": None})
    assert ["/c is on one side only", "/b: 2 became 2.0"] == differences(before, {"a": [1.0, "x"], "b": 2.0})
    assert ["/a: [1.0, 'x'] became [1.0]"] == differences(before, {"a": [1.0], "b": 2, "c": None})
