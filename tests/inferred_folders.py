"""Folders that `infer` wrote: answers read as they are, protected reports, a simulation, numbers on a scale."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from crowdveil.answers.write_reports import ordered_reports_table, write_table
from crowdveil.campaign.files.campaign_reports import exported_name_of_slot
from crowdveil.campaign.statement.collection import statement_of_results
from crowdveil.campaign.statement.source import find_recorded_reports, read_stated_reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.cli import main
from crowdveil.files.atomic_write import write_outputs
from crowdveil.pages.conclusion import Conclusion
from crowdveil.pages.results_page import PageText, QuestionResults, results_page
from crowdveil.randomness import seeded
from crowdveil.simulate import Crowd, categorical_crowd, numeric_crowd
from crowdveil.storage.estimate_files import page_outputs
from crowdveil.storage.results.result_files import read_results
from tests.campaign.builders import build_campaign, response

Folder = Callable[..., Path]
LABELS = ("no", "yes", "maybe")
TASKS, WORKERS = 15, 40


def command(*words: object) -> str:
    """Run a command that must succeed and return what it printed."""
    result = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def write_results(folder: Path, reports: Path | None = None, **text: object) -> Conclusion:
    """Write `report.html` of a folder that `infer` wrote, and return its conclusion."""
    results = read_results(folder)
    behind = read_stated_reports(results.reports_sha256, reports or find_recorded_reports(folder))
    text_of_page = PageText(**text)  # type: ignore[arg-type]
    page = results_page([QuestionResults(results, statement_of_results(behind), behind.evidence, text_of_page)])
    write_outputs(page_outputs(folder / "report.html"), {"report.html": page.html})
    return page.conclusions[0]


def write_answers(folder: Path, crowd: Crowd) -> None:
    """Write answers and the lists of tasks and workers."""
    with open(folder / "answers.csv", "wb") as stream:
        write_table(stream, ordered_reports_table(crowd.answers))
    for name, most in (("task", TASKS), ("worker", WORKERS)):
        (folder / f"{name}s.csv").write_text(f"{name}\n" + "".join(f"{number}\n" for number in range(1, most + 1)))


@pytest.fixture
def collected(tmp_path: Path) -> Folder:
    """Return a function that perturbs and infers a crowd of labels, and gives the folder of reports and truths."""
    crowd = categorical_crowd(workers=WORKERS, tasks=TASKS, labels=Categories(LABELS), sparsity=0.2, source=seeded(1))
    write_answers(tmp_path, crowd)

    def collect(*options: object, epsilon: float = 3.0, method: tuple[object, ...] = ()) -> Path:
        lists = ("--tasks", tmp_path / "tasks.csv", "--workers", tmp_path / "workers.csv", "--labels", ",".join(LABELS))
        response = ("--mechanism", "randomized-response", "--epsilon", epsilon)
        command("perturb", tmp_path / "answers.csv", *response, *lists, *options, "--out", tmp_path / "sent")
        command("infer", tmp_path / "sent" / "reports.csv", *method)
        return tmp_path / "sent"

    return collect


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """Return the folder of protected numbers on a scale and their inferred truths."""
    crowd = numeric_crowd(workers=WORKERS, tasks=TASKS, sparsity=0.2, scale=Scale(-2, 7), source=seeded(2))
    write_answers(tmp_path, crowd)
    lists = ("--tasks", tmp_path / "tasks.csv", "--workers", tmp_path / "workers.csv", "--scale", "-2:7")
    sent = tmp_path / "sent"
    command("perturb", tmp_path / "answers.csv", "--mechanism", "laplace", "--epsilon", 4, *lists, "--out", sent)
    command("infer", sent / "reports.csv")
    return sent


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """Return the folder of truths inferred from answers without a certificate."""
    crowd = categorical_crowd(workers=WORKERS, tasks=TASKS, labels=Categories(LABELS), sparsity=0.2, source=seeded(1))
    write_answers(tmp_path, crowd)
    command("infer", tmp_path / "answers.csv", "--out", tmp_path / "found")
    return tmp_path / "found"


@pytest.fixture
def campaign_folder(tmp_path: Path) -> Folder:
    """Return a function that gives a folder with the reports of a campaign, their truths and campaign.json.

    The reports are perturbed from a file of answers; `from_devices` writes crowd.json as devices' reports have it.
    """

    def collect(*, from_devices: bool = True, epsilon: float = 3.0) -> Path:
        built = build_campaign(channels=[response(Categories(LABELS), epsilon)], tasks=6, slots=WORKERS)
        campaign = built.campaign
        names = {
            "task": [task.id for task in campaign.tasks],
            "worker": list(map(exported_name_of_slot, range(WORKERS))),
        }
        rows = [
            f"{task},{worker},{LABELS[i % 3]}" for i, task in enumerate(names["task"]) for worker in names["worker"]
        ]
        (tmp_path / "answers.csv").write_text("\n".join(["task,worker,label", *rows]))
        for name, listed in names.items():
            (tmp_path / f"{name}s.csv").write_text("\n".join([name, *listed]))
        lists = ("--tasks", tmp_path / "tasks.csv", "--workers", tmp_path / "workers.csv", "--labels", ",".join(LABELS))
        sent = tmp_path / "sent"
        mechanism = ("--mechanism", "randomized-response", "--epsilon", 3)
        command("perturb", tmp_path / "answers.csv", *mechanism, *lists, "--out", sent)
        command("infer", sent / "reports.csv")
        if from_devices:
            crowd = sent / "crowd.json"
            crowd.write_text(json.dumps(json.loads(crowd.read_text("utf-8")) | {"campaign": campaign.name}), "utf-8")
        (sent / "campaign.json").write_bytes(campaign.to_bytes())
        return sent

    return collect
