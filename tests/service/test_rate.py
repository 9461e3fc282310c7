"""Bound on the rate of requests of one address: a class passes, a flood does not, and no address is kept or logged."""

import logging
import pickle
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.types import Scope

from crowdveil.cli.campaign.serve import serve
from crowdveil.errors import SettingsError
from crowdveil.service import rate
from crowdveil.service.app import create_app
from crowdveil.service.problems import PROBLEMS
from crowdveil.service.rate import BURST_SECONDS, REQUESTS_PER_SECOND, RateLimit
from crowdveil.service.server import ServerSettings
from crowdveil.service.store import Store

CLASS, REQUESTS_OF_A_DEVICE = 72, 25
DATABASE = "sqlite:///unused.sqlite"


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """The time that was set."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


def request(client: str, **headers: str) -> Scope:
    """The scope of a request from an address, with headers."""
    named = [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "client": (client, 1), "headers": named}


def admitted(limit: RateLimit, scope: Scope, count: int) -> int:
    """The number of requests out of `count` that are answered."""
    return sum(limit.admits(scope) for _ in range(count))


def test_a_class_behind_one_address_passes_at_once(clock: Clock) -> None:
    """72 devices that load the page, pictures and all, in the same instant are all answered by default."""
    limit = RateLimit(REQUESTS_PER_SECOND, clock=clock)

    assert CLASS * REQUESTS_OF_A_DEVICE == admitted(limit, request("192.0.2.7"), CLASS * REQUESTS_OF_A_DEVICE)


def test_a_flood_is_held_to_the_rate_and_others_are_not(clock: Clock) -> None:
    """An empty bucket fills at the rate, up to the burst; other addresses have buckets of their own."""
    limit, flood, other = RateLimit(2, clock=clock), request("192.0.2.7"), request("192.0.2.8")

    assert 2 * BURST_SECONDS == admitted(limit, flood, 1000)
    assert limit.admits(other)
    clock.now += 3
    assert 6 == admitted(limit, flood, 1000)
    clock.now += 1000
    assert 2 * BURST_SECONDS == admitted(limit, flood, 1000)


def test_an_ipv6_network_counts_as_one_address(clock: Clock) -> None:
    """A client cannot change its bucket within its network; IPv4 in IPv6 is the same client."""
    limit = RateLimit(1, clock=clock)
    admitted(limit, request("2001:db8::1"), 1000)
    admitted(limit, request("192.0.2.7"), 1000)

    assert not limit.admits(request("2001:db8::ffff:1"))
    assert limit.admits(request("2001:db8:0:1::1"))
    assert not limit.admits(request("::ffff:192.0.2.7"))


def test_the_header_counts_only_where_it_was_named(clock: Clock) -> None:
    """Without `header`, a client cannot choose its address; with it, the last entry counts, which the proxy wrote."""
    direct, behind = RateLimit(1, clock=clock), RateLimit(1, header="X-Forwarded-For", clock=clock)

    assert BURST_SECONDS == sum(
        direct.admits(request("192.0.2.7", X_Forwarded_For=f"10.0.0.{n % 250}")) for n in range(1000)
    )
    for forged in ("10.0.0.{}, 192.0.2.7", "127.0.0.{}, 192.0.2.8"):
        scopes = [request("127.0.0.1", X_Forwarded_For=forged.format(n % 250 + 1)) for n in range(1000)]
        assert BURST_SECONDS == sum(map(behind.admits, scopes))
    assert BURST_SECONDS == admitted(behind, request("127.0.0.1", X_Forwarded_For="127.0.0.1"), 1000)
    assert BURST_SECONDS == admitted(behind, request("127.0.0.1", X_Forwarded_For="nonsense"), 1000)


def test_the_computer_itself_is_not_bounded(clock: Clock) -> None:
    """Health checks, and a proxy that names no client, are answered always."""
    limit = RateLimit(1, clock=clock)

    assert [1000, 1000] == [admitted(limit, request(host), 1000) for host in ("127.0.0.1", "::1")]
    assert 0 == len(limit)


def test_addresses_are_kept_under_a_keyed_hash_and_not_for_long(clock: Clock) -> None:
    """No bucket shows its address, keys differ by process, full buckets are dropped, and their number is bounded."""
    first, second = RateLimit(1, clock=clock), RateLimit(1, clock=clock)
    for limit in (first, second):
        limit.admits(request("192.0.2.77"))
    held = [pickle.dumps(limit._buckets) for limit in (first, second)]

    assert all(b"192.0.2.77" not in one and bytes((192, 0, 2, 77)) not in one for one in held)
    assert set(first._buckets).isdisjoint(second._buckets)
    clock.now += BURST_SECONDS
    first.admits(request("192.0.2.78"))
    assert 1 == len(first)


def test_memory_is_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the largest number of addresses the one that was quiet for longest is dropped."""
    monkeypatch.setattr(rate, "MAX_ADDRESSES", 3)
    limit = RateLimit(1, clock=clock)
    for number in range(10):
        clock.now += 0.1
        limit.admits(request(f"192.0.2.{number}"))

    assert 3 == len(limit)


def test_a_refused_request_has_429_and_the_time_to_wait(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The reply is the problem `rate` with Retry-After; then the request is answered; no log has the address."""
    store = Store.open(f"sqlite:///{tmp_path / 'reports.sqlite'}")
    app: Any = create_app(store, rate=RateLimit(0.5, clock=clock))
    with caplog.at_level(logging.DEBUG), TestClient(app, client=("192.0.2.7", 4711)) as client:
        statuses = [client.get("/healthz").status_code for _ in range(21)]
        refused = client.get("/healthz")
        clock.now += int(refused.headers["retry-after"])
        again = client.get("/healthz")

    assert [200] * 20 + [429] == statuses
    assert (429, "/problems/rate") == (PROBLEMS["rate"].status, refused.json()["type"])
    assert "no-store" == refused.headers["cache-control"]
    assert 200 == again.status_code
    assert "192.0.2.7" not in "".join(record.getMessage() for record in caplog.records if "httpx" not in record.name)
    store.close()


def test_settings_of_the_bound() -> None:
    """A header is believed behind a proxy only; a proxy that names no client is not bounded as one client."""
    with pytest.raises(SettingsError, match="must be a header of the proxy"):
        ServerSettings(database=DATABASE, client_header="X-Real-IP")
    with pytest.raises(SettingsError, match="must be a header of the proxy"):
        ServerSettings(database=DATABASE, client_header="X Real", behind_proxy=True)
    with pytest.raises(SettingsError, match="at least 0"):
        ServerSettings(database=DATABASE, rate=-1)

    assert None is ServerSettings(database=DATABASE, rate=0).rate_limit
    assert None is ServerSettings(database=DATABASE, behind_proxy=True).rate_limit
    assert None is not ServerSettings(database=DATABASE).rate_limit
    assert None is not ServerSettings(database=DATABASE, behind_proxy=True, client_header="X-Real-IP").rate_limit
    assert REQUESTS_PER_SECOND == next(option.default for option in serve.params if option.name == "rate")
