"""Test vectors that every device must pass: `python -m tools.device_vectors` writes tests/vectors/*.json.

The files are frozen: this program documents how they were made. Expected symbols come from integer loops here, not from
the sampler under test. `tests/vectors/certificates.json` is written by hand.
"""

import hashlib
import hmac
import json
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path

from tools.number_vectors import number_vectors
from tools.refused_vectors import chosen_levels, refused_campaigns, refused_parts
from tools.vector_documents import (
    RELAY,
    WORD_BYTES,
    Vector,
    asked,
    asked_all,
    base64url,
    blocks,
    campaign,
    canonical,
    channels,
    scaled,
    wide_channel,
)

from crowdveil.channels.alphabet import Scale
from crowdveil.channels.channel import DENOMINATOR, Channel

VECTORS = Path(__file__).parent.parent / "tests" / "vectors"


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
    slot = (0, 17, 72, 9_999, 999_999)[number]
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


def campaigns() -> dict[str, tuple[tuple[Vector, list[Vector]], int]]:
    """Return campaigns with the slot that answers, by name."""
    named = channels()
    small, other = named["two labels and NULL"], named["almost the answer"]
    picture = {"sha256": "ab" * 32, "type": "image/png", "bytes": 1234, "alt": "Ein Bär"}
    texts: Vector = {
        "title": "Ängste & «Sorgen» 👍",
        "question": 'Zeile 1\nZeile 2 "\\"',
        "language": "de",
        "url": None,
        "purge_after_days": None,
        "tasks": [
            {"id": "ä", "text": "Ist das ein Bär?", "picture": picture},
            {"id": "b", "text": "Und\n\ndas? \u05d0\u05dc", "picture": None},
        ],
    }
    groups = {"choice": [[0, 1], [1, 0]], "task_group": [0, 1, 1], "slot_group": [0, 1, 1]}
    links = [None, "https://a.example", "http://127.0.0.1:8000/?a=\"<b>'#c", "https://xn--mnchen-3ya.example/%C3%A4"]
    tables: Vector = {"levels": 3, "prior": "cd" * 32}
    dealt = {"choice": [[0], [1]], "task_group": [0, 0], "slot_group": [0, 1, 0]}
    return {
        "one cell": (campaign([small], [[0], [0]]), 1),
        "texts and a picture, without a service": (
            campaign([named["five labels in other scripts"]], [[0, 1], [1]], **texts),
            0,
        ),
        "a smaller load": (campaign([named["grades 0 to 10"]], [[0, 1, 2, 3], [4, 1], [2, 3, 4, 0]]), 1),
        "public participation": (campaign([named["a scale of tenths"]], [[0, 1, 2, 3], [0, 1, 2, 3]]), 0),
        "two bytes a symbol": (campaign([named["300 symbols, two bytes each"]], [[2, 0, 1], [0, 1]]), 0),
        "channels by groups": (campaign([small, other], [[0, 1, 2], [0, 1, 2], [1, 2]], groups=groups), 1),
        "the second part": (
            campaign([named["fewer symbols than labels"]], [[slot % 7, slot % 5 + 7] for slot in range(130)]),
            117,
        ),
        "a relay": (campaign([small], [[0, 1]] * 130, relay=RELAY), 117),
        "levels, the second": (campaign([small, other], [[0, 1, 2], [0, 2], [1, 2]], levels=2), 1),
        "levels of other symbols and a prior, the first": (
            campaign([blocks(0.5, (5,)), blocks(1.0, (3, 7)), scaled(Scale(0, 10), 2.0)], [[1, 0]] * 3, **tables),
            2,
        ),
        "links of tasks": (campaign([small], [[0, 1, 2, 3]] * 2, links=links), 1),
        "cuts dealt to slots": (campaign([blocks(1.0, (3,)), blocks(1.0, (4, 7))], [[0, 1]] * 3, groups=dealt), 1),
        "three questions": (asked(), 1),
        "two questions, two bytes a symbol, public": (
            asked_all(
                [named["a scale of tenths"], wide_channel(300)], [[0, 1, 3, 4, 5], [0, 2, 4]], [0, 0, 0, 1, 1, 1]
            ),
            0,
        ),
    }


LEVELS = {"levels, the second": 1, "levels of other symbols and a prior, the first": 0}
"""Level of the report of a campaign."""


