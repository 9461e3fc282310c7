"""A folder of results names its reports: verbs on results read them again as `infer` did, or refuse."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from crowdveil.cli import main
from tests.cli.conftest import LISTS, Refusal, Run, RunJson, rows

VERBS = (("agreement",), ("review",), ("next", "--budget", 2), ("share",))
PERTURB = ("perturb", "labels.csv", "--mechanism", "randomized-response", "--epsilon", 3, *LISTS, "--out", "sent")


def messy(folder: Path) -> None:
    """Write the answers under other names, with a semicolon, in another order of labels and an empty answer."""
    lines = ["item_id;person;verdict", *(";".join(one.values()) for one in rows("labels.csv")), "a;v9;"]
    (folder / "messy.csv").write_text("\n".join(lines) + "\n", "utf-8")


MESSY = (
    *("--task-column", "item_id", "--worker-column", "person", "--label-column", "verdict"),
    *("--missing", "skip", "--labels", "yes,maybe,no", "--delimiter", ";"),
)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_verb_reads_the_reports_of_the_results_with_their_options(
    folder: Path, run: Run, run_json: RunJson, verb: tuple[object, ...]
) -> None:
    """The output for the folder is that for the reports with the options of `infer`, wherever the command is run."""
    messy(folder)
    run("infer", "messy.csv", *MESSY, "--out", "found")
    again = run_json(*verb, "found")

    assert again == run_json(*verb, "messy.csv", *MESSY)
    assert "No answer (NULL): 1 record." in again["warnings"]


def test_page_and_statement_read_protected_reports_elsewhere(folder: Path, run: Run, run_json: RunJson) -> None:
    """Epsilon stands on the page of results that are not beside their reports, and in their statement."""
    run(*PERTURB, "--labels", "no,yes,maybe")
    run("infer", "sent/reports.csv", "--out", "found")
    page, statement = run_json("report", "found"), run_json("statement", "found")

    assert ["protected", "protected"] == [page["privacy"], statement["privacy"]]
    assert pytest.approx(3.0) == page["epsilon_per_answer"] == statement["epsilon_per_answer"]


def test_declined_certificates_stay_declined(folder: Path, run: Run, run_json: RunJson, refusal: Refusal) -> None:
    """Protected reports that were read as answers have no guarantee, and are no answers for a review."""
    run(*PERTURB, "--labels", "no,yes,maybe")
    run("infer", "sent/reports.csv", "--no-certificate", "--out", "found")

    assert "none" == run_json("report", "found")["privacy"]
    assert "noise looks like bad work" in refusal("review", "found")


def test_each_of_several_questions_has_its_own_reports(folder: Path, run: Run, run_json: RunJson) -> None:
    """The folder of a question reads the answers to that question alone."""
    records = rows("labels.csv")
    both = [(*one.values(), name) for name, kept in (("p", records), ("q", records[3:])) for one in kept]
    Path("both.csv").write_text("\n".join(["task,worker,label,question", *map(",".join, both)]) + "\n", "utf-8")
    run("infer", "both.csv", "--out", "found")

    read = [sum(int(one["reports"]) for one in rows(f"found/{name}/workers.csv")) for name in ("p", "q")]
    assert [len(records), len(records) - 3] == read
    assert run_json("agreement", "found/q") == run_json("agreement", "both.csv", "--question", "q")


def changed(folder: Path) -> str:
    """Change one report."""
    text = (folder / "labels.csv").read_text("utf-8").splitlines()
    (folder / "labels.csv").write_text("\n".join(text[:-1]) + "\n", "utf-8")
    return "must be those from which the truths in the folder were inferred"


def moved(folder: Path) -> str:
    """Move the reports away."""
    (folder / "labels.csv").rename(folder / "elsewhere.csv")
    return "labels.csv"


def forged(folder: Path) -> str:
    """Let the record name an address."""
    record = json.loads((folder / "found/.crowdveil.json").read_text("utf-8"))
    for entry in record["files"]:
        entry["reading"]["sources"] = ["https://example.org/answers.csv"]
    (folder / "found/.crowdveil.json").write_text(json.dumps(record), "utf-8")
    return "the record of a folder must say how its reports were read"


@pytest.mark.parametrize("change", [changed, moved, forged])
def test_other_reports_than_those_of_the_results_are_refused(
    folder: Path, run: Run, refusal: Refusal, change: Callable[[Path], str]
) -> None:
    """A verb ends where the reports were changed, moved, or the record names an address."""
    run("infer", "labels.csv", "--out", "found")
    assert change(folder) in refusal("agreement", "found")


def test_options_of_reading_are_not_given_twice(folder: Path, run: Run) -> None:
    """The folder says how its reports were read: an option that says it again is wrong usage."""
    run("infer", "labels.csv", "--out", "found")
    assert "leave options of reading" in run("review", "found", "--labels", "no,yes,maybe", code=2).stderr


def test_results_that_were_moved_alone_still_make_a_page(folder: Path, run: Run, run_json: RunJson) -> None:
    """Without its reports a folder of results makes a page that states no privacy, and says what to name."""
    run("infer", "labels.csv", "--out", "found")
    Path("sub").mkdir()
    shutil.move("found", "sub/found")
    assert "--reports" in run("report", "sub/found").stdout
    assert "none" == run_json("report", "sub/found")["privacy"]


def test_standard_input_is_not_recorded(folder: Path) -> None:
    """It cannot be read twice."""
    result = CliRunner().invoke(main, ["infer", "-", "--out", "found"], input=Path("labels.csv").read_bytes())
    assert 0 == result.exit_code
    assert "reading" not in Path("found/.crowdveil.json").read_text("utf-8")
