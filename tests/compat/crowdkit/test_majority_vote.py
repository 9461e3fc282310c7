"""Majority vote with crowd-kit's interface."""

import numpy as np
import pandas as pd
import pytest

from crowdveil.compat.crowdkit import MajorityVote
from crowdveil.errors import ReportsError, SettingsError
from tests.compat.crowdkit.answers import THREE, frame


def test_results_have_the_names_of_crowd_kit() -> None:
    """Labels, shares and skills have crowd-kit's index and series names, sorted."""
    vote = MajorityVote().fit(THREE[::-1])

    assert ("agg_label", "task", "skill", "worker") == (
        vote.labels_.name,
        vote.labels_.index.name,
        vote.skills_.name,
        vote.skills_.index.name,
    )
    assert ("task", "label") == (vote.probas_.index.name, vote.probas_.columns.name)
    assert ["x", "y", "y"] == vote.labels_.tolist()
    assert {"u": 1 / 3, "v": 2 / 3, "w": 1.0} == pytest.approx(vote.skills_.to_dict())
    np.testing.assert_allclose(vote.probas_["x"], [2 / 3, 1 / 3, 1 / 3])


@pytest.mark.parametrize(
    "names", [[True, False], [3, 1], pd.Categorical(["q", "p"])], ids=["booleans", "integers", "categories"]
)
def test_labels_keep_their_type(names: list[object]) -> None:
    """Labels come back as the values that went in; the first in order wins a tie."""
    data = pd.DataFrame({"task": ["a", "a"], "worker": ["v", "w"], "label": names})

    assert [min(names)] == MajorityVote().fit_predict(data).tolist()


def test_skills_weigh_votes() -> None:
    """A skilled worker outvotes two others; a task whose weights are all 0 has the plain votes."""
    skills = pd.Series({"u": 3.0, "v": 1.0, "w": 1.0})

    assert ["y", "y", "x"] == MajorityVote().fit_predict(THREE, skills).tolist()
    assert ["x", "y", "y"] == MajorityVote().fit_predict(THREE, 0 * skills).tolist()


def test_workers_without_skill_are_refused_dropped_or_given_one() -> None:
    """`on_missing_skill` decides; a task that loses all workers is refused."""
    skills = pd.Series({"u": 2.5})

    with pytest.raises(ReportsError, match="6 answers"):
        MajorityVote().fit(THREE, skills)
    assert ["u"] == MajorityVote(on_missing_skill="ignore").fit(THREE, skills).skills_.index.tolist()
    assert ["y", "y", "x"] == MajorityVote(1.0, on_missing_skill="value").fit_predict(THREE, skills).tolist()
    with pytest.raises(ReportsError, match="1 tasks"):
        MajorityVote(on_missing_skill="ignore").fit(frame("ab", u="x.", v="xx"), skills)
    with pytest.raises(SettingsError):
        MajorityVote(default_skill=1.0).fit(THREE, skills)


def test_defects_of_a_frame_are_named() -> None:
    """Missing values are refused, repeated answers are counted with a warning."""
    with pytest.raises(ReportsError, match="2 values are missing"):
        MajorityVote().fit(THREE.replace({"label": {"x": None}}).iloc[1:4])
    with pytest.warns(UserWarning, match="more than once"):
        repeated = MajorityVote().fit(pd.concat([THREE, THREE.iloc[[6]]]))

    assert [1 / 2, 1 / 2] == repeated.probas_.loc["a"].tolist()
    assert {"u": 1 / 3} == pytest.approx({"u": repeated.skills_["u"]})
