"""Links: one per worker, single-use, in private files; only hashes are kept."""

import csv
import re
import stat
from pathlib import Path

import pytest

from crowdveil.campaign.document import compared
from crowdveil.campaign.folder import CampaignFolder
from crowdveil.campaign.token import Link, Token, token_hash
from crowdveil.errors import CrowdveilError, SettingsError
from crowdveil.folder.campaign import invitations
from crowdveil.folder.campaign.invitations import invite, render_sheet, replace_link
from crowdveil.planning.settings.creation import write_campaign
from crowdveil.standalone.checks import parse_link
from tests.campaign.builders import build_campaign

NAMES = ("Ann", "<b>Bo</b>", "Chen, J.")


@pytest.fixture
def folder(tmp_path):
    """Folder of a campaign of three workers with names."""
    built = build_campaign(url="https://grades.example.org", content={"title": "Essays & more", "language": "de-AT"})
    write_campaign(tmp_path / "essays", built.campaign, built.parts, names=NAMES)
    return tmp_path / "essays"


def links(path):
    """Return the rows of a file of links, and the links."""
    with open(path, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    parsed = [parse_link(row["link"]) for row in rows]
    return rows, [Link(url, name, Token.from_text(token)) for url, name, token, _ in parsed]


def test_each_worker_has_a_link_and_only_hashes_are_kept(folder):
    """The hashes belong to the links; no secret stands in any other file than the two of the links."""
    made = invite(folder)
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
    invite(folder)
    sheet = (folder / "links.html").read_text("utf-8")

    assert 3 == sheet.count("<section>") == sheet.count("<svg")
    assert 3 == sheet.count(f"<code>{compared(CampaignFolder(folder).campaign.name)}</code>")
    assert 3 == sheet.count("<code>grades.example.org</code>")
    assert "&lt;b&gt;Bo&lt;/b&gt;" in sheet
    assert "<b>" not in sheet
    assert "Essays &amp; more" in sheet
    assert "Scannen Sie den Code" in sheet
    assert [] == re.findall(r"<script|src=|href=|@import|url\(", sheet)


def test_the_code_on_the_sheet_is_the_link():
    """The QR code is version 7 or less at level M, as segno draws it for the link, whose text is on the card too."""
    import segno

    built = build_campaign(url="https://grades.example.org")
    code = segno.make(built.link(0).text, error="m", micro=False)

    assert code.version <= 7
    sheet = render_sheet(built.campaign, [built.link(0)])
    assert code.svg_inline(omitsize=True) in sheet
    assert f">{built.link(0).text}</p>" in sheet


def test_without_a_service_the_link_is_pasted():
    """A campaign without a service has links without an address, and says so."""
    built = build_campaign(url=None)

    sheet = render_sheet(built.campaign, [built.link(2)])

    assert "paste or scan this link" in sheet
    assert "Worker 2" in sheet


def test_links_are_made_once(folder):
    """A second invitation is refused, and the links stay."""
    invite(folder)
    before = (folder / "links.csv").read_bytes()

    with pytest.raises(SettingsError, match="made once") as caught:
        invite(folder)

    assert "--replace" in caught.value.hint
    assert before == (folder / "links.csv").read_bytes()


def test_a_replaced_link_revokes_the_old_one(folder):
    """The new link is in a file of its own; it may be replaced again; the other links stay valid."""
    invite(folder)
    first = CampaignFolder(folder).tokens

    replace_link(folder, 1)
    made = replace_link(folder, 1)
    tokens = CampaignFolder(folder).tokens
    _, (link,) = links(folder / "link-0001.csv")

    assert [(0, False), (1, True), (2, False), (1, True), (1, False)] == [(one.slot, one.revoked) for one in tokens]
    assert [one.hash for one in first] == [one.hash for one in tokens[:3]]
    assert token_hash(made.campaign.digest, link.token) == tokens[-1].hash
    assert {"link-0001.csv", "link-0001.html", "tokens.json"} == {path.name for path in made.files}


@pytest.mark.parametrize("slot", [-1, 3])
def test_a_replaced_link_needs_a_slot(folder, slot):
    """A number that is no slot is refused."""
    invite(folder)
    with pytest.raises(SettingsError, match="from 0 to 2"):
        replace_link(folder, slot)


def test_a_worker_named_like_the_slot_of_another_is_told_apart(tmp_path):
    """Where names are numbers, slot:2 is the slot; a number that is a slot and a name is refused with both slots."""
    built = build_campaign(url="https://grades.example.org")
    write_campaign(tmp_path / "survey", built.campaign, built.parts, names=("1", "2", "3"))
    invite(tmp_path / "survey")

    assert (2,) == replace_link(tmp_path / "survey", "slot:2").slots
    assert (2,) == replace_link(tmp_path / "survey", "3").slots
    with pytest.raises(SettingsError, match=r"write slot:1 or slot:2"):
        replace_link(tmp_path / "survey", 2)


def test_a_link_is_replaced_only_after_the_first_ones(folder):
    """Without links there is nothing to replace."""
    with pytest.raises(CrowdveilError, match="tokens"):
        replace_link(folder, 0)


def test_a_second_report_must_be_accepted_without_a_service(tmp_path):
    """Without a service nobody knows whether the old link was used: a second epsilon must be accepted."""
    built = build_campaign(url=None)
    write_campaign(tmp_path / "survey", built.campaign, built.parts)
    invite(tmp_path / "survey")

    with pytest.raises(SettingsError, match="unknown whether the old link was used"):
        replace_link(tmp_path / "survey", 0)

    assert (0,) == replace_link(tmp_path / "survey", 0, accept_second_report=True).slots


def test_links_are_not_written_where_others_may_enter(folder):
    """A folder that is open to other users is refused."""
    folder.chmod(0o755)
    with pytest.raises(SettingsError, match="closed to all other users"):
        invite(folder)

    assert not (folder / "tokens.json").exists()


def test_a_repository_and_many_links_are_warned_of(folder, monkeypatch):
    """Inside a git repository there is a warning; beyond the largest sheet there is none, with a warning."""
    (folder.parent / ".git").mkdir()
    monkeypatch.setattr(invitations, "MAX_SHEET", 2)

    made = invite(folder)

    assert ["No printable sheet", "git repository"] == [
        re.search("No printable sheet|git repository", text)[0] for text in made.warnings
    ]
    assert not (folder / "links.html").exists()


def test_damaged_names_are_refused(folder):
    """A table of names that does not fit the slots is refused."""
    Path(folder / "workers.csv").write_text("slot,name\n0,Ann\n2,Bo\n1,Chen\n")
    with pytest.raises(SettingsError, match=r"workers\.csv must name each worker once"):
        invite(folder)
