"""Whole campaigns as black boxes: one worker's device, and everything that leaves it or is made of its report.

Each call is a new device. The input holds the answers of one worker by task; two other workers have fixed reports.
"""

import json
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from crowdveil.campaign.device import SealingDevice
from crowdveil.campaign.files.folder import (
    CAMPAIGN_FILE,
    PARTS_FOLDER,
    TOKENS_FILE,
    CampaignFolder,
    TokenEntry,
    tokens_bytes,
)
from crowdveil.campaign.rules.assemble import CampaignContent, assemble_campaign
from crowdveil.campaign.rules.assignment_part import AssignmentPart
from crowdveil.campaign.rules.document import Campaign, Relay, Task
from crowdveil.campaign.rules.report import ReportFile, make_receipt
from crowdveil.campaign.rules.token import Link, Token, token_hash
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.certificate import refusals_as
from crowdveil.cli import main
from crowdveil.cli.privacy.audit import runner_of_own_commands
from crowdveil.errors import DeviceError
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.standalone import device as one_file

URL, TASKS, SLOTS = "http://127.0.0.1:8000", 3, 3
EPSILON = 1.0
LEVELS = (0.5, 1.0, 2.0)
"""Epsilons of a single answer in the campaign whose workers choose."""
OTHERS = bytes(TASKS), bytes([1] * TASKS)
"""Bodies of the reports of the other workers."""
Answers = Mapping[str, str]
"""Label of each answered task."""


class Written:
    """Campaign in a folder, with the tokens of its workers."""

    def __init__(self, folder: Path, url: str | None, *, levels: bool = False) -> None:
        self.folder = folder
        self.campaign, self.parts = asked(url, levels=levels)
        self.tokens = [Token.new(slot) for slot in range(SLOTS)]
        entries = [TokenEntry(token.slot, token_hash(self.campaign.digest, token)) for token in self.tokens]
        (folder / PARTS_FOLDER).mkdir(parents=True)
        (folder / CAMPAIGN_FILE).write_bytes(self.campaign.to_bytes())
        (folder / PARTS_FOLDER / "0000.json").write_bytes(self.parts[0].to_bytes())
        (folder / TOKENS_FILE).write_bytes(tokens_bytes(entries, self.campaign))

    @property
    def link(self) -> str:
        """Link of the first worker."""
        return Link(self.campaign.url, self.campaign.name, self.tokens[0]).text


@cache
def asked(
    url: str | None, relay: Relay | None = None, *, levels: bool = False
) -> tuple[Campaign, tuple[AssignmentPart, ...]]:
    """Return the campaign of the audits, or that with levels."""
    alphabet = Categories(("no", "yes"))
    responses = (
        RandomizedResponse(alphabet=alphabet, epsilon=epsilon) for epsilon in (LEVELS if levels else (EPSILON,))
    )
    tasks = tuple(Task(f"t{number}", f"Statement {number}") for number in range(TASKS))
    content = CampaignContent(
        title="Statements",
        question="Is it true?",
        consent="Your answers are randomized on this device.",
        language="en",
        opens=date(2020, 1, 1),
        closes=date(2099, 12, 31),
        min_reports=SLOTS,
        channels=tuple(response.channel() for response in responses),
        levels=len(LEVELS) if levels else None,
        tasks=tasks,
        url=url,
        relay=relay,
        purge_after_days=None if relay is None else 30,
    )
    return assemble_campaign(content, [range(TASKS)] * SLOTS)


def requests(answers: Answers, level: int | None = None) -> dict[str, bytes]:
    """Return all requests of a device in turn, with the body of its report, but without its random name.

    Args:
        answers: label of each answered task.
        level: level that the worker chooses, from 0; None for the campaign without levels.
    """
    with TemporaryDirectory(prefix="crowdveil-audit-") as name:
        folder = Path(name)
        written = Written(folder / "asked", URL, levels=level is not None)
        return {f"request {n}": one for n, one in enumerate(_sent(written, answers, folder, level))}


