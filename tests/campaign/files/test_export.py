"""Export of a campaign's reports, and links of its workers: private files that `infer` and workers read."""

import csv
import re
import stat
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdveil.answers.evidence import Evidence
from crowdveil.answers.facts.inputs import joint_guarantee
from crowdveil.campaign.files import invitations
from crowdveil.campaign.files.campaign_reports import (
    EXPORT_FILES,
    AcceptedReport,
    collected_question,
    write_questions,
)
from crowdveil.campaign.files.folder import CampaignFolder
from crowdveil.campaign.files.invitations import render_link_sheet, replace_link, write_first_links
from crowdveil.campaign.planning.creation import write_new_campaign_folder
from crowdveil.campaign.rules.assignment_part import AssignmentPart
from crowdveil.campaign.rules.document import Campaign, spaced_name_to_compare
from crowdveil.campaign.rules.report import NOT_ANSWERED
from crowdveil.campaign.rules.token import Link, Token, token_hash
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.display.html import policy_source
from crowdveil.errors import CrowdveilError, SettingsError
from crowdveil.standalone.checks import parse_link
from crowdveil.storage.evidence import read_evidence
from tests.campaign.builders import build_campaign
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
    write_questions(folder, *accepted(name, slots))
    return read_evidence(folder / "reports.csv")


LEVELS = ["levels, the second", "levels of other symbols and a prior, the first"]


@pytest.mark.parametrize("name", ["a smaller load", "channels by groups", "public participation", *LEVELS])
def test_infer_reads_the_exported_folder(tmp_path, name):
    """The folder has the campaign's tasks, the workers that reported, their cells, and a stated guarantee."""
    found = exported(tmp_path, name, [1, 0])
    campaign, reports = accepted(name, [0, 1])

    assert [task.id for task in campaign.tasks] == list(found.reports.tasks)
    assert ["w0000", "w0001"] == list(found.reports.workers)
    facts = found.collection
    assert facts is not None
    assert (False, ()) == (facts.simulation, facts.lists_from_answers)
    assert campaign.name == facts.campaign
    assert facts.guarantee_text.startswith(str(campaign.guarantee).split(";")[0])
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

    assert 0 == len(write_questions(tmp_path, campaign, blank)[0].reports)


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
        write_questions(tmp_path / "out", campaign, reports)

    assert "fewer than 2" == refusal.value.value
    assert "Once it is closed, ask again in a new campaign" in refusal.value.hint
    assert not (tmp_path / "out").exists()


def test_two_reports_of_a_slot_are_refused(tmp_path):
    """A slot has one report."""
    campaign, reports = accepted("a smaller load", [0, 1])

    with pytest.raises(SettingsError, match="one report per slot"):
        write_questions(tmp_path / "out", campaign, [*reports, reports[0]])


NAMES = ("Ann", "<b>Bo</b>", "Chen, J.")


@pytest.fixture
def folder(tmp_path):
    """Folder of a campaign of three workers with names."""
    built = build_campaign(url="https://grades.example.org", content={"title": "Essays & more", "language": "de-AT"})
    write_new_campaign_folder(tmp_path / "essays", built.campaign, built.parts, names=NAMES)
    return tmp_path / "essays"


def links(path):
    """Return the rows of a file of links, and the links."""
    with open(path, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    parsed = [parse_link(row["link"]) for row in rows]
    return rows, [Link(url, name, Token.from_text(token)) for url, name, token, _ in parsed]


def test_each_worker_has_a_link_and_only_hashes_are_kept(folder):
    """The hashes belong to the links; no secret stands in any other file than the two of the links."""
    made = write_first_links(folder)
    campaign = CampaignFolder(folder).campaign
    rows, found = links(folder / "links.csv")

    assert [(str(slot), name) for slot, name in enumerate(NAMES)] == [(row["slot"], row["name"]) for row in rows]
    assert [0, 1, 2] == [link.token.slot for link in found] == list(made.slots)
    assert {("https://grades.example.org", campaign.name)} == {(link.url, link.campaign_name) for link in found}
    assert [token_hash(campaign.digest, link.token) for link in found] == [
        entry.hash for entry in CampaignFolder(folder).tokens
    ]
    texts = [link.token.text.encode() for link in found]
    holding = {path.name for path in folder.rglob("*") if path.is_file() and any(t in path.read_bytes() for t in texts)}
    assert {"links.csv", "links.html"} == holding
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in made.files}
    assert () == made.warnings


