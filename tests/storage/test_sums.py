"""Sums and synthetic claims as files: read back only where they belong, with what is true of them."""

import csv
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.guarantee import Guarantee
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.inference.infer import infer
from crowdveil.inference.methods import Method
from crowdveil.mechanisms import MatrixFactorization
from crowdveil.randomness import Secure, seeded
from crowdveil.simulate import numeric_crowd
from crowdveil.simulate.channel_assignment import ChannelAssignment
from crowdveil.simulate.perturbed_collection import perturb_collection
from crowdveil.simulate.sums import sum_device_reports, worker_answer_codes
from crowdveil.storage.crowd import crowd_of_reports, is_sums_file, read_crowd
from crowdveil.storage.evidence import read_evidence
from crowdveil.storage.perturbed_collection import write_collection
from crowdveil.storage.sums import evidence_of_sums, read_sums
from crowdveil.storage.synthesis import (
    GUARANTEE_FILE,
    SYNTHETIC_FILE,
    SynthesisSettings,
    read_claims,
    synthesize,
    write_synthesis,
)
from crowdveil.synthesis.original_claims import Claims
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.pooled_shape import PooledShape
from tests.real_data import load_or_skip

CROWD = numeric_crowd(workers=5, tasks=6, sparsity=0.4, source=seeded(3)).answers
MECHANISM = MatrixFactorization(alphabet=Scale(0, 9), epsilon=2.0, dimensions=3)


@pytest.fixture
def sent(tmp_path: Path) -> Path:
    """Return a folder with the sums and the crowd of a simulation."""
    write_collection(tmp_path, perturb_collection(CROWD, ChannelAssignment(mechanism=MECHANISM), seed=1))
    return tmp_path


def test_a_device_holds_its_own_answers_and_null_elsewhere() -> None:
    """Answer vectors list each worker's codes by task, with the code after the last label where there is no answer."""
    slow = np.full((5, 6), 10)
    for task, worker, value in zip(CROWD.task, CROWD.worker, CROWD.value, strict=True):
        slow[worker, task] = value

    assert slow.tolist() == [codes.tolist() for codes in worker_answer_codes(CROWD)]


def test_secure_sums_are_the_sum_of_what_each_device_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the devices' own randomness held fixed, the sums equal the devices' vectors added up in a loop."""
    streams = [seeded(7), seeded(7)]
    monkeypatch.setattr(Secure, "words", lambda self, count: streams[0].words(count))
    done: list[tuple[int, int]] = []
    sums = sum_device_reports(CROWD, MECHANISM, Secure(), lambda *step: done.append(step))
    slow = [
        sum(column)
        for column in zip(*(MECHANISM.perturb(v, streams[1]) for v in worker_answer_codes(CROWD)), strict=True)
    ]

    assert slow == sums.summed.tolist()
    assert [(k, 5) for k in range(1, 6)] == done


def test_the_same_sums_come_back(sent: Path) -> None:
    """What is written is read back: the mechanism with all its settings, and every number."""
    written = perturb_collection(CROWD, ChannelAssignment(mechanism=MECHANISM), seed=1).sent
    read = read_sums(sent / "sums.json", read_crowd(sent / "crowd.json"))

    assert isinstance(written, tuple)
    assert MECHANISM == read.mechanism
    assert written.summed.tolist() == read.summed.tolist()


def test_inference_names_everyone_and_admits_what_it_cannot_know(sent: Path) -> None:
    """Truths have the tasks' names; nothing is known about single workers; the simulation is named."""
    inference = infer(evidence_of_sums(sent / "sums.json"))

    assert [str(name) for name in CROWD.tasks] == inference.estimate.tasks.tolist()
    assert np.isnan(inference.estimate.workers.quality).all()
    assert ("The reports are a simulation: they carry no privacy.",) == inference.notes


SPOILED: dict[str, Callable[[dict[str, Any]], object]] = {
    "another format": lambda data: data.update(format="x"),
    "a missing setting": lambda data: data.pop("dimensions"),
    "a boolean for a number": lambda data: data.update(epsilon=True),
    "a fraction in the sums": lambda data: data["values"].append(0.5),
    "lists of two lengths": lambda data: data["values"].append(1),
    "a number beyond 64 bits": lambda data: data["values"].__setitem__(0, 1 << 63),
    "an absurd epsilon": lambda data: data.update(epsilon=-1),
    "another epsilon than the crowd's": lambda data: data.update(epsilon=1.0),
}


@pytest.mark.parametrize("defect", SPOILED)
def test_spoiled_sums_are_refused(defect: str, sent: Path) -> None:
    """Every damage is a ReportsError that names the file."""
    path = sent / "sums.json"
    data = json.loads(path.read_text())
    SPOILED[defect](data)
    path.write_text(json.dumps(data))

    with pytest.raises(ReportsError, match=r"sums\.json"):
        evidence_of_sums(path, accept_edited=True)


def test_what_is_no_json_or_has_no_crowd_is_refused(sent: Path) -> None:
    """Sums must be JSON, and need the crowd written with them."""
    (sent / "sums.json").write_text("{")
    with pytest.raises(ReportsError, match="readable JSON"):
        evidence_of_sums(sent / "sums.json", accept_edited=True)
    (sent / "crowd.json").unlink()
    with pytest.raises(ReportsError, match=r"crowd\.json of these sums"):
        infer(evidence_of_sums(sent / "sums.json"))


