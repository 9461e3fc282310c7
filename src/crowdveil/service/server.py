"""Process of the service: settings, listening socket, and the server until it is asked to end."""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette

from crowdveil.errors import SettingsError

GRACE_SECONDS = 30
BACKLOG = 2048
SWITCH_SECONDS = 0.0005
"""Time after which a thread hands over: the writer thread must not delay each reply by Python's default of 5 ms."""
SPARE_FILES = 200
"""Files of a process that are no connections of clients."""
HINT = "Give --behind-proxy if a proxy ends TLS and bounds its clients."


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Settings of the server.

    Attributes:
        database: URL of the database.
        host, port: listening address; port 0 is a free one.
        behind_proxy: whether a proxy ends TLS and bounds its clients, so that plain HTTP is accepted beyond the
            loopback address.
        log_requests: whether each request has a log line of route, status and class of duration.

    Raises:
        SettingsError: plain HTTP beyond the loopback address.
    """

    database: str
    host: str = "127.0.0.1"
    port: int = 8000
    behind_proxy: bool = False
    log_requests: bool = False

    def __post_init__(self) -> None:
        if not (self.behind_proxy or _is_loopback(self.host)):
            raise SettingsError("plain HTTP is served on the loopback address only", value=self.host, hint=HINT)


def bind(settings: ServerSettings) -> socket.socket:
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
    return f"http://{shown}:{listening.getsockname()[1]}"


def run(settings: ServerSettings, listening: socket.socket, on_purge: Callable[[bytes], object] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; requests in progress are answered before the end.

    Args:
        settings: settings of the server.
        listening: its socket.
        on_purge: called with the digest of each campaign that is purged.
    """
    from crowdveil.service.app import create_app
    from crowdveil.service.curator.pages import curator_routes
    from crowdveil.service.export_and_purge import PurgeThread
    from crowdveil.service.store import Store

    store = Store.open(settings.database)
    if on_purge is not None:
        store.on_purge(on_purge)
    retention = PurgeThread(store)

    def stop() -> None:
        retention.close()
        store.close()

    app = create_app(store, curator_routes=curator_routes(store), on_stop=stop)
    serve_app(app, settings, listening)


def serve_app(app: Starlette, settings: ServerSettings, listening: socket.socket) -> None:
    """Serve an application in this process, until SIGTERM or SIGINT."""
    from crowdveil.service.security import MAX_CONNECTIONS, BoundedProtocol

    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # its warnings are lines that any client can write
    logging.getLogger("crowdveil.service").setLevel(logging.INFO if settings.log_requests else logging.WARNING)
    sys.setswitchinterval(SWITCH_SECONDS)
    BoundedProtocol.most_connections = min(MAX_CONNECTIONS, _allow_files(MAX_CONNECTIONS + SPARE_FILES) - SPARE_FILES)
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
    )
    # uvicorn raises the signal again after its shutdown; the process then ends in good order.
    with _signals_ignored():
        uvicorn.Server(config).run(sockets=[listening])


def _allow_files(wanted: int) -> int:
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
