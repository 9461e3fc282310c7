"""Scores of an inference against known truths that did not guide it, and decisions by costs or confidence."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.evidence import Evidence
from crowdveil.answers.facts.inputs import Input
from crowdveil.answers.identifiers import index_of, no_common_task_error
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.errors import SettingsError
from crowdveil.inference.given import KnownTruths, errors_naming_gold_source
from crowdveil.inference.infer import Inference, warning_on_unknown_tasks
from crowdveil.inference.panel.fit import order_warning
from crowdveil.inference.scores.decisions import decide, decision_notes
from crowdveil.inference.scores.gold_errors import align_gold, gold_codes
from crowdveil.inference.scores.metrics import score


def refuse_unless_scorable(evidence: Evidence, known: KnownTruths) -> None:
    """Refuse known truths of other tasks before the fit.

    Raises:
        ReportsError: no known truth of any task.
    """
    tasks = evidence.reports.tasks
    if known.truths and not index_of(tasks, known.truths):
        raise no_common_task_error(known.truths, tasks, known.source)


def with_gold_score(inference: Inference, known: KnownTruths) -> Inference:
    """Return the inference with its score against known truths, in the spelling of its labels.

    Raises:
        ReportsError: an unknown label, or no known truth of any task.
    """
    estimate, notes = inference.estimate, inference.notes
    truths = inference.evidence.in_label_spelling(known.truths)
    with errors_naming_gold_source(known):
        result = score(estimate, truths)
    both = len(index_of(estimate.tasks, inference.guided.intersection(map(str, truths))))
    if result.unknown > result.scored:
        notes += (warning_on_unknown_tasks("tasks to score", result.scored, result.unknown),)
    if known.chosen:
        notes += ("The scored tasks were chosen for a person to decide: this score says nothing about the others.",)
    if result.outside and isinstance(estimate.alphabet, Scale):
        scale = f"{estimate.alphabet.low:g} to {estimate.alphabet.high:g}"
        notes += (
            f"{result.outside:,} of {result.scored:,} scored truths are outside the scale {scale}, which no "
            "estimate reaches.",
        )
    if both:
        notes += (f"{both:,} of the scored tasks also guided the fit: this score is optimistic.",)
    if inference.panel is not None and not inference.guided and estimate.alphabet is not None:
        aligned = align_gold(estimate, truths)
        notes += order_warning(estimate.alphabet.names, estimate.posterior[aligned.at], gold_codes(aligned))
    if result.gain_over_constant <= 0:
        notes += (f"Always answering {result.constant} scores as well or better.",)
    return replace(inference, score=result, notes=notes)


def with_decisions(
    inference: Inference,
    *,
    costs: NDArray[np.float64] | None = None,
    inputs: tuple[Input, ...] = (),
    abstain_below: float | None = None,
    known: KnownTruths | None = None,
) -> Inference:
    """Return the inference with decisions by costs, and none below a confidence.

    Args:
        inference: labels with probabilities.
        costs: of each decision, indexed [truth, decision] by label; None decides for the most probable label.
        inputs: what the costs were read from.
        abstain_below: smallest confidence of a decision; None decides all tasks.
        known: truths that score the decisions; None for none.

    Raises:
        SettingsError: numbers, a method without probabilities, or costs of another shape.
    """
    estimate = inference.estimate
    if not isinstance(estimate.alphabet, Categories):
        raise SettingsError(
            "decisions by costs or confidence need labels",
            value=estimate.method,
            hint="Leave costs and the least confidence out.",
        )
    estimate = decide(estimate, costs=costs, abstain_below=abstain_below)
    truths = None if known is None else dict(inference.evidence.in_label_spelling(known.truths))
    notes = (*inference.notes, *decision_notes(estimate, truths, costs))
    return replace(inference, estimate=estimate, notes=notes, given=(*inference.given, *inputs))
