#!/usr/bin/env python3
"""Device of one worker in one file: answers a campaign, randomizes the answers here, and sends one report.

    python device.py LINK                      asks the questions in this terminal
    python device.py LINK --answers my.csv     reads the columns task and label; a task that is missing has no answer
    python device.py --ledger                  shows what was promised so far, and to whom

Only Python 3.11 is needed. The states of a device: fetched (the SHA-256 of the campaign is the one in the link),
verified (every table is checked in integers, at every start), answering (answers stay on this computer), sampled (each
answer was replaced once by a random symbol drawn from its row of the table, and deleted), sent (the same bytes again
until the service confirms them), receipted (token, report and campaign are deleted; the line in the ledger stays).
"""

import argparse
import base64
import datetime
import hashlib
import http.client
import json
import os
import re
import shutil
import sys
import textwrap
import time
import unicodedata
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

from crowdveil.standalone.checks import (
    LEDGER,
    MAX_BYTES,
    MAX_PICTURE_BYTES,
    NO_SERVICE,
    SLOTS_PER_PART,
    CheckedChannel,
    ClaimLog,
    Line,
    Refused,
    canonical,
    check_campaign,
    check_level,
    check_part,
    days_in_words,
    ensure,
    epsilon,
    find_answer,
    fits,
    parse_canonical,
    parse_link,
    question_of_tasks,
    questions_of,
    read_table,
    require_first,
    shown,
    sure,
    visible_form,
)

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

MAX_LEDGER, WORD_BYTES = 100_000_000, 6
HOME = Path.home() / ".crowdveil"
Source = Callable[[int], bytes]
CHOSEN = "The level is chosen already, before the questions were shown. It cannot be changed."
REPLIES = {"closed", "early", "length", "link-revoked", "link-used", "media-type", "purged", "report-id"}
REPLIES |= {"report-id-taken", "symbol", "token", "too-long", "unknown"}
"""Names of refusals that a service may give; what else it says stands in no sentence of this device."""
UNCONFIRMED = (
    "The service did not confirm the report (its reason: {}). It may have arrived: its epsilon stays in the ledger. "
    "Do not answer this campaign again, here or elsewhere, and ask the curator."
)


# ---- Names and symbols
def compared(name: str) -> str:
    """Return the part of a campaign's name that people compare, in groups: 132 bits, which nobody forges."""
    return re.sub("(.{4})", r"\1 ", name[:22])


def draw(channels: list[CheckedChannel], answers: list[int | None], width: int, source: Source) -> bytes:
    """Return one random symbol per answer (None: no answer), each in `width` bytes; channels by cell."""
    body = b""
    for channel, answer in zip(channels, answers, strict=True):
        word = int.from_bytes(source(WORD_BYTES), "little")
        null = len(channel.labels) if channel.protected else 0
        row = channel.rows[null if answer is None else answer]
        symbol = sum(word >= border for border in accumulate(row[:-1]))  # the whole row, whatever the answer
        shown = symbol if channel.protected or answer is not None else 256**width - 1
        body += shown.to_bytes(width, "big")
    return body


