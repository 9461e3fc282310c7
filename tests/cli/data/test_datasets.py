"""`crowdveil data`: sets at hand, their conversion, and encoded folders that infer as the file does."""

import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from crowdveil.answers.reports import Reports
from crowdveil.files.output_record import RECORD_FILE
from tests.answers.test_reports import cells
from tests.cli.conftest import LABELS, LISTS, Run, RunJson


def test_sources_name_publisher_licence_files_and_sha256(
    run: Run, run_json: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without data every set is missing, with its publisher, licence, published files and SHA-256; none is invented."""
    monkeypatch.setenv("CROWDVEIL_DATA", "nowhere")
    found = run_json("data", "sources")["sources"]
    shown = run("data", "sources", "snow_wsd").stdout

    assert {("missing", None)} == {(one["state"], one["published_sha256"]) for one in found}
    assert {64} == {len(digest) for one in found for digest in one["sha256"].values()}
    assert all(one["publisher"] and one["licence"] and one["published"] for one in found)
    for text in ("missing", "sites.google.com", "not stated", "wsd.standardized.tsv", "SHA-256 not known"):
        assert text in shown


def test_published_files_are_converted_and_compared(
    run: Run, run_json: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conversion goes to the data directory; other contents than those of the committed results are a warning."""
    monkeypatch.setenv("CROWDVEIL_DATA", "data")
    Path("published").mkdir()
    Path("published/workerResponses.txt").write_text("A9\t1\t1\nB7\t1\t0\n")
    Path("published/groundTruth.txt").write_text("1\t1\n")
    words = ("data", "sources", "duchenne", "--from", "published")
    first, again = run_json(*words), run_json(*words)

    assert ["answers.csv", "truth.csv", "meta.json"] == [Path(path).name for path in first["files"]]
    assert ["duchenne: these files differ from those on which the committed results were measured"] == first["warnings"]
    assert sorted(first["files"]) == sorted(again["replaced"])
    assert [("duchenne", 2)] == [(one["name"], one["pairs"]) for one in run_json("data", "list")["datasets"]]


def test_a_set_of_another_origin_is_not_replaced(run: Run) -> None:
    """A file that a conversion did not write, compressed answers too, stays as it is."""
    Path("data/duchenne").mkdir(parents=True)
    Path("data/duchenne/answers.csv.gz").write_bytes(b"mine")
    Path("workerResponses.txt").write_text("A9\t1\t1\n")
    Path("groundTruth.txt").write_text("1\t1\n")

    assert "not replaced" in run("data", "sources", "duchenne", "--from", ".", "--out", "data", code=1).stderr
    assert ["answers.csv.gz"] == [path.name for path in Path("data/duchenne").iterdir()]


RESPONSE = ("--mechanism", "randomized-response", "--epsilon", 2, "--labels", ",".join(LABELS), "--seed", 4)


@pytest.fixture
def blocks(run: Run) -> Path:
    """Return a folder with encoded reports of randomized response, made from `sent/reports.csv`."""
    run("perturb", "labels.csv", *RESPONSE, "--out", "sent")
    run("data", "encode", "sent/reports.csv", "--out", "blocks")
    return Path("blocks")


@pytest.mark.parametrize("form", ["blocks", "parquet"])
def test_perturb_writes_other_forms(form: str, run: Run, run_json: RunJson) -> None:
    """Blocks and Parquet hold the reports of the CSV file, replace it if asked to, and are inferred from alike."""
    run("perturb", "labels.csv", *RESPONSE, "--out", "sent")
    wanted, plain = run_json("infer", "sent/reports.csv", "--out", "a"), cells(Reports.from_csv("sent/reports.csv"))
    data = run_json("perturb", "labels.csv", *RESPONSE, "--out", "sent", "--format", form, "--replace")
    path = "sent" if form == "blocks" else "sent/reports.parquet"
    found = run_json("infer", path, "--out", "b")

    assert sorted(os.path.basename(name) for name in data["files"]) == sorted({*os.listdir("sent")} - {RECORD_FILE})
    assert "reports.csv" not in os.listdir("sent")
    assert plain == cells(Reports.open(path) if form == "blocks" else Reports.from_parquet(path))
    assert wanted["truths"] == found["truths"]


def test_more_reports_than_memory_holds_are_refused(
    refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports are held in memory: more than fit are refused."""
    collection = import_module("crowdveil.simulate.perturbed_collection")
    monkeypatch.setattr(collection, "MAX_REPORTS", 20)

    assert "at most 20 reports" in refusal("perturb", "labels.csv", *RESPONSE[:-2], *LISTS, "--out", "sent")


def test_a_folder_is_read_as_it_is(blocks: Path, refusal: Callable[..., str]) -> None:
    """Kind and duplicates are said when encoding; labels must be those of the blocks; blocks have their own folder."""
    assert "to encode" in refusal("infer", "blocks", "--duplicates", "first")
    assert "to encode" in refusal("infer", "blocks", "--kind", "numeric")
    assert "labels or scale" in refusal("infer", "blocks", "--labels", "a,b")
    assert "a folder other than the input folder" in refusal("data", "encode", "sent/reports.csv", "--out", "sent")


@pytest.mark.parametrize("form", ["csv", "blocks"])
def test_repeated_pairs_do_not_go_through_a_channel(form: str, run: Run, refusal: Callable[..., str]) -> None:
    """Repeated pairs are kept of answers only: with a certificate a worker sends one report on a task."""
    run("perturb", "labels.csv", *RESPONSE, "--out", "sent")
    rows = Path("sent/reports.csv").read_text()
    Path("twice.csv").write_text(rows + rows.splitlines()[1] + "\n")
    run("data", "encode", "twice.csv", "--duplicates", "all", "--labels", ",".join(LABELS), "--out", "blocks")
    source = ("twice.csv", "--duplicates", "all") if form == "csv" else ("blocks",)
    run("infer", *source, "--out", "found")

    message = refusal("infer", *source, "--certificate", "sent/certificate.json", "--out", "again")

    assert "a channel needs one report of a worker on a task" in message


def test_files_that_do_not_belong_together_are_refused(blocks: Path, refusal: Callable[..., str]) -> None:
    """A crowd that names other blocks or a file, or a certificate over other labels, does not go with blocks."""
    named, listed = (json.loads(Path(folder, "crowd.json").read_bytes()) for folder in ("blocks", "sent"))
    for other, said in (({**named, "blocks_sha256": "0" * 64}, "unchanged"), (listed, "belongs to a file of reports")):
        (blocks / "crowd.json").write_text(json.dumps(other))
        assert said in refusal("infer", "blocks")

    Reports.from_arrays(["a", "b"], ["v", "v"], ["x", "y"]).save("other")
    os.replace("sent/certificate.json", "other/certificate.json")
    assert "labels or scale of certificate and crowd.json" in refusal("infer", "other")


def test_an_old_crowd_does_not_stay(blocks: Path, run: Run) -> None:
    """Blocks of plain answers that replace blocks of reports leave no certificate and no crowd behind."""
    run("data", "encode", "labels.csv", "--out", "blocks", "--replace")

    assert {"certificate.json", "crowd.json"}.isdisjoint(os.listdir(blocks))


def test_without_a_directory_the_way_out_is_shown(
    run: Run, run_json: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No data is no error: an empty list, and the name of the variable to set."""
    monkeypatch.setenv("CROWDVEIL_DATA", "nowhere")

    assert "CROWDVEIL_DATA" in run("data", "list").stdout
    data = run_json("data", "list")
    assert ("nowhere", []) == (data["directory"], data["datasets"])
