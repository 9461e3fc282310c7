"""Campaigns from settings: the certified loss is within the budget, whatever the budget."""

from dataclasses import replace
from fractions import Fraction

import pytest
from experiments.collection.sample_campaign import former_sample
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.campaign.source.build import build_campaign, mechanism_within
from crowdveil.campaign.source.privacy_request import PrivacyRequest
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.rounding import least_reading
from crowdveil.errors import SettingsError
from crowdveil.randomness import seeded

SOURCE = former_sample()


@pytest.mark.slow
@given(
    st.sampled_from(["laplace", "randomized-response"]),
    st.floats(0.1, 20),
    st.integers(1, 30),
    st.sampled_from(["protected", "public"]),
)
def test_all_answers_together_stay_within_the_budget(mechanism, budget, cells, participation):
    """The certified epsilon times the cells is at most the budget, and close to it."""
    request = PrivacyRequest(mechanism=mechanism, budget_per_worker=budget)

    made = mechanism_within(request, Scale(0, 4), participation, cells=cells)

    spent = least_reading(made.channel().epsilon) * cells
    assert Fraction(budget) * (1 - Fraction(1, 10**9)) <= spent <= Fraction(budget)


def test_an_epsilon_per_answer_is_kept():
    """An epsilon per answer does not depend on the number of answers."""
    request = PrivacyRequest(mechanism="randomized-response", epsilon_per_answer=0.7)

    made = mechanism_within(request, Categories(("a", "b")), "public", cells=9)

    assert 0.7 == made.epsilon
    assert 0.7 - 1e-9 <= made.channel().epsilon <= 0.7


def test_reports_name_blocks_of_answers():
    """With cuts a report names a block of labels, and participation is protected by one more symbol."""
    request = PrivacyRequest(mechanism="quantized-response", budget_per_worker=4.0, cuts=(3, 8))

    made = mechanism_within(request, Scale(0, 10), "protected", cells=2)

    assert ("0..2", "3..7", "8..10", "NULL") == made.channel().outputs
    assert 2.0 == pytest.approx(made.channel().epsilon)


def test_the_sample_becomes_a_campaign():
    """The campaign has the texts and tasks of its settings, and keeps budget and exclusions."""
    campaign, parts, _ = build_campaign(SOURCE, seeded(1))

    assert (SOURCE.title, SOURCE.tasks, 12, 5) == (campaign.title, campaign.tasks, campaign.slots, campaign.cells)
    assert campaign.worker_epsilon <= 5.0
    assert all(slot not in parts[0].tasks(slot) for slot in range(12))


def test_every_task_needs_a_worker():
    """Fewer answers than tasks are refused."""
    with pytest.raises(SettingsError, match="every task needs a worker"):
        build_campaign(replace(SOURCE, slots=2, per_worker=5, excluded=SOURCE.excluded[:2]))


def test_a_task_that_is_excluded_for_everyone_is_refused():
    """Exclusions that leave a task without a worker are refused, and the task is named."""
    excluded = tuple({*own, 3} for own in SOURCE.excluded)

    with pytest.raises(SettingsError, match=f"task '{SOURCE.tasks[3].id}' has none"):
        build_campaign(replace(SOURCE, per_worker=None, excluded=excluded))
