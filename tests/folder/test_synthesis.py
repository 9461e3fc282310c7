"""The release as one call: reading of claims, choice of the method, and the contents of the guarantee file."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdveil.errors import ReportsError, SettingsError
from crowdveil.folder.synthesis import (
    GUARANTEE_FILE,
    SYNTHETIC_FILE,
    SynthesisResult,
    SynthesisSettings,
    read_claims,
    synthesize,
    write_synthesis,
)
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.pooled_shape import PooledShape
from tests.real_data import load_or_skip


def crowd(each: int = 20) -> Claims:
    """Three tasks with claims within 0 .. 10."""
    generator = np.random.default_rng(1)
    value = np.clip(np.repeat([2.0, 5.0, 8.0], each) + generator.normal(size=3 * each), 0, 10)
    return Claims.from_arrays(np.repeat(["a", "b", "c/../d"], each), np.tile(np.arange(each), 3), value, bounds=(0, 10))


def many(each: int, tasks: int = 300) -> Claims:
    """Claims within 0 .. 80, all alike on each of many tasks."""
    task, worker = np.repeat(np.arange(tasks), each), np.tile(np.arange(each), tasks)
    value = np.repeat(np.random.default_rng(1).uniform(0, 80, tasks), each)
    return Claims.from_arrays(task, worker, value, bounds=(0, 80))


def settings_of(**changes: Any) -> SynthesisSettings:
    """Settings of a histogram at epsilon 1, with changes."""
    return SynthesisSettings(**{"method": "histogram", "epsilon": 1.0, "records": 4, **changes})


@pytest.mark.parametrize(
    ("settings", "method"),
    [
        ({}, Histogram(epsilon=1.0, records=4)),
        ({"select_range": True, "unit": "worker"}, Histogram(epsilon=1.0, records=4, select_range=True, unit="worker")),
        ({"method": "pooled-shape", "least_claims": 3}, PooledShape(epsilon=1.0, records=4, least_claims=3)),
    ],
)
def test_settings_become_a_method(settings: dict[str, Any], method: Histogram | PooledShape) -> None:
    """Settings become the named method."""
    assert settings_of(**settings).choose(crowd()) == method


@pytest.mark.parametrize(
    ("claims", "settings", "method"),
    [
        (crowd(200), {}, "histogram"),
        (many(10), {}, "pooled-shape"),
        (many(10), {"select_range": True}, "histogram"),
        (many(10), {"method": "histogram"}, "histogram"),
    ],
)
def test_the_more_accurate_method_is_the_default(claims: Claims, settings: dict[str, Any], method: str) -> None:
    """Where none is named, and no setting belongs to one, the expected errors decide."""
    assert SynthesisSettings(epsilon=2.0, **settings).choose(claims).name == method


def test_a_release_states_its_expected_error(tmp_path: Path) -> None:
    """Expected errors stand in the file in the units of the claims; a useless release warns with both numbers."""
    useless, useful = (
        synthesize(many(10), SynthesisSettings(epsilon=2.0, unit=unit), bounds=(0, 80)) for unit in ("worker", "cell")
    )
    write_synthesis(tmp_path, useful)
    said = json.loads((tmp_path / GUARANTEE_FILE).read_text("utf-8"))["expected"]

    assert 17 < useless.to_json()["expected"]["any_truths"]["constant"] < 23
    assert "better than one number for all tasks" in useless.warnings[0]
    assert useful.warnings == ()
    assert said["any_truths"]["error"] < 0.6 * said["any_truths"]["constant"]
    assert said["truths_of_records"]["error"] < 0.6 * said["truths_of_records"]["constant"]


def mean_gap(made: SynthesisResult, truths: dict[str, float]) -> float:
    """Mean absolute difference of the means of the records and known truths."""
    release = made.release
    count, total = (np.bincount(release.task, weights=column) for column in (None, release.value))
    gaps = [abs(total[code] / count[code] - truths[str(task)]) for code, task in enumerate(release.tasks)
            if str(task) in truths and count[code]]  # fmt: skip
    return float(np.mean(gaps))


@pytest.mark.slow
def test_weather_per_worker_is_about_a_constant_and_warns() -> None:
    """Epsilon 2 for 4,500 claims of a worker is too small: errors are about a constant's 11.5, with a warning.

    Per claim the default is pooled-shape, whose records lie within 2 degrees of the truth.
    """
    data = load_or_skip("weather_temperature")
    gold = {task: float(truth) for task, truth in data.gold.items()}
    claims = Claims.from_reports(data.answers, bounds=(-40, 120), outside="clip")
    settings: dict[str, Any] = {"epsilon": 2.0, "records": 30}
    whole = {
        name: synthesize(claims, SynthesisSettings(method=name, unit="worker", **settings), bounds=(-40, 120), seed=1)
        for name in ("histogram", "pooled-shape")
    }
    single = synthesize(claims, SynthesisSettings(**settings), bounds=(-40, 120), seed=1)

    for made in whole.values():
        assert mean_gap(made, gold) < 13
        assert "task means are off by 40" in made.warnings[0]
    assert single.method.name == "pooled-shape"
    assert mean_gap(single, gold) < 2
    assert single.warnings == ()


def test_files_say_what_is_true(tmp_path: Path) -> None:
    """The release and its guarantee are written; epsilon per claim and per worker, and nothing about clipping."""
    made = synthesize(crowd(), settings_of(), bounds=(0, 10))
    names = write_synthesis(tmp_path, made)
    said = json.loads((tmp_path / GUARANTEE_FILE).read_text("utf-8"))
    with open(tmp_path / SYNTHETIC_FILE, newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))

    assert names == (SYNTHETIC_FILE, GUARANTEE_FILE)
    assert [(g["unit"], g["epsilon"], g["delta"]) for g in said["guarantees"]] == [("cell", 1.0, 0), ("worker", 3.0, 0)]
    assert not said["simulation"]
    assert "clip" not in json.dumps(said)
    assert [row["task"] for row in rows] == ["a"] * 4 + ["b"] * 4 + ["c/../d"] * 4
    assert {row["worker"] for row in rows} == {"s1", "s2", "s3", "s4"}
    assert all(0 <= float(row["value"]) <= 10 for row in rows)


def test_a_seed_carries_no_privacy() -> None:
    """A simulation has an infinite epsilon, and says what secure randomness would have given."""
    made = synthesize(crowd(), settings_of(), bounds=(0, 10), seed=5)
    said = made.to_json()

    assert all(math.isinf(guarantee.epsilon) for guarantee in made.guarantees)
    assert said["guarantees"][0]["epsilon"] == "infinity"
    assert "with secure randomness it would be epsilon = 1 per cell" in said["guarantees"][0]["reason"]
    assert said["simulation"]


def test_claims_are_read_by_their_logarithms(tmp_path: Path) -> None:
    """On a logarithmic scale claims, 0 among them, meet the bounds' policy, and records come back in their units."""
    path = tmp_path / "claims.csv"
    path.write_text("task,worker,value\na,1,100\na,2,0\na,3,6.6e18\nb,1,1000\n", encoding="utf-8")
    read = read_claims(str(path), bounds=(1, 1e9), outside="clip", logarithmic=True)
    made = synthesize(read.claims, settings_of(), bounds=(1, 1e9), logarithmic=True)

    assert read.claims.value.tolist() == [2.0, 0.0, 9.0, 3.0]
    assert read.notes == ("2 claims lay outside the bounds and were clipped to them.",)
    assert made.release.value.min() >= 1
    assert made.release.value.max() <= 1e9
    with pytest.raises(SettingsError, match="must be positive"):
        read_claims(str(path), bounds=(0, 9), logarithmic=True)
    with pytest.raises(ReportsError, match="within the bounds"):
        read_claims(str(path), bounds=(1, 1e9))