# ---- Files: written completely or not at all; only their owner may read them
def write(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves the old or the new content."""
    temporary = path.with_name(path.name + ".new")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, path)
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of a file; it ends with the process."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "rb+") as stream:
        try:
            if sys.platform == "win32":
                msvcrt.locking(stream.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            raise Refused("locked") from error
        yield


# ---- Ledger: what was promised, and to whom, in all campaigns of this computer
def read_ledger(home: Path) -> list[Line]:
    """Return the lines of the ledger: campaign, report, title, host, cells, ratio, participation, day."""
    path = home / "ledger.json"
    if not path.exists():
        return []
    data = parse_canonical(path.read_bytes(), MAX_LEDGER)
    good = fits(data, LEDGER) and all(line["numerator"] >= line["denominator"] for line in data["lines"])
    ensure(good, "ledger", f"{path} is damaged. Move it away, and keep it: it holds your promises.")
    return data["lines"]


def add_to_ledger(home: Path, lines: list[Line]) -> None:
    """Add the lines of one report, the only one of its campaign, unless the ledger has them already."""
    with locked(home / "ledger.lock", wait=True):
        old = read_ledger(home)
        if not require_first(old, lines[0]["campaign"], lines[0]["report"], lines):
            write(home / "ledger.json", canonical({"format": "crowdveil-ledger/1", "lines": old + lines}))


def print_ledger(lines: list[Line]) -> None:
    """Print the lines of the ledger and their sums, by host and over all."""
    for line in lines:
        show(f"{line['day']}  epsilon {shown(epsilon([line]))}  {line['participation']}\n{foreign(line['title'])}")
    for host in sorted({line["host"] for line in lines}):
        print(f"to {host}: epsilon {shown(epsilon(line for line in lines if line['host'] == host))}")
    print(f"to all curators: epsilon {shown(epsilon(lines))}")


# ---- Service: https, no redirects; the token travels in a header of two calls only
class _Unfollowed(urllib.request.HTTPErrorProcessor):
    """Every reply as it is: no redirect is followed."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


OPENER = urllib.request.build_opener(_Unfollowed)


def call(url: str, limit: int, token: str = "", body: bytes | None = None) -> bytes:
    """Return the reply to GET, or to PUT with a body; raise Refused with the name of the service's problem."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    headers |= {"Content-Type": "application/vnd.crowdveil.report.v1"} if body is not None else {}
    request = urllib.request.Request(url, body, headers, method="GET" if body is None else "PUT")
    try:
        with OPENER.open(request, timeout=30) as reply:
            data = reply.read(limit + 1)
    except (OSError, http.client.HTTPException) as error:
        raise Refused("busy") from error
    ensure(reply.status not in (429, 500, 502, 503, 504), "busy")
    problem = re.search(rb'"type": *"[^"]*/([a-z-]+)"', data)
    name = problem[1].decode() if problem else ""
    ensure(reply.status < 300, name if name in REPLIES else f"reply {reply.status}")
    return data


# ---- Device
class Device:
    """One worker's device for one campaign: a context that locks its record {state, link, report, answers or body}."""

    seal: Callable[[bytes], bytes] | None = None
    """Encryption of a body to the curator's key, for campaigns with a relay; this file has none."""

    def __init__(self, link: str, home: Path, files: Path | None = None, source: Source = os.urandom) -> None:
        self.url, self.name, self.token, self.slot = parse_link(link)
        self.link = f"{f'{self.url}/a/' if self.url else ''}#1.{self.name}.{self.token}"
        self.home, self.files, self.source = home, files, source
        self.folder = home / f"{self.name}-{self.slot}"
        self.host = re.sub("^https?://|/.*", "", self.url or NO_SERVICE)

    def __enter__(self) -> Self:
        for folder in (self.home, self.folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = locked(self.home / f"{self.folder.name}.lock")
        self._lock.__enter__()
        path = self.folder / "record.json"
        self.record: dict[str, Any] = parse_canonical(path.read_bytes()) if path.exists() else {"state": "new"}
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.__exit__(None, None, None)

    def _keep(self, **fields: Any) -> None:
        self.record = fields
        write(self.folder / "record.json", canonical(fields))

    def open(self) -> None:
        """Fetch the campaign unless it is stored, and verify it at every start; a receipted device does neither."""
        if self.record["state"] == "receipted":
            return
        data = self._document("campaign.json", "", base64.urlsafe_b64decode(self.name + "=").hex())
        self.fields, self.offered = check_campaign(data, ClaimLog())
        self.levels: int | None = self.fields.get("levels")
        ensure(self.slot < self.fields["slots"], "slot")
        ensure(self.seal or "relay" not in self.fields, "relay")
        ensure(self.url == self.fields["url"], "url", "The link names another service than the campaign.")
        number = self.slot // SLOTS_PER_PART
        part = self._document(f"parts/{number:04}.json", f"/parts/{number}", self.fields["assignment_parts"][number])
        self.tasks = check_part(part, self.fields, number)[self.slot % SLOTS_PER_PART]
        self.asked = list(map(question_of_tasks(self.fields).__getitem__, self.tasks))
        if self.record["state"] == "new":
            self._keep(state="verified", link=self.link, report=os.urandom(16).hex(), answers=[None] * len(self.tasks))
        if self.level is not None:
            check_level(self.level, self.levels)
            drawn = f"{self.level:02x}"
            changed = "The record on this computer was changed: its report has another level. Nothing was sent."
            ensure(self.record.get("body", drawn).startswith(drawn), "level", changed)
        elif self.record["state"] == "verified" and (chosen := self._chosen_level()) is not None:
            self.choose(chosen)

    def _chosen_level(self) -> int | None:
        """Return the level that was chosen in this campaign on this computer, with whatever link; None before."""
        records = (parse_canonical(path.read_bytes()) for path in self.home.glob(f"{self.name}-*/record.json"))
        return next((record["level"] for record in records if "level" in record), None)

    @property
    def level(self) -> int | None:
        """Level that was chosen, from 0 for the least epsilon; None before, and in a campaign without levels."""
        return self.record.get("level")

    def choose(self, level: int) -> None:
        """Keep the level that the worker chooses, once: what comes later, such as the questions, cannot change it."""
        free = self.record["state"] == "verified" and self.level is None and self._chosen_level() in (None, level)
        ensure(free, "level", CHOSEN)
        require_first(read_ledger(self.home), self.name, self.record["report"], self.ledger_lines(level))
        self._keep(**{**self.record, "level": level})

    def channels(self, level: int | None) -> list[CheckedChannel]:
        """Return the channel of each cell, at a level in a campaign with levels."""
        check_level(level, self.levels)
        groups = self.fields["groups"]
        if groups is None:
            return [self.offered[level or 0]] * len(self.tasks)
        row = groups["choice"][groups["slot_group"][self.slot]]
        return [self.offered[row[groups["task_group"][task]]] for task in self.tasks]

    def _document(self, file: str, remote: str, digest: str) -> bytes:
        """Return a file of the campaign: the stored one, or fetched and then stored; its SHA-256 is always checked."""
        stored = self.folder / file.replace("/", "-")
        if stored.exists():
            data = stored.read_bytes()
        elif self.files is not None:
            data = (self.files / file).read_bytes()
        else:
            ensure(self.url, "link", "This campaign has no service: give the folder of its files (--files).")
            data = call(f"{self.url}/v1/campaigns/{self.name}{remote}", max(MAX_BYTES, MAX_PICTURE_BYTES))
        ensure(hashlib.sha256(data).hexdigest() == digest, "hash")
        if not stored.exists():
            write(stored, data)
        return data

    def picture(self, cell: int) -> str:
        """Return the link of a cell's task, and the stored file and the description of its picture; empty without."""
        task = self.tasks[cell]
        picture, address = self.fields["tasks"][task]["picture"], self.fields.get("links", {task: None})[task]
        link = f"\nLink (its host sees that you open it): {address}" if address else ""
        if picture is None:
            return link
        name = f"pictures/{picture['sha256']}"
        self._document(name, f"/{name}", picture["sha256"])
        return f"{link}\nPicture: {self.folder / name.replace('/', '-')}\n{foreign(picture['alt'])}"

    def require_open(self) -> None:
        """Refuse a used or revoked link, a second report, and a campaign that is not open today (in UTC)."""
        require_first(read_ledger(self.home), self.name, self.record["report"])
        if self.url is not None:
            try:
                reply = json.loads(call(f"{self.url}/v1/campaigns/{self.name}/link", 10_000, self.token))
                link_state, state = str(reply["state"]), str(reply["campaign"])
            except (ValueError, KeyError, TypeError) as error:
                raise Refused("reply") from error
            name = f"link-{link_state}" if link_state != "unused" else state
            ensure(name == "open" or name in REPLIES, "reply")
            ensure(name == "open", name, days_in_words(self.fields, name))
        for name, due in (("early", self.fields["opens"] > today()), ("closed", today() > self.fields["closes"])):
            ensure(not due, name, days_in_words(self.fields, name))

    def ledger_lines(self, level: int | None = None) -> list[Line]:
        """Return the lines that this report adds to the ledger, one for each ratio; at its level, or another one."""
        level = self.level if level is None else level
        ratios = [channel.ratio.as_integer_ratio() for channel in self.channels(level) if channel.ratio]
        shared = {"campaign": self.name, "report": self.record["report"], "host": self.host, "day": today()}
        shared |= {"title": self.fields["title"], "participation": self.fields["certificates"][0]["participation"]}
        counts = sorted(Counter(ratios).items())
        return [{**shared, "cells": count, "numerator": a, "denominator": b} for (a, b), count in counts]

    def ledger(self, level: int | None = None) -> list[Line]:
        """Return the ledger as it stands with this report, at its level or another one."""
        mine = self.ledger_lines(level)
        return [line for line in read_ledger(self.home) if line["report"] != mine[0]["report"]] + mine

    def answer(self, cell: int, label: str) -> None:
        """Keep an answer on this computer; an empty label is no answer."""
        ensure(self.record["state"] in ("verified", "answering"), "sampled")
        labels = self.channels(self.level)[cell].labels
        ensure(not label or label in labels, "label", f"{label!r} is none of the possible answers.")
        answers = list(self.record["answers"])
        answers[cell] = labels.index(label) if label else None
        self._keep(**{**self.record, "state": "answering", "answers": answers})

    def sample(self) -> None:
        """Draw the report, once, and store it in place of the answers, after its lines in the ledger."""
        ensure(self.record["state"] in ("verified", "answering"), "sampled")
        channels = self.channels(self.level)
        self.require_open()
        level, chosen = (b"", {}) if self.level is None else (bytes([self.level]), {"level": self.level})
        body = level + draw(channels, self.record["answers"], self.fields["symbol_bytes"], self.source)
        body = body.ljust(self.fields["body_bytes"], b"\0")
        body = self.seal(body) if self.seal and "relay" in self.fields else body
        add_to_ledger(self.home, self.ledger_lines())
        drawn = {"state": "sampled", "report": self.record["report"], "body": body.hex(), "tries": 0}
        self._keep(link=self.link, **drawn, **chosen)

    def send(self, tries: int = 8, pause: Callable[[float], None] = time.sleep) -> None:
        """Send the stored report until the service confirms it: again after 1, 2, 4 ... 60 seconds, with jitter."""
        report, body = self.record["report"], bytes.fromhex(self.record["body"])
        for attempt in range(tries):
            self._keep(**{**self.record, "state": "sent", "tries": self.record["tries"] + 1})
            try:
                receipt = call(f"{self.url}/v1/campaigns/{self.name}/reports/{report}", 1000, self.token, body)
                break
            except Refused as error:
                if error.name != "busy":
                    raise Refused(error.name, UNCONFIRMED.format(error.name)) from error
                if attempt + 1 == tries:
                    raise
                pause(min(2**attempt, 60) * (1 + os.urandom(1)[0] / 512))
        form = {"campaign": self.name, "report": report, "stored_sha256": hashlib.sha256(body).hexdigest()}
        ensure(fits(parse_canonical(receipt, 1000), {**form, "format": "crowdveil-receipt/1", "mac": str}), "receipt")
        self._keep(state="receipted", receipt=receipt.decode("ascii"))
        for path in self.folder.iterdir():
            if path.name != "record.json":
                path.unlink()

    def save_report(self, folder: Path) -> Path:
        """Write the report as a file for the curator and return its path; it holds the token."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"report-{self.slot}-{self.record['report'][:8]}.json"
        symbols = {"format": "crowdveil-report/1", "symbols": self.record["body"], "token": self.token}
        write(path, canonical({**symbols, "campaign": self.name, "report": self.record["report"]}))
        return path


def today() -> str:
    """Return the day in UTC."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


# ---- Command line
def show(text: str, *, error: bool = False) -> None:
    """Print a text without characters that steer the terminal."""
    shown_text = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
    print(shown_text, file=sys.stderr if error else sys.stdout)


def foreign(text: str) -> str:
    """Return a text of others with a mark before each line of the terminal: none can pass for one of this program."""
    wide = any(unicodedata.east_asian_width(sign) in "FW" for sign in text)
    room = max(shutil.get_terminal_size().columns - 5, 20) // (1 + wide)
    lines = (textwrap.wrap(line, room) or [""] for line in text.splitlines())
    return "\n".join(f"  | {piece}" for pieces in lines for piece in pieces)


def read_answer_file(path: Path, device: Device) -> dict[int, str]:
    """Return the label of every cell, empty for a task without a row, or with NULL; columns: task, question, label."""
    ids = [device.fields["tasks"][task]["id"] for task in device.tasks]
    cells = {(visible_form(name), str(of + 1)): k for k, (of, name) in enumerate(zip(device.asked, ids, strict=True))}
    needed = ("task", "question", "label") if "questions" in device.fields else ("task", "label")
    channels = device.channels(device.level or (0 if device.levels else None))  # all levels have the same answers
    found: dict[int, Any] = {}
    header, rows = read_table(path.read_bytes(), str(path))
    once = all(header.count(name) == 1 for name in needed)
    ensure(once, "answers", f"{path} needs the columns {' and '.join(needed)}, each once.")
    for line, row in rows.items():
        task, *of, label = (row[header.index(name)] for name in needed)
        cell = cells.get((visible_form(task), *(of or "1")), -1)
        where, yours = f"{path}, line {line}", f"Your tasks: {', '.join(map(repr, dict.fromkeys(ids[:20])))}."
        ensure(cell >= 0, "answers", f"{where}: task {task!r} is not yours. {yours}")
        ensure(cell not in found, "answers", f"{where}: task {task!r} occurs twice. Keep one row.")
        ensure(label, "answers", f"{where}: task {task!r} has no label. For no answer leave the row out.")
        found[cell] = find_answer(channels[cell].labels, label)
        ensure(found[cell] is not None, "label", f"{where}: {label!r} is none of the possible answers.")
    return {cell: found.get(cell, "") for cell in range(len(device.tasks))}


def ask(device: Device) -> None:
    """Ask every task in the terminal, all questions about one together; each answer is kept at once."""
    pictures = [device.picture(cell) for cell in range(len(device.tasks))]  # all first: the service sees no pauses
    questions, channels = questions_of(device.fields), device.channels(device.level)
    ids, last = [device.fields["tasks"][task]["id"] for task in device.tasks], -1
    for number, cell in enumerate(sorted(range(len(ids)), key=lambda cell: ids.index(ids[cell]))):
        labels, of, task = channels[cell].labels, device.asked[cell], device.tasks[cell]
        if last != (last := of):
            show(f"\nQuestion {of + 1} of {len(questions)}:\n{foreign(questions[of]['text'])}")
            show(f"Enter alone keeps what stands in brackets. Possible answers:\n{foreign(', '.join(labels))}")
        before = device.record["answers"][cell]
        show(f"\n{number + 1} of {len(device.tasks)}:\n{foreign(device.fields['tasks'][task]['text'])}{pictures[cell]}")
        if before is not None:
            show(f"Your answer so far:\n{foreign(labels[before])}")
        prompt = f"Your answer [{'no answer' if before is None else 'as it is'}]: "
        while (reply := input(prompt).strip()) and find_answer(labels, reply) is None:
            print(f"{reply!r} is none of the possible answers.")
        if reply:
            device.answer(cell, find_answer(labels, reply) or "")


def promise(device: Device) -> str:
    """Return the question, what leaves this computer, and what that promises, with the ledger's sums."""
    fields, lines, ledger = device.fields, device.ledger_lines(), device.ledger()
    single = max(epsilon([{**line, "cells": 1}]) for line in lines)
    hidden = "hidden, too" if device.offered[0].protected else "not hidden"
    texts, notes = [question["text"] for question in questions_of(fields)], ""
    words = foreign("\n".join([fields["title"], *texts, fields["consent"]]))
    if device.level is not None:
        notes += f"Your level {device.level + 1} of {device.levels} goes with it, and is not hidden.\n"
    if "relay" in fields:
        notes += "It is encrypted for the curator, and goes through a relay. Who runs it, in the curator's words:\n"
        notes += f"{foreign(fields['relay']['operator'])}\n"
    if "prior" in fields:
        notes += "The curator says that the chances were chosen for a public expectation of the answers, stated before "
        notes += f"anybody answered: the file whose SHA-256 is {fields['prior']}. This computer cannot check that.\n"
    to_host = epsilon(line for line in ledger if line["host"] == lines[0]["host"])
    return (
        f"Campaign {compared(device.name)}. Compare all 22 characters with those of other workers and with the public "
        "announcement: a link alone proves nothing, because its maker could give each worker another campaign.\n"
        f"In the words of the curator:\n{words}\n"
        f"One random symbol for each of {len(device.tasks)} tasks leaves this computer, once.\n{notes}"
        f"Privacy loss: epsilon {shown(single)} for a single answer, {shown(epsilon(lines))} for all of yours; "
        f"which tasks you answer is {hidden}.\n"
        f"Someone who held two of your answers to be equally likely can then be up to {sure(single)} sure of either, "
        f"and {sure(epsilon(lines), in_words=True)} between two sets of all your answers.\n"
        f"With all that this computer promised before: {shown(to_host)} to {lines[0]['host']}, "
        f"{shown(epsilon(ledger))} to all curators. The same question in another campaign costs the sum of both "
        "epsilons."
    )


def is_over(device: Device, budget: Decimal | None, level: int | None = None) -> bool:
    """Return whether the ledger with this report, at its level or another one, exceeds a budget."""
    return budget is not None and not Decimal(shown(epsilon(device.ledger(level)))) <= budget


def offers(device: Device, budget: Decimal | None) -> str:
    """Return the consent, and what each level of a campaign promises for all answers of this worker."""
    found = [
        "In the words of the curator:",
        foreign("\n".join([device.fields["title"], device.fields["consent"]])),
        "Choose how well your answers are protected, before you see any question. It cannot be changed afterwards.\n"
        "Your level is sent as it is: it is not hidden, and says that you chose it.\nSomeone who held two sets of all "
        "your answers to be equally likely can then be up to this sure of either, with level",
    ]
    for level in range(device.levels or 0):
        loss = epsilon(device.ledger_lines(level))
        over = f", which exceeds your budget of {budget}" if is_over(device, budget, level) else ""
        found.append(f"{level + 1}: {sure(loss, in_words=True)} (epsilon {shown(loss)}){over}")
    return "\n".join(found)


def choose_level(device: Device, level: int | None, budget: Decimal | None, *, asks: bool) -> None:
    """Choose a level, from 1, once: as given, else in the terminal, else the first, which protects best."""
    if device.levels is not None and device.level is None:
        show(offers(device, budget))
        reply = "1" if level is None else str(level)
        if typed := level is None and asks:
            reply = input("Your level [1]: ").strip() or reply
        while reply not in map(str, range(1, device.levels + 1)):
            ensure(typed, "level", f"A level is a number from 1 to {device.levels}.")
            reply = input(f"A level is a number from 1 to {device.levels}. Your level [1]: ").strip() or "1"
        over = not typed and is_over(device, budget, int(reply) - 1)
        ensure(not over, "budget", f"This level exceeds your budget of {budget}. It was not chosen.")
        device.choose(int(reply) - 1)


def run(
    device: Device, answers: Path | None, out: Path, budget: Decimal | None, level: int | None = None
) -> Path | None:
    """Answer, sample and send, from wherever the record stands; return the report file if there is no service."""
    device.open()
    state, given = device.record["state"], {}
    if state in ("verified", "answering"):
        device.require_open()
        given = {} if answers is None else read_answer_file(answers, device)
        choose_level(device, level, budget, asks=answers is None)
    if level is not None and state != "receipted":
        ensure(device.level == level - 1, "level", CHOSEN if device.levels else "This campaign offers no levels.")
    if state in ("verified", "answering"):
        show(promise(device))
        over = is_over(device, budget)
        warning = f"This exceeds your budget of {budget}. " if over else ""
        ensure(not over or answers is None, "budget", f"{warning}Nothing was sent. Without --budget it is sent.")
        if answers is None:
            ask(device)
            ensure(input(f"{warning}Send now? (yes/no) ") == "yes", "no", "Your answers stay here. Nothing was sent.")
        else:
            for cell, label in given.items():
                device.answer(cell, label)
        device.sample()
    if device.record["state"] != "receipted" and device.url is None:
        path = device.save_report(out)
        print(f"Give this file to the curator and to nobody else: {path}")
        return path
    if device.record["state"] != "receipted":
        device.send()
    print("Done on this computer: the service has the report. Nothing will be asked again.")
    return None


def main() -> int:
    """Run the command line and return the exit code: 0 done, 1 refused."""
    parser = argparse.ArgumentParser(description="Answers a campaign; randomizes the answers on this computer.")
    parser.add_argument("link", nargs="?", help="the link that you got")
    parser.add_argument("--answers", type=Path, metavar="FILE", help="CSV file with the columns task and label")
    parser.add_argument("--files", type=Path, metavar="FOLDER", help="folder of campaign.json, without a service")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="folder of the report file")
    parser.add_argument("--level", type=int, metavar="N", help="level of the campaign [1, which protects best]")
    parser.add_argument("--budget", type=float, metavar="E", help="warn if all campaigns together exceed E")
    parser.add_argument("--home", type=Path, default=HOME, help="folder of the records and of the ledger")
    parser.add_argument("--ledger", action="store_true", help="show what was promised so far")
    given = parser.parse_args()
    try:
        if given.ledger:
            print_ledger(read_ledger(given.home))
            return 0
        with Device(given.link or "", given.home, given.files) as device:
            budget = None if given.budget is None else Decimal(repr(given.budget))
            ensure(budget is None or given.budget > 0, "budget", "A budget is a positive number.")
            run(device, given.answers, given.out, budget, given.level)
        return 0
    except (Refused, OSError, UnicodeDecodeError) as error:
        show(str(error), error=True)
    except (EOFError, KeyboardInterrupt):
        show("Stopped. All is kept on this computer: start again to continue.", error=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
