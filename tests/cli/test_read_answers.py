"""Spellings of labels, changed numbers and unread columns: counted in warnings, or merged on request."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crowdveil as cv
from crowdveil.answers.reports import Reports
from crowdveil.errors import ReportsError
from tests.cli.conftest import Run, RunJson, write

ROWS = [("a", "yes"), ("b", "yes"), ("c", "Yes"), ("d", "no"), ("e", "1"), ("f", "1.0")]
NOTE = (
    "These are read as different labels: '1' (1 report), '1.0' (1 report); 'Yes' (1 report), 'yes' (2 reports). "
    "--merge-labels merges them."
)
VOTE = ("--method", "majority-vote")
RESPONSE = ("--mechanism", "randomized-response", "--epsilon", 2, "--seed", 4)


@pytest.fixture
def mixed(folder: Path) -> str:
    """Return a file with labels in several spellings."""
    (folder / "mixed.csv").write_text("task,worker,label\n" + "".join(f"{task},w,{label}\n" for task, label in ROWS))
    return "mixed.csv"


def test_infer_counts_spellings_and_merges_them(mixed: str, run_json: RunJson) -> None:
    """Labels from the file that agree but for case or number form are counted; merged, each label is one."""
    apart = run_json("infer", mixed, *VOTE, "--out", "apart")
    merged = run_json("infer", mixed, *VOTE, "--merge-labels", "--out", "merged")

    assert NOTE in apart["warnings"]
    counts = "'1' (2 answers), 'no' (1 answer), 'yes' (3 answers)"
    assert [f"5 spellings were merged into 3 labels: {counts}."] == merged["warnings"]
    header = Path("merged/truths.csv").read_text().splitlines()[0]
    assert "task,truth,confidence,probability_1,probability_no,probability_yes,n_tied_labels,reports" == header


def test_known_truths_are_merged_like_answers(mixed: str, run_json: RunJson) -> None:
    """With --merge-labels gold and scored truths may have any spelling of a label, as gold= in Python."""
    gold = write("gold.csv", "task,truth", "a,YES", "b,yes ", "d,No", "e,1.00")
    guided = run_json("infer", mixed, "--merge-labels", "--gold", gold, "--out", "guided")
    scored = run_json("infer", mixed, *VOTE, "--merge-labels", "--score", gold, "--out", "scored")
    answers, known = pd.read_csv(mixed, dtype=str), {"a": "YES", "d": "NO"}

    assert (4, [0.0, 4]) == (guided["gold_used"], [scored["score"][name] for name in ("error", "scored")])
    assert ["yes", "no"] == cv.aggregate(answers, gold=known, merge_labels=True)["truth"].tolist()[::3][:2]
    with pytest.raises(ReportsError, match="'YES'"):
        cv.aggregate(answers, gold=known)


def test_given_labels_are_not_warned_of(mixed: str, run_json: RunJson) -> None:
    """Labels that are given differ on purpose; with merging, reports take their spelling."""
    every = run_json("infer", mixed, *VOTE, "--labels", "yes,Yes,no,1,1.0", "--out", "out")
    run_json("infer", mixed, *VOTE, "--labels", "YES,No,1", "--merge-labels", "--out", "merged")

    assert [] == every["warnings"]
    assert ",probability_YES,probability_No,probability_1," in Path("merged/truths.csv").read_text()


def test_perturb_counts_spellings_and_merges_them(mixed: str, run_json: RunJson, refusal: Callable[..., str]) -> None:
    """A simulation without given labels counts spellings; given labels are what answers are merged into."""
    apart = run_json("perturb", mixed, *RESPONSE, "--out", "apart")
    merged = run_json("perturb", mixed, *RESPONSE, "--labels", "yes,no,1", "--merge-labels", "--out", "merged")

    assert NOTE in apart["warnings"]
    crowd = json.loads(Path("merged/crowd.json").read_text())
    assert ["yes", "no", "1"] == merged["labels"] == crowd["alphabet"]["names"]
    assert "--merge-labels" in refusal("perturb", mixed, *RESPONSE, "--labels", "yes,no,1", "--out", "refused")
    assert "merge_labels needs a file" in refusal(
        "perturb", "dataset:any", *RESPONSE, "--merge-labels", "--out", "refused"
    )


def test_a_column_of_counts_is_asked_about(folder: Path, refusal: Callable[..., str], run_json: RunJson) -> None:
    """Many different numbers under a header for labels need --kind, --labels or --scale in every command."""
    (folder / "counts.csv").write_text("task,worker,answer\n" + "".join(f"t{k},w{k % 5},{k * 3}\n" for k in range(60)))
    question = "counts.csv: the kind of a label column with more than 20 different numbers must be stated."

    for words in (("infer",), ("data", "encode"), ("perturb", *RESPONSE)):
        line = refusal(*words, "counts.csv", "--out", "refused")
        assert question in line
        assert "Found: 60 different numbers from 0 to 177." in line
    assert "student-t" == run_json("infer", "counts.csv", "--kind", "numeric", "--out", "numbers")["method"]
    as_labels = run_json("infer", "counts.csv", "--kind", "categorical", "--out", "labels")
    assert "hierarchical-dawid-skene" == as_labels["method"]


def test_labels_that_other_programs_write_for_no_answer_are_named(folder: Path, run_json: RunJson) -> None:
    """The label NA is read as a label, with a warning; stated labels need none."""
    (folder / "r.csv").write_text("task,worker,label\na,w,NA\na,v,yes\nb,w,None\n")
    note = "Read as labels: 'NA', 'None'. If they stand for no answer, leave these rows out or write NULL."

    assert note in run_json("infer", "r.csv", *VOTE, "--out", "out")["warnings"]
    assert note not in run_json("infer", "r.csv", *VOTE, "--labels", "yes,NA,None", "--out", "stated")["warnings"]


NUMBERS = "task,worker,value\na,u,7\na,v,-3\nb,u,2.5\nb,v,3\n"
CHANGES = (
    "2 answers outside the scale were clipped, such as task a, worker u, value 7.",
    "1 answer was rounded to the scale's grid.",
)


@pytest.mark.parametrize("words", [("infer",), ("data", "encode"), ("infer", "--kind", "numeric")])
def test_clipped_and_rounded_numbers_are_counted(words: tuple[str, ...], run: Run, run_json: RunJson) -> None:
    """Without a certificate numbers are put on the scale, and two warnings count those that were changed."""
    Path("far.csv").write_text(NUMBERS)

    data = run_json(*words, "far.csv", "--scale", "0:5", "--out", "found")
    table = " ".join(run(*words, "far.csv", "--scale", "0:5", "--out", "again").stdout.split())

    assert set(CHANGES) <= set(data["warnings"])
    assert all(change in table for change in CHANGES)
    if words == ("data", "encode"):
        assert [0, 5, 2, 3] == sorted(Reports.open("found").value.tolist(), key=[0, 5, 2, 3].index)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["count", "Votes", "weight", "n"])
def test_a_column_of_repeated_votes_is_named(form: str, name: str, run_json: RunJson) -> None:
    """A column that may hold weights or repeated votes is not read, and a warning of one sentence names it."""
    table = pa.table({"task": ["a", "a", "b"], "worker": ["u", "v", "u"], "label": ["x", "y", "x"], name: [3, 1, 1]})
    if form == "parquet":
        pq.write_table(table, "counted.parquet")
    else:
        with open("counted.csv", "w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([table.column_names, *(row.values() for row in table.to_pylist())])

    warnings = run_json("infer", f"counted.{form}", "--out", "found")["warnings"]

    assert 1 == len([text for text in warnings if text.startswith(f"Not read: '{name}'.")])


def test_truths_outside_the_scale_guide_no_fit_and_are_counted_in_scores(
    run_json: RunJson, refusal: Callable[..., str]
) -> None:
    """Gold outside of the scale is refused; a score on it counts it."""
    rng = np.random.default_rng(1)
    rows = "".join(f"t{task},w{worker},{rng.integers(0, 10)}\n" for task in range(4) for worker in range(5))
    Path("grid.csv").write_text("task,worker,value\n" + rows)
    Path("far.csv").write_text("task,truth\nt0,50\nt1,3.5\nt2,-1\n")
    words = ("infer", "grid.csv", "--scale", "0:9")

    data = run_json(*words, "--score", "far.csv", "--out", "found")
    message = refusal(*words, "--gold", "far.csv", "--out", "other")

    assert 2 == data["score"]["outside"]
    assert "2 of 3 scored truths are outside the scale 0 to 9, which no estimate reaches." in data["warnings"]
    assert "2 gold truths: each must be on the scale from 0 to 9 to guide a fit" in message
    assert "50 of task 't0', -1 of task 't2'" in message
    assert not Path("other").exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("option", ["--gold", "--score"])
def test_a_map_of_labels_applies_to_known_truths(option: str, run_json: RunJson) -> None:
    """Known truths in the labels of the files are read by the map of the answers, for `infer` and `conclude`."""
    write("coded.csv", "task,worker,label", *(f"{task},{who},{'YN'[task % 2]}" for task in range(24) for who in "abc"))
    gold = write("gold.csv", "task,truth", *(f"{task},{'YN'[task % 2]}" for task in range(24)))
    mapped = ("--map-labels", "Y=yes,N=no")
    data = run_json("infer", "coded.csv", *mapped, *VOTE, option, gold, "--out", "out")
    found = run_json("conclude", "coded.csv", *mapped, "--gold", gold, "--random")

    assert 24 == (data["gold_used"] if option == "--gold" else data["score"]["scored"])
    assert 0 == (data["score"]["error"] if option == "--score" else 0)
    assert {"yes", "no"} == {one["name"] for one in found["conclusions"]["items"] if one["quantity"] == "prevalence"}
    assert ["Labels after the map: 'no' (36 answers), 'yes' (36 answers)."] == data["warnings"][:1]
