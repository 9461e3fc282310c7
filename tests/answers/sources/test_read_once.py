"""A source is opened and sniffed once: opens of a file, and files of readers that are entered, in a child process."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[3] / "docs" / "samples" / "labels.csv"
PROGRAM = """
import inspect, json, os, sys, threading
import crowdveil.answers.reports
from crowdveil.cli import main

target, package = os.path.abspath(sys.argv[2]), os.path.dirname(crowdveil.__file__) + os.sep
opened, entered = [], set()

def count_opens(event, arguments):
    if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        opened.extend([target] if os.path.abspath(os.fsdecode(arguments[0])) == target else [])

def note_file(frame, event, _):
    code = frame.f_code
    # A class body is entered when its module is imported, and is no part of reading.
    is_function = code.co_flags & inspect.CO_NEWLOCALS
    if event == "call" and is_function and code.co_filename.startswith(package + "data" + os.sep):
        entered.add(code.co_filename.removeprefix(package))

def end_of_reading(*arguments, **options):
    reports = from_columns(*arguments, **options)
    sys.setprofile(None)
    threading.setprofile(None)
    return reports

from_columns = crowdveil.answers.reports.Reports.from_columns
crowdveil.answers.reports.Reports.from_columns = end_of_reading
sys.addaudithook(count_opens)
sys.setprofile(note_file)
threading.setprofile(note_file)
sys.argv[0] = "crowdveil"
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps({"opened": len(opened), "entered": sorted(entered)}), file=sys.stderr)
"""


def traced(*arguments: str) -> dict:
    """How often the second argument is opened by a command, and the files of readers that it enters before reports."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True)
    return json.loads(done.stderr.strip().splitlines()[-1])


def test_a_table_is_opened_three_times_and_enters_twelve_readers(tmp_path: Path) -> None:
    """`infer` opens a file of answers at most to look for sums, to sniff it and to parse it."""
    found = traced("infer", str(SAMPLE), "--out", str(tmp_path))

    assert found["opened"] <= 3
    assert len(found["entered"]) <= 12, found["entered"]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("semicolons.csv", lambda text: text.replace(",", ";").encode()),
        ("zipped.csv.gz", lambda text: gzip.compress(text.encode())),
        ("wide.txt", lambda text: text.replace(",", "\t").encode("utf-16")),
        (
            "lines.jsonl",
            lambda text: "\n".join(
                json.dumps(dict(zip(("task", "worker", "label"), row.split(","), strict=True)))
                for row in text.splitlines()[1:]
            ).encode(),
        ),
    ],
)
def test_every_form_is_opened_three_times(tmp_path: Path, name: str, change: Callable[[str], bytes]) -> None:
    """Other delimiters, compressions, encodings and JSON lines are sniffed once, too."""
    path = tmp_path / name
    path.write_bytes(change(SAMPLE.read_text("utf-8")))

    assert traced("infer", str(path), "--out", str(tmp_path / "out"))["opened"] <= 3


def test_an_export_is_sniffed_once(tmp_path: Path) -> None:
    """Recognition of a tool's export reads the start of the file once; its questions are found, then read."""
    path = tmp_path / "toloka.tsv"
    rows = [f"{worker}\tt{task}\t{label}" for task in range(4) for worker, label in zip("abc", "yyn", strict=True)]
    path.write_text("\n".join(["ASSIGNMENT:worker_id\tINPUT:id\tOUTPUT:label", *rows]) + "\n", "utf-8")

    assert traced("infer", str(path), "--out", str(tmp_path / "out"))["opened"] <= 4
