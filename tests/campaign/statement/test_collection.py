"""Statements of privacy that come from certificates, and those of levels."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from crowdveil.campaign.files import campaign_reports
from crowdveil.campaign.files.campaign_reports import AcceptedReport, write_questions
from crowdveil.campaign.files.folder import read_campaign
from crowdveil.campaign.statement.collection import CHANNEL_VISIBLE, HOLDER, statement_of_results, statement_of_source
from crowdveil.campaign.statement.source import read_stated_reports, read_stated_source
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.errors import CertificateError, ReportsError
from crowdveil.pages.conclusion import assess_truths
from crowdveil.privacy.statement import PrivacyStatement, statement_sentences
from crowdveil.storage.results.result_files import read_results
from tests.campaign.builders import build_campaign, response
from tests.inferred_folders import TASKS, Folder, command
from tests.pages.test_conclusion import labelled


def statement_of(folder: Path) -> PrivacyStatement:
    """Return the statement for the truths and reports of one folder."""
    return statement_of_results(read_stated_reports(read_results(folder).reports_sha256, folder / "reports.csv"))


def edit_crowd(folder: Path, **fields: object) -> None:
    """Change fields of crowd.json."""
    path = folder / "crowd.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | fields), "utf-8")


def test_protected_reports_state_epsilon_per_answer_and_worker(collected: Folder) -> None:
    """The certificate's epsilon holds per answer, and for each of the tasks of one worker."""
    statement = statement_of(collected())

    assert statement.per_answer is not None
    assert statement.per_worker is not None
    assert ("protected", "randomized-response", TASKS) == (statement.status, statement.mechanism, statement.cells)
    assert pytest.approx(3.0) == statement.per_answer.epsilon
    assert pytest.approx(3.0 * TASKS) == statement.per_worker.epsilon
    assert ("cell", "worker") == (statement.per_answer.unit, statement.per_worker.unit)
    assert "20.1" == statement.largest_odds_factor_text
    stated = "epsilon 45 for all answers of one worker (at most 15), epsilon 3 per single answer"
    assert stated in " ".join(statement_sentences(statement))


def test_public_participation_counts_the_answers_of_the_busiest_worker(collected: Folder) -> None:
    """With public participation a worker's epsilon counts the answers given, and their places are not covered."""
    folder = collected("--participation", "public")
    statement = statement_of(folder)
    most = int(read_results(folder).estimate.reports_per_worker.max())

    assert statement.per_worker is not None
    assert most == statement.cells
    assert pytest.approx(3.0 * most) == statement.per_worker.epsilon
    assert "Participation: which tasks a worker answered is visible." in statement.not_covered


def test_simulation_has_no_privacy(collected: Folder) -> None:
    """Reports that follow from a seed carry no privacy, and no epsilon is named."""
    statement = statement_of(collected("--seed", 1))

    assert "simulation" == statement.status
    assert "Simulation only: no privacy." == statement_sentences(statement)[0]
    assert None is statement.per_answer
    assert "epsilon" not in " ".join(statement_sentences(statement))


def test_simulation_that_denies_itself_has_no_privacy(collected: Folder) -> None:
    """A crowd.json that hides the seed does not help: the certificate is marked, and it is bound to the crowd."""
    folder = collected("--seed", 1)
    original = json.loads((folder / "crowd.json").read_text("utf-8"))
    words = "none: a reason with epsilon = 3"
    edit_crowd(folder, simulation=False, seed=None, guarantee=None, stated_guarantee=words)
    statement = statement_of(folder)

    assert "none" == statement.status
    assert "epsilon" not in " ".join((*statement_sentences(statement), statement.mechanism))

    edit_crowd(folder, guarantee=original["guarantee"], stated_guarantee="")
    with pytest.raises(ReportsError, match="must not state a guarantee"):
        statement_of(folder)


def test_lists_from_answers_have_no_guarantee(collected: Folder) -> None:
    """Lists that were taken from the answers leave no guarantee; the mechanism's settings are not repeated."""
    folder = collected()
    shutil.rmtree(folder)
    root = folder.parent
    response = ("--mechanism", "randomized-response", "--epsilon", 3, "--lists-from-answers")
    command("perturb", root / "answers.csv", *response, "--out", folder)
    command("infer", folder / "reports.csv")
    statement = statement_of(folder)

    assert "none" == statement.status
    assert "were taken from the answers" in statement.reason
    assert "randomized-response" == statement.mechanism


