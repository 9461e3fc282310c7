"""Choice of the estimator: the requested method, or the default for the reports and their channel.

`hierarchical-dawid-skene` is the default for labels, ordered or not: whether `ordinal-dawid-skene` is better differs by
set, and reports do not tell. For numbers it is `gaussian` where there is a certificate, which it reads, and `student-t`
where reports are read as answers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from crowdveil.answers.evidence import Evidence
from crowdveil.answers.reports import Reports
from crowdveil.arguments import did_you_mean
from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.em.estimator import Estimator
from crowdveil.errors import SettingsError
from crowdveil.hints import command_advice
from crowdveil.registry import ESTIMATOR_ENTRIES, SUMS_ESTIMATOR, Capabilities

AnyEstimator = Estimator[Any, Any]

NUMBERS_METHOD = "gaussian"
"""Default for numbers through a channel."""
WITHOUT_NAMES_METHODS = ("pooled-gaussian", "pooled-dawid-skene")
"""Methods that do not read which reports are of the same worker."""
LABEL_METHOD = "hierarchical-dawid-skene"
"""Default for labels."""

SLOW_WORK = {
    "ebcc": (30_000_000, 2),
    "ordinal-dawid-skene": (50_000_000, 2),
    "gaussian": (10_000_000, 2),
    "glad": (50_000, 0),
    "dawid-skene": (6_000_000, 1),
    "lfc": (2_000_000, 1),
}
"""By method, reports times this power of the labels from which a fit takes more than about ten seconds on two cores.

