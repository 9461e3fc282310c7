"""Groups of tasks by their posterior: a stated rule, a floor on every label, and at most twelve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from crowdveil.planning.posterior_groups import FLOOR, MOST_GROUPS, posterior_groups


@given(arrays.arrays(float, st.tuples(st.integers(1, 40), st.integers(2, 6)), elements=st.floats(0, 1)))
def test_every_task_has_a_group_and_every_label_a_floor(weights):
    """Groups are numbered from 0 without gaps; each prior is a distribution in which no label is ruled out."""
    posterior = (weights + 1e-9) / (weights + 1e-9).sum(axis=1, keepdims=True)
    group, priors = posterior_groups(posterior)
    least = FLOOR / posterior.shape[1]

    assert set(range(len(priors))) == set(group.tolist())
    assert len(priors) <= min(MOST_GROUPS, len(posterior))
    assert np.allclose(priors.sum(axis=1), 1)
    assert priors.min() >= least / (1 + FLOOR) * (1 - 1e-9)
    assert group.tolist() == posterior_groups(posterior)[0].tolist()


def test_tasks_of_one_posterior_share_a_group():
    """Three kinds of tasks are three groups, in any order of the tasks."""
    kinds = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.34, 0.33, 0.33]])
    of_task = np.array([0, 2, 1, 1, 0, 2, 2, 0])
    group, priors = posterior_groups(kinds[of_task])

    assert 3 == len(priors)
    assert {(int(kind), int(one)) for kind, one in zip(of_task, group, strict=True)} == {
        (kind, int(group[np.flatnonzero(of_task == kind)[0]])) for kind in range(3)
    }
    assert np.allclose(priors[group], kinds[of_task])


@pytest.mark.parametrize("most", [1, 2, 5])
def test_there_are_at_most_so_many_groups(most):
    """The largest number of groups is kept."""
    posterior = np.random.default_rng(1).dirichlet(np.ones(4), 30)

    assert most == len(posterior_groups(posterior, most)[1])
