"""THE loop of inference: expect over blocks, merge, maximize, stop."""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple

from crowdveil.data.reports import BLOCK_REPORTS, Reports
from crowdveil.em.estimate import Estimate
from crowdveil.em.executor import ActiveExecutor, Blocks, Engine, FitTask, Step
from crowdveil.em.gold import Gold
from crowdveil.em.kernels import block_reports, use_compiled
from crowdveil.em.memory import MemoryNeeds
from crowdveil.em.model import Model, P, Progress, S, Summary, merge
from crowdveil.em.threads import Threads

WITH_INTERVAL = 3
"""Numbers that are inferred of a task whose truth is a number."""


def run(
    estimator: Model[Any, Any],
    reports: Reports,
    summary: Summary,
    gold: Gold,
    progress: Progress | None = None,
    first: Any = None,
    ended: Callable[[Any], None] | None = None,
    *,
    engine: Engine | None = None,
    memory: int | None = None,
) -> Estimate:
    """Iterate over the blocks of the coded reports to the end, from `first` or the start; put the result together.

    `ended` is told the parameters that the last posterior follows from.
    """
    estimator = estimator.simplify(summary) if first is None else estimator
    first = estimator.initialize(summary) if first is None else first
    work = _work(estimator, first, reports, summary, gold, memory)
    with (engine or Threads()).open(work) as crew:
        end = _iterate(work, crew, progress)
        if ended is not None:
            ended(end.parameters)
        found = crew.collect()
        table = estimator.workers(end.statistics, end.parameters)
        table = estimator.credible_intervals(table, crew.blocks(), found.posterior, (end.statistics, end.parameters))
    return Estimate(
        method=estimator.name,
        alphabet=summary.alphabet,
        tasks=reports.tasks,
        posterior=found.posterior,
        reports_per_task=summary.per_task,
        worker_names=reports.workers,
        workers=table,
        reports_per_worker=summary.per_worker,
        log_likelihoods=end.trace,
        steps=end.steps,
        converged=end.converged,
        channel_used=summary.channel is not None,
        gold_used=gold.used,
        gold_unknown=gold.unknown,
        low=None if found.interval is None else found.interval[:, 0],
        high=None if found.interval is None else found.interval[:, 1],
        probabilistic=estimator.capabilities.probabilistic,
    )


def _work(
    model: Model[P, S], first: P, reports: Reports, summary: Summary, gold: Gold, memory: int | None
) -> FitTask[P, S]:
    """Cut the reports into blocks."""
    compiled = use_compiled(len(reports))
    size = block_reports(len(reports), model.cells(summary), compiled=compiled)
    blocks = [(block.first, block.stop, len(block.worker)) for block in reports.blocks(size)]
    load = MemoryNeeds(
        reports=max(count for _, _, count in blocks),
        tasks=max(stop - first for first, stop, _ in blocks),
        counted=min(len(reports), BLOCK_REPORTS),
        blocks=len(blocks),
        all_tasks=summary.tasks,
        columns=summary.labels if model.capabilities.kind == "categorical" else WITH_INTERVAL,
        cells=model.cells(summary),
        workers=summary.workers,
        labels=summary.labels if model.capabilities.kind == "categorical" else 0,
        counts=sum(held.nbytes for held in (summary.per_task, summary.per_worker, summary.symbol_counts)),
        compiled=compiled,
        beside=model.beside(first),
    )
    ranges = tuple((first, stop) for first, stop, _ in blocks)
    return FitTask(model, first, Blocks(summary, reports.rows, ranges, gold, compiled), load, memory)


class _End(NamedTuple, Generic[P, S]):
    """Where the loop ended: the last sums with the parameters they follow from, and the trace of all steps."""

    statistics: S
    parameters: P
    trace: tuple[float, ...]
    steps: int
    converged: bool


def _iterate(work: FitTask[P, S], crew: ActiveExecutor[P, S], progress: Progress | None) -> _End[P, S]:
    """Expect, merge and maximize until no posterior moves by more than the tolerance."""
    model, parameters = work.model, work.first
    number, trace = 0, list[float]()
    while True:
        number += 1
        step = Step(model, number, parameters)
        statistics, moved = _expect(crew, step)
        likelihood = model.log_likelihood(statistics)
        if likelihood is not None:
            trace.append(likelihood + model.log_prior(step.ready))
        if progress is not None:
            progress(number, moved)
        converged = moved <= model.tolerance or not model.capabilities.iterative
        if converged or number == model.max_steps:
            return _End(statistics, parameters, tuple(trace), number, converged)
        parameters = model.m_step(statistics, parameters)


def _expect(crew: ActiveExecutor[P, S], step: Step[P, S]) -> tuple[S, float]:
    """Return the sums of all blocks, merged in their order, and the largest change."""
    parts = crew.map(step)
    statistics, moved = next(parts)
    for part in parts:
        statistics, moved = merge(statistics, part.statistics), max(moved, part.moved)
    return statistics, moved
