"""`crowdveil import`, and the sources that every command reads: exports, several files, streams, URLs and tables."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import LABELS, Refusal, Run, RunJson, rows, written

EXPORTS = Path(__file__).parents[2] / "data" / "importers" / "exports"
STUDIO = EXPORTS / "label-studio.json"
RESPONSE = ("--mechanism", "randomized-response", "--epsilon", 2, "--labels", ",".join(LABELS), "--seed", 4)


def test_an_import_states_what_it_read_and_what_not(run: Run, run_json: RunJson) -> None:
    """The counts of answers, "no answer" and left out, the labels and the names of dropped columns are printed."""
    data = run_json("import", "label-studio", STUDIO, "--question", "sentiment", "--out", "answers.csv")

    assert ("sentiment", ["sentiment", "stars"], 3, 1) == tuple(
        data[name] for name in ("question", "questions", "answers", "no_answer")
    )
    assert ({"ground truth": 1}, 2, 3, ["Negative", "Positive"]) == tuple(
        data[name] for name in ("left_out", "tasks", "workers", "labels")
    )
    assert "annotations.lead_time" in data["dropped"]
    text = run("import", "label-studio", STUDIO, "--question", "sentiment", "--out", "answers.csv").stdout
    for part in ("not read: stars", "1, with the label NULL", "1 (ground truth)", "annotations.lead_time"):
        assert part in " ".join(text.split())


def test_infer_perturb_and_encode_recognise_an_export(run: Run, run_json: RunJson) -> None:
    """A task that nobody answered is a task all the same, and a question is chosen."""
    export, question = EXPORTS / "pybossa.json", ("--question", "animal")
    found = run_json("infer", export, *question, "--out", "found")
    sent = run_json(
        "perturb", export, *question, "--mechanism", "randomized-response", "--epsilon", 1, "--labels", "cat,dog",
        "--lists-from-answers", "--seed", 1, "--out", "sent",
    )  # fmt: skip
    run("data", "encode", export, *question, "--out", "blocks")

    assert ["11", "12"] == [row["task"] for row in rows("found/truths.csv")]
    assert (2, 2) == (found["tasks"], found["reports"])
    assert (2, 2) == (sent["tasks"], sent["workers"])
    assert 2 == run_json("infer", "blocks", "--out", "again")["tasks"]
    assert any(text.startswith("Read as an export of PyBossa, question 'animal'") for text in sent["warnings"])


def test_a_guarantee_counts_no_answers(run_json: RunJson) -> None:
    """A run with a guarantee does not say how many workers gave no answer."""
    Path("nulls.csv").write_text("task,worker,label\n1,1,no\n2,2,NULL\n")

    data = run_json(
        "perturb", "nulls.csv", "--mechanism", "randomized-response", "--epsilon", 1, "--labels", ",".join(LABELS),
        "--tasks", "tasks.csv", "--workers", "every-worker.csv", "--out", "sent",
    )  # fmt: skip

    assert not any("NULL" in text for text in data["warnings"])


def test_reports_of_a_channel_have_no_null(run: Run, refusal: Refusal) -> None:
    """NULL beside a certificate is refused: reports of a channel leave it out."""
    run("perturb", "labels.csv", *RESPONSE, "--out", "sent")
    text = Path("sent/reports.csv").read_text() + "1,1,NULL\n"
    Path("bare").mkdir()
    Path("bare/reports.csv").write_text(text)
    Path("bare/certificate.json").write_bytes(Path("sent/certificate.json").read_bytes())

    assert "NULL reports are not stored" in refusal("infer", "bare/reports.csv")


def test_a_remote_collection_is_inferred_through_its_channel(run: Run, run_json: RunJson) -> None:
    """Reports at a URL are read with the certificate and crowd.json beside them, and results stay on this machine."""
    run("perturb", "labels.csv", *RESPONSE, "--out", "sent")
    local = run_json("infer", "sent/reports.csv", "--out", "a")

    remote = run_json("infer", Path("sent/reports.csv").absolute().as_uri(), "--out", "b")

    assert (local["channel_used"], local["log_likelihood"]) == (remote["channel_used"], remote["log_likelihood"])
    assert remote["channel_used"]
    run("infer", Path("labels.csv").absolute().as_uri())
    assert {"truths.csv", "workers.csv"} <= written(".")


@pytest.mark.parametrize("form", ["json", "jsonl", "parquet"])
def test_results_are_written_in_every_form(form: str, run: Run) -> None:
    """Truths as JSON, JSON lines or Parquet hold the rows of the CSV file, and the page of results reads them."""
    run("infer", "labels.csv", "--out", "a")
    run("infer", "labels.csv", "--out", "b", "--format", form)

    path = Path(f"b/truths.{form}")
    if form == "parquet":
        found = pq.read_table(path).to_pylist()
    else:
        found = json.loads(path.read_text()) if form == "json" else list(map(json.loads, path.read_text().splitlines()))
    assert [(row["task"], row["truth"], float(row["confidence"])) for row in rows("a/truths.csv")] == [
        (row["task"], row["truth"], row["confidence"]) for row in found
    ]
    run("report", "b", "--out", "b/report.html")


def test_imports_that_cannot_be_are_refused(run: Run, refusal: Refusal) -> None:
    """The form of the file must be known, an input is never replaced, and two exports are no sums."""
    Path("a.csv").write_bytes((EXPORTS / "wide.csv").read_bytes())
    assert "the file must end in .csv, .parquet, .json, .jsonl" in refusal("import", "wide", "a.csv", "--out", "b.xls")
    assert "must not replace an input" in refusal("import", "wide", "a.csv", "--out", "a.csv")
    assert "Choose it with --question" in refusal("agreement", STUDIO)
    assert "same layout" in refusal("infer", STUDIO, EXPORTS / "pybossa.json", "--out", "found")
