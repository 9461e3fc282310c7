"""`crowdveil report`, and verbs on a folder of results: reports are read as `infer` read them, or refused."""

import json
import re
import shutil
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner

from crowdveil.cli import main
from tests.cli.conftest import LABELS, LISTS, Refusal, Run, RunJson, rows

COLUMNS = ("--task-column", "item_id", "--worker-column", "person", "--label-column", "verdict")
OTHER = "the truths must be inferred from these reports"


def agreement_lines(page: Path) -> list[str]:
    """Return the lines of a page that state agreement."""
    return [line.strip() for line in page.read_text("utf-8").splitlines() if "Krippendorff" in line]


def write_table(path: str, records: list[dict[str, str]]) -> None:
    """Write records as a CSV file."""
    lines = [",".join(record.values()) for record in records]
    Path(path).write_text("\n".join([",".join(records[0]), *lines]) + "\n", "utf-8")


def test_a_page_does_not_name_another_question(folder: Path, run: Run, refusal: Refusal) -> None:
    """--question is the text of the page: that of another question of the reports is refused, any other is taken."""
    records = rows("labels.csv")
    both = [{**one, "question": name} for name, kept in (("first", records), ("second", records[1:])) for one in kept]
    write_table("both.csv", both)
    run("infer", "both.csv", "--out", "found")
    words = ("report", "found/second", "--reports", "both.csv", "--question")

    assert "the question 'first', but the truths are those of 'second'" in refusal(*words, "first")
    for text in ("second", "What is it?"):
        run(*words, text)


def test_reports_are_read_through_the_channel_that_infer_used(folder: Path, run: Run, refusal: Refusal) -> None:
    """Truths through a channel have no page that reads the reports as answers, nor the other way round."""
    words = ("--mechanism", "randomized-response", "--epsilon", "2", "--labels", "no,yes,maybe", "--seed", "1")
    run("perturb", "labels.csv", *words, "--out", "sent")
    run("infer", "sent/reports.csv", "--out", "found")
    run("infer", "sent/reports.csv", "--no-certificate", "--out", "read")
    reports, declined = ("--reports", "sent/reports.csv"), "--no-certificate"

    assert OTHER in refusal("report", "found", *reports, declined)
    assert OTHER in refusal("report", "read", *reports)
    run("report", "found", *reports)
    run("report", "read", *reports, declined)


@pytest.mark.parametrize("change", ["numbers", "one label", "a row less"])
def test_other_reports_are_refused(change: str, folder: Path, run: Run, refusal: Refusal) -> None:
    """Another data set is refused, and so is the same one after an edit of one row."""
    run("infer", "labels.csv", "--out", "found")
    records = rows("labels.csv")
    edited = [{**records[0], "label": "no" if records[0]["label"] == "yes" else "yes"}, *records[1:]]
    write_table("other.csv", {"numbers": rows("numbers.csv"), "one label": edited, "a row less": records[:-1]}[change])

    assert OTHER in refusal("report", "found", "--reports", "other.csv")
    assert not Path("found/report.html").exists()


def test_results_without_a_record_of_their_reports_are_refused(folder: Path, run: Run, refusal: Refusal) -> None:
    """A record of an earlier version names no reports, so none are accepted; the page without them is written."""
    run("infer", "labels.csv", "--out", "found")
    record = json.loads(Path("found/.crowdveil.json").read_text("utf-8"))
    for entry in record["files"]:
        del entry["reports_sha256"]
    Path("found/.crowdveil.json").write_text(json.dumps(record), "utf-8")

    assert OTHER in refusal("report", "found", "--reports", "labels.csv")
    run("report", "found")
    assert [] == agreement_lines(Path("found/report.html"))


