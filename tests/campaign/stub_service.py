"""A service in a thread, with faults on demand: what a device meets between its steps."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from crowdveil.campaign.rules.report import make_receipt
from tests.campaign.builders import BuiltCampaign, build_campaign


@dataclass
class StubService:
    """Stored reports, requests as they arrived, and faults: each applies to one PUT, in this order.

    Faults: "lost reply" stores and hangs up, "lost request" hangs up, "busy" replies 503, "redirect" to another host,
    "other bytes" confirms another body, or the name of a problem such as "link-used".
    """

    port: int = 0
    built: BuiltCampaign = field(default_factory=build_campaign)
    link_state: str = "unused"
    campaign_state: str = "open"
    document: bytes = b""
    faults: list[str] = field(default_factory=list)
    reports: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str, str, bytes]] = field(default_factory=list)

    @property
    def bodies(self) -> list[bytes]:
        """Bodies of all PUT requests."""
        return [body for method, _, _, body in self.requests if method == "PUT"]

    def reply(self, method: str, path: str, body: bytes) -> tuple[int, bytes] | None:
        """Return status and content of a reply; None hangs up."""
        if method == "PUT":
            return self._put(path.rsplit("/", 1)[1], body)
        if path.endswith("/link"):
            return 200, json.dumps({"state": self.link_state, "campaign": self.campaign_state}).encode()
        part = re.search(r"/parts/(\d+)$", path)
        if part:
            return 200, self.built.parts[int(part[1])].to_bytes()
        return 200, self.document or self.built.campaign.to_bytes()

    def _put(self, report: str, body: bytes) -> tuple[int, bytes] | None:
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "lost request":
            return None
        if fault == "busy":
            return 503, b"{}"
        if fault == "redirect":
            return 307, b""
        if fault not in ("", "lost reply", "other bytes"):
            return 409, json.dumps({"type": f"/problems/{fault}"}).encode()
        stored = self.reports.setdefault(report, body)
        confirmed = b"other" if fault == "other bytes" else stored
        receipt = make_receipt(hashlib.sha256(b"key").digest(), self.built.campaign.name, report, confirmed)
        return None if fault == "lost reply" else (200, receipt)


@contextmanager
def running_stub() -> Iterator[StubService]:
    """Context with a running stub of a campaign that names its address."""
    stub = StubService()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET")

        def do_PUT(self) -> None:
            self._answer("PUT")

        def _answer(self, method: str) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            stub.requests.append((method, self.path, self.headers.get("Authorization") or "", body))
            reply = stub.reply(method, self.path, body)
            if reply is None:
                self.close_connection = True
                return
            self.send_response(reply[0])
            self.send_header("Content-Length", str(len(reply[1])))
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Clear-Site-Data", '"*"')
            self.end_headers()
            self.wfile.write(reply[1])

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stub.built = build_campaign(url=f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
