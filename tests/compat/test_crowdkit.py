"""Aggregators with crowd-kit's names: results by task and worker as pandas, in the types of the answers."""

import pandas as pd
import pytest

from crowdveil.compat import crowdkit
from crowdveil.errors import ReportsError
from crowdveil.estimators import DawidSkene

METHODS = {name: own for name, own in vars(crowdkit).items() if issubclass(type(own), type) and hasattr(own, "method")}
TRUTH = [7, 3, 7, 7, 3, 7, 3, 3, 7, 3, 7, 3]
WRONG = {"v": (), "w": (10, 11), "u": (5,), "t": (0,)}
CROWD = pd.DataFrame(
    [
        {"task": task, "worker": worker, "label": 10 - right if task in wrong else right}
        for task, right in enumerate(TRUTH)
        for worker, wrong in WRONG.items()
    ]
)


@pytest.mark.parametrize("name", METHODS)
def test_results_have_the_names_and_types_of_crowd_kit(name: str) -> None:
    """Each method finds the truth of a good crowd, as a series by task, with skills and shares by the original keys."""
    known = pd.Series({0: 7, 4: 3}) if name == "GoldMajorityVote" else None

    model = METHODS[name]().fit(CROWD, known)

    assert TRUTH == model.labels_.tolist() == METHODS[name]().fit_predict(CROWD, known).tolist()
    assert ("agg_label", "task", "skill", "worker") == (
        model.labels_.name, model.labels_.index.name, model.skills_.name, model.skills_.index.name,
    )  # fmt: skip
    assert ([3, 7], sorted(WRONG)) == (model.probas_.columns.tolist(), model.skills_.index.tolist())


def test_numbers_are_those_of_the_method() -> None:
    """The steps and the tolerance are passed on, and the posterior is that of the estimator."""
    model = crowdkit.DawidSkene(n_iter=3, tol=0.0)

    found = model.fit_predict_proba(CROWD)

    assert found.to_numpy().tolist() == DawidSkene(max_steps=3, tolerance=0.0).fit(CROWD).posterior.tolist()


def test_known_labels_are_certain_and_repeated_answers_count() -> None:
    """A known label holds against all answers; an answer counts as often as it stands; a missing one is refused."""
    held = crowdkit.DawidSkene().fit(CROWD, pd.Series({0: 3}))
    often = pd.concat([CROWD, *[CROWD[CROWD["worker"] == "t"]] * 5])

    assert (3, 1.0) == (held.labels_[0], held.probas_.loc[0, 3])
    assert 3 == crowdkit.MajorityVote().fit(often).labels_[0]
    with pytest.raises(ReportsError, match="label"):
        crowdkit.MajorityVote().fit(CROWD.assign(label=float("nan")))
