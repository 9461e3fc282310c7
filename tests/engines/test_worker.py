"""What processes of an engine are sent, and that what they forget changes no number."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdveil import DawidSkene, Gaussian, OneCoin, Reports
from crowdveil.em.executor import FitTask, Part, Step
from crowdveil.em.memory import Posterior
from crowdveil.em.model import GoldBlock
from crowdveil.engines import worker
from crowdveil.engines.dask import Opened
from crowdveil.engines.dependencies import check_versions, wanted
from crowdveil.engines.driver import Dispatch
from crowdveil.engines.serialization import Folder, Payload, pack_parameters, unpack_parameters
from crowdveil.engines.worker import BlockTask, forget, report, work_on
from crowdveil.errors import EngineError, ReportsError
from tests.engines.crowds import GOLD, REPORTS, assert_same, in_blocks


class Hands:
    """A post that hands letters over."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, data: bytes, *, to_all: bool) -> Payload:
        """Take note of a letter."""
        self.sent.append(data)
        return Opened(data)

    def discard(self, letter: Payload) -> None:
        """Let it be."""


@dataclass
class Alone:
    """An engine in this process, whose desk is cleared before some blocks are worked on.

    Attributes:
        clear: step and block before which everything is forgotten; block -1 is the collection of posteriors.
    """

    clear: tuple[tuple[int, int], ...] = ()
    post: Hands = field(default_factory=Hands)

    @contextmanager
    def open(self, work: FitTask[Any, Any]) -> Iterator["AloneCrew"]:
        """Give a crew of one."""
        yield AloneCrew(Dispatch(work, self.post, work.memory), self.clear)


@dataclass
class AloneCrew:
    """The crew of one."""

    dispatch: Dispatch
    clear: tuple[tuple[int, int], ...]
    number: int = 0

    def map(self, step: Step[Any, Any]) -> Iterator[Part[Any]]:
        """Work on all blocks, forgetting in between."""
        self.dispatch.begin(step)
        self.number = step.number
        for index in self.dispatch.indices:
            yield work_on(self._order(index, index))

    def collect(self) -> Posterior:
        """Return all posteriors."""
        return self.dispatch.together(report(self._order(index, -1)) for index in self.dispatch.indices)

    def blocks(self) -> Iterator[GoldBlock]:
        """Yield all blocks."""
        return self.dispatch.blocks()

    def _order(self, index: int, moment: int) -> BlockTask:
        if (self.number, moment) in self.clear:
            forget(self.dispatch.fit)
        return self.dispatch.order(index)


@pytest.mark.parametrize("estimator", [DawidSkene(max_steps=6), OneCoin(max_steps=6), Gaussian(max_steps=6)], ids=str)
@pytest.mark.parametrize("clear", [((1, 2),), ((2, 0), (2, 3), (5, 1)), ((6, 5), (6, -1)), ((5, -1), (4, 4))])
def test_what_is_forgotten_changes_no_number(estimator: Any, clear: tuple[tuple[int, int], ...]) -> None:
    """A process that starts anew in any step, or when posteriors are collected, gives the same bits."""
    told: list[tuple[int, float]] = []
    seen: list[tuple[int, float]] = []
    with in_blocks():
        expected = estimator.fit(REPORTS, gold=GOLD, progress=lambda *step: told.append(step))
        actual = estimator.fit(REPORTS, gold=GOLD, engine=Alone(clear), progress=lambda *step: seen.append(step))

    assert_same(actual, expected)
    assert told == seen


def test_a_block_that_comes_back_has_an_old_posterior() -> None:
    """A process that had a block some steps ago does not take its posterior of then for that of the last step."""
    with in_blocks():
        work = captured(DawidSkene())
        first, second = (Dispatch(work, Hands(), None) for _ in range(2))
        step = Step(work.model, 1, work.first)
        for number in range(1, 5):
            first.begin(step)
            second.begin(step)
            whole = [work_on(first.order(index)) for index in first.indices]
            if number != 3:
                away = work_on(second.order(0))
            sums = [sum(parts) for parts in zip(*(part.statistics for part in whole), strict=True)]
            parameters = work.model.m_step(type(whole[0].statistics)(*sums), step.parameters)
            step = Step(work.model, number + 1, parameters)

    assert whole[0].moved == away.moved < np.inf


