"""Scores of estimates: errors, calibration, and decisions by their costs."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.em.estimate import Estimate, NumericBaseline, WorkerTable
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import DawidSkene, MajorityVote, StudentT
from crowdveil.inference.scores import metrics
from crowdveil.inference.scores.decisions import decide, decision_notes
from crowdveil.storage.given_files import read_costs

RATINGS = Categories(("G", "P", "R", "X"), ordered=True)


def estimate_of(posterior, alphabet, reports_per_task=None):
    """Build an estimate of tasks t0, t1, ... with the given posterior (or numbers)."""
    table = np.array(posterior, dtype=float)
    tasks = len(table)
    return Estimate(
        method="simulated",
        alphabet=alphabet,
        tasks=np.array([f"t{k}" for k in range(tasks)]),
        posterior=table,
        reports_per_task=np.array(reports_per_task or [1] * tasks),
        worker_names=np.array(["w"]),
        workers=WorkerTable(np.ones(1), "ability"),
        reports_per_worker=np.array([tasks]),
    )


ROWS = [[0.7, 0.1, 0.1, 0.1], [0.4, 0.4, 0.1, 0.1], [0.25] * 4, [0.0, 0.0, 0.2, 0.8]]
GOLD = {"t0": "G", "t1": "P", "t2": "X", "t3": "R"}


@st.composite
def estimates_with_gold(draw):
    """Draw a categorical estimate with many ties, and gold for its tasks."""
    tasks, labels = draw(st.integers(1, 6)), draw(st.integers(2, 4))
    weights = st.lists(st.integers(1, 3), min_size=labels, max_size=labels)
    rows = np.array([draw(weights) for _ in range(tasks)], dtype=float)
    alphabet = Categories(tuple("abcd"[:labels]), ordered=True)
    truths = [draw(st.integers(0, labels - 1)) for _ in range(tasks)]
    gold = {f"t{task}": alphabet.names[truth] for task, truth in enumerate(truths)}
    return estimate_of(rows / rows.sum(axis=1, keepdims=True), alphabet), gold, truths


@settings(max_examples=60)
@given(estimates_with_gold())
def test_label_errors_equal_their_definitions_as_loops(case):
    """Accuracy, MAE, RMSE and log loss equal loops over tasks and tied labels."""
    estimate, gold, truths = case
    credit, absolute, squared, loss = [], [], [], []
    for row, truth in zip(estimate.posterior.tolist(), truths, strict=True):
        tied = [label for label, share in enumerate(row) if share >= max(row) - 1e-9]
        credit.append(tied.count(truth) / len(tied))
        absolute.append(sum(abs(label - truth) for label in tied) / len(tied))
        squared.append(sum((label - truth) ** 2 for label in tied) / len(tied))
        loss.append(-math.log(row[truth]))

    assert pytest.approx(np.mean(credit)) == metrics.accuracy(estimate, gold)
    assert pytest.approx(1 - np.mean(credit)) == metrics.error_rate(estimate, gold)
    assert pytest.approx(np.mean(absolute)) == metrics.score(estimate, gold, error="mae").error
    assert pytest.approx(math.sqrt(np.mean(squared))) == metrics.score(estimate, gold, error="rmse").error
    assert pytest.approx(np.mean(loss)) == metrics.score(estimate, gold).log_loss


@settings(max_examples=60)
@given(estimates_with_gold(), st.randoms(use_true_random=False))
def test_the_order_of_labels_helps_nobody(case, shuffler):
    """Permuting the alphabet changes no error rate: ties are split, not broken."""
    estimate, gold, _ = case
    order = list(range(estimate.alphabet.size))
    shuffler.shuffle(order)
    renamed = estimate_of(estimate.posterior[:, order], Categories(tuple(estimate.alphabet.names[k] for k in order)))

    assert pytest.approx(metrics.error_rate(estimate, gold)) == metrics.error_rate(renamed, gold)


def test_a_score_carries_error_constant_and_correlation():
    """A score states the error, the constant's error, the correlation and how many tasks it rests on."""
    gold = {**GOLD, "t1": "G", "elsewhere": "R"}

    result = metrics.score(estimate_of(ROWS, RATINGS, [3, 2, 0, 1]), gold)

    assert pytest.approx(1 - 1.75 / 4) == result.error
    assert (result.error_name, result.constant, result.baseline) == ("error_rate", "G", 0.5)
    assert (result.scored, result.missing, result.unknown) == (4, 1, 1)
    assert pytest.approx(np.corrcoef([0, 0.5, 1.5, 3], [0, 0, 3, 2])[0, 1]) == result.correlation
    assert pytest.approx(-np.mean(np.log([0.7, 0.4, 0.25, 0.2]))) == result.log_loss
    assert pytest.approx(0.5 - result.error) == result.gain_over_constant
    assert "constant G: 0.5000" in str(result)
    assert "1 unknown left out" in str(result)


