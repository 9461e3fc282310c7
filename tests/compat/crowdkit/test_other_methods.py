"""M-MSR, KOS, MACE and GLAD with crowd-kit's interface."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime

from crowdveil.compat.crowdkit import GLAD, KOS, MACE, MMSR
from crowdveil.compat.crowdkit.answer_table import read_answers
from crowdveil.errors import ReportsError, SettingsError
from tests.compat.crowdkit.answers import frame

TRUTH = "xyxxyxyyxyxy"
TASKS = "abcdefghijkl"
CROWD = frame(TASKS, v=TRUTH, w="xyxxyxyyxyyx", u="xyxxyyxyxyxy", t="yyxxyxyyxyxy", s="yyyyyyyyyyyy")


@pytest.mark.parametrize("method", [MMSR, KOS, MACE, GLAD, lambda: MACE(method="em")])
def test_the_truth_is_found(method: type[MMSR]) -> None:
    """Four good workers and one who repeats a label give the truth."""
    labels = method().fit_predict(CROWD)

    assert list(TRUTH) == labels.tolist()
    assert ("agg_label", "task") == (labels.name, labels.index.name)


def test_m_msr_weighs_votes_by_log_odds() -> None:
    """Skills are log-odds: who repeats a label has the smallest, and scores are the weighted votes."""
    method = MMSR()
    scores = method.fit_predict_score(CROWD)
    weights = method.skills_

    assert "s" == weights.idxmin()
    assert weights[["u", "v", "w"]].sum() / abs(weights.sum()) == pytest.approx(scores.loc["a", "x"])
    assert 0 < len(method.loss_history_) < 10000


def test_kos_accepts_two_labels_only_and_no_answers() -> None:
    """Three labels are refused; no answers have no labels."""
    with pytest.raises(SettingsError, match="two labels"):
        KOS().fit(frame("a", v="x", w="y", u="z"))
    assert 0 == len(KOS().fit_predict(CROWD[:0]))


def test_kos_stays_finite() -> None:
    """Thousands of rounds of growing messages do not overflow."""
    many = pd.concat([frame(TASKS, **{f"v{i}": TRUTH}) for i in range(40)])

    assert list(TRUTH) == KOS(n_iter=2000).fit_predict(many).tolist()


def test_restarts_of_mace_differ() -> None:
    """Each run starts elsewhere: the best of several is not the first; the first depends on the seed alone."""
    start = [MACE(n_restarts=1, n_iter=0, random_state=seed).fit(CROWD).spamming_ for seed in (0, 1, 1)]

    assert not np.allclose(start[0], start[1])
    np.testing.assert_array_equal(start[1], start[2])
    assert (5, 2) == MACE(n_restarts=3, n_iter=5).fit(CROWD).thetas_.shape


def test_results_of_mace_do_not_depend_on_row_order() -> None:
    """Workers and labels are aligned whatever comes first."""
    forward, backward = (MACE(n_restarts=1).fit(data) for data in (CROWD, CROWD[::-1]))

    np.testing.assert_allclose(forward.thetas_, backward.thetas_)
    assert forward.spamming_[0, 0] == max(forward.spamming_[:, 0])


def test_gradient_of_glad_is_that_of_its_expectation() -> None:
    """The gradient equals finite differences, and labels need a prior."""
    problem = GLAD()._problem(read_answers(CROWD))
    point = np.linspace(0.5, 1.5, len(problem.centre))
    share = problem.posterior(point)[problem.table.task, problem.label]
    slopes = approx_fprime(point, lambda at: problem.expectation(at, share), 1e-7)

    np.testing.assert_allclose(problem.gradient(point, share), slopes, atol=1e-4)
    with pytest.raises(ReportsError, match="labels_priors"):
        GLAD(labels_priors=pd.Series({"x": 1.0})).fit(CROWD)


def test_glad_names_its_parameters() -> None:
    """Abilities are by worker, easiness by task; the worker who repeats a label has the least ability."""
    fitted = GLAD(n_iter=20).fit(CROWD)

    assert ("alpha", "worker", "beta", "task") == (
        fitted.alphas_.name,
        fitted.alphas_.index.name,
        fitted.betas_.name,
        fitted.betas_.index.name,
    )
    assert "s" == fitted.alphas_.idxmin()
