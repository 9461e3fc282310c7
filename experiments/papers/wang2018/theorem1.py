"""Theorem 1: privacy of the reports of one worker, by enumeration of all answers and all reports."""

from itertools import product

import numpy as np
from experiments.papers.exhibit import Configuration, Row, Verdict
from experiments.papers.wang2018.dense_crowd import private_mechanism


def measure(configuration: Configuration) -> list[Row]:
    """Return the largest loss over all reports: one answer differs, any differ, an answer is missing."""
    epsilon, tasks = configuration["epsilon"], configuration["tasks"]
    table = np.log(np.array(private_mechanism(epsilon).channel().probabilities, dtype=float))
    vectors = list(product((0, 1), repeat=tasks))
    log_probability = np.array([[table[list(a), list(b)].sum() for b in vectors] for a in vectors])
    loss = np.abs(log_probability[:, None] - log_probability[None]).max(axis=2)
    differing = np.array([[sum(x != y for x, y in zip(a, b, strict=True)) for b in vectors] for a in vectors])
    protected = private_mechanism(epsilon, "protected").guarantee.epsilon
    return [
        {
            "mechanism": "randomized-response, public participation",
            "tasks": tasks,
            "claimed_epsilon": epsilon,
            "exact_epsilon": float(loss[differing == 1].max()),
            "exact_epsilon_definition_3": float(loss[differing >= 1].max()),
            "exact_epsilon_not_answered": "infinite",
            "exact_epsilon_protected_participation": protected,
        }
    ]


def verdict(rows: list[Row]) -> Verdict:
    """Return that one answer loses epsilon, and all tasks together their sum."""
    rounding = 1 + 1e-9
    one = all(row["exact_epsilon"] <= row["claimed_epsilon"] * rounding for row in rows)
    several = [row for row in rows if row["tasks"] > 1]

    def total(row: Row) -> float:
        return row["tasks"] * row["claimed_epsilon"]

    one &= all(row["exact_epsilon"] > 0.999 * row["claimed_epsilon"] for row in rows)
    printed = all(row["exact_epsilon_definition_3"] > 0.999 * total(row) for row in several)
    sentence = (
        "two workers who differ in one answer are told apart with epsilon as claimed; Definition 3 as printed asks "
        "only that some coordinate differs, which is any two workers, and there m tasks lose m epsilon; a missing "
        "answer is visible, since nothing is sent for it."
    )
    return Verdict("reproduced", sentence, one and printed)
