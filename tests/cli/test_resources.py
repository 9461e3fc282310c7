"""`crowdveil infer` with limits: the same numbers, or a refusal that says what is needed."""

import errno
import io
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

from crowdveil.answers.ingest import mapped_codes
from crowdveil.answers.sources.answer_source import AnswerSource
from crowdveil.cli.options import parse_bytes
from crowdveil.display.counts import size_text
from tests.cli.conftest import Run

LIMIT = 70_000_000
SAMPLED = f"""
import sys, threading
from crowdveil.cli import start

def anonymous():
    lines = open("/proc/self/status").readlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("RssAnon:")))

def run(*words):
    peak, ended = [0], threading.Event()
    def sample():
        while not ended.wait(0.005):
            peak[0] = max(peak[0], anonymous())
    threading.Thread(target=sample, daemon=True).start()
    sys.argv[1:] = ["infer", *words, "--out", "found", "--method", "one-coin", "--max-steps", "2"]
    try:
        start()
    except SystemExit as end:
        assert not end.code
    ended.set()
    print(peak[0], file=sys.stderr)

run("labels.csv")
run("many.csv", "--memory", "{LIMIT}")
run("many.csv")
"""
"""Program that prints the peak of the anonymous memory of three runs of `infer`."""


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


def large_file(form: str, answers: int = 2000 * 240) -> str:
    """Write a file of repeated answers to forty tasks of ten workers, and return its name."""
    row = numpy.arange(answers)
    table = pyarrow.table({"task": row % 40, "worker": row // 40 % 10, "label": row // 13 % 3})
    if form == "parquet":
        pyarrow.parquet.write_table(table, "large.parquet")
    elif form == "jsonl":
        with open("large.jsonl", "w") as stream:
            stream.writelines(f"{json.dumps(one)}\n" for one in table.to_pylist())
    else:
        pyarrow.csv.write_csv(table, pyarrow.output_stream(f"large.{form}", compression="detect"))
    return f"large.{form}"


def test_files_above_the_limit_that_are_read_at_once_are_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of a file tells what reading takes, in the unit of the limit; a larger limit is accepted."""
    words = ("infer", large_file("jsonl"), "--duplicates", "first", "--memory")
    with monkeypatch.context() as patch:
        patch.setattr(AnswerSource, "by_question", None)
        message = run(*words, "50MB", code=1).stderr
    least = re.search(r"must be about ([\d.]+ MB) or more to read these files, got 50 MB\.", message)

    assert least
    assert 150 * 480_000 < parse_bytes(least[1]) < 260 * 480_000
    assert "crowdveil data encode" in message
    run(*words, least[1], "--out", "found")


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet"])
def test_files_above_the_limit_are_read_in_batches(
    form: str, run_json: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The command prints and writes what it does without a limit, and leaves no temporary file."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    words = ("infer", large_file(form), "--duplicates", "first", "--out", "found")

    free = run_json(*words)
    truths, workers = (Path("found", name).read_bytes() for name in ("truths.csv", "workers.csv"))
    limited = run_json(*words, "--memory", "60MB")

    assert free | {"replaced": ["found/truths.csv", "found/workers.csv"]} == limited
    assert [truths, workers] == [Path("found", name).read_bytes() for name in ("truths.csv", "workers.csv")]
    assert not list((tmp_path / "temporary").iterdir())


def test_a_full_disk_asks_for_another_try(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where temporary files of reading find no space, the command says which folder it is, and ends with 75."""

    class Full(io.BytesIO):
        name = "/full/codes"

        def write(self, _: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(mapped_codes, "NamedTemporaryFile", lambda **_: Full())
    result = run("infer", large_file("csv"), "--duplicates", "first", "--memory", "60MB", code=75)

    assert "need space for temporary files (No space left on device), got '/full'. Set TMPDIR" in result.stderr


@pytest.mark.slow
def test_the_command_keeps_to_its_limit_while_it_reads(folder: Path) -> None:
    """A million answers, of which reading at once takes twice the limit, stay within it: the anonymous memory of the
    process is sampled, and compared with that of a run on a small file."""
    row = numpy.random.default_rng(1).permutation(1_000_000)
    names = {
        "task": numpy.char.add("task ", (row // 20).astype(str)),
        "worker": numpy.char.add("w", (row % 20).astype(str)),
    }
    pyarrow.csv.write_csv(pyarrow.table({**names, "label": row // 7 % 3}), "many.csv")
    # The compiler takes more memory than reading; after one run its code is cached.
    compiling = ["infer", "many.csv", "--out", "compiled", "--method", "one-coin", "--max-steps", "2"]
    subprocess.run([sys.executable, "-m", "crowdveil", *compiling], check=True, capture_output=True)
    ended = subprocess.run([sys.executable, "-c", SAMPLED], check=True, capture_output=True, text=True)
    small, limited, free = (int(line) for line in ended.stderr.splitlines() if line.isdecimal())

    assert limited - small < LIMIT
    assert free - small > LIMIT


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
