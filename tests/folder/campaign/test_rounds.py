"""Reports of two rounds as one collection: names, channels, and what cannot be joined."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crowdveil.campaign.document import EarlierRound, Groups
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.folder.campaign import rounds
from crowdveil.folder.campaign.export import AcceptedReport, write_campaign_reports
from crowdveil.folder.campaign.rounds import EARLIER_FOLDER, joined, read_collection, read_earlier
from crowdveil.folder.crowd import json_bytes
from crowdveil.folder.evidence import read_evidence
from crowdveil.release.privacy_statement import state_source
from crowdveil.standalone.checks import MAX_CERTIFICATE_BYTES
from tests.campaign.builders import LABELS, BuiltCampaign, build_campaign, response

FIRST = build_campaign(url=None, assignment=[[0, 1], [2, 3], [0, 3]])
PLAIN = FIRST.campaign.channels[0]
assert PLAIN.ratio is not None
STATED = EarlierRound(FIRST.campaign.name, 2, *PLAIN.ratio.as_integer_ratio())
REPORTS = [AcceptedReport(0, (0, 1), (0, 1)), AcceptedReport(1, (2, 3), (2, 3))]


def later(
    stated: EarlierRound = STATED, lists: tuple[tuple[int, ...], ...] = ((2, 3), (0, 1), (1, 2))
) -> BuiltCampaign:
    """Return a second round, with tables of epsilon 0.5 and 0.25 in turn."""
    groups = Groups(((0, 1),), (0, 1, 0, 1), (0, 0, 0))
    channels = [response(epsilon=0.5), response(epsilon=0.25)]
    return build_campaign(channels=channels, url=None, assignment=lists, groups=groups, content={"earlier": (stated,)})


def write_both(folder: Path, built: BuiltCampaign, second: list[AcceptedReport]) -> Path:
    """Write the first round, and then both; return the folder of both."""
    write_campaign_reports(folder / EARLIER_FOLDER, FIRST.campaign, REPORTS)
    earlier = read_earlier(folder, built.campaign)
    write_campaign_reports(folder / "both", built.campaign, second, earlier=earlier)
    return folder / "both"


def test_every_report_keeps_its_value_and_its_channel(tmp_path: Path) -> None:
    """Worker 0 answers in both rounds, 1 in the first, 2 in the second; NULL is no row, and each cell is assigned."""
    built = later()
    both = write_both(tmp_path, built, [AcceptedReport(0, (2, 3), (1, 3)), AcceptedReport(2, (1, 2), (0, 2))])
    evidence = read_evidence(both / "reports.csv")
    reports, assignment, table = evidence.reports, evidence.assignment, evidence.channel
    names = [str(name) for name in reports.workers]
    columns = (np.asarray(column).tolist() for column in (reports.task, reports.worker, reports.value))
    found = {(task, names[worker], LABELS.names[value]) for task, worker, value in zip(*columns, strict=True)}
    assert assignment is not None
    cells = set(zip(assignment.task.tolist(), [names[one] for one in assignment.worker.tolist()], strict=True))
    chosen = table.channel_indices(reports.tasks, reports.workers)  # type: ignore[union-attr]
    expected = {(0, 0): PLAIN, (0, 2): built.campaign.channels[0], (0, 3): built.campaign.channels[1], (1, 2): PLAIN}
    expected |= {(2, 1): built.campaign.channels[1], (2, 2): built.campaign.channels[0]}

    assert ["w0000", "w0001", "w0002"] == names
    zebrafish, quokka, narwhal = LABELS.names
    first = {(0, "w0000", zebrafish), (1, "w0000", quokka), (2, "w0001", narwhal)}
    assert first | {(2, "w0000", quokka), (1, "w0002", zebrafish), (2, "w0002", narwhal)} == found
    assert {
        (task, f"w{slot:04}") for slot, tasks in ((0, range(4)), (1, (2, 3)), (2, (1, 2))) for task in tasks
    } == cells
    for (worker, task), channel in expected.items():
        assert channel.rows == table.channels[chosen[worker, task]].rows  # type: ignore[union-attr]


def test_the_statement_counts_both_rounds(tmp_path: Path) -> None:
    """The promise of a worker is the sum: two answers at 1, and two at 0.5; of one answer it is that of the first."""
    both = write_both(tmp_path, later(), [AcceptedReport(0, (2, 3), (1, 3)), AcceptedReport(2, (1, 2), (0, 2))])
    found, _ = state_source(both)

    assert found.per_answer is not None
    assert found.per_worker is not None
    assert (pytest.approx(1, rel=1e-9), pytest.approx(3, rel=1e-9)) == (
        found.per_answer.epsilon,
        found.per_worker.epsilon,
    )
    assert 4 == found.cells


def test_a_later_round_that_states_too_small_a_loss_is_refused_with_its_reports(tmp_path: Path) -> None:
    """A document that hides an answer of the round before has no statement of all reports."""
    hidden = later(replace(STATED, cells=1, numerator=STATED.numerator // 2, denominator=STATED.denominator // 2))
    both = write_both(tmp_path, hidden, [AcceptedReport(0, (2, 3), (1, 3)), AcceptedReport(2, (1, 2), (0, 2))])

    with pytest.raises(ReportsError, match="losses of earlier rounds"):
        state_source(both)


def test_what_cannot_be_joined_is_refused(tmp_path: Path) -> None:
    """A cell of both rounds, a task that the later one does not list, no earlier reports, and those of another."""
    with pytest.raises(ReportsError, match="a worker is assigned a task once"):
        write_both(
            tmp_path / "twice",
            later(lists=((0, 2), (0, 1), (1, 2))),
            [AcceptedReport(0, (0, 2), (1, 3)), AcceptedReport(2, (1, 2), (0, 2))],
        )
    with pytest.raises(SettingsError, match="with the reports of the rounds before it"):
        write_campaign_reports(tmp_path / "alone", later().campaign, REPORTS)
    with pytest.raises(ReportsError, match="those of the round before"):
        write_both(tmp_path / "other", later(replace(STATED, campaign="A" * 43)), REPORTS)
    first = read_collection(tmp_path / "other" / EARLIER_FOLDER, FIRST.campaign.name)
    few = replace(
        first.reports, tasks=np.array(["t0"]), task=np.zeros(0, int), worker=np.zeros(0, int), value=np.zeros(0, int)
    )
    with pytest.raises(ReportsError, match="must list every task"):
        joined(first, first._replace(reports=few))

    assert not (tmp_path / "alone").exists()
    assert not (tmp_path / "twice" / "both" / "reports.csv").exists()


def test_a_digest_of_other_reports_is_refused(tmp_path: Path) -> None:
    """Truths of other reports do not design the next round."""
    write_campaign_reports(tmp_path, FIRST.campaign, REPORTS)

    with pytest.raises(ReportsError, match="must be inferred from all reports"):
        read_collection(tmp_path, FIRST.campaign.name, "0" * 64)


def test_a_larger_epsilon_than_any_promised_is_refused(tmp_path: Path) -> None:
    """Earlier reports whose table is weaker than the later document says are none of the campaign's."""
    built = later(replace(STATED, cells=9, numerator=2, denominator=1))
    both = write_both(tmp_path, built, [AcceptedReport(0, (2, 3), (1, 3)), AcceptedReport(2, (1, 2), (0, 2))])
    assert PLAIN.epsilon > built.campaign.answer_guarantee.epsilon

    with pytest.raises(ReportsError, match="other certificate"):
        state_source(both)


