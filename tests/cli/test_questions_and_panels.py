"""`infer` on several questions, on scores of a panel, and with a history of its workers."""

import json
import random
from pathlib import Path

import jsonschema
import pytest

from tests.cli.conftest import Refusal, Run, RunJson, rows, write, write_label_studio

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "schemas" / "crowdveil-json-1.json"
NAMES = ("is it clear?", "size")


@pytest.fixture
def questions(folder: Path) -> Path:
    """A table in which every answer is given to two questions, to the second with two labels swapped."""
    header, *lines = (folder / "labels.csv").read_text("utf-8").split()
    swapped = [line.replace(",no", ",?").replace(",yes", ",no").replace(",?", ",yes") for line in lines]
    for name, given in zip(("first.csv", "second.csv"), (lines, swapped), strict=True):
        (folder / name).write_text("\n".join([header, *given]) + "\n", "utf-8")
    both = [f"{line},{name}" for name, given in zip(NAMES, (lines, swapped), strict=True) for line in given]
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
    assert "Not read (texts, regions, rankings, or no answers): note, why." in " ".join(said.stdout.split())


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

    assert "the folders of questions must differ" in refusal("infer", "both.csv", "--out", "found")
    assert not Path("found").exists()


def test_a_report_of_several_questions_names_their_folders(questions: Path, run: Run, refusal: Refusal) -> None:
    """The folder of all questions holds no truths; the error names the folders to give, which are accepted."""
    run("infer", "both.csv", "--out", "found")

    assert "give one: found/is_it_clear, found/size." in refusal("report", "found")
    assert "found/size/report.html" in run("report", "found/size").stdout


def lines(path: str) -> list[str]:
    """Lines of a text file."""
    return Path(path).read_text("utf-8").splitlines()


@pytest.fixture
def scores(run: Run) -> None:
    """Write scores 0..10 of three judges, two of whom are copies, on 60 tasks, and gold of 40."""
    answers, gold = ["task,worker,value"], ["task,truth"]
    for task in range(60):
        good = task % 2
        for worker, shift in (("ann", 0), ("bob", 0), ("cy", 3)):
            answers.append(
                f"t{task:02},{worker},{2 + 5 * good + (task // 2 + shift) * 7 % 4 - 2 * (task % 7 == shift)}"
            )
        if task < 40:
            gold.append(f"t{task:02},{('no', 'yes')[good]}")
    Path("scores.csv").write_text("\n".join(answers) + "\n")
    Path("gold.csv").write_text("\n".join(gold) + "\n")


def test_scores_give_truths_with_what_the_panel_is_worth(run_json: RunJson, scores: None) -> None:
    """Truths have their own labels, and JSON says how many judges are independent and what the best one reaches."""
    found = run_json("infer", "scores.csv", "--truths", "no,yes", "--scale", "0:10", "--gold", "gold.csv")
    panel = found["panel"]

    assert {"no", "yes"} == {row["truth"] for row in rows("truths.csv")}
    assert ("stacked-truth-tables", 40) == (found["method"], found["gold_used"])
    assert 1 < panel["effective"] < 3
    assert [["ann", "bob"]] == [pair["workers"] for pair in panel["pairs"]]
    assert panel["stacked_accuracy"] >= panel["best_accuracy"] - 0.1
    assert 3 == len(panel["sentences"])


def test_a_folder_of_a_panel_says_which_truths_its_scores_have(run: Run, run_json: RunJson, scores: None) -> None:
    """Verbs on results read the truths from the record, as with --truths, and the page sends to `next`."""
    run("infer", "scores.csv", "--truths", "no,yes", "--scale", "0:10", "--gold", "gold.csv", "--out", "found")
    Path("new.csv").write_text("worker\ndora\n")
    asked = ("--budget", "3", "--workers", "new.csv", "--per-worker", "3")

    named = run_json("next", "scores.csv", "--truths", "no,yes", *asked)
    run("infer", "scores.csv", "--truths", "no,yes", "--scale", "0:10", "--out", "plain")
    assert named["answers"] == run_json("next", "plain", *asked)["answers"]
    assert 3 == named["answers"]["of"]
    assert "name others with --workers" in " ".join(run("next", "found", "--budget", "3").stdout.split())
    assert ["ann", "bob"] == sorted(one["worker"] for one in run_json("review", "found")["review"]["items"])
    concluded = run_json("conclude", "found", "--gold", "gold.csv", "--random")
    assert ["no", "yes"] == [one["name"] for one in concluded["conclusions"]["items"]]
    run("report", "found")


def test_truths_in_reverse_order_are_named(run_json: RunJson, scores: None) -> None:
    """Gold, scored truths and gold of `conclude` say that low scores mean the last truth; in order they say nothing."""
    for truths, expected in (("no,yes", []), ("yes,no", ["State --truths no,yes"] * 4)):
        words = ("infer", "scores.csv", "--truths", truths)
        guided = run_json(*words, "--gold", "gold.csv", "--out", "found")
        found = [
            guided,
            run_json(*words, "--gold", write("few.csv", *lines("gold.csv")[:13]), "--out", "few"),
            run_json(*words, "--score", "gold.csv", "--out", "scored"),
            run_json("conclude", "scored", "--gold", "gold.csv", "--random"),
        ]
        said = [text for one in found for text in one["warnings"] if "looks reversed" in text]
        assert len(expected) == len(said)
        assert all(hint in text for hint, text in zip(expected, said, strict=True))
        assert bool(expected) == guided["cross_validation"]["order_reversed"]
        assert bool(expected) == ("looks reversed" in guided["cross_validation"]["sentence"])


