"""Registry of estimators, mechanisms and engines: names, import paths and capabilities, without a numerical import.

Help texts, error hints and lazy imports read these tables. A new estimator or mechanism is one file and one entry here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, TypeVar


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
        uses_history: whether the earlier quality of workers can be a prior.
        plannable: whether `crowdveil.planning` can predict its error.
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
    uses_history: bool = False
    plannable: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """Name on the command line, module below the package, and class name."""

    name: str
    module: str
    class_name: str

    def import_class(self) -> Any:
        """Import the module and return the class."""
        return getattr(import_module(f"crowdveil.{self.module}"), self.class_name)


@dataclass(frozen=True, slots=True)
class EstimatorEntry(Entry):
    """Estimator of single reports, with its capabilities."""

    capabilities: Capabilities


@dataclass(frozen=True, slots=True)
class MechanismEntry(Entry):
    """Mechanism, with its own settings on the command line.

    Attributes:
        settings: names of the settings beyond alphabet, epsilon and participation.
        designed: whether its channel is chosen for public expectations about the answers.
    """

    settings: tuple[str, ...] = ()
    designed: bool = False


Registered = TypeVar("Registered", bound=Entry)


class LazyClasses(Mapping[str, type[Any]]):
    """Classes by their name on the command line, in the order of the registry; each is imported when looked up."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = entries

    def __getitem__(self, name: str) -> type[Any]:
        found: type[Any] = self._entries[name].import_class()
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def entries_by_name(*entries: Registered) -> Mapping[str, Registered]:
    """Return the entries by their name on the command line, in this order."""
    return {entry.name: entry for entry in entries}


LABELS = Capabilities(kind="categorical")
VOTES = replace(LABELS, uses_prior=False)
LABELS_BY_CHANNEL = replace(LABELS, reads_channel=True, reads_label_blocks=True, reads_channel_tables=True)
NUMBERS = Capabilities(kind="numeric", uses_prior=False)
NUMBERS_BY_CHANNEL = Capabilities(kind="numeric", reads_channel=True, reads_label_blocks=True, needs_alphabet=True)
"""What most methods of a kind have: for labels, votes without a prior, and numbers; through a channel or as answers."""

ESTIMATOR_ENTRIES: Mapping[str, EstimatorEntry] = entries_by_name(
    EstimatorEntry(
        "majority-vote", "estimators.majority_vote", "MajorityVote", replace(LABELS_BY_CHANNEL, iterative=False)
    ),
    EstimatorEntry("weighted-vote", "estimators.weighted_vote", "WeightedVote", replace(VOTES, probabilistic=False)),
    EstimatorEntry(
        "dawid-skene",
        "estimators.dawid_skene",
        "DawidSkene",
        replace(LABELS_BY_CHANNEL, uses_history=True, plannable=True),
    ),
    EstimatorEntry(
        "hierarchical-dawid-skene",
        "estimators.hierarchical_dawid_skene",
        "HierarchicalDawidSkene",
        replace(LABELS_BY_CHANNEL, uses_history=True, plannable=True),
    ),
    EstimatorEntry(
        "one-coin", "estimators.one_coin", "OneCoin", replace(LABELS_BY_CHANNEL, uses_history=True, plannable=True)
    ),
    EstimatorEntry(
        "ordinal-dawid-skene",
        "estimators.ordinal_dawid_skene",
        "OrdinalDawidSkene",
        replace(LABELS_BY_CHANNEL, needs_ordered_labels=True, uses_history=True, plannable=True),
    ),
    EstimatorEntry(
        "pooled-dawid-skene",
        "estimators.unlinked.pooled_dawid_skene",
        "PooledDawidSkene",
        replace(LABELS, reads_channel=True, reads_label_blocks=True),
    ),
    EstimatorEntry(
        "private-dawid-skene",
        "published.private_dawid_skene",
        "PrivateDawidSkene",
        replace(LABELS, reads_channel=True),
    ),
    EstimatorEntry("glad", "estimators.glad", "Glad", LABELS),
    EstimatorEntry("wawa", "estimators.voting.skill_votes", "Wawa", VOTES),
    EstimatorEntry("zero-based-skill", "estimators.voting.skill_votes", "ZeroBasedSkill", VOTES),
    EstimatorEntry("gold-majority-vote", "estimators.voting.skill_votes", "GoldMajorityVote", VOTES),
    EstimatorEntry("kos", "estimators.voting.kos", "Kos", replace(VOTES, probabilistic=False)),
    EstimatorEntry("mace", "estimators.mace", "Mace", LABELS_BY_CHANNEL),
    EstimatorEntry("ebcc", "estimators.ebcc", "Ebcc", LABELS_BY_CHANNEL),
    EstimatorEntry("lfc", "estimators.lfc", "Lfc", replace(LABELS_BY_CHANNEL, uses_history=True)),
    EstimatorEntry("weighted-mean", "estimators.weighted_mean", "WeightedMean", NUMBERS),
    EstimatorEntry("crh", "estimators.numeric.weighted_truths", "Crh", NUMBERS),
    EstimatorEntry("catd", "estimators.numeric.weighted_truths", "Catd", NUMBERS),
    EstimatorEntry("student-t", "estimators.numeric.student_t", "StudentT", NUMBERS),
    EstimatorEntry(
        "gaussian",
        "estimators.gaussian.estimator",
        "Gaussian",
        replace(NUMBERS_BY_CHANNEL, reads_channel_tables=True, uses_history=True, plannable=True),
    ),
    EstimatorEntry("pooled-gaussian", "estimators.unlinked.pooled_gaussian", "PooledGaussian", NUMBERS_BY_CHANNEL),
)
"""Estimators of single reports."""
SUMS_ESTIMATOR = Entry("factorization-mean", "estimators.factorization_mean", "FactorizationMean")
"""Estimator of the sums of matrix factorization, which hold no single reports."""

