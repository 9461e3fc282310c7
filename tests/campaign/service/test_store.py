"""Stored reports, receipts and the states of campaigns and links, in both databases."""

import secrets
from collections.abc import Iterator
from datetime import date
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import select, text

from crowdveil.campaign.files.folder import CampaignFolder, TokenEntry, tokens_bytes
from crowdveil.campaign.rules.token import Token, token_hash
from crowdveil.campaign.service.campaign_registration import (
    CURATOR_FILE,
    curator_token_hash,
    read_or_make_token,
    register_campaign,
)
from crowdveil.campaign.service.problems import Problem
from crowdveil.campaign.service.schema import campaigns, reports
from crowdveil.campaign.service.store import Purged, Store
from crowdveil.errors import SettingsError
from tests.campaign.builders import BuiltCampaign

BODY, OTHER_BODY = b"\0\1\2\3", b"\3\2\1\0"


def new_id() -> str:
    """A report id."""
    return secrets.token_hex(16)


@pytest.fixture
def folder(built: BuiltCampaign, tmp_path: Path) -> CampaignFolder:
    """The folder of the campaign."""
    return CampaignFolder(built.write(tmp_path / "campaign"))


@pytest.fixture
def store(database_url: str, folder: CampaignFolder) -> Iterator[Store]:
    """A store that holds the campaign."""
    opened = Store.open(database_url)
    register_campaign(opened, folder)
    yield opened
    opened.close()


def problem_of(store: Store, built: BuiltCampaign, token: Token, report_id: str, body: bytes = BODY) -> str:
    """The name of the problem with which a report is refused."""
    with pytest.raises(Problem) as refused:
        store.store_report(built.campaign.digest, token, report_id, body)
    return refused.value.name


def test_the_first_write_wins(store: Store, built: BuiltCampaign) -> None:
    """A retry, equal or not, valid or not, has the receipt of the first write and changes nothing."""
    digest, token, report_id = built.campaign.digest, built.tokens[0], new_id()
    first = store.store_report(digest, token, report_id, BODY)

    again = [store.store_report(digest, token, report_id, body) for body in (BODY, OTHER_BODY, b"\xff" * 4)]

    assert [first] * 3 == again
    with store.engine.connect() as connection:
        assert [BODY] == list(connection.execute(select(reports.c.body)).scalars())


def test_a_link_is_used_once_and_an_id_belongs_to_one_link(store: Store, built: BuiltCampaign) -> None:
    """Another report with the same link is refused, and another link with the same id."""
    report_id = new_id()
    store.store_report(built.campaign.digest, built.tokens[0], report_id, BODY)

    assert "link-used" == problem_of(store, built, built.tokens[0], new_id())
    assert "report-id-taken" == problem_of(store, built, built.tokens[1], report_id)


def test_one_token_on_twenty_devices_stores_one_report(store: Store, built: BuiltCampaign) -> None:
    """Of twenty reports at once under one link, one is stored and nineteen are refused."""
    futures = [store.submit(built.campaign.digest, built.tokens[0], new_id(), BODY) for _ in range(20)]

    outcomes = [future.exception() for future in futures]

    assert 1 == outcomes.count(None)
    assert {"link-used"} == {error.name for error in outcomes if isinstance(error, Problem)}


def test_a_closed_campaign_accepts_no_new_report(store: Store, built: BuiltCampaign) -> None:
    """After closing, a new report is refused, and a retry still has its receipt."""
    digest, report_id = built.campaign.digest, new_id()
    first = store.store_report(digest, built.tokens[0], report_id, BODY)

    assert store.close_and_count_reports(digest) is None
    assert "closed" == problem_of(store, built, built.tokens[1], new_id())
    assert first == store.store_report(digest, built.tokens[0], report_id, BODY)


@pytest.mark.parametrize(("day", "expected"), [(date(2019, 12, 31), "early"), (date(2100, 1, 1), "closed")])
def test_reports_are_accepted_on_the_days_of_the_campaign(
    database_url: str, folder: CampaignFolder, built: BuiltCampaign, day: date, expected: str
) -> None:
    """Before the first day and after the last one a report is refused."""
    store = Store.open(database_url, today=lambda: day)
    register_campaign(store, folder)

    assert expected == problem_of(store, built, built.tokens[0], new_id())
    store.close()


def test_nothing_is_released_while_open_or_below_the_least_number(store: Store, built: BuiltCampaign) -> None:
    """An open campaign, and one with fewer reports than `min_reports`, release no report and no number."""
    digest = built.campaign.digest
    store.store_report(digest, built.tokens[0], new_id(), BODY)

    assert store.visible_report_count(digest) is None
    with pytest.raises(SettingsError, match="after the campaign is closed"):
        store.reports_under_valid_links(digest)
    store.close_and_count_reports(digest)
    with pytest.raises(SettingsError, match=r"below min_reports, which is 2, got 'fewer than 2 reports'") as refusal:
        store.reports_under_valid_links(digest)
    assert "closed and accepts no more reports: ask again in a new campaign" in refusal.value.hint


def test_released_reports_are_in_the_order_of_slots(store: Store, built: BuiltCampaign) -> None:
    """A closed campaign releases its reports by slot, not by arrival."""
    digest = built.campaign.digest
    for slot, body in ((2, OTHER_BODY), (0, BODY)):
        store.store_report(digest, built.tokens[slot], new_id(), body)

    assert 2 == store.close_and_count_reports(digest)
    assert [(0, BODY), (2, OTHER_BODY)] == store.reports_under_valid_links(digest)


