"""`crowdveil infer` with limits: the same numbers, or a refusal that says what is needed."""

import re
from collections.abc import Callable
from typing import Any

import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

from crowdveil.answers.sources.answer_source import AnswerSource
from crowdveil.cli.options import parse_bytes
from crowdveil.display.counts import size_text
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("text", "count"),
    [("1", 1), ("2GB", 2 * 10**9), ("1.5 GiB", 3 * 2**29), ("500m", 5 * 10**8), ("8KB", 8000), ("3TiB", 3 * 2**40)],
)
def test_sizes_are_read(text: str, count: int) -> None:
    """A size is a number with a unit, decimal or binary, in any case, with or without a blank or the B."""
    assert count == parse_bytes(text)


@pytest.mark.parametrize("text", ["", "GB", "2 XB", "-1GB", "2GB4", "1e9"])
def test_other_sizes_are_refused(text: str) -> None:
    """What is no size is a wrong use of the command."""
    with pytest.raises(ValueError, match="is not a size such as 2GB"):
        parse_bytes(text)


def test_memory_changes_no_number(run: Run, run_json: Callable[..., dict[str, Any]]) -> None:
    """Under a limit the command prints what it prints without."""
    run("data", "encode", "labels.csv", "--out", "blocks")

    found = [run_json("infer", "blocks", *words) for words in ((), ("--memory", "8GB"))]

    assert found[0] | {"replaced": ["blocks/truths.csv", "blocks/workers.csv"]} == found[1]


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet"])
def test_files_above_the_limit_are_refused_before_they_are_read(
    form: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size of a file tells what reading takes, in the unit of the limit; a larger limit is accepted."""
    table = pyarrow.csv.read_csv("labels.csv")
    large = pyarrow.concat_tables([table] * 2000)
    if form == "parquet":
        pyarrow.parquet.write_table(large, "large.parquet")
    else:
        pyarrow.csv.write_csv(large, pyarrow.output_stream(f"large.{form}", compression="detect"))
    words = ("infer", f"large.{form}", "--duplicates", "first", "--memory")
    with monkeypatch.context() as patch:
        patch.setattr(AnswerSource, "by_question", None)
        message = run(*words, "50MB", code=1).stderr
    least = re.search(r"must be about ([\d.]+ MB) or more to read these files, got 50 MB\.", message)

    assert least
    assert 150 * large.num_rows < parse_bytes(least[1]) < 210 * large.num_rows
    assert "crowdveil data encode" in message
    run(*words, least[1], "--out", "found")


def test_sizes_are_shown_rounded_up() -> None:
    """A size that a message asks for is enough when it is given."""
    sizes = {1: "1 byte", 999: "999 bytes", 1000: "1 KB", 51_210_001: "51.3 MB", 2 * 10**9: "2 GB"}

    assert list(sizes.values()) == list(map(size_text, sizes))


@pytest.mark.slow
def test_an_engine_changes_no_number(run_json: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a local cluster the command prints what it prints without, of encoded blocks."""
    monkeypatch.setenv("CROWDVEIL_THREADS", "1")
    run_json("data", "encode", "labels.csv", "--out", "blocks")

    found = [run_json("infer", "blocks", *words) for words in ((), ("--engine", "dask"))]

    assert found[0] | {"replaced": ["blocks/truths.csv", "blocks/workers.csv"]} == found[1]
