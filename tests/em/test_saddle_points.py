"""Equally supported solutions share the posterior, and names of tasks, workers and labels decide nothing."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from crowdveil import DawidSkene, Estimate, OneCoin, RandomizedResponse, Reports
from crowdveil.channels.alphabet import Categories
from crowdveil.estimators import Estimator
from crowdveil.published import PrivateDawidSkene

Table = tuple[tuple[int, ...], ...]
METHODS: tuple[Estimator[Any, Any], ...] = (DawidSkene(), OneCoin(), PrivateDawidSkene())
NOTHING = -1
THREE_ENDS: Table = ((1, 1, 0), (1, 0, 1), (0, 1, 1))
"""Reports by task and worker: renaming tasks and workers alike changes nothing, so no task differs from the others."""
NEARLY_SAME: Table = ((0, 0, 1, 0), (0, 1, 0, 0))


def fitted(method: Estimator[Any, Any], table: Table, labels: int, **channel: Any) -> Estimate:
    """Fit reports that are given by task and worker."""
    array = np.array(table)
    task, worker = np.nonzero(array != NOTHING)
    names = Categories(tuple("abc"[:labels]))
    reports = Reports(task, worker, array[task, worker], np.arange(len(array)), np.arange(array.shape[1]), names)
    return method.fit(reports, **channel)


@st.composite
def renamed_tables(draw: st.DrawFn) -> tuple[Table, tuple[list[int], list[int], list[int]]]:
    """Draw a small table, and a permutation each of its tasks, workers and labels."""
    tasks, workers, labels = draw(st.integers(2, 4)), draw(st.integers(2, 4)), draw(st.integers(2, 3))
    rows = st.lists(st.integers(NOTHING, labels - 1), min_size=workers, max_size=workers).map(tuple)
    table = tuple(draw(st.lists(rows, min_size=tasks, max_size=tasks)))
    return table, tuple(draw(st.permutations(range(size))) for size in (tasks, workers, labels))  # type: ignore[return-value]


def renamed(table: Table, names: tuple[list[int], list[int], list[int]]) -> Table:
    """Return the same reports with other numbers for tasks, workers and labels."""
    array = np.array(table)
    task, worker = np.nonzero(array != NOTHING)
    other = np.full(array.shape, NOTHING)
    other[np.array(names[0])[task], np.array(names[1])[worker]] = np.array(names[2])[array[task, worker]]
    return tuple(map(tuple, other.tolist()))


def named_as_before(posterior: NDArray[np.float64], names: tuple[list[int], list[int], list[int]]) -> Any:
    """Return a posterior of renamed reports in the old order of tasks and labels."""
    return posterior[names[0]][:, names[2]]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [None, 3.0])
def test_six_equally_likely_solutions_share_every_task(epsilon: float | None) -> None:
    """Where every solution has an equally likely mirror image, no label of any task has more than one half."""
    mechanism = (
        None
        if epsilon is None
        else RandomizedResponse(alphabet=Categories(("a", "b")), epsilon=epsilon, participation="public")
    )
    channel = {} if mechanism is None else {"channel": mechanism.channel()}
    estimate = fitted(DawidSkene(), THREE_ENDS, 2, **channel)

    np.testing.assert_allclose(estimate.posterior[1:], estimate.posterior[:1].repeat(2, axis=0), atol=1e-4)
    if mechanism is None:
        np.testing.assert_allclose(0.5, estimate.posterior, atol=1e-4)


@pytest.mark.slow
def test_two_equally_likely_solutions_are_averaged() -> None:
    """Two tasks whose labels can be exchanged have posterior one half each, and the likelihood of the best optima."""
    estimate = fitted(DawidSkene(), NEARLY_SAME, 2)

    np.testing.assert_allclose(0.5, estimate.posterior, atol=1e-4)
    assert estimate.log_likelihoods[-1] == pytest.approx(-1.8357, abs=1e-4)
    assert estimate.workers.confusion is not None
    np.testing.assert_allclose(1, estimate.workers.confusion.sum(axis=2))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@given(case=renamed_tables())
@example(case=(THREE_ENDS, ([1, 2, 0], [0, 2, 1], [1, 0])))
@example(case=(NEARLY_SAME, ([0, 1], [3, 1, 0, 2], [0, 1])))
@settings(max_examples=15, deadline=None)
def test_other_names_change_no_posterior(
    method: Estimator[Any, Any], case: tuple[Table, tuple[list[int], list[int], list[int]]]
) -> None:
    """No posterior depends on the names of tasks, workers and labels by more than 0.2: a saddle may hold or not."""
    table, names = case
    assume(any(cell != NOTHING for row in table for cell in row))
    labels = len(names[2])
    one, other = fitted(method, table, labels), fitted(method, renamed(table, names), labels)
    assume(one.converged and other.converged)

    np.testing.assert_allclose(one.posterior, named_as_before(other.posterior, names), atol=0.2)