@pytest.mark.parametrize(("name", "constant", "baseline"), [("mae", "1", 1.0), ("rmse", "1.5", math.sqrt(1.25))])
def test_ordered_labels_can_be_scored_by_position(name, constant, baseline):
    """MAE and RMSE of ordered labels use positions, with the median or the mean as the best constant."""
    result = metrics.score(estimate_of(ROWS, RATINGS), GOLD, error=name)

    assert (name, constant) == (result.error_name, result.constant)
    assert pytest.approx(baseline) == result.baseline
    assert result.log_loss is None


def test_unordered_labels_have_no_distance():
    """MAE of unordered labels is refused, with the way out."""
    with pytest.raises(SettingsError, match="Use error_rate"):
        metrics.score(estimate_of([[0.5, 0.5]], Categories(("a", "b"))), {"t0": "a"}, error="mae")


def test_numbers_are_scored_with_their_constant_standing_in_for_silence():
    """A task without report counts with the estimate's own constant, and is counted as missing."""
    result = metrics.score(estimate_of([1.0, np.nan, 4.0, 3.0], None), {"t0": 2.0, "t1": 1.0, "t2": "4", "t3": 7})

    assert pytest.approx((1 + 2 + 0 + 4) / 4) == result.error
    assert (result.error_name, result.constant, result.missing, result.scored) == ("mae", "2", 1, 4)
    assert pytest.approx((0 + 1 + 2 + 5) / 4) == result.baseline
    assert pytest.approx(np.corrcoef([1, 3, 4, 3], [2, 1, 4, 7])[0, 1]) == result.correlation


def test_numbers_have_no_error_rate():
    """The accuracy of a numeric estimate is refused, with the way out."""
    with pytest.raises(SettingsError, match="Use mae or rmse"):
        metrics.accuracy(estimate_of([0.5], None), {"t0": 1.0})


def test_a_scale_is_scored_in_its_numbers_by_default():
    """An estimate over a scale takes gold between grid points and answers in the scale's units."""
    estimate = estimate_of([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5]], Scale(10, 20, 5))

    result = metrics.score(estimate, {"t0": 11.5, "t1": 20})

    assert ("mae", pytest.approx((1.5 + 2.5) / 2)) == (result.error_name, result.error)
    assert pytest.approx(0.75) == metrics.accuracy(estimate, {"t0": 10.0, "t1": 15})


def test_gold_between_grid_points_has_no_label():
    """The error rate over a scale refuses gold that is not on the grid and names the task."""
    with pytest.raises(ReportsError, match=r"11\.5 of task"):
        metrics.error_rate(estimate_of([[0.9, 0.1, 0.0]], Scale(10, 20, 5)), {"t0": 11.5})


@pytest.mark.parametrize(
    ("alphabet", "posterior", "gold", "message"),
    [
        (RATINGS, ROWS, {"t0": "Q"}, "gold label 'Q'"),
        (RATINGS, ROWS, {"elsewhere": "G"}, r"no gold task is among the tasks \(1 gold task, "),
        (RATINGS, ROWS, {}, r"\(0 gold tasks, "),
        (None, [1.0], {"t0": "high"}, "must be numbers"),
        (None, [1.0], {"t0": math.nan}, "finite"),
        (None, [1.0], {"t0": 1e308}, "between 1e-100 and 1e.100 in size.*1e.308"),
        (Scale(10, 20, 5), [[0.9, 0.1, 0.0]], {"t0": -1e101}, "between 1e-100 and 1e.100 in size"),
    ],
)
def test_gold_that_cannot_be_compared_is_refused(alphabet, posterior, gold, message):
    """Unknown labels, no common task and truths that are no numbers are refused by name."""
    with pytest.raises(ReportsError, match=message):
        metrics.score(estimate_of(posterior, alphabet), gold)


@pytest.mark.parametrize(
    ("posterior", "gold"),
    [([1.0, 1.0 + 1e-15, 1.0], {"t0": 1, "t1": 2, "t2": 3}), ([1.0, 2.0, 5.0], {"t0": 3, "t1": 3, "t2": 3})],
)
def test_a_constant_correlates_with_nothing(posterior, gold):
    """The correlation is 0 where either side is constant up to rounding."""
    assert metrics.score(estimate_of(posterior, None), gold).correlation == 0.0


