"""Copies of workers: found, counted once, and not confused with excellent workers."""

import numpy as np
import pytest

import crowdveil as cv
from crowdveil import Categories, HierarchicalDawidSkene, Reports
from crowdveil.evaluation import copies
from crowdveil.evaluation.copies import find_copies, once, with_copies

LABELS = Categories(("a", "b", "c"))


def crowd(abilities: list[float], copied: tuple[float, int], tasks: int, seed: int) -> tuple[Reports, np.ndarray]:
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
    columns = task.astype(np.int32), worker.astype(np.int32), table.ravel().astype(np.int16)
    return Reports(*columns, *names, LABELS), truth


@pytest.mark.parametrize("tasks", [300, 1000])
def test_a_poor_worker_who_is_copied_does_not_decide(tasks: int) -> None:
    """Nine copies of a worker who is right in 55 %, beside five at 60 to 70 %: from below .6 right to above .8."""
    reports, truth = crowd([0.6, 0.65, 0.7, 0.7, 0.6], (0.55, 10), tasks, 0)
    found = find_copies(reports)

    assert found is not None
    assert [*range(5), *[5] * 10] == found.group.tolist()
    assert 9 == found.copied_workers
    own = HierarchicalDawidSkene()
    estimate = with_copies(own.fit(once(reports, found.group)), reports, found.group)
    assert (own.fit(reports).posterior.argmax(axis=1) == truth).mean() < 0.6
    assert (estimate.posterior.argmax(axis=1) == truth).mean() > 0.8
    assert len(set(estimate.workers.quality[5:].tolist())) == 1
    assert reports.per_worker.tolist() == estimate.reports_per_worker.tolist()


def test_pairs_that_share_counts_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are the same where all pairs of workers share seven counts of equal answers."""
    reports, _ = crowd([0.6, 0.65, 0.7, 0.7, 0.6], (0.55, 10), 300, 0)
    expected = find_copies(reports)
    monkeypatch.setattr(copies, "MAX_BUCKETS", 7)

    found = find_copies(reports)

    assert expected is not None
    assert found is not None
    assert 45 == len(found.pairs.first)
    for one, other in zip((found.group, *found.pairs), (expected.group, *expected.pairs), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("tasks", [100, 300, 1000, 4000])
@pytest.mark.parametrize("abilities", [[0.995] * 8, [0.999] * 6 + [0.6, 0.7, 0.7, 0.8], [0.6, 0.7, 0.8, 0.9]])
def test_excellent_workers_are_no_copies(abilities: list[float], tasks: int) -> None:
    """Independent workers are no copies, however often they agree (three seeds each)."""
    assert [None] * 3 == [find_copies(crowd(abilities, (0.6, 1), tasks, seed)[0]) for seed in range(3)]


def test_one_answer_of_a_group_is_kept() -> None:
    """Of two copies the first one's answer is kept; where only the second one answered, that one is."""
    columns = [0, 0, 0, 1, 1], [0, 1, 2, 1, 2], [0, 1, 2, 1, 2]
    arrays = (np.array(column, dtype) for column, dtype in zip(columns, (np.int32, np.int32, np.int16), strict=True))
    reports = Reports(*arrays, np.array(["t", "u"]), np.array(["v", "w", "x"]), LABELS)

    kept = once(reports, np.array([0, 0, 2]))

    assert [(0, 0), (0, 2), (1, 1), (1, 2)] == list(zip(kept.task.tolist(), kept.worker.tolist(), strict=True))


def test_aggregate_and_review_name_copies() -> None:
    """`aggregate` counts copies once and says so; `review` names with whom each of them answers alike."""
    reports, truth = crowd([0.6, 0.65, 0.7, 0.7, 0.6], (0.55, 10), 300, 0)
    with pytest.warns(UserWarning, match="plurality"), pytest.warns(UserWarning, match="9 of 15 workers answer as"):
        found = cv.aggregate(reports)
    reviewed = cv.review(reports).to_pylist()

    assert (
        np.mean([row["truth"] == LABELS.names[code] for row, code in zip(found.to_pylist(), truth, strict=True)]) > 0.8
    )
    assert {f"w{number:04d}" for number in range(5, 15)} <= {row["worker"] for row in reviewed}
    assert all("300 of 300 common" in row["reason"] for row in reviewed if row["worker"] >= "w0005")
