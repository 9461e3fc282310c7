"""Pilots: their estimates, the crowds that share mistakes, and the replays from which these are learned."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments.utility.pilots import coverage, fitted, rows

from crowdveil import Reports, Scale
from crowdveil.errors import CrowdveilError
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.planning import Pilot, predict, with_pilot
from crowdveil.planning.plan import more_workers
from crowdveil.planning.shared_mistakes import SETS, SharedMistakes
from crowdveil.randomness import seeded
from tests.planning.campaigns import of_labels, of_numbers

PAGE = (Path(__file__).parents[2] / "experiments" / "utility" / "README.md").read_text("utf-8")
CAMPAIGN = of_labels(labels=2, tasks=400, workers=60, rate=0.2, abilities=(0.6, 0.8, 0.9))
CROWD = CAMPAIGN.crowd.simulate(workers=60, tasks=50, rate=0.2, source=seeded(3))


def gold(mistakes: int) -> dict[str, object]:
    """Return the truths of the simulated crowd, with another truth for the first tasks."""
    truths = {str(task): str(truth) for task, truth in CROWD.gold.items()}
    other = {"a": "b", "b": "a"}
    return {task: other[truth] if number < mistakes else truth for number, (task, truth) in enumerate(truths.items())}


def test_the_population_is_that_of_the_experiment() -> None:
    """`SETS` follows from the results of the replays, set by set."""
    found = rows()

    assert list(SETS) == [fitted(one.name, found) for one in SETS]


@pytest.mark.parametrize(("with_gold", "line"), [("yes", "pilot with gold"), ("no", "pilot without gold")])
def test_coverage_of_left_out_sets_is_documented(with_gold: str, line: str) -> None:
    """Predicted from the other sets, about nine of ten errors lie inside, at the documented mean width."""
    found = coverage(rows(), SETS, with_gold)
    figures = f"{found.inside} of {found.every} | {found.width:.3f} | {found.bias:.3f} | {found.distance:.3f}"

    assert f"| {line}, level 0.95 | {figures} |" in PAGE
    assert {"yes": 181, "no": 178}[with_gold] == found.inside


@pytest.mark.parametrize("one", SETS)
def test_every_set_is_documented(one: object) -> None:
    """The documented table has the share, the shift and the residual of each set."""
    assert f"| {' | '.join(map(str, vars_of(one)))} |" in PAGE


def vars_of(one: object) -> list[object]:
    """Return the fields of a set."""
    return [getattr(one, name) for name in ("name", "share", "shift", "residual")]


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
    blind, few, many = (with_pilot(CAMPAIGN, Pilot.of(CROWD.answers, one)) for one in (None, gold(1), gold(15)))
    found = [predict(one, None) for one in (blind, few, many)]
    widths = [one.real_high - one.real_low for one in found]

    assert widths[1] < widths[0]
    assert found[1].error < found[0].error < found[2].error
    assert found[1].real_high < 0.3 < found[2].error
    assert all(one.real_low <= one.error <= one.real_high for one in found)


def test_more_workers_do_not_correct_shared_mistakes() -> None:
    """A target below the shared mistakes is out of reach of any number of workers; one without them is not."""
    mechanism = RandomizedResponse(alphabet=CAMPAIGN.crowd.alphabet, epsilon=1.0)
    piloted = with_pilot(CAMPAIGN, Pilot.of(CROWD.answers, gold(15)))
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
    with pytest.raises(CrowdveilError, match="answers of a pilot are labels"):
        Pilot.of(numbers)
    with pytest.raises(CrowdveilError, match="truths of its tasks"):
        Pilot.of(CROWD.answers, {"another": "a"})
    with pytest.raises(CrowdveilError, match="each one of the labels"):
        Pilot.of(CROWD.answers, {"1": "z"})
    for other in (of_labels(), of_numbers()):
        with pytest.raises(CrowdveilError, match="labels of the campaign"):
            with_pilot(other, Pilot.of(CROWD.answers))