Measured at 100,000 reports (ten a task, a hundred a worker), processor seconds for 50 and 200 labels: dawid-skene 8.2
and 43, lfc 22 for 50, hierarchical-dawid-skene 1.5 and 15, mace 1.2 and 6.5, one-coin 0.4 and 6.1, others less; glad 28
for 2 labels, ordinal-dawid-skene 6.2 for 20 and more than 90 for 50, ebcc more than 100 for 50 (1.9 GB).
"""


@dataclass(frozen=True, kw_only=True)
class Method:
    """Requested estimator; None is its default.

    Attributes:
        name: a name of the registry; None for `default_method`.
        max_steps: largest number of steps.
        tolerance: stop when no posterior (or truth) changes by more than this.
    """

    name: str | None = None
    max_steps: int | None = None
    tolerance: float | None = None


def default_method(evidence: Evidence) -> str:
    """Return the name of the default method."""
    if not evidence.linked:
        return WITHOUT_NAMES_METHODS[0 if isinstance(evidence.alphabet, Scale) else 1]
    if evidence.channel is None:
        return LABEL_METHOD if isinstance(evidence.reports.alphabet, Categories) else "student-t"
    return channel_method(evidence.channel.alphabet)


def channel_method(alphabet: Alphabet) -> str:
    """Return the name of the default method for reports through a channel of these answers."""
    return NUMBERS_METHOD if isinstance(alphabet, Scale) else LABEL_METHOD


def choose_estimator(method: Method, evidence: Evidence) -> AnyEstimator:
    """Return the estimator; by default one that suits the reports and reads their channel.

    Raises:
        SettingsError: an unknown method, one for sums or for ordered answers only, or steps or a tolerance out of
            range.
    """
    name = method.name or default_method(evidence)
    if name not in ESTIMATOR_ENTRIES:
        raise SettingsError(
            f"the method must be one of {', '.join(ESTIMATOR_ENTRIES)}",
            value=name,
            hint=did_you_mean(name, ESTIMATOR_ENTRIES)
            or f"{SUMS_ESTIMATOR.name} reads the sums.json of matrix-factorization.",
        )
    if not evidence.linked and name not in WITHOUT_NAMES_METHODS:
        raise SettingsError(
            f"reports without names are read by {' and '.join(WITHOUT_NAMES_METHODS)} only",
            value=name,
            hint="The relay shuffled single cells: the worker numbers in reports.csv link nothing.",
        )
    cls: type[AnyEstimator] = ESTIMATOR_ENTRIES[name].import_class()
    alphabet = alphabet_of_inferred_truths(evidence, cls)
    if cls.capabilities.kind == "numeric" and alphabet is not None and not alphabet.ordered:
        raise SettingsError(
            f"{name} needs numbers or ordered labels",
            value=alphabet.names,
            hint="Declare the labels ordered"
            + command_advice(" ({labels}, {ordered})", " (Categories(..., ordered=True))", ordered=True)
            + ", or use a method for labels.",
        )
    settings = {field: value for field, value in vars(method).items() if value is not None and field != "name"}
    return cast(Callable[..., AnyEstimator], cls)(**settings)


def estimator_of_choice(method: "str | AnyEstimator | Method | None", evidence: Evidence) -> AnyEstimator:
    """Return a given estimator, or that of a name or `Method`; errors as `choose_estimator`."""
    if isinstance(method, Estimator):
        return method
    chosen = method if isinstance(method, Method) else Method(name=method)
    return choose_estimator(chosen, evidence)


def refuse_method_of_sums(method: "str | AnyEstimator | Method | None") -> None:
    """Refuse a method or settings other than those of sums.

    Raises:
        SettingsError: there is one.
    """
    named = method.name if isinstance(method, Estimator) else method
    chosen = named if isinstance(named, Method) else Method(name=named)
    if chosen not in (Method(), Method(name=SUMS_ESTIMATOR.name)):
        raise SettingsError(
            f"sums are read by {SUMS_ESTIMATOR.name}, without steps or tolerance",
            value=chosen.name,
            hint="Leave the method and its settings out.",
        )


def alphabet_of_inferred_truths(evidence: Evidence, estimator: type[AnyEstimator]) -> Alphabet | None:
    """Return the alphabet of the truths: that of the answers of the channel, or else of the reports."""
    if evidence.channel is not None and estimator.capabilities.reads_channel:
        return evidence.channel.alphabet
    return evidence.reports.alphabet


def noise_model_sentence(evidence: Evidence, estimator: AnyEstimator) -> str:
    """Return the noise model in one line: the channel in the likelihood, or "none" and the reason."""
    channel = evidence.channel
    if channel is None:
        return f"none: {evidence.no_channel_reason}"
    facts = evidence.collection
    unpromised = channel.voids_privacy or (facts is not None and facts.voided)
    through = channel.mechanism if unpromised else f"{channel.mechanism} ({channel.guarantee})"
    if estimator.capabilities.reads_channel:
        asked = "" if evidence.assignment is None else f", on {len(evidence.assignment):,} assigned cells"
        return f"channel of {through}{asked}"
    return f"none: {estimator.name} reads no channel; the reports went through {through}"


def slow_fit_warning(reports: Reports, method: str) -> str | None:
    """Return a warning if a fit by this method takes more than about ten seconds; else None."""
    least, power = SLOW_WORK.get(method, (math.inf, 0))
    if len(reports) * reports.labels**power < least:
        return None
    size = f"{len(reports):,} reports" + (f" of {reports.labels} labels" if power else "")
    return (
        f"{method} takes more than ten seconds, or many minutes, for {size}: its time grows with their number"
        + ((".", " and with the labels.", " and with the square of the labels.")[power])
    )


def warning_if_channel_unread(evidence: Evidence, estimator: type[AnyEstimator]) -> str | None:
    """Return a warning if perturbed reports are read as answers without being asked to; else None."""
    channel = evidence.channel
    if channel is None:
        unasked = evidence.collection is not None and not evidence.declined
        return f"{evidence.no_channel_reason}: no noise model, reports are read as answers." if unasked else None
    if estimator.capabilities.reads_channel:
        return None
    mechanism = channel.mechanism.partition(",")[0]
    readers = ", ".join(
        name for name, entry in ESTIMATOR_ENTRIES.items() if _can_read_channel_of_evidence(entry.capabilities, evidence)
    )
    return (
        f"{estimator.name} reads no channel: it reads reports of {mechanism} as answers. "
        f"Methods that read the channel: {readers}."
    )


def _can_read_channel_of_evidence(capabilities: Capabilities, evidence: Evidence) -> bool:
    """Return whether an estimator with these capabilities reads this evidence through its channel."""
    channel = evidence.channel
    assert channel is not None
    suits = channel.alphabet.ordered or (capabilities.kind == "categorical" and not capabilities.needs_ordered_labels)
    blocks = channel.report_alphabet.names != channel.alphabet.names
    tables = isinstance(channel, ChannelTable) or evidence.assignment is not None
    return (
        capabilities.reads_channel
        and suits
        and (capabilities.reads_label_blocks or not blocks)
        and (capabilities.reads_channel_tables or not tables)
    )
