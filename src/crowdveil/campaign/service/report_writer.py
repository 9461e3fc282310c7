"""Storage of reports: one writer thread per process, up to 256 submissions in one transaction.

The first write of a token wins. A submission is answered after the commit, from the rows that are then stored, so that
a retry, equal or not, has the same answer as the first write.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Literal

from sqlalchemy import Connection, Engine, delete, insert, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from crowdveil.campaign.service.problems import Problem
from crowdveil.campaign.service.schema import FAILURES, WRITES, campaigns, failure_kind, reports, tokens

MAX_BATCH = 256
PROBE_BYTES = 8192
"""Size of the random row, not compressible, that is written, and deleted at once, to see whether there is room."""
logger = logging.getLogger("crowdveil.campaign.service")
Period = Literal["early", "open", "closed"]


@dataclass(frozen=True, slots=True)
class SubmittedReport:
    """One report as it arrived.

    Attributes:
        campaign: digest of the campaign.
        token_hash: hash of the token.
        report_id: 16 bytes.
        body: symbols.
        period: whether today is before, within or after the days of the campaign.
        valid: whether every symbol is an output of its channel.
    """

    campaign: bytes
    token_hash: bytes
    report_id: bytes
    body: bytes
    period: Period
    valid: bool


def store_submissions(connection: Connection, batch: Sequence[SubmittedReport]) -> list[bytes | str]:
    """Store the admissible submissions; return for each the stored body, or the name of a problem.

    In PostgreSQL the rows of the campaigns are locked in share mode, so that `close` waits for reports in flight.
    """
    hashes = {one.campaign for one in batch}
    presented = {one.token_hash for one in batch}
    locked = select(campaigns.c.hash, campaigns.c.state).where(campaigns.c.hash.in_(hashes)).with_for_update(read=True)
    states = {row.hash: row.state for row in connection.execute(locked)}
    known = select(tokens.c.campaign, tokens.c.token_hash, tokens.c.revoked)
    known = known.where(tokens.c.campaign.in_(hashes), tokens.c.token_hash.in_(presented))
    revoked = {(row.campaign, row.token_hash): row.revoked for row in connection.execute(known)}
    refusals = [_problem_of_new_report(one, states, revoked) for one in batch]
    _insert_unless_already_stored(
        connection, [one for one, refusal in zip(batch, refusals, strict=True) if not refusal]
    )
    rows = select(reports).where(reports.c.campaign.in_(hashes), reports.c.token_hash.in_(presented))
    stored = {(row.campaign, row.token_hash): (row.report_id, row.body) for row in connection.execute(rows)}
    return [_stored_body_or_problem(one, stored, refusal) for one, refusal in zip(batch, refusals, strict=True)]


def _problem_of_new_report(
    one: SubmittedReport, states: dict[bytes, str], revoked: dict[tuple[bytes, bytes], bool]
) -> str:
    """Return the problem of a report that is not stored yet; empty if it may be stored."""
    state = states.get(one.campaign, "unknown")
    if state in ("unknown", "purged"):
        return state
    if (one.campaign, one.token_hash) not in revoked:
        return "token"
    if revoked[one.campaign, one.token_hash]:
        return "link-revoked"
    if state == "closed" or one.period == "closed":
        return "closed"
    if one.period == "early":
        return "early"
    return "" if one.valid else "symbol"


def _insert_unless_already_stored(connection: Connection, admitted: Sequence[SubmittedReport]) -> None:
    """Insert reports; one whose token or id is stored already is left out."""
    if not admitted:
        return
    insert_new = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    # Equal orders of keys in all processes: two batches never wait for one another in a circle.
    ordered = sorted(admitted, key=lambda one: (one.campaign, one.token_hash, one.report_id))
    connection.execute(
        insert_new(reports).on_conflict_do_nothing(),
        [
            {"campaign": one.campaign, "report_id": one.report_id, "token_hash": one.token_hash, "body": one.body}
            for one in ordered
        ],
    )


def _stored_body_or_problem(
    one: SubmittedReport, stored: dict[tuple[bytes, bytes], tuple[bytes, bytes]], refusal: str
) -> bytes | str:
    held = stored.get((one.campaign, one.token_hash))
    if held is None:
        return refusal or "report-id-taken"
    report_id, body = held
    return body if report_id == one.report_id else "link-used"


class ReportWriter:
    """Writer thread with a queue of submissions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine.execution_options(**{WRITES: True})
        self._failure: str | None = ""
        self._queue: SimpleQueue[tuple[SubmittedReport, Future[bytes]] | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=self._store_queued_reports_in_batches, name="crowdveil-intake", daemon=True
        )
        self._thread.start()

    def submit(self, submission: SubmittedReport) -> Future[bytes]:
        """Return a future of the stored body; it raises `Problem`."""
        future: Future[bytes] = Future()
        self._queue.put((submission, future))
        return future

    def can_write(self) -> bool:
        """Return whether the last write succeeded; after a failure, and at first, a write of a few pages is tried."""
        if self._failure is None:
            return True
        row = {"hash": secrets.token_bytes(32), "document": secrets.token_bytes(PROBE_BYTES), "state": "purged"}
        try:
            with self._engine.begin() as connection:
                connection.execute(insert(campaigns).values(row))
                connection.execute(delete(campaigns).where(campaigns.c.hash == row["hash"]))
        except SQLAlchemyError as error:
            self._log_change(failure_kind(error))
            return False
        self._log_change(None)
        return True

    def _log_change(self, failure: str | None) -> None:
        """Keep the kind of the last failure, None for none, and log it once."""
        before, self._failure = self._failure, failure
        if failure is not None and failure != before:
            logger.error("reports are refused for now: %s", FAILURES.get(failure, failure))
        elif failure is None and before:
            logger.warning("reports are stored again")

    def close(self) -> None:
        """Store everything that was submitted, and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _store_queued_reports_in_batches(self) -> None:
        while (first := self._queue.get()) is not None:
            waiting, ends = [first], False
            while len(waiting) < MAX_BATCH and not self._queue.empty() and not ends:
                following = self._queue.get()
                if following is None:
                    ends = True
                else:
                    waiting.append(following)
            self._store_and_answer_batch(waiting)
            if ends:
                return

    def _store_and_answer_batch(self, waiting: Sequence[tuple[SubmittedReport, Future[bytes]]]) -> None:
        """Store a batch and answer it; a failure of the database stores nothing of it."""
        try:
            with self._engine.begin() as connection:
                answers: Sequence[bytes | str] = store_submissions(connection, [one for one, _ in waiting])
            self._log_change(None)
        except SQLAlchemyError as error:
            self._log_change(failure_kind(error))
            answers = ["busy"] * len(waiting)
        except Exception:
            answers = ["internal"] * len(waiting)
        for (_, future), answer in zip(waiting, answers, strict=True):
            if not future.set_running_or_notify_cancel():
                continue
            if isinstance(answer, bytes):
                future.set_result(answer)
            else:
                future.set_exception(Problem(answer))
