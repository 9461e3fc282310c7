"""`crowdveil report`: reports are read as `infer` reads them, and others than those of the results are refused."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import LISTS, Refusal, Run, rows

RENAMED = {"task": "item_id", "worker": "person", "label": "verdict"}
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


def test_every_source_of_infer_has_agreement(folder: Path, run: Run) -> None:
    """JSON, a pattern, several files and standard input have the agreement of the same answers in one CSV file."""
    records = rows("labels.csv")
    Path("labels.json").write_text(json.dumps(records), "utf-8")
    write_table("part-1.csv", records[:100])
    write_table("part-2.csv", records[100:])
    found = {}
    for number, sources in enumerate((["labels.csv"], ["labels.json"], ["part-*.csv"], ["part-1.csv", "part-2.csv"])):
        run("infer", *sources, "--out", str(number))
        run("report", number, *(word for source in sources for word in ("--reports", source)))
        found[sources[-1]] = agreement_lines(Path(str(number), "report.html"))

    assert len(found["labels.csv"]) == 1
    assert [found["labels.csv"]] * len(found) == list(found.values())


def test_reports_are_read_with_the_options_of_infer(folder: Path, run: Run, refusal: Refusal) -> None:
    """Named columns are needed as for infer; without them the file is refused."""
    write_table("named.csv", [{RENAMED[name]: cell for name, cell in record.items()} for record in rows("labels.csv")])
    run("infer", "named.csv", *COLUMNS, "--out", "found")
    run("report", "found", "--reports", "named.csv", *COLUMNS)

    assert len(agreement_lines(Path("found/report.html"))) == 1
    assert "item_id" in refusal("report", "found", "--reports", "named.csv")


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
