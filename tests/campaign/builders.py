"""Small campaigns in memory, and as folders, for tests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from crowdveil.campaign.files.folder import TokenEntry, tokens_bytes
from crowdveil.campaign.rules.assemble import CampaignContent, assemble_campaign
from crowdveil.campaign.rules.assignment_part import AssignmentPart
from crowdveil.campaign.rules.document import Campaign, Groups, Relay, Task
from crowdveil.campaign.rules.token import Link, Token, token_hash
from crowdveil.channels.alphabet import Alphabet, Categories
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Participation
from crowdveil.mechanisms.randomized_response import RandomizedResponse

PUBLIC_KEY = (
    "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
)
"""A point of P-256, whose private key is 1."""
LABELS = Categories(("zebrafish", "quokka", "narwhal"))
"""Labels that occur nowhere else, so that a search for them finds leaks."""


@dataclass(frozen=True)
class BuiltCampaign:
    """Campaign with its parts, and one token per slot."""

    campaign: Campaign
    parts: tuple[AssignmentPart, ...]
    tokens: tuple[Token, ...]

    def tasks(self, slot: int) -> tuple[int, ...]:
        """Return the task indices of a slot."""
        return self.parts[slot // 100].tasks(slot)

    def link(self, slot: int) -> Link:
        """Return the link of a slot."""
        return Link(self.campaign.url, self.campaign.name, self.tokens[slot])

    def write(self, folder: Path) -> Path:
        """Write `campaign.json`, `parts/` and `tokens.json` into a folder; return it."""
        (folder / "parts").mkdir(parents=True, exist_ok=True)
        (folder / "campaign.json").write_bytes(self.campaign.to_bytes())
        for number, part in enumerate(self.parts):
            (folder / "parts" / f"{number:04}.json").write_bytes(part.to_bytes())
        entries = [TokenEntry(token.slot, token_hash(self.campaign.digest, token)) for token in self.tokens]
        (folder / "tokens.json").write_bytes(tokens_bytes(entries, self.campaign))
        return folder


def body_of(codes: Iterable[int], campaign: Campaign, level: int | None = None) -> bytes:
    """Return the body of a report with these codes of report symbols; -1 is "not answered"."""
    width = campaign.symbol_bytes
    cells = b"".join((code % 256**width).to_bytes(width, "big") for code in codes)
    return ((b"" if level is None else bytes([level])) + cells).ljust(campaign.body_bytes, b"\0")


def response(alphabet: Alphabet = LABELS, epsilon: float = 1.0, participation: Participation = "protected") -> Channel:
    """Return a channel of randomized response."""
    return RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation=participation).channel()


def ledger_line(**changed: Any) -> dict[str, Any]:
    """Return a line of a ledger; `changed` replaces fields."""
    line = {"campaign": "A" * 43, "cells": 2, "day": "2027-01-01", "denominator": 1, "host": "grades.example.org"}
    line |= {"numerator": 3, "participation": "protected", "report": "ab" * 16, "title": "Animals"}
    return {**line, **changed}


def build_campaign(
    *,
    channels: Sequence[Channel] = (),
    tasks: int = 4,
    slots: int = 3,
    assignment: Sequence[Sequence[int]] = (),
    participation: Participation = "protected",
    url: str | None = "http://127.0.0.1:8000",
    opens: date = date(2020, 1, 1),
    closes: date = date(2099, 12, 31),
    groups: Groups | None = None,
    content: Mapping[str, Any] | None = None,
) -> BuiltCampaign:
    """Return a small campaign that is open, with one token per slot; every slot gets every task by default.

    Args:
        channels: by default randomized response over `LABELS` with epsilon 1.
        tasks: number of tasks.
        slots: number of workers.
        assignment: task indices of each slot.
        participation: participation of the default channel.
        url: address of the service.
        opens, closes: first and last day.
        groups: channel of each cell, for several channels.
        content: other fields of `CampaignContent`, by name.
    """
    filled = CampaignContent(
        **{
            "title": "Animals",
            "question": "Which animal is it?",
            "consent": "Your answers are randomized on this device.",
            "language": "en",
            "min_reports": 2,
            "opens": opens,
            "closes": closes,
            "channels": tuple(channels) or (response(participation=participation),),
            "tasks": tuple(Task(f"t{number}", f"Picture {number}") for number in range(tasks)),
            "url": url,
            "purge_after_days": 30,
            "groups": groups,
            **(content or {}),
        }
    )
    campaign, parts = assemble_campaign(filled, assignment or [range(tasks)] * slots)
    return BuiltCampaign(campaign, parts, tuple(Token.new(slot) for slot in range(campaign.slots)))


def relay_of_key(key: Any, unit: str = "report", *, least_batch: int = 2) -> Relay:
    """Return a relay that forwards reports encrypted to a curator's private key."""
    from crowdveil.campaign.relay.sealing import uncompressed_public_key_hex

    return Relay("The library", uncompressed_public_key_hex(key), least_batch, unit)  # type: ignore[arg-type]


def build_questions(
    channels: Sequence[Channel], tasks: Sequence[int], assignment: Sequence[Sequence[int]], **changed: Any
) -> BuiltCampaign:
    """Return a campaign with a question for each channel, each about tasks of the same names.

    Args:
        channels: of the questions.
        tasks: number of tasks of each question.
        assignment: task indices of each slot, over all questions.
        changed: other fields of `CampaignContent`, and `url`.
    """
    texts = tuple(f"Question {number}?" for number in range(1, len(channels) + 1))
    of_task = tuple(question for question, count in enumerate(tasks) for _ in range(count))
    content = {
        "question": texts[0],
        "questions": texts,
        "tasks": tuple(Task(f"t{number}", f"Thing {number}") for count in tasks for number in range(count)),
        **{name: value for name, value in changed.items() if name != "url"},
    }
    url = {"url": changed["url"]} if "url" in changed else {}
    groups = Groups((tuple(range(len(channels))),), of_task, (0,) * len(assignment))
    return build_campaign(channels=channels, assignment=assignment, groups=groups, content=content, **url)
