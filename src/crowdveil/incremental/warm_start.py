"""Fits that go on from where an earlier one ended, when reports have come in since.

Incremental EM (Neal and Hinton 1998): statistics are sums over blocks of tasks, so those of blocks whose reports did
not change are taken over from the saved fit. The first steps look at new and changed blocks only, until these have
settled; then full steps run to the end, by the rule that stops any fit.

Reports that have grown since a fit, in that fit's order of tasks and workers; new ones come after the old.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet, alphabet_to_json
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.assignment import Assignment
from crowdveil.data.identifiers import Identifiers
from crowdveil.data.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.em.estimator import Ended, Estimator, run, summarize
from crowdveil.em.executor import Blocks, Engine
from crowdveil.em.gold import Gold, align_gold
from crowdveil.em.kernels import use_compiled
from crowdveil.em.model import GoldBlock, Model, Progress, Summary, merge
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators.gaussian.estimator import GaussianParameters
from crowdveil.incremental.fit_state import NEW, Learned, learned_from, pad_workers, resume
from crowdveil.incremental.saved_fit import SavedFit


@dataclass(frozen=True, eq=False)
class AlignedReports:
    """All reports, old tasks and workers first.

    Attributes:
        reports: in the new order.
        task, worker: the place of each task and worker of the original reports in it; None where the order is theirs.
    """

    reports: Reports
    task: NDArray[np.int64] | None = None
    worker: NDArray[np.int64] | None = None

    @property
    def task_names(self) -> list[str]:
        """Names of tasks as text, in the new order."""
        return [str(name) for name in self.reports.tasks]

    @property
    def worker_names(self) -> list[str]:
        """Names of workers as text, in the new order."""
        return [str(name) for name in self.reports.workers]

    def restored(self, estimate: Estimate, original: Reports) -> Estimate:
        """Return the estimate in the order of the original reports."""
        if self.task is None or self.worker is None:
            return estimate
        workers: Any = estimate.workers
        table = {field.name: getattr(workers, field.name) for field in fields(workers)}
        table = {name: column[self.worker] for name, column in table.items() if isinstance(column, np.ndarray)}
        return replace(
            estimate,
            tasks=original.tasks,
            posterior=estimate.posterior[self.task],
            reports_per_task=estimate.reports_per_task[self.task],
            worker_names=original.workers,
            workers=replace(estimate.workers, **table),
            reports_per_worker=estimate.reports_per_worker[self.worker],
            low=None if estimate.low is None else estimate.low[self.task],
            high=None if estimate.high is None else estimate.high[self.task],
        )


def align_to_saved(reports: Reports, saved: SavedFit | None) -> AlignedReports:
    """Put reports into the order of a saved fit.

    Raises:
        ReportsError: a task or worker of the saved fit is missing.
    """
    if saved is None:
        return AlignedReports(reports)
    task = _places(reports.tasks, saved.tasks, "task")
    worker = _places(reports.workers, saved.workers, "worker")
    if (np.diff(task) == 1).all() and (np.diff(worker) == 1).all():
        return AlignedReports(reports)
    ordered = Reports(
        task[reports.task].astype(np.int32),
        worker[reports.worker].astype(np.int32),
        reports.value,
        reports.tasks[np.argsort(task)],
        reports.workers[np.argsort(worker)],
        reports.alphabet,
        reports.public_lists,
    )
    return AlignedReports(ordered, task, worker)


def _places(names: Identifiers, saved: list[str], what: str) -> NDArray[np.int64]:
    """Return the place of each name: that of the saved one, or after all of them."""
    known = {name: place for place, name in enumerate(saved)}
    places = np.array([known.pop(str(name), -1) for name in names.tolist()], dtype=np.int64)
    if known:
        raise ReportsError(
            f"a fit goes on with every {what} that it knows, {len(known):,} are missing",
            examples=", ".join(list(known)[:3]),
            hint=f"Give all reports, old ones included, or list every {what}; or fit from the start.",
        )
    new = places < 0
    places[new] = len(saved) + np.arange(int(new.sum()))
    return places


SETTLED = 1000.0
"""Steps on changed blocks end when none of their posteriors moves by more than so many tolerances."""
PARTIAL_STEPS = 50
MOST_CHANGED = 0.2
"""Beyond this share of reports in changed blocks, full steps do as well."""
MIN_BLOCK_REPORTS, MAX_BLOCKS = 1024, 256
STOPS = {"max_steps", "tolerance"}
"""Settings that say when a fit ends, not what it fits."""

AnyEstimator = Estimator[Any, Any]
AnyModel = Model[Any, Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """An estimate, and what it cost to get there and to be able to go on.

    Attributes:
        estimate: in the order of the reports' tasks and workers.
        saved: for the next fit; None if it was not to be kept.
        passes: expectations over reports, in units of all of them; the one that `saved` takes is not counted.
        blocks, reused: blocks of the fit gone on from, and how many of them had not changed.
    """

    estimate: Estimate
    saved: SavedFit | None
    passes: float
    blocks: int = 0
    reused: int = 0


def fit_on(
    estimator: AnyEstimator,
    reports: Reports,
    *,
    start_from: SavedFit | None = None,
    channel: Channel | ChannelTable | None = None,
    assignment: Assignment | None = None,
    gold: Mapping[Any, Any] | None = None,
    prior: Mapping[str, float] | None = None,
    keep: bool = True,
    progress: Progress | None = None,
    engine: Engine | None = None,
    memory: int | None = None,
) -> Fit:
    """Fit all reports, going on from a saved fit of some of them.

    Args:
        estimator: of the same method and settings as the saved fit; it may stop sooner or later.
        reports: all of them, old ones included; tasks and workers may have been added, none may be gone. Rows of old
            tasks may have changed: then their blocks count as new.
        start_from: None fits from the start.
        channel, assignment, gold, prior, progress, engine, memory: as in `Estimator.fit`; gold may differ from that of
            the saved fit. What is saved lies in memory beside the limit.
        keep: whether to return what the next fit can start from, which takes one more expectation.

    Raises:
        SettingsError: the saved fit is of another method, other settings, another channel, alphabet or prior.
        ReportsError: a task or worker of the saved fit is missing; or as `Estimator.fit`.
    """
    order = align_to_saved(reports, start_from)
    coded, summary = summarize(estimator, order.reports, channel, assignment, prior)
    identity = _identity(estimator, reports, channel, assignment, summary)
    if start_from is not None:
        _check_identity(start_from.identity, identity)
    known = align_gold(order.reports, gold, summary.alphabet, numeric=estimator.capabilities.kind == "numeric")
    task = _Task(estimator.simplify(summary), coded, summary, known)
    if start_from is None:
        partial = _Partial(0.0, 0, 0)
        end = estimator.fit_best_of(coded, summary, known, progress, engine=engine, memory=memory)
    else:
        first, partial = _first(task, start_from)
        last: list[Any] = []
        found = run(task.model, coded, summary, known, progress, first, last.append, engine=engine, memory=memory)
        end = Ended(found, last[0], found.steps)
    saved = _kept(task, end.parameters, identity, order) if keep else None
    return Fit(
        estimate=order.restored(end.estimate, reports),
        saved=saved,
        passes=end.steps + partial.passes,
        blocks=partial.blocks,
        reused=partial.reused,
    )


@dataclass(frozen=True, eq=False)
class _Task:
    """What all expectations of a fit share."""

    model: AnyModel
    coded: Reports
    summary: Summary
    gold: Gold

    def blocks(self, ranges: Sequence[tuple[int, int]]) -> Iterator[GoldBlock]:
        """Yield blocks of tasks."""
        compiled = use_compiled(len(self.coded))
        return iter(Blocks(self.summary, self.coded.rows, tuple(ranges), self.gold, compiled))

    def fingerprint(self, found: GoldBlock) -> str:
        """Return the SHA-256 of a block's rows and known truths; codes of workers are those of the saved fit."""
        block, seal = found.block, hashlib.sha256()
        for column, dtype in ((block.pointers, "<i8"), (block.worker, "<i4"), (block.value, None), (found.gold, None)):
            seal.update(np.ascontiguousarray(column, dtype=dtype).tobytes())
        return seal.hexdigest()

    def ends(self, begin: int = 0) -> list[int]:
        """Cut the tasks from `begin` on into blocks that have as many reports as numbers in their sums, at least."""
        reports = len(self.coded)
        size = max(MIN_BLOCK_REPORTS, self.model.cells(self.summary), -(-reports // MAX_BLOCKS))
        pointers, ends = self.coded.rows.pointers, [begin]
        while ends[-1] < self.summary.tasks:
            stop = int(np.searchsorted(pointers, pointers[ends[-1]] + size))
            ends.append(min(max(stop, ends[-1] + 1), self.summary.tasks))
        return ends[1:]


@dataclass(frozen=True)
class _Partial:
    """What the steps before the full ones cost, in passes over all reports, and how many blocks had not changed."""

    passes: float
    blocks: int
    reused: int


def _first(task: _Task, saved: SavedFit) -> tuple[Any, _Partial]:
    """Return the parameters that full steps begin with: learned ones, settled on new and changed blocks."""
    model, summary = task.model, task.summary
    position = np.full(summary.workers, NEW, dtype=np.int64)
    position[: len(saved.workers)] = np.arange(len(saved.workers))
    start, passes = _counted(task, model.initialize(summary))
    parameters = resume(model, start, saved.learned, position)
    ranges = _ranges([*saved.ends.tolist(), *task.ends(len(saved.tasks))])
    old = zip(task.blocks(ranges), saved.fingerprints, strict=False)
    same = np.zeros(len(ranges), dtype=bool)
    same[: len(saved.ends)] = [task.fingerprint(block) == was for block, was in old]
    changed = [pair for pair, unchanged in zip(ranges, same, strict=True) if not unchanged]
    pointers = task.coded.rows.pointers
    share = sum(int(pointers[stop] - pointers[first]) for first, stop in changed) / max(len(task.coded), 1)
    partial = _Partial(passes, len(saved.ends), int(same.sum()))
    if not changed or share > MOST_CHANGED or not saved.sums or not learned_from(parameters).by_worker:
        return parameters, partial
    sums = {
        name: pad_workers(name, array[same[: len(array)]].sum(axis=0), summary.workers)
        for name, array in saved.sums.items()
    }
    parameters, steps = _settle(model, list(task.blocks(changed)), sums, parameters)
    return parameters, replace(partial, passes=passes + steps * share)


def _counted(task: _Task, start: Any) -> tuple[Any, float]:
    """Return the parameters after the step that only counts, where the method has one, and the passes it took."""
    if not isinstance(start, GaussianParameters):
        return start, 0.0
    sums = (task.model.e_step(block, start).statistics for block in task.blocks(_ranges(task.ends())))
    return task.model.m_step(reduce(merge, sums), start), 1.0


def _settle(
    model: AnyModel, blocks: list[GoldBlock], sums: Mapping[str, NDArray[np.float64]], parameters: Any
) -> tuple[Any, int]:
    """Take steps whose expectations are of changed blocks only; return the parameters and the number of steps."""
    before: list[NDArray[np.float64]] = []
    for step in range(1, PARTIAL_STEPS + 1):
        ready = model.prepare(parameters)
        expected = [model.e_step(block, ready) for block in blocks]
        old = type(expected[0].statistics)(**sums)
        parameters = model.m_step(reduce(merge, (part.statistics for part in expected), old), parameters)
        posteriors = [part.posterior for part in expected]
        pairs = zip(blocks, posteriors, before, strict=True) if before else ()
        moved = max((block.coded.largest_change(new, old) for block, new, old in pairs), default=np.inf)
        if moved <= SETTLED * model.tolerance:
            return parameters, step
        before = posteriors
    return parameters, PARTIAL_STEPS


def _kept(task: _Task, parameters: Any, identity: dict[str, Any], order: AlignedReports) -> SavedFit:
    """Return what the next fit can start from; takes one expectation."""
    ends, learned = task.ends(), learned_from(parameters)
    ready = task.model.prepare(parameters)
    fingerprints, statistics = [], []
    for block in task.blocks(_ranges(ends)):
        fingerprints.append(task.fingerprint(block))
        if learned.by_worker:
            statistics.append(task.model.e_step(block, ready).statistics)
    return SavedFit(
        version=version("crowdveil"),
        identity=identity,
        tasks=order.task_names,
        workers=order.worker_names,
        learned=Learned(*({name: np.array(array) for name, array in part.items()} for part in learned)),
        ends=np.array(ends, dtype=np.int64),
        fingerprints=fingerprints,
        sums={name: np.stack([getattr(one, name) for one in statistics]) for name in _names(statistics)},
    )


def _names(statistics: list[Any]) -> tuple[str, ...]:
    """Return the names of the fields of statistics, none where there are none."""
    return statistics[0]._fields if statistics else ()


def _ranges(ends: list[int]) -> list[tuple[int, int]]:
    """Return where blocks begin and end."""
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _identity(
    estimator: AnyEstimator,
    reports: Reports,
    channel: Channel | ChannelTable | None,
    assignment: Assignment | None,
    summary: Summary,
) -> dict[str, Any]:
    """Return what must be the same for a fit to go on, as plain JSON."""
    own: Any = estimator
    settings = {field.name: getattr(estimator, field.name) for field in fields(own) if field.name not in STOPS}
    return {
        "method": estimator.name,
        "settings": {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()},
        "channel_sha256": None if channel is None else channel.certificate()["sha256"],
        "assigned": assignment is not None,
        "reports": _described(reports.alphabet),
        "truths": _described(summary.alphabet),
        "prior": None if summary.prior is None else summary.prior.tolist(),
    }


def _described(alphabet: Alphabet | None) -> dict[str, object] | None:
    return None if alphabet is None else alphabet_to_json(alphabet)


def _check_identity(was: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to go on with something else than was saved."""
    what = {
        "method": "method",
        "settings": "settings",
        "channel_sha256": "channel (SHA-256 of its certificate)",
        "assigned": "kind of campaign (whether tasks are assigned)",
        "reports": "labels or scale of reports",
        "truths": "labels or scale of truths",
        "prior": "public prior",
    }
    for field, words in what.items():
        if was[field] != now[field]:
            raise SettingsError(
                f"a fit goes on with the {words} it was made with, {was[field]!r}",
                value=now[field],
                hint="Give the same again, or fit from the start.",
            )
