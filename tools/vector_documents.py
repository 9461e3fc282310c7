"""Channels and campaign documents of the test vectors, as plain values."""

import base64
import hashlib
import json
from typing import Any

import numpy as np

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.mechanisms import (
    Laplace,
    Ogpm,
    OptimizedUnaryEncoding,
    Piecewise,
    QuantizedResponse,
    RandomizedResponse,
    SquareWave,
    Staircase,
    SubsetSelection,
)

WORD_BYTES = 6
Vector = dict[str, Any]
GENERATOR = (
    "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
)
"""A point of P-256."""
UNREDUCED = (
    "04ffffffff00000001000000000000000000000000ffffffffffffffffffffffff"
    "66485c780e2f83d72433bd5d84a06bb6541c2af31dae871728bf856a174f93f4"
)
"""The point with x = 0, written as the prime."""
RELAY: Vector = {
    "operator": "Library",
    "public_key": GENERATOR,
    "least_batch": 2,
    "suite": "hpke-p256-sha256-aes128gcm",
    "unit": "cell",
}


def canonical(value: object) -> str:
    """Return canonical JSON: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def base64url(data: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def channels() -> dict[str, Channel]:
    """Return the channels of the sampling vectors by name."""
    labels = Categories(("no", "yes"))
    grades, four = Scale(0, 10), Scale(0, 3)
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
        "windows, public": Piecewise(alphabet=four, epsilon=1.0, participation="public").channel(),
        "windows around answers": Ogpm(alphabet=four, epsilon=1.0, participation="protected").channel(),
        "wide windows": SquareWave(alphabet=four, epsilon=2.0, participation="protected").channel(),
        "noise in steps": Staircase(alphabet=four, epsilon=4.0, participation="public").channel(),
        "pairs of labels": SubsetSelection(
            alphabet=Categories(("G", "P", "R", "X")), epsilon=0.5, participation="protected"
        ).channel(),
        "sets of labels of any size": OptimizedUnaryEncoding(
            alphabet=Categories(("a", "b", "c")), epsilon=1.0, participation="protected"
        ).channel(),
    }


def wide_channel(symbols: int) -> Channel:
    """Return a channel of two labels and many symbols, with ratio 2; all columns differ a little."""
    share = np.arange(symbols, 2 * symbols, dtype=float) / (1.5 * symbols**2 - symbols / 2)
    names = tuple(f"s{k}" for k in range(symbols))
    table = np.array([share, share[::-1]])
    return Channel.from_probabilities(Categories(("no", "yes")), "public", names, table, None)


def campaign(channels: list[Channel], assignment: list[list[int]], **changed: object) -> tuple[Vector, list[Vector]]:
    """Return the fields of a campaign and its assignment parts; `changed` replaces fields of the campaign."""
    lists = [sorted(tasks) for tasks in assignment]
    parts: list[Vector] = [
        {"format": "crowdveil-assignment/1", "first": first, "tasks": lists[first : first + 100]}
        for first in range(0, len(lists), 100)
    ]
    public = channels[0].participation == "public"
    width = 1 if max(len(channel.outputs) for channel in channels) <= 256 - public else 2
    cells = max(map(len, lists))
    body_bytes = cells * width + ("levels" in changed)
    fields: Vector = {
        "format": "crowdveil-campaign/1",
        "title": "Night shifts 2027",
        "question": "How often does this happen on your ward?",
        "consent": "Your answers are randomized on this device.",
        "language": "en",
        "url": "https://grades.example.org",
        "opens": "2027-01-10",
        "closes": "2027-01-17",
        "min_reports": 2,
        "purge_after_days": 30,
        "labels": list(channels[0].alphabet.names),
        "certificates": [channel.certificate() for channel in channels],
        "tasks": [{"id": f"t{k}", "text": f"Task {k}", "picture": None} for k in range(max(map(max, lists)) + 1)],
        "slots": len(lists),
        "groups": None,
        "assignment_parts": [hashlib.sha256(canonical(part).encode()).hexdigest() for part in parts],
        "cells": cells,
        "body_bytes": body_bytes,
        "symbol_bytes": width,
        "salt": "000102030405060708090a0b0c0d0e0f",
    }
    return {**fields, **changed}, parts


def asked() -> tuple[Vector, list[Vector]]:
    """Return a sound campaign with three questions: labels, grades as blocks, and labels again."""
    tables = [channels()["two labels and NULL"], blocks(1.0, (3, 7)), channels()["five labels in other scripts"]]
    return asked_all(tables, [[0, 1, 3, 5], [1, 3, 4, 5], [2, 3, 4]], [0, 0, 0, 1, 1, 2])


def asked_all(tables: list[Channel], assignment: list[list[int]], of_task: list[int]) -> tuple[Vector, list[Vector]]:
    """Return a campaign with a question for each table; `of_task` is the question of each task."""
    loads = [max(sum(of_task[task] == k for task in tasks) for tasks in assignment) for k in range(len(tables))]
    cells = sum(loads)
    changed: Vector = {
        "questions": [{"cells": load, "text": f"Question {k}?"} for k, load in enumerate(loads)],
        "question": "Question 0?",
        "groups": {"choice": [[*range(len(tables))]], "task_group": of_task, "slot_group": [0] * len(assignment)},
        "tasks": [{"id": f"t{k % 3}", "text": f"Task {k}", "picture": None} for k in range(len(of_task))],
    }
    made, parts = campaign(tables, assignment, **changed)
    return {**made, "cells": cells, "body_bytes": cells * made["symbol_bytes"]}, parts


def blocks(epsilon: float, cuts: tuple[int, ...]) -> Channel:
    """Return quantized response on grades, whose table is not square."""
    return QuantizedResponse(alphabet=Scale(0, 10), epsilon=epsilon, participation="protected", cuts=cuts).channel()


def levelled() -> tuple[Vector, list[Vector]]:
    """Return a sound campaign with three levels, of ascending numbers of symbols."""
    three = [blocks(0.5, (5,)), blocks(1.0, (3, 7)), blocks(2.0, (2, 4, 6))]
    return campaign(three, [[0, 1], [0, 1]], levels=3)


def scaled(scale: Scale, epsilon: float = 0.7) -> Channel:
    """Return a channel over a scale."""
    return RandomizedResponse(alphabet=scale, epsilon=epsilon, participation="protected").channel()
