"""Inference of truths and worker quality: the one pipeline behind `infer`, `aggregate`, the command and the pages.

Evidence is reports, read through their channel where the method reads one, or sums. The fit is plain, with copies
counted once and dependent answers discounted (`plain_fit`); combined with others by gold (`gold_stack`); or that of a
panel, whose truths have labels of their own (`panel`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.evidence import Evidence, SummedReports
from crowdveil.answers.facts.collection import Collection
from crowdveil.answers.facts.inputs import Input
from crowdveil.answers.facts.notes import NUMBERED_WORKERS, Note
from crowdveil.answers.facts.prior import Prior
from crowdveil.answers.frame_answers import ColumnKeywords
from crowdveil.answers.identifiers import index_of, no_common_task_error
from crowdveil.answers.importers.personal_columns import NUMBERED_NAME
from crowdveil.arguments import require_bool
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.display.counts import crowd_text, number_of, verb_of
from crowdveil.em.engines.executor import Engine
from crowdveil.em.estimate import Estimate, Rows, WorkerTable
from crowdveil.em.estimator import Estimator
from crowdveil.em.fit_state import FitState
from crowdveil.em.model import Checkpoint, Progress
from crowdveil.em.saved_fit import SavedFit
from crowdveil.em.worker_history import MAX_ANSWERS
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import ESTIMATORS
from crowdveil.hints import advice, command_advice
from crowdveil.inference.answer_confidence import (
    fit_with_informing_confidence,
    refuse_method_without_confidence,
    refuse_saved_confidences,
    require_plain_answers,
)
from crowdveil.inference.answers import MethodChoice, evidence_of_answers
from crowdveil.inference.given import (
    History,
    KnownTruths,
    Start,
    as_known_truths,
    as_prior,
    as_start,
    as_worker_history,
    errors_naming_gold_source,
)
from crowdveil.inference.gold_draw import require_draw_start, tasks_in_draw_order
from crowdveil.inference.methods import (
    AnyEstimator,
    Method,
    estimator_of_choice,
    noise_model_sentence,
    refuse_method_of_sums,
    warning_if_channel_unread,
)
from crowdveil.inference.panel.fit import PanelFit, fit_panel
from crowdveil.inference.panel.members import Panel
from crowdveil.inference.plain_fit import Fit, assumption_behind_confidence, fit, warning_if_unlike_votes
from crowdveil.inference.scores.metrics import Score

if TYPE_CHECKING:
    import pandas
    import polars

HISTORY_OR_FIT = "a history cannot be combined with a saved fit"
ONE_OF_BOTH = "A saved fit holds what is known of the workers: give one of the two."


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Inference:
    """Truths and workers with what they rest on.

    Attributes:
        estimate: truths and workers.
        evidence: from which they were inferred.
        estimator: whose fit it is; None for sums and panels.
        prior: public prior of the fit; None without one.
        noise_model: channel in the likelihood, or "none" and the reason.
        notes: warnings.
        given: what was given beside the evidence.
        confidence_note: assumption behind the confidences; None if there is none.
        history_note: number of workers with a history; None without one.
        gold_line: what gold did in the stack of methods; None without enough gold.
        guided: tasks whose known truth guided the fit.
        score: score against known truths that did not guide the fit; None without any.
        steps_before: steps of other fits, which measured the dependence of errors, or which gold combines.
        panel: fit of truths with labels of their own; None for the answers' own labels.

    >>> import crowdveil as cv
    >>> cv.infer({"task": [1, 1, 2, 2], "worker": [*"abab"], "label": [*"nnyy"]}, "majority-vote")
    <Inference: majority-vote, 2 workers on 2 tasks; see .estimate>
    """

    estimate: Estimate
    evidence: Evidence
    estimator: AnyEstimator | None = None
    prior: Prior | None = None
    noise_model: str
    notes: tuple[str, ...]
    given: tuple[Input, ...] = ()
    confidence_note: str | None = None
    history_note: str | None = None
    gold_line: str | None = None
    guided: frozenset[str] = frozenset()
    score: Score | None = None
    steps_before: int = 0
    panel: PanelFit | None = None

    def __repr__(self) -> str:
        """Return the method and the size of the estimate, which holds truths and workers."""
        made = self.estimate
        return f"<Inference: {made.method}, {crowd_text(len(made.worker_names), len(made.tasks))}; see .estimate>"

    @property
    def truth(self) -> NDArray[Any]:
        """Truth of each task, as of the estimate."""
        return self.estimate.truth

    @property
    def workers(self) -> WorkerTable:
        """Qualities of the workers, as of the estimate."""
        return self.estimate.workers

    def to_arrow(self, rows: Rows = "tasks") -> pa.Table:
        """Return tasks or workers as an Arrow table, as of the estimate."""
        return self.estimate.to_arrow(rows)

    def to_pandas(self, rows: Rows = "tasks") -> "pandas.DataFrame":
        """Return tasks or workers as a pandas frame, as of the estimate."""
        return self.estimate.to_pandas(rows)

    def to_polars(self, rows: Rows = "tasks") -> "polars.DataFrame":
        """Return tasks or workers as a Polars frame, as of the estimate."""
        return self.estimate.to_polars(rows)

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Everything that the truths depend on."""
        return (*self.evidence.every_input, *self.given)

    @property
    def collection(self) -> Collection | None:
        """Facts of the collection; None for answers."""
        return self.evidence.collection

    @property
    def simulation(self) -> bool | None:
        """Whether the reports are a simulation; None if unknown."""
        return None if self.collection is None else self.collection.simulation

    @property
    def dependence(self) -> Panel | None:
        """Dependence of the workers of a panel; None for the answers' own labels."""
        return None if self.panel is None else self.panel.panel

    def saved_fit(self) -> SavedFit:
        """Return the learned parameters, from which a fit of more reports can start.

        Raises:
            SettingsError: the truths are of sums or of a panel, which are not resumed, or a history or confidences
                were given.
        """
        if self.estimator is None:
            raise SettingsError("only a fit to reports is saved", value=self.estimate.method, hint="Leave it out.")
        if self.history_note is not None:
            raise SettingsError(HISTORY_OR_FIT, value="a history", hint=ONE_OF_BOTH)
        refuse_saved_confidences(self.evidence)
        assert self.estimate.state is not None
        return _saved_fit(self.estimator, self.evidence, self.prior, self.estimate.state)


