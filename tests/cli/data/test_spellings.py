"""Labels of several files under one name, and names of tasks and workers that differ only in spaces or case."""

import json
from pathlib import Path

import pandas as pd
import pytest

from crowdveil.answers.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from tests.cli.conftest import Run, RunJson, rows, write

FILES = ("a.csv", "b.csv")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files whose labels are spelt in two ways each."""
    monkeypatch.chdir(tmp_path)
    write("a.csv", "task,worker,label", "1,a,Y", "1,b, Y", "2,a,N", "2,b,N")
    write("b.csv", "task,worker,label", "1,c, Yes", "1,d,yes", "2,c,no", "2,d,no")


def test_a_map_gives_labels_one_name(run_json: RunJson) -> None:
    """Labels are replaced, then spellings merged; what remains is said, and what no answer has."""
    write("map.csv", "from,to", "Y,yes", "N,no")
    asked = ("--merge-labels", "--out", "found", "--map-labels")

    found = run_json("infer", *FILES, *asked, "Y=yes,N=no,?=no")
    again = run_json("infer", *FILES, *asked, "map.csv")

    assert [row["truth"] for row in rows("found/truths.csv")] == ["yes", "no"]
    assert found["truths"] == again["truths"]
    notes = " ".join(found["warnings"])
    assert "Labels after the map: ' Yes' (1 answer), 'no' (4 answers), 'yes' (3 answers)." in notes
    assert "No answer has these labels of the map: '?'." in notes


def test_a_folder_of_results_keeps_the_map(run_json: RunJson) -> None:
    """Verbs on results read the answers with the same map."""
    run_json("infer", *FILES, "--map-labels", "Y=yes,N=no, Yes=yes", "--out", "found")

    assert run_json("agreement", "found")["alpha"]["nominal"]["value"] == 1


@pytest.mark.parametrize("text", ["Y", "Y=", "=yes", "Y=yes,Y=no", "three.csv", ""])
def test_a_map_that_is_none_is_refused(run: Run, text: str) -> None:
    """Pairs have two sides, a file two columns, and a label one name; nothing is written."""
    write("three.csv", "a,b,c", "1,2,3")

    assert "'--map-labels'" in run("infer", *FILES, "--map-labels", text, "--out", "found", code=2).output
    assert not Path("found").exists()


def test_python_has_the_map() -> None:
    """A frame and a file are read with a dict of labels."""
    frame, answers = pd.read_csv("a.csv"), {"Y": "yes", "N": "no"}

    assert Reports.from_frame(frame, map_labels=answers).alphabet.names == ("no", "yes")
    assert Reports.from_csv("a.csv", map_labels=answers).alphabet.names == ("no", "yes")
    with pytest.raises(SettingsError, match="map_labels"):
        Reports.from_csv("a.csv", map_labels="Y=yes")  # type: ignore[arg-type]


def test_a_refusal_does_not_propose_what_was_asked() -> None:
    """Unknown labels after a merge are to be mapped; without it, merging is proposed."""
    from crowdveil.channels.alphabet import Categories

    with pytest.raises(ReportsError) as merged:
        Reports.from_csv("a.csv", merge_labels=True, alphabet=Categories(("yes", "no")))
    with pytest.raises(ReportsError, match="merge_labels=True"):
        Reports.from_csv("a.csv", alphabet=Categories(("yes", "no")))

    assert "merge" not in merged.value.hint
    assert "map the labels" in merged.value.hint


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_names_that_differ_in_spaces_or_case_are_named(run_json: RunJson, form: str) -> None:
    """Tasks q1, Q1 and workers bob, bob with a space are named, and the answer that bob repeats under both."""
    frame = pd.DataFrame(
        [("q1", "ann", "yes"), ("q1 ", "bob", "yes"), ("Q1", "cyd", "no"), ("q2", "bob ", "no"), ("q2", "bob", "yes")],
        columns=["task", "worker", "label"],
    )
    path = f"names.{form}"
    if form == "csv":
        frame.to_csv(path, index=False)
    elif form == "jsonl":
        write(path, *(json.dumps(row) for row in frame.to_dict("records")))
    else:
        frame.to_parquet(path)

    notes = " ".join(run_json("infer", path, "--out", "found")["warnings"])

    assert "read as different tasks: 'Q1' (1 answer), 'q1' (1 answer), 'q1 ' (1 answer)." in notes
    assert "read as different workers: 'bob' (2 answers), 'bob ' (1 answer)." in notes
    assert "1 answer of a worker to a task would be repeated, such as (q2, bob)" in notes


@pytest.mark.parametrize(
    ("names", "named"),
    [
        (("straße", "STRASSE"), False),
        (("Å", "A\u030a"), True),
        (("a\u200bb", "ab"), True),
        (("ÉCOLE", "école"), True),
        (("1", "01"), False),
        (("a", "b"), False),
    ],
)
def test_unicode_forms_and_invisible_characters_are_compared(
    run_json: RunJson, names: tuple[str, str], named: bool
) -> None:
    """Composed and combined letters, letters in upper case, and zero-width spaces make no other name."""
    answers = [f"{task},{name},{label}" for name, label in zip(names, "xy", strict=True) for task in "12"]
    write("names.csv", "task,worker,label", *answers)

    notes = " ".join(run_json("infer", "names.csv", "--out", "found")["warnings"])

    assert named == ("read as different workers" in notes)
