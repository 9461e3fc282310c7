"""Expected error of a campaign, by the planner's simulations under public assumptions on the crowd."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from crowdveil.answers.ingest.column_readers import load_prior
from crowdveil.campaign.settings.settings_file import CampaignSettings
from crowdveil.design.mechanism_from_settings import Expectation
from crowdveil.inference.methods import LABEL_METHOD, channel_method
from crowdveil.mechanisms import ChannelMechanism
from crowdveil.planning import NumberCrowd, PlannedCampaign, Prediction, predict_campaign_error
from crowdveil.planning.expected_campaign import expected_campaign, mechanism_on_plan_scale
from crowdveil.planning.plan_document import prediction_data
from crowdveil.planning.prediction import default_simulation_count

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

    plan: PlannedCampaign
    protected: Prediction
    unprotected: Prediction
    constant: float

    @property
    def error_name(self) -> str:
        """Name of the error: "share of wrong labels" or "mean absolute error"."""
        return "mean absolute error" if isinstance(self.plan.crowd, NumberCrowd) else "share of wrong labels"

    @property
    def crowd_assumptions_text(self) -> str:
        """Assumptions on the crowd, as text."""
        crowd, answered = (
            self.plan.crowd,
            f"{self.plan.answered_cell_share:.0%} of the assigned tasks are answered",
        )
        if isinstance(crowd, NumberCrowd):
            sigmas = ", ".join(f"{sigma:.3g}" for sigma in crowd.sigmas)
            return f"{answered}; standard deviations of the workers {sigmas}, in equal shares"
        return f"{answered}; {float(crowd.qualities @ crowd.worker_shares):.0%} of the answers are right"

    def to_json(self) -> dict[str, Any]:
        """Return the error as JSON values."""
        return {
            "error_name": self.error_name,
            "assumptions": self.crowd_assumptions_text,
            "constant_error": self.constant,
            "method": self.plan.estimator_of_simulated_fits.name,
            "protected": prediction_data(self.protected),
            "unprotected": prediction_data(self.unprotected),
        }


def predict_errors(
    source: CampaignSettings,
    mechanism: ChannelMechanism,
    *,
    method: str | None = None,
    on_simulation: OnSimulation | None = None,
) -> ExpectedError:
    """Return the expected error of a campaign if the crowd is as its settings expect, or as `crowdveil plan` assumes.

    A long scale is planned on a coarser one, with the tables of the campaign.

    Args:
        source: settings of the campaign.
        mechanism: of its devices.
        method: estimator; None for that by which `infer` reads the reports by default.
        on_simulation: called with the finished and the expected number of simulations.

    Raises:
        SettingsError: an expectation is out of range.
        ReportsError: the file of the prior is damaged, or does not name exactly the labels.
    """
    plan = planned_campaign(source, method)
    done = count(1)

    def report() -> None:
        if on_simulation is not None:
            on_simulation(next(done), 2 * default_simulation_count(plan))

    # Answers without a channel are inferred by the usual method of their kind.
    plain = plan if isinstance(plan.crowd, NumberCrowd) else replace(plan, method=LABEL_METHOD)
    return ExpectedError(
        plan=plan,
        protected=predict_campaign_error(
            plan, mechanism_on_plan_scale(plan.crowd.alphabet, mechanism), on_simulation=report
        ),
        unprotected=predict_campaign_error(plain, None, on_simulation=report),
        constant=plan.crowd.constant_error,
    )


def planned_campaign(source: CampaignSettings, method: str | None = None) -> PlannedCampaign:
    """Return the campaign as the planner sees it; errors as `predict_errors`."""
    assigned, expectation = crowd_expectation(source)
    return expected_campaign(
        source.alphabet,
        expectation,
        source.participation,
        tasks=len(source.rows),
        workers=source.slots,
        assigned_per_task=assigned,
        method=method or channel_method(source.alphabet),
    )


def crowd_expectation(source: CampaignSettings) -> tuple[int | None, Expectation]:
    """Return the workers per task, None if every worker has every task, and the expectation of the answers.

    A task is taken to have the rounded mean number of workers, but so many that every worker has a task.
    """
    expected, tasks, slots = source.expected, len(source.rows), source.slots
    cells = sum(tasks - len(excluded) for excluded in source.excluded)
    if source.per_worker is not None:
        cells = source.per_worker * slots
    assigned = max(-(-slots // tasks), round(cells / tasks))
    rate = expected.answered * assigned / slots
    return (
        None if assigned == slots else assigned,
        replace(expectation_within_cells(source), participation_rate=rate),
    )


def expectation_within_cells(source: CampaignSettings) -> Expectation:
    """Return the expectation of the answers of a worker to the tasks that the worker is asked."""
    expected = source.expected
    return Expectation(
        prior=None if source.privacy.prior is None else load_prior(source.privacy.prior),
        participation_rate=expected.answered,
        ability=expected.ability,
        sigmas=expected.sigmas,
    )
