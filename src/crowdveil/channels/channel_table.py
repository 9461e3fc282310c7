"""Tables of channels: one of several channels for each (worker group, task group), by public assignment.

A cell of worker i and task j uses channel choice[g(i)][h(j)]; cells are independent given the groups. Uses: cuts that
differ by worker, tasks of different sensitivity, workers who choose their own epsilon. Groups are public and must not
depend on any answer.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import (
    NULL,
    Alphabet,
    Categories,
    abbreviate_names,
    alphabet_from_json,
    alphabet_to_json,
)
from crowdveil.channels.certificate import check_symbol_names, has_format, parse_certificate_json, refusals_as
from crowdveil.channels.channel import Channel, checked_channel
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import format_bound
from crowdveil.errors import CertificateError, SettingsError
from crowdveil.randomness import Source
from crowdveil.standalone.checks import (
    MAX_CHANNELS,
    ClaimLog,
    digest,
    first_confusable_pair,
    is_choice,
    visible_form,
)
from crowdveil.standalone.verification import TABLE_FORMAT, check_table

UNPROTECTED = "unprotected"
SINGLE_GROUP = 0
"""Group of all workers (tasks) if none is named."""


@dataclass(frozen=True, eq=False, kw_only=True, match_args=False)
class ChannelTable:
    """Channels over one answer alphabet, and the channel of each cell.

    Attributes:
        channels: each is used at least once. Cells without protection use an identity channel (public).
        choice: index of the channel, indexed [worker group][task group].
        workers, tasks: group of each name; empty if all are in group 0. If any name is listed, unlisted names are
            refused.

    Raises:
        CertificateError: no channel, too many, different alphabets, or a choice or group that does not exist.

    >>> from crowdveil import Categories, ChannelTable, RandomizedResponse
    >>> channels = [RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=e).channel() for e in (1.0, 2.0)]
    >>> ChannelTable(channels=tuple(channels), choice=((0,), (1,)), workers={"a": 0, "b": 1}).guarantee.epsilon <= 2.0
    True
    """

    channels: tuple[Channel, ...]
    choice: tuple[tuple[int, ...], ...]
    workers: Mapping[str, int] = field(default_factory=dict)
    tasks: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= len(self.channels) <= MAX_CHANNELS:
            raise CertificateError("shape", f"a table holds 1 to {MAX_CHANNELS} channels, got {len(self.channels)}.")
        if any(channel.alphabet != self.alphabet for channel in self.channels):
            raise CertificateError("alphabet", "all channels of a table must accept the same answers.")
        if not self.choice or not is_choice(self.choice, len(self.channels)):
            raise CertificateError("shape", "the choice must be a rectangle in which every channel occurs.")
        for groups, count in ((self.workers, len(self.choice)), (self.tasks, len(self.choice[0]))):
            if not groups and count != 1:
                raise CertificateError("shape", f"{count} groups need names in them.")
            if not all(type(group) is int and 0 <= group < count for group in groups.values()):
                raise CertificateError("shape", f"a group must be in 0..{count - 1}.")

    def __repr__(self) -> str:
        """Return mechanisms, answers and the largest guarantee."""
        size = f"{len(self.channels):,} channels for {abbreviate_names(self.alphabet.names)}"
        return f"<ChannelTable of {self.mechanism}: {size}; {self.guarantee}>"

    @classmethod
    def by_worker(cls, channels: Sequence[Channel], workers: Mapping[str, int]) -> Self:
        """Return the table with one channel per worker for all tasks; `workers` has the channel index of each name."""
        return cls(channels=tuple(channels), choice=tuple((k,) for k in range(len(channels))), workers=dict(workers))

    @property
    def alphabet(self) -> Alphabet:
        """Possible answers."""
        return self.channels[0].alphabet

    @cached_property
    def report_alphabet(self) -> Alphabet:
        """Alphabet of non-NULL reports: that of the answers if it has all symbols, else the symbols of all channels."""
        names = dict.fromkeys(name for channel in self.channels for name in channel.outputs if name != NULL)
        if set(names) <= set(self.alphabet.names):
            return self.alphabet
        return Categories(tuple(names))

    @property
    def mechanism(self) -> str:
        """Mechanism names of the channels, joined by " / "."""
        return " / ".join(dict.fromkeys(channel.mechanism for channel in self.channels))

    @property
    def protects_participation(self) -> bool:
        """Whether NULL is an input of any channel."""
        return any(channel.protects_participation for channel in self.channels)

    @property
    def voids_privacy(self) -> bool:
        """Whether any channel is marked as without privacy."""
        return any(channel.voids_privacy for channel in self.channels)

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of the least protected cell."""
        worst = max(self.channels, key=lambda channel: channel.epsilon).guarantee
        public = any(channel.participation == "public" for channel in self.channels)
        return Guarantee(
            epsilon=worst.epsilon,
            participation="public" if public else "protected",
            reason=self._weakest_channel_clause(worst.epsilon),
        )

    def _weakest_channel_clause(self, epsilon: float) -> str:
        """Return that an epsilon is that of the weakest channel, and the smallest one; empty for one channel."""
        least, count = min(channel.epsilon for channel in self.channels), len(self.channels)
        others = "" if least == epsilon or epsilon == inf else f", whose smallest epsilon is {format_bound(least, 4)}"
        return f"the weakest of {count} channels{others}" if count > 1 else ""

    def groups(self, tasks: Collection[Any], workers: Collection[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the group of each task and of each worker, in the order of the names.

        Raises:
            SettingsError: a name that the table does not list.
        """
        return _group_codes(self.tasks, tasks, "task"), _group_codes(self.workers, workers, "worker")

    def sample(self, index: int, answers: NDArray[np.integer], source: Source) -> NDArray[np.int64]:
        """Return the reports of cells of one channel, as codes of `report_alphabet`, its size for NULL.

        A public channel leaves NULL unchanged; the identity leaves all answers unchanged.
        """
        channel, null = self.channels[index], self.alphabet.size
        code_of = {name: code for code, name in enumerate(self.report_alphabet.names)}
        codes = np.array([code_of.get(name, self.report_alphabet.size) for name in (*channel.outputs, NULL)])
        sent = np.full(len(answers), len(channel.outputs))
        given = np.ones(len(answers), dtype=bool) if channel.participation == "protected" else answers != null
        sent[given] = answers[given] if channel.is_identity else channel.sample(answers[given], source)
        return codes[sent]

    def certificate(self) -> dict[str, object]:
        """Return the certificate, as JSON values with a SHA-256; `from_certificate` is the inverse.

        Raises:
            CertificateError: a channel other than the identity that cannot be certified, or confusable names.
        """
        _refuse_confusable_names(self.workers, self.tasks)
        check_symbol_names(self.alphabet.names)
        unprotected: dict[str, object] = {UNPROTECTED: alphabet_to_json(self.alphabet)}
        parts = [unprotected if channel.is_identity else channel.certificate() for channel in self.channels]
        data: dict[str, object] = {
            "format": TABLE_FORMAT,
            "channels": parts,
            "choice": [list(row) for row in self.choice],
            "workers": dict(self.workers),
            "tasks": dict(self.tasks),
        }
        return {**data, "sha256": digest(data)}

    @classmethod
    def from_certificate(cls, text: str | bytes) -> Self:
        """Return the table of a certificate's JSON text, after checking every field and every channel.

        Raises:
            CertificateError: as for a channel; `format` if it is not a table.
        """
        data = parse_certificate_json(text)
        with refusals_as(CertificateError):
            check_table(data, ClaimLog())
        choice = tuple(tuple(row) for row in data["choice"])
        channels = tuple(_channel_of_checked_certificate(part) for part in data["channels"])
        return cls(channels=channels, choice=choice, workers=data["workers"], tasks=data["tasks"])


def table_by_task(channels: Sequence[Channel], tasks: Mapping[str, int]) -> ChannelTable:
    """Return the table with one channel per task for all workers; `tasks` has the channel index of each name."""
    return ChannelTable(channels=tuple(channels), choice=(tuple(range(len(channels))),), tasks=dict(tasks))


def is_channel_table(text: str | bytes) -> bool:
    """Return whether a certificate's text has the format of a table; its content is not checked."""
    return has_format(text, TABLE_FORMAT)


def _refuse_confusable_names(workers: Mapping[str, int], tasks: Mapping[str, int]) -> None:
    for role, names in (("worker", workers), ("task", tasks)):
        if any(not visible_form(name) for name in names):
            raise CertificateError("text", f"a {role} has a name without visible characters.", hint="Rename it.")
        pair = first_confusable_pair(names)
        if pair is not None:
            raise CertificateError(
                "text", f"{role} {pair[0]!r} and {pair[1]!r} are confusable.", hint="Rename one of them."
            )


def _group_codes(groups: Mapping[str, int], names: Collection[Any], role: str) -> NDArray[np.int64]:
    if not groups:
        return np.broadcast_to(np.int64(SINGLE_GROUP), len(names))
    unknown = [str(name) for name in names if str(name) not in groups]
    if unknown:
        raise SettingsError(
            f"every {role} needs a channel in the table",
            value=unknown[0],
            hint=f"{len(unknown)} have none: list them in it.",
        )
    return np.array([groups[str(name)] for name in names], dtype=np.int64)


def _channel_of_checked_certificate(part: dict[str, Any]) -> Channel:
    """Return the channel of a checked certificate, or the identity of unprotected cells."""
    if set(part) == {UNPROTECTED}:
        return Channel.identity(alphabet_from_json(part[UNPROTECTED]), "public")
    return checked_channel(part)
