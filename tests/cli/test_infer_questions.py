"""`crowdveil infer` on a table with several questions: each is fitted by itself, as if alone in a file."""

import json
import random
from pathlib import Path

import jsonschema
import pytest

from tests.cli.conftest import Refusal, Run, RunJson

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "schemas" / "crowdveil-json-1.json"
NAMES = ("is it clear?", "size")


@pytest.fixture
def questions(folder: Path) -> Path:
    """A table in which every answer is given to two questions, to the second with two labels swapped."""
    header, *lines = (folder / "labels.csv").read_text("utf-8").split()
    swapped = [line.replace(",no", ",?").replace(",yes", ",no").replace(",?", ",yes") for line in lines]
    for name, rows in zip(("first.csv", "second.csv"), (lines, swapped), strict=True):
        (folder / name).write_text("\n".join([header, *rows]) + "\n", "utf-8")
    both = [f"{line},{name}" for name, rows in zip(NAMES, (lines, swapped), strict=True) for line in rows]
    (folder / "both.csv").write_text("\n".join([header + ",Question", *both]) + "\n", "utf-8")
    return folder


@pytest.mark.slow
def test_each_question_is_inferred_as_if_alone(questions: Path, run: Run, run_json: RunJson) -> None:
    """Truths and workers of each question are those of a file with its answers only; the JSON fits the schema."""
    data = run_json("infer", "both.csv", "--out", "found")
    jsonschema.validate(data, json.loads(SCHEMA.read_text("utf-8")))

    assert [*NAMES] == [one["question"] for one in data["questions"]]
    for file, one in zip(("first.csv", "second.csv"), ("is_it_clear", "size"), strict=True):
        run("infer", file, "--out", "alone")
        for name in ("truths.csv", "workers.csv"):
            assert Path("alone", name).read_text("utf-8") == Path("found", one, name).read_text("utf-8")


def test_the_table_names_every_question(questions: Path, run: Run) -> None:
    """Of each question a line has its numbers and its folder, and one its expected error and the verdict."""
    lines = run("infer", "both.csv", "--out", "found").stdout.splitlines()

    assert ["is it clear?", "size        "] == [line[:12] for line in lines[::2]]
    assert all("30 workers on 20 tasks" in line and "written to found/" in line for line in lines[::2])
    assert all("Constant " in line and line.endswith("Verdict: use") for line in lines[1::2])


def test_noise_and_grades_are_named(folder: Path, run_json: RunJson, refusal: Refusal) -> None:
    """A question answered at random has the verdict of its page, not to use it; labels 1 to 5 have a hint."""
    guess = random.Random(1)
    cells = [(f"t{task},w{worker}", 1 + task % 5) for task in range(30) for worker in range(4)]
    answers = [f"{cell},noise,{guess.choice('aaab')}" for cell, _ in cells] + [f"{cell},grade,{g}" for cell, g in cells]
    Path("mixed.csv").write_text("\n".join(["task,worker,question,label", *answers]) + "\n", "utf-8")
    data = run_json("infer", "mixed.csv", "--out", "found")
    verdicts = {one["question"]: one["verdict"] for one in data["questions"]}

    assert "use" == verdicts["grade"] != verdicts["noise"]
    assert all(run_json("report", f"found/{name}")["verdict"] == found for name, found in verdicts.items())
    assert ["grade: Whole numbers" in text for text in data["warnings"]] == [True]
    for words in (("agreement",), ("report",), ("next", "--budget", 3), ("review",)):
        assert "give one: found/grade, found/noise" in refusal(words[0], "found", *words[1:])


def test_a_question_on_which_all_agree_does_not_stop_the_others(questions: Path, run: Run, run_json: RunJson) -> None:
    """It is left out, with the options that infer it; stated labels leave none out."""
    rows = Path("both.csv").read_text("utf-8").replace(",no,size", ",yes,size").replace(",maybe,size", ",yes,size")
    Path("agreed.csv").write_text(rows, "utf-8")
    warned = run("infer", "agreed.csv", "--out", "found").stderr

    assert "Question 'size' is left out: all answers to it are 'yes'." in warned
    assert "--question size with --labels or --kind numeric" in warned
    assert ["is_it_clear"] == [path.name for path in Path("found").iterdir() if path.is_dir()]
    data = run_json("infer", "agreed.csv", "--labels", "no,yes,maybe", "--out", "stated")
    assert [*NAMES] == [one["question"] for one in data["questions"]]


def test_columns_of_times_and_empty_comments_do_not_stop_an_export(folder: Path, run: Run) -> None:
    """Of an export those questions are left out that have many numbers, no answer, or texts none of which recurs."""
    head = "ASSIGNMENT:worker_id\tINPUT:image\tOUTPUT:animal\tOUTPUT:seconds\tOUTPUT:note\tOUTPUT:why"
    rows = [f"w{row % 3}\t{row // 3}\t{'cd'[row % 2]}\t{row + 7}\t\t" for row in range(24)]
    for place in range(5):
        rows[place] += f"reason {place}"
    Path("toloka.tsv").write_text("\n".join([head, *rows]) + "\n", "utf-8")
    said = run("infer", "toloka.tsv", "--out", "found")

    assert ["animal"] == [path.name for path in Path("found").iterdir() if path.is_dir()]
    assert "Question 'seconds' is left out: its answers are 24 different numbers from 7 to 30." in said.stderr
    assert "Not read, since they hold no labels or numbers: note, why." in " ".join(said.stdout.split())


@pytest.mark.parametrize("option", ["--gold", "--score"])
def test_gold_goes_with_one_question(questions: Path, run: Run, option: str) -> None:
    """Known truths of an unnamed question are wrong usage, and nothing is written."""
    refused = run("infer", "both.csv", option, "labels-gold.csv", "--out", "found", code=2)

    assert "--question" in refused.stderr
    assert not Path("found").exists()


def test_questions_whose_folders_clash_are_refused(questions: Path, refusal: Refusal) -> None:
    """Two questions that differ in punctuation and case only get no common folder."""
    text = Path("both.csv").read_text("utf-8").replace(",size\n", ",Is it - clear\n").replace("it clear", "it - clear")
    Path("both.csv").write_text(text, "utf-8")

    assert "each question needs a folder of its own" in refusal("infer", "both.csv", "--out", "found")
    assert not Path("found").exists()


def test_a_report_of_several_questions_names_their_folders(questions: Path, run: Run, refusal: Refusal) -> None:
    """The folder of all questions holds no truths; the error names the folders to give, which are accepted."""
    run("infer", "both.csv", "--out", "found")

    assert "give one: found/is_it_clear, found/size." in refusal("report", "found")
    assert "found/size/report.html" in run("report", "found/size").stdout


@pytest.mark.parametrize("words", [("report",), ("export", "label-studio", "--tasks", "t.json", "--out", "p.json")])
def test_a_file_in_place_of_the_folder_is_named(questions: Path, run: Run, words: tuple[str, ...]) -> None:
    """Truths are given by their folder; a file is wrong usage, and not taken for an output folder or a record."""
    refused = run(*words, "both.csv", code=2)

    assert "Directory 'both.csv' is a file." in refused.stderr