@pytest.mark.parametrize("form", ["csv", "json"])
def test_the_question_is_found_by_the_record(form: str, folder: Path, run: Run) -> None:
    """Of a source with several questions, agreement is that of the question that was inferred."""
    swap = {"no": "yes", "yes": "yes", "maybe": "maybe"}
    records = [{**record, "question": "first"} for record in rows("labels.csv")]
    records += [{**record, "question": "second", "label": swap[record["label"]]} for record in rows("labels.csv")]
    write_table("both.csv", records)
    Path("both.json").write_text(json.dumps(records), "utf-8")
    write_table("second.csv", [record for record in records if record["question"] == "second"])
    run("infer", "second.csv", "--out", "alone")
    run("report", "alone", "--reports", "second.csv")
    run("infer", f"both.{form}", "--question", "second", "--out", "chosen")
    run("report", "chosen", "--reports", f"both.{form}")
    run("infer", f"both.{form}", "--out", "all")
    run("report", "all/second", "--reports", f"both.{form}")
    known = agreement_lines(Path("alone/report.html"))

    assert len(known) == 1
    for name in ("chosen", "all/second"):
        assert known == agreement_lines(Path(name, "report.html"))


def test_another_collection_in_the_folder_of_the_results_is_refused(folder: Path, run: Run, refusal: Refusal) -> None:
    """Truths of answers do not take the statement of reports in their folder, even with equal numbers of reports."""
    words = ("--mechanism", "randomized-response", "--epsilon", 3, "--labels", "no,yes,maybe", *LISTS, "--replace")
    run("perturb", "labels.csv", *words, "--participation", "public", "--out", "sent")
    run("infer", "sent/reports.csv")
    run("perturb", "labels.csv", *words, "--participation", "public", "--out", "sent")

    for verb in ("report", "statement"):
        assert OTHER in refusal(verb, "sent")


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


def test_declined_certificates_stay_declined(folder: Path, run: Run, run_json: RunJson, refusal: Refusal) -> None:
    """Protected reports that were read as answers have no guarantee, and are no answers for a review."""
    run(*PERTURB, "--labels", "no,yes,maybe")
    run("infer", "sent/reports.csv", "--no-certificate", "--out", "found")

    assert "none" == run_json("report", "found")["privacy"]
    assert "noise counts as a worker's errors" in refusal("review", "found")


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


def test_options_of_reading_are_not_given_twice(folder: Path, run: Run) -> None:
    """The folder says how its reports were read: an option that says it again is wrong usage."""
    run("infer", "labels.csv", "--out", "found")
    assert "Leave out options of reading" in run("review", "found", "--labels", "no,yes,maybe", code=2).stderr


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


def contradicted(option: str, wrong: int, run: Run, run_json: RunJson) -> tuple[list[str], str]:
    """Return the warnings of infer, and the page of its results, where some known truths contradict the inferred."""
    gold = [(row["task"], LABELS.index(row["truth"])) for row in rows("labels-gold.csv")]
    write_table(
        "known.csv",
        [{"task": task, "truth": LABELS[(truth + (place < wrong)) % 3]} for place, (task, truth) in enumerate(gold)],
    )
    warnings = run_json("infer", "labels.csv", option, "known.csv", "--out", "found")["warnings"]
    run("report", "found")
    page = unescape(re.sub("</?code>", "`", Path("found/report.html").read_text("utf-8")))
    return warnings, page


def test_the_page_has_the_warnings_of_infer(folder: Path, run: Run, run_json: RunJson) -> None:
    """Where gold contradicts the inferred truths, the page says what the terminal says."""
    warnings, page = contradicted("--gold", 2, run, run_json)

    assert any("Gold makes the probabilities worse" in text for text in warnings)
    assert [] == [text for text in warnings if f"<p>{text}</p>" not in page]


def test_the_page_does_not_depend_on_a_score(folder: Path, run: Run, run_json: RunJson) -> None:
    """What a score says is printed and written nowhere: files and page are those without it."""
    warnings, page = contradicted("--score", 20, run, run_json)
    record = Path("found/.crowdveil.json").read_text("utf-8")
    files = {name: Path("found", name).read_bytes() for name in ("truths.csv", "workers.csv", "report.html")}
    run("infer", "labels.csv", "--out", "found")
    run("report", "found")

    assert ["scores as well or better" in text for text in warnings] == [True]
    assert [warnings[0] in text for text in (page, record)] == [False, False]
    assert files == {name: Path("found", name).read_bytes() for name in files}
