"""Collection of report files, and of two rounds: what counts, what is listed and left, and the same bytes again."""

import json
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from crowdveil.campaign.canonical_json import canonical_bytes
from crowdveil.campaign.document import EarlierRound, Groups
from crowdveil.campaign.folder import CampaignFolder, TokenEntry, tokens_bytes
from crowdveil.campaign.report import ReportFile
from crowdveil.campaign.token import Token, token_hash
from crowdveil.channels.channel_table import channel_indices, table_by_cell
from crowdveil.cli import main
from crowdveil.errors import CampaignError, ReportsError, SettingsError
from crowdveil.folder.campaign import collection_of_all_rounds
from crowdveil.folder.campaign.campaign_reports import AcceptedReport, write_campaign_reports
from crowdveil.folder.campaign.collection_of_all_rounds import (
    EARLIER_FOLDER,
    collection_of_both_rounds,
    read_collection,
    read_earlier_rounds,
)
from crowdveil.folder.campaign.report_files import (
    ACCEPTED,
    CLOSED_FILE,
    COPY,
    LATE,
    SAME_ID,
    TWO_REPORTS,
    Closing,
    close_campaign_by_report_files,
    read_report_files,
    write_collections_and_file_states,
)
from crowdveil.folder.crowd import json_bytes
from crowdveil.folder.evidence import read_evidence
from crowdveil.release.privacy_statement import statement_of_source
from crowdveil.standalone.checks import MAX_CERTIFICATE_BYTES
from tests.campaign.builders import LABELS, BuiltCampaign, body_of, build_campaign, response


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
    """Copies count once, one as wrapped text too; two reports for one token or id do not; other files are listed."""
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
        write_collections_and_file_states(out, campaign.campaign, read_report_files(tmp_path / "in", campaign))
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
    closed = close_campaign_by_report_files(folder, asked)
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
    assert closed.closing == close_campaign_by_report_files(folder, asked).closing
    assert b"token" not in (tmp_path / "campaign" / CLOSED_FILE).read_bytes()


def test_a_report_that_counted_may_not_disappear(built, tmp_path):
    """After the closing, a folder without one of the reports is refused."""
    folder, asked = tmp_path / "in", CampaignFolder(tmp_path / "campaign")
    put(built, folder, a=report(built, 0), b=report(built, 1))
    close_campaign_by_report_files(folder, asked)
    (folder / "b.json").unlink()

    with pytest.raises(ReportsError, match="must hold all 2 reports"):
        read_report_files(folder, asked)


def test_a_folder_without_a_report_that_counts_does_not_close_a_campaign(built, tmp_path):
    """A folder of other files, such as that of collect, is refused, and the campaign stays open."""
    folder, asked = tmp_path / "in", CampaignFolder(tmp_path / "campaign")
    (folder / "reports.csv").write_text("task,worker,report\n", "utf-8")

    with pytest.raises(ReportsError, match="a file must be a report that counts"):
        close_campaign_by_report_files(folder, asked)

    assert Closing.read(asked) is None


def test_a_damaged_closing_is_refused(built, tmp_path):
    """A closing of another campaign, or with other fields, stops the collection."""
    asked, path = CampaignFolder(tmp_path / "campaign"), tmp_path / "campaign" / CLOSED_FILE
    fields = {"campaign": asked.campaign.name, "format": "crowdveil-closed/1", "reports": ["a" * 64, "b" * 64]}
    for changed in ({"campaign": "x"}, {"reports": ["b" * 64, "a" * 64]}, {"reports": ["x"]}, {"more": 1}):
        path.write_bytes(canonical_bytes({**fields, **changed}))
        with pytest.raises(CampaignError, match="not the closing"):
            Closing.read(asked)


def test_a_served_campaign_has_no_files_to_close(tmp_path):
    """The reports of a campaign with a service are closed in its database."""
    build_campaign().write(tmp_path / "served")

    with pytest.raises(SettingsError, match="without a service"):
        close_campaign_by_report_files(tmp_path, CampaignFolder(tmp_path / "served"))


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
    earlier = read_earlier_rounds(folder, built.campaign)
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
    chosen = channel_indices(table, reports.tasks, reports.workers)  # type: ignore[union-attr]
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
    found, _ = statement_of_source(both)

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
        statement_of_source(both)


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
        collection_of_both_rounds(first, first._replace(reports=few))

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
    assert PLAIN.epsilon > built.campaign.weakest_answer_guarantee_over_rounds.epsilon

    with pytest.raises(ReportsError, match="other certificate"):
        statement_of_source(both)


def test_public_participation_of_an_earlier_round_is_not_stated_as_protected(tmp_path: Path) -> None:
    """A protected round after a public one has no statement of all reports: the promise is that of both."""
    first = build_campaign(url=None, assignment=[[0, 1], [2, 3], [0, 3]], participation="public").campaign
    loss = first.channels[0].ratio
    assert loss is not None
    second = later(EarlierRound(first.name, 2, *loss.as_integer_ratio()))
    write_campaign_reports(tmp_path / EARLIER_FOLDER, first, REPORTS)
    earlier = read_earlier_rounds(tmp_path, second.campaign)
    sent = [AcceptedReport(0, (2, 3), (1, 3)), AcceptedReport(2, (1, 2), (0, 2))]
    write_campaign_reports(tmp_path / "both", second.campaign, sent, earlier=earlier)

    with pytest.raises(ReportsError, match="other certificate"):
        statement_of_source(tmp_path / "both")


def test_a_table_of_all_rounds_that_is_refused_late_is_refused_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The largest permitted table is shorter than what readers take; a larger one is not written."""
    side = 200
    chosen = np.random.default_rng(0).integers(12, size=(side, side))
    names = [f"w{number:06}" for number in range(side)]
    table = table_by_cell([response(epsilon=1 + one / 20) for one in range(12)], chosen, names, names)
    assert (side, side) == (len(table.choice), len(table.choice[0]))
    bytes_per_entry = len(json_bytes(table.certificate())) / side**2
    assert bytes_per_entry * collection_of_all_rounds.MOST_ENTRIES < MAX_CERTIFICATE_BYTES

    monkeypatch.setattr(collection_of_all_rounds, "MOST_ENTRIES", 11)
    with pytest.raises(SettingsError, match="3 workers and 4 tasks"):
        write_both(tmp_path, later(), [AcceptedReport(0, (2, 3), (1, 3)), AcceptedReport(2, (1, 2), (0, 2))])
    assert not (tmp_path / "both").exists()
