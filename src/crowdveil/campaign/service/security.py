"""Bounds and headers of every response: one ASGI wrapper, and an HTTP protocol with deadlines and bounds.

Waiting for bytes of a client takes no place of a request in progress. When there are too many connections, the address
with the most waiting ones loses its oldest.

Log lines hold the route, the status and a class of duration; never a body, a token, an identifier or an address.
"""

from __future__ import annotations

import logging
from asyncio import TimerHandle, Transport
from collections import Counter
from collections.abc import Iterator
from time import perf_counter
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from crowdveil.campaign.service.metrics import requests
from crowdveil.campaign.service.problems import MEDIA_TYPE, PROBLEMS, problem_body, problem_response
from crowdveil.campaign.service.rate_limit import RateLimit, client_address_or_network

MAX_HEADER_BYTES = 16_384
HEADER_SECONDS = 10.0
BODY_SECONDS = 10.0
WRITE_SECONDS = 30.0
MIN_BYTES_PER_SECOND = 4_096
"""Bytes of a body extend its deadline at this rate; a response must leave at it, measured every `WRITE_SECONDS`."""
PIECE_BYTES = 65_536
"""Largest part of a body that is encrypted at once."""
HTTP_VERSIONS = ("1.0", "1.1")
MAX_REQUESTS = 1_000
"""Largest number of requests in progress in one process; those of one address take half of it at most."""
MAX_CONNECTIONS = 10_000
"""Largest number of connections of one process."""
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
TLS_HEADERS = {"Strict-Transport-Security": "max-age=31536000"}
"""Headers of a service with a certificate of its own: browsers open it over https only, for a year."""
REFUSED = "refused_status"
"""Name, in the state of a request, of the status that it got while its body was read."""
DURATIONS = ((0.01, "under 10 ms"), (0.1, "under 100 ms"), (1.0, "under 1 s"))
logger = logging.getLogger("crowdveil.campaign.service")


class RequestGuard:
    """ASGI application with security headers, bounds on rate and concurrency of requests, counters and log lines."""

    def __init__(self, app: ASGIApp, *, max_requests: int = MAX_REQUESTS, rate: RateLimit | None = None) -> None:
        self._app = app
        self._rate = rate
        self._max_requests = max_requests
        self._running: Counter[bytes | None] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; an exception that no handler expects becomes a refusal, and its text is not logged."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, start = 0, perf_counter()
        client = None if self._rate is None else self._rate.keyed_hash_of_client(scope)

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_security_headers(scope, message)
            for piece in _in_pieces(message) if scope.get("scheme") == "https" else (message,):
                await send(piece)

        async def receive_uncounted() -> Message:
            self._count(client, -1)
            try:
                return await receive()
            finally:
                self._count(client, 1)

        self._count(client, 1)
        try:
            refusal = self._rate_or_busy_problem(scope, client)
            if refusal:
                await problem_response(refusal)(scope, receive, send_guarded)
            else:
                await self._app(scope, receive_uncounted, send_guarded)
        except Exception as error:
            logger.error("%s failed: %s", _method_and_route_template(scope), type(error).__name__)
            if not status:
                await problem_response("internal")(scope, receive, send_guarded)
        finally:
            self._count(client, -1)
            _log_and_count_request(scope, scope.get("state", {}).get(REFUSED, status), perf_counter() - start)

    def _count(self, client: bytes | None, change: int) -> None:
        self._running[client] += change
        if not self._running[client]:
            del self._running[client]

    def _rate_or_busy_problem(self, scope: Scope, client: bytes | None) -> str:
        """Return the problem of a request beyond a bound; empty if it is answered."""
        if self._rate is not None and not self._rate.admit_and_count(scope):
            return "rate"
        own = self._running[client] if client is not None else 0
        return "busy" if 2 * own > self._max_requests or self._running.total() > self._max_requests else ""


def _add_security_headers(scope: Scope, message: Message) -> None:
    headers = MutableHeaders(scope=message)
    policy = CURATOR_POLICY if scope["path"].startswith(CURATOR_PATH) else PAGE_POLICY
    for name, value in {**_headers_of_scheme(scope.get("scheme")), "Content-Security-Policy": policy}.items():
        headers.setdefault(name, value)


def _headers_of_scheme(scheme: str | None) -> dict[str, str]:
    return {**HEADERS, **(TLS_HEADERS if scheme == "https" else {})}


def _method_and_route_template(scope: Scope) -> str:
    """Return the method and the template of the route; paths of requests are not logged."""
    route = scope.get("route")
    known = scope["method"] in {"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"}
    return f"{scope['method'] if known else 'OTHER'} {getattr(route, 'path', 'unknown')}"


def _log_and_count_request(scope: Scope, status: int, seconds: float) -> None:
    route = _method_and_route_template(scope)
    requests.labels(route, str(status)).inc()
    duration = next((name for limit, name in DURATIONS if seconds < limit), "1 s or more")
    logger.log(logging.WARNING if status >= 500 else logging.INFO, "%s %d %s", route, status, duration)


def _watch_every_unsent_byte(transport: Transport) -> None:
    """Let every unsent byte pause the writing, which starts the watch of the response.

    asyncio pauses a socket above its limit, but TLS at its limit already: with 0 no reply would ever leave.
    """
    if transport.get_extra_info("sslcontext") is None:
        transport.set_write_buffer_limits(high=0)
        return
    transport.set_write_buffer_limits(high=1, low=0)
    below = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None)
    if below is not None:
        below.set_write_buffer_limits(high=0)  # else 64 KiB wait for the client below TLS, where nothing watches them


