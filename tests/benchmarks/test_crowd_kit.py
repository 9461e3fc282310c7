"""Benchmark against crowd-kit: synthetic crowds, measurements in turn, skipped programs, reports."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.crowd_kit import synthetic_crowd
from benchmarks.crowd_kit.__main__ import main
from benchmarks.crowd_kit.comparison import Setup, compare
from benchmarks.crowd_kit.growth_plot import growth
from benchmarks.crowd_kit.peer import find_peer, install_peer
from benchmarks.crowd_kit.results import HEADINGS, Comparison, markdown

from crowdveil import MajorityVote, Reports
from crowdveil.errors import SettingsError

pytestmark = pytest.mark.slow

PROGRAMS = ["crowdveil", "numpy", "crowd-kit"]


@pytest.fixture(scope="module")
def calls() -> list[tuple[int, int]]:
    """Calls of the progress function in the run of `found`."""
    return []


@pytest.fixture(scope="module")
def found(peer_python: Path, calls: list[tuple[int, int]]) -> Comparison:
    """One round of votes on a small table; the patience is too short for the next."""
    setup = Setup(methods=("majority-vote",), sizes=(1000, 2000), rounds=1, patience=1e-9, peer=find_peer(peer_python))
    return compare(setup, lambda done, most: calls.append((done, most)))


def test_every_program_is_measured_in_turn(found: Comparison) -> None:
    """crowdveil, its plain kernels and the peer each have time, memory and labels, crowdveil's ratios being 1."""
    assert PROGRAMS == [line.program for line in found.results]
    for line in found.results:
        assert min(line.wall, line.processor, line.peak, line.wall_ratio, line.processor_ratio) > 0
        assert 0 <= line.memory < line.peak
        assert 0 < line.roofline_share < 1
    ours, plain, other = found.results
    assert (1.0, 1.0, 1.0) == (ours.wall_ratio, ours.processor_ratio, ours.equal_labels)
    assert plain.equal_labels == 1.0
    assert 0.8 < other.equal_labels < 1  # the peer breaks ties its own way
    assert other.processor_ratio == pytest.approx(other.processor / ours.processor)


def test_slow_programs_are_skipped(found: Comparison, calls: list[tuple[int, int]]) -> None:
    """Without patience for crowdveil all programs skip the next table, with the reason; progress counts all fits."""
    assert [(name, 2000) for name in PROGRAMS] == [(one.program, one.answers) for one in found.skipped]
    assert all("patience of 1e-09 s" in one.reason for one in found.skipped)
    assert [(0, 6), (1, 6), (2, 6), (3, 6), (6, 6)] == calls


def test_programs_that_need_too_much_memory_are_skipped(peer_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table for which a program should need more memory than is free is not given to it."""
    monkeypatch.setattr("benchmarks.crowd_kit.comparison._free_megabytes", lambda: -1.0)
    monkeypatch.setattr(Setup, "programs", ("crowdveil",))
    skipped = compare(Setup(methods=("majority-vote",), sizes=(1000, 2000), rounds=1)).skipped

    assert [(2000, True)] == [(one.answers, one.reason.endswith("MB, of which -1 are free")) for one in skipped]


def test_a_result_can_be_kept(found: Comparison) -> None:
    """JSON holds the rounds and the medians, the table one row a program, the plot all names."""
    data: dict[str, Any] = json.loads(json.dumps(found.to_json()))
    first = data["results"][0]
    rows = markdown(found.results).splitlines()
    picture = growth(found)

    assert first["wall"] == first["rounds"][0]["wall"]
    assert ("9.9", 2) == (data["versions"]["crowd-kit"], len({one["reason"] for one in data["skipped"]}) + 1)
    assert 2 + len(found.results) == len(rows)
    assert all(row.count(" | ") == len(HEADINGS) - 1 for row in rows)
    assert picture == growth(found)
    for name in ("crowd-kit", "crowdveil on numpy", "reading each answer once", "majority-vote"):
        assert name.encode() in picture


def test_the_command_prints_and_writes_the_results(
    found: Comparison, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Options reach the run; the table is printed and written, with the skipped programs."""
    setups: list[Setup] = []
    monkeypatch.setattr("benchmarks.crowd_kit.__main__.compare", lambda setup: setups.append(setup) or found)
    main([*("--methods", "one-coin, majority-vote", "--sizes", "1e3,2e5", "--rounds", "1", "--steps", "5"),
        *("--patience", "9", "--out", str(tmp_path / "measured"))])  # fmt: skip

    wanted = Setup(methods=("one-coin", "majority-vote"), sizes=(1000, 200_000), rounds=1, steps=5, patience=9.0)
    assert [wanted] == setups
    assert {"bench.json", "bench.md", "growth.svg"} == {path.name for path in (tmp_path / "measured").iterdir()}
    assert markdown(found.results) == (tmp_path / "measured" / "bench.md").read_text("utf-8")
    assert "skipped: numpy at 2,000 answers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"methods": ("glad",)}, "methods must be some of"),
        ({"methods": ()}, "methods must be some of"),
        ({"sizes": (10,)}, "sizes must lie between"),
        ({"sizes": (10_000, 1000)}, "sizes must ascend"),
        ({"rounds": 0}, "must be positive"),
        ({"patience": 0.0}, "must be positive"),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, Any], rule: str) -> None:
    """Unknown methods, sizes out of range or order, and no rounds are refused by name."""
    with pytest.raises(SettingsError, match=rule):
        Setup(**wrong)


