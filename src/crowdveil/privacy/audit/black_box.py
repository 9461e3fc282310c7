"""Audit of a black box on neighbouring inputs: a lower bound on epsilon, and on delta at the claimed epsilon.

For each ordered pair of inputs the draws are halved. The first half searches an event, the second half bounds its two
probabilities (`confidence`). With the error probability divided by the number of ordered pairs (Bonferroni), the bound
of the whole audit exceeds the true loss with probability at most alpha, whatever the search found.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.errors import SettingsError
from crowdveil.privacy.audit.confidence import Counts
from crowdveil.privacy.audit.events import Event, Objective, event_with_largest_objective
from crowdveil.privacy.audit.outputs import Drawn, DrawnOutputs, drawn_outputs_by_part

MIN_DRAWS = 40
FAILURE = "failure"
"""Part of an output that says which exception was raised."""
Progress = Callable[[int, int], None]
"""Callback with the number of finished pairs and the number of all pairs."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring inputs of a black box.

    Attributes:
        name: what differs, such as "no against yes".
        first, second: functions of a number of draws that return as many independent outputs under the input.
        alternate: draw one output of each input in turn, in random order, for boxes that may drift with time.
    """

    name: str
    first: Callable[[int], Drawn]
    second: Callable[[int], Drawn]
    alternate: bool = False

    @classmethod
    def of_function(cls, function: Callable[[Any], Any], first: Any, second: Any, *, name: str = "") -> "Pair":
        """Return the pair of two inputs of a function with one output per call; an exception is an output, too."""
        shown = name or f"{first!r:.40} against {second!r:.40}"
        return cls(
            shown,
            _sampler_of_repeated_calls(function, first),
            _sampler_of_repeated_calls(function, second),
            alternate=True,
        )

    def draw(self, count: int) -> tuple[DrawnOutputs, DrawnOutputs]:
        """Return outputs of `count` draws of each input."""
        if not self.alternate:
            return drawn_outputs_by_part(self.first(count)), drawn_outputs_by_part(self.second(count))
        drawn: tuple[list[Any], list[Any]] = [], []
        for first in np.random.Generator(np.random.PCG64(count)).random(count) < 0.5:
            for which in (0, 1) if first else (1, 0):
                drawn[which].extend((self.first, self.second)[which](1))
        return drawn_outputs_by_part(drawn[0]), drawn_outputs_by_part(drawn[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Event with the largest bound.

    Attributes:
        pair: name of the pair of inputs.
        event: event in words; empty if no event tells the inputs apart.
        counts: occurrences in the draws that did not serve the search.
        epsilon: lower bound on epsilon at the claimed delta, in nats.
        delta: lower bound on delta at the claimed epsilon.
    """

    pair: str
    event: str
    counts: Counts
    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BlackBoxAudit:
    """Result of an audit by draws.

    Attributes:
        claimed_epsilon, claimed_delta: audited claim.
        draws: draws per input and pair.
        pairs: number of pairs, each tested in both directions.
        alpha: largest probability that a true claim is refuted.
        finding: strongest event over all pairs.
    """

    claimed_epsilon: float
    claimed_delta: float
    draws: int
    pairs: int
    alpha: float
    finding: Finding

    @property
    def refuted(self) -> bool:
        """Whether the bound exceeds the claim."""
        return self.finding.epsilon > self.claimed_epsilon or self.finding.delta > self.claimed_delta


def audit_black_box(
    pairs: Sequence[Pair],
    *,
    epsilon: float,
    delta: float = 0.0,
    draws: int = 100_000,
    alpha: float = 0.001,
    progress: Progress | None = None,
) -> BlackBoxAudit:
    """Return lower bounds on the privacy loss between the inputs of the pairs.

    Args:
        pairs: neighbouring inputs.
        epsilon, delta: claim.
        draws: draws of each input of each pair.
        alpha: probability, at most, with which the bound exceeds the true loss.
        progress: called after each pair.

    Raises:
        SettingsError: no pair, too few draws, a claim or alpha out of range, or every draw fails.
    """
    _require_valid_audit(pairs, epsilon, delta, draws, alpha)
    share = alpha / (2 * len(pairs))
    found: list[Finding] = []
    for number, pair in enumerate(pairs, start=1):
        found += _findings_of_both_directions(pair, (epsilon, delta), draws, share)
        if progress is not None:
            progress(number, len(pairs))
    best = max(found, key=lambda one: (one.delta - delta if delta else one.epsilon, one.epsilon))
    return BlackBoxAudit(
        claimed_epsilon=epsilon, claimed_delta=delta, draws=draws, pairs=len(pairs), alpha=alpha, finding=best
    )