def test_edited_reports_have_no_guarantee(collected: Folder) -> None:
    """Reports that were edited after they were sent have no guarantee, whatever crowd.json states."""
    folder = collected()
    path = folder / "reports.csv"
    path.write_text(path.read_text("utf-8").replace(",yes\n", ",no\n", 1), "utf-8")
    with pytest.raises(ReportsError, match="must be inferred from these reports"):
        statement_of(folder)
    command("infer", path, "--accept-edited")
    statement = statement_of(folder)

    assert ("none", "The reports were edited after they were sent.") == (statement.status, statement.reason)
    assert None is statement.per_answer


def test_a_certificate_alone_has_no_guarantee(collected: Folder) -> None:
    """Without crowd.json nothing ties the certificate to the reports, so no epsilon is stated."""
    folder = collected()
    (folder / "crowd.json").unlink()
    lists = ("--tasks", folder.parent / "tasks.csv", "--workers", folder.parent / "workers.csv")
    command("infer", folder / "reports.csv", *lists)
    statement, _ = statement_of_source(read_stated_source(folder))

    assert "none" == statement.status
    assert "no crowd.json" in statement.reason


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("randomized-response+laplace", "randomized-response+laplace"),
        ("checked: all answers are anonymous", "'checked: all answers are anonymous'"),
    ],
)
def test_an_unknown_mechanism_of_an_unstated_collection_is_quoted(collected: Folder, named: str, said: str) -> None:
    """A mechanism that only crowd.json names is not checked: known names stand as they are, others in quotes."""
    path = collected() / "crowd.json"
    crowd = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**crowd, "mechanism": named, "edited": True}))
    statement, _ = statement_of_source(read_stated_source(path.parent))

    assert ("none", said) == (statement.status, statement.mechanism)


@pytest.mark.parametrize("change", ["forged", "missing"])
def test_a_wrong_certificate_is_refused(collected: Folder, change: str) -> None:
    """A certificate that was changed, or is missing, ends the release."""
    folder = collected()
    path = folder / "certificate.json"
    if change == "missing":
        path.unlink()
    else:
        data = json.loads(path.read_text("utf-8"))
        path.write_text(json.dumps(data | {"ratio": [2, 1]}), "utf-8")

    with pytest.raises(CertificateError):
        statement_of(folder)


def test_truths_of_other_reports_are_refused(collected: Folder, tmp_path: Path) -> None:
    """Truths of one collection do not take the guarantee of another."""
    folder = collected()
    truths = read_results(folder).reports_sha256
    shutil.move(folder, tmp_path / "first")
    other = collected()

    with pytest.raises(ReportsError, match="must be inferred from these reports"):
        read_stated_reports(truths, other / "reports.csv")


@pytest.mark.slow
def test_sums_without_certificate_state_no_epsilon(numbers: Path, tmp_path: Path) -> None:
    """Matrix factorization has no certificate: its epsilon is not stated here."""
    lists = ("--tasks", tmp_path / "tasks.csv", "--workers", tmp_path / "workers.csv", "--scale", "-2:7")
    mechanism = ("--mechanism", "matrix-factorization", "--epsilon", 4)
    command("perturb", tmp_path / "answers.csv", *mechanism, *lists, "--out", tmp_path / "sums")
    command("infer", tmp_path / "sums" / "sums.json")
    sums = tmp_path / "sums"
    statement = statement_of_results(read_stated_reports(read_results(sums).reports_sha256, sums / "sums.json"))

    assert ("none", "matrix-factorization") == (statement.status, statement.mechanism)
    assert "no certificate" in statement.reason


@pytest.mark.parametrize("from_devices", [True, False])
def test_campaign_states_its_own_guarantee(campaign_folder: Folder, from_devices: bool) -> None:
    """Epsilon of a worker counts the largest number of tasks; a file of answers leaves them to its holder."""
    folder = campaign_folder(from_devices=from_devices)
    campaign = read_campaign(folder / "campaign.json")
    behind = read_stated_reports(read_results(folder).reports_sha256, folder / "reports.csv")
    statement = statement_of_results(behind, campaign)

    assert statement.per_worker is not None
    assert (campaign.name, campaign.cells) == (statement.campaign, statement.cells)
    assert campaign.worker_epsilon == statement.per_worker.epsilon
    assert from_devices == (HOLDER not in statement.not_covered)


def test_reports_of_another_campaign_are_refused(campaign_folder: Folder) -> None:
    """A campaign with another channel, or of equal content with another salt, does not lend its guarantee."""
    folder = campaign_folder(epsilon=1.0)
    campaign = read_campaign(folder / "campaign.json")
    with pytest.raises(ReportsError, match="other certificate"):
        statement_of_results(read_stated_reports(read_results(folder).reports_sha256, folder / "reports.csv"), campaign)
    edit_crowd(folder, campaign="A" * 43)

    with pytest.raises(ReportsError, match="other campaign"):
        statement_of_results(read_stated_reports(read_results(folder).reports_sha256, folder / "reports.csv"), campaign)