def test_a_failed_fit_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The last line that a program wrote before it failed is in the message."""
    broken = tmp_path / "broken.py"
    broken.write_text("raise MemoryError('too large')", encoding="utf-8")
    monkeypatch.setattr("benchmarks.crowd_kit.comparison.PROGRAM", broken)

    with pytest.raises(SettingsError, match=r"every fit must end.*MemoryError: too large"):
        compare(Setup(sizes=(1000,)))


def test_the_peer_is_found_or_named(peer_python: Path) -> None:
    """An interpreter with crowd-kit says its version; one without, or none at all, is refused with the way out."""
    assert (peer_python, "9.9") == find_peer(peer_python)
    for wrong in (Path(sys.executable), peer_python.with_name("none")):
        with pytest.raises(SettingsError, match=r"pip install crowd-kit==.*--install-peer"):
            find_peer(wrong)


def test_the_peer_is_made_once(peer_python: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment that is there is taken as it is; one that cannot be made is refused with what was said."""

    def no_network(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(1, "pip", stderr="no network")

    monkeypatch.setattr("venv.create", no_network)
    assert "9.9" == install_peer(peer_python.parent.parent).version
    with pytest.raises(SettingsError, match="no network Or give --peer-python"):
        install_peer(tmp_path / "peer")


def columns(folder: Path) -> list[np.ndarray]:
    """Return task, worker and label."""
    return [np.load(folder / f"{name}.npy") for name in synthetic_crowd.COLUMNS]


def test_a_crowd_has_the_size_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten answers a task and a hundred a worker, no cell twice, whatever is drawn together."""
    monkeypatch.setattr(synthetic_crowd, "TASKS_AT_ONCE", 150)
    synthetic_crowd.write_crowd(tmp_path, 4000)
    task, worker, label = columns(tmp_path)

    assert 4000 == len(task) == len(set(zip(task.tolist(), worker.tolist(), strict=True)))
    assert (399, 39, 4) == (task.max(), worker.max(), label.max())
    assert 0 == min(task.min(), worker.min(), label.min())
    assert (np.diff(task) < 0).any()


def test_rows_stay_whole_and_the_seed_makes_them(tmp_path: Path) -> None:
    """Columns are mixed alike: majorities agree with most of the answers; the same seed gives the same rows."""
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        (tmp_path / name).mkdir()
        synthetic_crowd.write_crowd(tmp_path / name, 5000, seed=seed)
    task, worker, label = first = columns(tmp_path / "a")
    estimate = MajorityVote().fit(Reports.from_arrays(task, worker, label))

    assert all(map(np.array_equal, first, columns(tmp_path / "b")))
    assert not np.array_equal(label[:500], columns(tmp_path / "c")[2][:500])
    assert np.mean(estimate.truth.astype(int)[np.searchsorted(estimate.tasks, task)] == label) > 0.55
