"""Panels: truths with labels of their own, from scores and grades, with gold or an order."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import crowdveil as cv
from crowdveil.answers.evidence import Evidence
from crowdveil.answers.facts.asked import Asked
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.inference.panel.fit import fit_panel
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.randomness import seeded

TRUTHS = ("no", "yes")
GROUPS, MEMBERS = 4, 6


def judged(tasks: int = 800, seed: int = 1, share: float = 0.4) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return truths, and scores 0..10 of four groups of six judges who nearly copy one another, [task, judge]."""
    random = np.random.default_rng(seed)
    truth = (random.random(tasks) < share).astype(int)
    scores = []
    for _ in range(GROUPS):
        shared = (truth - 0.5) * random.uniform(0.5, 1.1) + random.normal(size=tasks)
        for _ in range(MEMBERS):
            seen = 0.95 * shared + 0.3 * random.normal(size=tasks)
            scores.append(np.clip(np.rint(random.uniform(3, 8) + random.uniform(1, 3) * seen), 0, 10))
    return truth, np.array(scores).T.astype(int)


def evidence_of(scores: NDArray[Any], alphabet: Categories | Scale | None = None, channel: Any = None) -> Evidence:
    """Return all scores as answers of the workers 0, 1, ... on the tasks 0, 1, ..."""
    task, worker = np.indices(scores.shape).reshape(2, -1)
    reports = Reports.from_arrays(task, worker, scores.ravel(), alphabet=alphabet, numeric=alphabet is None)
    return Evidence(observed=reports, channel=channel, asked=Asked(complete=True))


def truths_of(truth: NDArray[np.int64], tasks: Any) -> dict[str, str]:
    """Return the truths of some tasks by name."""
    return {str(task): TRUTHS[truth[task]] for task in tasks}


def accuracy(fit: Any, truth: NDArray[np.int64], left_out: Any = ()) -> float:
    """Return the share of right truths among the tasks that are not left out."""
    tasks = np.asarray(fit.estimate.tasks).astype(int)
    kept = ~np.isin(tasks, left_out)
    return float((fit.estimate.posterior.argmax(axis=1) == truth[tasks])[kept].mean())


@pytest.mark.slow
def test_gold_makes_a_panel_better_than_its_best_judge_and_than_the_order_alone() -> None:
    """With 50 gold tasks the rest is read better than by the best threshold on one judge, gold chosen or not."""
    truth, scores = judged()
    gold = np.random.default_rng(0).choice(len(truth), 50, replace=False)
    fit = fit_panel(evidence_of(scores), TRUTHS, gold=truths_of(truth, gold))
    tasks = np.asarray(fit.estimate.tasks).astype(int)
    single = max(((scores[:, judge] > cut) == truth).mean() for judge in range(24) for cut in range(10))
    ordered = accuracy(fit_panel(evidence_of(scores), TRUTHS), truth)

    assert ordered > 0.68
    assert accuracy(fit, truth, gold) > max(single + 0.02, ordered - 0.02)
    assert (fit.estimate.posterior.argmax(axis=1) == truth[tasks])[np.isin(tasks, gold)].all()


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_gold_corrects_the_share_of_a_rare_truth(seed: int) -> None:
    """Where one task in twenty is a yes, 50 gold tasks bring the expected share of yes within .05 of it."""
    truth, scores = judged(1000, seed, share=0.05)
    gold = np.random.default_rng(0).choice(len(truth), 50, replace=False)
    fit = fit_panel(evidence_of(scores), TRUTHS, gold=truths_of(truth, gold))
    rest = ~np.isin(np.asarray(fit.estimate.tasks).astype(int), gold)

    assert abs(fit.estimate.posterior[rest, 1].mean() - truth.mean()) < 0.05


@pytest.mark.parametrize("only", [0, 1])
def test_gold_of_one_truth_does_not_erase_the_other(only: int) -> None:
    """Forty gold tasks of one truth say nothing of the share of the other: most other tasks are still read rightly."""
    truth, scores = judged()
    gold = np.flatnonzero(truth == only)[:40]

    assert accuracy(fit_panel(evidence_of(scores), TRUTHS, gold=truths_of(truth, gold)), truth, gold) > 0.6


