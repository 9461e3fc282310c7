"""Permanent answers that a device keeps, so that repeated questions are charged once.

For each host and question the device draws one permanent answer, stores it, and adds one line with the ratio of the
permanent table to the ledger; every report randomizes the stored answer anew. A later answer to the same question does
not change it. The store never draws twice: if the ledger has a line whose permanent answer is missing (the file was
lost), reports are refused until the worker agrees to a second draw, which is charged like a further question.
"""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.campaign.standalone.device import (
    MAX_LEDGER,
    Line,
    Refused,
    add_to_ledger,
    canonical,
    fits,
    locked,
    parse,
    read_ledger,
    require,
    today,
    write,
)
from crowdveil.mechanisms.memoised import MemoisedTables
from crowdveil.randomness import Source, secure

NAME = "permanent.json"
FORM = {
    "format": "crowdveil-permanent/1",
    "answers": [{"draw": range(1 << 20), "host": str, "question": str, "symbol": str, "tables": "[0-9a-f]{64}"}],
}
LOST = (
    "The permanent answer to this question is not on this computer any more. A new one is drawn independently and "
    "reveals as much again: agree to a second draw, which the ledger adds, or do not answer."
)


class PermanentAnswers:
    """Store of the permanent answers of one worker's computer.

    Args:
        home: folder of the records and of the ledger.
        source: randomness; another than the secure one is for tests.
    """

    def __init__(self, home: Path, source: Source | None = None) -> None:
        self.home = home
        self.source = secure() if source is None else source

    def report(
        self, tables: MemoisedTables, *, host: str, question: str, title: str, answer: int, second_draw: bool = False
    ) -> int:
        """Return a fresh report of the permanent answer, as a code of `tables.report.outputs`.

        Args:
            tables: of a checked certificate.
            host: receiver of the reports; another host has another permanent answer, charged on its own.
            question: text or name that is equal in every collection of the same question.
            title: of the collection, for the ledger.
            answer: code of a label, or of NULL where participation is protected; without effect on a known question.
            second_draw: whether the worker agrees to a new permanent answer where the first is lost.

        Raises:
            Refused: the permanent answer is lost, its tables are others, or a file is damaged.
            SettingsError: the answer is no code of the tables.
        """
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self.home / "permanent.lock", wait=True):
            kept = self._kept(tables, host, question, title, answer, second_draw)
        return int(tables.instantaneous.sample(np.array([kept]), self.source)[0])

    def _kept(
        self, tables: MemoisedTables, host: str, question: str, title: str, answer: int, second_draw: bool
    ) -> int:
        """Return the code of the permanent answer; a new one is stored and charged before it is used."""
        digest, stored = str(tables.certificate()["sha256"]), self._read()
        known = next((one for one in stored if (one["host"], one["question"]) == (host, question)), None)
        drawn = 0
        if known is None:
            reports = {line["report"] for line in read_ledger(self.home)}
            while _report_id(host, question, drawn) in reports:
                drawn += 1
            require(drawn == 0 or second_draw, "lost", LOST)
            symbol = tables.permanent.outputs[int(tables.permanent.sample(np.array([answer]), self.source)[0])]
            known = {"draw": drawn, "host": host, "question": question, "symbol": symbol, "tables": digest}
            form = {"format": FORM["format"], "answers": [*stored, known]}
            write(self.home / NAME, canonical(form))
        require(known["tables"] == digest, "tables", "This question was answered before, through another table.")
        require(known["symbol"] in tables.permanent.outputs, "tables")
        add_to_ledger(self.home, [_line(tables, host, question, title, int(known["draw"]))])
        return tables.permanent.outputs.index(known["symbol"])

    def _read(self) -> list[dict[str, Any]]:
        path = self.home / NAME
        if not path.exists():
            return []
        data = parse(path.read_bytes(), MAX_LEDGER)
        if not fits(data, FORM):
            raise Refused(
                "permanent", f"{path} is damaged. Move it away, and keep it: it holds your permanent answers."
            )
        answers: list[dict[str, Any]] = data["answers"]
        return answers


def _report_id(host: str, question: str, draw: int) -> str:
    """Return the id of the ledger's line of one permanent answer."""
    return hashlib.sha256(canonical(["permanent", host, question, draw])).hexdigest()[:32]


def _line(tables: MemoisedTables, host: str, question: str, title: str, draw: int) -> Line:
    ratio = tables.permanent.ratio
    assert ratio is not None
    return {
        "campaign": str(tables.certificate()["sha256"]),
        "cells": 1,
        "day": today(),
        "denominator": ratio.denominator,
        "host": host,
        "numerator": ratio.numerator,
        "participation": tables.permanent.participation,
        "report": _report_id(host, question, draw),
        "title": title,
    }
