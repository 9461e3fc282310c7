"""Small crowd in many blocks, and assertions shared by the tests of engines."""

import dataclasses
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from crowdveil import Categories, Estimate, OneCoin, Reports, Scale
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


@cache
def crowd(kind: str) -> Reports:
    """Return twenty thousand answers, labels or numbers; three of ten workers mostly give the first label.

    Sums over so many workers show the order in which compiled code adds.
    """
    draw, tasks, workers, labels = np.random.default_rng(1), 2000, 300, 4
    task, worker = np.divmod(np.unique(draw.integers(tasks * workers, size=20_000)), workers)
    right = draw.random(len(task)) < draw.beta(6, 3, size=workers)[worker]
    label = np.where(right, draw.integers(labels, size=tasks)[task], draw.integers(labels, size=len(task)))
    constant = (draw.random(workers) < 0.3)[worker] & (draw.random(len(task)) < 0.9)
    label = np.where(constant, 0, label)
    if kind == "categorical":
        alphabet = Categories(("a", "b", "c", "d"), ordered=True)
        return Reports.from_arrays(task, worker, np.array(alphabet.names)[label], alphabet=alphabet)
    return Reports.from_arrays(task, worker, label + draw.integers(0, 3, size=len(task)), alphabet=Scale(0, 5))


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
