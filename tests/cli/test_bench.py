"""`crowdveil bench`: figures in a table, as JSON and as files; wrong usage and what cannot be measured."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crowdveil.bench import Bench, Line, Setup, markdown
from crowdveil.bench.results import LeftOut, Took
from tests.cli.conftest import Run, written


def line(program: str, ratio: float) -> Line:
    """One round of a program, `ratio` times as long as crowdveil's."""
    took = Took(wall=0.5 * ratio, processor=0.25 * ratio, first=1.0, memory=10.0, peak=200.0)
    return Line(
        method="dawid-skene",
        program=program,
        answers=1000,
        steps=20,
        rounds=(took,),
        wall_ratio=ratio,
        processor_ratio=ratio,
        equal_labels=0.995,
        share_of_roof=0.01,
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Setup]:
    """What the command asked for; in place of a run, figures are made up."""
    setups: list[Setup] = []

    def made_up(setup: Setup, progress: object = None) -> Bench:
        setups.append(setup)
        return Bench(
            lines=(line("crowdveil", 1.0), line("numpy", 3.25)),
            left_out=(LeftOut(method="dawid-skene", program="numpy", answers=9000, because="about 99 s"),),
            roof=12.5,
            machine={"processor": "abacus", "cores": 2, "load_before": 0.5, "load_after": None},
            versions={"crowdveil": "0", "crowd-kit": None, "numba": "0"},
        )

    monkeypatch.setattr("crowdveil.bench.race", made_up)
    return setups


def test_figures_are_printed_and_written(run: Run, asked: list[Setup]) -> None:
    """The table names ratios, memory and equal labels; notes say what is missing; the files hold the same."""
    shown = run("bench", "--out", "measured").stdout

    for text in (
        "dawid-skene, 1,000",
        "3.25",
        "99.50%",
        "12.5 GB/s",
        "abacus",
        "No peer",
        "about 99 s",
    ):
        assert text in shown
    assert {"bench.json", "bench.md", "growth.svg"} == written("measured")
    data = json.loads(Path("measured/bench.json").read_text("utf-8"))
    assert [1.0, 3.25] == [one["processor_ratio"] for one in data["lines"]]
    assert markdown((line("crowdveil", 1.0), line("numpy", 3.25))) == Path("measured/bench.md").read_text("utf-8")


def test_options_say_what_is_run(run_json: Callable[..., dict[str, Any]], asked: list[Setup]) -> None:
    """Methods, sizes, rounds, steps and patience reach the run; --json prints one object."""
    words = ("--methods", "one-coin, majority-vote", "--sizes", "1e3,2e5", "--rounds", 1, "--steps", 5, "--patience", 9)
    data = run_json("bench", *words)

    wanted = Setup(
        methods=("one-coin", "majority-vote"), sizes=(1000, 200_000), rounds=1, steps=5, patience=9.0, peer=None
    )
    assert [wanted] == asked
    assert (12.5, []) == (data["roof_gigabytes_per_second"], data["files"])


def test_what_cannot_be_measured_is_refused(run: Run, refusal: Callable[..., str], asked: list[Setup]) -> None:
    """An unknown method and a Python without the peer cannot be met; parts of answers and two peers are wrong usage."""
    assert "methods must be some of majority-vote" in refusal("bench", "--methods", "glad")
    assert "must be a Python that has crowd-kit" in refusal("bench", "--peer-python", sys.executable)
    assert "not whole numbers" in run("bench", "--sizes", "10.5", code=2).stderr
    assert "not both" in run("bench", "--peer-python", "python", "--install-peer", code=2).stderr
    assert [] == asked


def test_installing_the_peer_is_said_before(run: Run, asked: list[Setup], monkeypatch: pytest.MonkeyPatch) -> None:
    """--install-peer names the folder on stderr, and the environment made there is the peer."""
    monkeypatch.setattr("crowdveil.bench.peer_home", lambda: Path("here"))
    monkeypatch.setattr("crowdveil.bench.install_peer", lambda home: (home, "1"))
    result = run("bench", "--install-peer")

    assert "the peer lives in here" in result.stderr
    assert [(Path("here"), "1")] == [setup.peer for setup in asked]
