"""Campaigns whose cells differ, through the command line: assigned tasks, dealt cuts, channels by name."""

import math
from pathlib import Path

import pytest

from crowdveil.channels.channel_table import ChannelTable
from crowdveil.mechanisms import RandomizedResponse
from tests.cli.conftest import LABELS, LISTS, Refusal, Run, RunJson, rows, write

RESPONSE = ("--mechanism", "randomized-response", "--epsilon", 2, "--labels", ",".join(LABELS), *LISTS)
CUTS = ("perturb", "numbers.csv", "--scale", "-2:7", "--mechanism", "quantized-response", "--epsilon", 2)


@pytest.fixture
def asked(folder: Path) -> str:
    """Write an assignment: every answered cell of `labels.csv`, and the first two tasks for everyone."""
    answers = rows("labels.csv")
    workers = sorted({row["worker"] for row in answers})
    first = sorted({row["task"] for row in answers})[:2]
    cells = {(row["task"], row["worker"]) for row in answers} | {(task, who) for task in first for who in workers}
    return write("asked.csv", "task,worker", *(f"{task},{worker}" for task, worker in sorted(cells)))


def test_assigned_cells_only_report(run: Run, run_json: RunJson, asked: str) -> None:
    """Reports come from assigned cells, a worker loses epsilon per assigned cell, and infer finds the assignment."""
    cells = {(row["task"], row["worker"]) for row in rows(asked)}
    most = max(sum(worker == who for _, who in cells) for _, worker in cells)
    data = run_json("perturb", "labels.csv", *RESPONSE, "--assignment", asked, "--out", "sent")
    found = run_json("infer", "sent/reports.csv", "--method", "dawid-skene", "--score", "labels-gold.csv")

    assert {(row["task"], row["worker"]) for row in rows("sent/reports.csv")} <= cells
    assert (len(cells), most) == (data["assigned"], data["accounts"][1]["cells"])
    assert "not hidden: which were assigned" in data["privacy"]
    assert f"on {len(cells)} assigned cells" in found["noise_model"]
    assert found["score"]["error"] < found["score"]["baseline"]


def test_a_changed_assignment_is_refused(run: Run, refusal: Refusal, asked: str) -> None:
    """Inference counts NULL reports by the assignment: one that is not the campaign's stops it."""
    run("perturb", "labels.csv", *RESPONSE, "--assignment", asked, "--out", "sent")
    text = Path("sent/assignment.csv").read_text(encoding="utf-8")

    Path("sent/assignment.csv").write_text(text.rsplit("\n", 2)[0] + "\n", encoding="utf-8")
    assert "must be in the folder of the reports, unchanged" in refusal("infer", "sent/reports.csv")
    Path("sent/assignment.csv").unlink()
    assert "must be in the folder of the reports, unchanged" in refusal("infer", "sent/reports.csv")


def test_an_old_assignment_does_not_stay(run: Run, asked: str) -> None:
    """A collection without an assignment that replaces one with an assignment leaves none behind."""
    run("perturb", "labels.csv", *RESPONSE, "--assignment", asked, "--out", "sent")
    run("perturb", "labels.csv", *RESPONSE, "--out", "sent", "--replace")

    assert not Path("sent/assignment.csv").exists()


@pytest.mark.slow
def test_dealt_cuts_reach_inference(run: Run, run_json: RunJson) -> None:
    """Two cuts are dealt to the workers in turn; the certificate says who has which, and infer reads it."""
    data = run_json(*CUTS, "--cuts", "1", "--cuts", "3,5", "--seed", 1, "--out", "sent")
    table = ChannelTable.from_certificate(Path("sent/certificate.json").read_bytes())
    found = run_json("infer", "sent/reports.csv", "--method", "dawid-skene")

    assert ((0,), (1,)) == table.choice
    assert {15} == {list(table.workers.values()).count(group) for group in (0, 1)}
    assert "2 channels by worker" in data["description"]
    assert found["channel_used"]
    assert "SIMULATION from seed 1" in found["noise_model"]


def test_numbers_through_dealt_cuts_on_assigned_cells(run: Run, run_json: RunJson) -> None:
    """Cuts dealt to workers, assigned tasks and a public prior together reach gaussian, and it beats the constant."""
    answers = rows("numbers.csv")
    write("asked.csv", "task,worker", *(f"{row['task']},{row['worker']}" for row in answers))
    words = ("--cuts", "0", "--cuts", "2", "--assignment", "asked.csv", "--seed", 1, "--out", "sent")
    made = run_json(*CUTS[:-1], 6, *words)
    prior = ("--prior-mean", 0, "--prior-deviation", 1)
    found = run_json(
        "infer", "sent/reports.csv", "--method", "gaussian", *prior, "--score", "numbers-gold.csv", "--out", "found"
    )

    assert ("gaussian", True, len(answers)) == (found["method"], found["channel_used"], made["assigned"])
    assert f"on {len(answers)} assigned cells" in found["noise_model"]
    assert found["score"]["error"] < found["score"]["baseline"]


