"""Forwarding of sealed reports: batches are formed once, when the campaign is closed, and sent until they are stored.

All batches are formed in one transaction, so that a crash leaves all of them or none. A batch is sent with its SHA-256
as its name; sending it again changes nothing. Fewer reports than the least batch are held back and never sent.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Event, Thread, Timer
from urllib.parse import urlsplit

from sqlalchemy import func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from crowdveil.campaign.rules.report import make_batches
from crowdveil.campaign.service.export_and_purge import purge_due_or_log
from crowdveil.campaign.service.problems import BATCH_MEDIA_TYPE, Problem
from crowdveil.campaign.service.schema import WRITES, batches, campaigns
from crowdveil.campaign.service.store import Store, valid_link_reports
from crowdveil.errors import SettingsError

Send = Callable[[str, bytes], None]
"""Function that delivers a batch by name and content; raises OSError if it was not stored."""
PAUSE_SECONDS, MOST_PAUSE_SECONDS = 1.0, 60.0
CONNECT_SECONDS, SEND_SECONDS = 30.0, 300.0
logger = logging.getLogger("crowdveil.campaign.service")


def form_batches(store: Store, digest: bytes) -> int:
    """Form the batches of a closed campaign, unless that was done; return their number.

    Raises:
        Problem: `unknown` or `purged`.
    """
    campaign = store.campaign(digest)
    with store.engine.execution_options(**{WRITES: True}).begin() as connection:
        locked = select(campaigns.c.state).where(campaigns.c.hash == digest).with_for_update()
        if connection.execute(locked).scalar_one() != "closed":
            return 0
        number = select(func.count()).select_from(batches).where(batches.c.campaign == digest)
        if formed := int(connection.execute(number).scalar_one()):
            return formed
        sealed = [bytes(row.body) for row in connection.execute(valid_link_reports(digest))]
        documents = make_batches(campaign, sealed)
        rows = [
            {"campaign": digest, "sha256": sha256(document).digest(), "document": document, "delivered": False}
            for document in documents
        ]
        if rows:
            connection.execute(insert(batches), rows)
        return len(rows)


def send_batches(store: Store, digest: bytes, send: Send) -> int:
    """Send the batches that were not delivered, in the order of their names; return the number of those sent now.

    Raises:
        OSError: a batch was not stored; it is sent again by the next call.
    """
    open_ones = batches.c.campaign == digest, ~batches.c.delivered
    with store.engine.connect() as connection:
        wanted = select(batches.c.sha256).where(*open_ones).order_by(batches.c.sha256)
        named = list(connection.execute(wanted).scalars())
    for name in named:
        this = (batches.c.campaign == digest) & (batches.c.sha256 == name)
        with store.engine.connect() as connection:
            document = connection.execute(select(batches.c.document).where(this)).scalar_one()
        send(bytes(name).hex(), bytes(document))
        with store.engine.execution_options(**{WRITES: True}).begin() as connection:
            connection.execute(update(batches).where(this).values(delivered=True))
    return len(named)


def batch_sender_over_http(url: str, campaign: str, token: str) -> Send:
    """Return a function that sends a batch to the curator's side at an address, which must confirm its SHA-256.

    Each sending ends after `SEND_SECONDS`, also if the other side answers slowly: the day of deletion does not wait.
    """
    parsed = urlsplit(url)
    connect = HTTPSConnection if parsed.scheme == "https" else HTTPConnection

    def send(name: str, document: bytes) -> None:
        path = f"{parsed.path}/v1/campaigns/{campaign}/batches/{name}"
        headers = {"Authorization": f"Bearer {token}", "Content-Type": BATCH_MEDIA_TYPE}
        connection = connect(parsed.netloc, timeout=CONNECT_SECONDS)
        try:
            connection.connect()
            with _shut_down_after_send_seconds(connection.sock):
                connection.request("PUT", path, document, headers)
                reply = connection.getresponse()
                confirmed = reply.read(1_000)
        except HTTPException as error:
            raise OSError(type(error).__name__) from None
        finally:
            connection.close()
        if reply.status != 200:
            raise OSError(f"status {reply.status}")
        if confirmed != stored_batch_reply(name):
            raise OSError("another confirmation")

    return send


@contextmanager
def _shut_down_after_send_seconds(connection: socket.socket) -> Iterator[None]:
    """Context in which a connection is shut down after `SEND_SECONDS`."""
    timer = Timer(SEND_SECONDS, connection.shutdown, (socket.SHUT_RDWR,))
    connection.settimeout(SEND_SECONDS)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def stored_batch_reply(batch_sha256: str) -> bytes:
    """Return the reply to a batch that is stored."""
    return b'{"stored_sha256":"%s"}' % batch_sha256.encode("ascii")


class Forwarder:
    """Thread that closes a campaign after its last day, forms and sends its batches, and deletes on the promised day.

    Args:
        store: the relay's database.
        digest: the campaign.
        send: delivers a batch.
    """

    def __init__(self, store: Store, digest: bytes, send: Send) -> None:
        self._store, self._digest, self._send = store, digest, send
        self._ends = Event()
        self._held_back = False
        self._last = store.campaign(digest).purge_day
        self._thread = Thread(target=self._forward_until_purged, name="crowdveil-relay", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread after a batch in progress."""
        self._ends.set()
        self._thread.join()

    def _forward_until_purged(self) -> None:
        pause, purged = PAUSE_SECONDS, False
        while not self._ends.is_set():
            try:
                self._close_when_due_and_send_batches()
                pause = PAUSE_SECONDS
            except (OSError, SQLAlchemyError, SettingsError) as error:
                logger.error(
                    "forwarding failed: %s; it is tried again until the day of deletion, %s (UTC)",
                    error if isinstance(error, SettingsError) else type(error).__name__,
                    self._last,
                )
                pause = min(2 * pause, MOST_PAUSE_SECONDS)
            except Problem:
                purged = True  # there is nothing left to forward
            done = purge_due_or_log(self._store)
            if done and purged:
                return
            self._ends.wait(pause if done else MOST_PAUSE_SECONDS)

    def _close_when_due_and_send_batches(self) -> None:
        store, digest = self._store, self._digest
        campaign = store.campaign(digest)
        if store.state(digest) == "open":
            if campaign.state_on(store.today()) != "closed":
                return
            store.close_and_count_reports(digest)
        formed = form_batches(store, digest)
        if not formed and not self._held_back:
            self._held_back = True
            logger.warning("fewer reports than the least batch: they are held back and never sent")
        send_batches(store, digest, self._send)
