"""From the words of a request to a mechanism, and from a mechanism back to words.

What is publicly expected, in the words of a request, as a question that a channel can be chosen for.
"""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel_design import design_channel, normal_worker_model, one_coin_worker_model
from crowdveil.channels.alphabet import Alphabet, Scale
from crowdveil.channels.guarantee import Participation
from crowdveil.data.ingest.readers import load_prior
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms import (
    MECHANISMS,
    Designed,
    DesignObjective,
    Laplace,
    MatrixFactorization,
    MatrixFactorizationPublished,
    Mechanism,
    QuantizedResponse,
    SunTwoLayer,
    TwoLayer,
)
from crowdveil.mechanisms.base import MAX_ANSWERS
from crowdveil.mechanisms.laplace import NullValue
from crowdveil.mechanisms.matrix_factorization import require_numeric_and_protected

USUAL_ABILITY = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What is publicly known before anyone answers; nothing of it may come from the answers.

    Attributes:
        prior: file with the probability of each label as truth; every label alike by default.
        participation_rate: share of cells that are answered.
        ability: probability that an answer is right; `USUAL_ABILITY` by default.
        sigmas: in its place, for a scale: standard deviations of equal shares of the workers.
    """

    prior: Path | None = None
    participation_rate: float = 1.0
    ability: float | None = None
    sigmas: tuple[float, ...] = ()

    def objective(self, alphabet: Alphabet, participation: Participation) -> DesignObjective:
        """Return the question for truths in the alphabet of the answers.

        Raises:
            SettingsError: a number out of range, ability and sigmas both, or sigmas for labels.
            ReportsError: the prior's file is damaged, or does not name just the labels.
        """
        return DesignObjective(
            alphabet=alphabet,
            prior=_prior(self.prior, alphabet),
            worker_model=self._answers(alphabet),
            participation_rate=self.participation_rate,
            participation=participation,
        )

    def _answers(self, alphabet: Alphabet) -> NDArray[np.float64]:
        if not self.sigmas:
            return one_coin_worker_model(alphabet.size, USUAL_ABILITY if self.ability is None else self.ability)
        if self.ability is not None or not isinstance(alphabet, Scale):
            raise SettingsError("sigmas describe workers on a scale, in place of an ability", value=self.sigmas)
        return normal_worker_model(alphabet, self.sigmas)


def _prior(path: Path | None, alphabet: Alphabet) -> NDArray[np.float64]:
    """Return the file's probabilities in the alphabet's order; it names every label, as inference needs it."""
    if path is None:
        return np.full(alphabet.size, 1 / alphabet.size)
    given = load_prior(path)
    wrong = sorted(given.keys() ^ set(alphabet.names))
    if wrong:
        raise ReportsError(
            "a prior has one row for each of the labels", source=str(path), examples=", ".join(wrong[:3])
        )
    return np.array([given[name] for name in alphabet.names])


STATED_ELSEWHERE = {"alphabet", "participation"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismSettings:
    """What was asked for, before it is known whether it can be had; None stands for the mechanism's own default.

    Attributes:
        name: the mechanism's word on the command line.
        epsilon: privacy loss of one cell, in nats; None only where `low` and `high` say it.
        participation: "protected" or "public".
        null_value: laplace: "uniform", a number of the scale, or an ordered label.
        low, high: two-layer: ends of the interval that flip probabilities are drawn from.
            `low` of sun-two-layer: the smallest budget.
        answers: two-layer, sun-two-layer: the most cells one worker sends.
        dimensions: matrix factorization: length of the sums.
        ridge: matrix-factorization-published: weight of the squared profile in its loss.
        cuts: quantized-response: first label of each block after the first; chosen for `expected` by default.
        dealt_cuts: several such cuts, dealt to the workers in turn; the first are `cuts`.
        expected: quantized-response, designed: what is publicly expected.
    """

    name: str
    epsilon: float | None = None
    participation: Participation = "protected"
    null_value: str | None = None
    low: float | None = None
    high: float | None = None
    answers: int | None = None
    dimensions: int | None = None
    ridge: float | None = None
    cuts: tuple[str, ...] = ()
    dealt_cuts: tuple[tuple[str, ...], ...] = ()
    expected: Expectation = field(default_factory=Expectation)


def build_mechanism(wanted: MechanismSettings, alphabet: Alphabet, *, tasks: int) -> Mechanism:
    """Return the mechanism, for a campaign of `tasks` tasks.

    Raises:
        SettingsError: no such mechanism, or it cannot be had with this alphabet, epsilon or setting.
    """
    if wanted.name == TwoLayer.name:
        return _two_layer(wanted, alphabet, tasks)
    if wanted.epsilon is None:
        raise SettingsError(f"{wanted.name} needs an epsilon", value=None)
    epsilon, participation = wanted.epsilon, wanted.participation
    match wanted.name:
        case QuantizedResponse.name:
            return _quantized(wanted, alphabet, epsilon)
        case Designed.name:
            objective = wanted.expected.objective(alphabet, participation)
            # Inference learns who answers how much, so NULL must not share a report with labels.
            return Designed.from_channel(design_channel(objective, epsilon, null_apart=True))
        case Laplace.name:
            null_value = _null_value(wanted.null_value, alphabet)
            return Laplace(alphabet=alphabet, epsilon=epsilon, participation=participation, null_value=null_value)
        case SunTwoLayer.name:
            return _sun_two_layer(wanted, alphabet, epsilon, tasks)
        case MatrixFactorization.name:
            scale = _scale(wanted, alphabet)
            return MatrixFactorization(alphabet=scale, epsilon=epsilon, dimensions=wanted.dimensions)
        case MatrixFactorizationPublished.name:
            return MatrixFactorizationPublished(
                alphabet=_scale(wanted, alphabet),
                epsilon=epsilon,
                tasks=tasks,
                dimensions=_dimensions(wanted),
                ridge=wanted.ridge or 0.0,
            )
    if wanted.name not in MECHANISMS:
        raise SettingsError(f"a mechanism must be one of {', '.join(MECHANISMS)}", value=wanted.name)
    without_options: Any = MECHANISMS[wanted.name]
    return without_options(alphabet=alphabet, epsilon=epsilon, participation=participation)


def parameters(mechanism: Mechanism) -> dict[str, Any]:
    """Return a mechanism's own settings by name; alphabet, participation and tables are stated elsewhere."""
    settings: Any = mechanism
    names = [own.name for own in fields(settings) if own.repr and own.name not in STATED_ELSEWHERE]
    return {name: getattr(mechanism, name) for name in names}


