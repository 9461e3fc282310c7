"""Likelihood and score interval of shares written as loops over a grid, without code of the package."""

import math
from collections.abc import Sequence

Z95 = 1.959963984540054


def randomized_response(symbols: int, epsilon: float) -> list[list[float]]:
    """Return P(report | input) of symmetric randomized response over all symbols."""
    other = 1 / (symbols - 1 + math.exp(epsilon))
    return [[math.exp(epsilon) * other if x == y else other for y in range(symbols)] for x in range(symbols)]


def log_likelihood(counts: Sequence[float], table: Sequence[Sequence[float]], shares: Sequence[float]) -> float:
    """Return the log-likelihood of shares of inputs, as a loop over reports."""
    total = 0.0
    for report, count in enumerate(counts):
        probability = sum(share * row[report] for share, row in zip(shares, table, strict=True))
        total += count * math.log(probability) if count else 0.0
    return total


def best_null_share(counts: Sequence[float], table: Sequence[Sequence[float]], yes: float) -> tuple[float, float]:
    """Return the largest log-likelihood with a share of yes held, and the share of no answer there.

    The inputs are yes, no and no answer. The function of the share of no answer is concave: golden sections find it.
    """

    def value(none: float) -> float:
        return log_likelihood(counts, table, (yes * (1 - none), (1 - yes) * (1 - none), none))

    low, high, golden = 0.0, 1.0, (math.sqrt(5) - 1) / 2
    for _ in range(80):
        first, second = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, second) if value(first) >= value(second) else (first, high)
    best = max((low, high, 0.0, 1.0), key=value)
    return value(best), best


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Return the solution of linear equations by Gauss and Jordan."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for place in range(size):
        pivot = max(range(place, size), key=lambda row: abs(rows[row][place]))
        rows[place], rows[pivot] = rows[pivot], rows[place]
        for other in range(size):
            if other != place:
                factor = rows[other][place] / rows[place][place]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[place], strict=True)]
    return [rows[place][size] / rows[place][place] for place in range(size)]


def score_holds(
    counts: Sequence[float],
    table: Sequence[Sequence[float]],
    yes: float,
    *,
    quantile: float = Z95,
    clipped: bool = True,
) -> bool:
    """Return whether the (clipped) score interval of the share of yes holds a value; inputs are yes, no, no answer."""
    n = sum(counts)
    transposed = [[table[x][y] for x in range(3)] for y in range(3)]
    shares = solve([list(row) for row in transposed], [count / n for count in counts])
    answered = shares[0] + shares[1]
    if clipped and answered <= 0:
        return True
    none = best_null_share(counts, table, yes)[1]
    held = (yes * (1 - none), (1 - yes) * (1 - none), none)
    weights = solve([list(row) for row in table], (1 - yes, -yes, 0.0))
    variance = 0.0
    for report, weight in enumerate(weights):
        variance += sum(share * row[report] for share, row in zip(held, table, strict=True)) * weight**2
    first = min(max(shares[0], 0.0), answered) if clipped else shares[0]
    return abs(n * (first - yes * answered)) <= quantile * math.sqrt(n * variance)
