"""`crowdveil data`: what is at hand, where it is published, and its conversion."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run


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
    assert ["duchenne: the files are not those on which the committed results were measured"] == first["warnings"]
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
