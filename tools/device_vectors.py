"""Test vectors that every device must pass: `python tools/device_vectors.py` writes tests/vectors/*.json.

The files are frozen: this program documents how they were made. Expected symbols come from integer loops here, not from
the sampler under test. `tests/vectors/certificates.json` is written by hand.
"""

import base64
import hashlib
import hmac
import json
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import DENOMINATOR, Channel
from crowdveil.mechanisms import Laplace, QuantizedResponse, RandomizedResponse

VECTORS = Path(__file__).parent.parent / "tests" / "vectors"
WORD_BYTES = 6
Vector = dict[str, Any]


def canonical(value: object) -> str:
    """Return canonical JSON: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def base64url(data: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def channels() -> dict[str, Channel]:
    """Return the channels of the sampling vectors by name."""
    labels = Categories(("no", "yes"))
    grades = Scale(0, 10)
    return {
        "two labels, public": RandomizedResponse(alphabet=labels, epsilon=1.0, participation="public").channel(),
        "two labels and NULL": RandomizedResponse(alphabet=labels, epsilon=0.7, participation="protected").channel(),
        "five labels in other scripts": RandomizedResponse(
            alphabet=Categories(("nie", "häufig", "никогда", "いつも", "👍")), epsilon=2.0, participation="protected"
        ).channel(),
        "grades 0 to 10": Laplace(alphabet=grades, epsilon=1.0, participation="protected").channel(),
        "a scale of tenths": Laplace(alphabet=Scale(0, 0.3, 0.1), epsilon=3.0, participation="public").channel(),
        "fewer symbols than labels": QuantizedResponse(
            alphabet=grades, epsilon=1.0, participation="protected", cuts=(4, 7)
        ).channel(),
        "almost the answer": RandomizedResponse(alphabet=labels, epsilon=20.0, participation="protected").channel(),
        "almost nothing": RandomizedResponse(alphabet=labels, epsilon=1e-6, participation="public").channel(),
        "300 symbols, two bytes each": wide_channel(300),
    }


def wide_channel(symbols: int) -> Channel:
    """Return a channel of two labels and many symbols, with ratio 2; all columns differ a little."""
    share = np.arange(symbols, 2 * symbols, dtype=float) / (1.5 * symbols**2 - symbols / 2)
    names = tuple(f"s{k}" for k in range(symbols))
    table = np.array([share, share[::-1]])
    return Channel.from_probabilities(Categories(("no", "yes")), "public", names, table, None)


def sampling_vector(name: str, channel: Channel) -> Vector:
    """Return cells at every border of every row: the words one below and at each cumulative sum, and both ends."""
    cells = []
    for answer, row in enumerate(channel.rows):
        borders = list(accumulate(row))[:-1]
        words = sorted({0, DENOMINATOR - 1, *borders, *(border - 1 for border in borders)})
        cells += [(answer, word, bisect_right(borders, word)) for word in words]
    return {
        "name": name,
        "certificate": canonical(channel.certificate()),
        "inputs": list(channel.inputs),
        "answers": [answer for answer, _, _ in cells],
        "random": b"".join(word.to_bytes(WORD_BYTES, "little") for _, word, _ in cells).hex(),
        "report": [symbol for _, _, symbol in cells],
    }


def token_vector(number: int) -> Vector:
    """Return a token, its hash, a link and a receipt, from bytes that are derived from a number."""
    campaign, secret, key, body = (hashlib.sha256(f"{what} {number}".encode()).digest() for what in "abcd")
    slot = (0, 17, 72, 9_999, 2**32 - 1)[number]
    token = slot.to_bytes(4, "big") + secret[:16]
    report = hashlib.sha256(f"report {number}".encode()).hexdigest()[:32]
    body = body[: 5 * number + 1]
    receipt: Vector = {
        "campaign": base64url(campaign),
        "format": "crowdveil-receipt/1",
        "report": report,
        "stored_sha256": hashlib.sha256(body).hexdigest(),
    }
    receipt["mac"] = hmac.new(key, canonical(receipt).encode("ascii"), hashlib.sha256).hexdigest()
    return {
        "name": f"slot {slot}",
        "campaign": base64url(campaign),
        "campaign_sha256": campaign.hex(),
        "slot": slot,
        "token": base64url(token),
        "token_sha256": hashlib.sha256(b"crowdveil-token/1" + campaign + token).hexdigest(),
        "link": f"https://grades.example.org/a/#1.{base64url(campaign)}.{base64url(token)}",
        "link_without_service": f"device.html#1.{base64url(campaign)}.{base64url(token)}",
        "receipt_key": key.hex(),
        "report": report,
        "body": body.hex(),
        "receipt": canonical(receipt),
    }


def write(name: str, about: str, vectors: list[Vector]) -> None:
    """Write one file of vectors."""
    text = json.dumps({"about": about, "vectors": vectors}, indent=1, ensure_ascii=True)
    (VECTORS / name).write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    write(
        "sampling.json",
        "certificate: text. inputs: its input symbols. Cell j: answers[j] is the input code, random the 6 bytes "
        "(little endian) of its word in hex, report[j] the index in outputs that must be drawn.",
        [sampling_vector(name, channel) for name, channel in channels().items()],
    )
    write(
        "tokens.json",
        "token: 4 bytes slot (big endian) and 16 bytes secret, base64url without padding. token_sha256: SHA-256 of "
        "'crowdveil-token/1', campaign_sha256 and the token's bytes. receipt: canonical JSON; mac is HMAC-SHA256 under "
        "receipt_key of the canonical JSON of the other fields.",
        [token_vector(number) for number in range(5)],
    )