def test_sums_and_reports_of_one_folder_are_not_mixed_up(sent: Path) -> None:
    """Reports with the crowd of sums, and sums with the crowd of labels, are refused."""
    (sent / "reports.csv").write_text("task,worker,value\n1,1,3\n")
    with pytest.raises(ReportsError, match="belongs to sums"):
        read_evidence(sent / "reports.csv")
    labels = Reports([0], [0], [0], np.array(["t"]), np.array(["w"]), Categories(("a", "b")))
    crowd = crowd_of_reports(
        labels, mechanism="one-layer", description="one-layer", guarantee=Guarantee(epsilon=1.0), simulation=True
    )
    with pytest.raises(ReportsError, match="another mechanism"):
        read_sums(sent / "sums.json", crowd)


def test_sums_have_one_method_without_settings(sent: Path) -> None:
    """Another method, or steps and a tolerance, are refused."""
    for method in (Method(name="dawid-skene"), Method(max_steps=3), Method(tolerance=1.0)):
        with pytest.raises(SettingsError, match="factorization-mean"):
            infer(evidence_of_sums(sent / "sums.json"), method)


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
        ({"expected_claims": 5, "unit": "worker"}, Histogram(epsilon=1.0, records=4, expected_claims=5, unit="worker")),
        ({"method": "pooled-shape"}, PooledShape(epsilon=1.0, records=4)),
    ],
)
def test_settings_become_a_method(settings: dict[str, Any], method: Histogram | PooledShape) -> None:
    """Settings become the named method."""
    assert settings_of(**settings).choose_private_method(crowd()) == method


@pytest.mark.parametrize(
    ("claims", "settings", "method"),
    [
        (crowd(200), {}, "histogram"),
        (many(10), {}, "pooled-shape"),
        (many(10), {"expected_claims": 10}, "histogram"),
        (many(10), {"method": "histogram"}, "histogram"),
    ],
)
def test_the_more_accurate_method_is_the_default(claims: Claims, settings: dict[str, Any], method: str) -> None:
    """Where none is named, and no setting belongs to one, the expected errors decide."""
    assert SynthesisSettings(epsilon=2.0, **settings).choose_private_method(claims).name == method


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


def test_files_say_what_is_true(tmp_path: Path) -> None:
    """The release and its guarantee are written; epsilon per claim and per worker, and nothing about clipping."""
    made = synthesize(crowd(), settings_of(), bounds=(0, 10))
    write_synthesis(tmp_path, made)
    said = json.loads((tmp_path / GUARANTEE_FILE).read_text("utf-8"))
    with open(tmp_path / SYNTHETIC_FILE, newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))

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

    assert all(math.isinf(guarantee.epsilon) for guarantee in made.guarantees_infinite_if_simulated)
    assert said["guarantees"][0]["epsilon"] == "infinity"
    assert "with secure randomness it would be epsilon = 1 per cell" in said["guarantees"][0]["reason"]
    assert said["simulation"]


def test_claims_outside_the_bounds_are_refused_or_clipped(tmp_path: Path) -> None:
    """Clipped claims are counted for the curator; without a policy they are refused."""
    path = tmp_path / "claims.csv"
    path.write_text("task,worker,value\na,1,100\na,2,0\nb,1,1000\n", encoding="utf-8")
    claims, notes = read_claims(str(path), bounds=(1, 500), outside="clip")

    assert claims.value.tolist() == [100.0, 1.0, 500.0]
    assert notes == ("2 claims lay outside the bounds and were clipped to them.",)
    with pytest.raises(ReportsError, match="within the bounds"):
        read_claims(str(path), bounds=(1, 500))


def test_a_list_of_tasks_and_data_sets(tmp_path: Path) -> None:
    """Tasks without claims come from a list, for a file or a data set; data sets of labels are refused."""
    path, tasks = tmp_path / "claims.csv", tmp_path / "tasks.csv"
    path.write_text("task,worker,value\na,1,3\n", encoding="utf-8")
    tasks.write_text("task\na\nb\n", encoding="utf-8")

    listed, _ = read_claims(str(path), bounds=(0, 9), tasks=tasks)
    assert (listed.tasks.tolist(), listed.public_tasks) == (["a", "b"], True)
    assert not read_claims(str(path), bounds=(0, 9))[0].public_tasks
    found = load_or_skip("weather_temperature").answers
    with pytest.raises(ReportsError, match="in the given list of 2 tasks"):
        read_claims("dataset:weather_temperature", bounds=(-40, 120), outside="clip", tasks=tasks)
    names = [str(name) for name in found.tasks]
    tasks.write_text("\n".join(["task", "none", *names]), encoding="utf-8")
    every, _ = read_claims("dataset:weather_temperature", bounds=(-40, 120), outside="clip", tasks=tasks)
    assert (every.tasks.tolist(), every.per_task.tolist()) == (["none", *names], [0, *found.per_task.tolist()])
    with pytest.raises(SettingsError, match="claims must be numbers"):
        read_claims("dataset:bluebird", bounds=(0, 1))
    _, notes = read_claims("dataset:weather_temperature", bounds=(-40, 120))
    assert "not numbers" in notes[0]


def test_a_pipe_is_not_read_to_see_whether_it_has_sums() -> None:
    """What a pipe holds is left to its reader."""
    out, into = os.pipe()
    os.write(into, b"task,worker,label\n")
    os.close(into)

    assert not is_sums_file(Path(f"/dev/fd/{out}"))
    assert b"task,worker,label\n" == os.read(out, 100)
    os.close(out)
