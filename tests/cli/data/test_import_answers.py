"""`import` and `export`, the sources that every command reads, and one rule for missing answers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

import crowdveil as cv
from crowdveil.answers.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from tests.cli.conftest import LABELS, Refusal, Run, RunJson, rows, write_label_studio, written

EXPORTS = Path(__file__).parents[2] / "answers" / "importers" / "exports"
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
    export, question = EXPORTS / "prodigy.jsonl", ("--question", "choice")
    found = run_json("infer", export, *question, "--out", "found")
    sent = run_json(
        "perturb", export, *question, "--mechanism", "randomized-response", "--epsilon", 1, "--labels", "POS,NEG",
        "--lists-from-answers", "--seed", 1, "--out", "sent",
    )  # fmt: skip
    run("data", "encode", export, *question, "--out", "blocks")

    assert ["1", "2"] == [row["task"] for row in rows("found/truths.csv")]
    assert (2, 2) == (found["tasks"], found["reports"])
    assert (2, 2) == (sent["tasks"], sent["workers"])
    assert 2 == run_json("infer", "blocks", "--out", "again")["tasks"]
    assert any(text.startswith("Read as an export of Prodigy, question 'choice'") for text in sent["warnings"])


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
    assert "such as --question sentiment" in refusal("agreement", STUDIO)
    assert "same layout" in refusal("infer", STUDIO, EXPORTS / "prodigy.jsonl", "--out", "found")


NAMES = {"from_name": "sentiment", "to_name": "txt", "type": "choices"}


def test_a_round_trip_gives_each_task_its_truth(run: Run, run_json: RunJson) -> None:
    """Each task comes back with its data, the inferred truth, and the confidence as score; no answer comes back."""
    run("infer", STUDIO, "--question", "sentiment", "--out", "found")

    words = ("data", "export", "label-studio", "found", "--tasks", STUDIO, "--question", "sentiment", "--out", "p.json")
    data = run_json(*words)

    text = Path("p.json").read_text()
    truths = {row["task"]: (row["truth"], float(row["confidence"])) for row in rows("found/truths.csv")}
    assert [
        {
            "id": task["id"],
            "data": task["data"],
            "predictions": [
                {
                    "model_version": "crowdveil",
                    "score": pytest.approx(truths[str(task["id"])][1]),
                    "result": [NAMES | {"value": {"choices": [truths[str(task["id"])][0]]}}],
                }
            ],
        }
        for task in json.loads(STUDIO.read_text())
    ] == json.loads(text)
    assert (2, 0) == (data["predictions"], data["missing"])
    assert "completed_by" not in text


def test_ratings_come_back_as_numbers(run: Run) -> None:
    """A truth of a rating is a whole number."""
    run("infer", STUDIO, "--question", "stars", "--kind", "numeric", "--out", "found")
    run("data", "export", "label-studio", "found", "--tasks", STUDIO, "--question", "stars", "--out", "p.json")

    found = [record["predictions"][0]["result"][0]["value"] for record in json.loads(Path("p.json").read_text())]

    assert [{"rating": 5}, {"rating": 1}] == found


def test_several_choices_come_back_together(run: Run, run_json: RunJson) -> None:
    """Yes/no truths of the choices of a task become one prediction with the smallest confidence; none if undecided."""
    export = EXPORTS / "label-studio-several.json"
    run("infer", export, "--out", "found")
    words = (
        "data",
        "export",
        "label-studio",
        "found/animals",
        "--tasks",
        export,
        "--question",
        "animals",
        "--out",
        "p.json",
    )
    data = run_json(*words)

    found = {record["id"]: record["predictions"][0] for record in json.loads(Path("p.json").read_text())}
    truths = rows("found/animals/truths.csv")
    assert {1: ["cat", "dog"], 2: ["bird"]} == {
        task: one["result"][0]["value"]["choices"] for task, one in found.items()
    }
    assert {
        task: min(float(row["confidence"]) for row in truths if row["task"].startswith(f"{task}|")) for task in found
    } == {task: pytest.approx(one["score"]) for task, one in found.items()}
    assert (2, 0) == (data["predictions"], data["missing"])

    run("infer", export, "--question", "animals", "--abstain-below", 0.9999, "--out", "found/animals")
    run(*words)
    assert [] == json.loads(Path("p.json").read_text())


def test_exports_that_cannot_be_are_refused(run: Run, refusal: Refusal) -> None:
    """The question must be known, the tasks must be the tool's own, and an input is not replaced."""
    run("infer", STUDIO, "--question", "sentiment", "--out", "found")
    words = ("data", "export", "label-studio", "found", "--out", "p.json", "--tasks")

    assert "'sentiment', 'stars'. Choose it with --question" in refusal(*words, STUDIO)
    assert "must be Label Studio's own JSON" in refusal(*words, EXPORTS / "argilla.json")
    assert "must be numbers. Found: 'Positive'" in refusal(*words, STUDIO, "--question", "stars")
    Path("tasks.json").write_bytes(STUDIO.read_bytes())
    assert "must not replace an input" in refusal(*words[:5], "tasks.json", "--tasks", "tasks.json")