def test_a_list_of_tasks_and_data_sets(tmp_path: Path) -> None:
    """Tasks without claims come from a list, for a file or a data set; data sets of labels are refused."""
    path, tasks = tmp_path / "claims.csv", tmp_path / "tasks.csv"
    path.write_text("task,worker,value\na,1,3\n", encoding="utf-8")
    tasks.write_text("task\na\nb\n", encoding="utf-8")

    listed = read_claims(str(path), bounds=(0, 9), tasks=tasks).claims
    assert (listed.tasks.tolist(), listed.public_tasks) == (["a", "b"], True)
    assert not read_claims(str(path), bounds=(0, 9)).claims.public_tasks
    found = load_or_skip("weather_temperature").answers
    with pytest.raises(ReportsError, match="in the given list of 2 tasks"):
        read_claims("dataset:weather_temperature", bounds=(-40, 120), outside="clip", tasks=tasks)
    names = [str(name) for name in found.tasks]
    tasks.write_text("\n".join(["task", "none", *names]), encoding="utf-8")
    every = read_claims("dataset:weather_temperature", bounds=(-40, 120), outside="clip", tasks=tasks).claims
    assert (every.tasks.tolist(), every.per_task.tolist()) == (["none", *names], [0, *found.per_task.tolist()])
    with pytest.raises(SettingsError, match="claims must be numbers"):
        read_claims("dataset:bluebird", bounds=(0, 1))
    read = read_claims("dataset:weather_temperature", bounds=(-40, 120))
    assert "no numbers" in read.notes[0]
