"""Facts of a collection of protected reports: mechanism, guarantee, and what voids or limits the guarantee."""

import re
from dataclasses import dataclass, replace
from math import isclose
from typing import Self

from crowdveil.answers.facts.asked import ListName, missing_lists_reason
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.guarantee import Guarantee, Participation
from crowdveil.errors import ReportsError

SAME_BOUND = 1e-9
"""Relative difference below which two bounds are one bound, computed by two versions."""
GUARANTEE_SCOPE = "the holder of the answers sees them all; the guarantee is against recipients of the reports alone"
"""Scope of the guarantee of reports that were made from a file of answers."""
ASSIGNED = "hidden: which of the assigned tasks a worker skipped; not hidden: which were assigned"
EDITED = (
    "The reports were edited after they were sent: the guarantee and the channel in crowd.json and the certificate "
    "belong to other reports."
)
SIMULATED_REPORTS = "The reports are a simulation: they carry no privacy."


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Facts of a collection, as fields.

    Attributes:
        mechanism: name of the mechanism; of several, joined by "+".
        description: name and settings as text; the name alone where an epsilon would be a claim that does not hold.
        guarantee: of one cell or worker, as devices give it; None if lists were taken from the answers.
        participation: "protected" if any cell protects it.
        lists_from_answers: lists that the guarantee needs to be stated and that were taken from the answers.
        simulation: whether the reports follow from a seed.
        seed: of a simulation; None without one.
        edited: whether the reports were changed after they were sent.
        campaign: name of the campaign whose devices sent the reports; None if they were made from a file of answers.
        question: number of the question, from 1, and how many the campaign asks; None unless it asks several.
        linked: whether reports of one worker bear one name; False after single cells were shuffled.
        assigned: whether workers were asked about assigned tasks only.
        certificate_sha256: digest of the certificate of the channel; None without one.
        stated_guarantee: text of the guarantee in a file of the second format, which had no fields for it.
        stated_none: whether that text states no guarantee.
    """

    mechanism: str
    description: str
    guarantee: Guarantee | None
    participation: Participation = "public"
    lists_from_answers: tuple[ListName, ...] = ()
    simulation: bool = False
    seed: int | None = None
    edited: bool = False
    campaign: str | None = None
    question: tuple[int, int] | None = None
    linked: bool = True
    assigned: bool = False
    certificate_sha256: str | None = None
    stated_guarantee: str = ""
    stated_none: bool = False

    @property
    def voided(self) -> bool:
        """Whether no guarantee holds."""
        return self.simulation or self.edited or bool(self.lists_from_answers) or self.stated_none

    @property
    def guarantee_text(self) -> str:
        """The guarantee with its conditions, or "none: " or "unknown: " with the reason."""
        promise = self._promise
        if self.simulation:
            lists = ", with public lists" if self.lists_from_answers else ""
            return (
                self.stated_guarantee or f"none: a simulation carries no privacy; devices would have{lists}: {promise}"
            )
        if self.lists_from_answers:
            return f"none: {missing_lists_reason(self.lists_from_answers)}"
        if self.edited and not self.stated_none:
            return f"unknown: the reports were edited after they were sent; stated before: {promise}"
        return promise

    @property
    def _promise(self) -> str:
        if self.guarantee is None:
            return self.stated_guarantee or "none"
        hidden = (ASSIGNED,) if self.assigned and self.participation == "protected" else ()
        scope = () if self.simulation or self.campaign is not None else (GUARANTEE_SCOPE,)
        return "; ".join((str(self.guarantee), *hidden, *scope))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings if the guarantee or the channel does not hold."""
        edited = (EDITED,) if self.edited else ()
        if self.simulation:
            return (SIMULATED_REPORTS, *edited)
        if not self.lists_from_answers:
            return edited
        return (f"{missing_lists_reason(self.lists_from_answers).capitalize()}.", *edited)

    @property
    def as_edited(self) -> Self:
        """The facts of the same reports after they were edited."""
        return replace(self, edited=True)

    def with_channel(self, channel: Channel | ChannelTable | None) -> Self:
        """Return the facts with the guarantee of the channel of the certificate, unless no guarantee holds.

        Raises:
            ReportsError: a guarantee is stated that is not that of the certificate, or the certificate is marked as
                without privacy.
        """
        if channel is None or self.voided:
            return self
        if channel.voids_privacy:
            raise ReportsError(
                "the crowd.json must not state a guarantee if its certificate is marked as without privacy",
                source="crowd.json",
                examples=f"{self.guarantee_text[:100]}; certificate: {channel.mechanism[:100]}",
                hint="Use the crowd.json that was written with the reports.",
            )
        participation: Participation = "protected" if channel.protects_participation else "public"
        self._refuse_contradicted_facts(channel, participation)
        return replace(self, guarantee=channel.guarantee, participation=participation)

    def _refuse_contradicted_facts(self, channel: Channel | ChannelTable, participation: Participation) -> None:
        """Refuse facts that contradict those of the certificate; a text of the second format likewise."""
        stated, certified = self.guarantee, channel.guarantee
        if stated is None:
            same = _without_claim(self.stated_guarantee) == _without_claim(str(certified))
        else:
            same = _is_same_bound(stated, certified) and self.participation == participation
        if not same or not _mechanisms(self.mechanism) <= _mechanisms(channel.mechanism):
            raise ReportsError(
                "the crowd.json must state the mechanism and the guarantee of its certificate",
                source="crowd.json",
                examples=f"{self.mechanism[:50]}, {self.guarantee_text[:100]}; certificate: "
                f"{channel.mechanism[:50]}, {certified}",
                hint="Use the crowd.json that was written with the reports.",
            )


def _is_same_bound(one: Guarantee, other: Guarantee) -> bool:
    """Return whether two guarantees are of one unit and participation, and differ in rounding alone."""
    bounds = ((one.epsilon, other.epsilon), (one.delta, other.delta))
    kinds = (one.unit, one.participation) == (other.unit, other.participation)
    return kinds and all(isclose(*bound, rel_tol=SAME_BOUND) for bound in bounds)


def _mechanisms(text: str) -> set[str]:
    """Return the names of mechanisms in the text of one or several, without a mark after them."""
    return set(re.split(r" / |\+", text.partition(",")[0]))


def _without_claim(text: str) -> str:
    """Return the bounds in the text of a guarantee, without what its source claims and without conditions."""
    return re.sub(r" \(claimed [^)]*\)", "", text).partition(";")[0]