def test_tasks_without_a_truth_are_left_out_and_counted(run: Run, run_json: RunJson) -> None:
    """Truths of other tasks are counted."""
    answers = [f"{task},{worker},Positive" for task in range(1, 21) for worker in "ab"]
    Path("more.csv").write_text("\n".join(["task,worker,label", *answers, "1,c,Negative"]))
    run("infer", "more.csv", "--out", "found")

    data = run_json(
        "data", "export", "label-studio", "found", "--tasks", STUDIO, "--question", "sentiment", "--out", "p.json"
    )

    assert (2, 18) == (data["predictions"], data["missing"])


def exported(run: Run) -> dict[int, tuple[Any, float | None]]:
    """Content and score by task of the truths in `found`."""
    run("data", "export", "label-studio", "found", "--tasks", "tasks.json", "--out", "p.json")
    predictions = {record["id"]: record["predictions"][0] for record in json.loads(Path("p.json").read_text())}
    return {task: (one["result"][0]["value"], one.get("score")) for task, one in predictions.items()}


EXPORT_LABELS = [
    {worker: [label] for worker, label in enumerate(labels)}
    for labels in (("unknown", "unknown", "unknown"), ("b", "b", "b"), ("b", "unknown", "b"))
]


def test_undecided_tasks_are_left_out(run: Run) -> None:
    """A task below the confidence has no prediction, and a choice called unknown is a choice."""
    write_label_studio("tasks.json", "choices", EXPORT_LABELS)
    run("infer", "tasks.json", "--out", "found")
    assert [{"choices": ["unknown"]}, {"choices": ["b"]}, {"choices": ["b"]}] == [
        one for one, _ in exported(run).values()
    ]

    run("infer", "tasks.json", "--abstain-below", "1", "--out", "found")

    assert {} == exported(run)


def test_the_score_is_that_of_the_decision(run: Run) -> None:
    """A decision by expected cost has its own probability as score, not that of the likeliest label."""
    write_label_studio("tasks.json", "choices", EXPORT_LABELS)
    Path("costs.csv").write_text("truth,decision,cost\nunknown,b,1000000\nb,unknown,1\n")
    run("infer", "tasks.json", "--costs", "costs.csv", "--out", "found")

    truths = {row["task"]: row for row in rows("found/truths.csv")}

    assert "unknown" == truths["2"]["truth"]
    assert pytest.approx(float(truths["2"]["probability_unknown"])) == exported(run)[2][1]


def test_numbers_come_back_with_all_digits(run: Run) -> None:
    """A truth of a number is not rounded."""
    write_label_studio("tasks.json", "number", [dict.fromkeys(range(3), value) for value in (123456.75, 223456.25)])
    run("infer", "tasks.json", "--kind", "numeric", "--method", "weighted-mean", "--out", "found")

    assert pytest.approx([123456.75, 223456.25], rel=1e-9) == [value["number"] for value, _ in exported(run).values()]


def test_truths_of_another_question_are_refused(run: Run, refusal: Refusal) -> None:
    """A truth that no annotation chose for the question is not written as its choice."""
    write_label_studio("tasks.json", "choices", EXPORT_LABELS)
    Path("other.csv").write_text("task,worker,label\n0,a,sport\n0,b,sport\n1,a,news\n")
    run("infer", "other.csv", "--out", "found")

    message = refusal("data", "export", "label-studio", "found", "--tasks", "tasks.json", "--out", "p.json")

    assert "must be choices that annotations made for 'q'. Found: 'news', 'sport'" in message


