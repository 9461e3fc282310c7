"""Audits of stated claims: mechanisms, certificates, campaigns, functions and commands, with one verdict."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from crowdveil.campaign.rules.document import Campaign
from crowdveil.channels.certificate import require_certificate_or_campaign
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable, is_channel_table
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import format_bound, format_delta, format_lower, sum_rounded_up
from crowdveil.mechanisms import ChannelMechanism, Mechanism
from crowdveil.privacy.audit.black_box import (
    BlackBoxAudit,
    Pair,
    Progress,
    audit_black_box,
    require_nonnegative_epsilon_claim,
)
from crowdveil.privacy.audit.exact_loss import Neighbours, exact_loss, worst_loss
from crowdveil.privacy.audit.neighbours import draws_single_cells, mechanism_pairs
from crowdveil.randomness import Source, secure, seeded
from crowdveil.standalone.verification import epsilon_of

CELL_DRAWS, DRAWS, COMMAND_DRAWS = 100_000, 10_000, 200
"""Default draws of each input: of a single cell, of a longer report or a function, of a command."""
ALPHA = 0.001
TOLERANCE = 1e-12
"""Relative excess of an exact loss, which is rounded up, over a claim that it meets."""
OTHERS_ADD = "; the answers to the other questions of the campaign add to it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Result of an audit.

    Attributes:
        target: what was audited.
        neighbours: what differs between the inputs.
        unit: "cell", "worker", or "worker and question" for one of several; None for functions and commands.
        claimed_epsilon, claimed_delta: audited claim.
        exact: exact loss or proved bound in nats, infinite if there is none; None if unknown.
        worst: inputs and report of the exact worst ratio; empty if unknown.
        draws: audit by draws; None if only integers were compared.
    """

    target: str
    neighbours: str
    unit: str | None
    claimed_epsilon: float
    claimed_delta: float = 0.0
    exact: float | None = None
    worst: str = ""
    draws: BlackBoxAudit | None = None

    @property
    def lower_bound_of_epsilon(self) -> float | None:
        """Lower bound on epsilon from draws, in nats."""
        return None if self.draws is None else self.draws.finding.epsilon

    @property
    def refuted(self) -> bool:
        """Whether the claim, or a smaller exact loss, is refuted."""
        return self._refuted_exactly or self._refuted_by_draws

    @property
    def verdict(self) -> str:
        """One sentence."""
        delta = f", delta {format_delta(self.claimed_delta)}" if self.claimed_delta else ""
        claim = format_bound(self.claimed_epsilon) + delta
        if self._refuted_by_draws and self.draws is not None:
            found = self.draws.finding
            shown = f"it is at least {format_lower(found.epsilon, 4)}"
            if self.claimed_delta:
                shown = f"delta is at least {format_lower(found.delta, 4)}"
            confidence = format_lower(1 - self.draws.alpha)
            return f"refuted: epsilon {claim} is claimed, and with confidence {confidence} {shown}"
        if self._refuted_exactly:
            return f"refuted: {_refutation_clause(claim, self.exact or 0.0)}"
        if self.exact is not None:
            return f"holds: the exact loss is at most {claim}"
        return f"not refuted: no event shows more than epsilon {claim}; draws cannot prove a claim"

    @property
    def _refuted_exactly(self) -> bool:
        return self.exact is not None and self.exact > self.claimed_epsilon * (1 + TOLERANCE)

    @property
    def _refuted_by_draws(self) -> bool:
        if self.draws is None:
            return False
        return self.draws.refuted or (self.exact is not None and self.draws.finding.epsilon > self.exact)


