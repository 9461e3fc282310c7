"""A plan by one call: the plan of the command, from what is stated."""

from typing import Any

import pytest

import crowdveil
from crowdveil import Categories, Scale
from crowdveil.errors import CrowdveilError
from crowdveil.planning.plan_sentences import finding_sentences

LABELS = Categories(("no", "yes"))
SIZE: dict[str, Any] = {"workers": 30, "tasks": 60, "participation_rate": 1.0}


def test_a_stated_prior_is_public() -> None:
    """With a prior the best constant is its largest label, and a prior of other labels is refused."""
    found = crowdveil.plan(LABELS, **SIZE, epsilons=[1], prior={"no": 0.8, "yes": 0.2})

    assert 0.2 == pytest.approx(found.constant_error)
    assert found.campaign.prior_public
    with pytest.raises(CrowdveilError, match=r"a probability to each of the labels no, yes.*maybe"):
        crowdveil.plan(LABELS, **SIZE, prior={"no": 0.8, "maybe": 0.2})


@pytest.mark.slow
def test_numbers_are_planned_by_their_deviations() -> None:
    """On a scale the error is a distance, and more epsilon never needs more of it."""
    found = crowdveil.plan(
        Scale(0, 10, 1), workers=30, tasks=40, participation_rate=1.0, epsilons=[1, 8], sigmas=[1.0, 2.0]
    )

    assert "mae" == found.campaign.crowd.error_name
    assert found.best.epsilon == 8
    assert found.best.prediction.error < found.constant_error


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"epsilons": []}, {"target": -1.0}, {"participation_rate": 2.0}])
def test_what_no_plan_can_be_is_refused(wrong: dict[str, object]) -> None:
    """Sizes, epsilons, targets and rates out of range name their rule."""
    with pytest.raises(CrowdveilError):
        crowdveil.plan(LABELS, **{**SIZE, **wrong})


def test_a_plan_prints_its_advice_and_a_line_for_each_row() -> None:
    """The text of a plan has no arrays: what to use, the size, and expected errors."""
    found = crowdveil.plan(LABELS, **SIZE, epsilons=[1, 2])
    advice, size, *rows = str(found).splitlines()

    assert advice.endswith(f"target {found.target:g}.")
    assert "30 workers, 60 tasks, participation protected" == size
    assert len(found.results) + 1 == len(rows)


@pytest.mark.parametrize(("tasks", "weak"), [(50, True), (1, False)])
def test_a_plan_says_when_the_loss_of_a_worker_promises_nothing(tasks: int, weak: bool) -> None:
    """Epsilon 150 of a worker is recommended with what it means and what lowers it; epsilon 3 without a warning."""
    sizes: Any = {"workers": 60, "tasks": tasks, "participation_rate": 1.0, "epsilons": [3.0], "target": 0.4}
    sentences = " ".join(finding_sentences(crowdveil.plan(LABELS, **sizes)))

    assert f"{3 * tasks} per worker" in sentences or tasks == 1
    assert weak == ("practically certain of either after all reports" in sentences)
    assert weak == ("more workers (assigned_per_task)" in sentences)
