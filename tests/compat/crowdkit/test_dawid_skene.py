"""Dawid-Skene and one-coin with crowd-kit's interface."""

import numpy as np
import pandas as pd
import pytest

from crowdveil.compat.crowdkit import DawidSkene, OneCoinDawidSkene
from crowdveil.errors import SettingsError
from tests.compat.crowdkit.answers import THREE, frame

CROWD = frame("abcdefgh", v="xxyyxyxx", w="xyyyxyxx", u="yxyyxyyx", t="xxyyyyxy", s="yyyyyyyy")


def step_by_hand(data: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """Return the posterior after one EM step from the majority vote, and the marginal log-likelihood of that step."""
    votes = pd.crosstab(data.task, data.label, normalize="index")
    joint = votes * 0 + votes.mean()
    for worker, answers in data.groupby("worker"):
        given = {
            (label, truth): votes.loc[answers.task[answers.label == label], truth].sum()
            / votes.loc[answers.task, truth].sum()
            for label in votes.columns
            for truth in votes.columns
        }
        assert worker
        for task, label in zip(answers.task, answers.label, strict=True):
            joint.loc[task] *= [given[label, truth] for truth in votes.columns]
    return joint.div(joint.sum(axis=1), axis=0), float(np.log(joint.sum(axis=1)).sum())


def test_one_step_equals_the_equations() -> None:
    """The posterior of one step is that of the equations written as loops."""
    fitted = DawidSkene(1).fit(CROWD)

    pd.testing.assert_frame_equal(step_by_hand(CROWD)[0], fitted.probas_, atol=1e-9)
    pd.testing.assert_series_equal(fitted.probas_.mean().rename("prior"), fitted.priors_)
    assert ["worker", "label"] == fitted.errors_.index.names
    np.testing.assert_allclose(fitted.errors_.groupby("worker").sum(), 1)


@pytest.mark.parametrize("method", [DawidSkene, OneCoinDawidSkene])
def test_the_loss_rises_in_every_step(method: type[DawidSkene]) -> None:
    """The lower bound per answer never falls, and the class prior counts once per task."""
    losses = method(30, tol=-1.0).fit(CROWD).loss_history_

    assert 30 == len(losses)
    assert min(np.diff(losses)) > -1e-9
    assert losses[0] >= step_by_hand(CROWD)[1] / len(CROWD) or method is OneCoinDawidSkene


def test_no_iteration_is_the_majority_vote() -> None:
    """`n_iter=0` gives shares of votes, and rows of the error matrix for the answers that occur."""
    fitted = DawidSkene(n_iter=0).fit(CROWD)

    assert 0.6 == fitted.probas_.loc["a", "x"]
    assert [("s", "y")] == [row for row in fitted.errors_.index if row[0] == "s"]


def test_known_labels_are_certain() -> None:
    """A known label has probability 1, also one that nobody gave."""
    fitted = DawidSkene().fit(CROWD, pd.Series({"a": "y", "b": "z", "elsewhere": "x"}))

    assert ["y", "z"] == fitted.labels_[["a", "b"]].tolist()
    assert 1.0 == fitted.probas_.loc["b", "z"]


def test_initial_errors_are_added_or_assigned() -> None:
    """Counts are added to the expected ones; matrices replace them and need every worker and sums of 1."""
    index = pd.MultiIndex.from_product([["s", "t", "u", "v", "w"], ["x", "y"]], names=["worker", "label"])
    wrong = pd.DataFrame([[0.1, 0.9], [0.9, 0.1]] * 5, index, ["x", "y"])
    counts = pd.DataFrame([[9.5]], index[:1], ["x"])
    added = DawidSkene(0, initial_error_strategy="addition").fit(CROWD, initial_error=counts)
    swapped = DawidSkene(1, initial_error_strategy="assign").fit(CROWD, initial_error=wrong)

    votes = added.probas_["x"].sum()
    assert 9.5 / (9.5 + votes) == pytest.approx(added.errors_.loc[("s", "x"), "x"])
    assert "y" == swapped.labels_["h"]
    for broken in (wrong.iloc[:9], wrong / 2, wrong.rename_axis(["worker", "answer"])):
        with pytest.raises(SettingsError):
            DawidSkene(initial_error_strategy="assign").fit(CROWD, initial_error=broken)


def test_one_coin_has_one_skill_per_worker() -> None:
    """The diagonal of a worker's errors is the skill, other answers share the rest."""
    fitted = OneCoinDawidSkene(n_iter=0).fit(THREE)

    assert "skill" == fitted.skills_.name
    assert 5 / 9 == pytest.approx(fitted.skills_["v"])
    assert [5 / 9, 4 / 9] == pytest.approx(fitted.errors_.loc[("v", "x")].tolist())


@pytest.mark.parametrize("method", [DawidSkene, OneCoinDawidSkene])
def test_no_answers_give_empty_results(method: type[DawidSkene]) -> None:
    """An empty frame gives empty results."""
    fitted = method().fit(THREE[:0])

    assert (0, 0, 0) == (len(fitted.labels_), len(fitted.probas_), len(fitted.errors_))