def audit_mechanism(
    mechanism: Mechanism,
    neighbours: Neighbours | None = None,
    *,
    tasks: int = 1,
    rounds: int = 1,
    draws: int | None = None,
    alpha: float = ALPHA,
    source: Source | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Audit the claim of a mechanism for one worker, by draws of its device and, for a channel, exactly.

    Args:
        mechanism: mechanism; the claim is its source's where it has one, else its guarantee.
        neighbours: what differs; by default one answer, and one answer against NULL where participation is protected.
        tasks: cells of one worker.
        rounds: campaigns in which the worker reports the same answers.
        draws: draws of each input.
        alpha: largest probability that a true claim is refuted.
        source: randomness; by default secure, or a random seed for a mechanism that is for simulations only.
        progress: called after each pair.

    Raises:
        SettingsError: a number out of range, or neighbours in participation that is public.
    """
    guarantee = mechanism.guarantees_over(tasks, rounds)[neighbours == "worker"]
    kinds: tuple[Neighbours, ...] = (neighbours,) if neighbours else ("value",)
    if neighbours is None and mechanism.participation == "protected":
        kinds = ("value", "participation")
    drawn = _secure_or_seeded_source(mechanism) if source is None else source
    pairs = [
        pair for kind in kinds for pair in mechanism_pairs(mechanism, kind, tasks=tasks, source=drawn, rounds=rounds)
    ]
    claim = guarantee.epsilon if guarantee.claimed is None else guarantee.claimed
    exact = _exact_or_proved_epsilon(mechanism, neighbours, guarantee, rounds)
    usual = CELL_DRAWS if draws_single_cells(mechanism, kinds[0], rounds) else DRAWS
    return Audit(
        target=mechanism.name,
        neighbours=" and ".join(kinds),
        unit=guarantee.unit,
        claimed_epsilon=claim,
        claimed_delta=guarantee.delta,
        exact=exact,
        worst="" if exact is None else guarantee.reason,
        draws=audit_black_box(
            pairs, epsilon=claim, delta=guarantee.delta, draws=draws or usual, alpha=alpha, progress=progress
        ),
    )


def audit_file(
    data: bytes,
    neighbours: Neighbours | None = None,
    *,
    source: str,
    epsilon: float | None = None,
    tasks: int = 1,
    apart: bool = False,
) -> Audit:
    """Audit a certificate or a campaign document exactly.

    Args:
        data: contents of the file.
        neighbours: as `audit_mechanism`.
        source: name of the file, which is the target.
        epsilon: claim; by default that of the file, for a worker times the number of cells.
        tasks: cells of one worker of a certificate; a campaign has its own number.
        apart: whether a certificate is that of one of several questions, whose loss is not that of a whole worker.

    Raises:
        SettingsError: a claim that is negative or no number, or neighbours in participation where it is public.
        CertificateError, CampaignError: the file is invalid; a ratio above that of a table is refused here.
    """
    if epsilon is not None:
        require_nonnegative_epsilon_claim(epsilon)
    require_certificate_or_campaign(data, source)
    channels, cells, own = _read_stated_channels(data, tasks)
    kind: Neighbours = neighbours or "value"
    if kind == "worker" and b'"crowdveil-campaign/' in data and (campaign := Campaign.from_bytes(data)).questions:
        return _audit_questions(source, campaign, epsilon)
    losses = [worst_loss(channels, kind, cells)]
    if neighbours is None and channels[0].protects_participation:
        losses.append(worst_loss(channels, "participation", cells))
    worst = max(losses, key=lambda one: one.epsilon)
    stated = own * cells if kind == "worker" else own
    apart = apart and kind == "worker"
    return Audit(
        target=source,
        neighbours="worker, this question alone" if apart else kind if len(losses) == 1 else "value and participation",
        unit="worker and question" if apart else "worker" if kind == "worker" else "cell",
        claimed_epsilon=stated if epsilon is None else epsilon,
        exact=worst.epsilon,
        worst=f"{worst}{OTHERS_ADD * apart}",
    )


def _audit_questions(source: str, campaign: Campaign, epsilon: float | None) -> Audit:
    """Audit what a campaign with several questions promises a worker: the sum over the tables of the questions."""
    loads = [question.cells for question in campaign.questions]
    losses = [exact_loss(one, "worker", load) for one, load in zip(campaign.channels, loads, strict=True)]
    return Audit(
        target=source,
        neighbours="worker",
        unit="worker",
        claimed_epsilon=campaign.worker_epsilon if epsilon is None else epsilon,
        exact=sum_rounded_up((loss.epsilon, 1) for loss in losses),
        worst="; ".join(f"question {number}: {loss}" for number, loss in enumerate(losses, start=1)),
    )


def audit_claim_by_draws(
    audited_program_name: str,
    pairs: Sequence[Pair],
    *,
    epsilon: float,
    delta: float = 0.0,
    draws: int = DRAWS,
    alpha: float = ALPHA,
    progress: Progress | None = None,
) -> Audit:
    """Audit a claim about a function or command by draws; errors as `audit_black_box`."""
    return Audit(
        target=audited_program_name,
        neighbours=", ".join(pair.name for pair in pairs),
        unit=None,
        claimed_epsilon=epsilon,
        claimed_delta=delta,
        draws=audit_black_box(pairs, epsilon=epsilon, delta=delta, draws=draws, alpha=alpha, progress=progress),
    )


def _refutation_clause(claim: str, exact: float) -> str:
    """Return claim and exact loss of a refuted claim as text; both are rounded up."""
    found = format_bound(exact)
    more = ": its ratio of integers is above the claimed one" if found == claim else ""
    return f"epsilon {claim} is claimed, and the exact loss is {found}{more}"


def _exact_or_proved_epsilon(
    mechanism: Mechanism, neighbours: Neighbours | None, guarantee: Guarantee, rounds: int
) -> float | None:
    """Return the exact or proved loss in nats; None if the guarantee is about other neighbours, too, and infinite."""
    if neighbours not in ("value", "participation") or mechanism.participation == "public":
        return guarantee.epsilon
    if isinstance(mechanism, ChannelMechanism):
        return sum_rounded_up([(worst_loss([mechanism.channel()], neighbours).epsilon, rounds)])
    return guarantee.epsilon if math.isfinite(guarantee.epsilon) else None


def _read_stated_channels(data: bytes, tasks: int) -> tuple[tuple[Channel, ...], int, float]:
    """Return the channels of a file, the cells of one worker, and the stated epsilon of a cell."""
    if is_channel_table(data):
        table = ChannelTable.from_certificate(data)
        return table.channels, tasks, table.guarantee.epsilon
    if b'"crowdveil-campaign/' in data:
        campaign = Campaign.from_bytes(data)
        return campaign.channels, campaign.cells, campaign.epsilon
    channel = Channel.from_certificate(data)
    numerator, denominator = json.loads(data)["ratio"]
    return (channel,), tasks, max(channel.epsilon, epsilon_of(Fraction(numerator, denominator)))


def _secure_or_seeded_source(mechanism: Mechanism) -> Source:
    """Return secure randomness; a randomly seeded source for a mechanism without a finite guarantee."""
    device = secure()
    return seeded(int(device.words(1)[0])) if math.isinf(mechanism.guarantee.epsilon) else device
