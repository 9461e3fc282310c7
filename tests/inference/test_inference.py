"""Inference of evidence: confidence, gold, and slow fits."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdveil import HierarchicalDawidSkene, RandomizedResponse, aggregate
from crowdveil.answers.evidence import Evidence
from crowdveil.answers.write_reports import ordered_reports_table
from crowdveil.channels.alphabet import Categories
from crowdveil.errors import SettingsError
from crowdveil.estimators import ESTIMATORS
from crowdveil.inference import gold_stack
from crowdveil.inference.given import KnownTruths
from crowdveil.inference.infer import Inference, infer
from crowdveil.inference.methods import SLOW_WORK, Method, choose_estimator, slow_fit_warning
from crowdveil.inference.plain_fit import fit
from crowdveil.randomness import seeded
from crowdveil.registry import ESTIMATOR_ENTRIES, estimators_with
from crowdveil.simulate import Crowd, categorical_crowd, perturb_reports
from crowdveil.storage.evidence import EvidenceOptions, read_evidence
from crowdveil.storage.given_files import read_known_truths


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    """Return two reports of ordered labels, read as answers."""
    (tmp_path / "reports.csv").write_text("task,worker,label\na,u,lo\nb,v,hi\n")
    return read_evidence(tmp_path / "reports.csv", EvidenceOptions(alphabet=Categories(("lo", "hi"), ordered=True)))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_registered_estimator_can_be_asked_for(name: str, evidence: Evidence) -> None:
    """A name with steps and a tolerance gives the registered class with these settings, and without them its own."""
    built = choose_estimator(Method(name=name, max_steps=3, tolerance=0.5), evidence)

    assert (ESTIMATORS[name], 3, 0.5) == (type(built), built.max_steps, built.tolerance)
    assert ESTIMATORS[name]() == choose_estimator(Method(name=name), evidence)


@pytest.mark.parametrize(
    "method",
    [
        Method(name="nonsense"),
        Method(max_steps=0),
        Method(tolerance=-1.0),
        Method(tolerance=float("inf")),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(method: Method, evidence: Evidence) -> None:
    """Unknown methods, no steps, and impossible tolerances raise SettingsError."""
    with pytest.raises(SettingsError):
        choose_estimator(method, evidence)


@pytest.fixture
def crowd(tmp_path: Path) -> Evidence:
    """Write reports of 120 tasks: three careful workers, and four of whom each says yes to all but a few."""
    rng = np.random.default_rng(1)
    rows = ["task,worker,label"]
    for task in range(120):
        truth = task % 3 == 0
        answers = [truth ^ (rng.random() < 0.1) for _ in range(3)] + [rng.random() < 0.8 for _ in range(4)]
        rows += [f"t{task},w{worker},{'yes' if answer else 'no'}" for worker, answer in enumerate(answers)]
    (tmp_path / "reports.csv").write_text("\n".join(rows))
    return read_evidence(tmp_path / "reports.csv")


def test_the_assumed_correlation_is_stated(crowd: Evidence) -> None:
    """The default says which correlation of errors its confidence assumes; a method without one says nothing."""
    assert "assumed to have a correlation of 0." in str(infer(crowd, Method()).confidence_note)
    assert infer(crowd, Method(name="dawid-skene")).confidence_note is None


def written(path: Path, hard: float) -> Evidence:
    """Write ten answers to each of 300 tasks: 0.9 are right on easy tasks, half on a share of hard ones."""
    rng = np.random.default_rng(2)
    rows = ["task,worker,label"]
    for task in range(300):
        ability = 0.5 if rng.random() < hard else 0.9
        for worker in rng.choice(30, 10, replace=False):
            right = rng.random() < ability
            rows.append(f"t{task},w{worker},{'yes' if right == task % 2 else 'no'}")
    (path / "crowd.csv").write_text("\n".join(rows))
    return read_evidence(path / "crowd.csv")


def test_agreement_beyond_the_model_lowers_confidence(tmp_path: Path) -> None:
    """Where answers agree more than the model predicts, `infer` says so and truths are less certain; else they stay."""
    hard = written(tmp_path, 0.4)
    found, plain = infer(hard, Method()), HierarchicalDawidSkene().fit(hard.reports)
    assert "were copies, which lowers the confidence" in str(found.confidence_note)
    assert "assumed to have a correlation of 0.35" in str(found.confidence_note)
    assert found.estimate.confidence is not None
    assert plain.confidence is not None
    assert (found.estimate.confidence <= plain.confidence + 1e-12).all()
    np.testing.assert_array_equal(plain.truth, found.estimate.truth)

    alike = written(tmp_path, 0.0)
    other = infer(alike, Method())

    assert "assumed to have a correlation of 0." in str(other.confidence_note)
    np.testing.assert_array_equal(HierarchicalDawidSkene().fit(alike.reports).posterior, other.estimate.posterior)


def test_truths_unlike_the_votes_are_announced(crowd: Evidence) -> None:
    """Where a tenth of the truths or more differ from the votes, a warning says so; majority vote has none."""
    assert any("differ from the plurality" in note for note in infer(crowd, Method()).notes)
    assert not any("differ from the plurality" in note for note in infer(crowd, Method(name="majority-vote")).notes)


LABELS = Categories(("no", "yes"))
METHODS = [name for name in estimators_with(kind="categorical", needs_ordered_labels=False) if name != "glad"]
"""Methods for unordered labels that fit in less than a second."""


@pytest.fixture(scope="module")
def gold_crowd() -> Crowd:
    """Return 25 workers on 80 tasks."""
    return categorical_crowd(workers=25, tasks=80, labels=LABELS, sparsity=0.7, source=seeded(3))


def gold_written(folder: Path, gold_crowd: Crowd, known: int) -> tuple[Evidence, KnownTruths | None, dict[str, Any]]:
    """Write answers and gold of the first tasks, and return them as `infer` and as `aggregate` read them."""
    ordered_reports_table(gold_crowd.answers).to_pandas().astype(str).to_csv(folder / "answers.csv", index=False)
    gold = {str(task): str(gold_crowd.gold[task]) for task in list(gold_crowd.gold)[:known]}
    lines = "\n".join(["task,truth", *(f"{task},{truth}" for task, truth in gold.items())])
    (folder / "gold.csv").write_text(lines)
    read = read_known_truths(str(folder / "gold.csv"), "categorical") if gold else None
    return read_evidence(folder / "answers.csv"), read, gold


def beside(frame: Any, inference: Inference) -> tuple[np.ndarray, np.ndarray]:
    """Return confidence, and whether truths are the same, of an inference, in the order of the tasks of a frame."""
    own = {str(task): place for place, task in enumerate(inference.estimate.tasks.tolist())}
    order, confidence = [own[str(task)] for task in frame["task"]], inference.estimate.confidence
    same = inference.estimate.truth[order] == np.asarray(frame["truth"])
    return (np.zeros(len(order)) if confidence is None else confidence[order]), same


@pytest.mark.parametrize("known", [0, 30])
@pytest.mark.parametrize("method", [None, *METHODS])
def test_aggregate_and_infer_agree(method: str | None, known: int, gold_crowd: Crowd, tmp_path: Path) -> None:
    """Truths and confidences of the call and of the command are the same, for every method for labels."""
    evidence, read, gold = gold_written(tmp_path, gold_crowd, known)
    frame = ordered_reports_table(gold_crowd.answers).to_pandas().astype(str)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        called = aggregate(frame, method, gold=gold or None)

    confidence, same = beside(called, infer(evidence, Method(name=method), gold=read))

    assert same.all()
    np.testing.assert_array_equal(confidence, np.nan_to_num(np.asarray(called["confidence"], dtype=float)))


def test_known_truths_are_certain_and_the_result_says_what_gold_did(gold_crowd: Crowd, tmp_path: Path) -> None:
    """Gold tasks have their truth with certainty; the line names weights, gain and further tasks."""
    evidence, read, gold = gold_written(tmp_path, gold_crowd, 30)

    found = infer(evidence, Method(), gold=read)

    for words in (
        "30 gold tasks set the weights: hierarchical-dawid-skene",
        "% of the result is that without gold",
        "gain in accuracy has a standard error",
        "log-loss",
        "nats of their best",
    ):
        assert words in str(found.gold_line)
    place = {str(task): at for at, task in enumerate(found.estimate.tasks.tolist())}
    assert [found.estimate.truth[place[task]] for task in gold] == list(gold.values())
    assert found.estimate.confidence is not None
    assert {found.estimate.confidence[place[task]] for task in gold} == {1.0}
    assert infer(evidence, Method(), gold=gold_written(tmp_path, gold_crowd, 19)[1]).gold_line is None


@pytest.mark.slow
def test_gold_that_is_no_random_sample_is_named(gold_crowd: Crowd, tmp_path: Path) -> None:
    """Gold of one truth alone is called no random sample; that of the first tasks, which have both, is not."""
    evidence, _, _ = gold_written(tmp_path, gold_crowd, 30)
    every = {str(task): str(truth) for task, truth in gold_crowd.gold.items()}
    chosen = {
        "one truth": dict([item for item in every.items() if item[1] == "yes"][:30]),
        "first": dict(list(every.items())[:30]),
    }
    estimator = choose_estimator(Method(), evidence)

    found = {name: fit(estimator, evidence, inputs_of(gold)) for name, gold in chosen.items()}

    assert "not a random sample" in found["one truth"].notes[0]
    assert "probability of yes" in found["one truth"].notes[0]
    assert found["first"].notes == ()


def inputs_of(gold: dict[str, str]) -> dict[str, Any]:
    """Return the arguments of a fit without a channel."""
    return {"gold": gold, "channel": None, "assignment": None, "prior": None, "history": None}


@pytest.mark.slow
def test_ebcc_is_left_out_of_large_data(gold_crowd: Crowd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of reports and labels the stack has no EBCC, and says so."""
    evidence, read, _ = gold_written(tmp_path, gold_crowd, 30)
    assert "ebcc 0." in str(infer(evidence, Method(), gold=read).gold_line)
    monkeypatch.setattr(gold_stack, "EBCC_NUMBERS", 100)

    line = str(infer(evidence, Method(), gold=read).gold_line)

    assert "ebcc is left out" in line
    assert "ebcc 0." not in line