def test_a_certain_mistake_costs_a_finite_loss():
    """Gold with posterior 0 counts with the stated smallest probability."""
    estimate = estimate_of([[1.0, 0.0]], Categories(("a", "b")))

    assert pytest.approx(12 * math.log(10)) == metrics.score(estimate, {"t0": "b"}).log_loss
    assert "log-loss 0.000" in str(metrics.score(estimate, {"t0": "a"}))


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=8))
def test_no_constant_beats_the_best_constant(truths):
    """No value among many candidates has a smaller error than the best constant, which reaches its own."""
    candidates = [*np.linspace(-6, 6, 121), np.mean(truths)]
    errors: dict[Any, Callable[[float], Any]] = {
        "error_rate": lambda c: np.mean([c != truth for truth in truths]),
        "mae": lambda c: np.mean([abs(c - truth) for truth in truths]),
        "rmse": lambda c: math.sqrt(np.mean([(c - truth) ** 2 for truth in truths])),
    }
    for name, error in errors.items():
        lowest = min(error(c) for c in ([*candidates, *truths] if name != "error_rate" else truths))

        assert pytest.approx(lowest, abs=1e-9) == metrics.best_constant(truths, name).error


def test_the_best_constant_needs_truths_of_the_right_kind():
    """No truth at all, or labels where numbers are needed, are refused."""
    with pytest.raises(SettingsError, match="at least one truth"):
        metrics.best_constant([], "mae")
    with pytest.raises(SettingsError, match="Use error_rate"):
        metrics.best_constant(["a"], "rmse")


def test_truths_outside_the_scale_are_counted():
    """A score says how many truths no estimate on the scale reaches; the ends are inside, and labels have no ends."""
    estimate = estimate_of([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]], Scale(10, 20, 5))

    assert 2 == metrics.score(estimate, {"t0": 9.5, "t1": 20, "t2": 50}).outside
    assert 0 == metrics.score(estimate_of(ROWS, RATINGS), {"t0": "G"}).outside


def test_large_errors_are_written_with_six_digits():
    """Errors of a million and more are written in a form that can be read."""
    text = str(metrics.score(estimate_of([0.0, 1.0], None), {"t0": 1e99, "t1": -1e99}))

    assert "mae 1e+99 (constant -1e+99: 1e+99)" in text
    assert "expected mean error 2e+06; this estimate: 0.500." in str(NumericBaseline("1", 2e6, 0.5, 3))


LABELS = Categories(("no", "yes", "maybe"))


def estimate(seed: int = 1) -> Estimate:
    """Fit of random answers to 12 tasks."""
    source = np.random.default_rng(seed)
    task, worker = (column.ravel() for column in np.indices((12, 5)))
    return DawidSkene().fit(
        Reports.from_arrays(task, worker, source.choice(LABELS.names, 60, p=(0.5, 0.3, 0.2)), alphabet=LABELS)
    )


@pytest.mark.slow
@given(seed=st.integers(0, 1000))
def test_the_decision_has_the_least_expected_cost(seed: int) -> None:
    """Each decision and its expected cost are those of a search of all labels."""
    costs = np.random.default_rng(seed).random((3, 3))
    found = estimate(seed)
    decided = decide(found, costs=costs)

    for task, row in enumerate(found.posterior):
        expected = [sum(row[z] * costs[z, d] for z in range(3)) for d in range(3)]
        assert LABELS.names[int(np.argmin(expected))] == decided.truth[task]
        assert decided.expected_cost is not None
        assert decided.confidence is not None
        assert min(expected) == pytest.approx(decided.expected_cost[task])
        assert row[int(np.argmin(expected))] == decided.confidence[task]


def test_a_frame_of_results_holds_the_decisions() -> None:
    """Labels in the type of the answers are those of the decisions, empty where undecided."""
    answers = {"task": [1, 1, 1, 2, 2, 2], "worker": [*"abcabc"], "label": [7, 7, 9, 9, 9, 9]}
    decided = decide(DawidSkene().fit(answers), costs=np.array([[0.0, 1.0], [1e9, 0.0]]))
    undecided = replace(decided, undecided=np.array([True, False]))

    assert [9, 9] == decided.to_arrow()["truth"].to_pylist()
    assert [None, 9] == undecided.to_arrow()["truth"].to_pylist()


def test_unsure_tasks_stay_undecided() -> None:
    """Below the confidence the truth is empty, in columns and in tables; probabilities stay."""
    found = estimate()
    assert found.confidence is not None
    bound = float(np.median(found.confidence))
    decided = decide(found, abstain_below=bound)
    empty = found.confidence < bound

    assert ["" if none else truth for truth, none in zip(found.truth, empty, strict=True)] == decided.truth.tolist()
    assert int(empty.sum()) == decided.tasks_frame()["truth"].null_count
    assert [part.truth.tolist() for part in decided.parts()] == [decided.truth.tolist()]
    assert decision_notes(decided, None, None)[0].startswith(f"{int(empty.sum())} of 12 tasks stay undecided")


