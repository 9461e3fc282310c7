"""A new run replaces the truths that it writes again, and names outputs of an earlier run that stay."""

import json
import shutil
from pathlib import Path

import pytest

from crowdveil.release.result_files import read_results
from tests.cli.conftest import Refusal, Run, RunJson, rows, written

FORMS = ("csv", "parquet", "json", "jsonl")


def write_questions(*names: str) -> None:
    """Write `questions.csv`: the answers of `labels.csv` to each of these questions."""
    lines = Path("labels.csv").read_text("utf-8").split()
    table = [lines[0] + ",question", *(f"{line},{name}" for name in names for line in lines[1:])]
    Path("questions.csv").write_text("\n".join(table) + "\n", "utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [*zip(FORMS, FORMS[1:] + FORMS[:1], strict=True)])
def test_a_run_in_another_format_replaces_the_files(first: str, second: str, folder: Path, run_json: RunJson) -> None:
    """The folder holds the truths of the second run only, and the command names the files that it replaced."""
    old = run_json("infer", "numbers.csv", "--out", "found", "--format", first)
    new = run_json("infer", "labels.csv", "--out", "found", "--format", second)

    assert {f"truths.{second}", f"workers.{second}"} == written("found")
    assert sorted(old["files"]) == sorted(new["replaced"])
    assert {"no", "yes", "maybe"} == set(getattr(read_results(Path("found")).estimate.alphabet, "names", ()))


def test_files_that_crowdveil_did_not_write_are_refused(folder: Path, run: Run, refusal: Refusal) -> None:
    """Truths of another format that were changed, or that the record does not list, stay as they are."""
    run("infer", "labels.csv", "--out", "changed")
    with open("changed/truths.csv", "a") as stream:
        stream.write("mine\n")
    Path("foreign").mkdir()
    Path("foreign/truths.csv").write_text("task,truth\n")

    for name, rule in (("changed", "changed after it was written"), ("foreign", "not an output of crowdveil")):
        before = Path(name, "truths.csv").read_bytes()
        assert rule in refusal("infer", "labels.csv", "--out", name, "--format", "parquet")
        assert before == Path(name, "truths.csv").read_bytes()


def test_truths_in_two_forms_are_refused(folder: Path, run: Run, refusal: Refusal) -> None:
    """A folder of an earlier version may hold truths of two runs: none is read as the current one."""
    run("infer", "numbers.csv", "--out", "found")
    run("infer", "labels.csv", "--out", "other", "--format", "parquet")
    entries = []
    for name in ("found", "other"):
        entries += json.loads(Path(name, ".crowdveil.json").read_text("utf-8"))["files"]
    for file in ("truths.parquet", "workers.parquet"):
        shutil.copy(Path("other", file), "found")
    record = {"format": "crowdveil-record/1", "files": entries}
    Path("found/.crowdveil.json").write_text(json.dumps(record), "utf-8")

    for words in (("report", "found"), ("infer", "labels.csv", "--history", "found", "--out", "new")):
        assert "truths in one form" in refusal(*words)


def test_several_questions_then_one(folder: Path, run: Run, run_json: RunJson) -> None:
    """Truths of one question leave those of the others where an earlier run wrote them, readable, and name them."""
    write_questions("first", "second")
    run("infer", "questions.csv", "--out", "found")
    for words in (("labels.csv",), ("questions.csv", "--question", "second")):
        data = run_json("infer", *words, "--out", "found")

        assert {"first", "second", "truths.csv", "workers.csv"} == written("found")
        assert "found/first, found/second: truths of an earlier run, kept." in " ".join(data["warnings"])
        assert not {path for path in data["replaced"] if "first" in path or "second" in path}
    run("report", "found/first")


def test_tables_of_other_reports_are_named(folder: Path, run: Run, run_json: RunJson) -> None:
    """Shares and agreement of the same reports are not outdated by new truths; those of other reports are."""
    words = ("--out", "found", "--labels", "no,yes,maybe")
    run("infer", "labels.csv", *words)
    run("share", "labels.csv", "--labels", "no,yes,maybe", "--out", "found/shares.csv")
    lines = Path("labels.csv").read_text("utf-8").splitlines()
    Path("fewer.csv").write_text("\n".join(lines[:-1]) + "\n", "utf-8")

    assert "shares.csv" not in " ".join(run_json("infer", "labels.csv", *words, "--method", "mace")["warnings"])
    assert "found/shares.csv: of earlier truths or reports" in " ".join(
        run_json("infer", "fewer.csv", *words)["warnings"]
    )


def test_new_reports_name_the_results_of_earlier_ones(folder: Path, run: Run, run_json: RunJson) -> None:
    """Truths beside reports that replace theirs stay, are named, and are refused by those who read both."""
    words = ("perturb", "labels.csv", "--mechanism", "randomized-response", "--epsilon", "2", "--seed", "1")
    run(*words, "--labels", "no,yes,maybe", "--out", "found")
    run("infer", "found/reports.csv")
    run("report", "found")

    warned = run_json(*words, "--labels", "no,yes,maybe", "--out", "found", "--replace")["warnings"]
    assert "found/report.html, found/truths.csv, found/workers.csv: from the earlier reports." in " ".join(warned)


def test_one_question_then_several_then_others(folder: Path, run: Run, run_json: RunJson) -> None:
    """A run of all questions replaces the truths of these only, and names all others that stay in the folder."""
    run("infer", "numbers.csv", "--out", "found")
    run("infer", "labels.csv", "--out", "found/mine")
    write_questions("first", "second")
    several = run_json("infer", "questions.csv", "--out", "found")
    first = Path("found/first/truths.csv").read_bytes()
    write_questions("second", "third")
    others = run_json("infer", "questions.csv", "--out", "found")

    assert {"first", "mine", "second", "third", "truths.csv", "workers.csv"} == written("found")
    assert [] == several["replaced"]
    assert {"found/second/truths.csv", "found/second/workers.csv"} == set(others["replaced"])
    assert "found/first, found: truths of an earlier run, kept." in " ".join(others["warnings"])
    assert first == Path("found/first/truths.csv").read_bytes()


def test_one_question_is_inferred_again_in_its_folder(folder: Path, run: Run, run_json: RunJson) -> None:
    """The folder of a question takes new truths of this question, and those of all questions after them."""
    write_questions("first", "second")
    run("infer", "questions.csv", "--out", "found")
    one = run_json("infer", "questions.csv", "--question", "first", "--out", "found/first", "--method", "mace")
    every = run_json("infer", "questions.csv", "--out", "found")

    assert {"found/first/truths.csv", "found/first/workers.csv"} == set(one["replaced"])
    assert 4 == len(every["replaced"])
    assert not {warning for warning in every["warnings"] if "kept" in warning}


def test_a_page_of_earlier_truths_is_named(folder: Path, run: Run, run_json: RunJson) -> None:
    """The page in the folder stays, as another command wrote it, and a warning says that it is out of date."""
    run("infer", "labels.csv", "--out", "found")
    run("report", "found")
    page = Path("found/report.html").read_bytes()
    data = run_json("infer", "labels.csv", "--method", "majority-vote", "--out", "found")

    assert any("found/report.html: of earlier truths" in text for text in data["warnings"])
    assert page == Path("found/report.html").read_bytes()


@pytest.mark.parametrize("name", ["", "workers.csv"])
def test_a_history_that_its_record_does_not_have_is_refused(
    name: str, folder: Path, run: Run, refusal: Refusal
) -> None:
    """Workers and truths of an earlier run must be unchanged; a copy elsewhere is the user's own file."""
    run("infer", "labels.csv", "--out", "earlier")
    shutil.copy("earlier/workers.csv", "mine.csv")
    text = Path("earlier/truths.csv").read_text("utf-8")
    Path("earlier/truths.csv").write_text(text.replace("probability_yes", "probability_no!"), "utf-8")
    given = ("infer", "labels.csv", "--out", "found", "--history")

    assert "unchanged since `infer` wrote it" in refusal(*given, Path("earlier", name))
    run(*given, "mine.csv")


def test_a_history_is_read_from_the_files_that_the_record_names(folder: Path, run: Run, run_json: RunJson) -> None:
    """A file of workers that is not in the record of a folder does not stand in for the recorded one."""
    run("infer", "labels.csv", "--out", "earlier", "--format", "parquet")
    known = run_json("infer", "labels.csv", "--history", "earlier", "--out", "found")
    lines = [f"{row['worker']},1,20" for row in rows("labels.csv")[:3]]
    Path("earlier/workers.csv").write_text("\n".join(["worker,correct,answers", *lines]) + "\n", "utf-8")

    assert known["history"] == run_json("infer", "labels.csv", "--history", "earlier", "--out", "again")["history"]


@pytest.mark.slow
def test_a_plan_leaves_no_file_of_an_earlier_plan(folder: Path, run_json: RunJson) -> None:
    """A plan that writes no prior removes that of an earlier plan."""
    Path("prior.csv").write_text(
        "label,probability\n" + "".join(f"{label},{0.305 if label < 2 else 0.01}\n" for label in range(41)), "utf-8"
    )
    words = ("plan", "--tasks", 4, "--workers", 10, "--participation-rate", 1, "--epsilon", 4, "--target-error", 1)
    earlier = run_json(*words, "--scale", "0:40", "--prior", "prior.csv", "--out", "plan")
    data = run_json(*words, "--labels", "no,yes", "--out", "plan")

    assert "plan/prior.csv" in earlier["files"]
    assert set(earlier["files"]) == set(data["replaced"])
    assert "prior.csv" not in written("plan")
