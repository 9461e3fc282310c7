"""Decisions by expected cost and confidence, against loops over labels."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories
from crowdveil.data.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import DawidSkene, StudentT
from crowdveil.evaluation.decisions import decide, decision_notes, read_costs

LABELS = Categories(("no", "yes", "maybe"))


def estimate(seed: int = 1) -> Estimate:
    """Fit of random answers to 12 tasks."""
    source = np.random.default_rng(seed)
    task, worker = (column.ravel() for column in np.indices((12, 5)))
    return DawidSkene().fit(
        Reports.from_arrays(task, worker, source.choice(LABELS.names, 60, p=(0.5, 0.3, 0.2)), alphabet=LABELS)
    )


@pytest.mark.slow
@given(seed=st.integers(0, 1000))
def test_the_decision_has_the_least_expected_cost(seed: int) -> None:
    """Each decision and its expected cost are those of a search of all labels."""
    costs = np.random.default_rng(seed).random((3, 3))
    found = estimate(seed)
    decided = decide(found, costs=costs)

    for task, row in enumerate(found.posterior):
        expected = [sum(row[z] * costs[z, d] for z in range(3)) for d in range(3)]
        assert LABELS.names[int(np.argmin(expected))] == decided.truth[task]
        assert decided.expected_cost is not None
        assert decided.confidence is not None
        assert min(expected) == pytest.approx(decided.expected_cost[task])
        assert row[int(np.argmin(expected))] == decided.confidence[task]


def test_equal_costs_decide_for_the_most_probable_label() -> None:
    """0-1 costs change nothing, and without settings neither do decisions."""
    found = estimate()

    assert found.truth.tolist() == decide(found, costs=1 - np.eye(3)).truth.tolist()
    assert found.truth.tolist() == decide(found).truth.tolist()


def test_unsure_tasks_stay_undecided() -> None:
    """Below the confidence the truth is empty, in columns and in tables; probabilities stay."""
    found = estimate()
    assert found.confidence is not None
    bound = float(np.median(found.confidence))
    decided = decide(found, abstain_below=bound)
    empty = found.confidence < bound

    assert ["" if none else truth for truth, none in zip(found.truth, empty, strict=True)] == decided.truth.tolist()
    assert int(empty.sum()) == decided.tasks_frame()["truth"].null_count
    assert [part.truth.tolist() for part in decided.parts()] == [decided.truth.tolist()]
    assert decision_notes(decided, None, None)[0].startswith(f"{int(empty.sum())} of 12 tasks stay undecided")


def test_decisions_are_scored_by_error_and_cost() -> None:
    """Notes name the error of decided tasks and the mean costs of decisions and of the most probable labels."""
    found, costs = estimate(), np.array([[0, 9, 9], [1, 0, 9], [1, 9, 0.0]])
    gold = {task: LABELS.names[task % 3] for task in range(12)}
    decided = decide(found, costs=costs)
    truth = np.arange(12) % 3
    probable = costs[truth, found.posterior.argmax(axis=1)].mean()
    notes = decision_notes(decided, {str(task): label for task, label in gold.items()}, costs)

    assert f"{(decided.decisions != truth).mean():.4f} are wrong" in notes[0]
    assert f"{costs[truth, decided.decisions].mean():.4g}" in notes[1]
    assert f"{probable:.4g}" in notes[1]


def test_costs_are_read_by_label(tmp_path: Path) -> None:
    """The order of rows and columns has no effect; equal labels cost 0 unless listed."""
    pairs = [(z, d) for z in LABELS.names for d in LABELS.names if z != d]
    rows = "".join(f"{place},{d},{z}\n" for place, (z, d) in reversed(list(enumerate(pairs, 1))))
    (tmp_path / "costs.csv").write_text("cost,decision,truth\n" + rows)

    assert [[0, 1, 2], [3, 0, 4], [5, 6, 0]] == read_costs(tmp_path / "costs.csv", LABELS).tolist()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("no,never,1", "among"),
        ("no,yes,-1", "from 0"),
        ("no,yes,x", "from 0"),
        ("no,yes,1\nno,yes,2", "one cost"),
        ("no,yes,1", "every pair"),
    ],
)
def test_wrong_costs_are_refused(rows: str, message: str, tmp_path: Path) -> None:
    """Unknown labels, negative costs, repeated and missing pairs are refused."""
    (tmp_path / "costs.csv").write_text(f"truth,decision,cost\n{rows}\n")
    with pytest.raises(ReportsError, match=message):
        read_costs(tmp_path / "costs.csv", LABELS)


def test_only_labels_with_probabilities_are_decided() -> None:
    """Numbers, other shapes of costs, and confidences outside [0, 1] are refused."""
    numbers = StudentT().fit(Reports.from_arrays([1, 1, 2], ["a", "b", "a"], [1.0, 2.0, 3.0], numeric=True))
    for found, settings in (
        (numbers, {"abstain_below": 0.5}),
        (estimate(), {"abstain_below": 1.5}),
        (estimate(), {"costs": np.ones((2, 2))}),
        (estimate(), {"costs": -np.ones((3, 3))}),
    ):
        with pytest.raises(SettingsError):
            decide(found, **settings)  # type: ignore[arg-type]
