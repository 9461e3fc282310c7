"""Collection of report files: what counts, what is listed and left, and the same bytes again."""

import json
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from crowdveil.campaign.files.folder import CampaignFolder, TokenEntry, tokens_bytes
from crowdveil.campaign.files.report_files import (
    ACCEPTED,
    CLOSED_FILE,
    COPY,
    LATE,
    SAME_ID,
    TWO_REPORTS,
    Closing,
    close_by_report_files,
    read_report_files,
    write_collections,
)
from crowdveil.campaign.rules.canonical_json import canonical_bytes
from crowdveil.campaign.rules.report import ReportFile
from crowdveil.campaign.rules.token import Token, token_hash
from crowdveil.cli import main
from crowdveil.errors import CampaignError, ReportsError, SettingsError
from tests.campaign.builders import BuiltCampaign, body_of, build_campaign


@pytest.fixture
def built(tmp_path):
    """Return a campaign of five workers without a service, written to the folder `campaign`."""
    made = build_campaign(url=None, slots=5)
    made.write(tmp_path / "campaign")
    (tmp_path / "in").mkdir()
    return made


def report(built: BuiltCampaign, slot: int, *, first: int = 0, number: int | None = None) -> ReportFile:
    """Return a report of a slot; its id has the given number, by default the slot."""
    body = body_of([first, 1, 2, 3], built.campaign)
    return ReportFile(built.tokens[slot], f"{slot if number is None else number:032x}", body)


def put(built: BuiltCampaign, path: Path, **reports: ReportFile) -> None:
    """Write report files by name."""
    for name, one in reports.items():
        (path / f"{name}.json").write_bytes(one.to_bytes(built.campaign))


def states(tmp_path: Path) -> dict[str, str]:
    """Return the state of each file."""
    return dict(read_report_files(tmp_path / "in", CampaignFolder(tmp_path / "campaign")).states)


def test_each_file_has_its_state(built, tmp_path):
    """Copies count once, wrapped or with a mark, too; two reports for one token or id do not; others are listed."""
    folder = tmp_path / "in"
    put(built, folder, a=report(built, 0), copy=report(built, 0), b=report(built, 1), b2=report(built, 1, first=3))
    put(built, folder, c=report(built, 2, number=7), d=report(built, 3, number=7), e=report(built, 4))
    foreign, stranger = build_campaign(url=None, slots=2), Token.new(4)
    put(foreign, folder, foreign=report(foreign, 0))
    put(built, folder, stranger=ReportFile(stranger, "f" * 32, report(built, 4).body))
    put(built, folder, short=ReportFile(built.tokens[4], "e" * 32, b"\0\0"))
    put(built, folder, symbol=ReportFile(built.tokens[4], "e" * 32, b"\x09\0\0\0"))
    (folder / "broken.json").write_bytes(report(built, 4).to_bytes(built.campaign)[:-5])
    text = report(built, 4).to_bytes(built.campaign).decode()
    (folder / "text.txt").write_text("\n".join(textwrap.wrap(text, 70)) + "\r\n")
    (folder / "marked.json").write_bytes(b"\xef\xbb\xbf" + report(built, 4).to_bytes(built.campaign) + b"\r\n")
    (folder / "photo.png").write_bytes(b"\x89PNG")
    (folder / "below").mkdir()
    before = {path: path.read_bytes() for path in folder.glob("*.*")}

    assert {
        "a.json": ACCEPTED,
        "copy.json": COPY,
        "b.json": TWO_REPORTS,
        "b2.json": TWO_REPORTS,
        "c.json": SAME_ID,
        "d.json": SAME_ID,
        "e.json": ACCEPTED,
        "marked.json": COPY,
        "text.txt": COPY,
        "foreign.json": "refused (foreign)",
        "stranger.json": "refused (token)",
        "short.json": "refused (length)",
        "symbol.json": "refused (symbol)",
        "broken.json": "refused (not json)",
        "photo.png": "refused (not json)",
    } == states(tmp_path)
    assert before == {path: path.read_bytes() for path in folder.glob("*.*")}


def test_two_ids_of_one_token_conflict_although_the_symbols_are_equal(built, tmp_path):
    """Equal symbols under two ids are two draws, so none counts."""
    put(built, tmp_path / "in", a=report(built, 0), b=report(built, 0, number=9))

    assert {TWO_REPORTS} == set(states(tmp_path).values())


def test_reports_of_a_replaced_link_do_not_count(built, tmp_path):
    """A revoked token is refused, the new one counts."""
    new = Token.new(0)
    entries = [
        TokenEntry(token.slot, token_hash(built.campaign.digest, token), revoked)
        for token, revoked in ((built.tokens[0], True), (new, False))
    ]
    (tmp_path / "campaign" / "tokens.json").write_bytes(tokens_bytes(entries, built.campaign))
    put(built, tmp_path / "in", old=report(built, 0), new=ReportFile(new, "a" * 32, report(built, 0).body))

    assert {"old.json": "refused (link-revoked)", "new.json": ACCEPTED} == states(tmp_path)


def test_a_second_run_writes_the_same_bytes(built, tmp_path):
    """Names of files and their number of copies do not change the reports; a second run changes nothing."""
    put(built, tmp_path / "in", a=report(built, 0), b=report(built, 3))
    campaign = CampaignFolder(tmp_path / "campaign")

    def run(out: Path) -> dict[str, bytes]:
        write_collections(out, campaign.campaign, read_report_files(tmp_path / "in", campaign))
        return {path.name: path.read_bytes() for path in out.iterdir()}

    first = run(tmp_path / "out")
    again = run(tmp_path / "out")
    put(built, tmp_path / "in", copy=report(built, 3))
    more = run(tmp_path / "more")

    assert first == again
    assert first["reports.csv"] == more["reports.csv"]
    assert first["crowd.json"] == more["crowd.json"]
    assert b"copy.json,copy of an accepted file" in more["files.csv"]


