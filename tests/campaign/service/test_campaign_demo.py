"""The demo runs a whole campaign through HTTP on this computer, and says that its answers are simulated."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from crowdveil.campaign.pages.results import DOWNLOADS
from crowdveil.campaign.service.campaign_demo import (
    BUDGET_PER_WORKER,
    TASKS_PER_WORKER,
    WORKERS,
    CampaignDemo,
    demo_outputs,
    run_campaign_demo,
)
from crowdveil.cli import main
from crowdveil.errors import SettingsError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[CampaignDemo, list[int]]:
    """The demo, and the numbers of workers that its progress counted."""
    counted: list[int] = []
    return run_campaign_demo(tmp_path_factory.mktemp("demo"), progress=lambda done, _: counted.append(done)), counted


def test_results_are_written_with_a_checked_guarantee(shown: tuple[CampaignDemo, list[int]]) -> None:
    """All workers report over HTTP; all files are there; epsilon per worker is the budget; the page says simulated."""
    demo, counted = shown
    assert list(range(1, WORKERS + 1)) == counted
    assert WORKERS == demo.result.files["workers.csv"].count(b"\n") - 1
    statement = demo.result.statement
    assert statement.per_worker is not None

    assert set(DOWNLOADS) <= {path.name for path in demo.page.parent.iterdir()}
    assert "simulated answers" in demo.page.read_text("utf-8")
    assert pytest.approx(BUDGET_PER_WORKER) == statement.per_worker.epsilon
    assert statement.per_worker.epsilon <= BUDGET_PER_WORKER
    assert TASKS_PER_WORKER == statement.cells


def test_report_reads_the_folder_of_the_demo(shown: tuple[CampaignDemo, list[int]]) -> None:
    """`crowdveil report` replaces the page of the demo by the same page, with title and guarantee of the campaign."""
    page = shown[0].page
    before = page.read_bytes()
    result = CliRunner().invoke(main, ["report", str(page.parent), "--json"])
    document = json.loads(result.stdout)

    assert before == page.read_bytes()
    assert ("protected", [str(page)]) == (document["privacy"], document["replaced"])


def test_inference_beats_the_constant(shown: tuple[CampaignDemo, list[int]]) -> None:
    """Fewer truths are wrong than with the best constant, 6 of 12; those from the answers themselves are right.

    Reports are drawn with secure randomness. With 30 reports per task, a majority is wrong with probability 0.07, and
    six of twelve with probability 1e-4: the false-alarm rate of this test.
    """
    inferred, unprotected, constant = shown[0].wrong

    assert inferred < constant
    assert (0, 6) == (unprotected, constant)


def test_other_files_are_not_replaced(tmp_path: Path) -> None:
    """A file that the demo did not write stays, and nothing is started."""
    (tmp_path / "reports.csv").write_text("mine")

    with pytest.raises(SettingsError, match="is not replaced"):
        run_campaign_demo(tmp_path)
    assert "mine" == (tmp_path / "reports.csv").read_text()
    assert [[], []] == [outputs.check_replaced_files() for outputs in demo_outputs(tmp_path / "new")]
