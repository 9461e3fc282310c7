"""Database of the service: campaigns, their parts and pictures, tokens, and reports."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Self

from sqlalchemy import Connection, Select, delete, func, select, update

from crowdveil.campaign.rules.assignment_part import AssignmentPart
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.rules.report import MAX_HEADER_BYTES, decode_body, make_receipt, reports_in_batch
from crowdveil.campaign.rules.token import Token, token_hash
from crowdveil.campaign.service.problems import Problem
from crowdveil.campaign.service.report_writer import ReportWriter, SubmittedReport
from crowdveil.campaign.service.schema import (
    VERSION,
    WRITES,
    batches,
    campaigns,
    engine_of,
    ensure_tables,
    parts,
    pictures,
    reports,
    rewrite_database,
    tokens,
    version_of,
)
from crowdveil.errors import CampaignError, SettingsError
from crowdveil.standalone.checks import SLOTS_PER_PART

MAX_PARTS_IN_MEMORY = 256
State = Literal["open", "closed", "purged"]
LinkState = Literal["unused", "used", "revoked"]


def today_utc() -> date:
    """Return the day in UTC."""
    return datetime.now(UTC).date()


class Purged(NamedTuple):
    """Numbers of deleted rows; of a relay, batches that were not delivered too, and reports in no delivered batch."""

    reports: int
    tokens: int
    parts: int
    pictures: int
    undelivered_batches: int = 0
    undelivered_reports: int = 0


class Store:
    """Open database; `close` ends its writer thread.

    Attributes:
        engine: connections.
        today: function that returns the day in UTC.
    """

    def __init__(self, url: str, *, today: Callable[[], date] = today_utc) -> None:
        self.engine = engine_of(url)
        self.today = today
        self._intake = ReportWriter(self.engine)
        self._writer = self.engine.execution_options(**{WRITES: True})
        self._parsed: dict[bytes, tuple[Campaign, bytes]] = {}
        self._part = lru_cache(MAX_PARTS_IN_MEMORY)(self._read_part)
        self._on_purge: list[Callable[[bytes], object]] = []

    @classmethod
    def open(cls, url: str, *, today: Callable[[], date] = today_utc) -> Self:
        """Return the store of a database, with tables; see `ensure_tables`.

        Raises:
            SettingsError: not a database of the service, or one of another version.
        """
        store = cls(url, today=today)
        try:
            ensure_tables(store.engine)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Store what was submitted, and close all connections."""
        self._intake.close()
        self.engine.dispose()

    def is_ready(self) -> bool:
        """Return whether the database has the newest schema, and stores reports; a full disk stores none.

        Raises:
            SQLAlchemyError: the database does not answer.
        """
        with self.engine.connect() as connection:
            newest = version_of(connection) == VERSION
        return newest and self._intake.can_write()

    # Reading

    def state(self, digest: bytes) -> State:
        """Return the state of a campaign; raises Problem `unknown`."""
        with self.engine.connect() as connection:
            return _state_of_campaign(connection, digest)

    def campaign(self, digest: bytes) -> Campaign:
        """Return a campaign, from memory after the first call; raises Problem `unknown` or `purged`."""
        return self._campaign_and_receipt_key(digest)[0]

    def digests_of_unpurged_campaigns(self) -> list[bytes]:
        """Return the digests of all campaigns that are not purged."""
        with self.engine.connect() as connection:
            rows = connection.execute(select(campaigns.c.hash).where(campaigns.c.state != "purged"))
            return sorted(row.hash for row in rows)

    def document(self, digest: bytes) -> bytes:
        """Return the bytes of `campaign.json`; raises Problem `unknown` or `purged`."""
        return self._document_bytes_or_problem(digest, select(campaigns.c.document).where(campaigns.c.hash == digest))

    def part(self, digest: bytes, number: int) -> bytes:
        """Return the bytes of an assignment part; raises Problem `unknown` or `purged`."""
        return self._document_bytes_or_problem(
            digest, select(parts.c.document).where(parts.c.campaign == digest, parts.c.number == number)
        )

    def picture(self, digest: bytes, sha256: bytes) -> tuple[bytes, str]:
        """Return the bytes and the media type of a picture; raises Problem `unknown` or `purged`."""
        found = pictures.c.campaign == digest, pictures.c.sha256 == sha256
        data = self._document_bytes_or_problem(digest, select(pictures.c.document).where(*found))
        with self.engine.connect() as connection:
            return data, connection.execute(select(pictures.c.type).where(*found)).scalar_one()

    def tasks(self, digest: bytes, slot: int) -> tuple[int, ...]:
        """Return the task indices of a slot; raises Problem `unknown` or `purged`."""
        return self._part(digest, slot // SLOTS_PER_PART).tasks(slot)

    def link_state(self, digest: bytes, token: Token) -> LinkState:
        """Return the state of a link; raises Problem `unknown`, `purged` or `token`."""
        held = token_hash(digest, token)
        with self.engine.connect() as connection:
            if _state_of_campaign(connection, digest) == "purged":
                raise Problem("purged")
            known = select(tokens.c.revoked).where(tokens.c.campaign == digest, tokens.c.token_hash == held)
            revoked = connection.execute(known).scalar_one_or_none()
            if revoked is None:
                raise Problem("token")
            used = select(reports.c.report_id).where(reports.c.campaign == digest, reports.c.token_hash == held)
            if connection.execute(used).first() is not None:
                return "used"
            return "revoked" if revoked else "unused"

    def visible_report_count(self, digest: bytes) -> int | None:
        """Return the number of reports under valid links; None below the campaign's `min_reports`.

        Raises:
            Problem: `unknown` or `purged`.
        """
        valid = valid_link_reports(digest).subquery()
        with self.engine.connect() as connection:
            number = connection.execute(select(func.count()).select_from(valid)).scalar_one()
        return int(number) if number >= self.campaign(digest).min_reports else None

    def reports_under_valid_links(self, digest: bytes) -> list[tuple[int, bytes]]:
        """Return slot and body of the reports under valid links, by slot.

        Raises:
            Problem: `unknown` or `purged`.
            SettingsError: the campaign is open, or has fewer than `min_reports` reports.
        """
        least = self.campaign(digest).min_reports
        with self.engine.connect() as connection:
            if _state_of_campaign(connection, digest) == "open":
                raise SettingsError(
                    "reports are released only after the campaign is closed",
                    value="open",
                    hint="Run crowdveil campaign close first.",
                )
            rows = connection.execute(valid_link_reports(digest).order_by(tokens.c.slot)).all()
        if len(rows) < least:
            raise SettingsError(
                f"nothing is released below min_reports, which is {least}",
                value=f"fewer than {least} reports",
                hint="The campaign is closed and accepts no more reports: ask again in a new campaign.",
            )
        return [(row.slot, row.body) for row in rows]

    # Reports

    def submit(self, digest: bytes, token: Token, report_id: str, body: bytes) -> Future[bytes]:
        """Return a future of the bytes that are stored for a report; it, or the call, raises `Problem`.

        `body` has the length that the campaign prescribes. Symbols are checked unless the token has stored a report.
        """
        campaign = self.campaign(digest)
        if token.slot >= campaign.slots:
            raise Problem("token")
        submission = SubmittedReport(
            campaign=digest,
            token_hash=token_hash(digest, token),
            report_id=bytes.fromhex(report_id),
            body=body,
            period=campaign.state_on(self.today()),
            valid=self._is_decodable_or_sealed_report(campaign, token.slot, body),
        )
        return self._intake.submit(submission)

    def store_report(self, digest: bytes, token: Token, report_id: str, body: bytes) -> bytes:
        """Store a report, wait for the commit and return the receipt; raises `Problem`."""
        return self.receipt_of(digest, report_id, self.submit(digest, token, report_id, body).result())

    def receipt_of(self, digest: bytes, report_id: str, stored: bytes) -> bytes:
        """Return the receipt of a stored report; raises Problem `unknown` or `purged`."""
        campaign, key = self._campaign_and_receipt_key(digest)
        return make_receipt(key, campaign.name, report_id, stored)

    def receipt(self, digest: bytes, token: Token, report_id: str) -> bytes:
        """Return the receipt of a report that this token stored under this id.

        Raises:
            Problem: `unknown`, `purged`, or `token`; `unknown` too if it stored none under this id.
        """
        if self.link_state(digest, token) == "unused":
            raise Problem("unknown")
        found = select(reports.c.body).where(
            reports.c.campaign == digest,
            reports.c.report_id == bytes.fromhex(report_id),
            reports.c.token_hash == token_hash(digest, token),
        )
        with self.engine.connect() as connection:
            body = connection.execute(found).scalar_one_or_none()
        if body is None:
            raise Problem("unknown")
        return self.receipt_of(digest, report_id, bytes(body))

    # The curator's operations

    def close_and_count_reports(self, digest: bytes) -> int | None:
        """Close a campaign, if it is open, and rewrite the reports in the order of their keys; return `count`.

        Raises:
            Problem: `unknown` or `purged`.
            SettingsError: the campaign is closed, and the rewrite failed; call it again.
        """
        with self._writer.begin() as connection:
            if _state_of_campaign(connection, digest, lock=True) == "purged":
                raise Problem("purged")
            _update_campaign_row(connection, digest, state="closed", rewritten=False)
        self.rewrite_due_files()
        return self.visible_report_count(digest)

    def purge(self, digest: bytes, *, even_open: bool = False) -> Purged:
        """Delete the rows of a closed campaign; its hash, its state and the number of reports stay.

        `rewrite_due_files` then removes them from the files, even if the campaign was purged before.

        Args:
            digest: the campaign.
            even_open: whether an open campaign is purged too.

        Raises:
            Problem: `unknown`.
            SettingsError: the campaign is open.
        """
        with self._writer.begin() as connection:
            state = _state_of_campaign(connection, digest, lock=True)
            if state == "open" and not even_open:
                raise SettingsError(
                    "a campaign must be closed before it is purged",
                    value="open",
                    hint="Run crowdveil campaign close first.",
                )
            if state == "purged":
                count = select(campaigns.c.purged_count).where(campaigns.c.hash == digest)
                deleted = Purged(connection.execute(count).scalar_one(), 0, 0, 0)
            else:
                deleted = self._delete_rows(connection, digest)
            _update_campaign_row(connection, digest, rewritten=False)
        self._forget(digest)
        return deleted

    def _delete_rows(self, connection: Connection, digest: bytes) -> Purged:
        left = (
            _undelivered_batches_and_reports(connection, digest) if self.campaign(digest).relay is not None else (0, 0)
        )
        tables = (reports, tokens, parts, pictures)
        rows = (connection.execute(delete(table).where(table.c.campaign == digest)).rowcount for table in tables)
        deleted = Purged(*[*rows, *left])
        connection.execute(delete(batches).where(batches.c.campaign == digest))
        nothing = dict.fromkeys(("document", "receipt_key", "curator_hash"))
        _update_campaign_row(connection, digest, state="purged", purged_count=deleted.reports, **nothing)
        return deleted

    def rewrite_due_files(self) -> None:
        """Rewrite the files if a campaign was closed or purged since they were rewritten.

        Raises:
            SettingsError: as `schema.rewrite_database`; call it again.
        """
        due = select(campaigns.c.hash, campaigns.c.state).where(campaigns.c.state != "open", ~campaigns.c.rewritten)
        with self.engine.connect() as connection:
            rows = connection.execute(due).all()
        if rows:
            rewrite_database(self.engine, full="purged" in [row.state for row in rows])
            with self._writer.begin() as connection:
                for row in rows:  # not those that were purged meanwhile
                    same = (campaigns.c.hash == row.hash) & (campaigns.c.state == row.state)
                    connection.execute(update(campaigns).where(same).values(rewritten=True))

    def on_purge(self, forget: Callable[[bytes], object]) -> None:
        """Register a function that removes what is kept in memory of a purged campaign."""
        self._on_purge.append(forget)

    def forget_purged_campaigns(self) -> None:
        """Remove campaigns from memory that were purged by another process."""
        known = self.digests_of_unpurged_campaigns()
        for digest in self._parsed.keys() - known:
            self._forget(digest)

    def _forget(self, digest: bytes) -> None:
        self._parsed.pop(digest, None)
        self._part.cache_clear()
        for forget in self._on_purge:
            forget(digest)

    def _campaign_and_receipt_key(self, digest: bytes) -> tuple[Campaign, bytes]:
        """Return a campaign and its receipt key."""
        held = self._parsed.get(digest)
        if held is None:
            document = self.document(digest)
            with self.engine.connect() as connection:
                key = connection.execute(select(campaigns.c.receipt_key).where(campaigns.c.hash == digest)).scalar_one()
            held = self._parsed[digest] = Campaign.from_bytes(document), bytes(key)
        return held

    def _read_part(self, digest: bytes, number: int) -> AssignmentPart:
        return AssignmentPart.from_bytes(self.part(digest, number), self.campaign(digest), number)

    def _is_decodable_or_sealed_report(self, campaign: Campaign, slot: int, body: bytes) -> bool:
        if campaign.relay is not None:
            return True  # sealed: only the curator can check the symbols
        try:
            decode_body(body, campaign, slot, self.tasks(campaign.digest, slot))
        except CampaignError:
            return False
        return True

    def _document_bytes_or_problem(self, digest: bytes, query: Select[Any]) -> bytes:
        with self.engine.connect() as connection:
            found = connection.execute(query).scalar_one_or_none()
            if found is None:
                raise Problem("purged" if _state_of_campaign(connection, digest) == "purged" else "unknown")
            return bytes(found)


def _update_campaign_row(connection: Connection, digest: bytes, **values: Any) -> None:
    connection.execute(update(campaigns).where(campaigns.c.hash == digest).values(values))


def _state_of_campaign(connection: Connection, digest: bytes, *, lock: bool = False) -> State:
    query = select(campaigns.c.state).where(campaigns.c.hash == digest)
    state = connection.execute(query.with_for_update() if lock else query).scalar_one_or_none()
    if state is None:
        raise Problem("unknown")
    return state


def _undelivered_batches_and_reports(connection: Connection, digest: bytes) -> tuple[int, int]:
    """Return the number of batches of a relay that were not delivered, and of reports in no delivered batch."""
    head = func.substr(batches.c.document, 1, MAX_HEADER_BYTES)
    rows = connection.execute(select(batches.c.delivered, head).where(batches.c.campaign == digest)).all()
    if not rows:
        return 0, connection.execute(
            select(func.count()).select_from(valid_link_reports(digest).subquery())
        ).scalar_one()
    left = [reports_in_batch(bytes(start)) for sent, start in rows if not sent]
    return len(left), sum(left)


def valid_link_reports(digest: bytes) -> Select[tuple[int, bytes]]:
    """Return the query of slot and body of the reports under valid links."""
    joined = reports.join(
        tokens, (reports.c.campaign == tokens.c.campaign) & (reports.c.token_hash == tokens.c.token_hash)
    )
    columns = select(tokens.c.slot, reports.c.body).select_from(joined)
    return columns.where(reports.c.campaign == digest, ~tokens.c.revoked)
