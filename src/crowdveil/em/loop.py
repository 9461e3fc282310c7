"""Expectation-maximization loop: E-step over blocks, merge, M-step, until the posteriors converge."""

from collections import deque
from dataclasses import replace
from functools import reduce
from itertools import count
from typing import Any

from crowdveil.answers.reports import BLOCK_REPORTS
from crowdveil.channels.channel import Channel
from crowdveil.em.acceleration import REMAINING_CHANGE, Acceleration
from crowdveil.em.engines.executor import Blocks, Engine, FitTask, Step, Threads
from crowdveil.em.estimate import StopReason
from crowdveil.em.fit_state import FitState
from crowdveil.em.kernels.dispatch import reports_per_reproducible_block
from crowdveil.em.memory import MemoryNeeds
from crowdveil.em.model import Checkpoint, FitInput, FitResult, Model, P, Progress, S, merge

COLUMNS_OF_NUMBERS = 3
"""Numbers stored for a task whose truth is a number: the truth and both ends of its interval."""


def run_em(
    model: Model[P, S],
    initial: P,
    data: FitInput,
    *,
    progress: Progress | None = None,
    engine: Engine | None = None,
    memory: int | None = None,
    checkpoint: Checkpoint | None = None,
    intervals: bool = True,
) -> FitResult[P, S]:
    """Run EM from initial parameters until a reason to stop, see `Estimate.stopped`.

    Args:
        model: the model.
        initial: its initial parameters.
        data: reports, counts and known truths.
        progress, engine, memory, checkpoint: as in `Estimator.fit`.
        intervals: whether the worker table has credible intervals.

    Raises:
        SettingsError: one block does not fit into the memory.
        EngineError: the engine cannot be reached, or its workers failed repeatedly.
    """
    task = _fit_task(model, initial, data, memory)
    parameters, log_likelihoods, acceleration = initial, list[float](), Acceleration(model, len(data.reports))
    with (engine or Threads()).open(task) as executor:
        for number in count(1):
            step = Step(model, number, parameters)
            statistics, change = reduce(_sum_statistics_and_largest_change, executor.map(step))
            if (likelihood := model.log_likelihood(statistics)) is not None:
                log_likelihoods.append(likelihood + model.log_prior(step.precomputed_parameters))
            if progress is not None:
                progress(number, change)
            if acceleration.last_extrapolation_lost(log_likelihoods):
                parameters = acceleration.undo_refused_step(log_likelihoods)
                continue
            _keep_state(checkpoint, model, data, parameters, number)
            if (stopped := _stop_reason(model, data, number, change, acceleration.remaining)) is None:
                parameters = acceleration.next_or_extrapolated_parameters(
                    number, step.precomputed_parameters, model.m_step(statistics, parameters), change
                )
            elif (larger := _larger_model_parameters(model, number, statistics, parameters)) is not None:
                parameters = larger
            else:
                break
        assert stopped is not None
        result = FitResult(
            model=model,
            statistics=statistics,
            parameters=parameters,
            tasks=executor.collect_last_step(),
            workers=model.worker_table(statistics, parameters),
            log_likelihoods=tuple(log_likelihoods),
            steps=number,
            stopped=stopped,
        )
        result = _with_reported_e_step(model, executor, result)
        return _with_credible_intervals(model, executor, result) if intervals else result


def _keep_state(checkpoint: Checkpoint | None, model: Model[P, S], data: FitInput, parameters: P, number: int) -> None:
    """Call `checkpoint`, if there is one, with the parameters of a step; not before any are learned."""
    arrays = None if checkpoint is None else model.interrupted_state(parameters, number)
    if checkpoint is not None and arrays:
        checkpoint(FitState.of_arrays(model.name, model.state_fields, data.reports.workers, arrays))


def _larger_model_parameters(model: Model[P, S], number: int, statistics: S, parameters: P) -> P | None:
    """Return parameters of a larger model from which EM goes on; None after the last step, and without any."""
    return model.larger_model_parameters(statistics, parameters) if number < model.max_steps else None


def _with_reported_e_step(model: Model[P, S], executor: Any, result: FitResult[P, S]) -> FitResult[P, S]:
    """Return the result with the posterior of one more E-step, if the model asks for it."""
    if (reported := model.last_e_step_parameters(result.parameters)) is None:
        return result
    deque(executor.map(Step(model, result.steps + 1, reported)), maxlen=0)
    return replace(result, tasks=executor.collect_last_step())


def _with_credible_intervals(model: Model[P, S], executor: Any, result: FitResult[P, S]) -> FitResult[P, S]:
    workers = model.credible_intervals(executor.blocks(), result.tasks.posterior, result)
    return replace(result, workers=workers)


def _sum_statistics_and_largest_change(one: tuple[S, float], other: tuple[S, float]) -> tuple[S, float]:
    """Return the sum of the statistics of blocks, and their largest change."""
    return merge(one[0], other[0]), max(one[1], other[1])


def _all_answers_are_of_one_worker(model: Model[Any, Any], data: FitInput) -> bool:
    """Return whether all answers are of one worker and nothing else is known, so that the truths are the answers.

    Nothing tells the errors of one worker from the prevalence of labels, and the most probable parameters would
    overrule the only answer.
    """
    summary = data.summary
    plain = summary.channel is None or (isinstance(summary.channel, Channel) and summary.channel.is_identity)
    return (
        model.capabilities.kind == "categorical"
        and plain
        and not data.gold.number_of_known_truths
        and int((summary.per_worker > 0).sum()) == 1
    )


def _stop_reason(
    model: Model[Any, Any], data: FitInput, number: int, change: float, remaining: float
) -> StopReason | None:
    """Return why a fit ends after a step; None if it goes on."""
    if number == 1 and _all_answers_are_of_one_worker(model, data):
        return "settled"
    if change <= model.tolerance or not model.capabilities.iterative:
        return "tolerance"
    if remaining <= REMAINING_CHANGE:
        return "settled"
    if number == model.max_steps:
        return "set" if model.stops_early else "limit"
    return None


def _fit_task(model: Model[P, S], initial: P, data: FitInput, memory: int | None) -> FitTask[P, S]:
    """Return the fit divided into blocks, with its memory needs."""
    reports, summary = data.reports, data.summary
    compiled, extra = summary.uses_compiled_confusion_fit, model.memory(summary, initial)
    size = reports_per_reproducible_block(len(reports), extra.statistics, compiled=compiled)
    blocks = [(block.first, block.stop, len(block.worker)) for block in reports.blocks(size)]
    labels = summary.labels if model.capabilities.kind == "categorical" else 0
    needs = MemoryNeeds(
        reports=max(min(len(reports), BLOCK_REPORTS), *(listed for _, _, listed in blocks)),
        tasks=max(stop - first for first, stop, _ in blocks),
        blocks=len(blocks),
        all_tasks=summary.tasks,
        columns=(labels or COLUMNS_OF_NUMBERS) + len(model.task_parameters),
        workers=summary.workers,
        labels=labels,
        counts=sum(held.nbytes for held in (summary.per_task, summary.per_worker, summary.symbol_counts)),
        compiled=compiled,
        extra=extra,
    )
    ranges = tuple((first, stop) for first, stop, _ in blocks)
    return FitTask(model, initial, Blocks(summary, reports.rows, ranges, data.gold, compiled), needs, memory)
