"""`sums.json`: the exact sum over workers, read back only where it belongs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.guarantee import Guarantee
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.folder.crowd import describe_crowd, read_crowd
from crowdveil.folder.evidence import read_evidence
from crowdveil.folder.sums import answer_vectors, collect_sums, read_sums
from crowdveil.inference.inference import infer_from_sums
from crowdveil.inference.methods import Method
from crowdveil.mechanisms import MatrixFactorization
from crowdveil.randomness import Secure, seeded
from crowdveil.simulate import numeric_crowd
from crowdveil.simulate.channel_assignment import ChannelAssignment
from crowdveil.simulate.perturbed_collection import perturb_collection, write_collection

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

    assert slow.tolist() == [codes.tolist() for codes in answer_vectors(CROWD)]


def test_secure_sums_are_the_sum_of_what_each_device_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the devices' own randomness held fixed, the sums equal the devices' vectors added up in a loop."""
    streams = [seeded(7), seeded(7)]
    monkeypatch.setattr(Secure, "words", lambda self, count: streams[0].words(count))
    done: list[tuple[int, int]] = []
    sums = collect_sums(CROWD, MECHANISM, Secure(), lambda *step: done.append(step))
    slow = [
        sum(column) for column in zip(*(MECHANISM.perturb(v, streams[1]) for v in answer_vectors(CROWD)), strict=True)
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
    inference = infer_from_sums(sent / "sums.json", Method())

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
        infer_from_sums(path, Method(), accept_edited=True)


def test_what_is_no_json_or_has_no_crowd_is_refused(sent: Path) -> None:
    """Sums must be JSON, and need the crowd written with them."""
    (sent / "sums.json").write_text("{")
    with pytest.raises(ReportsError, match="readable JSON"):
        infer_from_sums(sent / "sums.json", Method(), accept_edited=True)
    (sent / "crowd.json").unlink()
    with pytest.raises(ReportsError, match=r"crowd\.json of these sums"):
        infer_from_sums(sent / "sums.json", Method())


def test_sums_and_reports_of_one_folder_are_not_mixed_up(sent: Path) -> None:
    """Reports with the crowd of sums, and sums with the crowd of labels, are refused."""
    (sent / "reports.csv").write_text("task,worker,value\n1,1,3\n")
    with pytest.raises(ReportsError, match="belongs to sums"):
        read_evidence(sent / "reports.csv")
    labels = Reports([0], [0], [0], np.array(["t"]), np.array(["w"]), Categories(("a", "b")))  # type: ignore[arg-type]
    crowd = describe_crowd(labels, mechanism="one-layer", guarantee=Guarantee(epsilon=1.0), simulation=True)
    with pytest.raises(ReportsError, match="another mechanism"):
        read_sums(sent / "sums.json", crowd)


def test_sums_have_one_method_without_settings(sent: Path) -> None:
    """Another method, or steps and a tolerance, are refused."""
    for method in (Method(name="dawid-skene"), Method(max_steps=3), Method(tolerance=1.0)):
        with pytest.raises(SettingsError, match="factorization-mean"):
            infer_from_sums(sent / "sums.json", method)
