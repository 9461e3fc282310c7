"""Gold combines methods: `infer` and `aggregate` give the same numbers, and the result says what gold did."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdveil import Categories, RandomizedResponse, aggregate
from crowdveil.data.write_reports import reports_table
from crowdveil.folder.evidence import Evidence, read_evidence
from crowdveil.inference import gold_stack
from crowdveil.inference.confidence import fit_evidence
from crowdveil.inference.inference import Inference, infer
from crowdveil.inference.methods import Method, build_estimator
from crowdveil.randomness import seeded
from crowdveil.registry import estimators_with
from crowdveil.simulate import Crowd, categorical_crowd, perturb

LABELS = Categories(("no", "yes"))
METHODS = [name for name in estimators_with(kind="categorical", needs_ordered_labels=False) if name != "glad"]
"""Methods for unordered labels that fit in less than a second."""


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    """Return 25 workers on 80 tasks."""
    return categorical_crowd(workers=25, tasks=80, labels=LABELS, sparsity=0.7, source=seeded(3))


def written(folder: Path, crowd: Crowd, known: int) -> tuple[Evidence, str, dict[str, Any]]:
    """Write answers and gold of the first tasks, and return them as `infer` and as `aggregate` read them."""
    reports_table(crowd.answers).to_pandas().astype(str).to_csv(folder / "answers.csv", index=False)
    gold = {str(task): str(crowd.gold[task]) for task in list(crowd.gold)[:known]}
    lines = "\n".join(["task,truth", *(f"{task},{truth}" for task, truth in gold.items())])
    (folder / "gold.csv").write_text(lines)
    return read_evidence(folder / "answers.csv"), str(folder / "gold.csv"), gold


def beside(frame: Any, inference: Inference) -> tuple[np.ndarray, np.ndarray]:
    """Return confidence, and whether truths are the same, of an inference, in the order of the tasks of a frame."""
    own = {str(task): place for place, task in enumerate(inference.estimate.tasks.tolist())}
    order, confidence = [own[str(task)] for task in frame["task"]], inference.estimate.confidence
    same = inference.estimate.truth[order] == np.asarray(frame["truth"])
    return (np.zeros(len(order)) if confidence is None else confidence[order]), same


@pytest.mark.parametrize("known", [0, 30])
@pytest.mark.parametrize("method", [None, *METHODS])
def test_aggregate_and_infer_agree(method: str | None, known: int, crowd: Crowd, tmp_path: Path) -> None:
    """Truths and confidences of the call and of the command are the same, for every method for labels."""
    evidence, path, gold = written(tmp_path, crowd, known)
    frame = reports_table(crowd.answers).to_pandas().astype(str)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        called = aggregate(frame, method, gold=gold or None)

    confidence, same = beside(called, infer(evidence, Method(name=method), gold=path if known else None))

    assert same.all()
    np.testing.assert_array_equal(confidence, np.nan_to_num(np.asarray(called["confidence"], dtype=float)))


def test_known_truths_are_certain_and_the_result_says_what_gold_did(crowd: Crowd, tmp_path: Path) -> None:
    """Gold tasks have their truth with certainty; the line names weights, gain and further tasks."""
    evidence, path, gold = written(tmp_path, crowd, 30)

    found = infer(evidence, Method(), gold=path)

    for words in (
        "30 tasks weigh hierarchical-dawid-skene",
        "gain in accuracy has a standard error",
        "log-loss",
        "nats of their best",
    ):
        assert words in str(found.gold_line)
    place = {str(task): at for at, task in enumerate(found.estimate.tasks.tolist())}
    assert [found.estimate.truth[place[task]] for task in gold] == list(gold.values())
    assert found.estimate.confidence is not None
    assert {found.estimate.confidence[place[task]] for task in gold} == {1.0}
    assert infer(evidence, Method(), gold=written(tmp_path, crowd, 19)[1]).gold_line is None


@pytest.mark.slow
def test_gold_that_is_no_random_sample_is_named(crowd: Crowd, tmp_path: Path) -> None:
    """Gold of one truth alone is called no random sample; that of the first tasks, which have both, is not."""
    evidence, _, _ = written(tmp_path, crowd, 30)
    every = {str(task): str(truth) for task, truth in crowd.gold.items()}
    chosen = {
        "one truth": dict([item for item in every.items() if item[1] == "yes"][:30]),
        "first": dict(list(every.items())[:30]),
    }
    estimator = build_estimator(Method(), evidence)

    found = {name: fit_evidence(estimator, evidence, inputs_of(gold)) for name, gold in chosen.items()}

    assert "no random sample" in found["one truth"].notes[0]
    assert "probability of yes" in found["one truth"].notes[0]
    assert found["first"].notes == ()


def inputs_of(gold: dict[str, str]) -> dict[str, Any]:
    """Return the arguments of a fit without a channel."""
    return {"gold": gold, "channel": None, "assignment": None, "prior": None, "history": None}


@pytest.mark.slow
def test_ebcc_is_left_out_of_large_data(crowd: Crowd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of reports and labels the stack has no EBCC, and says so."""
    evidence, path, _ = written(tmp_path, crowd, 30)
    assert "ebcc 0." in str(infer(evidence, Method(), gold=path).gold_line)
    monkeypatch.setattr(gold_stack, "EBCC_NUMBERS", 100)

    line = str(infer(evidence, Method(), gold=path).gold_line)

    assert "ebcc is left out" in line
    assert "ebcc 0." not in line


@pytest.mark.slow
def test_gold_is_stacked_behind_a_channel(crowd: Crowd) -> None:
    """Reports of randomized response are stacked through their channel: confidence is near the accuracy of the rest,
    which is above that of the vote."""
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=1.5, participation="public")
    sent = perturb(crowd.answers, mechanism, seeded(4))
    gold = {task: str(crowd.gold[task]) for task in list(crowd.gold)[:40]}
    right = {}
    for method in (None, "majority-vote"):
        found = aggregate(sent, method, gold=gold, channel=mechanism.channel()).to_pylist()
        rest = [row for row in found if row["task"] not in gold]
        right[method] = np.mean([row["truth"] == str(crowd.gold[row["task"]]) for row in rest])
        sure = np.mean([row["confidence"] for row in rest])
        if method is None:
            assert abs(sure - right[method]) < 0.1

    assert right[None] >= right["majority-vote"]
