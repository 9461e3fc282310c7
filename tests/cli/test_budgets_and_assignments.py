"""`--budget`, assigned tasks, dealt cuts and channels by name, through the command line."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from crowdveil.channels.channel_table import ChannelTable
from crowdveil.mechanisms import RandomizedResponse
from tests.cli.conftest import LABELS, LISTS, Refusal, Run, RunJson, rows, write

SIZE = ("--tasks", 40, "--workers", 60, "--participation-rate", 0.5, "--labels", "no,yes")
RESPONSE = ("--mechanism", "randomized-response", "--labels", "no,yes,maybe")


@pytest.fixture
def lists(folder: Path) -> tuple[str, ...]:
    """Write public lists of four tasks and six workers, and answers of three of them."""
    Path("tasks.csv").write_text("task\n" + "".join(f"t{n}\n" for n in range(4)), "utf-8")
    Path("workers.csv").write_text("worker\n" + "".join(f"w{n}\n" for n in range(6)), "utf-8")
    rows = [f"t{task},w{worker},yes\n" for task in range(4) for worker in range(3)]
    Path("answers.csv").write_text("task,worker,label\n" + "".join(rows), "utf-8")
    return ("--tasks", "tasks.csv", "--workers", "workers.csv")


def worker_loss(accounts: list[dict[str, Any]]) -> float:
    """Return the exact epsilon of the row of a worker."""
    return next(float(row["exact"]) for row in accounts if row["unit"] == "worker")


def test_reports_spend_the_budget_over_all_tasks(run_json: RunJson, lists: tuple[str, ...]) -> None:
    """Without an assignment each of the four tasks has a quarter of the budget."""
    data = run_json("perturb", "answers.csv", *lists, *RESPONSE, "--budget", 8, "--out", "sent")

    assert pytest.approx(2.0) == data["parameters"]["epsilon"]
    assert 8 * (1 - 1e-9) <= worker_loss(data["accounts"]) <= 8


def test_reports_spend_the_budget_over_assigned_tasks(run: Run, run_json: RunJson, lists: tuple[str, ...]) -> None:
    """With two assigned tasks for each worker, each has half of the budget."""
    run("data", "assign", *lists, "--budget", 8, "--epsilon", 4, "--out", "asked.csv")
    asked = Path("asked.csv").read_text("utf-8").split()[1:]
    kept = [line for line in Path("answers.csv").read_text("utf-8").split() if line.rsplit(",", 1)[0] in asked]
    Path("answers.csv").write_text("\n".join(["task,worker,label", *kept]) + "\n", "utf-8")

    words = ("--assignment", "asked.csv", *RESPONSE, "--budget", 8, "--out", "sent")
    data = run_json("perturb", "answers.csv", *lists, *words)

    assert len(asked) == 12
    assert pytest.approx(4.0) == data["parameters"]["epsilon"]
    assert 8 * (1 - 1e-9) <= worker_loss(data["accounts"]) <= 8


def test_the_account_of_a_budget_is_the_budget(run_json: RunJson) -> None:
    """Over three rounds the worker loses the budget in all, and names the worker first."""
    data = run_json("account", *RESPONSE, "--tasks", 10, "--rounds", 3, "--budget", 6)

    totals = [row["exact"] for row in data["accounts"] if row["unit"] == "worker" and row["rounds"] == 3]
    assert [pytest.approx(6, rel=1e-9)] == totals
    assert max(totals) <= 6


@pytest.mark.parametrize("budget", [2, 3, 3.9])
def test_gold_tasks_count_in_the_budget(run_json: RunJson, lists: tuple[str, ...], budget: float) -> None:
    """With a gold task for each worker, nobody has more tasks than the budget pays for, and everybody has gold."""
    Path("gold.csv").write_text("task,truth\n" + Path("tasks.csv").read_text("utf-8").split()[2] + ",yes\n", "utf-8")

    words = ("--budget", budget, "--epsilon", 1, "--gold", "gold.csv", "--gold-per-worker", 1)
    data = run_json("data", "assign", *lists, *words, "--out", "asked.csv")

    assert int(budget) >= data["most"] > 1
    assert data["workers"] == data["gold_cells"]


def test_a_budget_for_gold_alone_is_refused(refusal: Refusal, lists: tuple[str, ...]) -> None:
    """A budget that gold tasks use up is refused with the numbers."""
    words = ("data", "assign", *lists, "--budget", 1, "--epsilon", 1, "--out", "asked.csv", "--gold", "tasks.csv")
    Path("gold.csv").write_text("\n".join(Path("tasks.csv").read_text("utf-8").split()[:2]) + "\n", "utf-8")

    line = refusal(*words[:-1], "gold.csv", "--gold-per-worker", 1)

    assert "6 workers with 0 tasks each, besides 1 gold task, cannot answer 3 tasks" in line


@pytest.mark.slow
def test_a_plan_by_budgets_agrees_in_table_json_and_file(run: Run, run_json: RunJson, folder: Path) -> None:
    """Table, JSON and plan.json have the same choices; the least budget has commands that carry it out."""
    words = ("plan", *SIZE, "--budget", "2,20", "--target-error", 0.3, "--out", "planned")
    data = run_json(*words)
    table = " ".join(run(*words).stdout.split())

    assert json.loads(Path("planned/plan.json").read_text("utf-8"))["candidates"] == data["candidates"]
    assert {"plan.json", "plan.svg"} <= {path.name for path in Path("planned").iterdir()}
    assert "participation protected and public (default)" in table
    assert [2, 2, 20, 20] == [row["budget"] for row in data["candidates"]]
    assert all(row["epsilon_per_worker"] <= row["budget"] for row in data["candidates"])
    assert data["recommended"]["budget"] == 20
    assert "--assignment asked.csv" in " ".join(data["commands"])
    for row in data["candidates"]:
        assert row["shown"].replace("less than", "<") in table


def together(data: dict[str, Any], unit: str = "worker") -> float:
    """Return the exact epsilon at delta of a unit."""
    return next(float(row["exact"]) for row in data["compositions"] if row["unit"] == unit)


@pytest.mark.slow
def test_a_budget_at_a_delta_is_used_and_not_exceeded(run_json: RunJson, lists: tuple[str, ...]) -> None:
    """account and perturb: the exact loss at delta is at most the budget and within 1 % of it."""
    account = run_json("account", *RESPONSE, "--budget", 10, "--delta", 1e-6, "--tasks", 200)
    sent = run_json("perturb", "answers.csv", *lists, *RESPONSE, "--budget", 8, "--delta", 1e-6, "--out", "sent")

    assert 9.9 <= together(account) <= 10
    assert account["parameters"]["epsilon"] > 2 * 10 / 200
    assert 7.9 <= together(sent) <= 8
    assert worker_loss(sent["accounts"]) >= together(sent)


@pytest.mark.slow
def test_an_assignment_at_a_delta_has_more_tasks(run: Run, run_json: RunJson) -> None:
    """Sixty cells of 0.1 cost 6 by the sum; at delta 1e-6 a worker may have more."""
    Path("tasks.csv").write_text("task\n" + "".join(f"t{n}\n" for n in range(300)), "utf-8")
    Path("workers.csv").write_text("worker\n" + "".join(f"w{n}\n" for n in range(10)), "utf-8")
    words = ("data", "assign", "--tasks", "tasks.csv", "--workers", "workers.csv", "--budget", 6, "--epsilon", 0.1)

    assert 60 == run_json(*words, "--out", "sum.csv")["most"]
    assert 100 <= run_json(*words, "--delta", 1e-6, "--out", "delta.csv")["most"] <= 300


@pytest.mark.slow
def test_account_shuffled_states_the_worker_first(run: Run, run_json: RunJson) -> None:
    """Central figures are below the local ones, in JSON and in words; delta of 1/n is refused."""
    words = ("account", *RESPONSE, "--epsilon", 2, "--tasks", 20, "--delta", 1e-6, "--shuffled", 500)
    data = run_json(*words)
    text = " ".join(run(*words).stdout.split())

    assert data["shuffled"]["epsilon_per_answer"] < 2
    assert data["shuffled"]["epsilon_per_worker"] < together(data)
    assert "for all answers of one worker, epsilon" in text


ASSIGNED_RESPONSE = ("--mechanism", "randomized-response", "--epsilon", 2, "--labels", ",".join(LABELS), *LISTS)
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
    data = run_json("perturb", "labels.csv", *ASSIGNED_RESPONSE, "--assignment", asked, "--out", "sent")
    found = run_json("infer", "sent/reports.csv", "--method", "dawid-skene", "--score", "labels-gold.csv")

    assert {(row["task"], row["worker"]) for row in rows("sent/reports.csv")} <= cells
    assert (len(cells), most) == (data["assigned"], data["accounts"][1]["cells"])
    assert "not hidden: which were assigned" in data["privacy"]
    assert f"on {len(cells)} assigned cells" in found["noise_model"]
    assert found["score"]["error"] < found["score"]["baseline"]


def test_a_changed_assignment_is_refused(run: Run, refusal: Refusal, asked: str) -> None:
    """Inference counts NULL reports by the assignment: one that is not the campaign's stops it."""
    run("perturb", "labels.csv", *ASSIGNED_RESPONSE, "--assignment", asked, "--out", "sent")
    text = Path("sent/assignment.csv").read_text(encoding="utf-8")

    Path("sent/assignment.csv").write_text(text.rsplit("\n", 2)[0] + "\n", encoding="utf-8")
    assert "must be in the folder of the reports, unchanged" in refusal("infer", "sent/reports.csv")
    Path("sent/assignment.csv").unlink()
    assert "must be in the folder of the reports, unchanged" in refusal("infer", "sent/reports.csv")


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


