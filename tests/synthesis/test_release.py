"""Releases: synthetic workers, and columns of one length."""

from typing import Any

import numpy as np
import pytest

from crowdveil.channels.guarantee import Guarantee
from crowdveil.errors import SettingsError
from crowdveil.synthesis.release import Release


def made(task: list[int], value: list[float]) -> Release:
    """Return a release of records of three tasks."""
    common: dict[str, Any] = {"method": "test", "tasks": np.array(["a", "b", "c"]), "withheld": (), "simulation": True}
    guarantees = Guarantee(epsilon=1.0), Guarantee(epsilon=2.0, unit="worker")
    return Release(task=np.array(task), value=np.array(value), guarantees=guarantees, **common)


def test_workers_are_numbered_within_their_task() -> None:
    """The first record of every task belongs to synthetic worker s1, and the release reads as reports."""
    reports = made([0, 0, 2, 2, 2], [0.0, 1.0, 2.0, 3.0, 4.0]).reports()

    assert reports.worker.tolist() == [0, 1, 0, 1, 2]
    assert np.asarray(reports.workers).tolist() == ["s1", "s2", "s3"]
    assert reports.per_task.tolist() == [2, 0, 3]


def test_columns_have_one_length() -> None:
    """A release with more tasks than values is refused."""
    with pytest.raises(SettingsError, match="equal lengths"):
        made([0, 0], [0.0])
