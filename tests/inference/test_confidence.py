"""Confidence of `infer`: the assumption is stated, and truths unlike the votes are announced."""

from pathlib import Path

import numpy as np
import pytest

from crowdveil import HierarchicalDawidSkene
from crowdveil.folder.evidence import Evidence, read_evidence
from crowdveil.inference.inference import infer
from crowdveil.inference.methods import Method


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
    assert "assumed correlation of 0.25" in str(infer(crowd, Method()).confidence_note)
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
    assert "assumed correlation of 0.35" in str(found.confidence_note)
    assert found.estimate.confidence is not None
    assert plain.confidence is not None
    assert (found.estimate.confidence <= plain.confidence + 1e-12).all()
    np.testing.assert_array_equal(plain.truth, found.estimate.truth)

    alike = written(tmp_path, 0.0)
    other = infer(alike, Method())

    assert "assumed correlation of 0.25" in str(other.confidence_note)
    np.testing.assert_array_equal(HierarchicalDawidSkene().fit(alike.reports).posterior, other.estimate.posterior)


def test_truths_unlike_the_votes_are_announced(crowd: Evidence) -> None:
    """Where a tenth of the truths or more differ from the votes, a warning says so; majority vote has none."""
    assert any("differ from the plurality" in note for note in infer(crowd, Method()).notes)
    assert not any("differ from the plurality" in note for note in infer(crowd, Method(name="majority-vote")).notes)
