"""The sample of the documents and the template of `campaign init` are campaigns whose results are worth having."""

import pytest

from crowdveil.campaign.planning.chosen_mechanism import mechanism_of_campaign_settings
from crowdveil.campaign.planning.expected_error import planned_campaign
from crowdveil.campaign.settings.settings_file import CampaignSettings
from crowdveil.planning import predict_campaign_error
from crowdveil.planning.prediction import FIRST_SEED as FIRST_SEED_OF_PLANS
from tests.campaign.planning.sample_campaigns import FIRST_SEED, former_sample, sample, simulated_errors, template

pytestmark = pytest.mark.slow

MOST = 0.8
"""Largest share of the error of the best public constant."""


@pytest.mark.parametrize("source", [sample(), template(10), template(40)], ids=["sample", "template 10", "template 40"])
def test_the_expected_error_is_well_below_that_of_the_constant(source: CampaignSettings) -> None:
    """By the plan the error is at most eight tenths of that of the best public constant."""
    chosen = mechanism_of_campaign_settings(source)
    campaign = planned_campaign(chosen.source, chosen.method)
    budget = source.privacy.budget_per_worker
    assert budget is not None
    mechanism = chosen.build(budget / (chosen.source.per_worker or len(source.rows)))

    assert predict_campaign_error(campaign, mechanism).error <= MOST * campaign.crowd.constant_error


def test_simulated_runs_keep_the_promise_of_the_plan() -> None:
    """In six runs with seeds that no plan uses the mean error is at most eight tenths of the constant's.

    With the former sample every run was near the constant.
    """
    now, before = simulated_errors(sample(), 6).mean(axis=0), simulated_errors(former_sample(), 2).mean(axis=0)

    assert FIRST_SEED > FIRST_SEED_OF_PLANS + 100
    assert now[0] <= MOST * now[1]
    assert before[0] > MOST * before[1]