def test_workers_choose_their_own_epsilon(run: Run, run_json: RunJson) -> None:
    """Each worker's cells go through the epsilon that the file names; the worst worker's loss is shown."""
    workers = sorted({row["worker"] for row in rows("labels.csv")})
    write("own.csv", "worker,epsilon", *(f"{name},{1 + k % 2}" for k, name in enumerate(workers)))

    words = ("perturb", "labels.csv", *RESPONSE, "--channels", "own.csv", "--out", "sent")
    data, shown = run_json(*words), run(*words, "--replace").stdout
    table = ChannelTable.from_certificate(Path("sent/certificate.json").read_bytes())

    exact = [RandomizedResponse(alphabet=table.alphabet, epsilon=epsilon).channel().epsilon for epsilon in (1, 2)]
    assert exact == [channel.epsilon for channel in table.channels]
    assert [exact[1], pytest.approx(20 * exact[1])] == [row["exact"] for row in data["accounts"]]
    assert "from 1 to 2 per cell" in data["accounts"][0]["reason"]
    assert "randomized-response; epsilon from own.csv" in shown
    assert "epsilon=" not in shown


def test_thresholds_of_a_file_are_named_by_the_file(run: Run) -> None:
    """With --channels the table names mechanism and file, and no setting that is not used."""
    workers = sorted({row["worker"] for row in rows("labels.csv")})
    write("cuts.csv", "worker,cuts", *(f"{name},{1 + k % 2}" for k, name in enumerate(workers)))
    words = (*CUTS[:1], *CUTS[1:], "--channels", "cuts.csv", "--seed", 1, "--out", "sent")

    shown = " ".join(run(*words).stdout.split())

    assert "quantized-response; thresholds from cuts.csv" in shown
    assert "cuts=" not in shown


def test_only_some_tasks_are_sensitive(run: Run, run_json: RunJson) -> None:
    """Tasks that the file calls unprotected are sent as they are, and the guarantee says that it is void there."""
    answers = rows("labels.csv")
    tasks = sorted({row["task"] for row in answers})
    write("some.csv", "task,epsilon", *(f"{name},{'unprotected' if k % 2 else ''}" for k, name in enumerate(tasks)))

    data = run_json("perturb", "labels.csv", *RESPONSE, "--channels", "some.csv", "--seed", 1, "--out", "sent")
    found = run_json("infer", "sent/reports.csv", "--method", "one-coin", "--score", "labels-gold.csv")

    plain = {(row["task"], row["worker"], row["label"]) for row in answers if row["task"] in tasks[1::2]}
    sent = {
        (row["task"], row["worker"], row["label"]) for row in rows("sent/reports.csv") if row["task"] in tasks[1::2]
    }
    assert plain == sent
    assert math.isinf(float(data["accounts"][0]["exact"]))
    assert found["score"]["error"] < 0.5 * found["score"]["baseline"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("worker,task,epsilon", "a,b,1"), "has the column worker or task, and epsilon or cuts"),
        (("worker", "a"), "has the column worker or task, and epsilon or cuts"),
        (("worker,epsilon,colour", "a,1,red"), "has the column worker or task, and epsilon or cuts"),
        (("worker,epsilon", "a,1", "a,2"), "every worker must have one row"),
        (("worker,epsilon", "a,none"), "an epsilon is a number, or 'unprotected'"),
        (("worker,epsilon", "a,1"), "every worker needs a channel in the table"),
        (("worker,cuts", "a,yes"), "--cuts"),
    ],
)
def test_a_file_of_channels_that_cannot_be_used_is_refused(
    refusal: Refusal, lines: tuple[str, ...], message: str
) -> None:
    """What is wrong is said in one line; nothing is sent."""
    write("channels.csv", *lines)
    words = ("perturb", "labels.csv", *RESPONSE, "--channels", "channels.csv", "--out", "sent")

    if lines[0] == "worker,cuts":
        words = (*CUTS, "--cuts", "1", "--cuts", "3", "--channels", "channels.csv", "--out", "sent")
        message = "cuts are assigned to workers in turn or given in a file of channels, not both"

    assert message in refusal(*words)
    assert not Path("sent").exists()


def test_mechanisms_without_a_channel_are_not_assigned(refusal: Refusal, asked: str) -> None:
    """Two-layer draws one flip probability for all of a worker's cells: it has no channel per cell."""
    words = f"perturb labels.csv --mechanism two-layer --epsilon 1 --assignment {asked} --out sent".split()

    assert "need a mechanism with a channel per cell" in refusal(*words)