@pytest.mark.slow
def test_gold_is_stacked_behind_a_channel(gold_crowd: Crowd) -> None:
    """Reports of randomized response are stacked through their channel: confidence is near the accuracy of the rest,
    which is above that of the vote."""
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=1.5, participation="public")
    sent = perturb_reports(gold_crowd.answers, mechanism, seeded(4))
    gold = {task: str(gold_crowd.gold[task]) for task in list(gold_crowd.gold)[:40]}
    right = {}
    for method in (None, "majority-vote"):
        found = aggregate(sent, method, gold=gold, channel=mechanism.channel()).to_pylist()
        rest = [row for row in found if row["task"] not in gold]
        right[method] = np.mean([row["truth"] == str(gold_crowd.gold[row["task"]]) for row in rest])
        sure = np.mean([row["confidence"] for row in rest])
        if method is None:
            assert abs(sure - right[method]) < 0.1

    assert right[None] >= right["majority-vote"]


def sized(reports: int, labels: int) -> Any:
    """Reports of which only the size is known."""
    return type("Sized", (), {"__len__": lambda _: reports, "labels": labels})()


@pytest.mark.parametrize("method", ["ebcc", "ordinal-dawid-skene", "gaussian", "glad"])
def test_slow_methods_say_so_before_they_start(method: str) -> None:
    """A hundred thousand reports of fifty labels are announced, a thousand of two are not."""
    assert (slow_fit_warning(sized(100_000, 50), method) or "").startswith(f"{method} takes more than ten seconds")
    assert slow_fit_warning(sized(1_000, 2), method) is None


def test_other_methods_say_nothing() -> None:
    """The default stays quiet, and every announced method is registered."""
    assert slow_fit_warning(sized(100_000, 200), "hierarchical-dawid-skene") is None
    assert SLOW_WORK.keys() <= ESTIMATOR_ENTRIES.keys()


def test_an_inference_has_the_outlets_of_its_estimate() -> None:
    """Truths, workers and frames of an inference are those of its estimate, and an inference is a history."""
    answers = {"task": [1, 1, 1, 2, 2, 2], "worker": [*"abcabc"], "label": [*"yynnnn"]}
    found = infer(answers)

    assert found.truth.tolist() == found.estimate.truth.tolist() == ["y", "n"]
    assert found.workers is found.estimate.workers
    assert found.to_arrow("workers").equals(found.estimate.to_arrow("workers"))
    assert found.to_pandas().equals(found.estimate.to_pandas())
    assert found.to_polars().equals(found.estimate.to_polars())
    later = infer(answers, history=found)
    assert "3 of 3 workers have a history of ability" in str(later.history_note)