def test_gold_of_a_folder_corrects_a_reversed_order(run: Run, run_json: RunJson, scores: None) -> None:
    """`next` and `review` work with the gold of the folder, so that they see the truths of its file."""
    run("infer", "scores.csv", "--truths", "yes,no", "--gold", "gold.csv", "--out", "found")
    write("new.csv", "worker", "dora")
    asked = run_json("next", "found", "--budget", 60, "--workers", "new.csv", "--per-worker", 60, "--out", "next.csv")
    probable = {row["task"]: row["reason"].split()[0] for row in rows("next.csv")}

    assert (40, 20) == (asked["gold"], len(probable))
    assert {row["task"]: row["truth"] for row in rows("found/truths.csv") if row["task"] in probable} == probable


@pytest.fixture
def earlier(run: Run) -> Path:
    """Return the folder of an earlier estimate of the labels."""
    run("infer", "labels.csv", "--out", "earlier")
    return Path("earlier")


@pytest.mark.parametrize("name", ["", "workers.csv"])
def test_an_earlier_result_is_the_prior_of_the_workers(earlier: Path, run_json: RunJson, name: str) -> None:
    """The folder or its workers.csv; the number of known workers is printed."""
    plain = run_json("infer", "labels.csv", "--out", "plain")
    known = run_json("infer", "labels.csv", "--history", earlier / name, "--out", "found")

    assert plain["history"] is None
    assert "workers have a history of ability" in known["history"]
    assert rows("plain/workers.csv") != rows("found/workers.csv")


@pytest.mark.parametrize("verb", [("next", "--budget", 3), ("review",)])
def test_next_and_review_fit_with_the_history(earlier: Path, run_json: RunJson, verb: tuple[object, ...]) -> None:
    """Both change with a history of perfect workers."""
    workers = sorted({row["worker"] for row in rows("labels.csv")})
    lines = [f"{worker},{20 if place % 2 else 4},20" for place, worker in enumerate(workers)]
    Path("gold-counts.csv").write_text("\n".join(["worker,correct,answers", *lines]) + "\n", encoding="utf-8")
    command, *options = verb

    assert run_json(command, "labels.csv", *options) != run_json(
        command, "labels.csv", *options, "--history", "gold-counts.csv"
    )


def test_histories_that_do_not_fit_are_refused(earlier: Path, refusal: Refusal, run: Run) -> None:
    """Strangers, other labels, a method without a place for it, a saved fit, a file without a quality."""
    given = ("infer", "labels.csv", "--out", "found", "--history")
    Path("strangers.csv").write_text("worker,correct,answers\nnobody,1,2\n", encoding="utf-8")

    Path("twice.csv").write_text("worker,worker,correct,answers\nann,bob,1,2\n", encoding="utf-8")
    Path("none.csv").write_text("worker,correct,answers\n", encoding="utf-8")

    assert "no worker of the reports" in refusal(*given, "strangers.csv")
    assert "no worker of the reports" in refusal(*given, "none.csv")
    assert "no two columns of a table of workers may have the same name" in refusal(*given, "twice.csv")
    assert "cannot use a worker history" in refusal(*given, earlier, "--method", "majority-vote")
    assert "saved fit" in refusal(*given, earlier, "--save-fit", "fit.npz")
    assert "needs an ability" in refusal(*given, "labels.csv")
    assert "same labels" in refusal(*given, earlier, "--labels", "yes,maybe,no,never")


def export_of(path: str, mails: list[str], first: int) -> None:
    """Write an export of six tasks by workers who are mail addresses, the third of whom answers otherwise."""
    answers = [
        {mail: [("cat", "dog")[(task + (place == 2)) % 2]] for place, mail in enumerate(mails)} for task in range(6)
    ]
    write_label_studio(path, "choices", answers, first=first)


@pytest.mark.parametrize("verb", [("infer", "--out", "found"), ("next", "--budget", 3), ("review",)])
def test_numbers_given_by_two_imports_are_never_the_same_worker(
    folder: Path, run: Run, refusal: Refusal, verb: tuple[object, ...]
) -> None:
    """The first address of each export is worker-1, whoever it is."""
    export_of("monday.json", ["ann@x.org", "bob@x.org", "cy@x.org"], 0)
    export_of("tuesday.json", ["cy@x.org", "bob@x.org", "ann@x.org"], 6)
    run("infer", "monday.json", "--out", "earlier")
    command, *options = verb

    assert "hold within one import" in refusal(command, "tuesday.json", *options, "--history", "earlier")


def test_a_history_of_the_same_tasks_is_named(earlier: Path, run_json: RunJson) -> None:
    """The same answers would count twice; other tasks are no reason to warn."""
    header, *lines = Path("labels.csv").read_text(encoding="utf-8").splitlines()
    Path("others.csv").write_text("\n".join([header, *(f"other-{line}" for line in lines)]) + "\n", encoding="utf-8")
    same, other = (
        run_json("infer", source, "--history", earlier, "--out", "found")["warnings"]
        for source in ("labels.csv", "others.csv")
    )

    assert any("count twice" in text for text in same)
    assert not any("count twice" in text for text in other)
