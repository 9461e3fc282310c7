"""Truths of a frame of answers by one call, as the same kind of frame."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, Unpack, overload

import pyarrow as pa

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.frame_answers import ColumnKeywords
from crowdveil.answers.reports import Reports
from crowdveil.arguments import require_bool
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.em.engines.executor import Engine
from crowdveil.em.model import Progress
from crowdveil.hints import advising_own_arguments
from crowdveil.inference.answers import MethodChoice, evidence_of_answers
from crowdveil.inference.infer import infer
from crowdveil.inference.methods import default_method, slow_fit_warning

Frame = TypeVar("Frame")
"""Kind of frame of the answers."""


class FitKeywords(ColumnKeywords, total=False):
    """Arguments of a fit beyond the answers and the method, as of `aggregate`."""

    channel: Channel | ChannelTable | None
    assignment: Assignment | None
    gold: Any
    truths: Sequence[str] | None
    prior: Mapping[str, float] | None
    history: Any
    progress: Progress | bool | None
    engine: Engine | None
    memory: int | None
    weight: str | None


@overload
def aggregate(
    answers: Reports, method: MethodChoice = None, *, with_workers: Literal[False] = False, **given: Unpack[FitKeywords]
) -> pa.Table: ...


@overload
def aggregate(
    answers: Reports, method: MethodChoice = None, *, with_workers: Literal[True], **given: Unpack[FitKeywords]
) -> tuple[pa.Table, pa.Table]: ...


@overload
def aggregate(
    answers: Frame, method: MethodChoice = None, *, with_workers: Literal[False] = False, **given: Unpack[FitKeywords]
) -> Frame: ...


@overload
def aggregate(
    answers: Frame, method: MethodChoice = None, *, with_workers: Literal[True], **given: Unpack[FitKeywords]
) -> tuple[Frame, Frame]: ...


@advising_own_arguments
def aggregate(
    answers: Any,
    method: MethodChoice = None,
    *,
    channel: Channel | ChannelTable | None = None,
    assignment: Assignment | None = None,
    truths: Sequence[str] | None = None,
    with_workers: bool = False,
    gold: Any = None,
    prior: Mapping[str, float] | None = None,
    history: Any = None,
    progress: Progress | bool | None = None,
    engine: Engine | None = None,
    memory: int | None = None,
    weight: str | None = None,
    **options: Unpack[ColumnKeywords],
) -> Any:
    """Return the truth of every task with its confidence, as the kind of frame of the answers.

    The truths are those of `infer`, which returns more. Columns: the task under its own name, truth in the type of the
    labels, then those of `Estimate.tasks_columns`.

    Args:
        answers: one row per answer: a pandas, Polars, Arrow or Dask table, a DuckDB relation, or a dict of columns.
        method, channel, assignment, truths, gold, prior, history, progress, engine, memory, weight: as in `infer`.
        with_workers: return two frames, tasks and workers.
        options: task, worker, label, value (names of columns), alphabet and the others of `Reports.from_frame`.

    Raises:
        ReportsError, SettingsError: as in `infer`.

    Warns:
        UserWarning: the notes of `infer`, and a fit that takes long.

    >>> import crowdveil as cv
    >>> answers = {"task": [1, 1, 1, 2, 2], "worker": [*"abcab"], "label": ["yes", "yes", "no", "no", "no"]}
    >>> cv.aggregate(answers, "majority-vote")["truth"]
    ['yes', 'no']
    """
    require_bool("with_workers", with_workers)
    evidence = evidence_of_answers(answers, method, channel, assignment, options, truths, weight)
    if truths is None:
        name = default_method(evidence) if method is None else method if isinstance(method, str) else method.name
        if (slow := slow_fit_warning(evidence.reports, name)) is not None:
            warnings.warn(slow, UserWarning, stacklevel=2)
    given: Any = {"gold": gold, "prior": prior, "history": history}
    found = infer(evidence, method, **given, progress=progress, engine=engine, memory=memory)
    for note in found.notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    tasks = found.estimate.to_frame(answers)
    return (tasks, found.estimate.to_frame(answers, "workers")) if with_workers else tasks
