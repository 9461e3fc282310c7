"""Confidence of answers: used where it informs, with its worth; elsewhere the result is the plain one."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import crowdveil as cv
from crowdveil import Categories, HierarchicalDawidSkene, RandomizedResponse, Reports
from crowdveil.answers.ingest.column_readers import ColumnNames
from crowdveil.errors import CrowdveilError, ReportsError, SettingsError
from crowdveil.inference.answer_confidence import (
    FOLDS,
    Gain,
    answers_above_own_median,
    as_two_workers,
)

TASKS, WORKERS, PER_TASK = 200, 20, 5
USED, UNUSED = "The confidence of answers is used for the truths", "The confidence of answers is not used"
PLAIN = ("task", "worker", "label")


def crowd(kind: str, seed: int) -> tuple[dict[str, list[Any]], list[str]]:
    """Return answers with confidences, and the truths: 200 tasks of two labels, 5 answers each by 20 workers."""
    draw = np.random.default_rng(seed)
    truth, ability = draw.integers(0, 2, TASKS), draw.uniform(0.5, 0.85, WORKERS)
    task = np.repeat(np.arange(TASKS), PER_TASK)
    worker = np.concatenate([draw.choice(WORKERS, PER_TASK, replace=False) for _ in range(TASKS)])
    sure, right = draw.uniform(size=len(task)), ability[worker]
    if kind == "informs":
        right = np.clip(right + np.where(sure > 0.5, 0.24, -0.24), 0.5, 0.99)
    value = np.where(draw.uniform(size=len(task)) < right, truth[task], 1 - truth[task])
    if kind == "bad workers are sure":
        sure = np.where(ability[worker] < 0.65, 0.8 + 0.2 * sure, 0.5 * sure)
    if kind == "tells the label":
        sure = np.where(value == 1, 0.5 + 0.5 * sure, 0.5 * sure)
    columns = {"task": task, "worker": worker, "label": np.array(["no", "yes"])[value], "sure": sure}
    return {name: column.tolist() for name, column in columns.items()}, np.array(["no", "yes"])[truth].tolist()


def plain_part(answers: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the answers without their confidences."""
    return {name: answers[name] for name in PLAIN}


def share_right(inference: cv.Inference, truths: list[str]) -> float:
    """Return the share of truths that are right."""
    return float(np.mean(inference.estimate.truth == np.array(truths)))


@pytest.mark.parametrize("seed", [1, 2])
def test_confidence_that_informs_gives_better_truths(seed: int) -> None:
    """More truths are right, a note says what it was worth, and the workers are those of the fit without it."""
    answers, truths = crowd("informs", seed)
    found, plain = cv.infer(answers, weight="sure"), cv.infer(plain_part(answers))

    assert share_right(found, truths) >= share_right(plain, truths) + 0.02
    assert found.notes[-1].startswith(USED)
    assert float(re.search(r"([+-][\d.]+) nats", found.notes[-1])[1]) > 0.02
    assert found.estimate.worker_names.tolist() == plain.estimate.worker_names.tolist()
    np.testing.assert_array_equal(found.estimate.workers.quality, plain.estimate.workers.quality)
    np.testing.assert_array_equal(found.estimate.reports_per_worker, plain.estimate.reports_per_worker)
    assert "weight" in [one.role for one in found.inputs]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", ["says nothing", "bad workers are sure", "tells the label"])
@pytest.mark.parametrize("known", [0, 60])
def test_other_confidence_changes_nothing(kind: str, seed: int, known: int) -> None:
    """Noise, bad workers who are always sure, and confidence that repeats the label leave each number as it is."""
    answers, truths = crowd(kind, seed)
    gold = dict(enumerate(truths[:known])) or None
    found, plain = cv.infer(answers, weight="sure", gold=gold), cv.infer(plain_part(answers), gold=gold)

    np.testing.assert_array_equal(found.estimate.posterior, plain.estimate.posterior)
    np.testing.assert_array_equal(found.estimate.workers.quality, plain.estimate.workers.quality)
    assert found.notes[:-1] == plain.notes
    assert found.notes[-1].startswith(UNUSED)
    assert f"on {known} known truths" in found.notes[-1] or not known


