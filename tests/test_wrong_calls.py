"""Wrong calls of the library: each is refused where the wrong value is given, with the rule, the value and a hint."""

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import crowdveil as cv
from crowdveil import Categories, DawidSkene, RandomizedResponse, Reports, Scale, seeded
from crowdveil.errors import CrowdveilError, SettingsError
from crowdveil.mechanisms import TwoLayer

LABELS: Any = Categories(("no", "yes"))
GRADES: Any = Scale(0, 10, 1)
VOTES: Any = {"task": [1, 1, 2, 2], "worker": [*"vwvw"], "label": ["no", "no", "yes", "no"]}
NUMBERS: Any = {"task": [1, 1, 2, 2], "worker": [*"vwvw"], "value": [1.0, 2.0, 3.0, 3.5]}
SIZE: Any = {"workers": 3, "tasks": 3, "participation_rate": 1.0}
DATES = pd.DataFrame({**VOTES, "label": pd.to_datetime(["2020-01-01"] * 4)})
WIDE = pd.DataFrame({"task": [1, 2], "ann": ["no", "yes"], "bob": ["no", "no"]})
MECHANISM: Any = RandomizedResponse(alphabet=LABELS, epsilon=1.0)


def response(**wrong: Any) -> Any:
    """Randomized response with one wrong setting."""
    return RandomizedResponse(**{"alphabet": LABELS, "epsilon": 1.0, **wrong})


def votes(**columns: Any) -> Any:
    """Votes with other columns."""
    return {**VOTES, **columns}


