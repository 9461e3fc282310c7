"""Table 2: error rate change on simulated peer grading by claimed epsilon, and at the exact epsilon of two-layer."""

from experiments.papers.exhibit import Row, Verdict
from experiments.papers.li2018.comparison import ONE, ONE_PER_ANSWER, TRUTH, TWO, claims, value, votes_apart
from experiments.papers.li2018.crowds import PEER, UNEQUAL
from experiments.papers.li2018.seeds import holds_for_every_seed, pooled

from crowdveil.channels.rounding import format_bound


def verdict(rows: list[Row]) -> Verdict:
    """Return that the table cannot be judged, and that two-layer has no advantage on two simulated crowds."""
    own = pooled(rows)
    main, other = ([row for row in own if row["crowd"] == name] for name in (PEER, UNEQUAL))
    gains, noise = _gains(main)
    unequal, spread = _gains(other)
    exact = [value(main, "exact_epsilon", TWO, TRUTH, claimed) for claimed in claims(main)]
    least, most = (format_bound(one, 3) for one in (min(exact), max(exact)))
    matched = [value(main, "change", ONE_PER_ANSWER, TRUTH, claimed) for claimed in claims(main)]
    changes = [value(main, "change", TWO, TRUTH, claimed) for claimed in claims(main)]
    worse = all(own > one for own, one in zip(changes, matched, strict=True))
    sentence = (
        f"the data are private, so the table cannot be judged. On simulated peer grading, five answers of a student, "
        f"two-layer has no measurable advantage at equal claimed epsilon in the two worker models that were tried: "
        f"truth discovery's change is smaller by at most {max(gains):.3f} (standard error of a change up to "
        f"{noise:.3f}; printed: by .015 to .037), with very unequal students by at most {max(unequal):.3f}. The "
        f"changes of the majority vote differ by at most {votes_apart(main):.3f} between the mechanisms; their "
        f"expectations are equal. A claim of 0 to 1 is an exact epsilon of an answer of {least} to {most}, where "
        f"one-layer changes the error by at most {max(matched):.3f}, less than two-layer at every claim."
    )
    costs = [value(main, "exact_epsilon", ONE_PER_ANSWER, TRUTH, claimed) for claimed in claims(main)]
    worse &= all(cost <= own * (1 + 1e-4) for cost, own in zip(costs, exact, strict=True))
    none = max(gains) < 2 * noise and max(unequal) < 2 * spread
    none &= holds_for_every_seed(rows, _shows_no_advantage)
    return Verdict("cannot be judged", sentence, none and min(exact) > 1.6 and worse)


def _shows_no_advantage(rows: list[Row]) -> bool:
    """Return whether two-layer's change is nowhere smaller by more than three standard errors of a change."""
    found = [_gains([row for row in rows if row["crowd"] == name]) for name in (PEER, UNEQUAL)]
    return all(max(gains) < 3 * noise for gains, noise in found)


def _gains(rows: list[Row]) -> tuple[list[float], float]:
    """Return one-layer's minus two-layer's change by claim, and the largest standard error of a change."""
    changes = [[value(rows, "change", arm, TRUTH, claimed) for claimed in claims(rows)] for arm in (ONE, TWO)]
    errors = [value(rows, "standard_error", TWO, TRUTH, claimed) for claimed in claims(rows)]
    return [one - two for one, two in zip(*changes, strict=True)], max(errors)
