"""Output files of all commands: only earlier ones of the same kind are replaced, and what stays is named."""

import json
import os
import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from crowdveil.cli import main
from crowdveil.storage.results.result_files import read_results
from tests.cli.conftest import LABELS, LISTS, Refusal, Run, RunJson, written
from tests.cli.test_main import commands

RECORD = ".crowdveil.json"
UNLISTED = ("--mechanism", "randomized-response", "--epsilon", 2, "--labels", ",".join(LABELS))
RESPONSE = (*UNLISTED, *LISTS)
LAPLACE = ("--mechanism", "laplace", "--scale", "-2:7", "--epsilon", 1, *LISTS)
SUMS = ("--mechanism", "matrix-factorization", "--scale", "-2:7", "--epsilon", 1, *LISTS)


def contents(folder: str | Path) -> dict[str, bytes]:
    """Contents of the files in a folder by name, without those of folders in it."""
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}


def test_a_second_collection_is_refused(run: Run, refusal: Refusal) -> None:
    """A folder that holds a collection keeps it: the epsilon of another collection would add up."""
    run("perturb", "labels.csv", *RESPONSE, "--out", "sent")
    before = contents("sent")

    for words in (("labels.csv", *RESPONSE), ("numbers.csv", *SUMS), ("numbers.csv", *LAPLACE, "--format", "blocks")):
        line = refusal("perturb", *words, "--out", "sent")
        assert "a folder holds one collection" in line
        assert "--replace" in line
    assert before == contents("sent")


@pytest.mark.parametrize("form", ["csv", "parquet", "blocks"])
def test_replace_removes_that_collection_and_nothing_else(form: str, run: Run, run_json: RunJson) -> None:
    """With --replace every file of the earlier collection goes, in whatever form; notes and truths of others stay."""
    data = run_json("perturb", "labels.csv", *RESPONSE, "--out", "sent", "--format", form)
    Path("sent/notes.txt").write_text("mine")
    run("infer", "sent" if form == "blocks" else f"sent/reports.{form}")
    Path("sent/assignment.csv").write_text("mine too")
    again = run_json("perturb", "numbers.csv", *SUMS, "--out", "sent", "--replace")

    assert sorted(data["files"]) == sorted(again["replaced"])
    assert [] == data["replaced"]
    kept = {"notes.txt", "assignment.csv", "truths.csv", "workers.csv", RECORD}
    assert {"crowd.json", "sums.json"} | kept == set(os.listdir("sent"))
    assert "mine" == Path("sent/notes.txt").read_text()


def test_replace_refuses_files_that_it_did_not_write(run: Run, refusal: Refusal) -> None:
    """Reports of somebody else, and a collection that was edited, stay where they are even with --replace."""
    Path("theirs").mkdir()
    Path("theirs/reports.parquet").write_text("theirs")
    run("perturb", "labels.csv", *RESPONSE, "--out", "sent")
    with open("sent/reports.csv", "a") as stream:
        stream.write("t,w,yes\n")
    before = contents("sent")

    line = refusal("perturb", "labels.csv", *RESPONSE, "--out", "theirs", "--replace")
    assert "theirs/reports.parquet is not an output of crowdveil and is not replaced. Choose another" in line
    assert "changed after it was written" in refusal("perturb", "labels.csv", *RESPONSE, "--out", "sent", "--replace")
    assert {"reports.parquet": b"theirs"} == contents("theirs")
    assert before == contents("sent")


@pytest.mark.parametrize("form", ["csv", "parquet", "blocks"])
def test_perturb_never_removes_its_input(form: str, run: Run, refusal: Refusal) -> None:
    """Answers in the output folder are an input, whatever their name and whatever form the reports get."""
    run("perturb", "labels.csv", *RESPONSE, "--out", "p", "--format", "parquet")
    before = contents("p")
    words = ("perturb", "p/reports.parquet", *RESPONSE, "--out", "p", "--format", form)

    refusal(*words)
    assert "must not replace an input" in refusal(*words, "--replace")
    assert before == contents("p")


def test_an_assignment_of_the_user_stays(run: Run, refusal: Refusal) -> None:
    """An assignment.csv in the folder is left alone by a collection without one, and not replaced by one with."""
    Path("camp").mkdir()
    rows = [line.rsplit(",", 1)[0] for line in Path("labels.csv").read_text().splitlines()]
    for name in ("asked.csv", "camp/assignment.csv"):
        Path(name).write_text("\n".join(rows) + "\n")
    before = contents("camp")

    line = refusal("perturb", "labels.csv", *UNLISTED, "--assignment", "asked.csv", "--out", "camp")
    assert "camp/assignment.csv" in line
    run("perturb", "labels.csv", *RESPONSE, "--out", "camp")
    assert before["assignment.csv"] == contents("camp")["assignment.csv"]


