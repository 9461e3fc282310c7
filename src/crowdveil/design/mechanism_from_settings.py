"""Mechanism settings of a campaign: public expectation of the answers, construction of the mechanism, description."""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.facts.prior import Prior
from crowdveil.arguments import did_you_mean
from crowdveil.channels.alphabet import Alphabet, Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import MAX_EPSILON, Participation
from crowdveil.channels.rounding import format_bound
from crowdveil.design.channel_design import design_channel, normal_worker_model, one_coin_confusion
from crowdveil.design.comparison_channel import ExpectedComparisons, best_comparison_channel
from crowdveil.errors import SettingsError
from crowdveil.hints import advice
from crowdveil.mechanisms import MECHANISMS, ChannelMechanism, DesignObjective, Mechanism
from crowdveil.mechanisms.budget_per_cell import mechanism_within_budget
from crowdveil.mechanisms.settings import Settings
from crowdveil.privacy.composition import STEPS, cell_epsilon
from crowdveil.privacy.loss_distribution import channel_profile, composed_epsilon
from crowdveil.registry import DESIGNED_MECHANISMS

SHOWN_DIGITS = 4
"""Significant digits of a setting in a table."""
USUAL_ABILITY = 0.75
"""Default probability of a right answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Public expectation of the answers, stated before the campaign; it must not depend on the answers.

    Attributes:
        prior: probability of each label as truth; uniform by default.
        participation_rate: share of cells that are answered.
        ability: probability that an answer is right; `USUAL_ABILITY` by default.
        sigmas: instead of `ability`, for a scale: standard deviations of equal shares of the workers.
        comparisons: instead of all others, what is expected of comparisons of two items; None for other answers.
    """

    prior: Prior | None = None
    participation_rate: float = 1.0
    ability: float | None = None
    sigmas: tuple[float, ...] = ()
    comparisons: ExpectedComparisons | None = None

    def objective(self, alphabet: Alphabet, participation: Participation) -> DesignObjective:
        """Return the design objective for truths in the alphabet of the answers.

        Raises:
            SettingsError: a number out of range, ability and sigmas both, or sigmas for labels.
            SettingsError, ReportsError: the prior does not name exactly the labels.
        """
        uniform = np.full(alphabet.size, 1 / alphabet.size)
        return DesignObjective(
            alphabet=alphabet,
            prior=uniform if self.prior is None else self.prior.in_label_order(alphabet),
            worker_model=self._model_of_expected_worker(alphabet),
            participation_rate=self.participation_rate,
            participation=participation,
        )

    def _model_of_expected_worker(self, alphabet: Alphabet) -> NDArray[np.float64]:
        if not self.sigmas:
            return one_coin_confusion(alphabet.size, USUAL_ABILITY if self.ability is None else self.ability)
        if self.ability is not None or not isinstance(alphabet, Scale):
            raise SettingsError(
                "sigmas describe workers on a scale, instead of an ability",
                value=self.sigmas,
                hint=advice("Give {ability} for labels.", "Give an ability for labels."),
            )
        return normal_worker_model(alphabet, self.sigmas)