def test_the_result_says_what_gold_did_and_how_much_more_helps() -> None:
    """The line names the weight of the tables, further tasks and the gain; 19 gold tasks have none."""
    truth, scores = judged(200)

    found = fit_panel(evidence_of(scores), TRUTHS, gold=truths_of(truth, range(30)))
    few = fit_panel(evidence_of(scores), TRUTHS, gold=truths_of(truth, range(19)))

    for words in (
        "30 gold tasks set the weights: truth tables 0.",
        "more, drawn at random (`crowdveil data draw-gold`)",
        "log-loss",
    ):
        assert words in str(found.gold_line)
    check = found.estimate.cross_validation
    assert check is not None
    assert check.right_without_gold is not None
    assert few.gold_line is None


@pytest.mark.parametrize("seed", [11, 12])
def test_judges_who_share_mistakes_are_seldom_certain_without_gold(seed: int) -> None:
    """Twenty-four judges who copy one another in four groups: at most 1 % of the truths have a confidence of .99, the
    mean confidence is at most .05 above the accuracy, and a task without answers keeps the class prior."""
    truth, scores = judged(seed=seed)
    fit = fit_panel(evidence_of(scores), TRUTHS)
    confidence = fit.estimate.posterior.max(axis=1)
    lone = Reports.from_arrays([0, 0, 1, 1], ["a", "b", "a", "b"], [1, 2, 8, 9], numeric=True, tasks=[0, 1, 2])

    assert (confidence >= 0.99).mean() <= 0.01
    assert confidence.mean() - accuracy(fit, truth) <= 0.05
    unasked = fit_panel(Evidence(observed=lone, asked=Asked(complete=True)), TRUTHS).estimate.posterior[2]
    assert unasked == pytest.approx([0.5, 0.5], abs=0.05)


