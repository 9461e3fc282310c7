"""Conclusion of the page of results: whether to use the truths, which tasks need more answers, and what to check.

Labels: the expected share of wrong truths is compared with that of the best constant. Numbers: half of the median 90 %
interval is compared with the mean distance of the numbers from the best constant. Both follow from the fitted model.
"""

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.rounding import format_bound
from crowdveil.privacy.statement import PrivacyStatement
from crowdveil.release.result_files import InferredTruths

USEFUL, USELESS = 0.5, 0.9
"""Shares of the constant's error: up to the first the truths are useful, from the second on they are not."""
SMALL_ERROR = 0.05
"""Expected share of wrong truths up to which they are useful, however small the constant's error is."""
CONFIDENT = 0.9
"""Confidence below which a task is counted as doubtful."""
CHECK = "These figures follow from the model. Compare some tasks whose truth you know before you rely on them."
INSTEAD = "Infer again with a method that has them, or compare tasks whose truth you know."
NO_PROBABILITIES = f"The method gives no probabilities, so the error of the truths is unknown. {INSTEAD}"
NO_INTERVALS = f"The method gives no intervals, so the error of the numbers is unknown. {INSTEAD}"
UNDECIDED = "No task is decided: the confidence of each is too small. Collect more answers."
NO_NUMBERS = "No task has a number: there is too little information in the reports."


def conclude(truths: InferredTruths, statement: PrivacyStatement) -> tuple[str, ...]:
    """Return the conclusion as sentences; epsilon stands in it only with a checked guarantee."""
    source = _source(statement)
    if truths.labels is None:
        return _of_numbers(truths, source)
    base = truths.baseline
    decided = truths.truth >= 0
    if not decided.any():
        return (UNDECIDED,)
    if truths.confidence is None or base.estimate_error is None:
        return (NO_PROBABILITIES,)
    own, constant = base.estimate_error, base.expected_error
    ratio = 0.0 if own <= SMALL_ERROR else own / constant
    against = f"{percent_up(constant)} with {base.constant} for every task"
    compared = f"{percent_up(own)} are expected to be wrong, against {against}"
    return (f"{source} {_advice(ratio)}: {compared}.", *_open(decided), _doubtful(truths.confidence[decided]), CHECK)


def _of_numbers(truths: InferredTruths, source: str) -> tuple[str, ...]:
    if not np.isfinite(truths.truth).any():
        return (NO_NUMBERS,)
    if truths.low is None or truths.high is None:
        return (NO_INTERVALS,)
    base, width = truths.baseline, float(np.nanmedian(truths.high - truths.low)) / 2
    ratio = width / base.expected_error if base.expected_error > 0 else np.inf
    compared = (
        f"the median 90 % interval is ± {width:.3g}, and the numbers differ from the best constant {base.constant} by "
        f"{base.expected_error:.3g} on average"
    )
    return (f"{source} {_advice(ratio / 2)}: {compared}.", CHECK)


def _source(statement: PrivacyStatement) -> str:
    """Return the beginning of the conclusion: the privacy of the reports."""
    if statement.status == "simulation":
        return "In this simulation, which has no privacy,"
    if statement.per_answer is None:
        return "Without a privacy guarantee,"
    answer = statement.per_answer
    return f"At epsilon {format_bound(answer.epsilon, 4)} per answer (participation {answer.participation}),"


def _advice(ratio: float) -> str:
    """Return the advice for an error as a share of that of the constant."""
    if ratio <= USEFUL:
        return "use these truths"
    if ratio < USELESS:
        return "use these truths with care"
    return "do not use these truths yet, collect more answers"


def _open(decided: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return a sentence on the tasks without a decision; none if all have one."""
    count = int((~decided).sum())
    return (f"{count:,} of {len(decided):,} tasks stay undecided and are not counted as wrong.",) if count else ()


def _doubtful(confidence: NDArray[np.float64]) -> str:
    """Return a sentence on the tasks with little confidence."""
    count = int((confidence < CONFIDENT).sum())
    if not count:
        return "Every truth has a confidence of at least 90 %."
    have = "1 truth has" if count == 1 else f"{count:,} truths have"
    return f"{have} a confidence below 90 %: ask for more answers on the doubtful tasks first."


def percent_up(share: float) -> str:
    """Return an error as a percentage with one decimal, rounded up; a small one is not written as 0 %."""
    return "< 0.1 %" if share < 0.001 else f"{np.ceil(share * 1000 - 1e-9) / 10:.1f} %"
