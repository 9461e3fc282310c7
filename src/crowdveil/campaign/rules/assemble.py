"""Assembly of a campaign from its texts, channels, tasks and assignment."""

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

from crowdveil.campaign.rules.assignment_part import AssignmentPart, split_assignment
from crowdveil.campaign.rules.canonical_json import canonical_bytes
from crowdveil.campaign.rules.document import Campaign, CampaignTerms, Groups, Relay, Task
from crowdveil.channels.channel import Channel
from crowdveil.standalone.checks import CAMPAIGN_FORMAT, PICTURE, symbol_bytes


@dataclass(frozen=True, kw_only=True)
class CampaignContent(CampaignTerms):
    """Content of a campaign before the assignment is drawn; fields as in `Campaign`.

    `questions` are the texts of several questions, of which `question` is the first; empty with one.
    """

    channels: tuple[Channel, ...]
    tasks: tuple[Task, ...]
    groups: Groups | None = None
    relay: Relay | None = None
    levels: int | None = None
    prior: str | None = None
    questions: tuple[str, ...] = ()
    salt: str = field(default_factory=lambda: secrets.token_hex(16))


def assemble_campaign(
    content: CampaignContent, assignment: Sequence[Sequence[int]]
) -> tuple[Campaign, tuple[AssignmentPart, ...]]:
    """Return the campaign and its assignment parts.

    Args:
        content: texts, dates, channels and tasks.
        assignment: task indices of each slot.

    Raises:
        CampaignError: as `Campaign.from_bytes`.
        CertificateError: a channel cannot be certified.
    """
    parts = split_assignment(assignment)
    loads = _most_tasks_of_worker_by_question(content, assignment)
    cells = sum(loads)
    width = symbol_bytes((len(channel.outputs), channel.protects_participation) for channel in content.channels)
    document = {
        "format": CAMPAIGN_FORMAT,
        **content.terms(),
        "opens": content.opens.isoformat(),
        "closes": content.closes.isoformat(),
        "salt": content.salt,
        "labels": list(content.channels[0].alphabet.names),
        "certificates": [channel.certificate() for channel in content.channels],
        "tasks": list(map(_task_fields, content.tasks)),
        "slots": len(assignment),
        "groups": content.groups and asdict(content.groups),
        "assignment_parts": [sha256(part.to_bytes()).hexdigest() for part in parts],
        "cells": cells,
        "body_bytes": cells * width + (content.levels is not None),
        "symbol_bytes": width,
    }
    asked = [{"text": text, "cells": load} for text, load in zip(content.questions, loads, strict=False)]
    chosen: dict[str, Any] = {"levels": content.levels, "prior": content.prior, "questions": asked or None}
    chosen["relay"] = content.relay and asdict(content.relay)
    links = [task.link for task in content.tasks]
    chosen["links"] = links if any(links) else None
    document |= {name: value for name, value in chosen.items() if value is not None}
    return Campaign.from_bytes(canonical_bytes(document)), parts


def _most_tasks_of_worker_by_question(content: CampaignContent, assignment: Sequence[Sequence[int]]) -> list[int]:
    """Return the largest number of tasks of a worker, for each question."""
    of_task = content.groups.task_group if content.questions and content.groups else (0,) * len(content.tasks)
    counts = [Counter(of_task[task] for task in tasks) for tasks in assignment]
    return [max((count[k] for count in counts), default=0) for k in range(len(content.questions) or 1)]


def _task_fields(task: Task) -> dict[str, Any]:
    picture = task.picture
    shown = picture and dict(zip(PICTURE, (picture.sha256, picture.type, picture.size, picture.alt), strict=True))
    return {"id": task.id, "text": task.text, "picture": shown}
