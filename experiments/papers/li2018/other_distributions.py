"""Hyper-distributions with the mean of U(0, b): exact epsilon and error rate change on Duchenne smiles."""

from collections.abc import Callable
from functools import cache

import numpy as np
from experiments.papers.exhibit import Configuration, Row, Verdict, standard_error
from experiments.papers.li2018.comparison import key_of, losses_of, opposite_uniforms
from experiments.papers.li2018.crowds import duchenne
from experiments.papers.li2018.hyper_distribution import (
    HyperDistribution,
    matching_flip,
    scaled_beta,
    two_points,
    uniform,
)
from experiments.papers.li2018.seeds import holds_for_every_seed, pooled
from experiments.papers.li2018.truth_discovery import Numbers, perturbed, truth_discovery

from crowdveil.channels.rounding import format_bound

PAPER_CHOICE, ONE_LAYER = "U(0, 2m)", "one-layer"
NAMES = (
    ONE_LAYER,
    "U(.9m, 1.1m)",
    "U(.5m, 1.5m)",
    "m/4 or 7m/4",
    "Beta(2, 2) on (0, 2m)",
    PAPER_CHOICE,
    "0.01 or 2m - .01",
)


@cache
def distribution(name: str, claimed: float) -> HyperDistribution:
    """Return a hyper-distribution whose mean m is one-layer's flip probability at the claimed epsilon."""
    m = float(matching_flip(claimed))
    made = {
        ONE_LAYER: lambda: uniform(m, m),
        "U(.9m, 1.1m)": lambda: uniform(0.9 * m, 1.1 * m),
        "U(.5m, 1.5m)": lambda: uniform(0.5 * m, 1.5 * m),
        "m/4 or 7m/4": lambda: two_points(m / 4, 7 * m / 4, share=0.5),
        "Beta(2, 2) on (0, 2m)": lambda: scaled_beta(2, 2, 2 * m),
        PAPER_CHOICE: lambda: uniform(0.0, 2 * m),
        "0.01 or 2m - .01": lambda: two_points(0.01, 2 * m - 0.01, share=0.5),
    }
    return made[name]()


