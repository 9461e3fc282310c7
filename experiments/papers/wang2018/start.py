"""Starts of Algorithm 1 from the reports alone, which section 6 leaves open: the vote and a spectral one, against (15).

All of them are computed from the randomized reports, so that they cost no epsilon beyond that of the reports.
"""

import math

import numpy as np
from experiments.papers.exhibit import Configuration, Row, Verdict
from experiments.papers.wang2018.dense_crowd import (
    DenseCrowd,
    Numbers,
    Signs,
    channel_projection,
    draw_crowd,
    majority_vote,
    mean_row,
    private_dawid_skene,
)
from experiments.papers.wang2018.theorem2 import abilities_of

POWER_STEPS = 100
"""Steps of the power iteration."""


def spectral_start(reports: Signs) -> Numbers:
    """Return the signs of the first right singular vector of the reports, shape (tasks,), by power iteration.

    The expected table is an outer product of abilities and truths, whose right singular vector has the signs of the
    truths. The iteration starts from the vote, which also decides between the vector and its opposite.
    """
    vector = reports.sum(axis=0)
    for _ in range(POWER_STEPS):
        vector = (reports @ vector) @ reports
        vector /= np.linalg.norm(vector) or 1.0
    return np.where(vector >= 0, 1.0, -1.0)


def measure(step: Configuration) -> list[Row]:
    """Return the mean errors of the starts of one crowd size and epsilon, and of Algorithm 1 from each."""
    workers, tasks, epsilon = (step[name] for name in ("workers", "tasks", "epsilon"))
    generator = np.random.default_rng([step["seed"], workers, tasks, round(1000 * epsilon)])
    abilities = abilities_of(step["crowd"], workers)
    crowds = (draw_crowd(abilities, tasks, epsilon, generator) for _ in range(step["repeats"]))
    return [
        mean_row([errors_of(crowd) for crowd in crowds])
        | {
            "crowd": step["crowd"],
            "mechanism": "randomized-response, public participation",
            "workers": workers,
            "tasks": tasks,
            "claimed_epsilon": epsilon,
            "exact_epsilon": epsilon,
            "exact_epsilon_worker": tasks * epsilon,
            "limit_15": math.sqrt(math.log(tasks) / tasks),
        }
    ]


def errors_of(crowd: DenseCrowd) -> dict[str, float]:
    """Return the left side of (15) by start, and the error of Algorithm 1 from the shares and the spectral one."""
    reports = crowd.reports
    shares = majority_vote(reports) / len(reports)
    vote, spectral = np.where(shares >= 0, 1.0, -1.0), spectral_start(reports)
    found = {
        f"start_{name}": float(np.abs(start - crowd.truth).mean() / 2)
        for name, start in (("spectral", spectral), ("shares", shares), ("vote", vote))
    }
    for name, start in (("shares", shares), ("spectral", spectral)):
        fitted, _ = private_dawid_skene(reports, start, channel_projection(crowd.epsilon))
        found[f"error_from_{name}"] = crowd.error(fitted)
    return found | {"constant": crowd.constant_error}


def verdict(rows: list[Row]) -> Verdict:
    """Return how many crowds have a start that meets (15), by start, and what Algorithm 1 gains from it."""
    met = {
        name: [row for row in rows if row[f"start_{name}"] <= row["limit_15"]]
        for name in ("shares", "vote", "spectral")
    }
    missed = [row for row in rows if row not in met["spectral"]]
    gains = [row["error_from_shares"] - row["error_from_spectral"] for row in rows]
    far = max((row["start_spectral"] / row["limit_15"] for row in missed), default=0.0)
    sentence = (
        f"the paper leaves open how to find the start of condition (15) privately. Of three starts from the reports, "
        f"which cost nothing more, the shares of the votes meet it on average in {len(met['shares'])} of {len(rows)} "
        f"crowds, the labels of the vote in {len(met['vote'])}, the signs of the first singular vector in "
        f"{len(met['spectral'])}; where it is missed the last is up to {far:.1f} times too far. Algorithm 1 errs "
        f"nearly the same from the shares and from the last (by {min(gains):.3f} to {max(gains):.3f} more from the "
        f"shares). No other start was tried, and none has a proof."
    )
    holds = len(met["shares"]) <= len(met["vote"]) <= len(met["spectral"]) < len(rows)
    return Verdict("reproduced in part", sentence, holds and set(map(id, met["vote"])) <= set(map(id, met["spectral"])))
