"""Made-up crowds of benchmarks."""

from pathlib import Path

import numpy as np
import pytest

from crowdveil import MajorityVote, Reports
from crowdveil.bench import crowd


def columns(folder: Path) -> list[np.ndarray]:
    """Return task, worker and label."""
    return [np.load(folder / f"{name}.npy") for name in crowd.COLUMNS]


def test_a_crowd_has_the_size_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten answers a task and a hundred a worker, no cell twice, whatever is drawn together."""
    monkeypatch.setattr(crowd, "TASKS_AT_ONCE", 150)
    crowd.write_crowd(tmp_path, 4000)
    task, worker, label = columns(tmp_path)

    assert 4000 == len(task) == len(set(zip(task.tolist(), worker.tolist(), strict=True)))
    assert (399, 39, 4) == (task.max(), worker.max(), label.max())
    assert 0 == min(task.min(), worker.min(), label.min())
    assert (np.diff(task) < 0).any()


def test_rows_stay_whole_and_the_seed_makes_them(tmp_path: Path) -> None:
    """Columns are mixed alike: majorities agree with most of the answers; the same seed gives the same rows."""
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        (tmp_path / name).mkdir()
        crowd.write_crowd(tmp_path / name, 5000, seed=seed)
    task, worker, label = first = columns(tmp_path / "a")
    estimate = MajorityVote().fit(Reports.from_arrays(task, worker, label))

    assert all(map(np.array_equal, first, columns(tmp_path / "b")))
    assert not np.array_equal(label[:500], columns(tmp_path / "c")[2][:500])
    assert np.mean(estimate.truth.astype(int)[np.searchsorted(estimate.tasks, task)] == label) > 0.55
