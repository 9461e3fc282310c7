"""Table 3: error rate change on Duchenne smiles by claimed epsilon, and at the exact epsilon of two-layer."""

import math
from statistics import mean
from typing import NamedTuple

from experiments.papers.exhibit import Row, Verdict
from experiments.papers.li2018.comparison import (
    CROWDVEIL,
    ONE,
    ONE_PER_ANSWER,
    TRUTH,
    TWO,
    VOTE,
    Arm,
    claims,
    value,
    votes_apart,
)
from experiments.papers.li2018.seeds import holds_for_every_seed, pooled

from crowdveil.channels.rounding import format_bound

TRIALS = 100
"""Trials of a printed number (section 7.1)."""


class Distance(NamedTuple):
    """Our change less the printed one, the distance in standard errors of both means, and our standard error."""

    gap: float
    scaled: float
    error: float

    def is_above(self, sign: int) -> bool:
        """Return whether our change is above (sign 1) or below (-1) the printed one, but for two standard errors."""
        return sign * self.gap > -2 * self.error


def distances(rows: list[Row], inference: str, arm: Arm) -> list[Distance]:
    """Return the distances of our changes from the printed ones by claim; a printed number is a mean of 100 trials."""
    found = []
    for claimed in claims(rows):
        own, printed, error, deviation = (
            value(rows, name, arm, inference, claimed) for name in ("change", "printed", "standard_error", "deviation")
        )
        found.append(
            Distance(own - printed, abs(own - printed) / math.hypot(error, deviation / math.sqrt(TRIALS)), error)
        )
    return found


def verdict(rows: list[Row]) -> Verdict:
    """Return how far the numbers are from the printed ones, and that the advantage vanishes at the exact epsilon."""
    own = pooled(rows)
    one, two = (value(own, "change", arm, TRUTH, 0.5) for arm in (ONE, TWO))
    first, second, votes = (
        distances(own, TRUTH, ONE),
        distances(own, TRUTH, TWO),
        [*distances(own, VOTE, ONE), *distances(own, VOTE, TWO)],
    )
    exact = [value(own, "exact_epsilon", TWO, TRUTH, claimed) for claimed in claims(own)]
    matched = max(value(own, "change", ONE_PER_ANSWER, TRUTH, claimed) for claimed in claims(own))
    best = min(value(own, "change", TWO, TRUTH, claimed) for claimed in claims(own))
    noise = max(value(own, "standard_error", arm, TRUTH, claimed) for arm in (ONE, TWO) for claimed in claims(own))
    repeats = value(own, "repeats", TWO, TRUTH, 0.5)
    half = [value(own, "change", arm, TRUTH, 0.0) for arm in (ONE, TWO)] if 0.0 in claims(own) else []
    gains = ", ".join(f"{gain:.3f} with {name}" for name, gain in _gains(own, 0.5).items())
    sentence = (
        f"in {repeats:,} trials (standard error of a change up to {noise:.4f}) with log-odds weights the changes of "
        f"truth discovery are {_near(first)} from the printed ones under one-layer, and {_near(second)} under "
        f"two-layer, whose printed changes are below ours at {sum(d.gap > 0 for d in second)} of {len(second)} claims "
        f"(at claim .5 {one:.3f} for one-layer and {two:.3f} for two-layer, printed .156 and .096). Two-layer's change "
        f"is smaller at equal claims from .1 up, by {gains} at claim .5; {_at_zero(half)}The changes of the majority "
        f"vote are below the printed ones in {sum(v.gap < 0 for v in votes)} of {len(votes)} cells, by "
        f"{min(-v.gap for v in votes):.3f} to {max(-v.gap for v in votes):.3f} ({min(v.scaled for v in votes):.1f} to "
        f"{max(v.scaled for v in votes):.1f} standard errors of both), and differ by at most {votes_apart(own):.3f} "
        f"between the mechanisms; their expectations are equal. The privacy is not equal: claims of 0 to 1 are an "
        f"exact epsilon of {format_bound(max(exact), 3)} for an answer of the busiest worker, and at each worker's "
        f"exact epsilon one-layer changes the error by at most {matched:.4f}, two-layer by at least {best:.3f}. At "
        f"claims up to .5 every printed method errs more often than the better constant label "
        f"({value(own, 'constant', ONE, TRUTH, 0.5):.3f})."
    )
    return Verdict("reproduced in part", sentence, _holds(own) and holds_for_every_seed(rows, _holds))