def test_the_sheet_shows_what_people_compare(folder):
    """A card has a QR code, the worker, the host and the characters to compare; texts are escaped."""
    write_first_links(folder)
    sheet = (folder / "links.html").read_text("utf-8")

    assert 3 == sheet.count("<section>") == sheet.count("<svg")
    assert 3 == sheet.count(f"<code>{spaced_name_to_compare(CampaignFolder(folder).campaign.name)}</code>")
    assert 3 == sheet.count("<code>grades.example.org</code>")
    assert "&lt;b&gt;Bo&lt;/b&gt;" in sheet
    assert "<b>" not in sheet
    assert "Essays &amp; more" in sheet
    assert "Scannen Sie den Code" in sheet
    assert [] == re.findall(r"<script|src=|href=|@import|url\(", sheet)


def test_the_sheet_loads_and_runs_nothing() -> None:
    """The policy in the sheet allows its own style alone: it holds all links, and is opened in browsers."""
    built = build_campaign()
    sheet = render_link_sheet(built.campaign, [built.link(0)])
    style = re.search("<style>(.*?)</style>", sheet, re.DOTALL)

    assert style is not None
    policy = f"default-src 'none'; style-src {policy_source(style[1])}; base-uri 'none'; form-action 'none'"
    assert f'Policy" content="{policy}"' in unescape(sheet)
    assert '<meta name="referrer" content="no-referrer">' in sheet
    assert [] == re.findall("<script| style=| on[a-z]+=", sheet)


def test_the_code_on_the_sheet_is_the_link():
    """The QR code is version 7 or less at level M, as segno draws it for the link, whose text is on the card too."""
    import segno

    built = build_campaign(url="https://grades.example.org")
    code = segno.make(built.link(0).text, error="m", micro=False)

    assert int(code.version) <= 7
    sheet = render_link_sheet(built.campaign, [built.link(0)])
    assert code.svg_inline(omitsize=True) in sheet
    assert f">{built.link(0).text}</p>" in sheet


def test_without_a_service_the_link_is_pasted():
    """A campaign without a service has links without an address, and says so."""
    built = build_campaign(url=None)

    sheet = render_link_sheet(built.campaign, [built.link(2)])

    assert "paste or scan this link" in sheet
    assert "Worker 2" in sheet


def test_links_are_made_once(folder):
    """A second invitation is refused, and the links stay."""
    write_first_links(folder)
    before = (folder / "links.csv").read_bytes()

    with pytest.raises(SettingsError, match="made once") as caught:
        write_first_links(folder)

    assert "lost link" in caught.value.hint
    assert before == (folder / "links.csv").read_bytes()


def test_a_replaced_link_revokes_the_old_one(folder):
    """The new link is in a file of its own; it may be replaced again; the other links stay valid."""
    write_first_links(folder)
    first = CampaignFolder(folder).tokens

    replace_link(folder, 1)
    made = replace_link(folder, 1)
    tokens = CampaignFolder(folder).tokens
    _, (link,) = links(folder / "link-0001.csv")

    assert [(0, False), (1, True), (2, False), (1, True), (1, False)] == [(one.slot, one.revoked) for one in tokens]
    assert [one.hash for one in first] == [one.hash for one in tokens[:3]]
    assert token_hash(made.campaign.digest, link.token) == tokens[-1].hash
    assert {"link-0001.csv", "link-0001.html", "tokens.json"} == {path.name for path in made.files}


def test_a_worker_named_like_the_slot_of_another_is_told_apart(tmp_path):
    """Where names are numbers, slot:2 is the slot; a number that is a slot and a name is refused with both slots."""
    built = build_campaign(url="https://grades.example.org")
    write_new_campaign_folder(tmp_path / "survey", built.campaign, built.parts, names=("1", "2", "3"))
    with pytest.raises(CrowdveilError, match="tokens"):
        replace_link(tmp_path / "survey", 0)
    write_first_links(tmp_path / "survey")

    assert (2,) == replace_link(tmp_path / "survey", "slot:2").slots
    assert (2,) == replace_link(tmp_path / "survey", "3").slots
    with pytest.raises(SettingsError, match=r"write slot:1 or slot:2"):
        replace_link(tmp_path / "survey", 2)
    for other in (-1, 4, "Ann"):
        with pytest.raises(SettingsError, match="from 0 to 2"):
            replace_link(tmp_path / "survey", other)


