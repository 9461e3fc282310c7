"""Guarantees that are printed or passed on come from certificates, not from the words of a crowd.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Refusal, Run, RunJson

LABELS = ("--labels", "no,yes", "--mechanism", "randomized-response", "--epsilon", 2)
TASKS = range(20)
FORGED = "epsilon = 0.01 per cell, participation protected; hidden from everybody"


def perturbed(run: Run, out: str, worker: str, *more: object) -> None:
    """Let one worker report on the tasks: that all reports are NULL happens once in 1e19 times."""
    rows = "".join(f"{task},{worker},{'no' if task % 2 else 'yes'}\n" for task in TASKS)
    Path(f"{out}.csv").write_text(f"task,worker,label\n{rows}", encoding="utf-8")
    run("perturb", f"{out}.csv", *LABELS, *more, "--out", out)


def lists(out: str, worker: str) -> tuple[str, ...]:
    """Write the lists of tasks and of one worker; return the options that give them."""
    Path("tasks.csv").write_text("task\n" + "".join(f"{task}\n" for task in TASKS), encoding="utf-8")
    Path(f"{out}-workers.csv").write_text(f"worker\n{worker}\n", encoding="utf-8")
    return "--tasks", "tasks.csv", "--workers", f"{out}-workers.csv"


def reworded(folder: str, **changes: object) -> dict[str, Any]:
    """Change some fields of a crowd.json and return the original values."""
    path = Path(folder) / "crowd.json"
    crowd: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(crowd | changes), encoding="utf-8")
    return crowd


@pytest.fixture
def collection(run: Run, folder: Path) -> None:
    """Make a collection that promises something."""
    perturbed(run, "first", "ann", *lists("first", "ann"))


def test_encoded_blocks_are_promised_what_the_certificate_promises(run: Run, collection: None) -> None:
    """The crowd.json of encoded blocks states the guarantee of the certificate, not that of the edited crowd.json."""
    original = reworded("first", guarantee=FORGED)
    run("data", "encode", "first/reports.csv", "--out", "blocks")

    assert original["guarantee"] == json.loads(Path("blocks/crowd.json").read_text(encoding="utf-8"))["guarantee"]


def test_a_crowd_cannot_promise_what_its_certificate_does_not(run: Run, refusal: Refusal, collection: None) -> None:
    """Where the certificate is marked, a crowd.json from which the reasons were taken out is refused."""
    perturbed(run, "looked", "eve", "--lists-from-answers")
    reworded("looked", guarantee=FORGED, lists_from_answers=[])

    assert "must not state a guarantee" in refusal("infer", "looked/reports.csv")


def test_what_is_no_guarantee_is_refused(refusal: Refusal, collection: None) -> None:
    """A guarantee in other words than crowdveil's is refused; it could not be held to anything."""
    reworded("first", guarantee="perfect secrecy, epsilon = 0")

    assert "'guarantee' of a crowd must be" in refusal("infer", "first/reports.csv")


@pytest.mark.parametrize("mark", [("--lists-from-answers",), ("--seed", 3)])
def test_a_marked_certificate_alone_shows_no_epsilon(run: Run, run_json: RunJson, folder: Path, mark: Any) -> None:
    """Parted from crowd.json, the certificate of a simulation or of lists from answers is read without an epsilon."""
    perturbed(run, "looked", "ann", *mark)
    Path("looked/crowd.json").unlink()
    read = run_json("infer", "looked/reports.csv")["noise_model"]

    assert read.startswith("channel of randomized-response, ")
    assert ": no privacy" in read
    assert "epsilon" not in read
