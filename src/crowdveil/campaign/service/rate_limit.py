"""Bound on the rate of requests of each client address: token buckets in memory, under a keyed hash.

The key is drawn when the process starts, and addresses are neither kept nor logged. A bucket that has filled up again
says nothing, and is dropped with the next request.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from time import monotonic

from starlette.datastructures import Headers
from starlette.types import Scope

REQUESTS_PER_SECOND = 50
"""Default of one address. A class of 72 behind one address sends about 1,100 requests to answer a campaign."""
BURST_SECONDS = 40
"""A full bucket holds the requests of this time: 2,000 by default."""
MAX_ADDRESSES = 65_536
NETWORK_BITS = 64
"""Leading bits of an IPv6 address that count: one client has all addresses below them."""
LOOPBACK = "loopback"
_KEY_BYTES, _HASH_BYTES = 32, 16


class RateLimit:
    """Token buckets of client addresses, of one process.

    Connections from the computer itself are not bounded.

    Args:
        per_second: requests per second and address in the long run.
        header: header in which the proxy names the client, such as X-Real-IP; None: address of the connection.
        clock: function that returns seconds.
    """

    def __init__(self, per_second: float, *, header: str | None = None, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._burst = per_second, per_second * BURST_SECONDS
        self._header, self._clock = header, clock
        self._key = secrets.token_bytes(_KEY_BYTES)
        # Requests left at a time, least recently used first.
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def keyed_hash_of_client(self, scope: Scope) -> bytes | None:
        """Return the keyed hash of the address that counts, or of its network; None for the computer itself."""
        named = Headers(scope=scope).getlist(self._header) if self._header else []
        # The proxy's own entry is the last one: earlier ones are the client's words.
        network = client_address_or_network(
            named[-1].rpartition(",")[2].strip() if named else (scope.get("client") or ("",))[0]
        )
        if network == LOOPBACK and not named:
            return None
        return blake2b(network.encode(), key=self._key, digest_size=_HASH_BYTES).digest()

    def admit_and_count(self, scope: Scope) -> bool:
        """Return whether a request may be answered, and count it."""
        client = self.keyed_hash_of_client(scope)
        if client is None:
            return True
        now, buckets = self._clock(), self._buckets
        self._drop_full(now)
        left, then = buckets.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        admitted = left >= 1
        buckets[client] = (left - 1 if admitted else left, now)
        if len(buckets) > MAX_ADDRESSES:
            buckets.popitem(last=False)
        return admitted

    def _drop_full(self, now: float) -> None:
        """Drop buckets that were not used for the time in which they fill up."""
        while self._buckets:
            key = next(iter(self._buckets))
            if now - self._buckets[key][1] < BURST_SECONDS:
                return
            del self._buckets[key]


def client_address_or_network(text: str) -> str:
    """Return what counts as one client: an IPv4 address, or the network of an IPv6 address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return "no address"
    if address.is_loopback:
        return LOOPBACK
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((int(address), NETWORK_BITS), strict=False))
    return str(address)
