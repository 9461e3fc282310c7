"""Batches of a relay as the curator opens them: what is in a batch may not show order, nor link what is unlinked.

The input holds the bodies of all workers, in the order of their arrival: symbols by worker and task. Two inputs with
the same reports, or with the same reports on each task, must give the same batches: epsilon is 0.
"""

from collections.abc import Sequence
from functools import cache

from experiments.audit.campaigns import URL, asked

from crowdveil.campaign.relay.sealing import PrivateKey, decrypt_part, new_key, seal_body, uncompressed_public_key_hex
from crowdveil.campaign.rules.document import Campaign, Relay
from crowdveil.campaign.rules.report import body_parts, make_batches, parse_batch

EPSILON = 0.0
Bodies = Sequence[Sequence[int]]
"""Symbols, indexed [worker, task]."""
FORWARDS, BACKWARDS = ((0, 1, 0), (1, 0, 1), (1, 1, 1)), ((1, 1, 1), (1, 0, 1), (0, 1, 0))
LINKED, CROSSED = ((0, 0, 0), (1, 1, 1), (0, 1, 0)), ((0, 1, 0), (1, 0, 1), (0, 1, 0))
"""Bodies with the same symbols on each task; those of the first two workers are exchanged on the second."""


def reports(bodies: Bodies) -> dict[str, bytes]:
    """Return the opened batches of a relay that forwards whole reports."""
    return _opened("report", bodies)


def cells(bodies: Bodies) -> dict[str, bytes]:
    """Return the opened batches of a relay that forwards single cells."""
    return _opened("cell", bodies)


@cache
def _campaign(unit: str) -> tuple[Campaign, PrivateKey]:
    key = new_key()
    relay = Relay(
        operator="A data trust",
        public_key=uncompressed_public_key_hex(key),
        least_batch=2,
        unit="cell" if unit == "cell" else "report",
    )
    return asked(URL, relay)[0], key


def _opened(unit: str, bodies: Bodies) -> dict[str, bytes]:
    """Return header and texts of each batch, in the order in which they stand."""
    campaign, key = _campaign(unit)
    documents = make_batches(campaign, [seal_body(campaign, bytes(body)) for body in bodies])
    infos = [info for info, _ in body_parts(campaign, bytes(campaign.body_bytes))]
    found = {}
    for number, document in enumerate(documents, start=1):
        texts = [
            decrypt_part(key, info, part)
            for info, parts in zip(infos, parse_batch(campaign, document), strict=True)
            for part in parts
        ]
        found[f"batch {number}"] = document.partition(b"\n")[0] + b"\n" + b"".join(texts)
    return found