def test_gold_says_what_confidence_is_worth() -> None:
    """With enough known truths the note has the gain on them, and shares that are right beside the best constant."""
    answers, truths = crowd("informs", 1)
    gold = dict(enumerate(truths[:120]))
    found = cv.infer(answers, weight="sure", gold=gold)
    both = Reports.from_frame(plain_part(answers)), halves_of(answers)
    posteriors = [HierarchicalDawidSkene().fit(one).posterior for one in both]
    codes = [("no", "yes").index(truth) for truth in truths[:120]]
    gains = [float(np.log(posteriors[1][i, z]) - np.log(posteriors[0][i, z])) for i, z in enumerate(codes)]
    right = [sum(int(one[i].argmax()) == z for i, z in enumerate(codes)) / 120 for one in posteriors]
    constant = max(codes.count(0), codes.count(1)) / 120

    assert found.notes[-1].startswith(USED)
    assert (
        f"{np.mean(gains):+.4f} nats (standard error {np.std(gains, ddof=1) / 120**0.5:.4f}) a task" in found.notes[-1]
    )
    assert (
        f"on 120 known truths (share of right truths {right[1]:.3f} with it, {right[0]:.3f} without it, "
        f"{constant:.3f} for the best constant)" in found.notes[-1]
    )


def halves_of(answers: dict[str, list[Any]]) -> Reports:
    """Return the answers of workers split at their medians, by loops."""
    by_worker: dict[int, list[float]] = {}
    for worker, sure in zip(answers["worker"], answers["sure"], strict=True):
        by_worker.setdefault(worker, []).append(sure)
    rows = zip(answers["worker"], answers["sure"], strict=True)
    names = [2 * worker + (sure > float(np.median(by_worker[worker]))) for worker, sure in rows]
    return Reports.from_frame({"task": answers["task"], "worker": names, "label": answers["label"]})


def test_withheld_answers_are_predicted_as_by_loops() -> None:
    """The gain is that of answers predicted one by one, with the matrices of halves joined by their answers."""
    answers, _ = crowd("informs", 2)
    rows = sorted(zip(*(answers[name] for name in PLAIN), halves_of_rows(answers), strict=True))
    gains, tasks = [], [row[0] for row in rows]
    for fold in range(FOLDS):
        places = [i - tasks.index(row[0]) for i, row in enumerate(rows)]
        held = [(place + row[0]) % FOLDS == fold for place, row in zip(places, rows, strict=True)]
        rest = [row for row, out in zip(rows, held, strict=True) if not out]
        plain, halves = fit_of_rows(rest, 1), fit_of_rows(rest, 2)
        for (task, worker, label, _), out in zip(rows, held, strict=True):
            if out:
                gains.append((task, log_probability(halves, rest, task, worker, label, 2)
                              - log_probability(plain, rest, task, worker, label, 1)))  # fmt: skip
    mean = sum(gain for _, gain in gains) / len(gains)
    sums = [sum(gain - mean for task, gain in gains if task == one) for one in range(TASKS)]
    error = (TASKS / (TASKS - 1) * sum(one**2 for one in sums)) ** 0.5 / len(gains)

    note = cv.infer(answers, weight="sure").notes[-1]
    assert f"{mean:+.4f} nats (standard error {error:.4f}) an answer" in note


def halves_of_rows(answers: dict[str, list[Any]]) -> list[int]:
    """Return 1 for answers above the median of their worker, else 0, by a loop."""
    frame = pd.DataFrame(answers)
    return [int(row.sure > frame[frame.worker == row.worker].sure.median()) for row in frame.itertuples()]


def fit_of_rows(rows: list[Any], halves: int) -> Any:
    """Return the fit of rows by workers, or by halves of workers, all of whom are listed."""
    columns = {"task": [row[0] for row in rows], "label": [row[2] for row in rows]}
    workers = [row[1] if halves == 1 else 2 * row[1] + row[3] for row in rows]
    listed: dict[str, Any] = {"tasks": range(TASKS), "workers": range(halves * WORKERS)}
    return HierarchicalDawidSkene().fit(Reports.from_frame(columns | {"worker": workers}, **listed))


def log_probability(fit: Any, rest: list[Any], task: int, worker: int, label: str, halves: int) -> float:
    """Return the log probability of an answer of unknown confidence."""
    names = [str(name) for name in fit.worker_names.tolist()]
    at = [int(name) for name in map(str, fit.tasks.tolist())].index(task)
    total = 0.0
    for half in range(halves):
        share = sum(row[3] == half for row in rest if row[1] == worker) / sum(row[1] == worker for row in rest)
        place = names.index(str(halves * worker + half))
        answer = fit.workers.confusion[place, :, ("no", "yes").index(label)]
        total += (share if halves == 2 else 1.0) * float(fit.posterior[at] @ answer)
    return float(np.log(total))