def _in_pieces(message: Message) -> Iterator[Message]:
    """Yield a message; a long body in pieces, each of which waits until the client has read those before."""
    body = message.get("body", b"")
    for start in range(0, len(body) - PIECE_BYTES, PIECE_BYTES):
        yield {"type": message["type"], "body": body[start : start + PIECE_BYTES], "more_body": True}
    sent = max(0, -(-len(body) // PIECE_BYTES) - 1) * PIECE_BYTES
    yield {**message, "body": body[sent:]} if sent else message


_waiting: WeakKeyDictionary[ServerState, dict[str, dict[BoundedProtocol, None]]] = WeakKeyDictionary()
"""Connections of a server on which no request is worked on, by network of the client, oldest first."""


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 of uvicorn with bounds on the size of headers, and on the time of headers, bodies and responses."""

    most_connections: ClassVar[int] = MAX_CONNECTIONS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_headers = True
        self._header_bytes = 0
        self._hosts = 0
        self._arrived = 0
        self._body_bytes = 0
        self._network = ""
        self._waiting = _waiting.setdefault(self.server_state, {})
        self._since = 0.0
        self._deadline: TimerHandle | None = None
        self._unsent: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request; beyond the largest number, end another waiting connection."""
        super().connection_made(transport)
        _watch_every_unsent_byte(transport)
        self._network = client_address_or_network(self.client[0] if self.client else "")
        self._update_waiting_connections(waits=True)
        self._start_deadline()
        if len(self.connections) > self.most_connections:
            busiest = max(self._waiting.values(), key=len)
            next(iter(busiest))._abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadlines."""
        self._update_waiting_connections(waits=False)
        self._stop_deadline()
        self._stop_watch()
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
        """Count the bytes of a header, and the headers that name the host."""
        self._count(len(name) + len(value))
        self._hosts += name.lower() == b"host"
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the deadline of the body."""
        version = self.parser.get_http_version()
        if version not in HTTP_VERSIONS:
            raise ValueError("unknown version of HTTP")
        if self._hosts > 1 or (version == "1.1" and not self._hosts):
            raise ValueError("the host must be named once")
        self._in_headers = False
        self._start_deadline()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Extend the deadline of the body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the deadline; count the headers of the next request from 0."""
        self._in_headers, self._header_bytes, self._hosts, self._arrived, self._body_bytes = True, 0, 0, 0, 0
        self._stop_deadline()
        self._update_waiting_connections(waits=False)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the client again: to read the response, and to send the next request."""
        super().on_response_complete()
        self._update_waiting_connections(waits=True)

    def pause_writing(self) -> None:
        """Watch whether the client reads the response."""
        super().pause_writing()
        self._start_write_progress_timer()

    def resume_writing(self) -> None:
        """End the watch: the response has left."""
        self._stop_watch()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that breaks a rule of HTTP, and close the connection."""
        self._send_refusal_and_close("request")

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: any client can ask for it."""

    def _send_refusal_and_close(self, name: str) -> None:
        """Refuse a request that the application does not see as a whole, and close the connection."""
        kind, body = PROBLEMS[name], problem_body(name)
        headers = {
            **_headers_of_scheme(self.scheme),
            "Content-Security-Policy": PAGE_POLICY,
            "Cache-Control": "no-store",
        }
        headers |= {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body))}
        headers["Connection"] = "close"
        lines = [f"HTTP/1.1 {kind.status} {kind.title}", *(f"{key}: {value}" for key, value in headers.items())]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self.transport.close()

    def _count(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > MAX_HEADER_BYTES:
            raise ValueError("headers are too long")

    def _update_waiting_connections(self, *, waits: bool) -> None:
        own = self._waiting.setdefault(self._network, {})
        own.pop(self, None)
        if waits:
            own[self] = None
        elif not own:
            del self._waiting[self._network]

    def _start_deadline(self) -> None:
        self._stop_deadline()
        self._since = self.loop.time()
        self._deadline = self.loop.call_later(
            HEADER_SECONDS if self._in_headers else BODY_SECONDS, self._abort_or_extend_deadline
        )

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _abort_or_extend_deadline(self) -> None:
        """End a request whose headers or body did not arrive in time."""
        ends = self._since + BODY_SECONDS + self._body_bytes / MIN_BYTES_PER_SECOND
        if self._in_headers or self.cycle is None or self.cycle.response_started:
            self._abort()
        elif self._body_bytes and self.loop.time() < ends:
            self._deadline = self.loop.call_at(ends, self._abort_or_extend_deadline)
        else:
            self._send_refusal_and_close("deadline")
            self.cycle.scope["state"][REFUSED] = PROBLEMS["deadline"].status
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def _start_write_progress_timer(self) -> None:
        size = self.transport.get_write_buffer_size()
        self._unsent = self.loop.call_later(WRITE_SECONDS, self._abort_if_client_reads_too_slowly, size)

    def _abort_if_client_reads_too_slowly(self, before: int) -> None:
        if before - self.transport.get_write_buffer_size() < WRITE_SECONDS * MIN_BYTES_PER_SECOND:
            self._abort()
        else:
            self._start_write_progress_timer()

    def _stop_watch(self) -> None:
        if self._unsent is not None:
            self._unsent.cancel()
            self._unsent = None

    def _abort(self) -> None:
        self._update_waiting_connections(waits=False)
        self.transport.abort()
