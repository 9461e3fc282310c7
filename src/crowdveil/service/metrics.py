"""Counters in the Prometheus format: requests by route template and status. Nothing is counted by campaign."""

from __future__ import annotations

import os
from collections.abc import Callable

from prometheus_client import REGISTRY, CollectorRegistry, Counter, disable_created_metrics, start_http_server
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with the folder in which several processes count together."""
disable_created_metrics()  # type: ignore[no-untyped-call]  # they hold the time of the first request
requests = Counter("crowdveil_requests", "Requests by route template and status.", ("route", "status"))


def count_request(route: str, status: int) -> None:
    """Count one request."""
    requests.labels(route, str(status)).inc()


def serve_metrics(host: str, port: int) -> Callable[[], None]:
    """Serve `/metrics` on an address of its own, from a thread; return the function that ends it."""
    registry = REGISTRY
    if FOLDER_VARIABLE in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    server, thread = start_http_server(port, host, registry)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop
