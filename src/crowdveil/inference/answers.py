"""Answers in memory as evidence: frames of any kind, or `Reports`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.evidence import Evidence
from crowdveil.answers.facts.label_notes import (
    no_answer_warnings,
    refuse_numbers_outside,
    spelling_notes,
)
from crowdveil.answers.frame_answers import PERTURBED, ColumnKeywords, read_answers_and_confidences
from crowdveil.answers.read_options import Kind
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.em.estimator import Estimator, require_channel
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.inference.methods import Method
from crowdveil.inference.panel.fit import truths_as_ordered_labels
from crowdveil.registry import ESTIMATOR_ENTRIES

MethodChoice = str | Estimator[Any, Any] | None
"""Name of an estimator, or an estimator; None for the default."""


def evidence_of_answers(
    answers: Any,
    method: MethodChoice | Method = None,
    channel: Channel | ChannelTable | None = None,
    assignment: Assignment | None = None,
    options: ColumnKeywords | None = None,
    truths: Sequence[str] | None = None,
    weight: str | None = None,
) -> Evidence:
    """Return a frame or `Reports` as evidence; arguments and errors as `infer`."""
    require_channel(channel)
    given = {} if options is None else options
    scale = given.get("alphabet") if truths is not None and channel is None else None
    if isinstance(scale, Scale):
        given = {**given, "alphabet": None, "kind": "numeric"}  # numbers are refused outside it, not clipped
    notes: tuple[str, ...] = ()
    confidences = None
    if isinstance(answers, Reports):
        reports = answers
        if weight is not None:
            hint = "Give the frame, or leave weight out."
            raise SettingsError("confidences are a column of a frame of answers", value=weight, hint=hint)
    else:
        reports, confidences, notes = _read_channel_answers(
            channel, answers, _options_with_channel_or_kind(given, method, channel), weight
        )
        notes = (*_notes_of_perturbed_frame(answers, channel), *notes)
        if "kind" not in given and _kind_of_method(method) == "categorical":
            _refuse_decimals(reports, method)
    if isinstance(scale, Scale):
        refuse_numbers_outside(reports, scale)
    if channel is None and "alphabet" not in given:
        notes += spelling_notes(reports) + no_answer_warnings(reports)
    return Evidence(
        observed=reports,
        channel=channel,
        asked=replace(reports.asked, assignment=assignment),
        no_channel_reason="" if channel is not None else "no channel was given",
        notes=notes,
        truths=() if truths is None else truths_as_ordered_labels(truths).names,
        merge_labels=given.get("merge_labels", False),
        label_map=dict(given.get("map_labels") or {}),
        confidences=confidences,
    )


def _notes_of_perturbed_frame(answers: Any, channel: Channel | ChannelTable | None) -> tuple[str, ...]:
    """Return a warning if a pandas frame is known to hold reports of `perturb`, and no channel says how."""
    mechanism = None if channel is not None else getattr(answers, "attrs", {}).get(PERTURBED)
    if mechanism is None:
        return ()
    return (f"These are reports of {mechanism}, read as if they were answers: give channel=mechanism.channel().",)


def _read_channel_answers(
    channel: Channel | ChannelTable | None, answers: Any, options: ColumnKeywords, weight: str | None
) -> tuple[Reports, Reports | None, tuple[str, ...]]:
    """Return answers, confidences and notes; where they do not have the labels of the channel, the hint says so."""
    try:
        return read_answers_and_confidences(answers, options, weight)
    except ReportsError as error:
        if channel is None or error.code != "unknown label":
            raise
        hint = f"These are the labels of the channel of {channel.mechanism}: give that of these reports."
        raise error.changed(hint=hint) from error


def _options_with_channel_or_kind(
    given: ColumnKeywords, method: MethodChoice | Method, channel: Channel | ChannelTable | None
) -> ColumnKeywords:
    """Return the options with the alphabet of the channel, or else the kind of the method, unless one is given."""
    if given.keys() & {"alphabet", "kind"}:
        return given
    if channel is not None:
        return {**given, "alphabet": channel.report_alphabet, "grid": "exact"}
    return {**given, "kind": _kind_of_method(method)}


def _kind_of_method(method: MethodChoice | Method) -> Kind | None:
    """Return the kind of answers that a method reads; None if it is not chosen, or unknown."""
    if isinstance(method, Method):
        return _kind_of_method(method.name)
    if isinstance(method, Estimator):
        return method.capabilities.kind
    if not (method is None or isinstance(method, str)):
        name = method.__name__ if isinstance(method, type) else ""
        hint = f"Give an estimator: {name}()." if name else "Such as 'dawid-skene', or DawidSkene()."
        raise SettingsError("method must be a name or an estimator", value=name or method, hint=hint)
    entry = None if method is None else ESTIMATOR_ENTRIES.get(method)
    return None if entry is None else entry.capabilities.kind


def _refuse_decimals(reports: Reports, method: MethodChoice | Method) -> None:
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
