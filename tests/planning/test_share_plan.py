"""Tests of the plan of a survey."""

from typing import Any

import numpy as np
import pytest

import crowdveil as cv
from crowdveil.channels.guarantee import Participation
from crowdveil.errors import SettingsError
from crowdveil.planning.share_plan import mechanism_for_shares
from crowdveil.quality.shares.score import score_estimates

SIMULATED = [
    (0.1, 0.8, 400, 1.0, 2, "protected"),
    (0.3, 0.8, 100, 2.0, 2, "protected"),
    (0.1, 0.5, 400, 2.0, 3, "public"),
    (0.2, 0.8, 1_000, 0.5, 6, "protected"),
]
"""Share, response rate, people, epsilon, labels and participation."""


@pytest.mark.parametrize(
    ("share", "response", "people"),
    [
        (0.1, 0.8, [14_391, 3_101, 670, 316]),
        (0.35, 0.8, [13_290, 3_218, 938, 585]),
        (0.1, 0.5, [35_906, 7_482, 1_470, 615]),
    ],
)
def test_people_for_a_half_width(share: float, response: float, people: list[int]) -> None:
    """People for ± 5 points follow the variance v z^2 / w^2 of the estimate behind randomized response."""
    planned = cv.plan_share(share, response=response, epsilons=[0.5, 1, 2, 3], half_width=0.05, people=[])

    assert [one.people for one in planned.needed[:-1]] == people


def test_design_effects() -> None:
    """Protection of a share of 10 % takes 83, 18, 3.9 and 1.8 times the people; unprotected asking takes 1."""
    planned = cv.plan_share(0.1, response=0.8, epsilons=[0.5, 1, 2, 3], people=[])

    assert np.allclose([one.design_effect for one in planned.needed], [83.2, 17.9, 3.9, 1.8, 1.0], rtol=0.02)


@pytest.mark.parametrize("participation", ["protected", "public"])
def test_sets_of_labels_need_fewer_people(participation: Participation) -> None:
    """Of many labels and a small epsilon reports are sets of labels; no plan needs more people than single labels."""
    fewer = []
    for labels in (2, 3, 5, 10):
        sets, single = (
            cv.plan_share(
                1 / labels,
                response=0.8,
                labels=labels,
                epsilons=[0.25, 1, 3],
                people=[],
                mechanism=one,
                participation=participation,
            )
            for one in (None, "randomized-response")
        )
        for own, other in zip(sets.needed, single.needed, strict=True):
            assert (own.design_effect < other.design_effect) == (own.mechanism == "subset-selection")
            assert own.design_effect <= other.design_effect
            fewer += [(labels, own.epsilon)] * (own.mechanism == "subset-selection")
        assert any("a set of labels" in text for text in sets.sentences()) == any(labels == one for one, _ in fewer)

    assert [(5, 0.25), (10, 0.25), (10, 1.0)] == fewer


@pytest.mark.slow
@pytest.mark.parametrize(("share", "response", "people", "epsilon", "labels", "participation"), SIMULATED, ids=str)
def test_half_widths_of_simulated_surveys(
    share: float, response: float, people: int, epsilon: float, labels: int, participation: Participation
) -> None:
    """The mean half-width of the intervals of 1,000 simulated surveys is within 3 % of the expected one."""
    planned = cv.plan_share(
        share, people=[people], epsilons=[epsilon], response=response, labels=labels, participation=participation
    )
    hidden = participation == "protected"
    names = cv.Categories(tuple(f"l{place}" for place in range(labels)))
    single = cv.RandomizedResponse(alphabet=names, epsilon=epsilon, participation=participation)
    table = mechanism_for_shares(single, response).channel().probabilities
    answers = np.array([share, *[(1 - share) / (labels - 1)] * (labels - 1)])
    cells = np.append(response * answers, 1 - response) if hidden else answers
    draw: Any = np.random.default_rng(44)
    sent = people if hidden else draw.binomial(people, response, size=1_000)
    found = score_estimates(draw.multinomial(sent, cells @ table, size=1_000).astype(float), table, labels,
                            np.full(len(cells), 0.95))  # fmt: skip
    simulated = (found.high - found.low)[:, 0].mean() / 2

    assert planned.rows[0].half_width == pytest.approx(simulated, rel=0.03)


def test_half_width_near_zero_is_below_that_of_the_formula() -> None:
    """Of a share of 10 % four hundred people show about 1 to 24 % at epsilon 1: less than the formula, ± .139."""
    (row, _) = cv.plan_share(0.1, people=[400], epsilons=[1], response=0.8)

    assert row.half_width == pytest.approx(0.114, rel=0.03)
    assert row.high == pytest.approx(0.24, abs=0.01)


