"""Numbers through a channel, by loops: what tests hold the vectorised formulas to. Answers are on the scale 0..3."""

import math

from crowdveil.answers.reports import Reports
from crowdveil.channels.channel import Channel


def normal_mass(low: float, high: float) -> float:
    """Phi(high) - Phi(low) by the complementary error function, taken on the side where the tails are small."""
    if low > 0:
        return normal_mass(-high, -low)
    return (math.erfc(-high / math.sqrt(2)) - math.erfc(-low / math.sqrt(2))) / 2


def answer_probability(mu: float, sigma: float, answer: int) -> float:
    """C_sigma(mu)[x] on the grid 0..3, tails at the ends."""
    low = -math.inf if answer == 0 else (answer - 0.5 - mu) / sigma
    high = math.inf if answer == 3 else (answer + 0.5 - mu) / sigma
    return normal_mass(low, high)


def report_probability(mu: float, sigma: float, share: float, channel: Channel | None, output: int) -> float:
    """R_c[mu, y] of one report symbol."""
    if channel is None:
        return answer_probability(mu, sigma, output)
    table = channel.probabilities
    protected = channel.participation == "protected"
    total = (1 - share) * table[4, output] if protected else 0.0
    answered = sum(answer_probability(mu, sigma, x) * table[x, output] for x in range(4))
    return float(total + (share if protected else 1.0) * answered)


def output_cells(reports: Reports, channel: Channel | None) -> list[list[int | None]]:
    """Output symbol of every cell, indexed [task][worker]; None where no report was sent."""
    null = None if channel is None else channel.null_output
    cells: list[list[int | None]] = [[null] * len(reports.workers) for _ in reports.tasks]
    for t, w, v in zip(reports.task.tolist(), reports.worker.tolist(), reports.value.tolist(), strict=True):
        cells[t][w] = v
    return cells
