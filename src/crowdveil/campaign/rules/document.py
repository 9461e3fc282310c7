"""Campaign document: question, tasks, channels, slots and dates, named by the SHA-256 of its canonical bytes.

A slot is the number of a worker inside one campaign, from 0. `campaign.json` holds no names of people, tokens or keys.
A change of the document is another campaign.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal, Self

from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.certificate import refusals_as
from crowdveil.channels.channel import Channel, checked_channel
from crowdveil.channels.guarantee import Guarantee, Participation
from crowdveil.channels.rounding import sum_rounded_up
from crowdveil.errors import CampaignError
from crowdveil.standalone.checks import PICTURE, SUITE, ClaimLog, check_campaign, check_level, sealed_bytes
from crowdveil.standalone.verification import parse_json

State = Literal["early", "open", "closed"]


def base64url_of_digest(digest: bytes) -> str:
    """Return a SHA-256 as base64url without padding, 43 characters: the name of a campaign in links and addresses."""
    return urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def spaced_name_to_compare(campaign_name: str) -> str:
    """Return the part of a campaign's name that people compare, in groups: 22 characters, 132 bits."""
    return " ".join(campaign_name[first : min(first + 4, 22)] for first in range(0, 22, 4))


def digest_of_name(name: str) -> bytes:
    """Return the 32 bytes of a campaign's name.

    Raises:
        CampaignError: name.
    """
    try:
        digest = urlsafe_b64decode(name + "=")
    except ValueError as error:
        raise CampaignError("name", "a campaign's name is 43 characters of base64url.") from error
    if len(digest) != 32 or base64url_of_digest(digest) != name:
        raise CampaignError("name", "a campaign's name is 43 characters of base64url.")
    return digest


@dataclass(frozen=True, slots=True)
class Picture:
    """Picture of a task: SHA-256 in hexadecimal, media type, size in bytes, and the text for those who cannot see."""

    sha256: str
    type: str
    size: int
    alt: str