def test_people_near_zero_meet_the_half_width() -> None:
    """Where intervals are cut at 0, the number of people is searched in simulated surveys, not by the formula."""
    planned = cv.plan_share(0.02, epsilons=[1], half_width=0.1, people=[])
    found = planned.needed[0].people
    assert found is not None
    (row, _) = cv.plan_share(0.02, epsilons=[1], people=[found])

    assert row.half_width == pytest.approx(0.1, rel=0.03)


def test_plans_of_shares_as_values() -> None:
    """A plan has a table, JSON values, sentences and a picture; unprotected answers have no epsilon in JSON."""
    planned = cv.plan_share(0.3, people=[100, 400], epsilons=[1, 2], half_width=0.05)

    assert planned.to_arrow().num_rows == len(list(planned)) == 6
    assert [one["epsilon"] for one in planned.to_json()["needed"]] == [1.0, 2.0, None]
    assert "without protection" in planned.sentences()[0]
    assert "400 people" in planned.picture()
    assert "400 people, epsilon 2" in str(planned)
    assert "Plan of a share" in planned._repr_html_()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"share": 1}, "share must be above 0 and below 1"),
        ({"response": 0}, "the response rate must be above 0 and at most 1, got 0. Such as response=0.8."),
        ({"half_width": 2.0}, "the half-width must be above 0"),
        ({"level": 95}, "level must be above 0 and below 1"),
        ({"people": [0]}, "people must be a whole number from 2 to 100,000,000, got 0. Such as people=\\[400]."),
        ({"people": 400}, "people must be a list"),
        ({"labels": 1}, "labels must be at least 2"),
        ({"epsilons": []}, "epsilons must not be empty"),
        ({"epsilons": [0]}, "epsilon must be"),
        ({"mechanism": "laplace"}, "mechanism must be 'randomized-response' or 'subset-selection', got 'laplace'"),
    ],
)
def test_refused_plans_of_shares(settings: dict[str, Any], message: str) -> None:
    """Numbers out of range are refused with the rule."""
    with pytest.raises(SettingsError, match=message):
        cv.plan_share(**{"share": 0.3} | settings)


@pytest.mark.parametrize("labels", range(2, 9))
@pytest.mark.parametrize("response", [0.01, 1.0])
@pytest.mark.parametrize("participation", ["protected", "public"])
def test_plans_of_any_number_of_labels(labels: int, response: float, participation: Participation) -> None:
    """Intervals hold the planned share, and do not widen with people, within the error of the draws."""
    planned = cv.plan_share(
        0.2, people=[2, 1_000], epsilons=[1e-6, 1, 8], labels=labels, response=response, participation=participation
    )

    assert all(0 <= row.low <= 0.2 <= row.high <= 1 for row in planned)
    few, many = planned.rows[:4], planned.rows[4:]
    assert all(one.half_width >= other.half_width - 1e-3 for one, other in zip(few, many, strict=True))
    assert all(one.design_effect >= 1 - 1e-9 for one in planned.needed)


def test_a_half_width_out_of_reach_is_said() -> None:
    """More people than there may be are no number; factors have no exponent."""
    planned = cv.plan_share(0.3, people=[], epsilons=[1e-6, 0.1, 1], half_width=0.0001)
    needed, factors, sure = planned.sentences()

    assert "ask more than 100,000,000 people at epsilon 1e-06" in needed
    assert None is planned.needed[0].people
    assert "these factors: more than 1,000,000 at epsilon 1e-06, 736 at epsilon 0.1, 6.9 at epsilon 1." in factors
    assert "50.1 % at epsilon 1e-06, 52.5 % at epsilon 0.1, 73.2 % at epsilon 1." in sure


def test_the_picture_of_one_epsilon_has_the_usual_ones_too() -> None:
    """One planned point is a dashed line; the line of its number of people goes through five epsilons and its own."""
    (row, _) = (planned := cv.plan_share(0.2, people=[400], epsilons=[1.5])).rows
    picture = planned.picture()

    assert f"epsilon 1.5: ± {100 * row.half_width:.1f}" in picture
    assert 6 == picture.count("<circle")
    assert f"{100 * row.half_width:.3g} at 1.5" in picture
    assert 3 == cv.plan_share(0.2, people=[400], epsilons=[1, 2, 3]).picture().count("<circle")


def test_a_plan_without_people_has_no_picture() -> None:
    """A picture is of numbers of people."""
    with pytest.raises(SettingsError, match="a picture needs numbers of people"):
        cv.plan_share(0.3, people=[]).picture()


def test_the_picture_of_one_epsilon_keeps_the_mechanism() -> None:
    """The usual epsilons beside the planned one are of the same mechanism."""
    single, better = (
        cv.plan_share(0.2, people=[400], epsilons=[0.5], labels=10, mechanism=one)
        for one in ("randomized-response", None)
    )

    assert single.rows[0].half_width > better.rows[0].half_width
    assert single.picture() != better.picture()
    assert single.picture().count("<circle") == better.picture().count("<circle")
