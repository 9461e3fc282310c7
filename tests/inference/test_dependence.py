"""Dependent answers: their share, and copies of other workers."""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

import crowdveil as cv
from crowdveil import Categories, HierarchicalDawidSkene, Reports
from crowdveil.answers.blocks import Block
from crowdveil.em.kernels.jit import KERNELS_VARIABLE
from crowdveil.em.kernels.report_weights import PairShares
from crowdveil.estimators.copies import compared_answers as copies
from crowdveil.estimators.copies.compared_answers import ComparedAnswers
from crowdveil.estimators.copies.near_copies import find_near_copies
from crowdveil.estimators.copies.pair_abilities import report_pairs_by_task
from crowdveil.inference import dependence as beyond_model
from crowdveil.inference.dependence import LAGS, measure_dependence

LABELS = Categories(("a", "b", "c"))
PRIOR = np.array([0.5, 0.3, 0.2])


def crowd(copied: float, tasks: int) -> tuple[Reports, NDArray[np.float64]]:
    """Return five answers to each task, each the task's common answer with probability sqrt(copied), and abilities."""
    rng = np.random.default_rng(4)
    confusion = np.array([one * np.eye(3) + (1 - one) / 3 for one in rng.uniform(0.3, 0.8, 20)])
    rows = []
    for task, truth in enumerate(rng.choice(3, tasks, p=PRIOR)):
        common = rng.choice(3, p=confusion.mean(axis=0)[truth])
        for worker in rng.choice(20, 5, replace=False):
            own = rng.choice(3, p=confusion[worker, truth])
            rows.append((task, worker, common if rng.random() < copied**0.5 else own))
    task, worker, value = np.array(rows).T
    return Reports(task, worker, value, np.arange(tasks), np.arange(20), LABELS), confusion


