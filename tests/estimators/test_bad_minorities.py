"""A minority of repeaters or near-copies does not decide: first weights, evidence, shares of pairs, and accuracy.

u(t, w) = ((7919 t + 104729 w + 31 t^2 w + 17 t w^2 + 1299709) mod 10007) / 10007, truth (t^2 + floor(t / 3)) mod 3.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from crowdveil import Categories, HierarchicalDawidSkene, RandomizedResponse, Reports
from crowdveil.em.estimator import validated_input
from crowdveil.em.loop import run_em
from crowdveil.errors import SettingsError
from crowdveil.estimators.confusion import independent_workers
from crowdveil.estimators.confusion.compared_starts import compared_starts, log_evidence
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_reports

LABELS = Categories(("a", "b", "c"))
TASKS = 300
TRUTH = (np.arange(TASKS) ** 2 + np.arange(TASKS) // 3) % 3
DEFAULT = HierarchicalDawidSkene()


def pseudo_random(task: int, worker: int) -> float:
    """Return u."""
    return ((7919 * task + 104729 * worker + 31 * task**2 * worker + 17 * task * worker**2 + 1299709) % 10007) / 10007


def honest_answer(task: int, worker: int, ability: float) -> int:
    """Return the truth if u is below the ability, else one of the other labels."""
    own, truth = pseudo_random(task, worker), int(TRUTH[task])
    return truth if own < ability else (truth + 1 + int(1000 * own) % 2) % 3


def reports_of(rows: list[tuple[int, int, int]], workers: int) -> Reports:
    """Return the reports of (task, worker, label) codes."""
    task, worker, label = np.array(sorted(rows)).T
    codes = task.astype(np.int32), worker.astype(np.int32), label.astype(np.int16)
    return Reports(*codes, np.arange(TASKS), np.arange(workers), LABELS)


def repeaters() -> Reports:
    """Return five answers a task of 40 workers: 20 always say the first label, others are right in .75."""
    cells = [(task, (3 * task + 7 * k) % 40) for task in range(TASKS) for k in range(5)]
    return reports_of([(t, w, 0 if w < 20 else honest_answer(t, w, 0.75)) for t, w in cells], 40)


def near_copies() -> Reports:
    """Return nine independent workers, right in .65 and the last in .5, whom seven copy with a tenth of changes."""
    rows = [(t, w, honest_answer(t, w, 0.5 if w == 8 else 0.65)) for t in range(TASKS) for w in range(9)]
    for copy in range(9, 16):
        for task in range(TASKS):
            own = pseudo_random(task, copy + 20)
            label = int(5000 * own) % 3 if own < 0.1 else honest_answer(task, 8, 0.5)
            rows.append((task, copy, label))
    return reports_of(rows, 16)


def accuracy(reports: Reports) -> float:
    """Return the share of right truths of the default."""
    return float((DEFAULT.fit(reports).posterior.argmax(axis=1) == TRUTH).mean())


def test_repeaters_are_seen_in_the_votes_of_others() -> None:
    """The first probabilities are above .999999 for half of the workers, who repeat, and at most .26 for others."""
    first = validated_input(DEFAULT, repeaters()).summary.independent

    assert first is not None
    assert first[:20].min() >= 0.999999
    assert first[20:].max() <= 0.26
    assert first.sum() == pytest.approx(20.694, abs=1e-3)


def test_starts_have_the_evidence_of_the_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evidence of the usual, the own and the balanced start, if seven steps learn who is independent."""
    monkeypatch.setattr(independent_workers, "LEARNING_STEPS", range(7))
    data = validated_input(DEFAULT, repeaters())
    starts = compared_starts(DEFAULT.initialize(data.summary))

    found = [log_evidence(run_em(replace(DEFAULT, max_steps=8), one, data, intervals=False)) for one in starts]

    assert found == pytest.approx([-845.5232, -845.7695, -845.4753], abs=1e-3)


def test_repeaters_do_not_decide() -> None:
    """With half of the workers repeating, .78 of the truths are right, and confidence says so; the vote has .49."""
    estimate = DEFAULT.fit(repeaters())

    assert accuracy(repeaters()) > 0.77
    assert estimate.confidence is not None
    assert estimate.confidence.mean() == pytest.approx(accuracy(repeaters()), abs=0.04)
    assert estimate.workers.independent is not None
    assert (estimate.workers.independent > 0.5).tolist() == [True] * 20 + [False] * 20


def test_near_copies_count_about_once() -> None:
    """All 28 pairs of seven copies and their source have shares of .69 to .91, and each answer of theirs counts .15."""
    reports = near_copies()
    copies = validated_input(DEFAULT, reports).summary.copies

    assert copies is not None
    assert list(zip(copies.first, copies.second, strict=True)) == [
        (i, j) for i in range(8, 16) for j in range(i + 1, 16)
    ]
    assert (copies.share.min(), copies.share.max()) == pytest.approx((0.693, 0.911), abs=1e-3)
    assert copies.share[0] == pytest.approx(0.884, abs=1e-3)
    weights = copies.weights(reports.rows.block(0, TASKS))
    assert (weights[reports.worker < 8] == 1).all()
    assert weights[reports.worker >= 8].mean() == pytest.approx(0.152, abs=1e-3)