SEPARATE_FIELDS = {"alphabet", "participation"}
"""Fields of a mechanism that are no parameters: they have fields of their own in every output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismSettings(Settings):
    """Requested mechanism of a campaign; other attributes as `Settings`.

    Attributes:
        name: name of the mechanism on the command line.
        dealt_cuts: cuts of several groups of workers, assigned in turn; the first are `cuts`.
        expected: quantized-response, designed: public expectation of the answers.
        budget: epsilon of all cells of a worker, in place of `epsilon`; see `settings_within_budget`.
    """

    name: str
    dealt_cuts: tuple[tuple[str, ...], ...] = ()
    expected: Expectation = field(default_factory=Expectation)
    budget: float | None = None

    def objective(self, alphabet: Alphabet) -> DesignObjective:
        """Return the design objective of the expectation; errors as `Expectation.objective`."""
        return self.expected.objective(alphabet, self.participation)

    def designed_channel(self, alphabet: Alphabet, epsilon: float) -> Channel:
        """Return the best channel for the objective; of comparisons, the better one of two and of three symbols.

        No report symbol joins NULL with labels: inference estimates each worker's participation rate.
        """
        if self.expected.comparisons is not None:
            return best_comparison_channel(self.expected.comparisons, epsilon, self.participation)
        return design_channel(self.objective(alphabet), epsilon, null_apart=True)


def build_mechanism(settings: MechanismSettings, alphabet: Alphabet, *, tasks: int) -> Mechanism:
    """Return the mechanism, for a campaign of `tasks` tasks.

    Raises:
        SettingsError: unknown name, or a setting or alphabet that the mechanism refuses.
    """
    if settings.name not in MECHANISMS:
        hint = did_you_mean(settings.name, MECHANISMS) or "Such as randomized-response, for labels."
        raise SettingsError(f"a mechanism must be one of {', '.join(MECHANISMS)}", value=settings.name, hint=hint)
    return MECHANISMS[settings.name].from_settings(settings, alphabet, tasks=tasks)


def settings_within_budget(
    settings: MechanismSettings, alphabet: Alphabet, *, tasks: int, cells: int, delta: float | None = None
) -> MechanismSettings:
    """Return the settings with the epsilon per cell that a budget per worker gives; unchanged without a budget.

    Args:
        settings: of the mechanism.
        alphabet: what an answer can be.
        tasks: of the campaign.
        cells: cells of the worker who has the most, over all rounds; public, never taken from answers.
        delta: at which the budget holds, for all cells together; None for the sum of epsilons.

    Raises:
        SettingsError: a mechanism without a channel per cell, or a budget that is not positive.
    """
    if settings.budget is None:
        return settings
    if settings.name in MECHANISMS and not issubclass(MECHANISMS[settings.name], ChannelMechanism):
        raise SettingsError(
            "a budget per worker is divided among cells by a mechanism with a channel per cell",
            value=settings.name,
            hint="Use randomized-response, quantized-response, designed, one-layer or laplace"
            f"{advice('; or give {epsilon} instead of {budget}')}.",
        )

    def build(epsilon: float) -> ChannelMechanism:
        mechanism = build_mechanism(replace(settings, epsilon=epsilon), alphabet, tasks=tasks)
        assert isinstance(mechanism, ChannelMechanism)
        return mechanism

    if delta is not None:
        return replace(settings, epsilon=_cell_epsilon_within_budget(settings, build, cells, delta))
    return replace(settings, epsilon=mechanism_within_budget(build, settings.budget, cells, most=MAX_EPSILON).epsilon)


NEARLY = 1 - 1e-6
"""Share of a budget that counts as all of it: the rest is lost by rounding."""


def warnings_of_unused_budget(settings: MechanismSettings, worker_epsilon: float) -> list[str]:
    """Return a warning if the largest epsilon of an answer leaves a part of the budget unused.

    Args:
        settings: within the budget, as of `settings_within_budget`.
        worker_epsilon: loss of a worker, at the delta of the budget.
    """
    if settings.budget is None or settings.epsilon != MAX_EPSILON or worker_epsilon >= settings.budget * NEARLY:
        return []
    return [
        f"Of the budget of {settings.budget:g} only {format_bound(worker_epsilon)} is used: the epsilon of an answer "
        f"is at most {MAX_EPSILON:g}."
    ]


def _cell_epsilon_within_budget(
    settings: MechanismSettings, build: Callable[[float], ChannelMechanism], cells: int, delta: float
) -> float:
    """Return an epsilon per cell whose exact loss at `delta`, over all cells, is within the budget.

    The bound for any mechanism is raised as far as the own table allows; a designed one is not designed again for it.
    """
    budget = settings.budget or 0.0
    low = cell_epsilon(budget, cells, delta, MAX_EPSILON)
    if settings.name in DESIGNED_MECHANISMS:
        return low
    high = min(2 * low, MAX_EPSILON)
    for _ in range(STEPS):
        middle = (low + high) / 2
        profile = channel_profile(build(middle).channel())
        low, high = (middle, high) if composed_epsilon([(profile, cells)], delta) <= budget else (low, middle)
    return low


def mechanism_parameters_by_name(mechanism: Mechanism) -> dict[str, Any]:
    """Return the mechanism's parameters by name, without alphabet, participation and integer tables."""
    instance: Any = mechanism
    names = [own.name for own in fields(instance) if own.repr and own.name not in SEPARATE_FIELDS]
    return {name: getattr(mechanism, name) for name in names}


def description_with_parameters(mechanism: Mechanism) -> str:
    """Return name and parameters as text, the form of `crowd.json`; different mechanisms have different texts."""
    settings = ", ".join(f"{name}={value}" for name, value in mechanism_parameters_by_name(mechanism).items())
    return f"{mechanism.name} ({settings})"


def short_description(mechanism: Mechanism, *, epsilon: bool = True) -> str:
    """Return name and settings other than the defaults as a short text for people; epsilon is rounded up.

    Args:
        mechanism: to be described.
        epsilon: whether to state epsilon.
    """
    instance: Any = mechanism
    defaults = {own.name: None if own.default is MISSING else own.default for own in fields(instance)}
    given = {
        name: value
        for name, value in mechanism_parameters_by_name(mechanism).items()
        if value not in (None, (), defaults[name])
    }
    if not epsilon:
        given.pop("epsilon", None)
    settings = ", ".join(f"{name}={_setting_as_text(name, value)}" for name, value in given.items())
    return f"{mechanism.name} ({settings})" if settings else mechanism.name


def _setting_as_text(name: str, value: Any) -> str:
    """Return a setting as text, a float with `SHOWN_DIGITS` digits."""
    if not isinstance(value, float):
        return str(value)
    return format_bound(value, SHOWN_DIGITS) if name == "epsilon" else f"{value:.{SHOWN_DIGITS}g}"
