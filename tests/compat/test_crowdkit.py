"""Aggregators with crowd-kit's names: results by task and worker as pandas, in the types of the answers."""

import pandas as pd
import pytest

from crowdveil.compat import crowdkit
from crowdveil.errors import CrowdveilError, ReportsError, SettingsError
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


def test_error_matrices_and_priors_are_by_label() -> None:
    """`errors_` is P(label | truth) by worker and label, each column summing to 1; `priors_` the shares of labels."""
    for own in (crowdkit.DawidSkene, crowdkit.OneCoinDawidSkene):
        model = own().fit(CROWD)

        assert (["worker", "label"], [3, 7]) == (list(model.errors_.index.names), model.errors_.columns.tolist())
        assert [1.0] * 8 == model.errors_.groupby("worker").sum().to_numpy().ravel().round(9).tolist()
        assert model.errors_.loc[("w", 7), 3] > model.errors_.loc[("v", 7), 3]
        assert ("prior", [0.5, 0.5]) == (model.priors_.name, model.priors_.round(2).tolist())


@pytest.mark.parametrize("name", ["Wawa", "ZeroBasedSkill", "GoldMajorityVote"])
def test_weighted_votes_predict_other_answers(name: str) -> None:
    """`predict` weighs the votes of known workers on other answers; an unknown worker, and no fit, are refused."""
    known = pd.Series({task: TRUTH[task] for task in range(11)}) if name == "GoldMajorityVote" else None
    other = pd.DataFrame({"task": ["n", "n", "m"], "worker": ["t", "w", "u"], "label": [3, 7, 3]})

    model = METHODS[name]().fit(CROWD, known)

    assert TRUTH == model.predict(CROWD).tolist()
    assert {"m": 3, "n": 3 if model.skills_["t"] >= model.skills_["w"] else 7} == model.predict(other).to_dict()
    assert [1.0, 1.0] == model.predict_proba(other).sum(axis=1).round(9).tolist()
    with pytest.raises(SettingsError, match=r"every worker needs a weight, got \['new'\]"):
        model.predict(other.assign(worker="new"))
    with pytest.raises(SettingsError, match=r"Call fit\(data\) first"):
        METHODS[name]().predict(other)


def test_votes_are_weighted_by_given_skills() -> None:
    """A worker without a weight is refused, does not count, or has the default weight, as stated."""
    answers = pd.DataFrame({"task": ["a", "a", "a"], "worker": ["u", "v", "w"], "label": ["x", "y", "y"]})
    skills = pd.Series({"u": 0.9, "v": 0.5})

    default = crowdkit.MajorityVote(on_missing_skill="value", default_skill=0.6).fit(answers, skills)

    assert ("y", "x") == (
        default.labels_["a"],
        crowdkit.MajorityVote(on_missing_skill="ignore").fit_predict(answers, skills)["a"],
    )
    assert (0.45, [0.0, 1.0, 1.0]) == (default.probas_.loc["a", "x"].round(9), default.skills_.tolist())
    with pytest.raises(SettingsError, match="every worker needs a weight"):
        crowdkit.MajorityVote().fit(answers, skills)
    with pytest.raises(SettingsError, match="default_skill must be a number"):
        crowdkit.MajorityVote(on_missing_skill="value").fit(answers, skills)


def test_the_older_name_of_workers_is_read() -> None:
    """A frame with the column `performer` gives the same results, by performer."""
    old = crowdkit.DawidSkene().fit(CROWD.rename(columns={"worker": "performer"}))

    assert ("performer", TRUTH) == (old.skills_.index.name, old.labels_.tolist())
    assert old.errors_.to_numpy().tolist() == crowdkit.DawidSkene().fit(CROWD).errors_.to_numpy().tolist()


@pytest.mark.parametrize(
    ("change", "settings", "words"),
    [
        (lambda data: data.assign(label=None), {}, "Remove these rows"),
        (lambda data: data.rename(columns={"worker": "who"}), {}, "Name it worker or performer or annotator."),
        (lambda data: data, {"n_iter": 0}, "n_iter must be at least 1"),
        (lambda data: data, {"tol": "x"}, "tol must be a number"),
        (lambda data: pd.concat([data, data], axis=1), {}, "2 columns 'task', 2 columns 'worker', 2 columns 'label'"),
    ],
)
def test_hints_name_what_can_be_done_here(change, settings, words) -> None:
    """Refusals name the settings of this interface only, and all columns that stand twice."""
    with pytest.raises(CrowdveilError) as refused:
        crowdkit.DawidSkene(**settings).fit(change(CROWD))

    assert words in str(refused.value)
    for other in ("missing=", "max_steps", "tolerance", "names=", "task="):
        assert other not in str(refused.value)