def fit(**wrong: Any) -> Any:
    """A fit of the votes with one wrong argument."""
    return DawidSkene().fit(Reports.from_frame(VOTES), **wrong)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "epsilon as text": (lambda: response(epsilon="1"), "epsilon must be a number, got '1'. Write it without quotes"),
    "epsilon as a truth value": (lambda: response(epsilon=True), "epsilon must be a number, got True"),
    "epsilon that is no number": (lambda: response(epsilon=float("nan")), "epsilon must be in [1e-06, 20], got nan"),
    "a list as alphabet": (lambda: response(alphabet=["no", "yes"]), "alphabet must be Categories or a Scale"),
    "unknown participation": (lambda: response(participation="none"), "participation must be 'protected' or 'public'"),
    "a text as labels": (lambda: Categories("yn"), "names must be a tuple of labels, got 'yn'"),
    "numbers as labels": (lambda: Categories((1, 2)), "labels must be texts, got (1, 2)"),
    "one label": (lambda: Categories(("a",)), "an alphabet needs 2 to 1024 labels"),
    "labels twice": (lambda: Categories(("a", "a")), "labels must be distinct"),
    "ordered as text": (lambda: Categories(("a", "b"), ordered="yes"), "ordered must be True or False"),
    "a scale of texts": (lambda: Scale("0", "10"), "low must be a number, got '0'"),
    "a scale backwards": (lambda: Scale(10, 0, 1), "a scale needs finite low < high"),
    "laplace on labels": (lambda: cv.Laplace(alphabet=LABELS, epsilon=1.0), "laplace needs numbers or ordered labels"),
    "cuts as text": (
        lambda: cv.QuantizedResponse(alphabet=GRADES, epsilon=1.0, cuts="5"),
        "cuts must be a list, got '5'",
    ),
    "a cut as text": (
        lambda: cv.QuantizedResponse(alphabet=GRADES, epsilon=1.0, cuts=("5",)),
        "a cut must be a whole number, got '5'",
    ),
    "flips as text": (lambda: TwoLayer(alphabet=LABELS, low="0", high=0.5), "low must be a number"),
    "a mechanism as channel": (lambda: fit(channel=MECHANISM), "channel must be a Channel or a ChannelTable"),
    "a method as channel": (lambda: fit(channel=MECHANISM.channel), "Give mechanism.channel(), or"),
    "a mechanism in aggregate": (lambda: cv.aggregate(VOTES, channel=MECHANISM), "channel must be a Channel"),
    "a class as method": (lambda: cv.aggregate(VOTES, DawidSkene), "Give an estimator: DawidSkene()."),
    "a number as method": (lambda: cv.aggregate(VOTES, 3), "method must be a name or an estimator, got 3"),
    "a misspelt method": (lambda: cv.aggregate(VOTES, "dawid-skeen"), "Did you mean 'dawid-skene'?"),
    "an engine by name": (lambda: fit(engine="gpu"), "engine must be an engine of crowdveil.em.engines, got 'gpu'"),
    "memory as text": (lambda: fit(memory="1XB"), "memory must be a whole number, got '1XB'"),
    "progress as text": (lambda: fit(progress="yes"), "progress must be True, False or a function"),
    "an assignment as a list": (lambda: fit(assignment=[(1, "v")]), "assignment must be an Assignment"),
    "an estimate as state": (lambda: fit(warm_start=fit()), "Give estimate.state."),
    "gold as a list": (lambda: cv.aggregate(VOTES, gold=["no"]), "gold must be a mapping from task to truth"),
    "gold of other labels": (lambda: cv.aggregate(VOTES, gold={1: "maybe"}), "must be among ('no', 'yes')"),
    "a prior as a list": (lambda: cv.aggregate(VOTES, prior=[0.5, 0.5]), "prior must be a mapping"),
    "a prior of other labels": (lambda: cv.aggregate(VOTES, prior={"no": 1.0}), "each of the labels no, yes"),
    "a history as a list": (lambda: cv.aggregate(VOTES, history=[1]), "a frame must have named columns"),
    "a tolerance as text": (lambda: DawidSkene(tolerance="x"), "tolerance must be a number, got 'x'"),
    "steps as a fraction": (lambda: DawidSkene(max_steps=2.5), "max_steps must be a whole number, got 2.5"),
    "the name of scikit-learn": (lambda: DawidSkene(max_iter=9), "no argument 'max_iter'. Did you mean 'max_steps'?"),
    "a setting of the method": (lambda: cv.aggregate(VOTES, max_iter=9), "Settings are those of an estimator"),
    "labels for an alphabet": (
        lambda: RandomizedResponse(labels=("a", "b"), epsilon=1),
        "no argument 'labels'. Did you mean 'alphabet'?",
    ),
    "an argument of infer": (
        lambda: cv.agreement(VOTES, truths=["a", "b"]),
        "got 'truths'. It is an argument of infer",
    ),
    "a file as gold": (lambda: cv.aggregate(VOTES, gold="gold.csv"), "columns task and truth (pandas.read_csv)"),
    "epsilon in short": (lambda: RandomizedResponse(alphabet=LABELS, eps=1), "Did you mean 'epsilon'?"),
    "a mechanism's wrong setting": (
        lambda: response(ridge_weight=1),
        "Its arguments are alphabet, epsilon",
    ),
    "a target of the command line": (
        lambda: cv.plan(LABELS, target_error=0.1),
        "plan has no argument 'target_error'. Did you mean 'target'?",
    ),
    "truth values as gold of texts": (lambda: cv.aggregate(VOTES, gold={1: True}), "as in the answers, such as 'no'"),
    "gold without truths": (lambda: cv.aggregate(VOTES, gold={"task": [1], "x": [2]}), "one column for the truth"),
    "a column for each worker": (lambda: cv.aggregate(WIDE), "by frame.melt('task', var_name='worker'"),
    "a channel of other labels": (
        lambda: cv.aggregate(votes(label=[*"abab"]), channel=MECHANISM.channel()),
        "These are the labels of the channel of randomized-response",
    ),
    "an unknown worker": (lambda: fit().plot_confusion("nobody"), "got 'nobody'. There are v, w."),
    "a misspelt mechanism": (lambda: cv.compare(["laplas"], VOTES, gold={1: "no"}), "Did you mean 'laplace'?"),
    "a crowd without gold": (lambda: cv.compare(["laplace"], VOTES), "a crowd must have answers and gold"),
    "a seed as text": (lambda: cv.compare(["laplace"], VOTES, gold={1: "no"}, seed="1"), "seed must be a whole"),
    "decimals as labels": (lambda: cv.aggregate(NUMBERS, "dawid-skene"), "the column 'value' has decimals, got '3.5'"),
    "labels with catd": (lambda: cv.aggregate(VOTES, "catd"), "values must be finite numbers"),
    "an indexed frame": (lambda: cv.aggregate(pd.DataFrame(VOTES).set_index("task")), "give frame.reset_index()"),
    "one label in a frame": (lambda: cv.aggregate(votes(label=["a"] * 4)), "there must be 2 to 1024 different labels"),
    "dates": (lambda: cv.aggregate(DATES), "columns must hold text or numbers"),
    "objects in cells": (lambda: cv.aggregate(votes(label=[{"a": 1}] * 4)), "columns must hold text or numbers"),
    "lists as tasks": (lambda: cv.aggregate(votes(task=[["a"]] * 4)), "columns must hold text or numbers"),
    "no separator": (lambda: cv.aggregate(VOTES, multiple=""), "the separator of choices must be a text"),
    "nothing ticked": (lambda: cv.aggregate(VOTES, nothing_ticked="yes"), "nothing ticked must be"),
    "a series": (lambda: cv.aggregate(pd.Series([1])), "a frame must have named columns"),
    "a path": (lambda: cv.aggregate("labels.csv"), "Read files with Reports.from_source"),
    "a missing label": (lambda: cv.aggregate(votes(label=["no", None, "yes", "no"])), "labels must not be empty"),
    "a missing worker": (lambda: cv.aggregate(votes(worker=["v", None, "v", "w"])), "every row needs a worker"),
    "a cell twice": (lambda: cv.aggregate(votes(worker=["v"] * 4)), "a worker answers a task once"),
    "no such column": (lambda: cv.aggregate(VOTES, label="labels"), "there is no column 'labels'"),
    "tasks as text": (lambda: cv.aggregate(VOTES, tasks="1,2"), "tasks must be the list of all tasks"),
    "workers as a number": (lambda: cv.aggregate(VOTES, workers=3), "workers must be a list, got 3"),
    "an alphabet as a list": (lambda: cv.aggregate(VOTES, alphabet=["no", "yes"]), "alphabet must be Categories"),
    "an unknown kind": (lambda: cv.aggregate(VOTES, kind="labels"), "kind must be 'categorical' or 'numeric'"),
    "an unknown option": (lambda: cv.aggregate(VOTES, duplicate="first"), "Did you mean 'duplicates'?"),
    "a channel to perturb with": (lambda: cv.perturb(VOTES, MECHANISM.channel()), "mechanism must be a mechanism"),
    "a mechanism by name": (lambda: cv.perturb(VOTES, "laplace"), "mechanism must be a mechanism, got 'laplace'"),
    "a seed as source": (lambda: cv.perturb(VOTES, MECHANISM, 1), "source must be a source of randomness, got 1"),
    "a seed that is text": (lambda: seeded("1"), "seed must be a whole number, got '1'"),
    "a budget as text": (lambda: cv.next_answers(VOTES, budget="3"), "budget must be a whole number"),
    "no budget given as a number": (lambda: cv.next_answers(VOTES, budget="x"), "Such as budget=100."),
    "a bound above 1": (lambda: cv.review(VOTES, below=2), "below must be between 0 and 1, got 2. Such as below=0.6."),
    "memory with a unit": (lambda: cv.aggregate(VOTES, memory="2GB"), "Such as memory=2_000_000_000 (bytes, 2 GB)"),
    "an option of the command line": (lambda: cv.aggregate(VOTES, task_column="t"), "Give task=."),
    "no gold to conclude from": (lambda: cv.conclude(VOTES, None), "gold must be a mapping from task to truth"),
    "a mean of duplicates": (
        lambda: cv.aggregate(VOTES, duplicates="mean"),
        "if the mean of the answers is meant",
    ),
    "no epsilons": (lambda: cv.compare(["laplace"], VOTES, gold={1: "no"}, epsilons=[]), "epsilons is empty, got []"),
    "arrays of other lengths": (lambda: Reports.from_arrays([1], [2, 3], ["a"]), "Found: 1, 2, 1."),
    "too many gold tasks": (lambda: cv.draw_gold(VOTES, 99), "number must be at most 2"),
    "one candidate as text": (lambda: cv.next_answers(VOTES, budget=1, candidates="zoe"), "candidates must be a list"),
    "a set of truths": (lambda: cv.aggregate(NUMBERS, truths={"no", "yes"}), "truths must be a list, got 'set'"),
    "a set of tasks": (lambda: cv.aggregate(VOTES, tasks={1, 2}), "tasks must be a list, got 'set'"),
    "a pair as a set": (lambda: cv.conclude(VOTES, {1: "no"}, compare=[{"v", "w"}]), "a pair to compare must be"),
    "a number as answers": (lambda: cv.infer(3), "Such as {'task': [1, 1], 'worker': ['ann', 'bob']"),
    "a bound of numbers": (lambda: cv.review(NUMBERS, below=0.5), "needs labels, these are numbers"),
    "labels of a plan as a list": (lambda: cv.plan(["no", "yes"], **SIZE), "alphabet must be Categories or a Scale"),
    "an ability above 1": (lambda: cv.plan(LABELS, **SIZE, ability=1.5), "an ability in [0, 1]"),
    "a prior of a plan as a list": (lambda: cv.plan(LABELS, **SIZE, prior=[0.5, 0.5]), "prior must be a mapping"),
    "a prior above 1": (lambda: cv.plan(LABELS, **SIZE, prior={"no": 0.9, "yes": 0.9}), "must sum to 1, not to 1.8"),
    "progress of a plan as a truth value": (
        lambda: cv.plan(LABELS, **SIZE, progress=True),
        "progress must be a function",
    ),
    "a participation rate above 1": (
        lambda: cv.plan(LABELS, **{**SIZE, "participation_rate": 2.0}),
        "the participation rate must be in (0, 1], got 2.0. Such as 0.3",
    ),
    "a class as mechanism": (lambda: cv.compare([RandomizedResponse], VOTES, gold={1: "no"}), "a mechanism must be"),
    "gold twice": (lambda: cv.compare(["one-layer"], VOTES, gold={1: "no", "1": "yes"}), "gold names a task once"),
    "an option of compare": (
        lambda: cv.compare(["one-layer"], VOTES, gold={1: "no"}, lable="x"),
        "Did you mean 'label'?",
    ),
    "a candidate without a name": (lambda: cv.next_answers(VOTES, budget=1, candidates=[None]), "at least one worker"),
    "an unknown row": (lambda: fit().to_pandas("task"), "rows must be 'tasks' or 'workers', got 'task'"),
    "no such file": (lambda: Reports.from_csv("nowhere.csv"), "the file must exist and be readable"),
    "answers as a list": (lambda: DawidSkene().fit([1, 2]), "arrays go into Reports.from_arrays"),
    "cells as text": (lambda: MECHANISM.guarantee.per_worker("3"), "the number of releases must be a whole number"),
}
"""Call by what is wrong with it, and a part of the message."""


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_call_is_refused_with_rule_value_and_hint(what: str) -> None:
    """The error is one of crowdveil, and names the rule, what was found, and what to do."""
    call, part = WRONG[what]
    with pytest.raises(CrowdveilError) as caught:
        call()

    assert part in str(caught.value)
    assert caught.value.rule
    assert caught.value.hint
    assert caught.value.value is not None or "None" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("DawidSken", "Did you mean 'DawidSkene'?"),
        ("Catd", "It is crowdveil.estimators.Catd."),
        ("OneLayer", "It is crowdveil.mechanisms.OneLayer."),
        ("quokka", "Its names are Assignment, "),
    ],
)
def test_a_name_that_is_not_public_is_found(name: str, part: str) -> None:
    """The package says which name was meant, or where it is."""
    with pytest.raises(AttributeError) as caught:
        getattr(cv, name)

    assert part in str(caught.value)


def test_numpy_numbers_are_numbers() -> None:
    """Scalars of numpy are accepted as Python's are."""
    assert np.float32(0.5) == response(epsilon=np.float32(0.5)).epsilon
    assert 7 == DawidSkene(max_steps=np.int64(7)).max_steps
    with pytest.raises(SettingsError, match="must be a number"):
        response(epsilon=np.array([1.0]))


def test_an_estimator_says_that_results_are_those_of_a_fit() -> None:
    """The truth is asked of the estimate, and `hasattr` and copies are not disturbed."""
    with pytest.raises(AttributeError, match=r"estimate = DawidSkene\(\).fit\(answers\), then estimate.truth"):
        DawidSkene().truth  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(DawidSkene(), "nothing")
    assert DawidSkene(max_steps=3) == pickle.loads(pickle.dumps(DawidSkene(max_steps=3)))
    assert "max_steps" in inspect.signature(DawidSkene).parameters