def _gains(rows: list[Row], claimed: float) -> dict[str, float]:
    """Return one-layer's change less two-layer's, by weight function of truth discovery."""
    weights = dict.fromkeys(str(row["weight"]) for row in rows if row["inference"] == TRUTH)
    return {
        weight: value(rows, "change", ONE, TRUTH, claimed, weight) - value(rows, "change", TWO, TRUTH, claimed, weight)
        for weight in weights
    }


def _noise(rows: list[Row], weight: str) -> float:
    """Return the standard error of the gain at claim .5."""
    return math.hypot(*(value(rows, "standard_error", arm, TRUTH, 0.5, weight) for arm in (ONE, TWO)))


def _near(found: list[Distance]) -> str:
    """Return mean and largest distance in words."""
    gaps = [abs(one.gap) for one in found]
    return (
        f"{mean(gaps):.3f} on average, at most {max(gaps):.3f} ({max(one.scaled for one in found):.1f} standard errors)"
    )


def _at_zero(changes: list[float]) -> str:
    """Return the changes at claim 0 in words; empty without that claim."""
    return f"at claim 0 both are {changes[0]:.3f}, exactly 1/2 less the error without protection. " if changes else ""


def _holds(rows: list[Row]) -> bool:
    """Return whether the sentence holds on some rows."""
    levels = [claimed for claimed in claims(rows) if claimed > 0.05]
    ahead = all(gain > -2 * _noise(rows, weight) for weight, gain in _gains(rows, 0.5).items())
    ahead &= all(value(rows, "change", TWO, TRUTH, c) < value(rows, "change", ONE, TRUTH, c) for c in levels)
    zero = [value(rows, "change", arm, TRUTH, 0.0) for arm in (ONE, TWO) if 0.0 in claims(rows)]
    ahead &= all(abs(change + value(rows, "unprotected", ONE, TRUTH, 0.0) - 0.5) < 1e-4 for change in zero)
    above = all(one.is_above(1) for one in distances(rows, TRUTH, TWO))
    below = all(one.is_above(-1) for arm in (ONE, TWO) for one in distances(rows, VOTE, arm))
    linear = _gains(rows, 0.5)
    ahead &= linear["p"] < linear["ln(p / (1 - p))"] / 2
    constant = value(rows, "constant", ONE, TRUTH, 0.5)
    printed = [row for row in rows if row["equal"] == "claimed" and row["inference"] != CROWDVEIL]
    useless = all(row["error"] > constant for row in printed if row["claimed_epsilon"] <= 0.5)
    return ahead and above and below and useless and _private(rows)


def _private(rows: list[Row]) -> bool:
    """Return whether the exact epsilons are as said, and one-layer is better at every one."""
    levels = claims(rows)
    exact = [value(rows, "exact_epsilon", TWO, TRUTH, claimed) for claimed in levels]
    costs = [value(rows, "exact_epsilon", ONE_PER_ANSWER, TRUTH, claimed) for claimed in levels]
    changes = [[value(rows, "change", arm, TRUTH, claimed) for claimed in levels] for arm in (ONE_PER_ANSWER, TWO)]
    fair = all(cost <= own * (1 + 1e-4) for cost, own in zip(costs, exact, strict=True))
    return fair and max(exact) - min(exact) < 0.01 and max(changes[0]) < min(changes[1])