def captured(estimator: Any) -> FitTask[Any, Any]:
    """Return the work of a fit of the reports."""
    kept: list[FitTask[Any, Any]] = []

    class Keeping(Alone):
        @contextmanager
        def open(self, work: FitTask[Any, Any]) -> Iterator[AloneCrew]:
            kept.append(work)
            with Alone.open(self, work) as crew:
                yield crew

    estimator.fit(REPORTS, gold=GOLD, engine=Keeping())
    return kept[0]


def test_constants_are_sent_once() -> None:
    """A step's letter has what was learned only: it is as long for a thousand times as many tasks, and reads back."""
    few = captured(DawidSkene(max_steps=1)).first
    many = Reports(
        *(getattr(REPORTS, name) for name in ("task", "worker", "value")),
        np.arange(60_000),
        np.arange(9),
        REPORTS.alphabet,
    )
    post = Hands()
    DawidSkene(max_steps=2).fit(many, engine=Alone(post=post))
    letter = post.sent[-1]

    assert len(letter) < 3000 + few.confusion.nbytes < len(pickle.dumps(few)) + 10_000
    again = unpack_parameters(pack_parameters(few, few), few)
    assert again.summary is few.summary
    np.testing.assert_array_equal(again.confusion, few.confusion)


def test_no_process_gets_the_counts_of_all_tasks() -> None:
    """The parcel of a fit does not grow with the tasks where every task goes through the same channel."""
    lengths = []
    for tasks in (1000, 100_000):
        many = Reports(REPORTS.task, REPORTS.worker, REPORTS.value, np.arange(tasks), np.arange(9), REPORTS.alphabet)
        post = Hands()
        OneCoin(max_steps=1).fit(many, engine=Alone(post=post))
        lengths.append(len(post.sent[0]))

    assert abs(lengths[1] - lengths[0]) < 200


def test_blocks_are_read_from_their_folder(tmp_path: Path) -> None:
    """Where reports lie in a folder no block is sent, but for the steps' parameters and one parcel."""
    REPORTS.save(tmp_path)
    post, estimator = Hands(), OneCoin(max_steps=4, tolerance=0.0)
    with in_blocks():
        actual = estimator.fit(Reports.open(tmp_path), engine=Alone(post=post))
        expected = estimator.fit(REPORTS)

    assert_same(actual, expected)
    assert 1 + 4 == len(post.sent)


def test_another_folder_is_refused(tmp_path: Path) -> None:
    """A process that finds other blocks under the same path says so."""
    REPORTS.save(tmp_path)
    folder = Folder.of(Reports.open(tmp_path).rows)
    Reports(REPORTS.task, REPORTS.worker, REPORTS.value[::-1], REPORTS.tasks, REPORTS.workers, REPORTS.alphabet).save(
        tmp_path
    )

    assert folder is not None
    with pytest.raises(ReportsError, match="all processes must read the same encoded blocks"):
        folder.open()


def test_few_fits_are_remembered() -> None:
    """A process keeps the desks of the last fits only, however many there were."""
    for _ in range(worker.MOST_DESKS + 3):
        OneCoin(max_steps=1).fit(REPORTS, engine=Alone())

    assert len(worker._DESKS) <= worker.MOST_DESKS


def test_an_absent_package_is_named() -> None:
    """An engine whose package is not installed says what to install."""
    with pytest.raises(
        EngineError, match=r'The engine spark needs the package no_such_package, .*pip install "crowdveil\[spark\]"'
    ):
        wanted("no_such_package", "spark")


def test_other_versions_are_refused() -> None:
    """A worker with another version, or with none, is named."""
    from importlib.metadata import version

    check_versions({"tcp://a": version("crowdveil")})
    with pytest.raises(EngineError, match=r"1 of 2 have not: tcp://b has 0\.0\.7\. Install"):
        check_versions({"tcp://a": version("crowdveil"), "tcp://b": "0.0.7"})
    with pytest.raises(EngineError, match="tcp://b has none"):
        check_versions({"tcp://b": ModuleNotFoundError("crowdveil")})
