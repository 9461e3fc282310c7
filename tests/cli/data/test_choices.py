"""Several choices on the command line: the same truths from each form, and options that say how they are read."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Refusal, RunJson, rows, write

TICKED = {
    "1": (["spam", "ad"], [], []),
    "2": (["ad"], [], []),
    "3": ([], [], []),
    "4": (["spam"], ["spam"], ["spam"]),
    "5": (["ad"], ["ad"], []),
    "6": ([], [], ["spam"]),
}
"""What each of three workers ticked in each task."""
NOT_TICKED = {"1|spam", "1|ad", "2|spam", "2|ad", "3|spam", "3|ad", "4|ad", "5|spam", "6|ad", "6|spam"}


def export(path: str) -> str:
    """Write the ticks as records of Argilla."""
    records = [
        {
            "id": task,
            "tags.responses": list(given),
            "tags.responses.users": ["u", "v", "w"],
            "tags.responses.status": ["submitted"] * 3,
        }
        for task, given in TICKED.items()
    ]
    return write(path, json.dumps(records))


def table(path: str) -> str:
    """Write the ticks with semicolons between them."""
    cells = [f"{task},{n},{';'.join(one) or '[]'}" for task, given in TICKED.items() for n, one in enumerate(given)]
    return write(path, "task,worker,label", *cells)


@pytest.mark.parametrize(("write_form", "options"), [(export, ()), (table, ("--multiple", ";"))])
def test_what_nobody_ticked_is_no(run_json: RunJson, write_form: object, options: tuple[str, ...]) -> None:
    """A choice that most leave out is no, agreement counts it, and its share is that of all who answered."""
    answers = write_form("answers.json" if write_form is export else "answers.csv")  # type: ignore[operator]

    found = run_json("infer", answers, *options, "--out", "found")
    agreement = run_json("agreement", answers, *options)

    assert {row["task"] for row in rows("found/truths.csv") if row["truth"] == "no"} == NOT_TICKED
    assert agreement["alpha"]["nominal"]["value"] == pytest.approx(0.279835, abs=1e-6)
    assert any("nothing ticked (--nothing-ticked skip" in text for text in found["warnings"])


def test_the_options_are_those_of_the_results(run_json: RunJson) -> None:
    """A folder of results reads the reports again with the separator and the meaning of nothing ticked."""
    run_json("infer", table("answers.csv"), "--multiple", ";", "--nothing-ticked", "skip", "--out", "found")

    assert (
        run_json("agreement", "found")["answers"]
        == run_json("agreement", export("e.json"), "--nothing-ticked", "skip")["answers"]
    )


def test_a_private_table_of_several_choices_is_refused(refusal: Refusal) -> None:
    """With public lists what is read must not follow from the answers; nothing is written."""
    lists = ("--tasks", write("t.csv", "task", "1"), "--workers", write("w.csv", "worker", "0", "1", "2"))
    asked = ("--mechanism", "randomized-response", "--epsilon", 1, "--labels", "no,yes", "--out", "sent")

    assert "one choice each" in refusal("perturb", table("answers.csv"), *asked, *lists, "--multiple", ";")
    assert not Path("sent").exists()
