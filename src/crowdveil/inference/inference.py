"""Inference of truths and worker quality from reports and their channel, and its score against known truths."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.data.identifiers import index_of, no_common_task_error
from crowdveil.data.importers.personal_columns import NUMBERED_NAME
from crowdveil.data.ingest.column_readers import load_prior
from crowdveil.data.ingest.csv_files import content_digest
from crowdveil.data.ingest.labels import with_known_spellings
from crowdveil.data.read_options import Kind
from crowdveil.data.sources.answer_source import NUMBERED
from crowdveil.em.estimate import Estimate
from crowdveil.em.estimator import Estimator
from crowdveil.em.executor import Engine
from crowdveil.em.saved_fit import SavedFit
from crowdveil.em.worker_history import MAX_ANSWERS, WorkerHistory
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import ESTIMATORS
from crowdveil.evaluation.decisions import decide, decision_notes, read_costs
from crowdveil.evaluation.gold import align_gold, gold_codes
from crowdveil.evaluation.gold_draw import require_gold_is_start_of_draw, tasks_in_draw_order
from crowdveil.evaluation.metrics import Score, score
from crowdveil.evaluation.panel import Panel
from crowdveil.folder.answers import (
    kind_of_truths,
    read_drawn_gold,
    read_gold,
    read_history,
    tasks_of_truths_beside_history,
)
from crowdveil.folder.crowd import CROWD_FILE, Crowd, crowd_warnings, find_crowd, read_crowd, task_and_worker_names
from crowdveil.folder.evidence import Evidence, crowd_if_digest_matches
from crowdveil.inference.confidence import (
    assumption_behind_confidence,
    fit_discounting_copies_and_dependence,
    warning_if_truths_differ_from_plurality,
)
from crowdveil.inference.methods import (
    Method,
    alphabet_of_inferred_truths,
    estimator_of_method_or_default,
    noise_model_sentence,
    warning_if_channel_unread,
)
from crowdveil.inference.truths_of_other_labels_than_answers import fit_panel, warning_if_order_contradicts_gold
from crowdveil.presentation.counts import number_of, verb_of
from crowdveil.registry import ENGINE_ENTRIES

NOT_IDENTIFIED = (
    "These reports do not identify the truths: most 90 % intervals are as wide as the scale. Collect more reports, "
    "give a public prior (--prior), or use a mechanism that sends NULL as a report of its own."
)
"""Warning of numbers that are not `Estimate.intervals_narrower_than_scale`."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Memory limit and engine of a fit.

    Attributes:
        memory: limit of the fit in bytes; None for no limit.
        engine: name of the engine, from `crowdveil.registry.ENGINE_ENTRIES`.
        address: address of a running cluster, for engines that connect to one.
    """

    memory: int | None = None
    engine: str = "threads"
    address: str | None = None

    def engine_by_name_and_address(self) -> Engine:
        """Return the engine.

        Raises:
            SettingsError: unknown engine, or an address for an engine without one.
        """
        entry = ENGINE_ENTRIES.get(self.engine)
        if entry is None:
            raise SettingsError(f"the engine must be one of {', '.join(ENGINE_ENTRIES)}", value=self.engine)
        engine: Any = entry.import_class()
        if self.address is None:
            return engine()
        if "address" not in {field.name for field in fields(engine)}:
            raise SettingsError(f"the engine {self.engine} has no address", value=self.address, hint="Leave it out.")
        return engine(address=self.address)


@dataclass(frozen=True, kw_only=True)
class SavedFits:
    """Files of saved fits.

    Attributes:
        start_from: saved fit of some of the reports, which is resumed; None for a new fit.
        save: file of the new fit, may be the same; None does not save it.
    """

    start_from: Path | None = None
    save: Path | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Inference:
    """Estimate with its noise model, warnings and score.

    Attributes:
        estimate: truths and workers.
        noise_model: channel in the likelihood, or "none" and the reason.
        crowd: contents of `crowd.json`; None without one.
        notes: warnings.
        confidence_note: assumption behind the confidences; None if there is none.
        history_note: number of workers with a history; None without one.
        gold_line: what gold did in the stack of methods; None without enough gold.
        guided: tasks whose known truth guided the fit.
        score: score against known truths that did not guide the fit; None without any.
        reports_sha256: `Evidence.digest_of_reports_and_channel`, or the digest of the file of sums.
        steps_before: steps of other fits, which measured the dependence of errors, or which gold combines.
        panel: dependence of the workers, where truths have labels of their own.
        merge_labels: as of `Evidence`.
    """

    estimate: Estimate
    noise_model: str
    crowd: Crowd | None
    notes: tuple[str, ...]
    confidence_note: str | None = None
    history_note: str | None = None
    gold_line: str | None = None
    guided: frozenset[str] = frozenset()
    score: Score | None = None
    reports_sha256: str = ""
    steps_before: int = 0
    panel: Panel | None = None
    merge_labels: bool = False

    @property
    def simulation(self) -> bool | None:
        """Whether the reports are a simulation; None if unknown."""
        return None if self.crowd is None else self.crowd["simulation"]


def infer(
    evidence: Evidence,
    method: Method,
    *,
    gold: str | Mapping[str, Any] | None = None,
    prior: Path | None = None,
    history: Path | None = None,
    fits: SavedFits | None = None,
    resources: Resources | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Inference:
    """Return truths and workers inferred from reports, through the channel if the method reads one.

    Args:
        evidence: reports with their channel and assignment; with `truths`, `fit_panel` reads gold only.
        method: estimator and its settings.
        gold: known truths by task that guide the fit, their file, or `dataset:NAME`; of unknown tasks, counted.
        prior: file with the public probability of each label.
        history: file or folder of an earlier estimate, or gold counts, which is the prior of the workers.
        fits: saved fit to resume, and file of the new one; None neither resumes nor saves.
        resources: memory limit and engine.
        progress: called after every step with the number of steps and the largest change.

    Raises:
        SettingsError: the method does not fit the reports, the channel, the prior or the history, which does not go
            with a saved fit; or too little memory.
        ReportsError: a damaged file, or gold with an unknown label.
    """
    if evidence.truths:
        return _infer_truths_with_own_labels(evidence, gold)
    estimator, given = estimator_of_method_or_default(method, evidence), resources or Resources()
    known, seed = (None, None) if gold is None else _read_gold_and_draw_seed(gold, evidence, estimator)
    earlier = None if history is None else _read_history_of_report_workers(history, fits, evidence)
    inputs: dict[str, Any] = _channel_inputs(estimator, evidence) | {
        "gold": known,
        "prior": None if prior is None else load_prior(prior),
        "history": earlier,
        "progress": progress,
        "engine": given.engine_by_name_and_address(),
        "memory": given.memory,
    }
    start = _warm_start(estimator, evidence, fits, inputs)
    fit = fit_discounting_copies_and_dependence(estimator, evidence, inputs | start)
    estimator, estimate = fit.estimator, _with_gold_draw_checked(fit.estimate, known, seed)
    _save_fit_if_requested(fits, estimator, evidence, estimate, inputs)
    shared = _warnings_of_shared_names_and_tasks(history, earlier, evidence)
    return Inference(
        estimate=estimate,
        noise_model=noise_model_sentence(evidence, estimator),
        crowd=evidence.crowd,
        notes=(*_inference_warnings(evidence, estimator, estimate), *fit.notes, *shared),
        confidence_note=assumption_behind_confidence(estimator, fit.dependence),
        history_note=None if earlier is None else _history_note(earlier, estimate),
        gold_line=fit.gold_line,
        guided=frozenset(known or ()),
        reports_sha256=evidence.digest_of_reports_and_channel,
        merge_labels=evidence.merge_labels,
        steps_before=fit.steps_before,
    )


def _channel_inputs(estimator: Estimator[Any, Any], evidence: Evidence) -> dict[str, Any]:
    """Return the channel and the assignment as inputs of a fit; None for a method that reads no channel."""
    reads = estimator.capabilities.reads_channel
    return {
        "channel": evidence.channel if reads else None,
        "assignment": evidence.assignment if reads else None,
    }


def _infer_truths_with_own_labels(evidence: Evidence, gold: str | Mapping[str, Any] | None) -> Inference:
    """Return truths with labels of their own; gold as in `infer`."""
    known, seed = (None, None) if gold is None else _known_truths(gold, evidence, "categorical")
    fit = fit_panel(evidence, evidence.truths, gold=known)
    notes = [*([] if evidence.crowd is None else crowd_warnings(evidence.crowd)), *fit.notes]
    if fit.estimate.gold_unknown:
        notes.append(warning_on_unknown_tasks("gold tasks", fit.estimate.gold_used, fit.estimate.gold_unknown))
    absent = [name for name in evidence.truths if known and name not in set(map(str, known.values()))]
    if absent:
        notes.append(f"No gold task has the truth {', '.join(map(repr, absent))}: is it spelled as in the gold?")
    return Inference(
        estimate=_with_gold_draw_checked(fit.estimate, known, seed),
        noise_model=noise_model_sentence(evidence, ESTIMATORS["dawid-skene"]()),
        crowd=evidence.crowd,
        notes=(*notes, *evidence.notes),
        confidence_note=fit.confidence,
        guided=frozenset(known or ()),
        gold_line=fit.gold_line,
        reports_sha256=evidence.digest_of_reports_and_channel,
        merge_labels=evidence.merge_labels,
        panel=fit.panel,
    )


def _read_gold_and_draw_seed(
    gold: str | Mapping[str, Any], evidence: Evidence, estimator: Estimator[Any, Any]
) -> tuple[Mapping[str, Any], int | None]:
    """Return known truths and the seed of their draw, None without one; refuse those of other tasks."""
    known, seed = _known_truths(gold, evidence, kind_of_truths(alphabet_of_inferred_truths(evidence, type(estimator))))
    if known and not index_of(evidence.reports.tasks, known):
        raise no_common_task_error(known, evidence.reports.tasks, gold if isinstance(gold, str) else "gold")
    return known, seed


def _known_truths(
    gold: str | Mapping[str, Any], evidence: Evidence, kind: Kind
) -> tuple[Mapping[str, Any], int | None]:
    """Return known truths, of a file or given, in the spelling of the labels, and the seed of their draw."""
    known, seed = read_drawn_gold(gold, kind) if isinstance(gold, str) else (gold, None)
    return evidence.in_label_spelling(known), seed


def _with_gold_draw_checked(estimate: Estimate, known: Mapping[str, Any] | None, seed: int | None) -> Estimate:
    """Return the estimate whose cross-validation says whether gold is the first tasks of the draw with its seed."""
    check = estimate.cross_validation
    if check is None or check.random is False or known is None or seed is None:
        return estimate
    try:
        require_gold_is_start_of_draw(
            known, tasks_in_draw_order(estimate.tasks, np.asarray(estimate.reports_per_task), seed), seed
        )
    except ReportsError:
        return replace(estimate, cross_validation=replace(check, random=False))
    return replace(estimate, cross_validation=replace(check, random=True))


def _read_history_of_report_workers(path: Path, fits: SavedFits | None, evidence: Evidence) -> WorkerHistory:
    """Return the history of the workers; refuse one of other workers, and a saved fit, which has learned them."""
    if fits is not None and fits != SavedFits():
        hint = "A saved fit holds what is known of the workers: give one of the two."
        raise SettingsError("a history does not go with a saved fit", value=str(path), hint=hint)
    history = read_history(path)
    if any(note.endswith(NUMBERED) for note in evidence.notes):
        raise ReportsError(
            "workers who were named by an address cannot have a history: their numbers hold within one import",
            source=str(path),
            hint="Read both exports together, or give the workers names of their own in the labelling tool.",
        )
    if history.earlier_answers_by_worker_order(evidence.reports.workers) is None:
        names = ", ".join(history.workers[:3])
        hint = "Names of workers must be those of the reports, letter by letter."
        raise ReportsError(
            "no worker of the reports has a history there", source=str(path), examples=names or "no worker", hint=hint
        )
    return history


def _warnings_of_shared_names_and_tasks(
    path: Path | None, history: WorkerHistory | None, evidence: Evidence
) -> list[str]:
    """Return warnings on names that may be of other people, and on tasks whose answers may count twice."""
    if path is None or history is None:
        return []
    notes = []
    shared = set(history.workers).intersection(map(str, evidence.reports.workers.tolist()))
    numbered = sorted(name for name in shared if NUMBERED_NAME.fullmatch(name))
    if numbered:
        notes.append(
            f"Names such as {numbered[0]} are given by an import to workers with an address, in order of appearance: "
            "those of two imports are different people."
        )
    earlier = len(index_of(evidence.reports.tasks, tasks_of_truths_beside_history(path)))
    if earlier:
        notes.append(
            f"{earlier:,} of {len(evidence.reports.tasks):,} tasks are among those of the history: answers that it has "
            "seen count twice."
        )
    return notes


def _history_note(history: WorkerHistory, estimate: Estimate) -> str:
    """Return the number of workers with a history, and of the answers that it is worth."""
    earlier = history.earlier_answers_by_worker_order(estimate.worker_names)
    assert earlier is not None
    known, workers = int((earlier.number > 0).sum()), len(earlier.number)
    are = verb_of(known, "is", "are", whole=workers)
    return (
        f"{known:,} of {number_of(workers, 'worker')} {are} known by {history.quality_name}, worth "
        f"{earlier.number.sum() / known:.1f} earlier answers each (at most {MAX_ANSWERS:g})"
    )


def _warm_start(
    estimator: Estimator[Any, Any], evidence: Evidence, fits: SavedFits | None, inputs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a fit that resumes a saved one; none for a fit from scratch."""
    if fits is None or fits.start_from is None:
        return {}
    state = SavedFit.open(fits.start_from).state_for(estimator, evidence.reports, **_inputs_of_saved_fit(inputs))
    return {"history": None, "warm_start": state}


