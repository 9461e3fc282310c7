"""Table 3: error rate change on Duchenne smiles by claimed epsilon, and at the exact epsilon of two-layer."""

from statistics import mean

from experiments.papers.exhibit import Row, Verdict
from experiments.papers.li2018.comparison import (
    CROWDVEIL,
    ONE,
    ONE_PER_ANSWER,
    TRUTH,
    TWO,
    VOTE,
    claims,
    value,
    votes_apart,
)

from crowdveil.channels.rounding import format_bound


def verdict(rows: list[Row]) -> Verdict:
    """Return how far the numbers are from the printed ones, and that the advantage vanishes at the exact epsilon."""
    one, two = (value(rows, "change", arm, TRUTH, 0.5) for arm in (ONE, TWO))
    linear = value(rows, "change", ONE, TRUTH, 0.5, "p") - value(rows, "change", TWO, TRUTH, 0.5, "p")
    levels = claims(rows)
    (gaps, scaled), (votes, far) = (_distances(rows, inference) for inference in (TRUTH, VOTE))
    exact = [value(rows, "exact_epsilon", TWO, TRUTH, claimed) for claimed in levels]
    matched = max(value(rows, "change", ONE_PER_ANSWER, TRUTH, claimed) for claimed in levels)
    best = min(value(rows, "change", TWO, TRUTH, claimed) for claimed in levels)
    constant = value(rows, "constant", ONE, TRUTH, 0.5)
    printed = [row for row in rows if row["equal"] == "claimed" and row["inference"] != CROWDVEIL]
    useless = all(r["error"] > constant for r in printed if r["claimed_epsilon"] <= 0.5)
    sentence = (
        f"with log-odds weights the changes of truth discovery come near the printed ones (distance {mean(gaps):.3f} "
        f"on average, at most {max(gaps):.3f} or {max(scaled):.1f} standard errors of ours; at claim .5 {one:.3f} for "
        f"one-layer and {two:.3f} for two-layer, printed .156 and .096); with g(p) = p two-layer's gain of "
        f"{one - two:.3f} is {linear:.3f}. The changes of the majority vote are below the printed ones in all "
        f"{len(votes)} cells, by {min(votes):.3f} to {max(votes):.3f} ({min(far):.1f} to {max(far):.1f} standard "
        f"errors), and differ by at most {votes_apart(rows):.3f} between the mechanisms; their expectations are equal. "
        f"The privacy is not equal: claims of 0 to 1 are an exact epsilon of {format_bound(max(exact), 3)} for an "
        f"answer of the busiest worker, and at each worker's exact epsilon one-layer changes the error by at most "
        f"{matched:.3f}, two-layer by at least {best:.3f}. At claims up to .5 every printed method errs more often "
        f"than the better constant label ({constant:.3f})."
    )
    holds = two < one and linear < (one - two) / 2 and max(exact) - min(exact) < 0.01 and matched < best and useless
    costs = [value(rows, "exact_epsilon", ONE_PER_ANSWER, TRUTH, claimed) for claimed in levels]
    holds &= all(cost <= own * (1 + 1e-4) for cost, own in zip(costs, exact, strict=True))
    below = all(
        value(rows, "change", a, VOTE, c) < value(rows, "printed", a, VOTE, c) for a in (ONE, TWO) for c in levels
    )
    holds &= mean(gaps) < 0.04 and below
    return Verdict("reproduced in part", sentence, holds)


def _distances(rows: list[Row], inference: str) -> tuple[list[float], list[float]]:
    """Return the distances of our changes from the printed ones, and as multiples of our standard errors."""
    cells = [(arm, claimed) for arm in (ONE, TWO) for claimed in claims(rows)]
    gaps, noise = [], []
    for arm, claimed in cells:
        own, printed, error = (value(rows, n, arm, inference, claimed) for n in ("change", "printed", "standard_error"))
        gaps.append(abs(own - printed))
        noise.append(gaps[-1] / error)
    return gaps, noise
