"""Expected errors of campaigns: between the best constant and the unprotected answers, under stated assumptions."""

from dataclasses import replace
from pathlib import Path

import pytest

from crowdveil.campaign.source.build import mechanism_within
from crowdveil.campaign.source.settings_file import ExpectedCrowd, PrivacyRequest, read_source
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.workflow.campaigns.expected_error import predict_error

SOURCE = read_source(Path(__file__).parents[3] / "docs" / "samples" / "campaign.toml")


def predicted(source):
    """Return the expected error of a campaign."""
    mechanism = mechanism_within(source.privacy, source.alphabet, source.participation, cells=5)
    return predict_error(source, mechanism)


@pytest.mark.parametrize("alphabet", [Scale(0, 10), Scale(0, 100), Categories(("no", "yes"))], ids=str)
def test_privacy_costs_accuracy(alphabet):
    """The protected error is larger than the unprotected one; the plan has the campaign's size and assignment."""
    source = replace(
        SOURCE, alphabet=alphabet, privacy=PrivacyRequest(mechanism="randomized-response", epsilon_per_answer=1.0)
    )

    found = predicted(source)

    assert found.unprotected.error < found.protected.error
    assert (12, 12, 5) == (found.plan.tasks, found.plan.workers, found.plan.assigned_per_task)
    assert 1.0 == found.plan.answer_rate


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

    assert "50% of the assigned tasks are answered; 90% of the answers are right" == found.assumptions
    assert None is found.plan.assigned_per_task
    assert "share of wrong labels" == found.to_json()["error_name"]


def test_one_task_per_worker_is_planned():
    """Twelve workers with one of nine tasks each are planned with two workers on a task: one would leave three out."""
    source = replace(SOURCE, rows=SOURCE.rows[:9], per_worker=1, excluded=((),) * 12)

    assert 2 == predicted(source).plan.assigned_per_task