def test_answers_are_split_at_the_own_median() -> None:
    """Above the median, or at it where none is above; a worker of equal confidences has one half only."""
    numbers = {"a": [1, 2, 3, 4], "b": [1, 5, 5, 5], "c": [2, 2], "d": [7]}
    columns: dict[str, list[Any]] = {"task": [], "worker": [], "value": []}
    for worker, values in numbers.items():
        columns["task"] += range(len(values))
        columns["worker"] += [worker] * len(values)
        columns["value"] += values
    confidences = Reports.from_frame(columns, workers=[*"abcde"])
    sure = answers_above_own_median(confidences, 5)
    found = {worker: sure[confidences.worker == place].tolist() for place, worker in enumerate("abcde")}

    assert found["a"] == [False, False, True, True]
    assert found["b"] == [False, True, True, True]
    assert (found["c"], found["d"], found["e"]) == ([True, True], [True], [])


def test_each_half_has_the_answers_of_its_worker() -> None:
    """Worker i is 2 i for unsure and 2 i + 1 for sure answers, over the same tasks and labels."""
    reports = Reports.from_frame({"task": [1, 1, 2, 2], "worker": [*"abab"], "label": [*"ynyy"]})
    halves = as_two_workers(reports, np.array([True, False, False, False]))

    assert halves.worker.tolist() == [1, 2, 0, 2]
    assert (halves.tasks.tolist(), halves.value.tolist()) == (reports.tasks.tolist(), [1, 0, 1, 1])


def test_error_of_a_gain_counts_tasks() -> None:
    """Repeated gains on one task do not make the mean more certain."""
    gains: NDArray[np.float64] = np.array([0.0, 1.0, 0.5])
    once = Gain.of_gains_on_tasks(gains, np.arange(3))
    twice = Gain.of_gains_on_tasks(np.repeat(gains, 2), np.repeat(np.arange(3), 2))

    assert once.error == pytest.approx(twice.error)
    assert once.error == pytest.approx(0.5 / 3**0.5)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_every_frame_and_order_gives_the_same(make: Any) -> None:
    """Frames of each kind, other orders of rows, and other units of each worker's confidence give the same truths."""
    answers, _ = crowd("informs", 1)
    order = np.random.default_rng(3).permutation(len(answers["task"])).tolist()
    other = {name: [column[row] for row in order] for name, column in answers.items()}
    other["sure"] = [7 * worker + 2 * sure for worker, sure in zip(other["worker"], other["sure"], strict=True)]
    first, second = cv.infer(answers, weight="sure"), cv.infer(make(other), weight="sure")

    np.testing.assert_array_equal(first.estimate.posterior, second.estimate.posterior)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = cv.aggregate(pd.DataFrame(answers), weight="sure")
    assert frame["truth"].tolist() == first.estimate.truth.tolist()
    assert [str(one.message) for one in caught] == list(first.notes)


def test_choices_have_the_confidence_of_their_answer() -> None:
    """An answer of several choices has one confidence, which counts for each yes or no; NULL needs none."""
    answers, _ = crowd("informs", 1)
    choices = {
        **answers,
        "label": [json.dumps(["cat"] if one == "yes" else ["cat", "dog"]) for one in answers["label"]],
    }
    single = {**answers, "label": ["no" if one == "yes" else "yes" for one in answers["label"]]}
    single["task"] = [f"{task}|dog" for task in answers["task"]]
    skipped = {
        name: [*column, more] for (name, column), more in zip(choices.items(), (0, 99, "NULL", None), strict=True)
    }
    found = cv.infer(skipped, weight="sure")
    same = cv.infer(
        {name: [*column, single[name][0]] for name, column in single.items()}, weight="sure", duplicates="first"
    )

    assert found.evidence.confidences is not None
    assert same.evidence.confidences is not None
    dog = [place for place, task in enumerate(found.evidence.reports.tasks.tolist()) if str(task).endswith("|dog")]
    kept = np.isin(found.evidence.reports.task, dog)
    np.testing.assert_array_equal(found.evidence.confidences.value[kept], same.evidence.confidences.value)