def _findings_of_both_directions(pair: Pair, claim: tuple[float, float], draws: int, alpha: float) -> list[Finding]:
    """Return the finding of each direction of a pair; the draws are those of both directions."""
    learn, select = pair.draw(draws // 4), pair.draw(draws // 4)
    _refuse_if_every_draw_failed(*learn)
    events = [
        event_with_largest_objective(
            _swapped_if(learn, flip), _swapped_if(select, flip), _objective_of_event_search(*claim), alpha
        )
        for flip in (False, True)
    ]
    held = pair.draw(draws - 2 * (draws // 4))
    return [
        _bounded_finding(pair.name, event, _swapped_if(held, flip), claim, alpha) for flip, event in enumerate(events)
    ]


def _bounded_finding(
    pair: str, event: Event | None, held: tuple[DrawnOutputs, DrawnOutputs], claim: tuple[float, float], alpha: float
) -> Finding:
    first, second = (0 if event is None else event.draws_in_event(outputs) for outputs in held)
    counts = Counts(first=first, second=second, first_draws=held[0].draws, second_draws=held[1].draws)
    return Finding(
        pair=pair,
        event="" if event is None else str(event),
        counts=counts,
        epsilon=counts.lower_bound_on_epsilon(claim[1], alpha),
        delta=counts.lower_bound_on_delta(claim[0], alpha),
    )


def _swapped_if(both: tuple[DrawnOutputs, DrawnOutputs], flip: bool | int) -> tuple[DrawnOutputs, DrawnOutputs]:
    return (both[1], both[0]) if flip else both


def _objective_of_event_search(epsilon: float, delta: float) -> Objective:
    """Return what the search maximizes: the bound on epsilon of a pure claim, else that on delta."""
    if delta == 0 or math.isinf(epsilon):
        return lambda low, high: np.log(np.maximum(low - delta, 1e-300) / high)
    return lambda low, high: low - math.exp(epsilon) * high


def _sampler_of_repeated_calls(function: Callable[[Any], Any], value: Any) -> Callable[[int], list[Any]]:
    def draw(count: int) -> list[Any]:
        return [_output_or_failure_as_output(function, value) for _ in range(count)]

    return draw


def _output_or_failure_as_output(function: Callable[[Any], Any], value: Any) -> Any:
    """Return the output of a call; a visible failure is an output with the exception's name."""
    try:
        return function(value)
    except Exception as error:
        return {FAILURE: f"{type(error).__name__}: {error}"}


def _refuse_if_every_draw_failed(*both: DrawnOutputs) -> None:
    """Raise SettingsError if all draws of both inputs failed: nothing was compared."""
    failures = [outputs.part(FAILURE) for outputs in both]
    if all((part.size >= 0).all() for part in failures):
        raise SettingsError(
            "an audit needs outputs, but every draw failed",
            value=failures[0].raw[0].decode("utf-8", "replace")[:300],
            hint="Check that the function or command accepts the inputs.",
        )


def _require_valid_audit(pairs: Sequence[Pair], epsilon: float, delta: float, draws: int, alpha: float) -> None:
    if not pairs:
        raise SettingsError("an audit needs a pair of neighbouring inputs", value=0)
    require_nonnegative_epsilon_claim(epsilon)
    if not 0 <= delta <= 1:
        raise SettingsError("a claimed delta must be in [0, 1]", value=delta)
    if draws < MIN_DRAWS:
        raise SettingsError(
            f"an audit needs at least {MIN_DRAWS} draws", value=draws, hint="More draws give a larger bound."
        )
    if not 0 < alpha < 1:
        raise SettingsError(
            "alpha must be in (0, 1)", value=alpha, hint="Such as 0.05: the bound then holds with a confidence of 95 %."
        )


def require_nonnegative_epsilon_claim(epsilon: float) -> None:
    """Refuse a claimed epsilon that is negative or no number."""
    if not epsilon >= 0:
        raise SettingsError(
            "a claimed epsilon must be non-negative", value=epsilon, hint="Give the epsilon that the program claims."
        )
