"""Rows epsilon = 0 of Tables 2 and 3, with flip probabilities drawn in every trial or once: the error is 1/2."""

import math
from typing import Any

import numpy as np
from experiments.papers.exhibit import Configuration, Row, Verdict
from experiments.papers.li2018.comparison import TRUTH, VOTE, losses_of
from experiments.papers.li2018.crowds import DUCHENNE, PEER, crowd_of
from experiments.papers.li2018.hyper_distribution import published
from experiments.papers.li2018.printed import PRINTED
from experiments.papers.li2018.truth_discovery import Numbers, majority_vote, perturbed, truth_discovery

UNPROTECTED = {PEER: 0.27, DUCHENNE: 0.24}
"""Error rates without protection in the text of section 7.2."""
ANEW, ONCE = "in every trial", "once for all trials"


def measure(step: Configuration) -> list[Row]:
    """Return the mean error over runs by inference, and the share of runs whose error is at most the printed one."""
    crowd = crowd_of(step["crowd"], [0])
    two = step["mechanism"] == "two-layer"
    errors = np.array([_run(step, run) for run in range(step["runs"])])
    rows: list[Row] = []
    for inference, mean in ((VOTE, errors[:, 0]), (TRUTH, errors[:, 1])):
        labels = majority_vote(crowd, crowd.answer) if inference == VOTE else truth_discovery(crowd, crowd.answer)[0]
        change, *other = (_printed_change(step["crowd"], one, inference) for one in (step["mechanism"], "one-layer"))
        gain = other[0] - change if two else None
        rows.append(
            {
                "crowd": step["crowd"],
                "mechanism": step["mechanism"],
                "inference": inference,
                "drawn": step["drawn"],
                "claimed_epsilon": 0.0,
                "exact_epsilon": float(losses_of(crowd, published(0.0)).answer.max()) if two else 0.0,
                "error": float(mean.mean()),
                "standard_error": float(mean.std(ddof=1)),
                "unprotected": crowd.error_rate(labels),
                "constant": crowd.constant,
                "repeats": step["runs"],
                "printed_error": UNPROTECTED[step["crowd"]] + change,
                "printed_gain": gain,
                "runs_with_gain": None if gain is None else float((mean <= 0.5 - gain).mean()),
            }
        )
    return rows


def _run(step: dict[str, Any], run: int) -> tuple[float, float]:
    """Return the mean errors of majority vote and of truth discovery over the trials of a run."""
    crowd = crowd_of(step["crowd"], [0])
    hyper = published(0.0)
    found = []
    by_worker = np.empty(0)
    for trial in range(step["trials"]):
        generator = np.random.default_rng([step["seed"], run * step["trials"] + trial])
        drawn, by_answer = generator.random(crowd.workers), generator.random(len(crowd.task))
        by_worker = drawn if trial == 0 or step["drawn"] == ANEW else by_worker
        flip: Numbers = hyper.quantile(by_worker) if step["mechanism"] == "two-layer" else np.full(crowd.workers, 0.5)
        reports = perturbed(crowd, flip, by_answer)
        labels = majority_vote(crowd, reports), truth_discovery(crowd, reports)[0]
        found.append([crowd.error_rate(one) for one in labels])
    vote, truth = np.mean(found, axis=0)
    return float(vote), float(truth)


def _printed_change(crowd: str, mechanism: str, inference: str) -> float:
    wanted = (mechanism, inference, 0.0)
    (row,) = (r for r in PRINTED[crowd] if (r["mechanism"], r["inference"], r["claimed_epsilon"]) == wanted)
    return row["change"]


def verdict(rows: list[Row]) -> Verdict:
    """Return that two-layer has no gain at epsilon 0, and that flips drawn once can seem to give one."""
    mine = {(r["crowd"], r["mechanism"], r["inference"], r["drawn"]): r for r in rows}
    one, anew, once = (
        mine[DUCHENNE, mechanism, TRUTH, drawn]
        for mechanism, drawn in (("one-layer", ANEW), ("two-layer", ANEW), ("two-layer", ONCE))
    )
    noise, *spread = (row["standard_error"] for row in (one, anew, once))
    gain = anew["printed_gain"]
    distance = gain / math.hypot(noise, spread[0])
    shares = [row["runs_with_gain"] for row in (anew, once)]
    half = all(abs(r["error"] - 0.5) < 4 * r["standard_error"] / r["repeats"] ** 0.5 for r in rows)
    sentence = (
        f"the error at claimed epsilon 0 is 1/2 within noise in every row, under both mechanisms. Table 3 prints a "
        f"change of truth discovery that is {gain:.3f} smaller under two-layer, {distance:.1f} standard deviations "
        f"of such a difference if flip probabilities are drawn in every trial ({shares[0]:.0%} of our runs). If they "
        f"are drawn once for all trials, a run varies by {spread[1]:.2f} and {shares[1]:.0%} of runs have such a "
        f"gain: it would then be one draw."
    )
    return Verdict("not reproduced", sentence, half and spread[1] > 1.5 * spread[0] and shares[0] <= shares[1])
