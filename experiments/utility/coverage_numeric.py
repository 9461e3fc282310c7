"""Coverage of 90 % intervals for truths and standard deviations of `gaussian`, by crowd and channel.

Truths N(4, 2) on 0..9. Sigmas of the workers: `drawn`, independent and log-uniform from 0.7 to 5; or in equal
shares: `spread`, 24 from 0.7 to 5 in equal ratios; `six`, 0.7, 1, 1.5, 2, 3 and 5; `two`, 1 and 5, unlike any smooth
prior. Each figure has its standard error between crowds. Truths at an end of the scale are covered if the interval
reaches it. Run `python experiments/utility/coverage_numeric.py [--seeds N] [--sigmas S]`.
"""

import argparse
import math

import numpy as np

from crowdveil import Gaussian, QuantizedResponse, RandomizedResponse, Scale
from crowdveil.mechanisms import Mechanism
from crowdveil.randomness import seeded
from crowdveil.simulate import numeric_crowd, perturb

SCALE = Scale(0, 9)
SIGMAS = {
    "spread": tuple(np.geomspace(0.7, 5.0, 24).tolist()),
    "six": (0.7, 1.0, 1.5, 2.0, 3.0, 5.0),
    "two": (1.0, 5.0),
    "drawn": (),
}
CROWDS = ((120, 150, 0.8), (120, 150, 0.5), (600, 100, 0.9))
MECHANISMS: dict[str, Mechanism | None] = {
    "clean": None,
    "k-RR, 3": RandomizedResponse(alphabet=SCALE, epsilon=3.0),
    "k-RR, 1": RandomizedResponse(alphabet=SCALE, epsilon=1.0),
    "blocks {3,6}, 3": QuantizedResponse(alphabet=SCALE, epsilon=3.0, cuts=(3, 6)),
    "blocks {3,6}, 1": QuantizedResponse(alphabet=SCALE, epsilon=1.0, cuts=(3, 6)),
}
PRIORS = {"public": Gaussian(prior_mean=4.0, prior_deviation=2.0), "learned": Gaussian()}


def covered(size: tuple[int, int, float], name: str, prior: str, sigmas: str, seed: int) -> tuple[float, float, float]:
    """Return the mean absolute error of one crowd, and the shares of truths and of sigmas that intervals cover."""
    workers, tasks, sparsity = size
    drawn = tuple(np.exp(np.random.default_rng(seed).uniform(np.log(0.7), np.log(5.0), workers)).tolist())
    crowd = numeric_crowd(
        workers=workers,
        tasks=tasks,
        sparsity=sparsity,
        truth=lambda rng, count: rng.normal(4.0, 2.0, count),
        sigmas=SIGMAS[sigmas] or drawn,
        source=seeded(seed),
    )
    mechanism = MECHANISMS[name]
    reports = crowd.answers if mechanism is None else perturb(crowd.answers, mechanism, seeded(1000 + seed))
    found = PRIORS[prior].fit(reports, channel=None if mechanism is None else mechanism.channel())
    table = found.workers
    truths = (found.low <= crowd.truth) & (crowd.truth <= found.high)
    qualities = (table.sigma_low <= crowd.quality) & (crowd.quality <= table.sigma_high)
    known = ~np.isnan(found.truth)
    return float(np.abs(found.truth - crowd.truth)[known].mean()), float(truths[known].mean()), float(qualities.mean())


def main() -> None:
    """Read the arguments and print one line per crowd and channel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--sigmas", nargs="+", default=list(SIGMAS), choices=list(SIGMAS))
    parser.add_argument("--crowds", type=int, nargs="+", default=range(len(CROWDS)), help="which of the crowds")
    parser.add_argument("--channels", nargs="+", default=list(MECHANISMS), choices=list(MECHANISMS))
    given = parser.parse_args()
    print("| sigmas | workers | tasks | sparsity | channel, epsilon |", end=" ")
    print("error | truths | least | sigmas | error, learned | truths | least | sigmas |")
    for sigmas in given.sigmas:
        for size in (CROWDS[k] for k in given.crowds):
            for name in given.channels:
                row(sigmas, size, name, range(given.first, given.first + given.seeds))


def row(sigmas: str, size: tuple[int, int, float], name: str, seeds: range) -> None:
    """Print the means over seeds for both priors; `least` is the truths' coverage in the worst crowd."""
    figures: list[str] = []
    for prior in PRIORS:
        found = np.array([covered(size, name, prior, sigmas, seed) for seed in seeds])
        bars = found.std(axis=0, ddof=1) / math.sqrt(len(found)) if len(found) > 1 else np.full(3, math.nan)
        shown = [f"{mean:.3f} ± {bar:.3f}" for mean, bar in zip(found.mean(axis=0), bars, strict=True)]
        figures += [shown[0], shown[1], f"{found[:, 1].min():.3f}", shown[2]]
    print(
        f"| {sigmas} | {size[0]} | {size[1]} | {size[2]:g} | {name} |", *(f"{shown} |" for shown in figures), flush=True
    )


if __name__ == "__main__":
    main()