@pytest.mark.parametrize("kernels", ["plain", "compiled"])
def test_figures_are_the_equations(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Observed and predicted agreement, the share of copies and its error equal loops over pairs of answers."""
    monkeypatch.setenv(KERNELS_VARIABLE, kernels)
    monkeypatch.setattr(beyond_model, "CHUNK_NUMBERS", 9 * 17)
    reports, confusion = crowd(0.2, tasks=60)
    excess, room, agree = np.zeros(60), np.zeros(60), []
    for task in range(60):
        rows = sorted(np.flatnonzero(reports.task == task), key=lambda row: reports.worker[row])
        for one in range(5):
            for other in (one + lag for lag in LAGS if one + lag < 5):
                given = PRIOR.copy()
                for row in (row for at, row in enumerate(rows) if at not in (one, other)):
                    given *= confusion[reports.worker[row], :, reports.value[row]]
                pair = [confusion[reports.worker[rows[at]]] for at in (one, other)]
                predicted = given / given.sum() @ (pair[0] * pair[1]).sum(axis=1)
                agree.append(float(reports.value[rows[one]] == reports.value[rows[other]]))
                excess[task] += agree[-1] - predicted
                room[task] += 1 - predicted
    copied = excess.sum() / room.sum()

    found = measure_dependence(reports, confusion, PRIOR)

    assert found is not None
    assert (len(agree), pytest.approx(np.mean(agree))) == (found.pairs, found.observed)
    assert pytest.approx(np.mean(agree) - excess.sum() / len(agree)) == found.predicted
    assert pytest.approx(copied) == found.copied
    assert pytest.approx(np.linalg.norm(excess - copied * room) / room.sum()) == found.standard_error


@pytest.mark.parametrize("labels", [3, 9])
def test_compiled_sums_are_those_of_numpy(labels: int) -> None:
    """Tasks of up to 400 answers, whose probabilities multiply to less than any number, have the sums of numpy."""
    rng = np.random.default_rng(5)
    tables, prior = rng.dirichlet(np.full(labels, 0.2), (30, labels)).swapaxes(1, 2), np.full(labels, 1 / labels)
    pointers = np.cumsum([0, 400, 1, 0, 2, 7])
    worker, label = rng.integers(0, 30, pointers[-1], dtype=np.int32), rng.integers(0, labels, pointers[-1])
    block = Block(0, 5, pointers, worker, label)

    found = beyond_model._pair_agreement_sums_compiled(block, np.ascontiguousarray(tables), prior)

    np.testing.assert_allclose(
        found, beyond_model._pairs_equal_pairs_and_predicted(block, tables, prior), rtol=1e-9, atol=0
    )


def test_few_tasks_with_two_answers_say_nothing() -> None:
    """Below 50 tasks, and where every worker answers another task, nothing is measured."""
    reports, confusion = crowd(0.0, tasks=49)
    single = Reports(np.arange(90), np.arange(90), np.zeros(90, int), np.arange(90), np.arange(90), LABELS)

    assert measure_dependence(reports, confusion, PRIOR) is None
    assert measure_dependence(single, np.broadcast_to(np.eye(3), (90, 3, 3)), PRIOR) is None


def copies_crowd(
    abilities: list[float], copied: tuple[float, int], tasks: int, seed: int
) -> tuple[Reports, np.ndarray]:
    """Return the answers of workers with these abilities and of copies of one more worker, and the truths."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, tasks)
    answers = [np.where(rng.random(tasks) < one, truth, (truth + rng.integers(1, 3, tasks)) % 3) for one in abilities]
    own = np.where(rng.random(tasks) < copied[0], truth, (truth + rng.integers(1, 3, tasks)) % 3)
    table = np.stack(answers + [own] * copied[1], axis=1)
    task, worker = np.divmod(np.arange(table.size), table.shape[1])
    names = [
        np.array([f"{kind}{number:04d}" for number in range(size)])
        for kind, size in (("t", tasks), ("w", table.shape[1]))
    ]
    return Reports(task, worker, table.ravel(), names[0], names[1], LABELS), truth


def all_copies(reports: Reports) -> PairShares | None:
    """Return the near-copies among all workers."""
    return find_near_copies(reports, np.ones(len(reports.workers), dtype=bool))


@pytest.mark.parametrize("tasks", [300, 1000])
def test_a_poor_worker_who_is_copied_does_not_decide(tasks: int) -> None:
    """Nine copies of a worker who is right in 55 %, beside five at 60 to 70 %: they are found, and .8 are right."""
    reports, truth = copies_crowd([0.6, 0.65, 0.7, 0.7, 0.6], (0.55, 10), tasks, 0)
    found = all_copies(reports)

    assert found is not None
    assert list(combinations(range(5, 15), 2)) == list(zip(found.first, found.second, strict=True))
    estimate = HierarchicalDawidSkene().fit(reports)
    assert (estimate.posterior.argmax(axis=1) == truth).mean() > 0.8
    assert estimate.workers.copied is not None
    np.testing.assert_allclose(estimate.workers.copied, [0.0] * 5 + [1.0] * 10)


@pytest.mark.parametrize("kernels", ["plain", "compiled"])
def test_pairs_that_share_counts_are_told_apart(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are the same where all pairs of workers share eight counts of equal answers."""
    reports, _ = copies_crowd([0.6, 0.65, 0.7, 0.7, 0.6], (0.55, 10), 300, 0)
    expected = all_copies(reports)
    monkeypatch.setenv(KERNELS_VARIABLE, kernels)
    monkeypatch.setattr(copies, "MAX_BUCKETS", 8)

    found = all_copies(reports)

    assert expected is not None
    assert found is not None
    assert 45 == len(found.first)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_compiled_counts_of_equal_answers_are_those_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts by pair of workers equal those of listed pairs, also where a worker answers twice, and end at 255."""
    rng = np.random.default_rng(0)
    task, worker, label = (rng.integers(0, size, 4000) for size in (400, 8, 2))
    reports = Reports(task, worker, label, np.arange(400), np.arange(8), LABELS)
    listed = report_pairs_by_task(next(reports.blocks(4000)), 8)
    equal = np.bincount(np.concatenate([pair[same] for pair, same in listed]), minlength=128)
    monkeypatch.setenv(KERNELS_VARIABLE, "compiled")

    found = copies._equal_answers_by_bucket(ComparedAnswers(reports))

    assert equal.max() > 255
    np.testing.assert_array_equal(found, np.minimum(equal, 255))


@pytest.mark.parametrize("tasks", [100, 300, 1000, 4000])
@pytest.mark.parametrize("abilities", [[0.995] * 8, [0.999] * 6 + [0.6, 0.7, 0.7, 0.8], [0.6, 0.7, 0.8, 0.9]])
def test_excellent_workers_are_no_copies(abilities: list[float], tasks: int) -> None:
    """Independent workers are no copies, however often they agree (three seeds each)."""
    assert [None] * 3 == [all_copies(copies_crowd(abilities, (0.6, 1), tasks, seed)[0]) for seed in range(3)]


def test_one_answer_of_a_group_is_kept() -> None:
    """Of two copies the first one's answer is kept; where only the second one answered, that one is."""
    task, worker, label = [0, 0, 0, 1, 1], [0, 1, 2, 1, 2], [0, 1, 2, 1, 2]
    reports = Reports(task, worker, label, np.array(["t", "u"]), np.array(["v", "w", "x"]), LABELS)

    (kept,) = ComparedAnswers(reports, group=np.array([0, 0, 2])).blocks()

    assert [(0, 0), (0, 2), (1, 1), (1, 2)] == list(zip(kept.task.tolist(), kept.worker.tolist(), strict=True))


def test_aggregate_and_review_name_copies() -> None:
    """`aggregate` counts copies once and says so; `review` names with whom each of them answers alike."""
    reports, truth = copies_crowd([0.6, 0.65, 0.7, 0.7, 0.6], (0.55, 10), 300, 0)
    with (
        pytest.warns(UserWarning, match="plurality"),
        pytest.warns(UserWarning, match="10 of 15 workers answer more alike"),
    ):
        found = cv.aggregate(reports)
    reviewed = cv.review(reports).to_pylist()

    assert (
        np.mean([row["truth"] == LABELS.names[code] for row, code in zip(found.to_pylist(), truth, strict=True)]) > 0.8
    )
    assert {f"w{number:04d}" for number in range(5, 15)} <= {row["worker"] for row in reviewed}
    assert all("300 of 300 shared" in row["reason"] for row in reviewed if row["worker"] >= "w0005")


@pytest.mark.parametrize("kernels", ["plain", "compiled"])
def test_memory_of_near_copies_is_bounded(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies among 600 workers with 150,000 pairs of workers are found within the declared memory."""
    monkeypatch.setenv(KERNELS_VARIABLE, kernels)
    rng = np.random.default_rng(0)
    task, worker = np.repeat(np.arange(20_000), 5), rng.integers(0, 595, 100_000)
    early, place = task < 400, np.tile(np.arange(5), 20_000)
    copying = early & (place < 3)
    worker[copying] = 595 + place[copying]
    truth, source = rng.integers(0, 3, 20_000), rng.integers(0, 3, 20_000)
    value = np.where(rng.random(len(task)) < 0.7, truth[task], rng.integers(0, 3, len(task)))
    value[copying] = source[task[copying]]
    _, kept = np.unique(task * 600 + worker, return_index=True)
    reports = Reports(task[kept], worker[kept], value[kept], np.arange(20_000), np.arange(600), LABELS)
    all_copies(reports)

    tracemalloc.start()
    found = all_copies(reports)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert found is not None
    assert [(595, 596), (595, 597), (596, 597)] == list(zip(found.first, found.second, strict=True))
    assert peak < copies.bytes_to_compare_workers(reports.per_task, 600)
