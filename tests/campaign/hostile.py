"""A campaign whose curator writes false promises into every text and name, and what stands outside quotes on a page."""

import html
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.campaign.rules.document import Picture, Task
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.channel import Channel
from tests.campaign.builders import BuiltCampaign, build_campaign

MARK = "CHECKED"
"""Word of every false promise; no program writes it."""
PICTURE = b"\x89PNG"
QUOTES = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|“[^”]*”"""


def false_promise(name: str) -> str:
    """Return a false promise that is unlike others."""
    return f"{MARK} on this device: your answers are anonymous ({name})"


def hostile_channel(labels: int = 2) -> Channel:
    """Return a channel whose answers and reports are false promises, one of them with quotes inside."""
    names = ("a'b\"c", *map(str, range(1, labels)))
    alphabet = Categories(tuple(f"{false_promise('answer')} {name}" for name in names))
    outputs = tuple(f"{false_promise('report')} {name}" for name in range(3))
    table = np.full((labels + 1, 3), 0.3) + np.eye(3)[np.arange(labels + 1) % 3] * 0.1
    return Channel.from_probabilities(alphabet, "protected", outputs, table / table.sum(axis=1, keepdims=True), None)


def hostile_campaign(labels: int = 2, **settings: Any) -> BuiltCampaign:
    """Return a campaign with false promises in title, question, consent, tasks, pictures, answers and reports."""
    return build_campaign(channels=[hostile_channel(labels)], content=hostile_content(), **settings)


def hostile_content() -> dict[str, Any]:
    """Return the texts of the campaign."""
    shown = Picture(sha256(PICTURE).hexdigest(), "image/png", len(PICTURE), false_promise("picture"))
    tasks = tuple(Task(f"{false_promise('id')} {k}", f"{false_promise('task')} {k}", None) for k in range(4))
    content = {name: false_promise(name) for name in ("title", "question", "consent")}
    return {**content, "tasks": (Task(tasks[0].id, tasks[0].text, shown), *tasks[1:])}


def write_picture(folder: Path) -> None:
    """Write the picture of the first task into the folder of a campaign."""
    (folder / "pictures").mkdir(parents=True)
    (folder / "pictures" / sha256(PICTURE).hexdigest()).write_bytes(PICTURE)


def outside_quotes(text: str) -> str:
    """Return what a text says outside quotes, and in lines of its own that have no mark of foreign words."""
    lines = (line for line in text.splitlines() if not line.startswith("  | "))
    return re.sub(QUOTES, "", re.sub(r"(?<=\w)'s ", "s ", re.sub(r"\s+", " ", "\n".join(lines))))


def outside_quotes_of_page(page: str) -> str:
    """Return what a page says outside elements of foreign words, which its style puts in quotes, and outside quotes."""
    assert ".foreign::before { content: open-quote; }" in page or 'href="style.css"' in page or "foreign" not in page
    page = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    page = re.sub(r'<(\w+)[^<>]*class="[^"]*\bforeign\b[^"]*"[^<>]*>.*?</\1>', "", page, flags=re.DOTALL)
    return outside_quotes(html.unescape(re.sub(r"<[^>]*>", " ", page)))