def test_public_participation_of_an_earlier_round_is_not_stated_as_protected(tmp_path: Path) -> None:
    """A protected round after a public one has no statement of all reports: the promise is that of both."""
    first = build_campaign(url=None, assignment=[[0, 1], [2, 3], [0, 3]], participation="public").campaign
    loss = first.channels[0].ratio
    assert loss is not None
    second = later(EarlierRound(first.name, 2, *loss.as_integer_ratio()))
    write_campaign_reports(tmp_path / EARLIER_FOLDER, first, REPORTS)
    earlier = read_earlier(tmp_path, second.campaign)
    sent = [AcceptedReport(0, (2, 3), (1, 3)), AcceptedReport(2, (1, 2), (0, 2))]
    write_campaign_reports(tmp_path / "both", second.campaign, sent, earlier=earlier)

    with pytest.raises(ReportsError, match="other certificate"):
        state_source(tmp_path / "both")


def test_a_table_of_all_rounds_that_is_refused_late_is_refused_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The largest permitted table is shorter than what readers take; a larger one is not written."""
    side = 200
    chosen = np.random.default_rng(0).integers(12, size=(side, side))
    names = [f"w{number:06}" for number in range(side)]
    table = ChannelTable.by_cell([response(epsilon=1 + one / 20) for one in range(12)], chosen, names, names)
    assert (side, side) == (len(table.choice), len(table.choice[0]))
    assert len(json_bytes(table.certificate())) / side**2 * rounds.MOST_ENTRIES < MAX_CERTIFICATE_BYTES

    monkeypatch.setattr(rounds, "MOST_ENTRIES", 11)
    with pytest.raises(SettingsError, match="3 workers and 4 tasks"):
        write_both(tmp_path, later(), [AcceptedReport(0, (2, 3), (1, 3)), AcceptedReport(2, (1, 2), (0, 2))])
    assert not (tmp_path / "both").exists()