def describe(mechanism: Mechanism) -> str:
    """Return name and settings as text, as `crowd.json` states them: two mechanisms differ where the texts differ."""
    listed = ", ".join(f"{name}={value}" for name, value in parameters(mechanism).items())
    return f"{mechanism.name} ({listed})"


def _two_layer(wanted: MechanismSettings, alphabet: Alphabet, tasks: int) -> TwoLayer:
    answers = _most_cells(wanted, tasks)
    if (wanted.epsilon is None) == (wanted.high is None) or (wanted.high is not None and wanted.low is None):
        raise SettingsError(
            "two-layer needs either epsilon (and perhaps low), or both low and high",
            value={"epsilon": wanted.epsilon, "low": wanted.low, "high": wanted.high},
        )
    if wanted.high is not None and wanted.low is not None:
        return TwoLayer(
            alphabet=alphabet, low=wanted.low, high=wanted.high, answers=answers, participation=wanted.participation
        )
    assert wanted.epsilon is not None
    return TwoLayer.calibrated(
        alphabet=alphabet,
        epsilon=wanted.epsilon,
        low=wanted.low,
        participation=wanted.participation,
        answers=answers,
    )


def _sun_two_layer(wanted: MechanismSettings, alphabet: Alphabet, epsilon: float, tasks: int) -> SunTwoLayer:
    return SunTwoLayer(
        alphabet=alphabet,
        epsilon=epsilon,
        low=wanted.low or 0.0,
        answers=_most_cells(wanted, tasks),
        participation=wanted.participation,
    )


def _most_cells(wanted: MechanismSettings, tasks: int) -> int:
    """Return the most cells one worker sends: what was said, else the number of tasks."""
    return min(tasks, MAX_ANSWERS) if wanted.answers is None else wanted.answers


def _quantized(wanted: MechanismSettings, alphabet: Alphabet, epsilon: float) -> QuantizedResponse:
    if not wanted.cuts:
        return QuantizedResponse.for_objective(wanted.expected.objective(alphabet, wanted.participation), epsilon)
    unknown = [name for name in wanted.cuts if name not in alphabet.names]
    if unknown:
        raise SettingsError("a cut is the first label of a block", value=unknown[0], hint="Name one of the labels.")
    cuts = tuple(alphabet.names.index(name) for name in wanted.cuts)
    return QuantizedResponse(alphabet=alphabet, epsilon=epsilon, participation=wanted.participation, cuts=cuts)


def _scale(wanted: MechanismSettings, alphabet: Alphabet) -> Scale:
    require_numeric_and_protected(wanted.name, alphabet, wanted.participation)
    assert isinstance(alphabet, Scale)
    return alphabet


def _dimensions(wanted: MechanismSettings) -> int:
    if wanted.dimensions is None:
        raise SettingsError(f"{wanted.name} needs a number of dimensions", value=None, hint="The paper's is small.")
    return wanted.dimensions


def _null_value(text: str | None, alphabet: Alphabet) -> NullValue:
    """Read "uniform", a number of the scale, or an ordered label, which stands for its position."""
    if text is None or text == "uniform":
        return "uniform"
    if text in alphabet.names:
        return float(alphabet.values[alphabet.names.index(text)])
    try:
        return float(text)
    except ValueError as error:
        raise SettingsError(
            "null_value must be 'uniform' or a value of the domain", value=text, hint=f"Use one of {alphabet.names}."
        ) from error