SMALL = {"task": [1, 1, 2, 2], "worker": [*"abab"], "label": [*"yyny"], "sure": [1.0, 2.0, 3.0, 1.0]}
CHANNEL = RandomizedResponse(epsilon=1, alphabet=Categories(("n", "y"))).channel()
EARLIER = pd.DataFrame({"worker": ["a"], "correct": [3], "answers": [4]})
REFUSED: dict[str, tuple[Any, dict[str, Any], type[CrowdveilError], str]] = {
    "channel": (SMALL, {"channel": CHANNEL, "tasks": [1, 2], "workers": ["a", "b"]}, SettingsError, "no guarantee"),
    "truths": (SMALL, {"truths": ("bad", "good")}, SettingsError, "labels of their own"),
    "history": (SMALL, {"history": EARLIER}, SettingsError, "a history"),
    "method": (SMALL, {"method": "dawid-skene"}, SettingsError, "hierarchical-dawid-skene"),
    "numbers": ({**SMALL, "label": [1.5, 2.0, 3.0, 4.0]}, {"kind": "numeric"}, SettingsError, "for labels"),
    "reports": (Reports.from_frame(plain_part(SMALL)), {}, SettingsError, "a column of a frame"),
    "all repeats": (SMALL, {"duplicates": "all"}, SettingsError, "cannot be kept"),
    "missing": ({**SMALL, "sure": [1.0, None, 3.0, 1.0]}, {}, ReportsError, "'nan'"),
    "all missing": ({**SMALL, "sure": [None] * 4}, {}, ReportsError, "nothing"),
    "infinite": ({**SMALL, "sure": [1.0, float("inf"), 3.0, 1.0]}, {}, ReportsError, "'inf'"),
    "text": ({**SMALL, "sure": ["high", "low", "1", "2"]}, {}, ReportsError, "'high'"),
    "no column": (plain_part(SMALL), {}, ReportsError, "no column 'sure'"),
    "one role": (SMALL, {"label": "sure"}, SettingsError, "one role"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_with_confidences_is_refused(case: str) -> None:
    """Protected reports, other truths, histories, methods and numbers, and cells that are no finite number."""
    answers, given, kind, text = REFUSED[case]
    method = given.get("method")
    with pytest.raises(kind, match=re.escape(text)):
        cv.infer(answers, method, weight="sure", **{name: one for name, one in given.items() if name != "method"})


def test_a_fit_with_confidences_is_not_saved_or_resumed() -> None:
    """A saved fit does not hold confidences, and none is resumed beside them."""
    found = cv.infer(SMALL, weight="sure")
    earlier = cv.infer(plain_part(SMALL)).saved_fit()

    with pytest.raises(SettingsError, match="cannot be saved"):
        found.saved_fit()
    with pytest.raises(SettingsError, match="start_from"):
        cv.infer(SMALL, weight="sure", start_from=earlier)


def test_what_cannot_be_measured_is_said() -> None:
    """Few tasks, confidences that do not differ, and workers who copy leave the result plain, and the note says why."""
    answers, truths = crowd("informs", 1)
    same = {**answers, "sure": [1] * len(answers["sure"])}
    bot = ["no" if task % 3 else truth for task, truth in enumerate(truths)]
    bots = {"task": [*range(TASKS)] * 2, "worker": [98] * TASKS + [99] * TASKS, "label": bot * 2}
    copied = {name: [*column, *bots.get(name, answers["sure"][: 2 * TASKS])] for name, column in answers.items()}

    assert cv.infer(SMALL, weight="sure").notes[-1].startswith(f"{UNUSED}: fewer than 20 tasks")
    assert cv.infer(same, weight="sure").notes[-1] == f"{UNUSED}: no worker's confidences differ."
    assert cv.infer(copied, weight="sure").notes[-1] == f"{UNUSED}: workers answer as others do."


def test_other_functions_do_not_take_confidences(tmp_path: Path) -> None:
    """`agreement` and readers of reports refuse them: nothing is ignored without a word."""
    pd.DataFrame(SMALL).to_csv(tmp_path / "answers.csv", index=False)
    with pytest.raises(SettingsError, match="do not hold confidences"):
        Reports.from_source(tmp_path / "answers.csv", names=ColumnNames(weight="sure"))
    with pytest.raises((SettingsError, TypeError), match="weight"):
        cv.agreement(SMALL, weight="sure")  # type: ignore[call-arg]
    with pytest.raises((SettingsError, TypeError), match="weight"):
        Reports.from_frame(SMALL, weight="sure")  # type: ignore[call-arg]
