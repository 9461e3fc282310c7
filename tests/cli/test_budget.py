"""`--budget`: the privacy loss of a worker in place of that of a single answer."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Refusal, Run, RunJson

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

    assert "6 workers with 0 tasks each, besides 1 gold tasks, cannot answer 3 tasks" in line


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("account", *RESPONSE, "--epsilon", 1, "--tasks", 9, "--shuffled", 500), "--shuffled needs --delta"),
        (("account", *RESPONSE, "--epsilon", 1, "--tasks", 9, "--linked", 2), "--linked goes with --shuffled"),
        (("plan", *SIZE, "--target-error", 0.2, "--delta", 1e-6), "--delta goes with --budget"),
        (
            ("data", "assign", "--tasks", "t", "--workers", "w", "--per-task", 2, "--delta", 0.1, "--out", "x"),
            "with --budget",
        ),
        (("campaign", "answer", "--spent", "a link"), "leave out LINK"),
        (("campaign", "answer", "--json"), "Missing argument"),
    ],
)
def test_delta_and_shuffling_go_with_what_they_change(words: tuple[object, ...], said: str, run: Run) -> None:
    """An option without effect is wrong usage."""
    assert said in " ".join(run(*words, code=2).stderr.split())


@pytest.mark.slow
def test_account_shuffled_states_the_worker_first(run: Run, run_json: RunJson) -> None:
    """Central figures are below the local ones, in JSON and in words; delta of 1/n is refused."""
    words = ("account", *RESPONSE, "--epsilon", 2, "--tasks", 20, "--delta", 1e-6, "--shuffled", 500)
    data = run_json(*words)
    text = " ".join(run(*words).stdout.split())

    assert data["shuffled"]["epsilon_per_answer"] < 2
    assert data["shuffled"]["epsilon_per_worker"] < together(data)
    assert "for all answers of one worker, epsilon" in text
