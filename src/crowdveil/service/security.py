"""Bounds and headers of every response: one ASGI wrapper, and an HTTP protocol with bounds on headers.

Log lines hold the route, the status and a class of duration; never a body, a token, an identifier or an address.
"""

from __future__ import annotations

import logging
from asyncio import TimerHandle, Transport
from time import perf_counter
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from crowdveil.service.metrics import count_request
from crowdveil.service.problems import MEDIA_TYPE, problem_body, problem_response
from crowdveil.service.rate import RateLimit

MAX_HEADER_BYTES = 16_384
HEADER_SECONDS = 10.0
HTTP_VERSIONS = ("1.0", "1.1")
MAX_REQUESTS = 1_000
"""Largest number of requests in progress in one process."""
CURATOR_PATH = "/curator"
_POLICY = (
    "default-src 'none'; script-src {script}; style-src 'self'; img-src 'self' blob:; connect-src {connect}; "
    "base-uri 'none'; form-action {form}; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
PAGE_POLICY = _POLICY.format(script="'self'", connect="'self'", form="'none'")
CURATOR_POLICY = _POLICY.format(script="'none'", connect="'none'", form="'self'")
_DISABLED = ("camera", "display-capture", "geolocation", "microphone", "payment", "usb", "midi", "serial")
HEADERS = {
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{name}=()" for name in _DISABLED),
}
DURATIONS = ((0.01, "under 10 ms"), (0.1, "under 100 ms"), (1.0, "under 1 s"))
logger = logging.getLogger("crowdveil.service")


class Guarded:
    """ASGI application with security headers, bounds on rate and concurrency of requests, counters and log lines."""

    def __init__(self, app: ASGIApp, *, max_requests: int = MAX_REQUESTS, rate: RateLimit | None = None) -> None:
        self._app = app
        self._rate = rate
        self._max_requests = max_requests
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; an exception that no handler expects becomes a refusal, and its text is not logged."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, start = 0, perf_counter()

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_headers(scope, message)
            await send(message)

        self._running += 1
        try:
            if self._rate is not None and not self._rate.admits(scope):
                await problem_response("rate")(scope, receive, send_guarded)
            elif self._running > self._max_requests:
                await problem_response("busy")(scope, receive, send_guarded)
            else:
                await self._app(scope, receive, send_guarded)
        except Exception as error:
            logger.error("%s failed: %s", _route(scope), type(error).__name__)
            if not status:
                await problem_response("internal")(scope, receive, send_guarded)
        finally:
            self._running -= 1
            _record(scope, status, perf_counter() - start)


def _add_headers(scope: Scope, message: Message) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    curator = scope["path"].startswith(CURATOR_PATH)
    headers.setdefault("Content-Security-Policy", CURATOR_POLICY if curator else PAGE_POLICY)


def _route(scope: Scope) -> str:
    """Return the method and the template of the route; paths of requests are not logged."""
    route = scope.get("route")
    known = scope["method"] in {"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"}
    return f"{scope['method'] if known else 'OTHER'} {getattr(route, 'path', 'unknown')}"


def _record(scope: Scope, status: int, seconds: float) -> None:
    route = _route(scope)
    count_request(route, status)
    duration = next((name for limit, name in DURATIONS if seconds < limit), "1 s or more")
    logger.log(logging.WARNING if status >= 500 else logging.INFO, "%s %d %s", route, status, duration)


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 of uvicorn with bounds on the size of the headers of a request and the time they take."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_headers = True
        self._header_bytes = 0
        self._arrived = 0
        self._deadline: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request."""
        super().connection_made(transport)
        self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        self._stop_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse; refuse headers that are too long. The parser keeps an unfinished header, so its bytes count here."""
        if self._in_headers:
            self._arrived += len(data)
            if self._deadline is None:
                self._start_deadline()
        super().data_received(data)
        if self._in_headers and self._arrived > MAX_HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response("")

    def on_url(self, url: bytes) -> None:
        """Count the bytes of the address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the bytes of a header."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End the deadline; the application has one of its own for the body."""
        if self.parser.get_http_version() not in HTTP_VERSIONS:
            raise ValueError("unknown version of HTTP")
        self._in_headers = False
        self._stop_deadline()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Count the headers of the next request from 0."""
        self._in_headers, self._header_bytes, self._arrived = True, 0, 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that breaks a rule of HTTP, and close the connection."""
        body = problem_body("request")
        head = (
            f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _count(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > MAX_HEADER_BYTES:
            raise ValueError("headers are too long")

    def _start_deadline(self) -> None:
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._close)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()