@dataclass(frozen=True, slots=True)
class Task:
    """Task of a campaign: identifier, text, a picture or None, and the link of what is judged or None."""

    id: str
    text: str
    picture: Picture | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Groups:
    """Position of the channel of each cell: `choice[slot_group[slot]][task_group[task]]`; groups are public."""

    choice: tuple[tuple[int, ...], ...]
    task_group: tuple[int, ...]
    slot_group: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One of several questions of a campaign: its text, and the largest number of its tasks that a worker is asked."""

    text: str
    cells: int


@dataclass(frozen=True, slots=True)
class Relay:
    """Relay between workers and curator, run by somebody else than the curator.

    Attributes:
        operator: who runs it, as workers read it.
        public_key: the curator's key, to which reports are encrypted: point of P-256, uncompressed, in hexadecimal.
        least_batch: least number of workers whose reports are forwarded together.
        unit: what stays together: the whole report of a worker, or a single cell.
        suite: suite of the encryption.
    """

    operator: str
    public_key: str
    least_batch: int
    unit: Literal["report", "cell"]
    suite: str = SUITE


@dataclass(frozen=True, kw_only=True, eq=False)
class CampaignTerms:
    """What a curator says to the workers of a campaign.

    Attributes:
        title, question, consent, language: texts for the worker.
        opens, closes: first and last day (UTC) on which reports are accepted.
        min_reports: number of reports below which nothing is released.
        url: address of the service, without a final slash; None for a campaign without a service.
        purge_after_days: days from the last day until the service deletes the reports; None without a promise.
    """

    title: str
    question: str
    consent: str
    language: str
    opens: date
    closes: date
    min_reports: int
    url: str | None = None
    purge_after_days: int | None = None

    def terms(self) -> dict[str, Any]:
        """Return the terms by name."""
        return {term.name: getattr(self, term.name) for term in fields(CampaignTerms)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Campaign(CampaignTerms):
    """Checked campaign; made by `from_bytes`.

    Attributes:
        labels: possible answers, in input order.
        certificates: channel certificates, as JSON values.
        channels: channels of the certificates, checked.
        tasks: tasks in the order of their indices.
        slots: number of workers.
        groups: channel of each cell; None with a single channel.
        assignment_parts: SHA-256 of each assignment part, hexadecimal.
        cells: largest number of tasks of one worker.
        body_bytes: length of every report's body.
        symbol_bytes: bytes of one symbol, 1 or 2.
        salt: 16 random bytes, hexadecimal.
        source: canonical bytes of the document.
        relay: the relay; None if reports go to the curator's service.
        sent_bytes: length of what every device sends: `body_bytes`, or that of the sealed report.
        levels: number of levels that a worker chooses from, one channel for each; None without levels.
        prior: SHA-256 of the file of the public prior that the channels were chosen for, hexadecimal; None without one.
        questions: several questions, with a channel for each; empty with one, which `question` and `labels` describe.
    """

    labels: tuple[str, ...]
    certificates: tuple[Mapping[str, Any], ...]
    channels: tuple[Channel, ...]
    tasks: tuple[Task, ...]
    slots: int
    groups: Groups | None
    assignment_parts: tuple[str, ...]
    cells: int
    body_bytes: int
    symbol_bytes: int
    salt: str
    source: bytes
    relay: Relay | None
    sent_bytes: int
    levels: int | None
    prior: str | None
    questions: tuple[Question, ...]

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the campaign of a `campaign.json` after checking the canonical form, every field and every channel.

        Raises:
            CampaignError: `defect` is one of those of `checks.check_campaign`.
        """
        with refusals_as(CampaignError):
            found, _ = check_campaign(data, ClaimLog())
        del found["format"]
        channels = tuple(map(checked_channel, found["certificates"]))
        converted = {
            "opens": date.fromisoformat(found["opens"]),
            "closes": date.fromisoformat(found["closes"]),
            "tasks": tuple(map(_task, found["tasks"], found.pop("links", [None] * len(found["tasks"])))),
            "groups": _channel_groups_from_json(found["groups"]),
            "relay": Relay(**found["relay"]) if "relay" in found else None,
            "sent_bytes": sealed_bytes(found) if "relay" in found else found["body_bytes"],
            **{name: found.get(name) for name in ("levels", "prior")},
            "questions": tuple(Question(**question) for question in found.get("questions", ())),
        }
        tuples = {name: tuple(found[name]) for name in ("labels", "certificates", "assignment_parts")}
        return cls(**{**found, **tuples, **converted}, channels=channels, source=data)

    def to_bytes(self) -> bytes:
        """Return the bytes of `campaign.json`."""
        return self.source

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the document, 32 bytes."""
        return sha256(self.source).digest()

    @property
    def name(self) -> str:
        """`digest` as base64url without padding, 43 characters."""
        return base64url_of_digest(self.digest)

    @cached_property
    def fields(self) -> Mapping[str, Any]:
        """Fields of the document, as JSON values."""
        found: dict[str, Any] = parse_json(self.source)
        return found

    @cached_property
    def by_question(self) -> tuple["Campaign", ...]:
        """The campaign as each of its questions alone: text, labels, channel, tasks and `cells`; itself with one.

        Name, source, days, parts and body are those of the whole.
        """
        if self.groups is None or not self.questions:
            return (self,)
        of_task = self.groups.task_group
        return tuple(
            replace(
                self,
                question=question.text,
                labels=channel.alphabet.names,
                cells=question.cells,
                channels=(channel,),
                certificates=(self.certificates[index],),
                tasks=tuple(task for task, of in zip(self.tasks, of_task, strict=True) if of == index),
                groups=None,
                questions=(),
            )
            for index, (question, channel) in enumerate(zip(self.questions, self.channels, strict=True))
        )

    @property
    def alphabet(self) -> Alphabet:
        """Possible answers, of several questions those to the first."""
        return self.channels[0].alphabet

    @property
    def participation(self) -> Participation:
        """Participation that all channels have: "protected" or "public"."""
        return self.channels[0].participation

    @property
    def epsilon(self) -> float:
        """Largest privacy loss of a single answer, in nats, rounded up."""
        return max(channel.epsilon for channel in self.channels)

    @property
    def worker_epsilon(self) -> float:
        """Upper bound on the privacy loss of all answers of one worker, in nats, rounded up; for one report per worker.

        It is `cells` times `epsilon`, and of several questions the sum over their channels.
        """
        if self.questions:
            loads = [question.cells for question in self.questions]
            return sum_rounded_up((one.epsilon, load) for one, load in zip(self.channels, loads, strict=True))
        return sum_rounded_up([(self.epsilon, self.cells)])

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of a single answer under the weakest channel."""
        return Guarantee(epsilon=self.epsilon, participation=self.participation)

    @property
    def worker_guarantee(self) -> Guarantee:
        """Guarantee of all answers of one worker, with `worker_epsilon`."""
        return replace(self.guarantee, epsilon=self.worker_epsilon, unit="worker")

    def channel_of(self, slot: int, task: int, level: int | None = None) -> Channel:
        """Return the channel of a worker's answer to a task, by slot, task index, and the level that was chosen.

        Raises:
            CampaignError: level.
        """
        with refusals_as(CampaignError):
            check_level(level, self.levels)
        if level is not None:
            return self.channels[level]
        if self.groups is None:
            return self.channels[0]
        row = self.groups.choice[self.groups.slot_group[slot]]
        return self.channels[row[self.groups.task_group[task]]]

    @property
    def purge_day(self) -> date | None:
        """Day (UTC) from which the service deletes the reports, after the last day; None without a promise."""
        if self.purge_after_days is None:
            return None
        days = timedelta(max(self.purge_after_days, 1))
        return self.closes + days if self.closes <= date.max - days else date.max

    def state_on(self, day: date) -> State:
        """Return whether reports are accepted on a day (UTC): "early", "open" or "closed"."""
        if day < self.opens:
            return "early"
        return "open" if day <= self.closes else "closed"


def _task(data: Mapping[str, Any], link: str | None) -> Task:
    picture = data["picture"]
    return Task(data["id"], data["text"], picture and Picture(*map(picture.get, PICTURE)), link)


def _channel_groups_from_json(data: Mapping[str, Any] | None) -> Groups | None:
    if data is None:
        return None
    return Groups(tuple(map(tuple, data["choice"])), tuple(data["task_group"]), tuple(data["slot_group"]))