def test_unprotected_cells_leave_no_guarantee(collected: Folder) -> None:
    """Where some tasks are sent without protection, no epsilon is stated, although the certificate is valid."""
    folder = collected()
    root = folder.parent
    shutil.rmtree(folder)
    tasks = "".join(f"{number},{'unprotected' if number < 4 else 3}\n" for number in range(1, TASKS + 1))
    (root / "channels.csv").write_text("task,epsilon\n" + tasks)
    lists = ("--tasks", root / "tasks.csv", "--workers", root / "workers.csv", "--labels", "no,yes,maybe")
    response = ("--mechanism", "randomized-response", "--epsilon", 3, "--participation", "public")
    command("perturb", root / "answers.csv", *response, "--channels", root / "channels.csv", *lists, "--out", folder)
    command("infer", folder / "reports.csv")
    statement = statement_of(folder)

    assert ("none", None) == (statement.status, statement.per_answer)
    assert "without protection" in statement.reason


CHANNELS = tuple(response(epsilon=one) for one in (0.5, 1.0, 2.0))
BUILT = build_campaign(channels=CHANNELS, slots=12, content={"levels": 3, "min_reports": 3})
CAMPAIGN = BUILT.campaign


def levels_statement_of(folder: Path, levels: Sequence[int], *, named: bool) -> PrivacyStatement:
    """Return the statement on reports of workers who chose these levels."""
    write_questions(folder, CAMPAIGN, [AcceptedReport(k, range(4), [0] * 4, one) for k, one in enumerate(levels)])
    return statement_of_results(read_stated_reports(None, folder / "reports.csv"), CAMPAIGN if named else None)


@pytest.mark.parametrize("levels", [(0, 0, 0), (0, 1, 0), (0, 1, 2)])
def test_without_the_document_nobody_learns_which_levels_were_chosen(tmp_path, levels):
    """The guarantee of all answers is that of the last level, whoever chose it; that the choice is visible is said."""
    statement = levels_statement_of(tmp_path, levels, named=False)

    assert statement.per_worker is not None
    assert CAMPAIGN.worker_epsilon == statement.per_worker.epsilon
    assert 4 == statement.cells
    assert CHANNEL_VISIBLE in statement.not_covered


def test_with_the_document_each_level_is_counted(tmp_path):
    """Every level that enough workers chose is counted, in the order of the campaign."""
    statement = levels_statement_of(tmp_path, [0] * 3 + [1] * 4 + [2] * 5, named=True)

    assert "Chosen: 3 level 1, 4 level 2, 5 level 3." in statement_sentences(statement)
    assert CHANNEL_VISIBLE not in statement.not_covered


@pytest.mark.parametrize(
    ("levels", "named", "answer", "worker", "words"),
    [
        ([0] * 12, True, "0.5 to 2", "2 to 8", "as offered to workers"),
        ([0] * 12, False, "0.5 to 2", "2 to 8", "as offered to workers"),
        ([0] * 3 + [1] * 4 + [2] * 5, True, "0.5 (3 workers), 1 (4 workers), 2 (5 workers)", "2 to 8",
         "as workers chose"),
        ([0] * 3 + [1] * 4 + [2] * 5, False, "0.5 to 2", "2 to 8", "as offered to workers"),
    ],
)  # fmt: skip
def test_results_name_what_was_chosen_or_the_range(tmp_path, levels, named, answer, worker, words):
    """Conclusion and statement have each level's workers, or the range that was offered: nobody may have chosen it."""
    statement = levels_statement_of(tmp_path, levels, named=named)
    result = labelled((0.9, 0.1), (0.1, 0.9))

    assert answer == statement.answer_epsilon_text
    assert worker == statement.worker_epsilon_range_text
    assert f"at epsilon {answer} per answer, {words} (participation protected)" in " ".join(
        assess_truths(result, statement).sentences
    )


@pytest.mark.parametrize("kept", [[0], [0, 1], [1, 2], [2, 1, 0]], ids=["one", "first two", "last two", "reversed"])
def test_certificates_that_are_not_all_levels_in_order_are_refused(tmp_path, monkeypatch, kept):
    """An edited certificate without a level, or with the levels in another order, is not that of the campaign."""
    table = ChannelTable.by_worker([CHANNELS[k] for k in kept], {f"w{slot:04}": slot % len(kept) for slot in range(12)})
    monkeypatch.setattr(campaign_reports, "campaign_channel", lambda *_: table if len(kept) > 1 else CHANNELS[0])

    with pytest.raises(ReportsError, match="other certificate"):
        levels_statement_of(tmp_path, [0] * 12, named=True)