COLUMNS = {"task": [*"aaabbb"], "worker": [*"vwxvwx"]}
ANSWERS: dict[str, list[Any]] = {
    "label": ["yes", "yes", "", "no", "NULL", "no"],
    "value": ["1", "2.5", "", "3", "NULL", "nan"],
}
LEFT = {"label": 4, "value": 3}


def from_csv(name: str, folder: Path, **options: Any) -> Reports:
    """Read a file."""
    pd.DataFrame({**COLUMNS, name: ANSWERS[name]}).to_csv(folder / "answers.csv", index=False)
    return Reports.from_csv(folder / "answers.csv", **options)


def from_frame(name: str, folder: Path, **options: Any) -> Reports:
    """Read a frame, whose empty cells are None."""
    return Reports.from_frame({**COLUMNS, name: [one or None for one in ANSWERS[name]]}, **options)


def from_parquet(name: str, folder: Path, **options: Any) -> Reports:
    """Read a Parquet file, whose empty cells are null."""
    frame = pd.DataFrame({**COLUMNS, name: [one or None for one in ANSWERS[name]]})
    frame.to_parquet(folder / "answers.parquet")
    return Reports.from_parquet(folder / "answers.parquet", **options)


READERS = (from_csv, from_frame, from_parquet)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("read", READERS)
def test_readers_skip_null_and_what_they_are_told(read: Callable[..., Reports], name: str, tmp_path: Path) -> None:
    """NULL and skipped answers are cells without a report; their tasks and workers stay listed."""
    reports = read(name, tmp_path, missing="skip")

    assert LEFT[name] == len(reports)
    assert ([*"ab"], [*"vwx"]) == (reports.tasks.tolist(), reports.workers.tolist())


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("read", READERS)
def test_readers_refuse_empty_answers_by_default(read: Callable[..., Reports], name: str, tmp_path: Path) -> None:
    """The refusal names the row of the file, counted with those of NULL, and the option."""
    with pytest.raises(ReportsError, match=r"(row 3|lines? 4)\b.*missing='skip'"):
        read(name, tmp_path)


def test_aggregate_skips_null_and_what_it_is_told() -> None:
    """The truth of a task is that of its answers."""
    answers = pd.DataFrame({**COLUMNS, "label": ["yes", "yes", None, "no", "NULL", "no"]})
    found = cv.aggregate(answers, "majority-vote", missing="skip")

    assert {"a": "yes", "b": "no"} == dict(zip(found["task"], found["truth"], strict=True))


def test_a_policy_has_two_names() -> None:
    """Another one is refused."""
    with pytest.raises(SettingsError, match="missing must be 'error' or 'skip'"):
        cv.aggregate({**COLUMNS, "label": ANSWERS["label"]}, missing="drop")  # type: ignore[call-overload]


def test_a_label_named_nan_is_not_skipped() -> None:
    """A label of the alphabet is an answer, whatever it is called."""
    reports = Reports.from_frame(
        {**COLUMNS, "label": [*"xx", "nan", *"xx", ""]}, alphabet=cv.Categories(("nan", "x")), missing="skip"
    )
    assert (5, 1) == (len(reports), int((reports.value == 0).sum()))


def test_labels_of_an_import_are_mapped(folder: Path, run_json: RunJson) -> None:
    """`--map-labels` replaces labels in the written table, no answer apart, and says which labels remain."""
    rows = "".join(f"H{task},A{task}{who},{who},Approved,{label}\n" for task, who, label in
                   ((1, "v", "Y"), (1, "w", "N"), (2, "v", "y"), (2, "w", "")))  # fmt: skip
    Path("batch.csv").write_text("HITId,AssignmentId,WorkerId,AssignmentStatus,Answer.q\n" + rows)
    data = run_json("import", "mturk", "batch.csv", "--map-labels", "Y=yes,y=yes,N=no", "--out", "answers.csv")

    assert (["no", "yes"], 1) == (data["labels"], data["no_answer"])
    assert "Labels after the map: 'no' (1 answer), 'yes' (2 answers)." in data["warnings"]
