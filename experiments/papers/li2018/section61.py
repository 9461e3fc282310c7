"""Theorems 6.2 to 6.4: claimed and exact epsilon of one answer, by flip probability and number of answers."""

import numpy as np
from experiments.papers.exhibit import Configuration, Row, Verdict
from experiments.theory.published_bounds import equal_flip_probability, two_layer_exact_epsilon

from crowdveil.channels.rounding import format_bound

ONE, TWO = "one-layer", "two-layer"
FLIPS = (0.1, 0.2689, 0.5, 0.9)
INTERVALS = ((0.0, 1.0), (0.0, 0.538), (0.1, 0.4), (0.25, 0.288), (0.3, 0.9))


def measure(step: Configuration) -> list[Row]:
    """Return the losses of one-layer by its table of Definition 5.1, and of two-layer by the integrals of its page."""
    one = [(ONE, flip, flip, one_answer_loss(flip, step["labels"])) for flip in FLIPS if step["answers"] == 1]
    two = [(TWO, *ends, two_layer_exact_epsilon(*ends, **step)) for ends in INTERVALS]
    return [_row(*found, **step) for found in (*one, *two)]


def one_answer_loss(flip: float, labels: int) -> float:
    """Return the largest loss between two rows of the table of one answer."""
    table = np.full((labels, labels), flip / (labels - 1)) + (1 - flip - flip / (labels - 1)) * np.eye(labels)
    return float(np.log(table.max(axis=0) / table.min(axis=0)).max())


def _row(mechanism: str, low: float, high: float, exact: float, *, labels: int, answers: int) -> Row:
    flip = equal_flip_probability(low, high)
    printed = float(np.log((1 - flip) * (labels - 1) / flip))
    numbers: Row = {"printed_epsilon": printed, "claimed_epsilon": abs(printed), "exact_epsilon": exact}
    return {"mechanism": mechanism, "labels": labels, "low": low, "high": high, "answers": answers} | numbers


def verdict(rows: list[Row]) -> Verdict:
    """Return that the theorems hold for one answer of a worker, and Theorems 6.3 and 6.4 for no more."""

    def excess(row: Row) -> float:
        return row["exact_epsilon"] - row["claimed_epsilon"]

    right = [row for row in rows if row["mechanism"] == ONE or row["answers"] == 1]
    several = [row for row in rows if row["mechanism"] == TWO and row["answers"] != 1]
    negative = [row for row in right if row["printed_epsilon"] < -1e-9]
    (known,) = (r for r in several if (r["labels"], r["low"], r["high"], r["answers"]) == (2, *INTERVALS[1], 100))
    cost = format_bound(known["exact_epsilon"], 4)
    sentence = (
        f"Theorem 6.2 gives the exact epsilon of an answer in all rows, and Theorems 6.3 and 6.4 for a worker with one "
        f"answer, as an absolute value: the printed logarithm is negative in {len(negative)} of {len(right)} such "
        f"rows. With two or more answers the exact epsilon of two-layer is above the claim in all {len(several)} rows, "
        f"by {min(map(excess, several)):.2g} to {max(map(excess, several)):.3g}: with U(0, 0.538), two labels and 100 "
        f"answers {cost} against {known['claimed_epsilon']:.3f} of one-layer at the mean flip probability."
    )
    holds = all(abs(excess(row)) < 1e-4 for row in right) and all(excess(row) > 1e-4 for row in several)
    return Verdict("reproduced in part", sentence, holds)