def same_prefix() -> list[Vector]:
    """Return two campaigns whose names have the same first 8 characters, 48 bits.

    The salts come from a birthday search: 2^25 salts for each campaign, 100 seconds on one core.
    """
    named = channels()
    salts = {
        "two labels and NULL": "0000000000000000000000000197b2d3",
        "almost the answer": "00000000000000000000000000cba52e",
    }
    days: Vector = {"opens": "2020-01-01", "closes": "2099-12-31", "url": None}
    vectors = []
    for name, salt in salts.items():
        fields, parts = campaign([named[name]], [[0, 1], [0, 1]], **days, salt=salt)
        digest = hashlib.sha256(canonical(fields).encode()).digest()
        part = canonical(parts[0])
        vectors.append({"name": name, "campaign": canonical(fields), "campaign_name": base64url(digest), "part": part})
    return vectors


def body_vector(name: str, made: tuple[Vector, list[Vector]], slot: int) -> Vector:
    """Return one worker's report: answers by cell (null: no answer), random bytes, body and report file."""
    fields, parts = made
    tasks = parts[slot // 100]["tasks"][slot % 100]
    width = fields["symbol_bytes"]
    public = fields["certificates"][0]["participation"] == "public"
    index, labels = channel_of_cells(fields, slot, tasks, LEVELS.get(name))
    answers = [None if cell % 4 == 1 else (3 * cell + slot) % labels[cell] for cell in range(len(tasks))]
    stream = hashlib.shake_256(name.encode()).digest(WORD_BYTES * len(tasks))
    level = LEVELS.get(name)
    body = b"" if level is None else bytes([level])
    for cell, answer in enumerate(answers):
        word = int.from_bytes(stream[cell * WORD_BYTES : (cell + 1) * WORD_BYTES], "little")
        entry = labels[cell] if answer is None and not public else answer or 0
        row = fields["certificates"][index[cell]]["rows"][entry]
        symbol = 256**width - 1 if answer is None and public else bisect_right(list(accumulate(row))[:-1], word)
        body += symbol.to_bytes(width, "big")
    body = body.ljust(fields["body_bytes"], b"\0")
    digest = hashlib.sha256(canonical(fields).encode()).digest()
    token = base64url(slot.to_bytes(4, "big") + hashlib.sha256(name.encode()).digest()[:16])
    report = hashlib.sha256(body).hexdigest()[:32]
    file = {
        "campaign": base64url(digest),
        "format": "crowdveil-report/1",
        "report": report,
        "symbols": body.hex(),
        "token": token,
    }
    return {
        "name": name,
        "campaign": canonical(fields),
        "campaign_name": base64url(digest),
        "parts": list(map(canonical, parts)),
        "slot": slot,
        "tasks": tasks,
        "answers": answers,
        **({} if level is None else {"level": level}),
        "random": stream.hex(),
        "body": body.hex(),
        "token": token,
        "report": report,
        "report_file": canonical(file),
    }


def channel_of_cells(fields: Vector, slot: int, tasks: list[int], level: int | None) -> tuple[list[int], list[int]]:
    """Return the index of the channel of each cell, and the number of its possible answers."""
    groups = fields["groups"]
    index = [
        groups["choice"][groups["slot_group"][slot]][groups["task_group"][task]] if groups else level or 0
        for task in tasks
    ]
    rows = [len(part["rows"]) - (part["participation"] == "protected") for part in fields["certificates"]]
    return index, [rows[one] for one in index]


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
    write(
        "campaigns.json",
        "One worker's report to a campaign: parts are all assignment parts, answers the input code of each cell (null: "
        "no answer), random the bytes drawn (6 a cell, little endian), body what is sent, report the report's id.",
        [body_vector(name, made, slot) for name, (made, slot) in campaigns().items()],
    )
    write("same_prefix.json", "Campaigns whose names have the same first 8 characters.", same_prefix())
    write(
        "levels.json",
        "level: text of JSON. levels: number of levels of a campaign, null without levels. accepted: whether a worker "
        "can have chosen this level.",
        chosen_levels(),
    )
    write(
        "numbers.json",
        "text: a document with the text @ in place of one number, or of a text of a report. values: JSON that every "
        "reader refuses there, and the SHA-256 for the text #, which certificate and campaign of a part have.",
        number_vectors(),
    )
    write("refused_campaigns.json", "campaign: text. defects: names a reader may give.", refused_campaigns())
    write(
        "refused_parts.json",
        "campaign and part 0, as texts; the campaign names the part's hash, but for the last. defects: names.",
        refused_parts(),
    )
