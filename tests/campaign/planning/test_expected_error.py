"""Expected errors of campaigns: between the best constant and the unprotected answers, under stated assumptions."""

from dataclasses import replace

import pytest

from crowdveil.campaign.planning.chosen_mechanism import mechanism_of_campaign_settings
from crowdveil.campaign.planning.expected_error import predict_errors
from crowdveil.campaign.settings.build import requested_mechanism
from crowdveil.campaign.settings.privacy_request import PrivacyRequest
from crowdveil.campaign.settings.settings_file import ExpectedCrowd
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.mechanisms import QuantizedResponse, RandomizedResponse
from crowdveil.planning.expected_campaign import mechanism_on_plan_scale
from tests.campaign.planning.sample_campaigns import former_sample, template

pytestmark = pytest.mark.slow

SOURCE = former_sample()


def predicted(source):
    """Return the expected error of a campaign."""
    mechanism = requested_mechanism(source.privacy, source.alphabet, source.participation, cells=5)
    return predict_errors(source, mechanism)


@pytest.mark.parametrize("alphabet", [Scale(0, 10), Scale(0, 100), Categories(("no", "yes"))], ids=str)
def test_privacy_costs_accuracy(alphabet):
    """The protected error is larger than the unprotected one; the plan has the campaign's size and assignment."""
    source = replace(
        SOURCE, alphabet=alphabet, privacy=PrivacyRequest(mechanism="randomized-response", epsilon_per_answer=1.0)
    )

    found = predicted(source)

    assert found.unprotected.error < found.protected.error
    assert (12, 12, 5) == (found.plan.tasks, found.plan.workers, found.plan.assigned_per_task)
    assert 1.0 == found.plan.answered_cell_share


def test_a_long_scale_is_planned_with_the_tables_of_the_campaign():
    """On the plan's coarser scale blocks stay blocks, and symbols that no answer makes likelier are one symbol."""
    scale, coarse = Scale(0, 100), Scale(0, 100, 5)
    blocks = QuantizedResponse(alphabet=scale, epsilon=2.0, cuts=(48,))
    every = RandomizedResponse(alphabet=scale, epsilon=2.0)

    planned = mechanism_on_plan_scale(coarse, blocks).channel(), mechanism_on_plan_scale(coarse, every).channel()

    assert QuantizedResponse(alphabet=coarse, epsilon=2.0, cuts=(10,)).channel().rows == planned[0].rows
    assert (21 + 1 + 1, every.channel().epsilon) == (len(planned[1].outputs), planned[1].epsilon)


def test_expectations_are_stated():
    """The share of answered tasks and the ability of the settings are those of the plan."""
    source = replace(
        SOURCE,
        alphabet=Categories(("no", "yes")),
        per_worker=None,
        excluded=(frozenset(),) * 12,
        expected=ExpectedCrowd(answered=0.5, ability=0.9),
        privacy=PrivacyRequest(mechanism="randomized-response", epsilon_per_answer=3.0),
    )

    found = predicted(source)

    assert "50% of the assigned tasks are answered; 90% of the answers are right" == found.crowd_assumptions_text
    assert None is found.plan.assigned_per_task
    assert "share of wrong labels" == found.to_json()["error_name"]


def test_one_task_per_worker_is_planned():
    """Twelve workers with one of nine tasks each are planned with two workers on a task: one would leave three out."""
    source = replace(SOURCE, rows=SOURCE.rows[:9], per_worker=1, excluded=(frozenset(),) * 12)

    assert 2 == predicted(source).plan.assigned_per_task


@pytest.mark.parametrize("tasks", [6, 12, 40])
def test_privacy_does_not_improve_the_answers_of_small_campaigns(tasks: int) -> None:
    """Of few tasks the expected error is that of many simulated ones, and above that of the answers themselves.

    A vote of the same answers, simulated apart, errs on .088 of 6 tasks: one simulation said .050, and .14 unprotected.
    """
    chosen = mechanism_of_campaign_settings(template(tasks))
    found = predict_errors(chosen.source, chosen.device_mechanism, method=chosen.method)
    runs = found.protected.simulated * found.protected.simulated_tasks

    assert runs >= 40
    assert found.unprotected.error <= found.protected.error
    assert tasks != 6 or found.protected.error == pytest.approx(0.088, abs=0.03)
