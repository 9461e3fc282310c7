"""Service as a process, raw HTTP clients that resend until they have a receipt, and the check against the database."""

import asyncio
import json
import os
import re
import secrets
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from hashlib import sha256
from pathlib import Path

from sqlalchemy import create_engine, make_url, text

from crowdveil.campaign.files.folder import TokenEntry, tokens_bytes
from crowdveil.campaign.rules.assemble import CampaignContent, assemble_campaign
from crowdveil.campaign.rules.document import Campaign, Task
from crowdveil.campaign.rules.token import Token, token_hash
from crowdveil.channels.alphabet import Scale
from crowdveil.mechanisms.randomized_response import RandomizedResponse

REPORT_MEDIA_TYPE = "application/vnd.crowdveil.report.v1"
RETRY_SECONDS = 0.05
REPLY_SECONDS = 60.0


@dataclass(frozen=True)
class LoadCampaign:
    """Campaign on disk, with one report per slot that is ready to be sent."""

    campaign: Campaign
    folder: Path
    requests: tuple["ReportRequest", ...]


@dataclass(frozen=True)
class ReportRequest:
    """One report: id, body, and the bytes of its HTTP request."""

    report_id: str
    body: bytes
    head: bytes


def make_load(folder: Path, *, slots: int, cells: int) -> LoadCampaign:
    """Write a campaign of `slots` workers with `cells` tasks each, on a scale 0..10, with random reports."""
    channel = RandomizedResponse(alphabet=Scale(0, 10, 1), epsilon=1.0, participation="protected").channel()
    content = CampaignContent(
        title="Load",
        question="Load",
        consent="Simulated reports.",
        language="en",
        opens=date(2020, 1, 1),
        closes=date(2099, 12, 31),
        min_reports=1,
        channels=(channel,),
        tasks=tuple(Task(f"t{number}", f"Task {number}") for number in range(cells)),
        url="http://127.0.0.1:8000",
    )
    campaign, parts = assemble_campaign(content, [range(cells)] * slots)
    tokens = [Token.new(slot) for slot in range(slots)]
    (folder / "parts").mkdir(parents=True)
    (folder / "campaign.json").write_bytes(campaign.to_bytes())
    for number, part in enumerate(parts):
        (folder / "parts" / f"{number:04}.json").write_bytes(part.to_bytes())
    entries = [TokenEntry(token.slot, token_hash(campaign.digest, token)) for token in tokens]
    (folder / "tokens.json").write_bytes(tokens_bytes(entries, campaign))
    return LoadCampaign(campaign, folder, tuple(_request(campaign, token, len(channel.outputs)) for token in tokens))