def _save_fit_if_requested(
    fits: SavedFits | None,
    estimator: Estimator[Any, Any],
    evidence: Evidence,
    estimate: Estimate,
    inputs: dict[str, Any],
) -> None:
    """Save the fit, if requested."""
    if fits is not None and fits.save is not None:
        SavedFit.of_estimate(estimator, evidence.reports, estimate, **_inputs_of_saved_fit(inputs)).save(fits.save)


def _inputs_of_saved_fit(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs of a fit that a saved fit must share."""
    return {name: inputs[name] for name in ("channel", "assignment", "prior")}


def infer_from_sums(path: Path, method: Method, *, accept_edited: bool = False) -> Inference:
    """Return truths inferred from the sums of matrix factorization; `crowd.json` must be in the same folder.

    Raises:
        ReportsError: no crowd, or sums that are damaged or not the crowd's.
        SettingsError: another method, or settings that it does not have.
    """
    from crowdveil.estimators.factorization_mean import FactorizationMean
    from crowdveil.folder.sums import read_sums

    if method.name not in (None, FactorizationMean.name) or (method.max_steps, method.tolerance) != (None, None):
        raise SettingsError(
            f"sums are read by {FactorizationMean.name}, without steps or tolerance",
            value=method.name,
            hint="Leave the method and its settings out.",
        )
    found = find_crowd(path)
    if found is None:
        raise ReportsError(
            f"the {CROWD_FILE} of these sums must be in the same folder",
            source=str(path),
            hint="Keep the files that perturb wrote together.",
        )
    crowd = crowd_if_digest_matches(read_crowd(found), path, accept_edited=accept_edited)
    sums = read_sums(path, crowd)
    tasks, workers = task_and_worker_names(crowd)
    totals = sums.mechanism.totals_in_answer_units(sums.summed, tasks=len(tasks), workers=len(workers))
    estimate = FactorizationMean().fit(totals, tasks=tasks, workers=workers)
    notes = tuple(crowd_warnings(crowd))
    model = f"sums over workers of {crowd['mechanism']}; {crowd['guarantee']}"
    sha256 = content_digest(path)
    return Inference(estimate=estimate, noise_model=model, crowd=crowd, notes=notes, reports_sha256=sha256)


def refuse_if_no_scored_task(evidence: Evidence, gold: str) -> None:
    """Refuse known truths of other tasks before the fit.

    Raises:
        ReportsError: a damaged file, or no known truth of any task.
    """
    known = read_gold(gold, "categorical")
    if known and not index_of(evidence.reports.tasks, known):
        raise no_common_task_error(known, evidence.reports.tasks, gold)


def warning_on_unknown_tasks(items: str, used: int, unknown: int) -> str:
    """Return the warning on known truths of unknown tasks."""
    among, skipped = verb_of(used, "is", "are", whole=used + unknown), verb_of(unknown, "was", "were")
    return f"{used:,} of {used + unknown:,} {items} {among} among the tasks; {unknown:,} {skipped} skipped."


def with_gold_score(inference: Inference, gold: str) -> Inference:
    """Return the inference with its score against known truths: a file, or `dataset:NAME`.

    Raises:
        ReportsError: a damaged file, an unknown label, or no known truth of any task.
    """
    estimate, notes = inference.estimate, inference.notes
    known = _read_scoring_truths(inference, gold)
    result = score(estimate, known)
    both = len(index_of(estimate.tasks, inference.guided.intersection(known)))
    if result.unknown > result.scored:
        notes += (warning_on_unknown_tasks("tasks to score", result.scored, result.unknown),)
    if result.outside and isinstance(estimate.alphabet, Scale):
        scale = f"{estimate.alphabet.low:g} to {estimate.alphabet.high:g}"
        notes += (
            f"{result.outside:,} of {result.scored:,} scored truths are outside the scale {scale}, which no "
            "estimate reaches.",
        )
    if both:
        notes += (f"{both:,} of the scored tasks also guided the fit: the score is too good.",)
    if inference.panel is not None and not inference.guided and estimate.alphabet is not None:
        aligned = align_gold(estimate, known)
        notes += warning_if_order_contradicts_gold(
            estimate.alphabet.names, estimate.posterior[aligned.at], gold_codes(aligned)
        )
    if result.gain_over_constant <= 0:
        notes += (f"The constant {result.constant} for every task scores as well or better.",)
    return replace(inference, score=result, notes=notes)


def _read_scoring_truths(inference: Inference, gold: str) -> dict[str, Any]:
    """Return the known truths of a file that score an inference, in the spelling of its labels if spellings are one."""
    alphabet = inference.estimate.alphabet
    known = read_gold(gold, kind_of_truths(alphabet))
    merged = inference.merge_labels and isinstance(alphabet, Categories)
    return with_known_spellings(known, alphabet.names) if merged and alphabet is not None else known


def with_decisions(
    inference: Inference, *, costs: Path | None = None, abstain_below: float | None = None, gold: str | None = None
) -> Inference:
    """Return the inference with decisions by costs, and none below a confidence.

    Args:
        inference: labels with probabilities.
        costs: CSV file of the costs, truth,decision,cost; None decides for the most probable label.
        abstain_below: smallest confidence of a decision; None decides all tasks.
        gold: known truths that score the decisions; None for none.

    Raises:
        SettingsError: numbers, or a method without probabilities.
        ReportsError: a damaged file of costs.
    """
    estimate = inference.estimate
    if not isinstance(estimate.alphabet, Categories):
        raise SettingsError(
            "decisions by costs or confidence need labels",
            value=estimate.method,
            hint="Leave costs and the least confidence out.",
        )
    table = None if costs is None else read_costs(costs, estimate.alphabet)
    estimate = decide(estimate, costs=table, abstain_below=abstain_below)
    known = None if gold is None else _read_scoring_truths(inference, gold)
    notes = (*inference.notes, *decision_notes(estimate, known, table))
    return replace(inference, estimate=estimate, notes=notes)


def _inference_warnings(evidence: Evidence, estimator: Estimator[Any, Any], estimate: Estimate) -> list[str]:
    crowd, channel = evidence.crowd, evidence.channel
    notes = [
        *([] if estimate.intervals_narrower_than_scale else [NOT_IDENTIFIED]),
        *([] if crowd is None else crowd_warnings(crowd)),
        *evidence.notes,
    ]
    unread = warning_if_channel_unread(evidence, type(estimator))
    if unread is not None:
        notes.append(unread)
    if not estimate.converged:
        notes.append(
            f"NOT CONVERGED after {estimate.steps} steps: truths still changed by more than the tolerance. "
            "Raise --max-steps."
        )
    if crowd is None and estimate.channel_used and channel is not None:
        missing = "No answer (NULL) may be counted too rarely, since tasks and workers without a report are unknown. "
        notes.append(
            f"No {CROWD_FILE} in the folder of the reports: whether the certificate is theirs cannot be checked. "
            f"{missing if channel.protects_participation else ''}".rstrip()
        )
    if estimate.gold_unknown:
        notes.append(warning_on_unknown_tasks("gold tasks", estimate.gold_used, estimate.gold_unknown))
    different = warning_if_truths_differ_from_plurality(evidence, estimate)
    return notes if different is None else [*notes, different]