@dataclass(frozen=True, eq=False)
class _Given:
    """What a fit is given beside the evidence, in the form that the branches read."""

    gold: KnownTruths | None
    prior: Prior | None
    history: History | None
    start: Start | None
    engine: Engine | None
    memory: int | None
    progress: Progress | bool | None
    checkpoint: Callable[[SavedFit], None] | None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """All that was given."""
        given = (self.gold, self.prior, self.history, self.start)
        return tuple(one for source in given if source is not None for one in source.inputs)


def infer(
    answers: Any,
    method: MethodChoice | Method = None,
    *,
    channel: Channel | ChannelTable | None = None,
    assignment: Assignment | None = None,
    truths: Sequence[str] | None = None,
    gold: Any = None,
    public_gold: bool = False,
    prior: Any = None,
    history: Any = None,
    start_from: SavedFit | Start | None = None,
    engine: Engine | None = None,
    memory: int | None = None,
    progress: Progress | bool | None = None,
    checkpoint: Callable[[SavedFit], None] | None = None,
    weight: str | None = None,
    **options: Unpack[ColumnKeywords],
) -> Inference:
    """Return truths and workers inferred from answers, or from reports through their channel.

    Args:
        answers: one row per answer: a pandas, Polars, Arrow or Dask table, a DuckDB relation, or a dict of columns;
            `Reports`; or `Evidence`, which has its channel, those asked and its truths.
        method: name of an estimator, or an estimator; None for the default.
        channel, assignment: as in `Estimator.fit`. A channel with NULL reports needs `tasks` and `workers`, too.
        truths: labels of the truths where the answers have others, such as scores; low answers mean the first.
        gold: known truths that guide the fit, by task; with 20 or more, methods are combined (`gold_stack`).
        public_gold: whether gold is stated to be independent of all answers; else no guarantee covers the truths.
        prior: public probability of each label.
        history: earlier result, its estimate, or a frame with the quality of the workers.
        start_from: saved fit of some of the reports, which is resumed.
        engine, memory, progress: as in `Estimator.fit`.
        checkpoint: called after every step with a saved fit, with which `start_from` goes on after an interruption.
        weight: column of the confidence of answers, used if it is shown to inform (`answer_confidence`).
        options: task, worker, label, value (names of columns), alphabet and the others of `Reports.from_frame`.

    Raises:
        ReportsError: the answers break a rule, those asked are unknown, or gold with an unknown label.
        SettingsError: the method does not fit the reports or what is given, or too little memory.

    >>> import crowdveil as cv
    >>> answers = {"task": [1, 1, 1, 2, 2], "worker": [*"abcab"], "label": ["yes", "yes", "no", "no", "no"]}
    >>> cv.infer(answers, "majority-vote").estimate.truth.tolist()
    ['yes', 'no']
    """
    require_bool("public_gold", public_gold)
    evidence = _as_evidence(answers, method, channel, assignment, options, truths, weight)
    known, public = as_known_truths(gold, public=public_gold), as_prior(prior)
    earlier = as_worker_history(history.estimate if isinstance(history, Inference) else history)
    given = _Given(known, public, earlier, as_start(start_from), engine, memory, progress, checkpoint)
    require_plain_answers(evidence, history=earlier, start_from=start_from)
    with errors_naming_gold_source(known):
        if evidence.sums is not None:
            return _infer_from_sums(evidence, evidence.sums, method, given)
        if evidence.truths:
            return _infer_panel(evidence, method, given)
        return _infer_from_reports(evidence, method, given)


