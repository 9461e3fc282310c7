"""Expected error of a campaign, by the planner's simulations under public assumptions on the crowd."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

from crowdveil.campaign.source.settings_file import CampaignSource
from crowdveil.channels.alphabet import Alphabet
from crowdveil.mechanisms import ChannelMechanism, Laplace
from crowdveil.planning import Campaign, NumberCrowd, Prediction, predict
from crowdveil.planning.prediction import default_seeds
from crowdveil.planning.summary import expected_error, real_interval
from crowdveil.workflow.mechanism_settings import Expectation
from crowdveil.workflow.planning import expected_campaign

OnSimulation = Callable[[float, float | None], None]
"""Callback with the number of finished simulations and the expected total."""


@dataclass(frozen=True, kw_only=True)
class ExpectedError:
    """Expected error of a campaign.

    Attributes:
        plan: the campaign as the planner sees it.
        protected: prediction for the reports through the channel.
        unprotected: prediction for the answers themselves.
        constant: error of the best public constant.
    """

    plan: Campaign
    protected: Prediction
    unprotected: Prediction
    constant: float

    @property
    def error_name(self) -> str:
        """Name of the error: "share of wrong labels" or "mean absolute error"."""
        return "mean absolute error" if isinstance(self.plan.crowd, NumberCrowd) else "share of wrong labels"

    @property
    def assumptions(self) -> str:
        """Assumptions on the crowd, as text."""
        crowd, answered = self.plan.crowd, f"{self.plan.answer_rate:.0%} of the assigned tasks are answered"
        if isinstance(crowd, NumberCrowd):
            sigmas = ", ".join(f"{sigma:.3g}" for sigma in crowd.sigmas)
            return f"{answered}; standard deviations of the workers {sigmas}, in equal shares"
        return f"{answered}; {float(crowd.qualities @ crowd.shares):.0%} of the answers are right"

    def to_json(self) -> dict[str, Any]:
        """Return the error as JSON values."""
        return {
            "error_name": self.error_name,
            "assumptions": self.assumptions,
            "constant_error": self.constant,
            "method": self.plan.estimator.name,
            "protected": _prediction(self.protected),
            "unprotected": _prediction(self.unprotected),
        }


def predict_error(
    source: CampaignSource, mechanism: ChannelMechanism, *, on_simulation: OnSimulation | None = None
) -> ExpectedError:
    """Return the expected error of a campaign if the crowd is as its settings expect, or as `crowdveil plan` assumes.

    A task is taken to have the rounded mean number of workers, but so many that every worker has a task. A long scale
    is planned on a coarser one, with the epsilon of the campaign.

    Raises:
        SettingsError: an expectation is out of range.
    """
    expected, tasks, slots = source.expected, len(source.rows), source.slots
    cells = sum(tasks - len(excluded) for excluded in source.excluded)
    if source.per_worker is not None:
        cells = source.per_worker * slots
    assigned = max(-(-slots // tasks), round(cells / tasks))
    everyone = assigned == slots
    plan = expected_campaign(
        source.alphabet,
        Expectation(
            participation_rate=expected.answered * assigned / slots,
            ability=expected.ability,
            sigmas=expected.sigmas,
        ),
        source.participation,
        tasks=tasks,
        workers=slots,
        assigned_per_task=None if everyone else assigned,
    )
    done = count(1)

    def report() -> None:
        if on_simulation is not None:
            on_simulation(next(done), 2 * default_seeds(plan))

    return ExpectedError(
        plan=plan,
        protected=predict(plan, _on(plan.crowd.alphabet, mechanism), on_simulation=report),
        unprotected=predict(plan, None, on_simulation=report),
        constant=plan.crowd.constant_error,
    )


def _on(alphabet: Alphabet, mechanism: ChannelMechanism) -> ChannelMechanism:
    """Return the mechanism with the same epsilon over the alphabet of the plan."""
    if mechanism.alphabet == alphabet:
        return mechanism
    settings: dict[str, Any] = {"epsilon": mechanism.epsilon, "participation": mechanism.participation}
    if isinstance(mechanism, Laplace):
        return Laplace(alphabet=alphabet, **settings)
    constructor: Any = type(mechanism)
    found: ChannelMechanism = constructor(alphabet=alphabet, **settings)
    return found


def _prediction(prediction: Prediction) -> dict[str, Any]:
    return asdict(prediction) | {"shown": expected_error(prediction), "shown_interval": real_interval(prediction)}
