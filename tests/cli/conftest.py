"""Small crowds as files, and a way to run a command on them."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from crowdveil import cli
from crowdveil.answers.write_reports import ordered_reports_table, write_table
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.cli import main
from crowdveil.cli.display import error_document, error_line
from crowdveil.files.output_record import RECORD_FILE
from crowdveil.randomness import seeded
from crowdveil.simulate import Crowd, categorical_crowd, numeric_crowd

Run = Callable[..., Result]
RunJson = Callable[..., dict[str, Any]]
Refusal = Callable[..., str]
LABELS = ("no", "yes", "maybe")
LISTS = ("--tasks", "tasks.csv", "--workers", "every-worker.csv")
"""All tasks and workers of both crowds: what a run without a seed needs where participation is protected."""


def written(folder: str | Path) -> set[str]:
    """Names of what is in a folder, but for the record of what was written there."""
    return {path.name for path in Path(folder).iterdir()} - {RECORD_FILE}


def write_crowd(folder: Path, crowd: Crowd, stem: str) -> None:
    """Write `<stem>.csv` with the answers and `<stem>-gold.csv` with the truths."""
    table = ordered_reports_table(crowd.answers)
    with open(folder / f"{stem}.csv", "wb") as stream:
        write_table(stream, table)
    rows = "".join(f"{task},{truth}\n" for task, truth in crowd.gold.items())
    (folder / f"{stem}-gold.csv").write_text("task,truth\n" + rows, "utf-8")


def rows(path: str | Path) -> list[dict[str, str]]:
    """Rows of a CSV file by column name."""
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def write(path: str, *lines: str) -> str:
    """Write a text file and return its name."""
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_label_studio(path: str, kind: str, answers: list[dict[Any, Any]], *, first: int = 0) -> None:
    """Write an export of Label Studio: for each task the value of each worker, a choice, rating or number."""
    annotations = [
        [
            {
                "id": 10 * number + place,
                "completed_by": {"email": worker} if isinstance(worker, str) else worker,
                "result": [{"from_name": "q", "to_name": "t", "type": kind, "value": {kind: value}}],
            }
            for place, (worker, value) in enumerate(values.items())
        ]
        for number, values in enumerate(answers)
    ]
    tasks = [
        {"id": first + number, "data": {"text": str(number)}, "annotations": given}
        for number, given in enumerate(annotations)
    ]
    Path(path).write_text(json.dumps(tasks), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with a crowd of labels (`labels.csv`) and one of numbers (`numbers.csv`), each with gold, and
    the lists of their tasks and workers (`tasks.csv`, `every-worker.csv`)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    ability = categorical_crowd(workers=30, tasks=20, labels=Categories(LABELS), sparsity=0.2, source=seeded(1))
    write_crowd(tmp_path, ability, "labels")
    write_crowd(
        tmp_path, numeric_crowd(workers=30, tasks=20, sparsity=0.2, scale=Scale(-2, 7), source=seeded(2)), "numbers"
    )
    for file, name, most in (("tasks.csv", "task", 20), ("every-worker.csv", "worker", 30)):
        (tmp_path / file).write_text(f"{name}\n" + "".join(f"{number}\n" for number in range(1, most + 1)))
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Run:
    """Run a command line given as words; an exception that no person should see is raised."""

    def invoke(*words: object, code: int = 0) -> Result:
        result = CliRunner().invoke(main, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert code == result.exit_code, result.output
        return result

    return invoke


@pytest.fixture
def sent(run: Run) -> Path:
    """Return a folder with reports, certificate and crowd of randomized response at epsilon 3."""
    words = ("--mechanism", "randomized-response", "--epsilon", 3, "--labels", ",".join(LABELS), "--seed", 4)
    run("perturb", "labels.csv", *words, "--out", "sent")
    return Path("sent")


@pytest.fixture
def run_json(run: Run) -> RunJson:
    """Run a command with --json and return the one object on stdout."""
    return lambda *words: json.loads(run(*words, "--json").stdout)


@pytest.fixture
def refusal(run: Run, monkeypatch: pytest.MonkeyPatch) -> Refusal:
    """Run a command that must fail, with a hint, one line on stderr and nothing on stdout; return that line."""

    def line(error: Exception) -> str:
        assert error_document(error, main, ())["error"]["hint"], error
        return error_line(error)

    def fail(*words: object, code: int = 1) -> str:
        monkeypatch.setattr(cli, "error_line", line)
        result = run(*words, code=code)
        assert not result.stdout
        assert len(result.stderr.splitlines()) == 1
        assert result.stderr.startswith("Error: ")
        return result.stderr

    return fail
