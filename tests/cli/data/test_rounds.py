"""A campaign in rounds through the command line: cuts from truths, and rounds that are read as one."""

import csv
import json
from pathlib import Path

import pytest

from crowdveil.channels.channel_table import ChannelTable
from tests.cli.conftest import Refusal, Run, RunJson

PERTURB = ("--tasks", "tasks.csv", "--scale", "-2:7", "--mechanism", "quantized-response", "--epsilon", 3)


def rows(path: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with Path(path).open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def halves(folder: Path) -> None:
    """Split `numbers.csv` into the answers of workers 1 to 15 and of 16 to 30, and list the tasks."""
    answers = rows("numbers.csv")
    value = next(name for name in answers[0] if name not in ("task", "worker"))
    for name, later in (("first.csv", False), ("second.csv", True)):
        lines = [f"{row['task']},{row['worker']},{row[value]}" for row in answers if (int(row["worker"]) > 15) == later]
        Path(name).write_text("\n".join([f"task,worker,{value}", *lines]) + "\n")
    Path("tasks.csv").write_text("task\n" + "".join(f"{task}\n" for task in range(1, 21)))


@pytest.fixture
def first(run: Run, halves: None) -> None:
    """Let the first half report through one cut, and infer."""
    run("perturb", "first.csv", *PERTURB, "--cuts", "0", "--seed", 1, "--out", "round1")
    run("infer", "round1/reports.csv", "--method", "gaussian", "--out", "found1")


def test_two_rounds_are_read_as_one(run: Run, run_json: RunJson, first: None) -> None:
    """The second round is cut where the first points to, and both together give one estimate of all workers."""
    cuts = run_json(
        "next-thresholds",
        "found1/truths.csv",
        "--certificate",
        "round1/certificate.json",
        "--most",
        4,
        "--out",
        "cuts.csv",
    )
    run("perturb", "second.csv", *PERTURB, "--channels", "cuts.csv", "--seed", 2, "--out", "round2")
    joined = run_json("join", "round1/reports.csv", "round2/reports.csv", "--out", "rounds")
    found = run_json("infer", "rounds/reports.csv", "--method", "gaussian", "--score", "numbers-gold.csv")

    assert 20 == cuts["tasks"] == len(rows("cuts.csv"))
    assert {row["cuts"] for row in rows("cuts.csv")} == set(cuts["cuts"])
    assert 2 <= len(cuts["cuts"]) <= 4
    table = ChannelTable.from_certificate(Path("rounds/certificate.json").read_text())
    assert 1 + len(cuts["cuts"]) == len(table.channels)
    assert len(rows("rounds/reports.csv")) == joined["reports"] == found["reports"]
    assert joined["reports"] == len(rows("round1/reports.csv")) + len(rows("round2/reports.csv"))
    assert (30, 20, True) == (found["workers"], found["tasks"], found["simulation"])
    assert "SIMULATION" in table.channels[0].mechanism
    assert found["score"]["error"] < found["score"]["baseline"]
    assert "simulation" in joined["guarantee"]


def test_what_cannot_be_joined_is_refused(run: Run, refusal: Refusal, first: None) -> None:
    """A worker of two rounds, reports without a certificate, and an output in the folder of an input are refused."""
    assert "one round only" in refusal("join", "round1/reports.csv", "round1/reports.csv", "--out", "rounds")
    assert "certificate and a crowd.json" in refusal("join", "numbers.csv", "--out", "rounds")
    assert "replace an input" in refusal("join", "round1/reports.csv", "--out", "round1")
    assert not Path("rounds").exists()


def test_cuts_need_numbers(refusal: Refusal, run: Run, first: None) -> None:
    """Truths that are labels, and a certificate of labels in no order, are refused; a blank truth is unknown."""
    write = ("--certificate", "round1/certificate.json", "--out", "cuts.csv")
    Path("labels-found.csv").write_text("task,truth\n1,yes\n")
    assert "truths must be numbers" in refusal("next-thresholds", "labels-found.csv", *write)

    run("perturb", "labels.csv", "--mechanism", "randomized-response", "--epsilon", 2, "--seed", 1, "--out", "sent")
    said = refusal(
        "next-thresholds", "found1/truths.csv", "--certificate", "sent/certificate.json", "--out", "cuts.csv"
    )
    assert "thresholds need" in said

    Path("blank.csv").write_text("task,truth\n1,6.9\n2,\n")
    run("next-thresholds", "blank.csv", *write)
    assert [{"task": "1", "cuts": "7"}, {"task": "2", "cuts": "7"}] == rows("cuts.csv")
    assert json.loads(Path("round1/crowd.json").read_text())["tasks"][:2] == ["1", "2"]
