"""Choice of the estimator: the method that was asked for, or the default for the reports and their channel.

Where there is a certificate, the default reads the channel: `gaussian` for a scale, `ordinal-dawid-skene` for three
ordered labels or more, `dawid-skene` for other labels. Without one, reports are read as answers: `dawid-skene` for
labels, `weighted-mean` for numbers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.public_lists import NO_GUARANTEE_PREFIXES
from crowdveil.errors import SettingsError
from crowdveil.estimators import ESTIMATORS, DawidSkene, Estimator, Gaussian, OrdinalDawidSkene, WeightedMean
from crowdveil.registry import SUMS_ESTIMATOR
from crowdveil.workflow.evidence import AS_ASKED, Evidence
from crowdveil.workflow.guarantees import bears_mark

AnyEstimator = Estimator[Any, Any]

NORMAL_SETTINGS = ("prior_mean", "prior_deviation", "sigmas")
"""What is public about numbers and their workers, for gaussian only."""
FEWEST_ORDERED = 3
"""Labels from which on their order says something about errors."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """Estimator to use; None stands for its own default.

    Attributes:
        name: a name of the registry; None for `default_method`.
        max_steps: largest number of steps.
        tolerance: stop when no posterior (or truth) changes by more than this.
        prior_mean, prior_deviation: of a public normal prior, for gaussian only.
        sigmas: public classes of the workers' deviations, for gaussian only.
    """

    name: str | None = None
    max_steps: int | None = None
    tolerance: float | None = None
    prior_mean: float | None = None
    prior_deviation: float | None = None
    sigmas: tuple[float, ...] | None = None


def default_method(evidence: Evidence) -> str:
    """Return the name of the method that is used unless another one is asked for."""
    if evidence.channel is None:
        return DawidSkene.name if isinstance(evidence.reports.alphabet, Categories) else WeightedMean.name
    alphabet = evidence.channel.alphabet
    if isinstance(alphabet, Scale):
        return Gaussian.name
    return OrdinalDawidSkene.name if alphabet.ordered and alphabet.size >= FEWEST_ORDERED else DawidSkene.name


def build_estimator(method: Method, evidence: Evidence) -> AnyEstimator:
    """Return the estimator; by default one that suits the reports and reads their channel.

    Raises:
        SettingsError: an unknown method, one for sums or for ordered answers only, or steps or a tolerance out of
            range.
    """
    name = method.name or default_method(evidence)
    if name not in ESTIMATORS:
        raise SettingsError(
            f"single reports are read by one of {', '.join(ESTIMATORS)}",
            value=name,
            hint=f"{SUMS_ESTIMATOR.name} reads the sums.json of matrix-factorization.",
        )
    alphabet = inferred_alphabet(evidence, ESTIMATORS[name])
    if ESTIMATORS[name].capabilities.kind == "numeric" and alphabet is not None and not alphabet.ordered:
        raise SettingsError(
            f"{name} needs numbers or ordered labels",
            value=alphabet.names,
            hint="Say that the labels are ordered (--labels ... --ordered), or use a method for labels.",
        )
    return cast(Callable[..., AnyEstimator], ESTIMATORS[name])(**_settings(method, name))


def _settings(method: Method, name: str) -> dict[str, Any]:
    """Return the settings that differ from the estimator's own defaults, checked."""
    settings: dict[str, Any] = {}
    if method.max_steps is not None:
        if method.max_steps < 1:
            raise SettingsError("max_steps must be at least 1", value=method.max_steps)
        settings["max_steps"] = method.max_steps
    if method.tolerance is not None:
        if not 0 <= method.tolerance < math.inf:
            raise SettingsError("tolerance must be finite and not negative", value=method.tolerance)
        settings["tolerance"] = method.tolerance
    normal = {field: getattr(method, field) for field in NORMAL_SETTINGS if getattr(method, field) is not None}
    if normal and name != Gaussian.name:
        raise SettingsError(
            f"a normal prior, and classes of deviations, are for {Gaussian.name}",
            value=name,
            hint="Give a prior by label.",
        )
    return settings | normal


def inferred_alphabet(evidence: Evidence, estimator: type[AnyEstimator]) -> Alphabet | None:
    """Return the alphabet of the truths: that of the answers, which blocks do not show, or of the reports."""
    if evidence.channel is not None and estimator.capabilities.reads_channel:
        return evidence.channel.alphabet
    return evidence.reports.alphabet


def reading(evidence: Evidence, estimator: AnyEstimator) -> str:
    """Return one line on how the reports are read: through which channel, or as answers and why."""
    channel = evidence.channel
    if channel is None:
        return f"as if reports were answers: {evidence.answers_because}"
    crowd = evidence.crowd
    unpromised = bears_mark(channel) or (crowd is not None and crowd["guarantee"].startswith(NO_GUARANTEE_PREFIXES))
    through = channel.mechanism if unpromised else f"{channel.mechanism} ({channel.guarantee})"
    if estimator.capabilities.reads_channel:
        asked = "" if evidence.assignment is None else f", on {len(evidence.assignment):,} assigned cells"
        return f"through the channel of {through}{asked}"
    return f"as if reports were answers: {estimator.name} reads no channel; they went through {through}"


def unread_channel(evidence: Evidence, estimator: type[AnyEstimator]) -> str | None:
    """Return a sentence where perturbed reports are read as answers though nobody asked for it; else None.

    The estimator cannot read the channel, or the mechanism has no channel certificate.
    """
    channel, crowd = evidence.channel, evidence.crowd
    if channel is None:
        unasked = crowd is not None and evidence.answers_because != AS_ASKED
        return f"{evidence.answers_because}: its reports are read as if they were answers." if unasked else None
    if estimator.capabilities.reads_channel:
        return None
    mechanism = channel.mechanism.partition(",")[0]
    readers = ", ".join(name for name, kind in ESTIMATORS.items() if _reads(kind, evidence))
    return (
        f"{estimator.name} reads no channel: it takes reports of {mechanism} for answers. "
        f"Methods that read the channel: {readers}."
    )


def _reads(estimator: type[AnyEstimator], evidence: Evidence) -> bool:
    """Return whether an estimator reads this evidence through its channel."""
    channel = evidence.channel
    assert channel is not None
    suits = channel.alphabet.ordered or (
        estimator.capabilities.kind == "categorical" and not estimator.capabilities.needs_ordered_labels
    )
    blocks = channel.report_alphabet.names != channel.alphabet.names
    tables = isinstance(channel, ChannelTable) or evidence.assignment is not None
    return (
        estimator.capabilities.reads_channel
        and suits
        and (estimator.capabilities.reads_label_blocks or not blocks)
        and (estimator.capabilities.reads_channel_tables or not tables)
    )
