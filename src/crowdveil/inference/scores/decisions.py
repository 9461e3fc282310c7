"""Decisions from posteriors: the label with the least expected cost, or none below a confidence.

With costs C[z, d] of the decision d if the truth is z, the decision of a task with posterior p minimizes
sum_z p(z) C[z, d] (Berger 1985, Statistical Decision Theory, section 4.4). Of equal decisions the first label is taken.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.estimate import Estimate
from crowdveil.errors import SettingsError
from crowdveil.hints import command_advice

COLUMNS = ("truth", "decision", "cost")
FLAT = 1e-12
"""Difference of expected costs below which decisions are equal, relative to the largest cost."""


def decide(
    estimate: Estimate, *, costs: NDArray[np.float64] | None = None, abstain_below: float | None = None
) -> Estimate:
    """Return the estimate with decisions for truths.

    Args:
        estimate: labels with probabilities.
        costs: C, indexed [truth, decision] by label; None takes the most probable label.
        abstain_below: tasks whose decision has a smaller probability stay undecided; None decides all.

    Raises:
        SettingsError: numbers or no probabilities, costs of another shape or below 0, or a confidence outside [0, 1].
    """
    if not estimate.categorical or not estimate.probabilistic:
        raise SettingsError(
            "decisions by costs or confidence need labels with probabilities",
            value=estimate.method,
            hint=command_advice(
                "Leave {costs} and {abstain_below} out, or choose another {method}.", "Use another method."
            ),
        )
    if abstain_below is not None and not 0 <= abstain_below <= 1:
        raise SettingsError(
            "the confidence of decisions must be in [0, 1]",
            value=abstain_below,
            hint="Such as 0.9: truths that are less certain stay empty.",
        )
    posterior = estimate.posterior
    decision, expected = None, None
    if costs is not None:
        if costs.shape != (posterior.shape[1],) * 2 or not (np.isfinite(costs).all() and (costs >= 0).all()):
            raise SettingsError("costs must be a finite number from 0 for each pair of labels", value=costs.shape)
        by_label = posterior @ costs
        expected = by_label.min(axis=1)
        decision = (by_label <= expected[:, None] + FLAT * costs.max()).argmax(axis=1)
    decided = replace(estimate, decision=decision, expected_cost=expected)
    if abstain_below is None or decided.confidence is None:
        return decided
    return replace(decided, undecided=decided.confidence < abstain_below)


def decision_notes(estimate: Estimate, gold: dict[str, Any] | None, costs: NDArray[np.float64] | None) -> list[str]:
    """Return sentences on undecided tasks, and on error and cost of the decisions where the truth is known."""
    assert estimate.alphabet is not None
    total, notes = len(estimate.posterior), []
    undecided = np.zeros(total, dtype=bool) if estimate.undecided is None else estimate.undecided
    if undecided.any():
        notes.append(f"{int(undecided.sum()):,} of {total:,} tasks stay undecided: their confidence is too small.")
    code = {name: place for place, name in enumerate(estimate.alphabet.names)}
    known = [
        (place, code[str(gold[str(task)])])
        for place, task in enumerate(estimate.tasks.tolist())
        if gold and not undecided[place] and str(gold.get(str(task))) in code
    ]
    if not known:
        return notes
    place, truth = np.array(known).T
    decided, probable = estimate.decisions[place], estimate.posterior[place].argmax(axis=1)
    wrong = float((decided != truth).mean())
    notes.append(f"Of the {len(known):,} decided tasks with a known truth, {100 * wrong:.1f} % are wrong.")
    if costs is not None:
        own, other = float(costs[truth, decided].mean()), float(costs[truth, probable].mean())
        notes.append(f"Their mean cost is {own:.4g}; that of the most probable labels is {other:.4g}.")
    return notes