def _as_evidence(
    answers: Any,
    method: MethodChoice | Method,
    channel: Channel | ChannelTable | None,
    assignment: Assignment | None,
    options: ColumnKeywords,
    truths: Sequence[str] | None,
    weight: str | None,
) -> Evidence:
    """Return answers as evidence; evidence as it is, without options of reading."""
    if not isinstance(answers, Evidence):
        return evidence_of_answers(answers, method, channel, assignment, options, truths, weight)
    for value in (channel, assignment, truths, options, weight):
        if value:
            rule = "evidence has its channel, assignment, truths, confidences and options of reading"
            raise SettingsError(rule, value=value, hint="Leave them out, or give the answers.")
    return answers


def _infer_from_reports(evidence: Evidence, method: MethodChoice | Method, given: _Given) -> Inference:
    """Return truths in the labels of the reports, or numbers."""
    estimator = estimator_of_choice(method, evidence)
    gold = None if given.gold is None else _gold_of_reports(given.gold, evidence)
    arguments = _arguments_of_fit(estimator, evidence, gold, given)
    fitted = fit(estimator, evidence, arguments, _checkpoint_of_fit(estimator, evidence, given))
    found = fit_with_informing_confidence(fitted, evidence, arguments)
    return _inference_of_fit(evidence, found, gold, given)


def _arguments_of_fit(
    estimator: AnyEstimator, evidence: Evidence, known: KnownTruths | None, given: _Given
) -> dict[str, Any]:
    """Return the arguments of `Estimator.fit` other than the reports."""
    refuse_method_without_confidence(estimator, evidence)
    if given.history is not None:
        _require_history_of_report_workers(given.history, given.start, evidence)
    channel = _channel_of(estimator, evidence)
    arguments: dict[str, Any] = channel | {
        "gold": None if known is None else known.truths,
        "prior": given.prior,
        "history": None if given.history is None else given.history.workers,
        "progress": given.progress,
        "engine": given.engine,
        "memory": given.memory,
    }
    if given.start is not None:
        state = given.start.fit.state_for(estimator, evidence.reports, **channel, prior=given.prior)
        arguments |= {"history": None, "warm_start": state}
    return arguments


def _inference_of_fit(evidence: Evidence, found: Fit, known: KnownTruths | None, given: _Given) -> Inference:
    """Return the truths of the answers' own labels, or of numbers, with their warnings."""
    estimate = _with_gold_draw_checked(found.estimate, known)
    return Inference(
        estimate=estimate,
        evidence=evidence,
        estimator=found.estimator,
        prior=given.prior,
        noise_model=noise_model_sentence(evidence, found.estimator),
        notes=_notes_of_reports(evidence, found, estimate, given.history),
        given=given.inputs,
        confidence_note=assumption_behind_confidence(found.estimator, found.dependence),
        history_note=None if given.history is None else _history_note(given.history, estimate),
        gold_line=found.gold_line,
        guided=frozenset(map(str, () if known is None else known.truths)),
        steps_before=found.steps_before,
    )


def _channel_of(estimator: Estimator[Any, Any], evidence: Evidence) -> dict[str, Any]:
    """Return the channel and the assignment as arguments of a fit; None for a method that reads no channel."""
    reads = estimator.capabilities.reads_channel
    return {
        "channel": evidence.channel if reads else None,
        "assignment": evidence.assignment if reads else None,
    }


def _saved_fit(estimator: AnyEstimator, evidence: Evidence, prior: Prior | None, state: FitState) -> SavedFit:
    """Return learned parameters with what a fit that starts from them must share."""
    return SavedFit.of_state(estimator, evidence.reports, state, **_channel_of(estimator, evidence), prior=prior)


