"""The curator's half of a campaign: from evidence to truths and worker qualities, and to their score."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crowdveil.channels.alphabet import Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.identifiers import index_of, no_gold_task_found
from crowdveil.data.ingest.readers import load_prior
from crowdveil.em.estimate import Estimate
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import Estimator
from crowdveil.estimators.factorization_mean import FactorizationMean
from crowdveil.evaluation.metrics import Score, score
from crowdveil.evaluation.streaming_metrics import is_large_file, score_streaming
from crowdveil.incremental.saved_fit import SavedFit
from crowdveil.incremental.warm_start import Fit, fit_on
from crowdveil.workflow.evidence import Evidence, caveats, checked_crowd, listed
from crowdveil.workflow.export import CROWD_FILE, Crowd, find_crowd, read_crowd
from crowdveil.workflow.io import kind_of, read_gold
from crowdveil.workflow.methods import Method, build_estimator, inferred_alphabet, reading, unread_channel
from crowdveil.workflow.resources import Resources

WHATEVER_THERE_IS = Resources()


@dataclass(frozen=True, kw_only=True)
class KeptFits:
    """Files of fits.

    Attributes:
        start_from: a saved fit of some of the reports, to go on from; None begins anew.
        save: where to save the fit, for the next one; may be the same file; None does not save it.
    """

    start_from: Path | None = None
    save: Path | None = None


NOT_KEPT = KeptFits()


@dataclass(frozen=True, kw_only=True, eq=False)
class Inference:
    """An estimate with what must be said beside it.

    Attributes:
        estimate: truths and workers.
        reading: how the reports were read: through which channel, or as answers, and why.
        crowd: what `crowd.json` says; None if there was none.
        notes: warnings.
        guided: tasks whose known truth guided the fit.
        fit: what the estimate cost, where it went on from a saved fit or was saved; else None.
        score: against known truths that did not take part; None if there are none.
    """

    estimate: Estimate
    reading: str
    crowd: Crowd | None
    notes: tuple[str, ...]
    guided: frozenset[str] = frozenset()
    fit: Fit | None = None
    score: Score | None = None

    @property
    def simulation(self) -> bool | None:
        """Whether the reports are a simulation; None if nothing says so."""
        return None if self.crowd is None else self.crowd["simulation"]


def infer(
    evidence: Evidence,
    method: Method,
    *,
    gold: str | None = None,
    prior: Path | None = None,
    kept: KeptFits = NOT_KEPT,
    resources: Resources = WHATEVER_THERE_IS,
    progress: Callable[[int, float], None] | None = None,
) -> Inference:
    """Infer truths and workers from reports, through the channel where the method can read one.

    Args:
        gold: file of known truths that guide the fit, or `dataset:NAME`; those of unknown tasks are counted.
        prior: file with the public probability of each label.
        kept: the saved fit to go on from, and where to save this one.
        resources: what the fit may use.
        progress: called with every step's number and the largest change.

    Raises:
        SettingsError: a method that cannot be used with these reports, this channel or a prior; too little memory.
        ReportsError: a damaged file, or gold with an unknown label.
    """
    estimator = build_estimator(method, evidence)
    known = None if gold is None else read_gold(gold, kind_of(inferred_alphabet(evidence, type(estimator))))
    if gold is not None and known and not index_of(evidence.reports.tasks, known):
        raise no_gold_task_found(known, evidence.reports.tasks, gold)
    reads_channel = estimator.capabilities.reads_channel
    options: dict[str, Any] = {
        "channel": evidence.channel if reads_channel else None,
        "assignment": evidence.assignment if reads_channel else None,
        "gold": known,
        "prior": None if prior is None else load_prior(prior),
        "progress": progress,
        "engine": resources.build_engine(),
        "memory": resources.memory,
    }
    fit = None
    if kept == NOT_KEPT:
        estimate = estimator.fit(evidence.reports, **options)
    else:
        start_from = None if kept.start_from is None else SavedFit.open(kept.start_from)
        fit = fit_on(estimator, evidence.reports, start_from=start_from, **options)
        estimate = fit.estimate
        if kept.save is not None:
            fit.saved.save(kept.save)
    return Inference(
        estimate=estimate,
        reading=reading(evidence, estimator),
        crowd=evidence.crowd,
        notes=tuple(_notes(evidence, estimator, estimate)),
        guided=frozenset(known or ()),
        fit=fit,
    )


def infer_from_sums(path: Path, method: Method, *, accept_edited: bool = False) -> Inference:
    """Infer truths from the sums of matrix factorization; their crowd must lie beside them.

    Raises:
        ReportsError: no crowd, or sums that are damaged or not the crowd's.
        SettingsError: another method, or settings that it does not have.
    """
    from crowdveil.workflow.factorization_sums import read_sums

    if method.name not in (None, FactorizationMean.name) or (method.max_steps, method.tolerance) != (None, None):
        raise SettingsError(
            f"sums hold no single reports: they are read by {FactorizationMean.name}, without steps or tolerance",
            value=method.name,
        )
    found = find_crowd(path)
    if found is None:
        raise ReportsError(f"the {CROWD_FILE} of these sums must lie beside them", source=str(path))
    crowd = checked_crowd(read_crowd(found), path, accept_edited=accept_edited)
    sums = read_sums(path, crowd)
    tasks, workers = listed(crowd)
    totals = sums.mechanism.totals(sums.summed, tasks=len(tasks), workers=len(workers))
    estimate = FactorizationMean().fit(totals, tasks=tasks, workers=workers)
    notes = tuple(caveats(crowd))
    reading = f"sums over workers of {crowd['mechanism']}; {crowd['guarantee']}"
    return Inference(estimate=estimate, reading=reading, crowd=crowd, notes=notes)


def check_score(evidence: Evidence, gold: str) -> None:
    """Refuse known truths of other tasks before a fit begins; large files are looked at after it, in parts.

    Raises:
        ReportsError: a damaged file, or no known truth of any task.
    """
    known = {} if is_large_file(gold) else read_gold(gold, "categorical")
    if known and not index_of(evidence.reports.tasks, known):
        raise no_gold_task_found(known, evidence.reports.tasks, gold)


def left_out(what: str, used: int, unknown: int) -> str:
    """Return the note on known truths of which some are of no task."""
    return f"{used:,} of {used + unknown:,} {what} are among the tasks; {unknown:,} were left out."


def scored(inference: Inference, gold: str) -> Inference:
    """Return the inference with its score against a file of known truths, or `dataset:NAME`; large files are read in
    parts.

    Raises:
        ReportsError: a damaged file, an unknown label, or no known truth of any task.
    """
    estimate, notes = inference.estimate, inference.notes
    if is_large_file(gold):
        result, both = score_streaming(estimate, Path(gold), inference.guided)
    else:
        known = read_gold(gold, kind_of(estimate.alphabet))
        result = score(estimate, known)
        both = len(index_of(estimate.tasks, inference.guided.intersection(known)))
    if result.unknown > result.scored:
        notes += (left_out("tasks to score", result.scored, result.unknown),)
    if result.outside and isinstance(estimate.alphabet, Scale):
        scale = f"{estimate.alphabet.low:g} to {estimate.alphabet.high:g}"
        notes += (
            f"{result.outside:,} of {result.scored:,} scored truths are outside the scale {scale}: no estimate on it "
            "reaches them.",
        )
    if both:
        notes += (f"{both:,} of the scored tasks also guided the fit: the score flatters the estimate.",)
    if result.gain <= 0:
        notes += (f"The constant {result.constant} for every task would have scored as well or better.",)
    return replace(inference, score=result, notes=notes)


def _counts_null(channel: Channel | ChannelTable) -> bool:
    if isinstance(channel, ChannelTable):
        return channel.protects_participation
    return channel.participation == "protected"


def _notes(evidence: Evidence, estimator: Estimator[Any, Any], estimate: Estimate) -> list[str]:
    crowd, channel = evidence.crowd, evidence.channel
    notes = [*([] if crowd is None else caveats(crowd)), *evidence.notes]
    unread = unread_channel(evidence, type(estimator))
    if unread is not None:
        notes.append(unread)
    if not estimate.converged:
        notes.append(
            f"NOT CONVERGED after {estimate.steps} steps: truths still moved by more than the tolerance. "
            "Raise --max-steps."
        )
    if crowd is None and estimate.channel_used and channel is not None:
        unknown = "workers and tasks without a report are unknown, and the number of NULL reports may be too small; "
        notes.append(
            f"No {CROWD_FILE} beside the reports: {unknown if _counts_null(channel) else ''}nothing says that the "
            "certificate is that of these reports."
        )
    if estimate.gold_unknown:
        notes.append(left_out("gold tasks", estimate.gold_used, estimate.gold_unknown))
    return notes
