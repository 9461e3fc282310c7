"""Wawa, Zero-Based Skill and Gold Majority Vote with crowd-kit's interface."""

import pandas as pd
import pytest

from crowdveil.compat.crowdkit import GoldMajorityVote, NotFittedError, Wawa, ZeroBasedSkill
from tests.compat.crowdkit.answers import THREE


def test_wawa_weighs_by_agreement_with_the_majority() -> None:
    """Skills are agreements 1/3, 2/3 and 1, and shares of votes follow."""
    wawa = Wawa()
    shares = wawa.fit_predict_proba(THREE)

    assert {"u": 1 / 3, "v": 2 / 3, "w": 1.0} == pytest.approx(wawa.skills_.to_dict())
    assert {"x": 5 / 6, "y": 1 / 6} == pytest.approx(shares.loc["a"].to_dict())
    assert wawa.probas_ is shares


def test_zero_based_skill_starts_above_chance_and_ends_at_its_fixed_point() -> None:
    """No step leaves 1 / K + eps; after the first full step skills are the agreements with the vote."""
    start = ZeroBasedSkill(n_iter=0, eps=0.25).fit(THREE).skills_

    assert {"u": 0.75, "v": 0.75, "w": 0.75} == start.to_dict()
    assert {"u": 1 / 3, "v": 2 / 3, "w": 1.0} == pytest.approx(ZeroBasedSkill().fit(THREE).skills_.to_dict())


def test_gold_majority_vote_accepts_several_truths_of_a_task() -> None:
    """Skills are shares of right answers to gold tasks; both labels of task a are right."""
    vote = GoldMajorityVote().fit(THREE, pd.Series(["x", "y", "x"], index=["a", "a", "c"]))

    assert {"u": 1.0, "v": 0.5, "w": 0.5} == vote.skills_.to_dict()
    assert [0.5, 0.25, 0.5] == vote.predict_proba(THREE)["x"].tolist()
    assert ["x", "y", "x"] == vote.predict(THREE).tolist()


@pytest.mark.parametrize("method", [Wawa, ZeroBasedSkill, GoldMajorityVote])
def test_prediction_needs_a_fit(method: type[Wawa]) -> None:
    """A prediction before `fit` is refused."""
    with pytest.raises(NotFittedError, match="fit"):
        method().predict(THREE)
