"""Programs in turn: what is measured, what is left out, and what is said about it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crowdveil.bench import Bench, Setup, find_peer, growth, install_peer, markdown, peer, peer_home, race
from crowdveil.bench.results import CODE_BYTES, HEADINGS, roof_seconds
from crowdveil.errors import SettingsError

PROGRAMS = ["crowdveil", "numpy", "crowd-kit"]


@pytest.fixture(scope="module")
def told() -> list[tuple[int, int]]:
    """What progress was told in the run of `found`."""
    return []


@pytest.fixture(scope="module")
def found(peer_python: Path, told: list[tuple[int, int]]) -> Bench:
    """One round of votes on a small table; nobody has the patience for the next."""
    setup = Setup(methods=("majority-vote",), sizes=(1000, 2000), rounds=1, patience=1e-9, peer=find_peer(peer_python))
    return race(setup, lambda done, most: told.append((done, most)))


def test_every_program_is_measured_in_turn(found: Bench) -> None:
    """crowdveil, its plain kernels and the peer each have time, memory and labels, crowdveil's ratios being 1."""
    assert PROGRAMS == [line.program for line in found.lines]
    for line in found.lines:
        assert min(line.wall, line.processor, line.peak, line.wall_ratio, line.processor_ratio) > 0
        assert 0 <= line.memory < line.peak
        assert 0 < line.share_of_roof < 1
    ours, plain, other = found.lines
    assert (1.0, 1.0, 1.0) == (ours.wall_ratio, ours.processor_ratio, ours.equal_labels)
    assert plain.equal_labels == 1.0
    assert 0.8 < other.equal_labels < 1  # the peer breaks ties its own way
    assert other.processor_ratio == pytest.approx(other.processor / ours.processor)


def test_what_would_take_too_long_is_left_out(found: Bench, told: list[tuple[int, int]]) -> None:
    """Without patience for crowdveil, the next table is left out whole, with the reason; progress counts all fits."""
    assert [(name, 2000) for name in PROGRAMS] == [(one.program, one.answers) for one in found.left_out]
    assert all("patience of 1e-09 s" in one.because for one in found.left_out)
    assert [(0, 6), (1, 6), (2, 6), (3, 6), (6, 6)] == told


def test_what_memory_cannot_hold_is_left_out(peer_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table for which a program should need more memory than is free is not given to it."""
    monkeypatch.setattr("crowdveil.bench.contest._free_megabytes", lambda: -1.0)
    monkeypatch.setattr(Setup, "programs", ("crowdveil",))
    left_out = race(Setup(methods=("majority-vote",), sizes=(1000, 2000), rounds=1)).left_out

    assert [(2000, True)] == [(one.answers, one.because.endswith("MB, of which -1 are free")) for one in left_out]


def test_a_result_can_be_kept(found: Bench) -> None:
    """JSON holds the rounds beside the medians, the table a row for each program, the picture all names."""
    data: dict[str, Any] = json.loads(json.dumps(found.to_json()))
    first = data["lines"][0]
    rows = markdown(found.lines).splitlines()
    picture = growth(found)

    assert first["wall"] == first["rounds"][0]["wall"]
    assert ("9.9", 2) == (data["versions"]["crowd-kit"], len({one["because"] for one in data["left_out"]}) + 1)
    assert 2 + len(found.lines) == len(rows)
    assert all(row.count(" | ") == len(HEADINGS) - 1 for row in rows)
    assert picture == growth(found)
    for name in ("crowd-kit", "crowdveil on numpy", "reading each answer once a step", "majority-vote"):
        assert name.encode() in picture


def test_the_roof_counts_a_reading_for_the_votes_and_one_a_step() -> None:
    """A million answers and 20 steps are 21 readings of 4 MB; at 10 GB/s, 8.4 ms."""
    assert roof_seconds(10**6, 20, 10.0) == pytest.approx(21 * CODE_BYTES * 10**6 / 1e10)


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


def test_a_fit_that_fails_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The last line that a program wrote before it failed is in the message."""
    broken = tmp_path / "broken.py"
    broken.write_text("raise MemoryError('too large')", encoding="utf-8")
    monkeypatch.setattr("crowdveil.bench.contest.PROGRAM", broken)

    with pytest.raises(SettingsError, match=r"every fit must end.*MemoryError: too large"):
        race(Setup(sizes=(1000,)))


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

    monkeypatch.setattr(peer.venv, "create", no_network)
    assert "9.9" == install_peer(peer_python.parent.parent).version
    with pytest.raises(SettingsError, match="no network Or give --peer-python"):
        install_peer(tmp_path / "peer")


def test_the_peer_lives_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is in XDG_CACHE_HOME, or in .cache at home."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert Path("/somewhere/crowdveil/crowd-kit-1.4.2") == peer_home()
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert Path.home() / ".cache" / "crowdveil" / "crowd-kit-1.4.2" == peer_home()
