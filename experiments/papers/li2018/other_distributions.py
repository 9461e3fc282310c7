"""Hyper-distributions with the mean of U(0, b): exact epsilon and error rate change on Duchenne smiles."""

from functools import cache

import numpy as np
from experiments.papers.exhibit import Configuration, Row, Verdict, standard_error
from experiments.papers.li2018.comparison import losses_of, uniforms
from experiments.papers.li2018.crowds import duchenne
from experiments.papers.li2018.hyper_distribution import (
    HyperDistribution,
    matching_flip,
    scaled_beta,
    two_points,
    uniform,
)
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
    matched: list[Numbers] = [matching_flip(losses.answer), matching_flip(losses.share)]
    found = []
    for trial in range(step["trials"]):
        by_worker, by_answer = uniforms(crowd, step["seed"], trial)
        arms = [hyper.quantile(by_worker), *matched]
        found.append([crowd.error_rate(truth_discovery(crowd, perturbed(crowd, p, by_answer))[0]) for p in arms])
    errors = np.array(found)
    means = errors.mean(axis=0)
    return [
        {
            "distribution": step["distribution"],
            "claimed_epsilon": step["claimed_epsilon"],
            "mean_flip": hyper.mean,
            "exact_epsilon": float(losses.answer.max()),
            "exact_epsilon_5": hyper.cell_loss(5),
            "exact_epsilon_1": hyper.cell_loss(1),
            "exact_worker_epsilon": float((losses.share * crowd.per_worker).max()),
            "error": float(means[0]),
            "change": float(means[0]) - clean,
            "standard_error": standard_error(errors[:, 0]),
            "change_at_exact_answer": float(means[1]) - clean,
            "change_at_exact_worker": float(means[2]) - clean,
            "unprotected": clean,
            "constant": crowd.constant,
            "repeats": step["trials"],
        }
    ]


def verdict(rows: list[Row]) -> Verdict:
    """Return that the uniform distribution is not the most private, and none is better than one-layer per answer."""
    own = {(str(r["distribution"]), r["claimed_epsilon"]): r for r in rows}
    claims = sorted({claimed for _, claimed in own}, reverse=True)

    def number(name: str, distribution_name: str, claimed: float) -> float:
        return own[distribution_name, claimed][name]

    equal = all(abs(number("exact_epsilon_1", *key) - key[1]) < 1e-4 for key in own)
    beta = "Beta(2, 2) on (0, 2m)"
    safer = all(
        number("exact_epsilon", one, c) < number("exact_epsilon", PAPER_CHOICE, c)
        for one in (beta, "U(.5m, 1.5m)")
        for c in claims
    )
    gaps = [number("change", *key) - number("change_at_exact_answer", *key) for key in own if key[0] != ONE_LAYER]
    noise = max(number("standard_error", *key) for key in own)
    first = claims[0]
    whole = [number(name, PAPER_CHOICE, first) for name in ("change", "change_at_exact_worker")]
    ends = ", ".join(
        f"{number('change', PAPER_CHOICE, c):.3f} against {number('change_at_exact_worker', PAPER_CHOICE, c):.3f} at "
        f"claim {c:g}"
        for c in dict.fromkeys((first, claims[-1]))
    )
    costs = [format_bound(number("exact_epsilon", one, first), 3) for one in (PAPER_CHOICE, beta, "U(.5m, 1.5m)")]
    sentence = (
        f"all distributions with one mean cost the same for one answer, and for the busiest worker the uniform one "
        f"is not the most private: at claim {first:g} an answer costs "
        f"{costs[0]} with U(0, 2m), {costs[1]} with Beta(2, 2) and {costs[2]} with U(.5m, 1.5m). None of the "
        f"{len(NAMES) - 1} distributions is better than one-layer at its own exact epsilon of an answer on Duchenne: "
        f"the smallest difference of the changes is {min(gaps):.3f} (standard error of a change up to {noise:.3f}). At "
        f"its exact epsilon of a worker U(0, 2m) and one-layer change the error by {ends}."
    )
    return Verdict("not reproduced", sentence, equal and safer and min(gaps) > -2 * noise and whole[0] < whole[1])
