"""`crowdveil datasets list`: what is at hand, or where to put it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run


def test_sets_are_listed_with_their_counts(
    run: Run, run_json: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each set shows kind, workers, tasks, answers and gold, the same in table and JSON."""
    Path("data/tiny").mkdir(parents=True)
    Path("data/tiny/answers.csv").write_text("task,worker,answer\na,u,x\na,v,y\nb,v,x\n")
    Path("data/tiny/truth.csv").write_text("task,truth\na,x\n")
    Path("data/tiny/meta.json").write_text(json.dumps({"kind": "binary", "labels": ["x", "y"], "title": "A tiny set"}))
    monkeypatch.setenv("CROWDVEIL_DATA", "data")
    data = run_json("datasets", "list")["datasets"][0]

    assert ("tiny", 2, 2, 3, 1) == tuple(data[key] for key in ("name", "workers", "tasks", "pairs", "gold"))
    assert "binary; 2 workers, 2 tasks, 3 answers, 1 gold; A tiny set" in run("datasets", "list").stdout


def test_without_a_directory_the_way_out_is_shown(
    run: Run, run_json: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No data is no error: an empty list, and the name of the variable to set."""
    monkeypatch.setenv("CROWDVEIL_DATA", "nowhere")

    assert "CROWDVEIL_DATA" in run("datasets", "list").stdout
    data = run_json("datasets", "list")
    assert ("nowhere", []) == (data["directory"], data["datasets"])