def test_decisions_are_scored_by_error_and_cost() -> None:
    """Notes name the error of decided tasks and the mean costs of decisions and of the most probable labels."""
    found, costs = estimate(), np.array([[0, 9, 9], [1, 0, 9], [1, 9, 0.0]])
    gold = {task: LABELS.names[task % 3] for task in range(12)}
    decided = decide(found, costs=costs)
    truth = np.arange(12) % 3
    probable = costs[truth, found.posterior.argmax(axis=1)].mean()
    notes = decision_notes(decided, {str(task): label for task, label in gold.items()}, costs)

    assert f"{100 * (decided.decisions != truth).mean():.1f} % are wrong" in notes[0]
    assert f"{costs[truth, decided.decisions].mean():.4g}" in notes[1]
    assert f"{probable:.4g}" in notes[1]


def test_costs_are_read_by_label(tmp_path: Path) -> None:
    """The order of rows and columns has no effect; equal labels cost 0 unless listed."""
    pairs = [(z, d) for z in LABELS.names for d in LABELS.names if z != d]
    rows = "".join(f"{place},{d},{z}\n" for place, (z, d) in reversed(list(enumerate(pairs, 1))))
    (tmp_path / "costs.csv").write_text("cost,decision,truth\n" + rows)

    assert [[0, 1, 2], [3, 0, 4], [5, 6, 0]] == read_costs(tmp_path / "costs.csv", LABELS).table.tolist()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("no,never,1", "among"),
        ("no,yes,-1", "from 0"),
        ("no,yes,x", "from 0"),
        ("no,yes,1\nno,yes,2", "one cost"),
        ("no,yes,1", "every pair"),
    ],
)
def test_wrong_costs_are_refused(rows: str, message: str, tmp_path: Path) -> None:
    """Unknown labels, negative costs, repeated and missing pairs are refused."""
    (tmp_path / "costs.csv").write_text(f"truth,decision,cost\n{rows}\n")
    with pytest.raises(ReportsError, match=message):
        read_costs(tmp_path / "costs.csv", LABELS)


def test_only_labels_with_probabilities_are_decided() -> None:
    """Numbers, other shapes of costs, and confidences outside [0, 1] are refused."""
    numbers = StudentT().fit(Reports.from_arrays([1, 1, 2], ["a", "b", "a"], [1.0, 2.0, 3.0], numeric=True))
    for found, options in (
        (numbers, {"abstain_below": 0.5}),
        (estimate(), {"abstain_below": 1.5}),
        (estimate(), {"costs": np.ones((2, 2))}),
        (estimate(), {"costs": -np.ones((3, 3))}),
    ):
        with pytest.raises(SettingsError):
            decide(found, **options)


CALIBRATED_LABELS = Categories(("a", "b", "c"))
TASKS = 400


def calibrated_estimate_of(posterior: np.ndarray) -> Estimate:
    """Return an estimate with this posterior, one report on every task."""
    tasks = np.arange(len(posterior))
    reports = Reports(
        tasks, np.zeros(len(tasks)), np.zeros(len(tasks)), tasks.astype(str), np.array(["w"]), CALIBRATED_LABELS
    )
    return replace(MajorityVote().fit(reports), posterior=posterior)


@pytest.fixture
def case() -> tuple[np.ndarray, dict[str, str]]:
    """Return posteriors, [task, label], and truths drawn from them."""
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet(np.ones(3), TASKS)
    return posterior, {str(task): CALIBRATED_LABELS.names[rng.choice(3, p=row)] for task, row in enumerate(posterior)}


def test_calibration_error_equals_its_definition(case: tuple[np.ndarray, dict[str, str]]) -> None:
    """The score's calibration error is the mean difference of confidence and accuracy over ten bins, weighted by tasks;
    the printed score has it beside the log-loss."""
    posterior, gold = case
    expected = 0.0
    for k in range(10):
        confidence = posterior.max(axis=1)
        own = [task for task in range(TASKS) if k / 10 <= confidence[task] < (k + 1) / 10]
        right = [CALIBRATED_LABELS.names[posterior[task].argmax()] == gold[str(task)] for task in own]
        expected += abs(sum(right) - sum(confidence[own])) / TASKS

    result = metrics.score(calibrated_estimate_of(posterior), gold)

    assert pytest.approx(expected) == result.calibration_error
    assert f"calibration error {expected:.3f}" in str(result)
    assert f"log-loss {result.log_loss:.3f}" in str(result)
