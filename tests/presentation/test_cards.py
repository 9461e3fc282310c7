"""Objects in a notebook: each is one well-formed card, with its numbers, escaped, and one picture."""

import math
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from crowdveil import Categories, Guarantee, RandomizedResponse, Reports, Scale
from crowdveil.channels.channel import Channel
from crowdveil.estimators import DawidSkene, StudentT, WeightedVote
from crowdveil.planning import Plan, plan
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, numeric_crowd
from tests.planning.campaigns import of_labels

LABELS = Categories(("<no>", "yes & no"))
CROWD = categorical_crowd(workers=20, tasks=30, labels=LABELS, sparsity=0.5, source=seeded(1)).answers
NUMBERS = numeric_crowd(workers=20, tasks=30, sparsity=0.5, source=seeded(1)).answers


def parsed(shown: Any) -> ElementTree.Element:
    """Return the card of an object as a tree."""
    return ElementTree.fromstring(shown._repr_html_())


def text_of(shown: Any) -> str:
    """Return the text of the card of an object, without its style."""
    tree = parsed(shown)
    tree.remove(tree[0])
    return " ".join(tree.itertext())


CARDS = {
    "reports": CROWD,
    "numbers": NUMBERS,
    "free numbers": Reports.from_arrays([1, 2], ["<b>", "u"], [1.5, 2.5], numeric=True),
    "estimate": DawidSkene().fit(CROWD),
    "votes": WeightedVote().fit(CROWD),
    "estimate of numbers": StudentT().fit(NUMBERS),
    "channel": RandomizedResponse(alphabet=LABELS, epsilon=1.0).channel(),
    "wide channel": RandomizedResponse(alphabet=Scale(0, 40), epsilon=1.0).channel(),
    "guarantee": Guarantee(epsilon=1.0, delta=1e-6),
    "no guarantee": Guarantee(epsilon=float("inf"), unit="worker"),
    "plan": plan(of_labels(rate=0.25), target=0.15, epsilons=(4.0,)),
}


@pytest.mark.parametrize("name", CARDS)
def test_a_card_is_well_formed(name: str) -> None:
    """A card is one element with a style, a title and at most one picture; names are escaped."""
    tree = parsed(CARDS[name])

    assert ("div", "crowdveil", "style", "b") == (tree.tag, tree.get("class"), tree[0].tag, tree[1].tag)
    assert (0 if name in ("free numbers", "wide channel") else 1) == len(list(tree.iter("svg")))
    assert [] == [node for node in tree.iter() if node.tag in ("no", "script")]


def test_an_estimate_shows_convergence_and_the_best_constant() -> None:
    """Too few steps are visible, and the constant to beat is named."""
    estimate = DawidSkene(max_steps=2).fit(CROWD)

    assert "NOT converged in 2 steps" in text_of(estimate)
    assert str(estimate.baseline) in text_of(estimate)
    assert "and 20 more" in text_of(estimate)


def test_reports_show_their_size_and_labels() -> None:
    """The numbers of reports, workers and tasks are shown, and the counts of labels in the picture."""
    counts = np.bincount(CROWD.value, minlength=2)

    assert f"{len(CROWD):,} reports of 20 workers on 30 tasks" in text_of(CROWD)
    assert f"<no>: {counts[0]}; yes & no: {counts[1]}" in text_of(CROWD)


def test_a_guarantee_shows_what_can_be_guessed() -> None:
    """The largest probability of a right guess is (e^epsilon + delta) / (e^epsilon + 1), rounded up."""
    assert pytest.approx(math.e / (1 + math.e)) == Guarantee(epsilon=1.0).largest_guess_probability
    assert pytest.approx(0.5) == Guarantee(epsilon=0.0).largest_guess_probability
    assert 1.0 == Guarantee(epsilon=float("inf")).largest_guess_probability
    assert pytest.approx(0.75) == Guarantee(epsilon=0.0, delta=0.5).largest_guess_probability
    assert "73.2 %" in text_of(Guarantee(epsilon=1.0))


def test_a_channel_shows_its_guarantee_and_table() -> None:
    """Epsilon with its unit and participation, and the probabilities in per cent."""
    channel: Channel = CARDS["channel"]  # type: ignore[assignment]
    shown = text_of(channel)

    assert str(channel.guarantee) in shown
    assert "no answer" in shown
    assert all(f"{100 * chance:.0f}" in shown for chance in channel.probabilities.ravel())


def test_a_plan_shows_its_recommendation() -> None:
    """The recommended candidate, its error and the target stand in the first sentence."""
    planned: Plan = CARDS["plan"]  # type: ignore[assignment]
    found = planned.recommended
    assert found is not None

    shown = text_of(planned)

    expected = f"Use {found.name} at epsilon 4 per answer, expected error {found.prediction.error:.3g}, target 0.15."
    assert expected in shown
