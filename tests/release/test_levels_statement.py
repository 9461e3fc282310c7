"""Statements on the reports of a campaign with levels: with its document, without it, and with edited certificates."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from crowdveil.channels.channel_table import ChannelTable
from crowdveil.errors import ReportsError
from crowdveil.folder.campaign import export
from crowdveil.folder.campaign.export import AcceptedReport, write_campaign_reports
from crowdveil.privacy.statement import PrivacyStatement, statement_sentences
from crowdveil.release.conclusion import conclude
from crowdveil.release.privacy_statement import CHANNEL_VISIBLE, state_results
from tests.campaign.builders import build_campaign, response
from tests.release.test_conclusion import labelled

CHANNELS = tuple(response(epsilon=one) for one in (0.5, 1.0, 2.0))
BUILT = build_campaign(channels=CHANNELS, slots=12, content={"levels": 3, "min_reports": 3})
CAMPAIGN = BUILT.campaign


def statement_of(folder: Path, levels: Sequence[int], *, named: bool) -> PrivacyStatement:
    """Return the statement on reports of workers who chose these levels."""
    write_campaign_reports(
        folder, CAMPAIGN, [AcceptedReport(k, range(4), [0] * 4, one) for k, one in enumerate(levels)]
    )
    return state_results(None, folder / "reports.csv", CAMPAIGN if named else None)[0]


@pytest.mark.parametrize("levels", [(0, 0, 0), (0, 1, 0), (0, 1, 2)])
def test_without_the_document_nobody_learns_which_levels_were_chosen(tmp_path, levels):
    """The guarantee of all answers is that of the last level, whoever chose it; that the choice is visible is said."""
    statement = statement_of(tmp_path, levels, named=False)

    assert statement.per_worker is not None
    assert CAMPAIGN.worker_epsilon == statement.per_worker.epsilon
    assert 4 == statement.cells
    assert CHANNEL_VISIBLE in statement.not_covered


def test_with_the_document_each_level_is_counted(tmp_path):
    """Every level that enough workers chose is counted, in the order of the campaign."""
    statement = statement_of(tmp_path, [0] * 3 + [1] * 4 + [2] * 5, named=True)

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
    statement = statement_of(tmp_path, levels, named=named)
    result = labelled((0.9, 0.1), (0.1, 0.9))

    assert answer == statement.answer_epsilon
    assert worker == statement.worker_range
    assert f"at epsilon {answer} per answer, {words} (participation protected)" in " ".join(
        conclude(result, statement).sentences
    )


@pytest.mark.parametrize("kept", [[0], [0, 1], [1, 2], [2, 1, 0]], ids=["one", "first two", "last two", "reversed"])
def test_certificates_that_are_not_all_levels_in_order_are_refused(tmp_path, monkeypatch, kept):
    """An edited certificate without a level, or with the levels in another order, is not that of the campaign."""
    table = ChannelTable.by_worker([CHANNELS[k] for k in kept], {f"w{slot:04}": slot % len(kept) for slot in range(12)})
    monkeypatch.setattr(export, "exported_channel", lambda *_: table if len(kept) > 1 else CHANNELS[0])

    with pytest.raises(ReportsError, match="other certificate"):
        statement_of(tmp_path, [0] * 12, named=True)
