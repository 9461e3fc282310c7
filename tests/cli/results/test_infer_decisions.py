"""`infer --costs` and `--abstain-below`: decisions in the files, in JSON, and on the page of results."""

from pathlib import Path

from tests.cli.conftest import Refusal, Run, RunJson, rows


def test_unsure_truths_are_empty_and_counted(folder: Path, run: Run, run_json: RunJson) -> None:
    """The file has empty truths below the confidence only, JSON has their number, and a report can be made of it."""
    assert run_json("infer", "labels.csv", "--out", "found")["decisions"] is None
    bound = sorted(float(row["confidence"]) for row in rows("found/truths.csv"))[10]
    data = run_json("infer", "labels.csv", "--abstain-below", bound, "--score", "labels-gold.csv", "--out", "found")
    found = rows("found/truths.csv")
    empty = [row for row in found if not row["truth"]]

    assert len(empty) == data["decisions"]["undecided"] > 0
    assert [float(row["confidence"]) < bound for row in found] == [not row["truth"] for row in found]
    assert any(f"{len(empty)} of 20 tasks stay undecided" in text for text in data["warnings"])
    run("report", "found")
    assert "undecided" in Path("found/report.html").read_text("utf-8")


def test_costs_move_decisions(folder: Path, run_json: RunJson, refusal: Refusal) -> None:
    """Where every decision but "yes" is expensive, every truth is "yes"; JSON has the mean expected cost."""
    labels = ("no", "yes", "maybe")
    cost = {"yes": 1, "no": 1000, "maybe": 1000}
    text = "".join(f"{z},{d},{cost[d]}\n" for z in labels for d in labels)
    Path("costs.csv").write_text("truth,decision,cost\n" + text)
    data = run_json("infer", "labels.csv", "--costs", "costs.csv", "--out", "found")

    assert {"yes"} == {row["truth"] for row in rows("found/truths.csv")}
    assert 1.0 == data["decisions"]["expected_cost"]
    assert "need labels" in refusal("infer", "numbers.csv", "--costs", "costs.csv")


def test_no_undecided_task_is_no_warning(run_json: RunJson) -> None:
    """A bound that every task passes is not worth a line."""
    data = run_json("infer", "labels.csv", "--abstain-below", 0.0, "--out", "found")

    assert not any("undecided" in text for text in data["warnings"])
