"""`--shuffled` of `statement` and `report`: figures, picture and refusals for checked folders."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from crowdveil.campaign.document import Relay
from crowdveil.channels.rounding import percent_rounded_up
from crowdveil.cli import main
from crowdveil.folder.campaign.export import AcceptedReport, write_campaign_reports
from crowdveil.folder.evidence import WITHOUT_NAMES
from crowdveil.release.page import as_code
from tests.campaign.builders import PUBLIC_KEY, build_campaign
from tests.release.conftest import WORKERS, Folder, command

SHUFFLED = ("--shuffled", WORKERS, "--delta", 1e-4)


@pytest.mark.slow
def test_statement_and_page_have_the_figures_of_the_certificate(collected: Folder) -> None:
    """The folder's 40 workers report on every task: central figures below the local ones, in words and picture."""
    folder = collected(epsilon=1.0)
    stated = json.loads(command("statement", folder, *SHUFFLED, "--json"))
    command("report", folder, *SHUFFLED)
    page = (folder / "report.html").read_text("utf-8")
    figures = stated["shuffled"]

    assert figures["epsilon_per_answer"] < stated["epsilon_per_answer"]
    assert figures["epsilon_per_worker"] < stated["epsilon_per_worker"]
    assert figures["sentences"] == stated["statement"][-3:]
    for sentence in figures["sentences"]:
        assert as_code(sentence) in page
    assert "answer, shuffled" in page
    assert "person, shuffled" in page
    share = percent_rounded_up(1 / (1 + 2.718281828 ** -figures["epsilon_per_answer"]) + 1e-4 / 2)
    assert share in figures["sentences"][2]


def test_more_reports_than_there_are_on_a_task_are_refused(collected: Folder) -> None:
    """A folder of 40 workers cannot be stated as a batch of 41, nor its local statement with a delta."""
    folder = collected()
    result = CliRunner().invoke(main, ["statement", str(folder), "--shuffled", "41", "--delta", "1e-6"])

    assert 3 == result.exit_code
    assert "at least 40 reports" in str(result.output) + str(result.exception)
    assert "shuffled" not in command("statement", folder)


def refusal(*words: object) -> str:
    """Run a command that must fail and return what it said."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert 3 == result.exit_code
    return str(result.output) + str(result.exception)


def asked(folder: Path, lists: Sequence[Sequence[int]], *, least: int, public: bool = False) -> Path:
    """Write a campaign of three tasks with these lists and return its folder."""
    participation = "public" if public else "protected"
    built = build_campaign(
        tasks=3, slots=len(lists), assignment=lists, participation=participation, content={"min_reports": least}
    )
    return built.write(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lists", "least", "known"),
    [
        ([[0, 1, 2]] * 50, 40, 40),
        ([[0, 1, 2]] * 48 + [[0, 1]] * 2, 45, 43),
        ([[0, 1, 2]] + [[0]] * 49, 50, 1),
        ([[0, 1, 2]] + [[0]] * 49, 49, 0),
    ],
    ids=["all tasks to all", "the worst workers are missing", "one victim", "the victim may be missing"],
)
def test_the_reports_of_a_campaign_are_counted_on_each_task(
    lists: list[list[int]], least: int, known: int, tmp_path: Path
) -> None:
    """A batch is at most the number of workers asked the task with fewest, less those who need not report."""
    folder = asked(tmp_path, lists, least=least)
    words = ("statement", folder / "campaign.json", "--delta", 1e-4, "--shuffled")

    assert f"at least {known} reports, and no more" in refusal(*words, known + 1)
    if known:
        assert "shuffled" in command(*words, known, "--json")


def test_without_parts_or_with_visible_participation_no_number_is_known(tmp_path: Path) -> None:
    """Lists that are not at hand, and workers who may skip tasks, make no batch sure."""
    hidden = asked(tmp_path / "hidden", [[0, 1, 2]] * 50, least=50)
    visible = asked(tmp_path / "visible", [[0, 1, 2]] * 50, least=50, public=True)
    (hidden / "parts" / "0000.json").unlink()

    for folder in (hidden, visible):
        said = refusal("statement", folder / "campaign.json", "--shuffled", 1, "--delta", 1e-4)
        assert "at least 0 reports, and no more" in said


@pytest.mark.slow
def test_linked_reports_need_the_same_tasks_for_all(tmp_path: Path) -> None:
    """Two reports in one message hide among messages on the same two tasks: all workers must be asked all."""
    alike = asked(tmp_path / "alike", [[0, 1, 2]] * 50, least=50)
    unlike = asked(tmp_path / "unlike", [[0, 1, 2]] * 40 + [[0, 1], [1, 2], [0, 2]], least=43)
    words = ("--shuffled", 30, "--delta", 1e-4, "--linked", 2)

    assert "linked" in command("statement", alike / "campaign.json", *words, "--json")
    assert "on the same tasks for all workers" in refusal("statement", unlike / "campaign.json", *words)


def test_cells_without_names_are_not_counted(tmp_path: Path) -> None:
    """Of 40 and 2 opened cells on two tasks the folder tells 40 workers: a batch of 40 is not known of both."""
    relay = Relay("The library", PUBLIC_KEY, 2, "cell")
    campaign = build_campaign(tasks=2, slots=40, content={"relay": relay}).campaign
    reports = [AcceptedReport(k, (0, 1) if k < 2 else (0,), (0, 0) if k < 2 else (0,)) for k in range(40)]
    write_campaign_reports(tmp_path, campaign, reports, mark=WITHOUT_NAMES)
    (tmp_path / "campaign.json").unlink()

    assert "at least 0 reports" in refusal("statement", tmp_path, "--shuffled", 40, "--delta", 1e-4)


def test_workers_of_a_folder_with_different_tasks_have_no_linked_reports(tmp_path: Path) -> None:
    """A folder whose assignment gives workers different tasks has single reports on every task, and no linked ones."""
    lists = [(0, 1, 2)] * 40 + [(0, 1), (1, 2), (0, 2)]
    built = build_campaign(tasks=3, slots=43, assignment=lists)
    reports = [AcceptedReport(slot, tasks, [0] * len(tasks)) for slot, tasks in enumerate(lists)]
    write_campaign_reports(tmp_path, built.campaign, reports)
    words = ("statement", tmp_path, "--delta", 1e-4, "--shuffled")

    assert "at least 42 reports" in refusal(*words, 43)
    assert "shuffled" in command(*words, 42, "--json")
    assert "on the same tasks for all workers" in refusal(*words, 42, "--linked", 2)