def _checkpoint_of_fit(estimator: AnyEstimator, evidence: Evidence, given: _Given) -> Checkpoint | None:
    """Return what `Estimator.fit` calls after every step, so that a saved fit with its inputs is given on; or None.

    Raises:
        SettingsError: a history or confidences were given, with which no fit is saved.
    """
    if (checkpoint := given.checkpoint) is None:
        return None
    if given.history is not None:
        raise SettingsError(HISTORY_OR_FIT, value=given.history.source, hint=ONE_OF_BOTH)
    refuse_saved_confidences(evidence)
    first: list[SavedFit] = []

    def keep(state: FitState) -> None:
        if not first:
            made = _saved_fit(estimator, evidence, given.prior, state)
            first.append(replace(made, inputs=(*evidence.every_input, *given.inputs)))
        checkpoint(replace(first[0], state=state))

    return keep


def _infer_panel(evidence: Evidence, method: MethodChoice | Method, given: _Given) -> Inference:
    """Return truths with labels of their own."""
    chosen = method if method not in (None, Method()) else None
    resources = (given.engine, given.memory, given.checkpoint)
    for value in (chosen, given.prior, given.history, given.start, *resources):
        if value is not None:
            rule = "method, prior, history, saved fits, engine and memory cannot be combined with truths"
            raise SettingsError(rule, value=value, hint="Leave it out, or leave truths out.")
    known = None if given.gold is None else replace(given.gold, truths=evidence.in_label_spelling(given.gold.truths))
    truths = None if known is None else known.truths
    found = fit_panel(evidence, evidence.truths, gold=truths)
    notes = [*(() if evidence.collection is None else evidence.collection.warnings), *found.notes]
    if found.estimate.gold_unknown:
        notes.append(warning_on_unknown_tasks("gold tasks", found.estimate.gold_used, found.estimate.gold_unknown))
    absent = [name for name in evidence.truths if truths and name not in set(map(str, truths.values()))]
    if absent:
        notes.append(f"No gold task has the truth {', '.join(map(repr, absent))}: is it spelled as in the gold?")
    return Inference(
        estimate=_with_gold_draw_checked(found.estimate, known),
        evidence=evidence,
        noise_model=noise_model_sentence(evidence, ESTIMATORS["dawid-skene"]()),
        notes=(*notes, *evidence.notes),
        given=given.inputs,
        confidence_note=found.confidence,
        guided=frozenset(map(str, truths or ())),
        gold_line=found.gold_line,
        panel=found,
    )


def _infer_from_sums(
    evidence: Evidence, sums: SummedReports, method: MethodChoice | Method, given: _Given
) -> Inference:
    """Return the truths in the sums of matrix factorization."""
    from crowdveil.estimators.factorization_mean import FactorizationMean

    refuse_method_of_sums(method)
    resources = (given.engine, given.memory, given.checkpoint)
    for value in (given.gold, given.prior, given.history, given.start, *resources):
        if value is not None:
            rule = "sums are inferred without gold, prior, history, saved fits, engine and memory"
            raise SettingsError(rule, value=value, hint="Leave it out.")
    facts = evidence.collection
    assert facts is not None
    return Inference(
        estimate=FactorizationMean().fit(sums.totals, tasks=sums.tasks, workers=sums.workers),
        evidence=evidence,
        noise_model=f"sums over workers of {facts.description}; {facts.guarantee_text}",
        notes=facts.warnings,
    )


def _gold_of_reports(gold: KnownTruths, evidence: Evidence) -> KnownTruths:
    """Return known truths in the spelling of the labels; refuse those of other tasks."""
    truths = evidence.in_label_spelling(gold.truths)
    if truths and not index_of(evidence.reports.tasks, dict.fromkeys(map(str, truths))):
        raise no_common_task_error(truths, evidence.reports.tasks, gold.source)
    return replace(gold, truths=truths)


def _with_gold_draw_checked(estimate: Estimate, gold: KnownTruths | None) -> Estimate:
    """Return the estimate whose cross-validation says whether gold is the first tasks of the draw with its seed.

    Tasks that were chosen are no draw.
    """
    check = estimate.cross_validation
    if check is None or check.random is False or gold is None:
        return estimate
    if gold.chosen:
        return replace(estimate, cross_validation=replace(check, random=False))
    if gold.seed is None:
        return estimate
    try:
        order = tasks_in_draw_order(estimate.tasks, np.asarray(estimate.reports_per_task), gold.seed)
        require_draw_start({str(task): truth for task, truth in gold.truths.items()}, order, gold.seed)
    except ReportsError:
        return replace(estimate, cross_validation=replace(check, random=False))
    return replace(estimate, cross_validation=replace(check, random=True))