def test_a_folder_in_the_way_is_found_before_anything_is_written(run: Run, refusal: Refusal) -> None:
    """Where one output name is a folder, no other output is written, and the earlier ones stay."""
    run("perturb", "labels.csv", *RESPONSE, "--out", "sent")
    run("infer", "sent/reports.csv")
    before = contents("sent")
    Path("sent/truths.parquet").mkdir()
    Path("out/reports.csv").mkdir(parents=True)

    assert "a file cannot replace a folder" in refusal("infer", "sent/reports.csv", "--format", "parquet")
    assert "out/reports.csv" in refusal("perturb", "labels.csv", *RESPONSE, "--out", "out")
    assert before == contents("sent")
    assert ["reports.csv"] == os.listdir("out")


@pytest.mark.parametrize("name", ["certificate.json", "crowd.json", "blocks.json", "reports.csv"])
def test_a_saved_fit_replaces_nothing_else(name: str, run: Run, refusal: Refusal) -> None:
    """--save-fit at the place of a file that the next run needs is refused before the fit."""
    run("perturb", "labels.csv", *RESPONSE, "--out", "c", "--format", "blocks")
    Path("c/reports.csv").write_text("task,worker,label\n")
    before = contents("c")

    assert f"c/{name}" in refusal("infer", "c", "--out", "x", "--save-fit", f"c/{name}")
    assert before == contents("c")
    assert not Path("x").exists()


def test_a_saved_fit_replaces_a_saved_fit(run: Run, run_json: RunJson) -> None:
    """A fit resumes a file and is saved in it; the result names it as replaced."""
    run("infer", "labels.csv", "--out", "x", "--save-fit", "kept.fit")
    data = run_json("infer", "labels.csv", "--out", "x", "--start-from", "kept.fit", "--save-fit", "kept.fit")

    assert ["x/truths.csv", "x/workers.csv", "kept.fit"] == data["replaced"]
    assert RECORD not in os.listdir()


@pytest.mark.parametrize("words", [("sent/reports.csv",), ("sent/reports.csv", "--score", "labels-gold.csv")])
def test_known_truths_in_the_folder_of_the_reports_are_kept(words: tuple[str, ...], run: Run, refusal: Refusal) -> None:
    """Without --out, truths are in the folder of the reports, and never replace a foreign truths.csv."""
    run("perturb", "labels.csv", *RESPONSE, "--out", "sent")
    gold = Path("sent/truths.csv")
    gold.write_bytes(Path("labels-gold.csv").read_bytes())
    before = contents("sent")

    assert "sent/truths.csv" in refusal("infer", *words)
    assert before == contents("sent")
    run("infer", *words, "--out", "found")


def test_encode_never_replaces_another_collection(run: Run, refusal: Refusal, run_json: RunJson) -> None:
    """Blocks in the folder of another collection are refused; --replace removes that collection."""
    run("perturb", "labels.csv", *RESPONSE, "--out", "c6")
    run("perturb", "labels.csv", *RESPONSE, "--out", "c7")
    before = contents("c7")

    assert "a folder holds one collection" in refusal("data", "encode", "c6/reports.csv", "--out", "c7")
    assert before == contents("c7")
    data = run_json("data", "encode", "c6/reports.csv", "--out", "c7", "--replace")
    assert {f"c7/{name}" for name in before} - {f"c7/{RECORD}"} == set(data["replaced"])
    assert "reports.csv" not in os.listdir("c7")
    assert contents("c6")["certificate.json"] == contents("c7")["certificate.json"]


