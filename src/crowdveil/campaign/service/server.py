"""Process of the service: settings, listening socket, and the server until it is asked to end."""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import signal
import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from crowdveil.campaign.service.rate_limit import REQUESTS_PER_SECOND, RateLimit
from crowdveil.errors import SettingsError
from crowdveil.hints import advice

GRACE_SECONDS = 30
BACKLOG = 2048
SWITCH_SECONDS = 0.0005
"""Time after which a thread hands over: the writer thread must not delay each reply by Python's default of 5 ms."""
SPARE_FILES = 200
"""Files of a process that are no connections of clients."""
_HEADER = re.compile("[A-Za-z0-9-]{1,64}")


def _tls_hint() -> str:
    """Return the hint where plain HTTP would leave the machine."""
    proxy = advice("Give {behind_proxy} if a proxy ends TLS", "Let a proxy end TLS", behind_proxy=True)
    return f"{proxy}, or {advice('{tls_certificate} and {tls_key}', 'serve on the loopback address')}."


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Settings of the server.

    Attributes:
        database: URL of the database.
        host, port: listening address; port 0 is a free one.
        tls_certificate, tls_key: files in PEM format; both or none.
        behind_proxy: whether a proxy ends TLS, so that plain HTTP is accepted beyond the loopback address.
        metrics_port: port of `/metrics` on the loopback address; None for none.
        log_requests: whether each request has a log line of route, status and class of duration.
        rate: requests per second and client address; 0 for no bound.
        client_header: header in which the proxy names the client; None if it names none.

    Raises:
        SettingsError: plain HTTP beyond the loopback address, or settings that contradict one another.
    """

    database: str
    host: str = "127.0.0.1"
    port: int = 8000
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False
    metrics_port: int | None = None
    log_requests: bool = False
    rate: int = REQUESTS_PER_SECOND
    client_header: str | None = None

    def __post_init__(self) -> None:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise SettingsError(
                "TLS needs a certificate and its key",
                value=str(self.tls_certificate or self.tls_key),
                hint="Give both.",
            )
        if not (self.behind_proxy or self.tls_certificate or _is_loopback(self.host)):
            raise SettingsError("plain HTTP is served on the loopback address only", value=self.host, hint=_tls_hint())
        if self.rate < 0:
            raise SettingsError("rate must be at least 0", value=self.rate)
        if self.client_header is not None and not (self.behind_proxy and _HEADER.fullmatch(self.client_header)):
            raise SettingsError(
                "client_header must be a header of the proxy",
                value=self.client_header,
                hint="Any client can write it: a proxy must set it itself"
                f"{advice(' ({behind_proxy})', behind_proxy=True)}.",
            )
        if self.tls_certificate is not None and self.tls_key is not None:
            _check_tls(self.tls_certificate, self.tls_key)

    @property
    def scheme(self) -> str:
        """Scheme of the server's own addresses."""
        return "http" if self.tls_certificate is None else "https"

    @property
    def rate_limit(self) -> RateLimit | None:
        """New bound on the rate; None without one, or where a proxy does not name its clients."""
        if not self.rate or (self.behind_proxy and self.client_header is None):
            return None
        return RateLimit(self.rate, header=self.client_header)


def open_listening_socket(settings: ServerSettings) -> socket.socket:
    """Return the listening socket.

    Raises:
        SettingsError: the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host, settings.port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise SettingsError(
            "the listening address must be free",
            value=f"{settings.host}:{settings.port}",
            hint=f"{error.strerror}. Another program may serve here: choose another port.",
        ) from error
    listening.set_inheritable(True)
    return listening


def address_of(settings: ServerSettings, listening: socket.socket) -> str:
    """Return the address of a listening socket as a URL, without a final slash."""
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{settings.scheme}://{shown}:{listening.getsockname()[1]}"


def run(settings: ServerSettings, listening: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT; requests in progress are answered before the end.

    Args:
        settings: settings of the server.
        listening: its socket.
    """
    from crowdveil.campaign.pages.pages import curator_routes
    from crowdveil.campaign.service.app import create_app
    from crowdveil.campaign.service.export_and_purge import PurgeThread
    from crowdveil.campaign.service.metrics import metrics_served
    from crowdveil.campaign.service.store import Store

    store = Store.open(settings.database)
    retention = PurgeThread(store)

    def stop() -> None:
        retention.close()
        store.close()

    app = create_app(store, curator_routes=curator_routes(store), on_stop=stop, rate=settings.rate_limit)
    with metrics_served(settings.metrics_port):
        serve_app(app, settings, listening)


def serve_app(app: Starlette, settings: ServerSettings, listening: socket.socket) -> None:
    """Serve an application in this process, until SIGTERM or SIGINT."""
    from crowdveil.campaign.service.security import MAX_CONNECTIONS, BoundedProtocol

    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # its warnings are lines that any client can write
    logging.getLogger("crowdveil.campaign.service").setLevel(logging.INFO if settings.log_requests else logging.WARNING)
    sys.setswitchinterval(SWITCH_SECONDS)
    BoundedProtocol.most_connections = min(
        MAX_CONNECTIONS, _raise_open_file_limit(MAX_CONNECTIONS + SPARE_FILES) - SPARE_FILES
    )
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )
    # uvicorn raises the signal again after its shutdown; the process then ends in good order.
    with _signals_ignored():
        uvicorn.Server(config).run(sockets=[listening])


def _raise_open_file_limit(wanted: int) -> int:
    """Raise the number of files that this process may have open, if it is smaller; return the number."""
    if os.name != "posix":
        return wanted
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


@contextmanager
def _signals_ignored() -> Iterator[None]:
    handlers = {code: signal.signal(code, lambda *_: None) for code in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for code, handler in handlers.items():
            signal.signal(code, handler)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_tls(certificate: Path, key: Path) -> None:
    """Check that certificate and key can be read and belong together."""
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            "TLS needs a certificate and its key in PEM format",
            value=f"{certificate}, {key}",
            hint=f"{getattr(error, 'reason', None) or error.strerror or error}.",
        ) from error