def measure(step: Configuration) -> list[Row]:
    """Return the exact losses, and the change of truth discovery's error beside one-layer's at the same losses."""
    crowd, hyper = duchenne(), distribution(step["distribution"], step["claimed_epsilon"])
    losses = losses_of(crowd, hyper)
    clean = crowd.error_rate(truth_discovery(crowd, crowd.answer)[0])
    flips = [hyper.quantile, *(_constant(matching_flip(one)) for one in (losses.answer, losses.share))]
    seeds = [step["seed"], key_of(step["claimed_epsilon"]), NAMES.index(step["distribution"])]
    # Change of the distribution, of one-layer at the loss of an answer, and at that of a worker, shape (pairs, 3).
    changes = np.array([_pair(flips, [*seeds, pair]) for pair in range(step["trials"] // 2)]) - clean
    mean = changes.mean(axis=0)
    gaps = changes[:, :1] - changes[:, 1:]
    return [
        {
            "distribution": step["distribution"],
            "claimed_epsilon": step["claimed_epsilon"],
            "seed": step["seed"],
            "mean_flip": hyper.mean,
            "exact_epsilon": float(losses.answer.max()),
            "exact_epsilon_5": hyper.cell_loss(5),
            "exact_epsilon_1": hyper.cell_loss(1),
            "exact_worker_epsilon": float((losses.share * crowd.per_worker).max()),
            "error": clean + float(mean[0]),
            "change": float(mean[0]),
            "standard_error": standard_error(changes[:, 0]),
            "change_at_exact_answer": float(mean[1]),
            "gap_standard_error_answer": standard_error(gaps[:, 0]),
            "change_at_exact_worker": float(mean[2]),
            "gap_standard_error_worker": standard_error(gaps[:, 1]),
            "unprotected": clean,
            "constant": crowd.constant,
            "repeats": step["trials"],
        }
    ]


def _constant(flip: Numbers) -> Callable[[Numbers], Numbers]:
    """Return flip probabilities that do not depend on random numbers."""
    return lambda _: flip


def _pair(flips: list[Callable[[Numbers], Numbers]], seeds: list[int]) -> Numbers:
    """Return the mean error of both trials of a pair with opposite random numbers, for each rule of flips."""
    crowd = duchenne()
    draws = opposite_uniforms(crowd, np.random.default_rng(seeds))
    errors = [
        [crowd.error_rate(truth_discovery(crowd, perturbed(crowd, flip(by_worker), by_answer))[0]) for flip in flips]
        for by_worker, by_answer in draws
    ]
    return np.asarray(np.mean(errors, axis=0))


BETA = "Beta(2, 2) on (0, 2m)"
SAFER = (BETA, "U(.5m, 1.5m)")
"""Distributions with a smaller exact epsilon than the paper's choice."""


def verdict(rows: list[Row]) -> Verdict:
    """Return that the uniform distribution is not the most private, and none is better than one-layer per answer."""
    own = _by_point(pooled(rows))
    levels = sorted({claimed for _, claimed in own}, reverse=True)
    first = levels[0]
    costs = [format_bound(own[one, first]["exact_epsilon"], 3) for one in (PAPER_CHOICE, *SAFER)]
    gaps = {key: _gap(row, "answer") for key, row in own.items() if key[0] != ONE_LAYER}
    nearest = min(gaps, key=gaps.__getitem__)
    chosen = {claimed: own[PAPER_CHOICE, claimed] for claimed in levels}
    ends = ", ".join(
        f"{row['change']:.3f} against {row['change_at_exact_worker']:.3f} at claim {claimed:g}"
        for claimed, row in chosen.items()
    )
    noise = max(row["gap_standard_error_worker"] for row in chosen.values())
    sentence = (
        f"all distributions with one mean cost the same for one answer, and for the busiest worker the uniform one is "
        f"not the most private: at claim {first:g} an answer costs {costs[0]} with U(0, 2m), {costs[1]} with Beta(2, "
        f"2) and {costs[2]} with U(.5m, 1.5m). Each of the {len(NAMES) - 1} distributions changes the error on "
        f"Duchenne more than one-layer at its own exact epsilon of an answer, by {gaps[nearest]:.3f} at least "
        f"(standard error {own[nearest]['gap_standard_error_answer']:.4f}, {own[nearest]['repeats']:,} trials). At its "
        f"exact epsilon of a worker U(0, 2m) and one-layer change the error by {ends} (standard error of the "
        f"difference up to {noise:.4f})."
    )
    return Verdict("not reproduced", sentence, _holds(list(own.values())) and holds_for_every_seed(rows, _holds))


def _by_point(rows: list[Row]) -> dict[tuple[str, float], Row]:
    return {(str(row["distribution"]), row["claimed_epsilon"]): row for row in rows}


def _gap(row: Row, unit: str) -> float:
    """Return how much more a distribution changes the error than one-layer at its exact epsilon."""
    return float(row["change"] - row[f"change_at_exact_{unit}"])


def _holds(rows: list[Row]) -> bool:
    """Return whether the sentence holds on some rows."""
    own = _by_point(rows)
    levels = sorted({claimed for _, claimed in own}, reverse=True)
    equal = all(abs(row["exact_epsilon_1"] - key[1]) < 1e-4 for key, row in own.items())
    safer = all(own[one, c]["exact_epsilon"] < own[PAPER_CHOICE, c]["exact_epsilon"] for one in SAFER for c in levels)
    worse = all(
        _gap(row, "answer") > 2 * row["gap_standard_error_answer"] for key, row in own.items() if key[0] != ONE_LAYER
    )
    whole = [_gap(own[PAPER_CHOICE, c], "worker") for c in levels if c in (1.0, 0.1)]
    return equal and safer and worse and (len(whole) < 2 or whole[0] < 0 < whole[1])
