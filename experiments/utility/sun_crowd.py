"""How much truth epsilon buys on Sun et al.'s crowd: error of `Gaussian` through two channels, beside its oracle.

2000 workers, 200 tasks, truth N(0, 1) clipped to [0, 9], answers rounded and clipped, half of the workers with sigma 1
and half with sigma 5; participation protected. Run `python experiments/utility/sun_crowd.py [--quick]`.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from crowdveil import Gaussian, QuantizedResponse, RandomizedResponse, Scale
from crowdveil.mechanisms import Mechanism
from crowdveil.randomness import seeded
from crowdveil.simulate import numeric_crowd, perturb

PROCESSES = 2
SCALE = Scale(0, 9)
SPARSITIES, EPSILONS = (0.5, 0.9, 0.99), (0.5, 1.0, 2.0, 3.0, 5.0)
TARGETS = {
    0.5: (0.17, 0.095, 0.052, 0.042, 0.038),
    0.9: (0.32, 0.27, 0.155, 0.095, 0.062),
    0.99: (0.36, 0.36, 0.35, 0.32, 0.24),
}


class Cell(NamedTuple):
    """Means over seeds: of the constant 0, the fit, the fit without a public prior, the oracle, and of correlation."""

    constant: float
    error: float
    learned: float
    oracle: float
    correlation: float
    coverage: float
    oracle_coverage: float


def measure(sparsity: float, mechanism: Mechanism, seed: int) -> Cell:
    """Return one seed's errors against the clipped truth."""
    crowd = numeric_crowd(workers=2000, tasks=200, sparsity=sparsity, scale=SCALE, source=seeded(seed))
    channel = mechanism.channel()
    reports = perturb(crowd.answers, mechanism, seeded(1000 + seed))
    gaussian = Gaussian(prior_mean=0.0, prior_deviation=1.0)
    fitted = gaussian.fit(reports, channel=channel)
    learned = Gaussian().fit(reports, channel=channel)
    oracle = gaussian.fit_known(reports, sigma=crowd.quality, participation=1 - sparsity, channel=channel)
    truth = crowd.truth
    errors = [float(np.abs(found - truth).mean()) for found in (np.zeros_like(truth), fitted.truth)]
    unknown = np.where(np.isnan(learned.truth), np.nanmedian(learned.truth), learned.truth)
    spread = float(fitted.truth.std())
    covered = [float(np.mean((e.low <= truth) & (truth <= e.high))) for e in (fitted, oracle) if e.low is not None]
    return Cell(
        constant=errors[0],
        error=errors[1],
        learned=float(np.abs(unknown - truth).mean()),
        oracle=float(np.abs(oracle.truth - truth).mean()),
        correlation=float(np.corrcoef(fitted.truth, truth)[0, 1]) if spread > 0 else 0.0,
        coverage=covered[0],
        oracle_coverage=covered[1],
    )


def main() -> None:
    """Read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, and epsilon 1 and 3 only")
    quick = parser.parse_args().quick
    with ProcessPoolExecutor(PROCESSES) as pool:
        table(pool, quick)


def table(pool: ProcessPoolExecutor, quick: bool) -> None:
    """Print one line per sparsity, epsilon and channel."""
    print(
        "sparsity epsilon channel exact constant error target learned oracle ratio correlation coverage best-coverage"
    )
    for sparsity in SPARSITIES:
        for epsilon, target in zip(EPSILONS, TARGETS[sparsity], strict=True):
            if quick and epsilon not in (1.0, 3.0):
                continue
            cuts = {"blocks{1}": (1,), "blocks{1,2}": (1, 2)}
            mechanisms: dict[str, Mechanism] = {"k-RR": RandomizedResponse(alphabet=SCALE, epsilon=epsilon)}
            mechanisms |= {
                name: QuantizedResponse(alphabet=SCALE, epsilon=epsilon, cuts=cut) for name, cut in cuts.items()
            }
            for name, mechanism in mechanisms.items():
                one = partial(measure, sparsity, mechanism)
                mean = Cell(*np.mean(list(pool.map(one, range(1 if quick else 5))), axis=0))
                exact = mechanism.guarantee.epsilon
                print(
                    f"{sparsity:<5g} {epsilon:<4g} {name:<13} {exact:.6f} {mean.constant:.3f} {mean.error:.4f} "
                    f"{target:<6g} {mean.learned:.4f} {mean.oracle:.4f} {mean.error / mean.oracle:.2f} "
                    f"{mean.correlation:.3f} {mean.coverage:.3f} {mean.oracle_coverage:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