MECHANISM_ENTRIES: Mapping[str, MechanismEntry] = entries_by_name(
    MechanismEntry("laplace", "mechanisms.laplace", "Laplace", ("null_value",)),
    MechanismEntry("piecewise", "mechanisms.piecewise", "Piecewise"),
    MechanismEntry("ogpm", "mechanisms.piecewise", "Ogpm"),
    MechanismEntry("square-wave", "mechanisms.piecewise", "SquareWave"),
    MechanismEntry("staircase", "mechanisms.piecewise", "Staircase"),
    MechanismEntry("randomized-response", "mechanisms.randomized_response", "RandomizedResponse"),
    MechanismEntry("one-layer", "mechanisms.randomized_response", "OneLayer"),
    MechanismEntry("two-layer", "mechanisms.two_layer", "TwoLayer", ("low", "high", "answers")),
    MechanismEntry("sun-two-layer", "published.sun_two_layer", "SunTwoLayer", ("low", "answers")),
    MechanismEntry("matrix-factorization", "mechanisms.matrix_factorization", "MatrixFactorization", ("dimensions",)),
    MechanismEntry(
        "matrix-factorization-published",
        "published.matrix_factorization",
        "MatrixFactorizationPublished",
        ("dimensions", "ridge"),
    ),
    MechanismEntry(
        "quantized-response", "mechanisms.quantized_response", "QuantizedResponse", ("cuts",), designed=True
    ),
    MechanismEntry("designed", "mechanisms.designed", "Designed", designed=True),
    MechanismEntry("subset-selection", "mechanisms.subset_selection", "SubsetSelection", designed=True),
    MechanismEntry("optimized-unary-encoding", "mechanisms.subset_selection", "OptimizedUnaryEncoding"),
)
"""Mechanisms, in the order of help texts."""

ENGINE_ENTRIES: Mapping[str, Entry] = entries_by_name(
    Entry("threads", "em.engines.executor", "Threads"),
    Entry("dask", "em.engines.dask", "Dask"),
)
"""Engines; the first one is the default."""

