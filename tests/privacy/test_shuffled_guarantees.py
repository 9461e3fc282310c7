"""Guarantees of shuffled reports in accounts, and what they refuse."""

import math
import re

import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import RandomizedResponse, TwoLayer
from crowdveil.privacy.shuffling import shuffled_cell_guarantee, shuffled_guarantees, shuffled_worker_guarantee

pytestmark = pytest.mark.slow

YES_NO = Categories(("no", "yes"))
MECHANISM = RandomizedResponse(alphabet=YES_NO, epsilon=2.0)
CHANNEL = MECHANISM.channel()


def test_figures_are_those_of_the_certificates():
    """Epsilon per answer and per worker are the ones computed from the table, with their delta and unit."""
    figures = shuffled_guarantees(MECHANISM, reports=500, delta=1e-6, tasks=20)

    assert shuffled_cell_guarantee(CHANNEL, reports=500, delta=1e-6).epsilon == figures.per_answer.epsilon
    assert shuffled_worker_guarantee(CHANNEL, reports=500, cells=20, delta=1e-6).epsilon == figures.per_worker.epsilon
    assert ("cell", "worker", 1e-6) == (figures.per_answer.unit, figures.per_worker.unit, figures.per_worker.delta)


def test_sentences_say_the_posterior_that_the_guarantee_allows():
    """Every percentage is the bound (e^epsilon + delta) / (1 + e^epsilon) of its guarantee, rounded up."""
    figures = shuffled_guarantees(MECHANISM, reports=500, delta=1e-6, tasks=5)
    text = " ".join(figures.sentences)

    for guarantee in (figures.per_answer, figures.per_worker):
        share = (math.exp(guarantee.epsilon) + 1e-6) / (1 + math.exp(guarantee.epsilon))
        shown = [float(percent) for percent in re.findall(r"([0-9.]+) %", text)]
        assert any(0 <= one - 100 * share <= 0.1 for one in shown)
    assert text.index("for all answers of one worker") < text.index("per single answer")
    assert "work together" in text
    assert "nobody colludes" in text


def test_rounds_are_composed_and_local_figures_stay():
    """Three rounds cost a cell more than one, and at most three times as much."""
    mechanism = RandomizedResponse(alphabet=YES_NO, epsilon=1.0)
    one, three = (shuffled_guarantees(mechanism, tasks=4, rounds=r, reports=300, delta=1e-6) for r in (1, 3))

    assert one.per_answer.epsilon < three.per_answer.epsilon <= 3 * one.per_answer.epsilon
    assert one.per_worker.epsilon < three.per_worker.epsilon
    assert 4 == three.cells


def test_linked_reports_cost_more_than_unlinked_ones():
    """Batches in between: the loss of a worker grows with the number of reports that stay together."""
    found = [
        shuffled_guarantees(MECHANISM, reports=500, delta=1e-6, tasks=6, linked=k).per_worker.epsilon for k in (1, 2, 3)
    ]

    assert sorted(found) == found
    assert found[0] < found[1] < found[2]


def test_unsound_requests_are_refused():
    """Delta of 1/n, cells with a shared secret, more links than cells."""
    with pytest.raises(SettingsError, match="below 1/500"):
        shuffled_guarantees(MECHANISM, reports=500, delta=1 / 500, tasks=2)
    two_layer = TwoLayer.calibrated(alphabet=YES_NO, epsilon=1.0)
    with pytest.raises(SettingsError, match="channel per cell"):
        shuffled_guarantees(two_layer, tasks=2, rounds=1, reports=500, delta=1e-6)
    with pytest.raises(SettingsError, match="linked"):
        shuffled_guarantees(MECHANISM, reports=500, delta=1e-6, tasks=2, linked=3)
