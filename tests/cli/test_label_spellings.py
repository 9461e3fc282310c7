"""Spellings of the same label: counted in a warning, merged on request; a column of counts is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import crowdveil as cv
from crowdveil.errors import ReportsError
from tests.cli.conftest import RunJson, write

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
    assert ["5 spellings were merged into 3 labels."] == merged["warnings"]
    header = Path("merged/truths.csv").read_text().splitlines()[0]
    assert "task,truth,confidence,probability_1,probability_no,probability_yes,n_tied_labels,reports" == header


def test_no_answer_is_no_spelling(folder: Path, run_json: RunJson) -> None:
    """Empty cells and NULL are not counted among the spellings that were merged."""
    write("few.csv", "task,worker,label", "a,v,Yes", "a,w,", "b,v,NULL", "b,w,yes", "c,v,no")
    found = run_json("infer", "few.csv", "--merge-labels", "--missing", "skip", *VOTE, "--out", "out")

    assert ["No answer (NULL): 2 records.", "3 spellings were merged into 2 labels."] == found["warnings"]


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


def test_encode_counts_spellings_and_merges_them(mixed: str, run_json: RunJson, refusal: Callable[..., str]) -> None:
    """Blocks are warned of when they are written and when they are read; merging is said when encoding."""
    apart = run_json("data", "encode", mixed, "--out", "apart")
    merged = run_json("data", "encode", mixed, "--merge-labels", "--out", "merged")

    assert [NOTE] == apart["warnings"]
    assert (["5 spellings were merged into 3 labels."], ["1", "no", "yes"]) == (merged["warnings"], merged["labels"])
    assert NOTE in run_json("infer", "apart", "--out", "out")["warnings"]
    assert "Give kind, duplicates and merge_labels to encode" in refusal("infer", "apart", "--merge-labels")


def test_perturb_counts_spellings_and_merges_them(mixed: str, run_json: RunJson, refusal: Callable[..., str]) -> None:
    """A simulation without given labels counts spellings; given labels are what answers are merged into."""
    apart = run_json("perturb", mixed, *RESPONSE, "--out", "apart")
    merged = run_json("perturb", mixed, *RESPONSE, "--labels", "yes,no,1", "--merge-labels", "--out", "merged")

    assert NOTE in apart["warnings"]
    crowd = json.loads(Path("merged/crowd.json").read_text())
    assert ["yes", "no", "1"] == merged["labels"] == crowd["alphabet"]["names"]
    assert "--merge-labels" in refusal("perturb", mixed, *RESPONSE, "--labels", "yes,no,1", "--out", "refused")
    assert "merge_labels goes with a file" in refusal(
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