def test_a_list_of_workers_that_a_spreadsheet_saved_is_read(tmp_path):
    """workers.csv with semicolons in UTF-16 gives the names, which match in another Unicode form."""
    built = build_campaign(url="https://grades.example.org")
    write_new_campaign_folder(tmp_path / "survey", built.campaign, built.parts, names=("Zoë", "Bo", "=1+1"))
    names = tmp_path / "survey" / "workers.csv"
    names.write_bytes(names.read_text("utf-8").replace(",", ";").encode("utf-16"))

    made = write_first_links(tmp_path / "survey")

    assert ["A spreadsheet reads '=1+1' in the CSV as a formula: import its columns as text."] == list(made.warnings)
    assert (0,) == replace_link(tmp_path / "survey", "Zoe\u0308").slots


def test_a_second_report_must_be_accepted_without_a_service(tmp_path):
    """Without a service nobody knows whether the old link was used: a second epsilon must be accepted."""
    built = build_campaign(url=None)
    write_new_campaign_folder(tmp_path / "survey", built.campaign, built.parts)
    write_first_links(tmp_path / "survey")

    with pytest.raises(SettingsError, match="unknown whether the old link was used"):
        replace_link(tmp_path / "survey", 0)

    assert (0,) == replace_link(tmp_path / "survey", 0, accept_second_report=True).slots


def test_links_are_not_written_where_others_may_enter(folder):
    """A folder that is open to other users is refused."""
    folder.chmod(0o755)
    with pytest.raises(SettingsError, match="closed to all other users"):
        write_first_links(folder)

    assert not (folder / "tokens.json").exists()


def test_a_repository_and_many_links_are_warned_of(folder, monkeypatch):
    """Inside a git repository there is a warning; beyond the largest sheet there is none, with a warning."""
    (folder.parent / ".git").mkdir()
    monkeypatch.setattr(invitations, "MAX_SHEET", 2)

    made = write_first_links(folder)

    assert ["No printable sheet", "git repository"] == [
        re.search("No printable sheet|git repository", text)[0] for text in made.warnings
    ]
    assert not (folder / "links.html").exists()


def test_damaged_names_are_refused(folder):
    """A table of names that does not fit the slots is refused."""
    Path(folder / "workers.csv").write_text("slot,name\n0,Ann\n2,Bo\n1,Chen\n")
    with pytest.raises(SettingsError, match=r"workers\.csv must name each worker once"):
        write_first_links(folder)


def test_the_collection_in_memory_is_that_of_the_folder(tmp_path):
    """Evidence made without files is what `infer` reads from the exported folder: reports, cells, facts and inputs."""
    campaign, reports = accepted("a smaller load", [0, 1])
    kept = collected_question(campaign, reports)
    write_questions(tmp_path, campaign, reports)

    read = read_evidence(tmp_path / "reports.csv")

    assert kept.files == {name: (tmp_path / name).read_bytes() for name in EXPORT_FILES}
    assert (kept.evidence.sha256, kept.evidence.collection) == (read.sha256, read.collection)
    assert kept.evidence.every_input == read.every_input
    assert kept.evidence.assignment is not None
    assert read.assignment is not None
    assert kept.evidence.assignment.to_csv() == read.assignment.to_csv()


def test_two_draws_of_a_worker_in_one_campaign_are_two_releases():
    """Reports that a device drew twice, collected apart, add their epsilons: the campaign's name hides none."""
    campaign, reports = accepted("a smaller load", [0, 1])
    other = [reports[0]._replace(codes=[(code + 1) % 2 for code in reports[0].codes]), reports[1]]
    inputs = [collected_question(campaign, sent).evidence.every_input[0] for sent in (reports, other)]

    joint = joint_guarantee(inputs)

    assert inputs[0].guarantee is not None
    assert joint is not None
    assert joint.per_cell.epsilon >= 2 * inputs[0].guarantee.epsilon
