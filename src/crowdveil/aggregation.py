"""Truths of a frame of answers by one call, as the same kind of frame."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, Unpack, overload

import pyarrow as pa

from crowdveil.arguments import did_you_mean, require_bool
from crowdveil.channels.alphabet import Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.assignment import Assignment
from crowdveil.data.read_options import Kind, ReadKeywords
from crowdveil.data.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.em.estimator import Estimator, require_channel
from crowdveil.em.executor import Engine
from crowdveil.em.gold import as_gold
from crowdveil.em.model import Progress
from crowdveil.em.worker_history import as_history
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.folder.answers import spelling_notes, warnings_of_labels_meaning_no_answer
from crowdveil.folder.evidence import Evidence, refuse_numbers_outside
from crowdveil.inference.confidence import (
    Fit,
    fit_discounting_copies_and_dependence,
    warning_if_truths_differ_from_plurality,
)
from crowdveil.inference.inference import warning_on_unknown_tasks
from crowdveil.inference.methods import (
    AnyEstimator,
    Method,
    default_method,
    estimator_of_method_or_default,
    warning_if_fit_is_slow,
)
from crowdveil.inference.truths_of_other_labels_than_answers import fit_panel, truths_as_ordered_labels
from crowdveil.registry import ESTIMATOR_ENTRIES

Frame = TypeVar("Frame")
"""Kind of frame of the answers."""
MethodChoice = str | Estimator[Any, Any] | None


PERTURBED = "crowdveil.mechanism"
"""Key of `DataFrame.attrs` under which `perturb` keeps the name of the mechanism."""
OF_ESTIMATOR = "Settings are those of an estimator, such as DawidSkene(max_steps=50): give it as method."
OTHER_NAMES = {
    "labels": "Give alphabet=Categories(('no', 'yes')).",
    "ordered": "Give alphabet=Categories(('low', 'high'), ordered=True).",
    "scale": "Give alphabet=Scale(0, 10, 1).",
    "task_column": "Give task=.",
    "worker_column": "Give worker=.",
    "label_column": "Give label=.",
    "value_column": "Give value=.",
    "max_iter": OF_ESTIMATOR,
    "max_steps": OF_ESTIMATOR,
    "tolerance": OF_ESTIMATOR,
}
"""Arguments of Python for options of the command line that have another name."""


class ColumnKeywords(ReadKeywords, total=False):
    """Names of columns and options of reading a frame, as of `Reports.from_frame`."""

    task: str | None
    worker: str | None
    label: str | None
    value: str | None


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


KEYWORDS = ("method", "with_workers", *FitKeywords.__annotations__, *ColumnKeywords.__annotations__)
"""Names of arguments of `aggregate` and the like."""


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


def aggregate(
    answers: Any,
    method: MethodChoice = None,
    *,
    channel: Channel | ChannelTable | None = None,
    assignment: Assignment | None = None,
    gold: Any = None,
    truths: Sequence[str] | None = None,
    prior: Mapping[str, float] | None = None,
    history: Any = None,
    with_workers: bool = False,
    progress: Progress | bool | None = None,
    engine: Engine | None = None,
    memory: int | None = None,
    **options: Unpack[ColumnKeywords],
) -> Any:
    """Return the truth of every task with its confidence, as the kind of frame of the answers.

    Columns: the task under its own name, truth in the type of the labels, then those of `Estimate.tasks_columns`.

    Args:
        answers: one row per answer: a pandas, Polars, Arrow or Dask table, a DuckDB relation, or a dict of columns.
        method: name of an estimator, or an estimator; by default that of `crowdveil infer`.
        channel, assignment, gold, prior, history, progress, engine, memory: as in `Estimator.fit`; with 20 gold tasks
            or more, they combine the default method with others (`crowdveil.inference.gold_stack`).
        truths: labels of the truths where the answers have others, such as scores; low answers mean the first. They
            are inferred as by `fit_panel`, without method, prior, history, engine and memory.
        with_workers: return two frames, tasks and workers.
        options: task, worker, label, value (names of columns), alphabet and the others of `Reports.from_frame`.

    Raises:
        ReportsError: the answers, or as in `Estimator.fit`.
        SettingsError: an unknown method, or as in `Estimator.fit`.

    Warns:
        UserWarning: `perturb` reports without channel, a long fit, no convergence, odd votes or labels, unused history.

    >>> import crowdveil as cv
    >>> answers = {"task": [1, 1, 1, 2, 2], "worker": [*"abcab"], "label": ["yes", "yes", "no", "no", "no"]}
    >>> cv.aggregate(answers, "majority-vote")["truth"]
    ['yes', 'no']
    """
    require_bool("with_workers", with_workers)
    known = as_gold(gold)
    evidence = evidence_of(answers, method, channel, assignment, options, truths)
    gold = evidence.in_label_spelling(known)
    if truths is None:
        _warn_of_long_fit(evidence, method)
        given: Any = {"history": history, "progress": progress, "engine": engine, "memory": memory}
        fit = fit_evidence_by_method(evidence, method, gold=gold, prior=prior, **given)
        estimate, notes = fit.estimate, fit.notes
    else:
        refuse_if_fit_option_with_truths(method, prior, history, engine, memory)
        panel = fit_panel(evidence, truths, gold=gold)
        estimate, notes = panel.estimate, panel.notes
    of_labels = _warnings_about_inferred_labels(evidence.reports, channel, options)
    for note in (*of_labels, *notes, *_fit_notes(evidence, estimate, history)):
        warnings.warn(note, UserWarning, stacklevel=2)
    tasks = estimate.to_frame(answers)
    return (tasks, estimate.to_frame(answers, "workers")) if with_workers else tasks


def _warn_of_long_fit(evidence: Evidence, method: str | AnyEstimator | None) -> None:
    """Warn before a fit that takes more than about ten seconds."""
    name = default_method(evidence) if method is None else method if isinstance(method, str) else method.name
    if (note := warning_if_fit_is_slow(evidence.reports, name)) is not None:
        warnings.warn(note, UserWarning, stacklevel=3)


def refuse_if_fit_option_with_truths(*given: object) -> None:
    """Refuse arguments of fits that have no truths of their own; None is not given."""
    for value in given:
        if value is not None:
            rule = "method, prior, history, engine and memory do not go with truths"
            raise SettingsError(rule, value=value, hint="Leave it out, or leave truths out.")


def evidence_of(
    answers: Any,
    method: str | AnyEstimator | None,
    channel: Channel | ChannelTable | None,
    assignment: Assignment | None,
    options: ColumnKeywords,
    truths: Sequence[str] | None = None,
) -> Evidence:
    """Return a frame or `Reports` as evidence; options and errors as `aggregate`."""
    require_channel(channel)
    scale = options.get("alphabet") if truths is not None and channel is None else None
    if isinstance(scale, Scale):
        options = {**options, "alphabet": None, "kind": "numeric"}  # numbers are refused outside it, not clipped
    reports = answers
    if not isinstance(answers, Reports):
        _warn_of_reports(answers, channel)
        reports = _read_answers_hinting_at_channel_labels(
            channel, answers, _options_with_channel_or_kind(options, method, channel)
        )
        if "kind" not in options and _kind_of_method(method) == "categorical":
            _refuse_decimals(reports, method)
    if isinstance(scale, Scale):
        refuse_numbers_outside(reports, scale)
    return Evidence(
        reports=reports,
        crowd=None,
        channel=channel,
        certificate=None,
        no_channel_reason="" if channel is not None else "no channel was given",
        assignment=assignment,
        truths=() if truths is None else truths_as_ordered_labels(truths).names,
        merge_labels=options.get("merge_labels", False),
    )


def _warn_of_reports(answers: Any, channel: Channel | ChannelTable | None) -> None:
    """Warn if a pandas frame is known to hold reports of `perturb`, and no channel says how they were drawn."""
    mechanism = None if channel is not None else getattr(answers, "attrs", {}).get(PERTURBED)
    if mechanism is not None:
        note = f"These are reports of {mechanism}, read as if they were answers: give channel=mechanism.channel()."
        warnings.warn(note, UserWarning, stacklevel=4)


def _read_answers_hinting_at_channel_labels(
    channel: Channel | ChannelTable | None, answers: Any, options: ColumnKeywords
) -> Reports:
    """Return the answers of a frame; where they do not have the labels of the channel, the hint says so."""
    try:
        return read_answers(answers, options)
    except ReportsError as error:
        if channel is None or not error.rule.startswith("every label must be one of"):
            raise
        hint = f"These are the labels of the channel of {channel.mechanism}: give that of these reports."
        raise error.changed(hint=hint) from error


def read_answers(answers: Any, options: ColumnKeywords) -> Reports:
    """Return the answers of a frame.

    Raises:
        SettingsError: an option that does not exist, or as `Reports.from_frame`.
        ReportsError: as `Reports.from_frame`.
    """
    unknown = sorted(options.keys() - column_keyword_names())
    if unknown:
        elsewhere = "It is an argument of aggregate, not of this function." if unknown[0] in KEYWORDS else ""
        meant = OTHER_NAMES.get(unknown[0]) or elsewhere or did_you_mean(unknown[0], KEYWORDS)
        hint = meant or f"Besides those of the function, options of reading are {', '.join(column_keyword_names())}."
        raise SettingsError("options must be known", value=unknown[0], hint=hint)
    return Reports.from_frame(answers, **options)


def column_keyword_names() -> tuple[str, ...]:
    """Return the names of columns and options of reading."""
    return (*ColumnKeywords.__annotations__,)


def fit_evidence_by_method(evidence: Evidence, method: str | AnyEstimator | None, **inputs: Any) -> Fit:
    """Return the fit of a method, as of `crowdveil infer`; inputs and errors as `Estimator.fit`."""
    inputs = {"gold": None, **inputs, "channel": evidence.channel, "assignment": evidence.assignment}
    return fit_discounting_copies_and_dependence(_given_or_built_estimator(method, evidence), evidence, inputs)


def _options_with_channel_or_kind(
    given: ColumnKeywords, method: str | AnyEstimator | None, channel: Channel | ChannelTable | None
) -> ColumnKeywords:
    """Return the options with the alphabet of the channel, or else the kind of the method, unless one is given."""
    if given.keys() & {"alphabet", "kind"}:
        return given
    if channel is not None:
        return {**given, "alphabet": channel.report_alphabet, "grid": "exact"}
    return {**given, "kind": _kind_of_method(method)}


def _kind_of_method(method: str | AnyEstimator | None) -> Kind | None:
    """Return the kind of answers that a method reads; None if it is not chosen, or unknown."""
    if isinstance(method, Estimator):
        return method.capabilities.kind
    if not (method is None or isinstance(method, str)):
        name = method.__name__ if isinstance(method, type) else ""
        hint = f"Give an estimator: {name}()." if name else "Such as 'dawid-skene', or DawidSkene()."
        raise SettingsError("method must be a name or an estimator", value=name or method, hint=hint)
    entry = None if method is None else ESTIMATOR_ENTRIES.get(method)
    return None if entry is None else entry.capabilities.kind


def _refuse_decimals(reports: Reports, method: str | AnyEstimator | None) -> None:
    """Refuse decimals that a method for labels would read as labels."""
    original, names = reports.original, () if reports.alphabet is None else reports.alphabet.names
    if original is None or not original.holds_decimals:
        return
    fraction = next((name for name in names if not float(name).is_integer()), None)
    if fraction is not None:
        raise SettingsError(
            f"{method if isinstance(method, str) else type(method).__name__} infers labels, and the column "
            f"{original.label_name!r} has decimals",
            value=fraction,
            hint="Use a method for numbers, such as 'student-t'; or say kind='categorical' if each number is a label.",
        )


def _given_or_built_estimator(method: str | AnyEstimator | None, evidence: Evidence) -> AnyEstimator:
    return method if isinstance(method, Estimator) else estimator_of_method_or_default(Method(name=method), evidence)


def _warnings_about_inferred_labels(reports: Reports, channel: object, options: ColumnKeywords) -> list[str]:
    """Return warnings about labels that were taken from the answers, with the names of arguments."""
    if channel is not None or "alphabet" in options:
        return []
    notes = (*spelling_notes(reports), *warnings_of_labels_meaning_no_answer(reports))
    return [note.replace("--merge-labels merges", "merge_labels=True merges") for note in notes]


def _fit_notes(evidence: Evidence, estimate: Estimate, history: Any) -> list[str]:
    """Return warnings about an estimate."""
    found = warning_if_truths_differ_from_plurality(evidence, estimate)
    notes = [] if found is None else [found]
    if estimate.gold_unknown:
        notes.append(warning_on_unknown_tasks("gold tasks", estimate.gold_used, estimate.gold_unknown))
    if not estimate.converged and not evidence.truths:
        notes.append(f"{estimate.method} did not converge in {estimate.steps:,} steps: raise max_steps.")
    if history is not None and as_history(history).earlier_answers_by_worker_order(estimate.worker_names) is None:
        names = ", ".join(map(repr, map(str, estimate.worker_names[:3])))
        notes.append(f"No worker has a history: names such as {names} must be those of the history, letter by letter.")
    return notes
