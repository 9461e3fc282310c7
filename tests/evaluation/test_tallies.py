"""Scores that are put together from parts."""

import dataclasses

import numpy as np
import pytest

from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.em.estimate import Estimate, WorkerTable
from crowdveil.evaluation.gold import usual_error
from crowdveil.evaluation.metrics import Score, score
from crowdveil.evaluation.streaming_metrics import Tally

TASKS = 60
ALPHABETS: dict[str, Alphabet | None] = {
    "labels": Categories(("b", "a", "c")),
    "points": Scale(0, 2, 1),
    "numbers": None,
}


def estimate_of(kind: str) -> Estimate:
    """Return an estimate with ties, and with tasks without reports."""
    rng = np.random.default_rng(4)
    posterior = rng.integers(0, 3, (TASKS, 3)) + 0.5
    posterior = posterior / posterior.sum(axis=1, keepdims=True)
    reports = rng.integers(0, 3, TASKS)
    if kind == "numbers":
        posterior = np.where(reports > 0, 100 + rng.normal(size=TASKS), np.nan)
    workers = WorkerTable(np.ones(1), "ability")
    names = np.array([f"t{task:02}" for task in range(TASKS)])
    crowd = (np.array(["w"]), workers, np.array([3]))
    return Estimate("m", ALPHABETS[kind], names, posterior, reports, *crowd, (), 1, True, False, 0, 0)


def truths_of(kind: str) -> list[object]:
    """Return a truth of each task."""
    drawn = np.random.default_rng(5).integers(0, 3, TASKS)
    return [("b", "a", "c")[code] for code in drawn] if kind == "labels" else [float(code) for code in drawn]


def short_slices(kind: str, truths: list[object], parts: int) -> Score:
    """Score part by part."""
    estimate, total = estimate_of(kind), None
    for at in np.array_split(np.arange(TASKS), parts):
        found = Tally.of(estimate, at, [truths[task] for task in at])
        total = found if total is None else total + found
    assert total is not None
    return total.score(usual_error(estimate), 0)


def assert_alike(left: Score, right: Score) -> None:
    """Assert that two scores are the same but for rounding."""
    for one, other in zip(dataclasses.astuple(left), dataclasses.astuple(right), strict=True):
        assert one == (pytest.approx(other, abs=1e-12) if isinstance(other, float) else other)


@pytest.mark.parametrize("kind", ALPHABETS)
@pytest.mark.parametrize("parts", [1, 4, TASKS])
def test_parts_score_as_the_whole(kind: str, parts: int) -> None:
    """Whatever the parts, even single tasks, the score of all tasks comes out: ties, silence and constant included."""
    truths, estimate = truths_of(kind), estimate_of(kind)

    assert_alike(short_slices(kind, truths, parts), score(estimate, dict(zip(estimate.tasks, truths, strict=True))))


@pytest.mark.parametrize("kind", ALPHABETS)
def test_a_constant_side_has_no_correlation(kind: str) -> None:
    """Where all truths are alike the correlation is 0, and the constant is never wrong."""
    found = short_slices(kind, truths_of(kind)[:1] * TASKS, 7)

    assert (0.0, 0.0) == (found.correlation, found.baseline)
