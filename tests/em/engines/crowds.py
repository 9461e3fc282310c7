"""Small crowd in many blocks, and assertions shared by the tests of engines."""

import dataclasses
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from crowdveil import Categories, Estimate, OneCoin, Reports
from crowdveil.em.engines.executor import Engine
from crowdveil.errors import ReportsError
from tests.estimators.dense import random_reports

LABELS = Categories(("a", "b", "c"), ordered=True)
REPORTS = random_reports(np.random.default_rng(3), LABELS, tasks=60, workers=9, share=0.5)
GOLD = {3: "b"}
FOLDER = TemporaryDirectory()


@cache
def stored() -> Reports:
    """Return the reports as opened from a folder."""
    REPORTS.save(FOLDER.name)
    return Reports.open(FOLDER.name)


def in_blocks(size: int = 20) -> Any:
    """Patch reports to be cut into blocks of `size` tasks."""
    whole = Reports.blocks
    return patch.object(Reports, "blocks", lambda self, n=0: whole(self, size))


def assert_same(left: Estimate, right: Estimate) -> None:
    """Assert that all numbers of two estimates are the same bits."""
    for name in ("posterior", "low", "high", "log_likelihoods"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    for field in dataclasses.fields(left.workers):
        np.testing.assert_array_equal(getattr(left.workers, field.name), getattr(right.workers, field.name))
    assert (left.steps, left.converged) == (right.steps, right.converged)


def assert_damage_is_refused(engine: Engine, folder: Path) -> None:
    """Assert that blocks damaged after opening are refused as in one thread."""
    REPORTS.save(folder)
    reports = Reports.open(folder)
    with in_blocks():
        OneCoin().fit(reports)
        path = folder / "worker.i32"
        path.write_bytes(b"\1" + path.read_bytes()[1:])
        with pytest.raises(ReportsError, match=r"worker\.i32: encoded blocks must be complete"):
            OneCoin().fit(reports, engine=engine)