def test_judges_that_copy_are_worth_their_groups() -> None:
    """Four groups of six judges are worth three to six independent ones, and pairs that answer alike share a group."""
    truth, scores = judged()
    panel = fit_panel(evidence_of(scores), TRUTHS, gold=truths_of(truth, range(200))).panel

    assert panel.effective is not None
    assert 3 < panel.effective < 6
    assert panel.alike > 20
    assert all(int(one) // MEMBERS == int(other) // MEMBERS for one, other in (pair.workers for pair in panel.pairs))


def test_gold_turns_an_order_that_is_wrong() -> None:
    """Where low scores mean yes, gold of both truths says so."""
    truth, scores = judged(600)
    fit = fit_panel(evidence_of(10 - scores), TRUTHS, gold=truths_of(truth, range(60)))

    assert accuracy(fit, truth, range(60)) > 0.68


def test_labels_without_order_are_read_by_gold() -> None:
    """Grades in no order reach two truths through the tables of gold tasks."""
    truth, scores = judged(600)
    grades = np.array(["c", "a", "b"])[scores // 4]
    fit = fit_panel(evidence_of(grades, Categories(("a", "b", "c"))), TRUTHS, gold=truths_of(truth, range(60)))

    assert accuracy(fit, truth, range(60)) > 0.65


def test_a_panel_is_read_through_its_channel() -> None:
    """Behind randomized response the tables are those of the answers, and truths are found; other channels are not."""
    truth, scores = judged(800)
    grades = Categories(("low", "middle", "high"), ordered=True)
    names = np.array(grades.names)[scores // 4]
    channel = RandomizedResponse(alphabet=grades, epsilon=2.0, participation="public").channel()
    sent = channel.sample(scores.ravel() // 4, seeded(1)).reshape(scores.shape)
    evidence = evidence_of(np.array(grades.names)[sent], grades, channel)
    protected = RandomizedResponse(alphabet=grades, epsilon=2.0).channel()

    assert accuracy(fit_panel(evidence, TRUTHS), truth) > 0.66
    with pytest.raises(SettingsError, match="public participation"):
        fit_panel(evidence_of(names, grades, protected), TRUTHS)


@pytest.mark.parametrize(
    ("truths", "gold", "error", "said"),
    [
        (("no", "yes"), {"0": "maybe"}, ReportsError, "must be among"),
        (tuple("abcdefghijklmn"), None, SettingsError, "every truth needs answers that map to it"),
        (("no",), None, SettingsError, "2 to"),
        ("no", None, SettingsError, "truths must be a list"),
    ],
    ids=["gold", "truths", "one", "text"],
)
def test_what_cannot_be_a_panel_is_refused(truths: Any, gold: Any, error: Any, said: str) -> None:
    """Gold of unknown truths, and truths without answers are refused with the rule."""
    _, scores = judged(30)

    with pytest.raises(error, match=said):
        fit_panel(evidence_of(scores), truths, gold=gold)


def test_one_worker_is_no_panel() -> None:
    """Answers of fewer than two workers are refused."""
    with pytest.raises(ReportsError, match="two workers or more"):
        fit_panel(evidence_of(judged(30)[1][:, :1]), TRUTHS)


def test_labels_without_order_need_gold() -> None:
    """Without an order no answer is nearer to one of the truths."""
    grades = np.array(["c", "a", "b"])[judged(30)[1] // 4]

    with pytest.raises(SettingsError, match="every truth needs answers"):
        fit_panel(evidence_of(grades, Categories(("a", "b", "c"))), TRUTHS)


def test_aggregate_gives_the_panel_from_frame_to_frame() -> None:
    """`truths=` gives the truths of `fit_panel`; what another fit reads is refused beside it."""
    truth, scores = judged(300)
    task, worker = np.indices(scores.shape).reshape(2, -1)
    answers = {"task": task.tolist(), "worker": worker.tolist(), "value": scores.ravel().tolist()}
    gold = truths_of(truth, range(40))
    found = cv.aggregate(answers, truths=TRUTHS, gold=gold)
    expected = fit_panel(evidence_of(scores), TRUTHS, gold=gold).estimate

    assert dict(zip(found["task"], found["truth"], strict=True)) == {
        int(task): name for task, name in zip(expected.tasks, expected.truth, strict=True)
    }
    with pytest.raises(SettingsError, match="cannot be combined with truths"):
        cv.aggregate(answers, "dawid-skene", truths=TRUTHS)
    with pytest.raises(ReportsError, match="scores must be on the scale"):
        cv.aggregate(answers, truths=TRUTHS, alphabet=Scale(0, 5))


def test_the_next_score_is_asked_where_the_truth_is_open() -> None:
    """The gains of panels rest on P(score | truth): the task between the truths comes before others, and long before
    the clear ones, on which four judges agree."""
    random = np.random.default_rng(0)
    truth = np.arange(200) % 2
    scores = np.clip(np.rint(2 + 6 * truth[:, None] + random.normal(size=(200, 4))), 0, 10).astype(int)
    scores[0] = (2, 8, 3, 7)
    task, worker = np.indices(scores.shape).reshape(2, -1)
    answers = {"task": task.tolist(), "worker": [f"w{code}" for code in worker], "value": scores.ravel().tolist()}
    found = cv.next_answers(answers, budget=100, truths=TRUTHS, candidates=["new"], per_worker=100)

    assert 0 == found["task"][0]
    assert found["information"][0] > 10 * found["information"][-1]
    assert ["cannot" in reason for reason in found["reason"]] == [True] * 100


def test_conclusions_on_a_panel_are_prevalences_that_cover_the_truth() -> None:
    """From 60 gold tasks of 800, the 90 % interval of the prevalence is shorter than that of gold alone."""
    truth, scores = judged()
    task, worker = np.indices(scores.shape).reshape(2, -1)
    answers = {"task": task.tolist(), "worker": worker.tolist(), "value": scores.ravel().tolist()}
    drawn = cv.draw_gold(answers, 60, seed=2)["task"]
    found = cv.conclude(answers, {one: TRUTHS[truth[one]] for one in drawn}, seed=2, truths=TRUTHS)

    assert ["prevalence"] * 2 == found["quantity"]
    assert found["low"][1] < truth.mean() < found["high"][1]
    assert found["high"][1] - found["low"][1] < found["gold_high"][1] - found["gold_low"][1]


def test_a_review_of_a_panel_names_copies_and_equal_scores() -> None:
    """A judge with one score for all tasks is listed, and each copy with the judge whose errors are most alike."""
    scores = judged(300)[1]
    scores = np.column_stack((scores[:, [0, 0, 6, 12, 18]], np.full(300, 7)))
    task, worker = np.indices(scores.shape).reshape(2, -1)
    answers = {"task": task.tolist(), "worker": [f"w{code}" for code in worker], "value": scores.ravel().tolist()}
    found = cv.review(answers, truths=TRUTHS)
    reasons = dict(zip(found["worker"], found["reason"], strict=True))

    assert {"w0", "w1", "w5"} == set(reasons)
    assert "All 300 answers are 7." == reasons["w5"]
    assert "Answers like 'w1'" in reasons["w0"]