def test_near_copies_do_not_decide() -> None:
    """With seven near-copies of a worker who is right in .5, .94 of the truths are right; one vote each has .6."""
    assert accuracy(near_copies()) > 0.94


@pytest.mark.parametrize("reports", [repeaters(), near_copies()], ids=["repeaters", "copies"])
def test_names_do_not_matter(reports: Reports) -> None:
    """Other orders of tasks, labels and workers change no posterior, with copies by less than a thousandth."""
    rng = np.random.default_rng(0)
    task, worker, label = (rng.permutation(size) for size in (TASKS, len(reports.workers), 3))
    order = np.lexsort((worker[reports.worker], task[reports.task]))
    columns = task[reports.task][order], worker[reports.worker][order], label[reports.value][order]
    renamed = Reports(columns[0], columns[1], columns[2], np.arange(TASKS), np.arange(len(worker)), LABELS)

    found = DEFAULT.fit(renamed).posterior[np.ix_(task, label)]

    tolerance = 1e-3 if len(reports.workers) == 16 else 1e-9
    np.testing.assert_allclose(found, DEFAULT.fit(reports).posterior, atol=tolerance)


@pytest.mark.parametrize("reports", [repeaters(), near_copies()], ids=["repeaters", "copies"])
def test_tasks_without_answers_change_nothing(reports: Reports) -> None:
    """Fifty further tasks without answers leave the posteriors of the others as they are."""
    more = Reports(reports.task, reports.worker, reports.value, np.arange(TASKS + 50), reports.workers, LABELS)

    found = DEFAULT.fit(more).posterior[:TASKS]

    np.testing.assert_allclose(found, DEFAULT.fit(reports).posterior, atol=1e-9)


@pytest.mark.parametrize("kernels", ["plain", "compiled"])
@pytest.mark.parametrize("reports", [repeaters(), near_copies()], ids=["repeaters", "copies"])
def test_kernels_agree(reports: Reports, kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled and plain kernels have the same posteriors and probabilities of independence."""
    expected = DEFAULT.fit(reports)
    monkeypatch.setenv("CROWDVEIL_KERNELS", kernels)

    found = DEFAULT.fit(reports)

    np.testing.assert_allclose(found.posterior, expected.posterior, atol=1e-8)
    assert found.workers.independent is not None
    np.testing.assert_allclose(found.workers.independent, expected.workers.independent, atol=1e-8)


def test_a_state_without_independence_is_refused() -> None:
    """The state of a version that did not learn who is independent is refused; a complete one is resumed."""
    reports = repeaters()
    state = DEFAULT.fit(reports).state
    assert state is not None
    older = replace(state, by_worker={name: one for name, one in state.by_worker.items() if name != "independent"})

    resumed = DEFAULT.fit(reports, warm_start=state)

    assert (resumed.posterior.argmax(axis=1) == TRUTH).mean() > 0.77
    with pytest.raises(SettingsError, match="of this version"):
        DEFAULT.fit(reports, warm_start=older)


def test_repeaters_do_not_decide_behind_noise() -> None:
    """At epsilon 2 with public participation repeaters are found in reports; without weights .38 would be right.

    Protected participation and epsilon .5 tell too little: the weights are off.
    """
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=2.0, participation="public")
    reports = perturb_reports(repeaters(), mechanism, seeded(0))

    estimate = DEFAULT.fit(reports, channel=mechanism.channel())

    assert (estimate.posterior.argmax(axis=1) == TRUTH).mean() > 0.6
    assert estimate.workers.independent is not None
    assert estimate.workers.independent[:20].mean() > 0.9
    assert estimate.workers.independent[20:].mean() < 0.2
    others: tuple[tuple[Any, float], ...] = (("protected", 4.0), ("public", 0.5))
    for participation, epsilon in others:
        off = RandomizedResponse(alphabet=LABELS, epsilon=epsilon, participation=participation)
        assert (
            DEFAULT.fit(perturb_reports(repeaters(), off, seeded(0)), channel=off.channel()).workers.independent is None
        )


def test_six_tasks_are_never_certain() -> None:
    """Two honest workers and three who always say no: on six tasks no confidence is above .8."""
    rows = [(task, worker, task % 2 if worker < 2 else 0) for task in range(6) for worker in range(5)]
    task, worker, label = np.array(rows).T
    codes = task.astype(np.int32), worker.astype(np.int32), label.astype(np.int16)
    reports = Reports(*codes, np.arange(6), np.arange(5), Categories(("no", "yes")))

    confidence = DEFAULT.fit(reports).confidence

    assert confidence is not None
    assert confidence.max() < 0.8
