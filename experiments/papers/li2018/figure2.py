"""Figure 2: weights of users from unprotected answers and from two-layer's reports."""

from typing import Any

import numpy as np
from experiments.papers.exhibit import Configuration, Row, Verdict, standard_error
from experiments.papers.li2018.comparison import losses_of
from experiments.papers.li2018.crowds import DUCHENNE, PEER, crowd_of
from experiments.papers.li2018.hyper_distribution import published
from experiments.papers.li2018.truth_discovery import perturbed, truth_discovery
from scipy.stats import spearmanr

CLAIMED = 1.0
SMALL, LARGE = 0.1, 0.4


def measure(step: Configuration) -> list[Row]:
    """Return the weights of all users in one trial."""
    crowd, hyper = crowd_of(step["crowd"], [step["trial"]]), published(step["claimed_epsilon"])
    generator = np.random.default_rng([step["seed"], step["trial"]])
    flip, exact = hyper.quantile(generator.random(crowd.workers)), losses_of(crowd, hyper).answer
    by_answer = generator.random(len(crowd.task))
    _, clean = truth_discovery(crowd, crowd.answer)
    _, noisy = truth_discovery(crowd, perturbed(crowd, flip, by_answer))
    numbers = zip(crowd.per_worker.tolist(), exact.tolist(), flip.tolist(), clean.tolist(), noisy.tolist(), strict=True)
    shared = {"crowd": step["crowd"], "trial": step["trial"]}
    return [
        shared
        | {"user": user, "answers": answers, "claimed_epsilon": step["claimed_epsilon"], "exact_epsilon": loss}
        | {"flip": one, "weight": before, "perturbed_weight": after}
        for user, (answers, loss, one, before, after) in enumerate(numbers)
    ]


def changes(rows: list[Row], crowd: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return flip probability and change of the weight of every user of a crowd."""
    mine = [row for row in rows if row["crowd"] == crowd]
    table = np.array([[row["flip"], row["weight"], row["perturbed_weight"]] for row in mine], dtype=float)
    return table[:, 0], table[:, 2] - table[:, 1]


def verdict(rows: list[Row]) -> Verdict:
    """Return that weights fall with the flip probability, and that small ones do not keep them."""
    found, spread = {}, {}
    for name in (PEER, DUCHENNE):
        flip, change = changes(rows, name)
        small, large = (float(np.median(change[mask])) for mask in (flip < SMALL, flip > LARGE))
        found[name] = (float(spearmanr(flip, change).statistic), small, large)
        trials = [changes([row for row in rows if row["trial"] == t], name) for t in {row["trial"] for row in rows}]
        spread[name] = standard_error([float(spearmanr(*pair).statistic) for pair in trials]) or 0.0
    (peer, _, _), (many, small, large) = found[PEER], found[DUCHENNE]
    sentence = (
        f"at claim {CLAIMED:g} weights fall more for larger flip probabilities on Duchenne (rank correlation "
        f"{many:.2f} ± {spread[DUCHENNE]:.2f}; median change {large:.2f} above flip {LARGE}, {small:.2f} below "
        f"{SMALL}), and barely with five answers of a student ({peer:.2f} ± {spread[PEER]:.2f}); ± is a standard error "
        f"over the trials."
    )
    return Verdict("reproduced in part", sentence, many < -0.15 and abs(peer) < abs(many) / 2 and large < small)
