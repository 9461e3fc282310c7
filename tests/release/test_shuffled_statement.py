"""`--shuffled` of `statement` and `report`: figures, picture and refusals for checked folders."""

import json

from click.testing import CliRunner

from crowdveil.channels.rounding import percent_rounded_up
from crowdveil.cli import main
from tests.release.conftest import WORKERS, Folder, command

SHUFFLED = ("--shuffled", WORKERS, "--delta", 1e-4)


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
        assert sentence.replace("'", "&#39;") in page
    assert "answer, shuffled" in page
    assert "person, shuffled" in page
    share = percent_rounded_up(1 / (1 + 2.718281828 ** -figures["epsilon_per_answer"]) + 1e-4 / 2)
    assert share in figures["sentences"][1]


def test_more_reports_than_there_are_on_a_task_are_refused(collected: Folder) -> None:
    """A folder of 40 workers cannot be stated as a batch of 41, nor its local statement with a delta."""
    folder = collected()
    result = CliRunner().invoke(main, ["statement", str(folder), "--shuffled", "41", "--delta", "1e-6"])

    assert 1 == result.exit_code
    assert "at least 40 reports" in str(result.output) + str(result.exception)
    assert "shuffled" not in command("statement", folder)
