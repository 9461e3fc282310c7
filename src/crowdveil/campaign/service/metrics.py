"""Counters in the Prometheus format: requests by route template and status. Nothing is counted by campaign."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Counter, disable_created_metrics, start_http_server

from crowdveil.errors import SettingsError

disable_created_metrics()  # type: ignore[no-untyped-call]  # they hold the time of the first request
requests = Counter("crowdveil_requests", "Requests by route template and status.", ("route", "status"))


@contextmanager
def metrics_served(port: int | None) -> Iterator[None]:
    """Serve `/metrics` on a port of the loopback address, from a thread, while the context lasts; None for not.

    Raises:
        SettingsError: the port is in use.
    """
    if port is None:
        yield
        return
    try:
        server, thread = start_http_server(port, "127.0.0.1")
    except OSError as error:
        raise SettingsError("the port of the metrics must be free", value=port, hint=f"{error.strerror}.") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
