"""Assumed crowds, coarser scales, groups of tasks, and pilots that share mistakes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments.utility.pilots import coverage, fitted, rows
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil import Reports
from crowdveil.channels.alphabet import Scale
from crowdveil.errors import CrowdveilError, SettingsError
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.planning import (
    Pilot,
    beta_abilities,
    coarsen_prior,
    coarsen_scale,
    predict_campaign_error,
    with_crowd_of_pilot,
)
from crowdveil.planning.plan import more_workers
from crowdveil.planning.population import NumberCrowd
from crowdveil.planning.shared_mistakes import SETS, SharedMistakes
from crowdveil.randomness import seeded
from tests.planning.campaigns import SCALE, of_labels, of_numbers


@pytest.mark.parametrize("mean", [0.55, 0.75, 0.9])
def test_abilities_have_the_mean_and_the_spread_of_their_beta_distribution(mean: float) -> None:
    """The mean is the given one; the deviation is that of Beta(concentration 10), less the loss by seven classes."""
    found = np.array(beta_abilities(mean))

    assert found.mean() == pytest.approx(mean, abs=1e-3)
    assert 0.85 < found.std() / np.sqrt(mean * (1 - mean) / 11) < 1


def test_an_ability_is_a_probability() -> None:
    """Ability 1 is a single class; numbers outside 0 to 1 are refused."""
    assert beta_abilities(1) == (1.0,)
    with pytest.raises(SettingsError, match=r"must be in \[0, 1\], got 1.2"):
        beta_abilities(1.2)


def test_the_grid_of_truths_has_the_prior() -> None:
    """Weights of the points that round to a label sum to its probability, and drawn truths follow them.

    40,000 truths: shares within 5 standard errors (false alarm below 1e-5).
    """
    crowd = of_numbers().crowd
    assert isinstance(crowd, NumberCrowd)
    by_label = np.bincount(SCALE.encode(crowd.grid_of_truths), weights=crowd.truth_probabilities)
    drawn = np.bincount(SCALE.encode(crowd.draw_truths(seeded(3).generator, 40_000))) / 40_000

    np.testing.assert_allclose(by_label, crowd.prior, atol=1e-12)
    assert (np.abs(drawn - crowd.prior) < 5 * np.sqrt(crowd.prior / 40_000)).all()
    assert crowd.grid_of_truths[0] > SCALE.low - 1.5 * SCALE.step
    assert crowd.grid_of_truths[-1] < SCALE.high + 1.5 * SCALE.step


def test_the_constant_is_optimal() -> None:
    """No constant has a smaller expected error than `constant_error`."""
    labels, numbers = of_labels(prior=(0.2, 0.7, 0.1)).crowd, of_numbers().crowd
    assert isinstance(numbers, NumberCrowd)
    inside = np.clip(numbers.grid_of_truths, 0, 4)
    errors = [float(numbers.truth_probabilities @ np.abs(inside - constant)) for constant in np.linspace(0, 4, 401)]

    assert labels.constant_error == pytest.approx(0.3)
    assert numbers.constant_error == pytest.approx(min(errors), abs=0.01)


def test_losses_are_mistakes_and_distances() -> None:
    """A certain posterior on the truth has no loss; elsewhere the loss is one mistake, or the distance."""
    labels, numbers = of_labels().crowd, of_numbers().crowd
    assert isinstance(numbers, NumberCrowd)
    certain = np.where(np.eye(3, dtype=bool), 0.0, -1e3)
    at = np.where(np.eye(len(numbers.grid_of_truths), dtype=bool), 0.0, -1e3)
    truths = np.clip(numbers.grid_of_truths, 0, 4)

    assert labels.losses(certain, np.array([0, 1, 1])).tolist() == [0, 0, 1]
    assert labels.posterior_expected_losses(certain, np.array([0, 1, 1])).tolist() == [0, 0, 0]
    np.testing.assert_allclose(numbers.losses(at, np.full(len(at), 1.0)), np.abs(truths - 1.0), atol=1e-9)


def test_mistakes_of_ordered_labels_are_near() -> None:
    """Abilities are on the diagonal, and each label farther off is half as likely: by loops, and in 40,000 answers.

    Shares within 5 standard errors (false alarm below 1e-4).
    """
    crowd = of_labels(labels=4, ordered=True, abilities=(0.7,), tasks=200, workers=200, rate=1.0).crowd
    expected = np.zeros((4, 4))
    for truth in range(4):
        mistakes = {answer: 0.5 ** abs(answer - truth) for answer in range(4) if answer != truth}
        for answer, weight in mistakes.items():
            expected[truth, answer] = 0.3 * weight / sum(mistakes.values())
        expected[truth, truth] = 0.7
    made = crowd.simulate(workers=200, tasks=200, rate=1.0, source=seeded(4))
    counts = np.zeros((4, 4))
    np.add.at(counts, (crowd.truths_of(made)[made.answers.task].astype(int), made.answers.value), 1)
    sizes = counts.sum(axis=1, keepdims=True)

    np.testing.assert_allclose(crowd.answer_probabilities()[0], expected, atol=1e-12)
    assert (np.abs(counts / sizes - expected) < 5 * np.sqrt(expected / sizes)).all()


@pytest.mark.parametrize(
    ("scale", "sigma", "planned_on"),
    [
        (Scale(0, 20), 2.0, Scale(0, 20)),
        (Scale(0, 100), 10.0, Scale(0, 100, 5)),
        (Scale(0, 30), 3.0, Scale(0, 30, 2)),
        (Scale(0, 100), 1.0, Scale(0, 100, 2)),
    ],
)
def test_long_scales_are_planned_on_at_most_21_labels(scale: Scale, sigma: float, planned_on: Scale) -> None:
    """Ends stay, steps are multiples if possible, and precise workers get a finer scale."""
    assert coarsen_scale(scale, sigma) == planned_on


@settings(max_examples=60, derandomize=True)
@given(steps=st.integers(21, 200), low=st.integers(-9, 9), step=st.sampled_from([0.1, 0.25, 1.0, 3.0]))
def test_every_long_scale_has_a_coarser_one(steps: int, low: int, step: float) -> None:
    """Scales of any length have a coarser scale with the same ends."""
    scale = Scale(low, round(low + steps * step, 6), step)
    found = coarsen_scale(scale, scale.range / 10)
    assert 11 <= found.size <= 21
    assert (found.low, found.high) == (scale.low, scale.high)


def test_a_coarser_prior_sums_what_rounds_to_a_label() -> None:
    """A coarser label gets the probability of all numbers that round to it, computed by loops over a fine grid."""
    scale, coarse = Scale(0, 40), Scale(0, 40, 2)
    prior = np.random.default_rng(5).dirichlet(np.ones(41))
    expected = np.zeros(21)
    for label, share in enumerate(prior):
        for place in range(100):
            number = scale.values[label] + (place + 0.5) / 100 - 0.5
            expected[int(np.argmin(np.abs(coarse.values - number)))] += share / 100
    np.testing.assert_allclose(coarsen_prior(prior, scale, coarse), expected, atol=1e-12)


PAGE = (Path(__file__).parents[2] / "experiments" / "utility" / "README.md").read_text("utf-8")
CAMPAIGN = of_labels(labels=2, tasks=400, workers=60, rate=0.2, abilities=(0.6, 0.8, 0.9))
CROWD = CAMPAIGN.crowd.simulate(workers=60, tasks=50, rate=0.2, source=seeded(3))


def gold(mistakes: int) -> dict[str, object]:
    """Return the truths of the simulated crowd, with another truth for the first tasks."""
    truths = {str(task): str(truth) for task, truth in CROWD.gold.items()}
    other = {"a": "b", "b": "a"}
    return {task: other[truth] if number < mistakes else truth for number, (task, truth) in enumerate(truths.items())}


def test_the_population_is_that_of_the_experiment() -> None:
    """`SETS` follows from the results of the replays, set by set, and is documented."""
    found = rows()

    assert list(SETS) == [fitted(one.name, found) for one in SETS]
    for one in SETS:
        assert f"| {one.name} | {one.share} | {one.shift} | {one.residual} |" in PAGE


@pytest.mark.parametrize(("with_gold", "line"), [("yes", "pilot with gold"), ("no", "pilot without gold")])
def test_coverage_of_left_out_sets_is_documented(with_gold: str, line: str) -> None:
    """Predicted from the other sets, about nine of ten errors lie inside, at the documented mean width."""
    found = coverage(rows(), SETS, with_gold)
    figures = f"{found.inside} of {found.every} | {found.width:.3f} | {found.bias:.3f} | {found.distance:.3f}"

    assert f"| {line}, level 0.95 | {figures} |" in PAGE
    assert {"yes": 181, "no": 178}[with_gold] == found.inside


def test_a_pilot_finds_the_ability_from_answers_alone() -> None:
    """The mean ability of the simulated workers is found within .05, and labels within .1."""
    pilot = Pilot.of(CROWD.answers)
    right = np.array(["ab".index(str(truth)) for truth in CROWD.truth])[CROWD.answers.task] == CROWD.answers.value

    assert right.mean() == pytest.approx(pilot.ability, abs=0.05)
    assert [0.5, 0.5] == pytest.approx(pilot.shares.tolist(), abs=0.1)
    assert (50, 60, 0) == (pilot.tasks, pilot.workers, pilot.known)
    assert pilot.wrong is None


def test_shared_mistakes_are_learned_from_gold() -> None:
    """With more wrong tasks the expected error is larger, and gold narrows the interval of the same answers."""
    blind, few, many = (
        with_crowd_of_pilot(CAMPAIGN, Pilot.of(CROWD.answers, one)) for one in (None, gold(1), gold(15))
    )
    found = [predict_campaign_error(one, None) for one in (blind, few, many)]
    widths = [one.real_high - one.real_low for one in found]

    assert widths[1] < widths[0]
    assert found[1].error < found[0].error < found[2].error
    assert found[1].real_high < 0.3 < found[2].error
    assert all(one.real_low <= one.error <= one.real_high for one in found)


def test_more_workers_do_not_correct_shared_mistakes() -> None:
    """A target below the shared mistakes is out of reach of any number of workers; one without them is not."""
    mechanism = RandomizedResponse(alphabet=CAMPAIGN.crowd.alphabet, epsilon=1.0)
    piloted = with_crowd_of_pilot(CAMPAIGN, Pilot.of(CROWD.answers, gold(15)))
    found = [more_workers(one, mechanism.name, mechanism, 0.5, 0.05) for one in (CAMPAIGN, piloted)]

    assert found[0] is not None
    assert found[1] is None


def test_a_population_without_mistakes_leaves_the_planned_error() -> None:
    """With shares near 0, no shift and no residual, the expected error is that of the crowd as planned."""
    sets = tuple(replace(one, share=1e-6, shift=0.0, residual=0.0) for one in SETS)
    pilot = replace(Pilot.of(CROWD.answers), tasks=10**6, shares=np.array([0.5, 0.5]))
    error, low, high = SharedMistakes(pilot=pilot, relative=0.1, sets=sets).expected_error_interval(0.2, 10**6)

    assert 0.1 == pytest.approx(error, abs=2e-3)
    assert (0.1, 0.1) == pytest.approx((low, high), abs=3e-3)


def test_wrong_pilots_are_refused() -> None:
    """Numbers, gold of other tasks or labels, and a pilot of other labels name their rule."""
    numbers = Reports.from_arrays(task=[1, 1], worker=[1, 2], value=[1.0, 2.0], alphabet=Scale(0, 4))
    with pytest.raises(CrowdveilError, match="answers of a pilot must be labels"):
        Pilot.of(numbers)
    with pytest.raises(CrowdveilError, match="truths of its tasks"):
        Pilot.of(CROWD.answers, {"another": "a"})
    with pytest.raises(CrowdveilError, match="each one of the labels"):
        Pilot.of(CROWD.answers, {"1": "z"})
    for other in (of_labels(), of_numbers()):
        with pytest.raises(CrowdveilError, match="labels of the campaign"):
            with_crowd_of_pilot(other, Pilot.of(CROWD.answers))
