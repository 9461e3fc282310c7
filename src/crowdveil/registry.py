"""Registry of estimators: names, import paths and capabilities, without a numerical import.

Help texts, error hints and lazy imports read this table. A new estimator is one file and one entry here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Inputs that an estimator accepts and results that it gives.

    Attributes:
        kind: type of the inferred truths: labels ("categorical") or numbers ("numeric").
        iterative: False if the first E-step is already the result.
        probabilistic: False if the posterior is a vote without probabilities.
        reads_channel: whether the likelihood contains the channel; if not, reports are read as answers.
        reads_label_blocks: whether reports may be other symbols than the labels, such as blocks of labels.
        reads_channel_tables: whether the channel may differ by task and worker, and tasks may be assigned.
        needs_alphabet: whether numbers without a scale are refused.
        needs_ordered_labels: whether labels without an order are refused.
        uses_prior: whether a public prior over labels is accepted.
        online: whether it can follow a stream of reports.
    """

    kind: Literal["categorical", "numeric"]
    iterative: bool = True
    probabilistic: bool = True
    reads_channel: bool = False
    reads_label_blocks: bool = False
    reads_channel_tables: bool = False
    needs_alphabet: bool = False
    needs_ordered_labels: bool = False
    uses_prior: bool = True
    online: bool = False


@dataclass(frozen=True, slots=True)
class EstimatorEntry:
    """Name on the command line, module below the package, class name and capabilities of an estimator."""

    name: str
    module: str
    class_name: str
    capabilities: Capabilities

    def load(self) -> Any:
        """Import the module and return the class."""
        return getattr(import_module(f"crowdveil.{self.module}"), self.class_name)


ESTIMATOR_ENTRIES: Mapping[str, EstimatorEntry] = {
    entry.name: entry
    for entry in (
        EstimatorEntry(
            "majority-vote",
            "estimators.majority_vote",
            "MajorityVote",
            Capabilities(
                kind="categorical",
                iterative=False,
                reads_channel=True,
                reads_label_blocks=True,
                reads_channel_tables=True,
            ),
        ),
        EstimatorEntry(
            "weighted-vote",
            "estimators.weighted_vote",
            "WeightedVote",
            Capabilities(kind="categorical", probabilistic=False, uses_prior=False),
        ),
        EstimatorEntry(
            "dawid-skene",
            "estimators.dawid_skene",
            "DawidSkene",
            Capabilities(
                kind="categorical",
                reads_channel=True,
                reads_label_blocks=True,
                reads_channel_tables=True,
                online=True,
            ),
        ),
        EstimatorEntry(
            "ordinal-dawid-skene",
            "estimators.ordinal_dawid_skene",
            "OrdinalDawidSkene",
            Capabilities(
                kind="categorical",
                reads_channel=True,
                reads_label_blocks=True,
                reads_channel_tables=True,
                needs_ordered_labels=True,
            ),
        ),
        EstimatorEntry(
            "one-coin",
            "estimators.one_coin",
            "OneCoin",
            Capabilities(
                kind="categorical",
                reads_channel=True,
                reads_label_blocks=True,
                reads_channel_tables=True,
                online=True,
            ),
        ),
        EstimatorEntry(
            "private-dawid-skene",
            "estimators.private_dawid_skene",
            "PrivateDawidSkene",
            Capabilities(kind="categorical", reads_channel=True),
        ),
        EstimatorEntry(
            "weighted-mean",
            "estimators.weighted_mean",
            "WeightedMean",
            Capabilities(kind="numeric", uses_prior=False),
        ),
        EstimatorEntry(
            "gaussian",
            "estimators.gaussian.estimator",
            "Gaussian",
            Capabilities(
                kind="numeric",
                reads_channel=True,
                reads_label_blocks=True,
                reads_channel_tables=True,
                needs_alphabet=True,
            ),
        ),
    )
}
"""Every estimator by its name on the command line."""


def capabilities_of(name: str) -> Capabilities:
    """Return the capabilities of a registered estimator."""
    return ESTIMATOR_ENTRIES[name].capabilities


def estimators_with(**required: object) -> tuple[str, ...]:
    """Return the names of the estimators whose capabilities have these values, such as reads_channel=True."""
    return tuple(
        name
        for name, entry in ESTIMATOR_ENTRIES.items()
        if all(getattr(entry.capabilities, field) == value for field, value in required.items())
    )
