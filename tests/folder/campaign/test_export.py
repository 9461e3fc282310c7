"""Export of a campaign's reports: the folder is what `infer` reads, and depends on the set of reports only."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdveil.campaign.assignment_part import AssignmentPart
from crowdveil.campaign.document import Campaign
from crowdveil.campaign.report_body import NOT_ANSWERED
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.errors import SettingsError
from crowdveil.folder.campaign.export import EXPORT_FILES, AcceptedReport, write_campaign_reports
from crowdveil.folder.evidence import Evidence, read_evidence
from tests.device_vectors import read_vectors

VECTORS = {vector["name"]: vector for vector in read_vectors("campaigns.json")}


def accepted(name: str, slots: list[int]) -> tuple[Campaign, list[AcceptedReport]]:
    """Return a campaign of the vectors and reports of its slots, whose codes count upwards."""
    vector: dict[str, Any] = VECTORS[name]
    campaign = Campaign.from_bytes(vector["campaign"].encode())
    part = AssignmentPart.from_bytes(vector["parts"][0].encode(), campaign, 0)
    reports = []
    for slot in slots:
        level = slot % campaign.levels if campaign.levels else None
        outputs = [campaign.channel_of(slot, task, level).outputs for task in part.tasks(slot)]
        codes = [(cell + slot) % len(names) for cell, names in enumerate(outputs)]
        reports.append(AcceptedReport(slot, part.tasks(slot), codes, level))
    return campaign, reports


def exported(folder: Path, name: str, slots: list[int]) -> Evidence:
    """Return what `infer` reads from the export of a campaign."""
    write_campaign_reports(folder, *accepted(name, slots))
    return read_evidence(folder / "reports.csv")


LEVELS = ["levels, the second", "levels of other symbols and a prior, the first"]


@pytest.mark.parametrize("name", ["a smaller load", "channels by groups", "public participation", *LEVELS])
def test_infer_reads_the_exported_folder(tmp_path, name):
    """The folder has the campaign's tasks, the workers that reported, their cells, and a stated guarantee."""
    found = exported(tmp_path, name, [1, 0])
    campaign, reports = accepted(name, [0, 1])

    assert [task.id for task in campaign.tasks] == list(found.reports.tasks)
    assert ["w0000", "w0001"] == list(found.reports.workers)
    assert found.crowd is not None
    assert (False, []) == (found.crowd["simulation"], found.crowd["lists_from_answers"])
    assert campaign.name in found.crowd["mechanism"]
    assert found.crowd["guarantee"].startswith(str(campaign.answer_guarantee).split(";")[0])
    assert found.assignment is not None
    assert sum(len(report.tasks) for report in reports) == len(found.assignment)
    assert {*EXPORT_FILES} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("name", LEVELS)
def test_each_worker_is_read_through_the_chosen_level(tmp_path, name):
    """The table of channels has the table of each worker's level."""
    channel = exported(tmp_path, name, [2, 0, 1]).channel
    campaign, reports = accepted(name, [0, 1, 2])

    assert isinstance(channel, ChannelTable)
    assert [report.level for report in reports] == channel.groups((), ["w0000", "w0001", "w0002"])[1].tolist()
    assert [one.rows for one in campaign.channels] == [one.rows for one in channel.channels]


def test_symbols_become_labels(tmp_path):
    """A row has the label of the report symbol; NULL reports have no row."""
    campaign, reports = accepted("a smaller load", [0, 1, 2])
    found = exported(tmp_path, "a smaller load", [0, 1, 2]).reports

    expected = [
        (campaign.tasks[task].id, f"w{report.slot:04}", campaign.channels[0].outputs[code])
        for report in reports
        for task, code in zip(report.tasks, report.codes, strict=True)
        if campaign.channels[0].outputs[code] != "NULL"
    ]
    labels = np.array(campaign.labels)[found.value]
    rows = list(
        zip(found.tasks[found.task].tolist(), found.workers[found.worker].tolist(), labels.tolist(), strict=True)
    )

    assert sorted(expected) == sorted(rows)


def test_silent_workers_are_not_listed(tmp_path):
    """A worker without a report is neither in the crowd nor in the assignment: it is no draw from the NULL row."""
    found = exported(tmp_path, "a smaller load", [2, 0])

    assert found.assignment is not None
    assert ["w0000", "w0002"] == list(found.reports.workers)
    assert {"w0000", "w0002"} == set(found.assignment.workers[found.assignment.worker])


def test_several_channels_become_a_table(tmp_path):
    """The certificate of a campaign with groups is a table in which each cell has its channel."""
    campaign, reports = accepted("channels by groups", [0, 1, 2])
    channel = exported(tmp_path, "channels by groups", [0, 1, 2]).channel

    assert isinstance(channel, ChannelTable)
    for report in reports:
        of_task, of_worker = channel.groups([one.id for one in campaign.tasks], [f"w{report.slot:04}"])
        for task in report.tasks:
            chosen = channel.channels[channel.choice[of_worker[0]][of_task[task]]]
            assert campaign.channel_of(report.slot, task).rows == chosen.rows


def test_public_cells_without_an_answer_have_no_row(tmp_path):
    """`NOT_ANSWERED` is no answer where participation is public."""
    campaign, reports = accepted("public participation", [0, 1])
    blank = [report._replace(codes=[NOT_ANSWERED] * len(report.codes)) for report in reports]

    assert 0 == len(write_campaign_reports(tmp_path, campaign, blank))


def test_order_of_arrival_leaves_no_trace(tmp_path):
    """The same reports in another order give the same bytes."""
    for name, slots in (("a", [0, 1, 2]), ("b", [2, 0, 1])):
        exported(tmp_path / name, "a smaller load", slots)

    for name in EXPORT_FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_nothing_is_released_below_the_least_number(tmp_path):
    """With fewer reports than `min_reports` nothing is written, and the error holds no count."""
    campaign, reports = accepted("a smaller load", [1])

    with pytest.raises(SettingsError, match="fewer than 2") as refusal:
        write_campaign_reports(tmp_path / "out", campaign, reports)

    assert "fewer than 2" == refusal.value.value
    assert not (tmp_path / "out").exists()


def test_two_reports_of_a_slot_are_refused(tmp_path):
    """A slot has one report."""
    campaign, reports = accepted("a smaller load", [0, 1])

    with pytest.raises(SettingsError, match="one report per slot"):
        write_campaign_reports(tmp_path / "out", campaign, [*reports, reports[0]])
