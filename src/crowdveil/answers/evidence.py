"""Evidence: reports or sums, their channel, those asked, and the facts and inputs that a result rests on."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.facts.asked import UNKNOWN, Asked
from crowdveil.answers.facts.collection import Collection
from crowdveil.answers.facts.inputs import Input
from crowdveil.answers.identifiers import Identifiers
from crowdveil.answers.ingest.column_readers import ReportColumns
from crowdveil.answers.ingest.labels import mapped_label, with_known_spellings
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import NULL, Alphabet, Categories
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.errors import ReportsError


@dataclass(frozen=True, kw_only=True, eq=False)
class SummedReports:
    """SummedReports over workers, of a mechanism whose single reports are not used.

    Attributes:
        totals: estimate of the sum of answers and of the number of answers to each task, in the units of the answers.
        tasks, workers: names of all tasks and workers.
        sha256: of the file of sums, in hexadecimal.
    """

    totals: Any
    tasks: Identifiers
    workers: Identifiers
    sha256: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """What truths are inferred from.

    Attributes:
        observed: reports over all tasks and workers, where these are known; or sums.
        channel: P(report | answer); None if reports are read as answers.
        asked: which cells were asked, and which lists were stated.
        collection: facts of protected reports; None if the reports are answers, or nothing is known of them.
        no_channel_reason: reason why reports are read as answers; empty with a channel.
        declined: whether a channel was declined on purpose.
        notes: warnings about the reports themselves.
        skipped: rows of answers that were asked for and not given (NULL); None without any.
        truths: labels of the truths, where the answers have others; empty where they are the same.
        merge_labels: whether the spellings of a label are one, in the answers and in known truths.
        label_map: labels that were replaced by others in the answers, and are in known truths.
        inputs: public files that say how the reports are read.
        confidences: how sure the worker of each report was, as numbers in the order of the reports; None unless stated.

    Raises:
        ReportsError: reports of a channel with NULL reports, and those asked are unknown (`Asked.require_cells`).
    """

    observed: Reports | SummedReports
    channel: Channel | ChannelTable | None = None
    asked: Asked = UNKNOWN
    collection: Collection | None = None
    no_channel_reason: str = ""
    declined: bool = False
    notes: tuple[str, ...] = ()
    skipped: ReportColumns | None = None
    truths: tuple[str, ...] = ()
    merge_labels: bool = False
    label_map: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[Input, ...] = ()
    confidences: Reports | None = None

    def __post_init__(self) -> None:
        if sends_null_reports(self.channel):
            self.asked.require_cells()

    @property
    def reports(self) -> Reports:
        """The reports.

        Raises:
            ReportsError: the evidence is sums.
        """
        if isinstance(self.observed, SummedReports):
            raise ReportsError(
                "this needs reports, and there are only sums of them",
                source="sums",
                hint="Infer the truths from the sums, or give reports.",
            )
        return self.observed

    @property
    def sums(self) -> SummedReports | None:
        """The sums; None if the evidence is reports."""
        return self.observed if isinstance(self.observed, SummedReports) else None

    @property
    def assignment(self) -> Assignment | None:
        """The assigned cells; None if every worker reports on every task."""
        return self.asked.assignment

    @property
    def question(self) -> tuple[int, int] | None:
        """Number of the question, from 1, and how many the campaign asks; None unless it asks several."""
        return None if self.collection is None else self.collection.question

    @property
    def linked(self) -> bool:
        """Whether reports of one worker bear one name; False after single cells were shuffled."""
        return self.collection is None or self.collection.linked

    @property
    def alphabet(self) -> Alphabet | None:
        """Possible answers: those of the channel, or else of the reports."""
        return self.reports.alphabet if self.channel is None else self.channel.alphabet

    def in_label_spelling(self, gold: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Return known truths by task as the answers are read: with labels mapped, and in one spelling."""
        if not (self.merge_labels or self.label_map):
            return gold
        names = self.truths or (self.alphabet.names if isinstance(self.alphabet, Categories) else ())
        if self.label_map and names and not self.truths:
            gold = {task: mapped_label(str(truth), self.label_map) for task, truth in gold.items()}
        return with_known_spellings(gold, names) if self.merge_labels and names else gold

    @property
    def sha256(self) -> str:
        """SHA-256 of the sums or reports, and of the channel through which they are read, in hexadecimal."""
        if isinstance(self.observed, SummedReports):
            return self.observed.sha256
        if self.channel is None:
            return self.observed.sha256
        return hashlib.sha256(f"{self.observed.sha256} {self.channel.certificate()['sha256']}".encode()).hexdigest()

    @property
    def every_input(self) -> tuple[Input, ...]:
        """The reports or sums, with their guarantee if a checked channel gives it, confidences, and `inputs`."""
        collection, channel, sha256 = self.collection, self.channel, self.sha256
        own = Input(role="reports", sha256=sha256)
        if collection is not None and channel is not None and _has_guarantee(collection, channel):
            promise = replace(channel.guarantee, claimed=None, reason="")
            own = replace(own, guarantee=promise, cells=self.largest_cells_of_worker, origin=sha256)
        if self.confidences is None:
            return (own, *self.inputs)
        return (own, Input(role="weight", sha256=self.confidences.sha256), *self.inputs)

    @property
    def largest_cells_of_worker(self) -> int:
        """Largest number of cells of one worker: those assigned, or one for each answer, or all tasks."""
        channel = self.channel
        if self.assignment is not None:
            cells = int(self.assignment.per_worker.max(initial=0))
        elif channel is not None and not channel.protects_participation and not sends_null_reports(channel):
            cells = int(self.reports.per_worker.max(initial=0))
        else:
            cells = len(self.reports.tasks)
        return max(cells, 1)


def _has_guarantee(collection: Collection, channel: Channel | ChannelTable) -> bool:
    return not (collection.voided or channel.voids_privacy) and math.isfinite(channel.guarantee.epsilon)


def sends_null_reports(channel: Channel | ChannelTable | None) -> bool:
    """Return whether a cell may report NULL, which is not stored: cells without a report count as NULL."""
    channels = channel.channels if isinstance(channel, ChannelTable) else () if channel is None else (channel,)
    return any(one.protects_participation and NULL in one.outputs for one in channels)


def require_known_channel(evidence: Evidence, result: str) -> Channel | ChannelTable | None:
    """Return the channel that a result needs; None for answers.

    Raises:
        ReportsError: protected reports whose channel is unknown.
    """
    if evidence.channel is None and evidence.collection is not None:
        raise ReportsError(
            f"{result} of protected reports needs their channel, or it measures the noise",
            source="reports",
            examples=evidence.no_channel_reason,
            hint="`crowdveil infer` has methods for reports without a certificate.",
        )
    return evidence.channel
