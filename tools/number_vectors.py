"""Documents with one number in another spelling: texts, lists, spaces, hexadecimal, booleans, floats, null."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tools.vector_documents import RELAY, Vector, asked, base64url, campaign, canonical, channels, levelled, scaled

from crowdveil.channels.alphabet import Scale

PLACE, SEAL = "@", "#"
"""Texts of a document in whose place the other spelling stands, and the SHA-256 that belongs to it."""
Path = tuple[str | int, ...]


def spellings(value: int) -> list[str]:
    """Return JSON texts that are not the whole number."""
    texts = [f'"{value}"', f'" {value}"', f'"{value} "', f'"{hex(value)}"', f'"{value}e0"', f'"{value}n"', '""']
    lists = [f"[{value}]", f'["{value}"]', "[]", "{}", f'{{"0":{value}}}']
    numbers = [f"{value}.0", f"{value}e0", "1e3", f"{value}.5", f" {value}", f"0{value}", hex(value), f"{-value - 1}"]
    return [*texts, *lists, *numbers, "true", "false", "null", "NaN", "9007199254740992"]


def with_place(document: Any, path: Path) -> tuple[str, Any]:
    """Return the canonical text of a document with `PLACE` at a path, and the value that stood there."""
    found = json.loads(canonical(document))
    inner = found
    for step in path[:-1]:
        inner = inner[step]
    value, inner[path[-1]] = inner[path[-1]], PLACE
    return canonical(found), value


def vector(kind: str, document: Any, path: Path, left_out: tuple[str, ...] = (), **more: str) -> Vector:
    """Return the other spellings of the number at a path of a document."""
    text, value = with_place(document, path)
    values = [[raw, ""] for raw in spellings(value) if raw not in left_out]
    return {"kind": kind, "field": ".".join(map(str, path)), "text": text, **more, "values": values}


def campaign_vectors() -> Iterator[Vector]:
    """Yield the numbers of campaigns with groups, levels, questions and a relay."""
    named = channels()
    two = [named["two labels and NULL"], named["almost the answer"]]
    groups = {"choice": [[0, 1], [1, 0]], "task_group": [0, 1, 1], "slot_group": [0, 1]}
    picture = {"sha256": "ab" * 32, "type": "image/png", "bytes": 1234, "alt": "A bear"}
    base, _ = campaign(two, [[0, 1], [1, 2]], groups=groups)
    base["tasks"][0]["picture"] = picture
    for name in ("slots", "min_reports", "cells", "body_bytes", "symbol_bytes"):
        yield vector("campaign", base, (name,))
    yield vector("campaign", base, ("purge_after_days",), ("null",))
    yield vector("campaign", base, ("tasks", 0, "picture", "bytes"))
    for path in (("groups", "choice", 0, 0), ("groups", "task_group", 0), ("groups", "slot_group", 1)):
        yield vector("campaign", base, path)
    yield vector("campaign", levelled()[0], ("levels",))
    yield vector("campaign", asked()[0], ("questions", 0, "cells"))
    yield vector("campaign", campaign(two[:1], [[0, 1], [0, 1]], relay=RELAY)[0], ("relay", "least_batch"))


def sealed_vectors() -> Iterator[Vector]:
    """Yield the numbers of certificates and of an assignment part, with the SHA-256 that belongs to each spelling."""
    labels = channels()["two labels and NULL"].certificate()
    grades = scaled(Scale(1, 5)).certificate()
    paths: list[tuple[Vector, Path]] = [
        (labels, path) for path in (("denominator",), ("rows", 0, 0), ("rows", 2, 1), ("ratio", 0), ("ratio", 1))
    ]
    for certificate, path in [*paths, *((grades, ("alphabet", name)) for name in ("low", "high", "step"))]:
        # A certificate by itself may have spaces, and a scale has fractions.
        left_out = [raw for raw in spellings(with_place(certificate, path)[1]) if raw[0] == " "]
        if path[0] == "alphabet":
            left_out += [raw for raw in spellings(certificate["alphabet"][path[1]]) if raw[0] in "-0123456789"]
        made = vector("certificate", {**certificate, "sha256": SEAL}, path, tuple(left_out))
        made["values"] = [[raw, certificate_seal(made["text"], raw)] for raw, _ in made["values"]]
        yield made
    fields, parts = campaign([channels()["two labels and NULL"]], [[0, 1], [1, 2]])
    whole = canonical({**fields, "assignment_parts": [SEAL]})
    for path in (("first",), ("tasks", 0, 1)):
        made = vector("part", parts[0], path, campaign=whole)
        texts = [(raw, made["text"].replace(f'"{PLACE}"', raw)) for raw, _ in made["values"]]
        made["values"] = [[raw, hashlib.sha256(text.encode()).hexdigest()] for raw, text in texts]
        yield made


def certificate_seal(text: str, raw: str) -> str:
    """Return the SHA-256 of a certificate with another spelling, hexadecimal; zeros if it is no JSON."""
    try:
        fields = json.loads(text.replace(f'"{PLACE}"', raw))
    except ValueError:
        return "0" * 64
    del fields["sha256"]
    return hashlib.sha256(canonical(fields).encode()).hexdigest()


def number_vectors() -> list[Vector]:
    """Return the numbers of campaigns, certificates, parts, ledgers and links, and texts of reports."""
    fields, _ = campaign([channels()["two labels and NULL"]], [[0, 1], [1, 2]])
    text = canonical(fields)
    name, token = base64url(hashlib.sha256(text.encode()).digest()), base64url(b"\0\0\0\1" + b"s" * 16)
    line: Vector = {
        "campaign": "B" * 43, "cells": 2, "day": "2027-01-01", "denominator": 4, "host": "grades.example.org",
        "numerator": 11, "participation": "protected", "report": "ab" * 16, "title": "Night shifts 2027",
    }  # fmt: skip
    ledger = {"format": "crowdveil-ledger/1", "lines": [line]}
    report = {"campaign": name, "format": "crowdveil-report/1", "report": "12" * 16, "symbols": "0102", "token": token}
    tokens = {
        "campaign": name,
        "format": "crowdveil-tokens/1",
        "tokens": [{"hash": "cd" * 32, "revoked": False, "slot": 1}],
    }
    return [
        *campaign_vectors(),
        *sealed_vectors(),
        *(vector("ledger", ledger, ("lines", 0, name)) for name in ("cells", "numerator", "denominator")),
        vector("tokens", tokens, ("tokens", 0, "slot"), campaign=text),
        *(text_vector(report, field, text) for field in ("campaign", "report", "symbols", "token")),
    ]


def text_vector(report: Vector, field: str, asked: str) -> Vector:
    """Return other spellings of a text of a report to a campaign."""
    text, kept = with_place(report, (field,))
    found = ["5", "1.0", "1e3", "true", "null", "[]", "{}", f'["{kept}"]', f' "{kept}"', f'" {kept}"', f'"{kept} "']
    values = [[raw, ""] for raw in (*found, f'"0x{kept}"', "[0,1]", "0x12")]
    return {"kind": "report", "field": field, "text": text, "campaign": asked, "values": values}