def test_workers_choose_their_own_epsilon(run: Run, run_json: RunJson) -> None:
    """Each worker's cells go through the epsilon that the file names; the worst worker's loss is shown."""
    workers = sorted({row["worker"] for row in rows("labels.csv")})
    write("own.csv", "worker,epsilon", *(f"{name},{1 + k % 2}" for k, name in enumerate(workers)))

    words: tuple[object, ...] = ("perturb", "labels.csv", *ASSIGNED_RESPONSE, "--channels", "own.csv", "--out", "sent")
    data, shown = run_json(*words), run(*words, "--replace").stdout
    table = ChannelTable.from_certificate(Path("sent/certificate.json").read_bytes())

    exact = [RandomizedResponse(alphabet=table.alphabet, epsilon=epsilon).channel().epsilon for epsilon in (1, 2)]
    assert exact == [channel.epsilon for channel in table.channels]
    assert [exact[1], pytest.approx(20 * exact[1])] == [row["exact"] for row in data["accounts"]]
    assert "from 1 to 2 per cell" in data["accounts"][0]["reason"]
    assert "randomized-response; epsilon from own.csv" in shown
    assert "epsilon=" not in shown


def test_only_some_tasks_are_sensitive(run: Run, run_json: RunJson) -> None:
    """Tasks that the file calls unprotected are sent as they are, and the guarantee says that it is void there."""
    answers = rows("labels.csv")
    tasks = sorted({row["task"] for row in answers})
    write("some.csv", "task,epsilon", *(f"{name},{'unprotected' if k % 2 else ''}" for k, name in enumerate(tasks)))

    data = run_json("perturb", "labels.csv", *ASSIGNED_RESPONSE, "--channels", "some.csv", "--seed", 1, "--out", "sent")
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
    words: tuple[object, ...] = (
        "perturb",
        "labels.csv",
        *ASSIGNED_RESPONSE,
        "--channels",
        "channels.csv",
        "--out",
        "sent",
    )

    if lines[0] == "worker,cuts":
        words = (*CUTS, "--cuts", "1", "--cuts", "3", "--channels", "channels.csv", "--out", "sent")
        message = "cuts are assigned to workers in turn or given in a file of channels, not both"

    assert message in refusal(*words)
    assert not Path("sent").exists()


def test_mechanisms_without_a_channel_are_not_assigned(refusal: Refusal, asked: str) -> None:
    """Two-layer draws one flip probability for all of a worker's cells: it has no channel per cell."""
    words = f"perturb labels.csv --mechanism two-layer --epsilon 1 --assignment {asked} --out sent".split()

    assert "need a mechanism with a channel per cell" in refusal(*words)