def service(answers: Answers) -> dict[str, bytes]:
    """Return the results of a service after the device's report: collection, truths, page and statement."""
    from crowdveil.campaign.pages.results import ResultCache
    from crowdveil.campaign.service.campaign_registration import register_campaign
    from crowdveil.campaign.service.store import Store

    with TemporaryDirectory(prefix="crowdveil-audit-") as name:
        folder = Path(name)
        written = Written(folder / "asked", URL)
        bodies = _sent(written, answers, folder)[-1].rpartition(b" ")[2], *OTHERS
        store = Store.open(f"sqlite:///{folder / 'reports.sqlite'}")
        try:
            register_campaign(store, CampaignFolder(written.folder))
            for token, body in zip(written.tokens, bodies, strict=True):
                store.store_report(written.campaign.digest, token, f"{token.slot:032x}", body)
            count = store.close_and_count_reports(written.campaign.digest)
            return {"count": str(count).encode()} | ResultCache(store).get(written.campaign.digest).files
        finally:
            store.close()


def _sent(written: Written, answers: Answers, folder: Path, level: int | None = None) -> list[bytes]:
    """Return the requests of a device to a service that has every document and stores the report."""
    sent: list[bytes] = []

    def call(url: str, limit: int, token: str = "", body: bytes | None = None) -> bytes:
        path = url.removeprefix(f"{URL}/v1/campaigns/{written.campaign.name}")
        sent.append(f"{path if body is None else '/reports'} {limit} {bool(token)} ".encode() + (body or b""))
        if body is not None:
            return make_receipt(bytes(32), written.campaign.name, path.rpartition("/")[2], body)
        if path == "/link":
            return json.dumps({"state": "unused", "campaign": "open"}).encode()
        return written.parts[0].to_bytes() if path else written.campaign.to_bytes()

    with patch.object(one_file, "call", call):
        _report(written.link, answers, folder / "home", level=level)
    return sent


def without_service(answers: Answers) -> dict[str, bytes]:
    """Return what `campaign close` and `collect`, `infer` and `report` write and print, and the report's symbols."""
    run = runner_of_own_commands(main)
    with TemporaryDirectory(prefix="crowdveil-audit-") as name:
        folder = Path(name)
        written = Written(folder / "campaign", None)
        received, out = folder / "received", folder / "out"
        with refusals_as(DeviceError):
            report = _report(written.link, answers, folder / "home", files=written.folder, out=received)
        document, campaign = str(written.folder / CAMPAIGN_FILE), written.campaign
        for token, body in zip(written.tokens[1:], OTHERS, strict=True):
            file = ReportFile(token, f"{token.slot:032x}", body)
            (received / f"report-{token.slot}.json").write_bytes(file.to_bytes(campaign))
        found = {"report": ReportFile.from_bytes(report.read_bytes(), campaign).body}
        for number, words in enumerate(
            [
                ["campaign", "close", document, "--reports", str(received)],
                ["campaign", "collect", str(received), "--campaign", document, "--out", str(out)],
                ["infer", str(out / "reports.csv"), "--out", str(out / "found")],
                ["report", str(out / "found"), "--reports", str(out / "reports.csv"), "--campaign", document],
            ]
        ):
            code, printed, errors = run(["crowdveil", *words])
            found |= {f"exit code {number}": bytes([code]), f"printed {number}": printed, f"errors {number}": errors}
        files = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if path.is_file()}
        return found | {name: path.read_bytes() for name, path in files.items()}


def _report(
    link: str,
    answers: Answers,
    home: Path,
    files: Path | None = None,
    out: Path | None = None,
    level: int | None = None,
) -> Path:
    """Answer on a new device; return the report file, or the folder of the device if there is a service."""
    with SealingDevice(link, home, files) as device:
        device.open()
        device.require_open()
        if level is not None:
            device.choose(level)
        given = device.folder / "given.csv"
        given.write_text("task,label\n" + "".join(f"{task},{label}\n" for task, label in answers.items()), "utf-8")
        for cell, label in one_file.read_answer_file(given, device).items():
            device.answer(cell, label)
        device.sample()
        if out is not None:
            return device.save_report(out)
        device.send()
        return home