def _request(campaign: Campaign, token: Token, outputs: int) -> ReportRequest:
    report_id = secrets.token_hex(16)
    body = bytes(byte % outputs for byte in secrets.token_bytes(campaign.body_bytes))
    head = (
        f"PUT /v1/campaigns/{campaign.name}/reports/{report_id} HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {token.text}\r\nContent-Type: {REPORT_MEDIA_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return ReportRequest(report_id, body, head.encode())


class ServiceProcess:
    """`crowdveil campaign serve` as a process; its output goes to a file.

    Attributes:
        port: port of the service.
        log: file with everything that the process printed.
    """

    def __init__(self, folder: Path, log: Path, *options: str, database: str = "", port: int = 0) -> None:
        command = [
            sys.executable,
            "-m",
            "crowdveil",
            "campaign",
            "serve",
            str(folder / "campaign.json"),
            "--port",
            str(port),
        ]
        self.log = log
        with open(log, "ab") as stream:
            start = stream.tell()
            self.process = subprocess.Popen(
                [*command, *(["--database", database] if database else []), *options],
                stdout=stream,
                stderr=subprocess.STDOUT,
                env={**os.environ, "COLUMNS": "200", "PYTHONUNBUFFERED": "1"},
            )
        self.port = self._wait(start, tls="--tls-certificate" in options)

    def _wait(self, start: int, *, tls: bool) -> int:
        """Return the port once the service answers."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = re.search(rb"://[^ ]*?:(\d+)/a/", self.log.read_bytes()[start:])
            if found:
                with (
                    suppress(OSError),
                    socket.create_connection(("127.0.0.1", int(found[1])), timeout=30) as plain,
                    context.wrap_socket(plain) if tls else plain as opened,
                ):
                    opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                    if opened.recv(15) == b"HTTP/1.1 200 OK":
                        return int(found[1])
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        self.kill()
        raise AssertionError(self.log.read_text())

    def kill(self) -> None:
        """End the process with SIGKILL."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """End the process with SIGTERM; return its exit code."""
        self.process.terminate()
        return self.process.wait(timeout=60)


@dataclass
class Delivery:
    """Progress of sending.

    Attributes:
        receipts: receipt of each report by its id.
        seconds: time from the last sending of each report to its receipt.
        refused: number of replies of 503.
        broken: number of connections that ended without a reply.
    """

    receipts: dict[str, bytes] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    refused: int = 0
    broken: int = 0


async def deliver(
    requests: Sequence[ReportRequest], port: int, delivery: Delivery, *, clients: int, wanted: Callable[[], bool]
) -> None:
    """Send reports over kept-alive connections; each client resends the same bytes until it has a receipt.

    Args:
        requests: the reports.
        port: port of the service on 127.0.0.1.
        delivery: progress, updated with every reply.
        clients: number of concurrent connections.
        wanted: whether sending goes on; clients end after their current try if not.
    """
    waiting = iter(requests)
    await asyncio.gather(*(_client(waiting, port, delivery, wanted) for _ in range(clients)))


async def _client(waiting: Iterator[ReportRequest], port: int, delivery: Delivery, wanted: Callable[[], bool]) -> None:
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    for request in waiting:
        while request.report_id not in delivery.receipts:
            if not wanted():
                return
            start = time.perf_counter()
            try:
                connection = connection or await asyncio.open_connection("127.0.0.1", port)
                status, body = await asyncio.wait_for(_exchange(*connection, request), REPLY_SECONDS)
            except (OSError, EOFError, TimeoutError):
                if connection is not None:
                    delivery.broken += 1
                    await _close(connection[1])
                    connection = None
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if status == 200:
                delivery.receipts[request.report_id] = body
                delivery.seconds.append(time.perf_counter() - start)
                break
            if status != 503:
                raise AssertionError(f"status {status}: {body!r}")
            delivery.refused += 1
            await asyncio.sleep(RETRY_SECONDS)
    if connection is not None:
        await _close(connection[1])


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: ReportRequest
) -> tuple[int, bytes]:
    writer.write(request.head + request.body)
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    assert length is not None
    return int(head[9:12]), await reader.readexactly(int(length[1]))


def differences(load: LoadCampaign, receipts: dict[str, bytes], database: str) -> list[str]:
    """Return what contradicts "every receipt is one equal row, and every row is a whole report"; empty if nothing."""
    url = make_url(database)
    engine = create_engine(url.set(drivername="postgresql+psycopg") if url.get_backend_name() != "sqlite" else url)
    with engine.connect() as connection:
        rows = [(row[0].hex(), bytes(row[1])) for row in connection.execute(text("SELECT report_id, body FROM report"))]
    engine.dispose()
    sent = {request.report_id: request.body for request in load.requests}
    stored = dict(rows)
    found = [] if len(stored) == len(rows) else ["a report is stored twice"]
    found += [f"{key}: stored bytes differ" for key, body in rows if sent.get(key) != body]
    for key, receipt in receipts.items():
        fields = json.loads(receipt)
        if key not in stored or fields["report"] != key:
            found.append(f"{key}: receipt without a report")
        elif fields["stored_sha256"] != sha256(stored[key]).hexdigest():
            found.append(f"{key}: receipt of other bytes")
    return found