RANKING_ENTRIES: Mapping[str, Entry] = entries_by_name(
    Entry("hierarchical-davidson", "estimators.ranking.methods", "HierarchicalDavidson"),
    Entry("davidson", "estimators.ranking.methods", "Davidson"),
    Entry("bradley-terry", "estimators.ranking.methods", "BradleyTerry"),
    Entry("counting", "estimators.ranking.methods", "Counting"),
)
"""Methods of ranking; the first is the default."""
RANKING_NAMES = tuple(RANKING_ENTRIES)
METHOD_NAMES = (*ESTIMATOR_ENTRIES, SUMS_ESTIMATOR.name)
MECHANISM_NAMES = tuple(MECHANISM_ENTRIES)
ENGINE_NAMES = tuple(ENGINE_ENTRIES)
USUAL_ESTIMATORS = (
    *("majority-vote", "dawid-skene", "hierarchical-dawid-skene", "one-coin", "ordinal-dawid-skene"),
    *("weighted-mean", "gaussian", "student-t"),
)
"""Estimators that are public names of the package; `crowdveil.estimators` has all."""
USUAL_MECHANISMS = (
    *("randomized-response", "laplace", "quantized-response", "designed", "two-layer", "matrix-factorization"),
)
"""Mechanisms that are public names of the package; `crowdveil.mechanisms` has all."""
PUBLIC_MODULES: Mapping[str, str] = {
    "Assignment": "answers.assignment",
    "Categories": "channels.alphabet",
    "Channel": "channels.channel",
    "ChannelTable": "channels.channel_table",
    "CrowdveilError": "errors",
    "Estimate": "em.estimate",
    "Guarantee": "channels.guarantee",
    "Inference": "inference.infer",
    "Reports": "answers.reports",
    "Scale": "channels.alphabet",
    "aggregate": "inference.aggregation",
    "agreement": "quality.frames",
    "compare": "comparison.compare",
    "conclude": "quality.frames",
    "draw_gold": "quality.frames",
    "infer": "inference.infer",
    "next_answers": "quality.frames",
    "NextComparisons": "quality.next_comparisons",
    "next_comparisons": "quality.next_comparisons",
    "perturb": "simulate.frames",
    "plan": "planning.plan_function",
    "plan_ranking": "planning.ranking_plan",
    "plan_share": "planning.share_plan",
    "rank": "inference.ranking.rank",
    "Ranking": "inference.ranking.ranking",
    "review": "quality.frames",
    "seeded": "randomness",
    "joint_share": "quality.shares.joint",
    "share": "quality.shares.share_function",
    "share_regression": "quality.shares.regression",
    "Shares": "quality.shares.result",
} | {
    entry.class_name: entry.module
    for entry in (
        *(ESTIMATOR_ENTRIES[name] for name in USUAL_ESTIMATORS),
        *(MECHANISM_ENTRIES[name] for name in USUAL_MECHANISMS),
    )
}
"""Module of each public name of the package, by name."""

PACKAGES: Mapping[str, Mapping[str, Entry]] = {
    f"crowdveil.{package}": {
        entry.class_name: entry
        for entry in (*ESTIMATOR_ENTRIES.values(), *MECHANISM_ENTRIES.values())
        if entry.module.startswith(f"{package}.")
    }
    for package in ("estimators", "mechanisms", "published")
}
"""Entries by class name, by the package that hands the classes out."""


def class_of_package(package: str, name: str) -> Any:
    """Return a class that a package hands out on first use (PEP 562).

    Raises:
        AttributeError: the package has no class of this name.
    """
    if name not in PACKAGES[package]:
        raise AttributeError(f"module {package!r} has no attribute {name!r}.", name=name)
    return PACKAGES[package][name].import_class()


def estimators_with(**required: object) -> tuple[str, ...]:
    """Return the names of the estimators whose capabilities have these values, such as reads_channel=True."""
    return tuple(
        name
        for name, entry in ESTIMATOR_ENTRIES.items()
        if all(getattr(entry.capabilities, field) == value for field, value in required.items())
    )


PLAN_METHODS = estimators_with(plannable=True)
"""Estimators that `crowdveil plan` offers."""


def mechanisms_with(setting: str) -> tuple[str, ...]:
    """Return the names of the mechanisms that have a setting."""
    return tuple(name for name, entry in MECHANISM_ENTRIES.items() if setting in entry.settings)


DESIGNED_MECHANISMS = tuple(name for name, entry in MECHANISM_ENTRIES.items() if entry.designed)
"""Mechanisms whose channel is chosen for public expectations about the answers."""