def test_the_files_of_the_campaign_are_no_reports(built, tmp_path):
    """Reports may lie in the campaign's folder: its plan and its prior are passed over."""
    folder = CampaignFolder(tmp_path / "campaign")
    for name in ("plan.json", "prior.csv"):
        (folder.path / name).write_text("")

    assert {} == read_report_files(folder.path, folder).states


def test_a_missing_folder_is_refused(built, tmp_path):
    """A folder that does not exist is an error with its name."""
    with pytest.raises(ReportsError, match="must be readable"):
        read_report_files(tmp_path / "none", CampaignFolder(tmp_path / "campaign"))


def test_after_the_closing_the_same_reports_count(built, tmp_path):
    """Late files, and a late second report for a token that counted, are named and left; a conflict stays one."""
    folder, asked = tmp_path / "in", CampaignFolder(tmp_path / "campaign")
    put(built, folder, a=report(built, 0), b=report(built, 1), c=report(built, 2), c2=report(built, 2, first=3))
    closed = close_by_report_files(folder, asked)
    put(built, folder, a2=report(built, 0, first=3), copy=report(built, 1), d=report(built, 3), e=report(built, 4))

    found = read_report_files(folder, CampaignFolder(tmp_path / "campaign"))

    assert {
        "a.json": ACCEPTED,
        "a2.json": LATE,
        "b.json": ACCEPTED,
        "copy.json": COPY,
        "c.json": TWO_REPORTS,
        "c2.json": TWO_REPORTS,
        "d.json": LATE,
        "e.json": LATE,
    } == found.states
    assert (closed.accepted, closed.closing) == (found.accepted, found.closing)
    assert closed.closing == close_by_report_files(folder, asked).closing
    assert b"token" not in (tmp_path / "campaign" / CLOSED_FILE).read_bytes()


def test_a_report_that_counted_may_not_disappear(built, tmp_path):
    """After the closing, a folder without one of the reports is refused."""
    folder, asked = tmp_path / "in", CampaignFolder(tmp_path / "campaign")
    put(built, folder, a=report(built, 0), b=report(built, 1))
    close_by_report_files(folder, asked)
    (folder / "b.json").unlink()

    with pytest.raises(ReportsError, match="must hold all 2 reports"):
        read_report_files(folder, asked)


def test_a_folder_without_a_report_that_counts_does_not_close_a_campaign(built, tmp_path):
    """A folder of other files, such as that of collect, is refused, and the campaign stays open."""
    folder, asked = tmp_path / "in", CampaignFolder(tmp_path / "campaign")
    (folder / "reports.csv").write_text("task,worker,report\n", "utf-8")

    with pytest.raises(ReportsError, match="a file must be a report that counts"):
        close_by_report_files(folder, asked)

    assert Closing.read(asked) is None


def test_a_damaged_closing_is_refused(built, tmp_path):
    """A closing of another campaign, or with other fields, stops the collection."""
    asked, path = CampaignFolder(tmp_path / "campaign"), tmp_path / "campaign" / CLOSED_FILE
    fields = {"campaign": asked.campaign.name, "format": "crowdveil-closed/1", "reports": ["a" * 64, "b" * 64]}
    for changed in ({"campaign": "x"}, {"reports": ["b" * 64, "a" * 64]}, {"reports": ["x"]}, {"more": 1}):
        path.write_bytes(canonical_bytes({**fields, **changed}))
        with pytest.raises(CampaignError, match="does not belong"):
            Closing.read(asked)


def test_a_served_campaign_has_no_files_to_close(tmp_path):
    """The reports of a campaign with a service are closed in its database."""
    build_campaign().write(tmp_path / "served")

    with pytest.raises(SettingsError, match="without a service"):
        close_by_report_files(tmp_path, CampaignFolder(tmp_path / "served"))


def test_close_and_collect_on_the_command_line(built, tmp_path):
    """`campaign close --reports` prints the digest that `collect` prints later, whatever came late."""
    folder = tmp_path / "in"
    put(built, folder, a=report(built, 0), b=report(built, 1))
    asked = str(tmp_path / "campaign" / "campaign.json")
    closed = CliRunner().invoke(main, ["campaign", "close", asked, "--reports", str(folder), "--json"])
    put(built, folder, late=report(built, 2))
    collected = CliRunner().invoke(
        main, ["campaign", "collect", str(folder), "--campaign", asked, "--out", str(tmp_path / "out"), "--json"]
    )

    assert (0, 0) == (closed.exit_code, collected.exit_code), closed.output + collected.output
    assert json.loads(closed.stdout)["digest"] == json.loads(collected.stdout)["digest"]
    assert {ACCEPTED: 2, LATE: 1} == json.loads(collected.stdout)["states"]


def test_collect_names_no_count_below_the_least_number(built, tmp_path):
    """One report of a campaign that needs two is named as fewer than two, and nothing is written."""
    put(built, tmp_path / "in", a=report(built, 0))
    asked = str(tmp_path / "campaign" / "campaign.json")
    words = ["campaign", "collect", str(tmp_path / "in"), "--campaign", asked, "--out", str(tmp_path / "out")]
    few = CliRunner().invoke(main, words)
    put(built, tmp_path / "in", b=report(built, 1))
    enough = CliRunner().invoke(main, words)

    assert (1, 0) == (few.exit_code, enough.exit_code)
    assert "fewer than 2: nothing is released" in few.output
    assert "1 of 5" not in few.output
    assert "2 of 5 workers" in enough.output
