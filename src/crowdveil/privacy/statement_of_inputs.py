"""Statement of privacy of truths that depend on more than their reports: known truths, a history or a saved fit."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from crowdveil.answers.facts.inputs import Input, Role, joint_guarantee
from crowdveil.channels.guarantee import Guarantee, Participation
from crowdveil.channels.rounding import format_bound, sum_rounded_up
from crowdveil.privacy.statement import PrivacyStatement

NAMES: Mapping[Role, str] = {
    "reports": "the reports",
    "gold": "known truths (gold)",
    "history": "the history of the workers",
    "start_from": "a saved fit",
    "weight": "the confidence of answers",
}
"""Inputs that may depend on answers, in words."""
UNRECORDED = "The record of these truths does not say what they depend on. Infer them again."
UNCOVERED = "The truths also depend on {}, and no guarantee is recorded for the data behind that."
ADDED = (
    "The truths also depend on {}, made from other reports of at most epsilon {} per single answer: this is added, as "
    "the same answer may have been reported in both."
)
LARGEST_STATED = 600.0
"""Epsilon above which e to the epsilon is no number that could be stated."""
PUBLIC_GOLD = (
    "Known truths that guided the fit: the person who inferred the truths states that they do not "
    "depend on anyone's answers."
)


def statement_of_inputs(statement: PrivacyStatement, inputs: Sequence[Input]) -> PrivacyStatement:
    """Return the statement of truths with these recorded inputs, from that of their reports.

    An input without a guarantee ends the claim; the guarantees of other releases are added to that of the reports.
    """
    answer, worker = statement.per_answer, statement.per_worker
    if statement.status != "protected" or answer is None:
        return statement
    own = [one for one in inputs if one.role == "reports"]
    if len(own) != 1:
        return _without_claim(statement, UNRECORDED)
    others = [one for one in inputs if one.role != "reports"]
    further = [one for given in others for one in given.releases if not _is_same_release(one, own[0])]
    named = _names([given for given in others if set(given.releases).intersection(further)])
    if any(given.role == "gold" and given.public for given in others):
        statement = replace(statement, not_covered=(PUBLIC_GOLD, *statement.not_covered))
    if not further:
        return statement
    joint = joint_guarantee(further)
    if joint is None or joint.per_worker.epsilon > LARGEST_STATED:
        return _without_claim(statement, UNCOVERED.format(named))
    cells = 0 if worker is None else statement.cells + sum(one.cells for one in further)
    return replace(
        statement,
        per_answer=_sum(answer, joint.per_cell),
        per_worker=None if worker is None else _sum(worker, joint.per_worker),
        of_question=None,
        level_guarantees=(),
        level_workers=(),
        cells=cells,
        inputs=(ADDED.format(named, format_bound(joint.per_cell.epsilon, 4)),),
    )


def _is_same_release(one: Input, own: Input) -> bool:
    """Return whether an input is a function of the reports themselves."""
    if one.guarantee is None or own.guarantee is None:
        return one.guarantee is None and one.role == "reports" and one.sha256 == own.sha256
    covered = one.guarantee.epsilon <= own.guarantee.epsilon and one.guarantee.delta <= own.guarantee.delta
    return one.origin == own.origin and covered and one.cells <= own.cells


def _names(inputs: Sequence[Input]) -> str:
    return " and ".join(dict.fromkeys(NAMES[one.role] for one in inputs))


def _sum(one: Guarantee, other: Guarantee) -> Guarantee:
    """Return the guarantee of two releases about one unit."""
    public = "public" in (one.participation, other.participation)
    participation: Participation = "public" if public else "protected"
    return Guarantee(
        epsilon=sum_rounded_up([(one.epsilon, 1), (other.epsilon, 1)]),
        delta=min(1.0, sum_rounded_up([(one.delta, 1), (other.delta, 1)])),
        unit=one.unit,
        participation=participation,
    )


def _without_claim(statement: PrivacyStatement, reason: str) -> PrivacyStatement:
    return PrivacyStatement(
        status="none",
        subject=statement.subject,
        reason=reason,
        mechanism=statement.mechanism,
        campaign=statement.campaign,
    )
