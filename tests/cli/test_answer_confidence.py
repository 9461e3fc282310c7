"""`infer --weight`: the column of confidences in every form of file, its record, and what it does not go with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import crowdveil as cv
from crowdveil.answers.facts.inputs import inputs_of_json
from crowdveil.files.output_record import read_record
from tests.cli.conftest import Refusal, Run, RunJson, rows, write, write_label_studio
from tests.inference.test_answer_confidence import UNUSED, USED, crowd

WRITERS: dict[str, Callable[[pd.DataFrame, str], Any]] = {
    "answers.csv": lambda frame, path: frame.to_csv(path, index=False),
    "answers.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "answers.csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "answers.parquet": lambda frame, path: frame.to_parquet(path),
    "answers.json": lambda frame, path: Path(path).write_text(json.dumps(frame.to_dict("records"))),
    "answers.jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True, double_precision=15),
}


def answers_frame(kind: str = "informs") -> pd.DataFrame:
    """Return answers with a column of confidences under a name of its own; names have one order as numbers and text."""
    frame = pd.DataFrame(crowd(kind, 1)[0]).rename(columns={"sure": "Confidence"})
    return frame.assign(task=frame.task + 1000, worker=frame.worker + 10)


def truths_in(folder: str) -> list[str]:
    """Return the truths that were written, in order of tasks."""
    return [row["truth"] for row in sorted(rows(f"{folder}/truths.csv"), key=lambda row: int(row["task"]))]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", WRITERS)
def test_every_form_of_file_gives_the_same(name: str, run_json: RunJson) -> None:
    """The truths are those of the frame, a warning says what the confidence was worth, and it is not named unread."""
    WRITERS[name](answers_frame(), name)
    said = run_json("infer", name, "--weight", "Confidence", "--out", "found")["warnings"]
    expected = cv.infer(answers_frame(), weight="Confidence")

    assert truths_in("found") == expected.estimate.truth.tolist()
    assert [one.replace(" (--score)", "") for one in said] == list(expected.notes)
    assert said[-1].startswith(USED)


@pytest.mark.usefixtures("folder")
def test_several_files_and_decimal_commas(run_json: RunJson) -> None:
    """Confidences of several files are read together, and those with a decimal comma as numbers."""
    frame = answers_frame().round({"Confidence": 6})
    frame[:300].to_csv("a.csv", index=False)
    frame[300:].to_parquet("b.parquet")
    frame.to_csv("comma.csv", index=False, sep=";", decimal=",", float_format="%.6f")
    one = run_json("infer", "a.csv", "b.parquet", "--weight", "Confidence", "--out", "one")
    two = run_json("infer", "comma.csv", "--decimal", ",", "--weight", "Confidence", "--out", "two")

    assert one["warnings"] == two["warnings"]
    assert truths_in("one") == truths_in("two")


@pytest.mark.usefixtures("folder")
def test_uninformative_confidence_writes_the_same_files(run: Run) -> None:
    """With confidences that say nothing, truths and workers are those of a run without them, byte for byte."""
    answers_frame("says nothing").to_csv("answers.csv", index=False)
    said = run("infer", "answers.csv", "--weight", "Confidence", "--out", "with").output
    run("infer", "answers.csv", "--out", "without")

    assert UNUSED in said
    for name in ("truths.csv", "workers.csv"):
        assert Path("with", name).read_bytes() == Path("without", name).read_bytes()


@pytest.mark.usefixtures("folder")
def test_each_question_has_its_own_confidences(run_json: RunJson) -> None:
    """In a table of questions each is inferred with the confidences of its answers, alone or with the others."""
    informs = answers_frame().assign(question="a")
    other = answers_frame("says nothing").assign(question="b")
    pd.concat([informs, other]).to_csv("answers.csv", index=False)
    both = run_json("infer", "answers.csv", "--weight", "Confidence", "--out", "both")["warnings"]
    one = run_json("infer", "answers.csv", "--weight", "Confidence", "--question", "a", "--out", "one")

    assert f"a: {one['warnings'][-1]}" in both
    assert one["warnings"][-1].startswith(USED)
    assert both[-1].startswith(f"b: {UNUSED}")


@pytest.mark.usefixtures("folder")
def test_the_record_names_the_confidences(run: Run, run_json: RunJson) -> None:
    """The record has a digest of the confidences, and verbs on the results read the reports again with them."""
    frame = answers_frame()
    digests = []
    for change in (0.0, 1e-9):
        frame.assign(Confidence=frame.Confidence + change).to_csv("answers.csv", index=False)
        run("infer", "answers.csv", "--weight", "Confidence", "--out", "found")
        entry = next(one for one in read_record(Path("found")) if one.name == "truths.csv")
        inputs = {one.role: one.sha256 for one in inputs_of_json(entry.inputs)}
        digests.append((inputs["reports"], inputs["weight"]))
        assert json.loads(entry.reading)["layout"] == {"weight_column": "Confidence"}

    assert digests[0][0] == digests[1][0]
    assert digests[0][1] != digests[1][1]
    assert run_json("agreement", "found")["tasks"] == run_json("agreement", "answers.csv")["tasks"]
    run("report", "found", "--out", "page.html")


@pytest.mark.usefixtures("folder")
def test_bad_confidences_are_refused_with_their_line(refusal: Refusal) -> None:
    """A missing confidence, or a word, is named with its line; answers of NULL need none, and nothing is written."""
    write("answers.csv", "task,worker,label,sure", "1,a,y,1", "1,b,NULL,", "2,a,n,", "2,b,y,high")
    message = refusal("infer", "answers.csv", "--weight", "sure", "--out", "found")

    assert "lines 4, 5: the confidence of each answer must be a finite number. Found: '', 'high'." in message
    assert "leave --weight out" in message
    assert "there is no column 'certain'" in refusal("infer", "answers.csv", "--weight", "certain", "--out", "found")
    assert not Path("found").exists()


@pytest.mark.usefixtures("sent")
def test_what_does_not_go_with_confidences_is_refused(run: Run, refusal: Refusal) -> None:
    """Protected reports, data sets, exports, blocks, other truths, numbers, methods, histories and saved fits."""
    reports = pd.read_csv("sent/reports.csv").assign(sure=1.0)
    reports.to_csv("answers.csv", index=False)
    reports.to_csv("sent/reports.csv", index=False)
    lists = ("--tasks", "tasks.csv", "--workers", "every-worker.csv")
    write("history.csv", "worker,correct,answers", "1,8,10")
    write_label_studio("export.json", "choices", [{"a": ["x"], "b": ["y"]}])
    run("data", "encode", "answers.csv", "--out", "blocks")
    for words, text in (
        (("sent/reports.csv", "--accept-edited"), "no guarantee covers"),
        (("sent/reports.csv", "--accept-edited", "--no-certificate"), "no guarantee covers"),
        (("answers.csv", "--certificate", "sent/certificate.json", *lists), "no guarantee covers"),
        (("dataset:bluebird",), "a table of answers"),
        (("export.json",), "a table of answers"),
        (("blocks",), "a table of answers"),
        (("answers.csv", "--truths", "bad,good"), "labels of their own"),
        (("answers.csv", "--method", "majority-vote"), "hierarchical-dawid-skene"),
        (("answers.csv", "--history", "history.csv"), "a history"),
        (("answers.csv", "--save-fit", "saved.fit"), "cannot be saved"),
        (("answers.csv", "--duplicates", "all"), "cannot be kept"),
    ):
        assert text in refusal("infer", *words, "--weight", "sure", "--out", "found"), words
    assert not Path("found").exists()