def test_single_files_replace_their_own_kind_only(run: Run, run_json: RunJson, refusal: Refusal) -> None:
    """A single output replaces what the same command wrote there, and no other file."""
    words: tuple[object, ...] = ("data", "assign", *LISTS, "--per-task", 2, "--out", "made.csv")
    run(*words)

    assert ["made.csv"] == run_json(*words)["replaced"]
    Path("made.csv").write_text("task,worker\nmine,me\n")
    assert "made.csv" in refusal(*words)
    assert "task,worker\nmine,me\n" == Path("made.csv").read_text()
    for theirs in ("numbers.csv", "labels-gold.csv"):
        before = Path(theirs).read_bytes()
        assert theirs in refusal(*words[:-1], theirs)
        assert before == Path(theirs).read_bytes()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("demo",), "demo.json"),
        (
            ("plan", "--labels", "no,yes", "--tasks", 9, "--workers", 9, "--participation-rate", 1,
             "--target-error", 0.1),
            "plan.svg",
        ),
        (("data", "synthesize", "numbers.csv", "--bounds", "-2:7", "--epsilon", 2), "guarantee.json"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_long_work_does_not_begin_for_an_output_that_is_refused(
    words: tuple[object, ...], name: str, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A foreign file under the name of an output is found before the work, and stays."""
    for work in ("crowdveil.planning.plan_campaign", "crowdveil.comparison.demo.crowds.demo_crowds"):
        monkeypatch.setattr(work, lambda *_, **__: pytest.fail("the work was begun"))
    Path("out").mkdir()
    Path("out", name).write_text("mine")

    assert f"out/{name}" in refusal(*words, "--out", "out")
    assert {name: b"mine"} == contents("out")


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"format": "crowdveil-record/1", "files": [{"name": 1}]}', "[" * 9999]
)
def test_a_record_that_is_none_is_refused(text: str, run: Run, refusal: Refusal) -> None:
    """Where the record cannot be read, nothing is replaced and nothing is written."""
    run("infer", "labels.csv", "--out", "found")
    Path("found", RECORD).write_text(text)
    before = contents("found")

    line = refusal("infer", "labels.csv", "--out", "found")
    assert f"found/{RECORD}" in line
    assert "remove the record" in line
    assert before == contents("found")


def test_inputs_are_checked_before_outputs(run: Run, refusal: Refusal) -> None:
    """A missing file or column is reported before a foreign file in the output folder, which then is refused too."""
    Path("workers.csv").write_text("worker,age\nann,30\n")
    Path("bad.csv").write_text("task,label\n1,yes\n")

    assert "nope.csv" in refusal("infer", "nope.csv")
    assert "worker" in refusal("infer", "bad.csv").partition(":")[2]
    line = refusal("infer", "labels.csv")
    assert "workers.csv is not an output of crowdveil and is not replaced. Choose another place with --out." in line
    assert "worker,age\nann,30\n" == Path("workers.csv").read_text()
    assert not Path("truths.csv").exists()


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


def test_tables_of_other_reports_are_named(folder: Path, run: Run, run_json: RunJson) -> None:
    """Shares and agreement of the same reports are not outdated by new truths; those of other reports are."""
    words = ("--out", "found", "--labels", "no,yes,maybe")
    run("infer", "labels.csv", *words)
    run("share", "labels.csv", "--labels", "no,yes,maybe", "--out", "found/shares.csv")
    lines = Path("labels.csv").read_text("utf-8").splitlines()
    Path("fewer.csv").write_text("\n".join(lines[:-1]) + "\n", "utf-8")

    assert "shares.csv" not in " ".join(run_json("infer", "labels.csv", *words, "--method", "mace")["warnings"])
    assert "found/shares.csv: these belong to earlier truths or reports" in " ".join(
        run_json("infer", "fewer.csv", *words)["warnings"]
    )


def test_new_reports_name_the_results_of_earlier_ones(folder: Path, run: Run, run_json: RunJson) -> None:
    """Truths beside reports that replace theirs stay, are named, and are refused by those who read both."""
    words = ("perturb", "labels.csv", "--mechanism", "randomized-response", "--epsilon", "2", "--seed", "1")
    run(*words, "--labels", "no,yes,maybe", "--out", "found")
    run("infer", "found/reports.csv")
    run("report", "found")

    warned = run_json(*words, "--labels", "no,yes,maybe", "--out", "found", "--replace")["warnings"]
    assert "found/report.html, found/truths.csv, found/workers.csv: these come from the earlier reports." in " ".join(
        warned
    )


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
    assert "found/first, found: truths of an earlier run were kept." in " ".join(others["warnings"])
    assert first == Path("found/first/truths.csv").read_bytes()


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


def test_no_path_is_a_url(run: Run) -> None:
    """Every option that names a file or folder refuses a URL, before anything is read; no folder s3: is made."""
    paths = [
        (words, option.opts[0])
        for words, command in commands(main)
        for option in command.params
        if isinstance(option, click.Option) and isinstance(option.type, click.Path)
    ]
    said = {
        (words, option): CliRunner().invoke(main, [*words, option, url]).stderr
        for words, option in paths
        for url in ("s3://bucket/found", "file:///tmp/found")
    }

    assert {"--out", "--save-fit", "--page", "--grades"} <= {option for _, option in paths}
    assert [] == [one for one, line in said.items() if "is a URL: give a path of this machine" not in line]
    run("infer", "labels.csv", "--out", "s3://bucket/found", code=2)
    assert not {"s3:", "file:"}.intersection(os.listdir())
