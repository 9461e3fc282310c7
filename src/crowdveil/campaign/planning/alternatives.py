"""Nearest campaigns that are worth asking: another mechanism, fewer tasks each, more workers, or more epsilon."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from crowdveil.campaign.planning.chosen_mechanism import mechanism_of_campaign_settings
from crowdveil.campaign.planning.expected_error import ExpectedError, planned_campaign
from crowdveil.campaign.settings.privacy_request import MAX_BUDGET, PLAN, PrivacyRequest
from crowdveil.campaign.settings.settings_file import CampaignSettings
from crowdveil.errors import SettingsError
from crowdveil.hints import advice
from crowdveil.planning import Prediction, predict_campaign_error
from crowdveil.planning.bayes_error import SEARCH_CROWDS
from crowdveil.planning.expected_campaign import mechanism_on_plan_scale
from crowdveil.planning.plan import WORTH_ASKING
from crowdveil.planning.plan_sentences import expected_error_text
from crowdveil.planning.prediction import predict_from_bayes_errors
from crowdveil.planning.worker_budget import compared_task_loads
from crowdveil.standalone.checks import MAX_SLOTS

WORKER_FACTORS = (1.5, 2.0, 3.0, 5.0, 10.0)
EPSILON_FACTORS = (*WORKER_FACTORS, 20.0, 50.0, 100.0, 1_000.0)
"""Factors on workers and on epsilon that are tried."""
HOPELESS = f"Even {WORKER_FACTORS[-1]:g} times as many workers, or {EPSILON_FACTORS[-1]:,g} times epsilon, are too few."


@dataclass(frozen=True, slots=True)
class CampaignChange:
    """Changed campaign that is worth asking: what changes, its settings, and its expected error."""

    change: str
    source: CampaignSettings
    prediction: Prediction


def is_worth_asking(expected: ExpectedError) -> bool:
    """Return whether the expected error is at most `WORTH_ASKING` of that of the best public constant."""
    return expected.protected.error <= WORTH_ASKING * expected.constant


def require_worth_asking(source: CampaignSettings, expected: ExpectedError, *, question: str = "") -> None:
    """Refuse a campaign whose expected error is above `WORTH_ASKING` of that of the best public constant.

    Args:
        source: settings of the campaign.
        expected: its expected error.
        question: text of the question, of several.

    Raises:
        SettingsError: the hint names the nearest campaigns that are worth asking.
    """
    if is_worth_asking(expected):
        return
    found = [f"{one.change} (expected {expected_error_text(one.prediction)})" for one in nearest_alternatives(source)]
    nearest = f"Any of these is enough: {'; '.join(found)}." if found else HOPELESS
    about = f"question {question[:100]!r}: " if question else ""
    raise SettingsError(
        f"{about}the expected {expected.error_name} of a campaign must be at most {WORTH_ASKING:g} times that of "
        f"the same answer for every task, {expected.constant:.3g}",
        value=float(f"{expected.protected.error:.3g}"),
        hint=f"{nearest}{advice(' {anyway} creates it.', anyway=True)}",
    )


def nearest_alternatives(source: CampaignSettings) -> list[CampaignChange]:
    """Return the nearest campaign that is worth asking in each direction; none where no step is enough."""
    directions = (
        _planned_mechanism_alternative(source),
        _with_fewer_tasks_per_worker(source),
        _more_workers(source),
        _more_epsilon(source),
    )
    return [found for steps in directions if (found := _first_worth_asking(steps)) is not None]


def _first_worth_asking(steps: Iterator[tuple[str, CampaignSettings]]) -> CampaignChange | None:
    """Return the first changed campaign that is worth asking; None if there is none."""
    for change, source in steps:
        try:
            prediction = _prediction_if_worth(source)
        except SettingsError:  # an epsilon that no mechanism accepts: the next ones are larger
            return None
        if prediction is not None:
            return CampaignChange(change, source, prediction)
    return None


def _prediction_if_worth(source: CampaignSettings) -> Prediction | None:
    """Return the prediction of one simulation if the campaign is worth asking; else None.

    A campaign that is not worth asking even with known worker classes is not simulated.
    """
    chosen = mechanism_of_campaign_settings(source)
    campaign = planned_campaign(chosen.source, chosen.method)
    mechanism = mechanism_on_plan_scale(campaign.crowd.alphabet, chosen.device_mechanism)
    most = WORTH_ASKING * campaign.crowd.constant_error
    if predict_from_bayes_errors(campaign, mechanism.channel(), 0.0, crowds=SEARCH_CROWDS).error > most:
        return None
    prediction = predict_campaign_error(campaign, mechanism, seeds=1)
    return prediction if prediction.error <= most else None


def _planned_mechanism_alternative(source: CampaignSettings) -> Iterator[tuple[str, CampaignSettings]]:
    """Yield the campaign with the mechanism, and where a budget is divided the tasks, that a plan recommends."""
    privacy, per_worker = source.privacy, source.per_worker
    if privacy.mechanism != PLAN:
        planned = PrivacyRequest(
            mechanism=PLAN,
            budget_per_worker=privacy.budget_per_worker,
            epsilon_per_answer=privacy.epsilon_per_answer,
            levels=privacy.levels,
            prior=privacy.prior,
        )
        divided = privacy.budget_per_worker is not None and per_worker is not None and source.relay is None
        change = f'privacy.mechanism = "{PLAN}"{" without tasks.per_worker" if divided else ""}'
        yield change, replace(source, privacy=planned, per_worker=None if divided else per_worker)


def _with_fewer_tasks_per_worker(source: CampaignSettings) -> Iterator[tuple[str, CampaignSettings]]:
    """Yield campaigns with fewer tasks to each worker, the most first, where a budget is divided among them."""
    if source.privacy.budget_per_worker is None or source.relay is not None:
        return
    whole = replace(planned_campaign(source), assigned_per_task=None)
    fewer = [load for load in compared_task_loads(whole) if load < (source.per_worker or len(source.rows))]
    for load in reversed(fewer):
        yield f"tasks.per_worker = {load}", replace(source, per_worker=load)


def _more_workers(source: CampaignSettings) -> Iterator[tuple[str, CampaignSettings]]:
    """Yield campaigns with more workers, of whom the new ones may get every task."""
    for factor in WORKER_FACTORS:
        slots = math.ceil(factor * source.slots)
        if slots <= MAX_SLOTS:
            excluded = (*source.excluded, *[frozenset[int]()] * (slots - source.slots))
            yield f"{slots:,} workers", replace(source, slots=slots, names=(), excluded=excluded)


def _more_epsilon(source: CampaignSettings) -> Iterator[tuple[str, CampaignSettings]]:
    """Yield campaigns with a larger budget of each worker, or a larger epsilon of each answer."""
    privacy = source.privacy
    for factor in EPSILON_FACTORS:
        if privacy.levels:
            levels = tuple(factor * level for level in privacy.levels)
            text, epsilon = f"levels = [{', '.join(f'{level:g}' for level in levels)}]", levels[-1]
            changed = replace(privacy, budget_per_worker=levels[0], levels=levels)
        elif privacy.budget_per_worker is not None:
            epsilon = factor * privacy.budget_per_worker
            text, changed = f"budget_per_worker = {epsilon:g}", replace(privacy, budget_per_worker=epsilon)
        else:
            assert privacy.epsilon_per_answer is not None
            epsilon = factor * privacy.epsilon_per_answer
            text, changed = f"epsilon_per_answer = {epsilon:g}", replace(privacy, epsilon_per_answer=epsilon)
        if epsilon <= MAX_BUDGET:
            yield f"privacy.{text}", replace(source, privacy=changed)