def test_a_purge_leaves_the_hash_the_state_and_the_number(store: Store, built: BuiltCampaign) -> None:
    """A purge deletes reports, tokens, parts and keys; then everything about the campaign is refused as purged."""
    digest = built.campaign.digest
    store.store_report(digest, built.tokens[0], new_id(), BODY)
    with pytest.raises(SettingsError, match="must be closed before"):
        store.purge(digest)
    store.close_and_count_reports(digest)

    assert Purged(reports=1, tokens=3, parts=1, pictures=0) == store.purge(digest)
    with store.engine.connect() as connection:
        row = connection.execute(select(campaigns)).one()
    assert (digest, None, "purged", None, None, 1, False, 0) == tuple(row)
    for read in (store.document, store.campaign, store.visible_report_count, store.close_and_count_reports):
        with pytest.raises(Problem, match="purged"):
            read(digest)
    assert "purged" == problem_of(store, built, built.tokens[0], new_id())


def test_registration_is_repeatable_and_writes_the_curators_token_once(
    store: Store, folder: CampaignFolder, built: BuiltCampaign
) -> None:
    """A second registration changes nothing; the database holds the hash of the token, the file is private."""
    path = folder.path / CURATOR_FILE
    written = path.read_text().strip()

    assert [] == register_campaign(store, folder)
    assert written == path.read_text().strip()
    assert 0o600 == path.stat().st_mode & 0o777
    with store.engine.connect() as connection:
        held = connection.execute(select(campaigns.c.curator_hash)).scalar_one()
    assert curator_token_hash(built.campaign.digest, written) == held


def with_new_link(folder: CampaignFolder, built: BuiltCampaign) -> tuple[CampaignFolder, Token]:
    """The folder after the link of slot 0 was replaced, and the new token."""
    digest, new = built.campaign.digest, Token.new(0)
    entries = [TokenEntry(token.slot, token_hash(digest, token), token.slot == 0) for token in built.tokens]
    entries.append(TokenEntry(0, token_hash(digest, new)))
    (folder.path / "tokens.json").write_bytes(tokens_bytes(entries, built.campaign))
    return CampaignFolder(folder.path), new


def test_a_new_link_replaces_an_unused_one(store: Store, folder: CampaignFolder, built: BuiltCampaign) -> None:
    """The old link is revoked and the new one stores a report."""
    changed, new = with_new_link(folder, built)

    assert [] == register_campaign(store, changed)
    assert "link-revoked" == problem_of(store, built, built.tokens[0], new_id())
    assert store.store_report(built.campaign.digest, new, new_id(), BODY)


def test_a_used_link_is_replaced_on_purpose_only(store: Store, folder: CampaignFolder, built: BuiltCampaign) -> None:
    """A link with a report stays valid unless a second report is accepted; then the new link's report counts."""
    digest = built.campaign.digest
    report_id = new_id()
    first = store.store_report(digest, built.tokens[0], report_id, BODY)
    changed, new = with_new_link(folder, built)

    assert [0] == register_campaign(store, changed)
    assert "token" == problem_of(store, built, new, new_id())
    assert [] == register_campaign(store, changed, accept_second_report=True)
    store.store_report(digest, new, new_id(), OTHER_BODY)
    store.store_report(digest, built.tokens[1], new_id(), BODY)
    assert first == store.store_report(digest, built.tokens[0], report_id, BODY)
    store.close_and_count_reports(digest)
    assert [(0, OTHER_BODY), (1, BODY)] == store.reports_under_valid_links(digest)


def test_a_failing_database_stores_nothing_and_refuses_for_now(store: Store, built: BuiltCampaign) -> None:
    """While the table cannot be written, every report is refused as busy; afterwards the same bytes are stored."""
    with store.engine.begin() as connection:
        connection.execute(text("ALTER TABLE report RENAME TO away"))
    report_id = new_id()

    assert "busy" == problem_of(store, built, built.tokens[0], report_id)
    with store.engine.begin() as connection:
        connection.execute(text("ALTER TABLE away RENAME TO report"))
    receipt = store.store_report(built.campaign.digest, built.tokens[0], report_id, BODY)
    assert sha256(BODY).hexdigest().encode() in receipt


@pytest.mark.parametrize("content", [b"", b"half", b"\xff\xfe\x00", b"x" * 1000])
def test_a_token_file_that_holds_none_is_refused(content: bytes, tmp_path: Path) -> None:
    """A file that is empty, half written, no text or long is refused by rule and hint; a new one is complete."""
    held = tmp_path / "held.txt"
    held.write_bytes(content)
    with pytest.raises(SettingsError, match="must hold a token of 43 characters"):
        read_or_make_token(held)
    with pytest.raises(SettingsError, match="must hold a token of 43 characters"):
        read_or_make_token(tmp_path / "absent.txt", make=False)

    made = read_or_make_token(tmp_path / "new.txt")
    assert made == read_or_make_token(tmp_path / "new.txt") == read_or_make_token(tmp_path / "new.txt", make=False)
    assert 0o600 == (tmp_path / "new.txt").stat().st_mode & 0o777