def _require_history_of_report_workers(history: History, start: Start | None, evidence: Evidence) -> None:
    """Refuse a history of other workers, and a saved fit, which has learned them."""
    if start is not None:
        raise SettingsError(HISTORY_OR_FIT, value=history.source, hint=ONE_OF_BOTH)
    if any(isinstance(note, Note) and note.code == NUMBERED_WORKERS for note in evidence.notes):
        raise ReportsError(
            "workers who were named by an address cannot have a history: their numbers hold within one import",
            source=history.source,
            hint="Read both exports together, or give each worker a name instead of an address in the labelling tool.",
        )
    if history.workers.aligned_answers(evidence.reports.workers) is None:
        raise ReportsError(
            "no worker of the reports has a history there",
            source=history.source,
            examples=", ".join(history.workers.workers[:3]) or "no worker",
            hint="Names of workers must be those of the reports, letter by letter.",
        )


def _notes_of_reports(evidence: Evidence, found: Fit, estimate: Estimate, history: History | None) -> tuple[str, ...]:
    """Return the warnings about reports, their fit and their history."""
    notes = [
        *([] if estimate.intervals_narrower_than_scale else [_not_identified()]),
        *(() if evidence.collection is None else evidence.collection.warnings),
        *evidence.notes,
    ]
    unread = warning_if_channel_unread(evidence, type(found.estimator))
    if unread is not None:
        notes.append(unread)
    if not estimate.converged:
        notes.append(
            f"NOT CONVERGED after {estimate.steps} steps: truths still changed by more than the tolerance. "
            f"Raise {command_advice('{max_steps}', 'max_steps')}."
        )
    if evidence.collection is None and any(one.role == "certificate" for one in evidence.inputs):
        notes.append("No crowd.json in the folder of the reports: whether the certificate is theirs cannot be checked.")
    if estimate.gold_unknown:
        notes.append(warning_on_unknown_tasks("gold tasks", estimate.gold_used, estimate.gold_unknown))
    different = warning_if_unlike_votes(evidence, estimate)
    if different is not None:
        notes.append(different)
    return (*notes, *found.notes, *([] if history is None else _notes_of_history(history, evidence)))


def _not_identified() -> str:
    """Return the warning of numbers that are not `Estimate.intervals_narrower_than_scale`."""
    prior = advice(", give a public prior ({prior})", ", give a public prior")
    return (
        "These reports do not identify the truths: most 90 % intervals are as wide as the scale. Collect more "
        f"reports{prior}, or use a mechanism that sends NULL as a report of its own."
    )


def _notes_of_history(history: History, evidence: Evidence) -> list[str]:
    """Return warnings on names that may be of other people, and on tasks whose answers may count twice."""
    notes = []
    shared = set(history.workers.workers).intersection(map(str, evidence.reports.workers.tolist()))
    numbered = sorted(name for name in shared if NUMBERED_NAME.fullmatch(name))
    if numbered:
        notes.append(
            f"Names such as {numbered[0]} are given by an import to workers with an address, in order of "
            "appearance. The same name in two imports means different people."
        )
    earlier = len(index_of(evidence.reports.tasks, history.tasks))
    if earlier:
        notes.append(
            f"{earlier:,} of {len(evidence.reports.tasks):,} tasks are among those of the history: answers in "
            "both count twice."
        )
    return notes


def _history_note(history: History, estimate: Estimate) -> str:
    """Return the number of workers with a history, and of the answers that it is worth."""
    earlier = history.workers.aligned_answers(estimate.worker_names)
    assert earlier is not None
    known, workers = int((earlier.number > 0).sum()), len(earlier.number)
    have = verb_of(known, "has", "have", whole=workers)
    return (
        f"{known:,} of {number_of(workers, 'worker')} {have} a history of {history.workers.quality_name}, worth "
        f"{earlier.number.sum() / known:.1f} earlier answers each (at most {MAX_ANSWERS:g})"
    )


def warning_on_unknown_tasks(items: str, used: int, unknown: int) -> str:
    """Return the warning on known truths of unknown tasks."""
    among, skipped = verb_of(used, "is", "are", whole=used + unknown), verb_of(unknown, "was", "were")
    return f"{used:,} of {used + unknown:,} {items} {among} among the tasks; {unknown:,} {skipped} skipped."
