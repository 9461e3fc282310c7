"""Error of `gaussian` on the crowd of Sun et al. by channel and epsilon, with the error of known workers.

2000 workers, 200 tasks, truth N(0, 1) clipped to [0, 9], answers rounded and clipped, half of the workers with sigma 1
and half with sigma 5; participation protected. Run
`python experiments/utility/sun_crowd.py [--seeds N] [--channels C] [--sparsity S] [--epsilon E]`.
"""

import argparse
import math
from typing import NamedTuple

import numpy as np

from crowdveil import Gaussian, QuantizedResponse, RandomizedResponse, Scale
from crowdveil.channel_design import design_channel
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.rounding import format_bound
from crowdveil.estimators.gaussian.discretization import answer_table
from crowdveil.mechanisms import DesignObjective
from crowdveil.randomness import seeded
from crowdveil.simulate import numeric_crowd, perturb_cells

SCALE, WORKERS, TASKS, SIGMAS = Scale(0, 9), 2000, 200, (1.0, 5.0)
CHANNELS = ("rule", "k-RR", "blocks{1}", "blocks{1,2}", "dealt", "designed")
TARGETS = {
    0.5: {0.5: 0.17, 1.0: 0.095, 2.0: 0.052, 3.0: 0.042, 5.0: 0.038},
    0.9: {0.5: 0.32, 1.0: 0.27, 2.0: 0.155, 3.0: 0.095, 5.0: 0.062},
    0.99: {0.5: 0.36, 1.0: 0.36, 2.0: 0.35, 3.0: 0.32, 5.0: 0.24},
}


class Errors(NamedTuple):
    """Mean absolute errors, correlation and coverages of one seed, against the clipped truth."""

    constant: float
    error: float
    oracle: float
    learned: float
    correlation: float
    coverage: float
    sigma_coverage: float


def rule(sparsity: float, epsilon: float) -> str:
    """Return the name of the channel chosen from public numbers: the designed one if information is scarce.

    Scarce: epsilon up to 1, or fewer than 150 unchanged answers per task expected through {0}, {1..9} and NULL.
    Designed channels are best for one report; many reports through two cuts have more information than through one.
    """
    kept = WORKERS * (1 - sparsity) * math.expm1(epsilon) / (math.exp(epsilon) + 2)
    return "designed" if epsilon <= 1 or kept < 150 else "blocks{1,2}"


def cut(epsilon: float, *cuts: int) -> Channel:
    """Return quantized response with these cuts."""
    return QuantizedResponse(alphabet=SCALE, epsilon=epsilon, cuts=cuts).channel()


def channel_of(name: str, sparsity: float, epsilon: float) -> Channel | ChannelTable:
    """Return a channel by name; `dealt` cuts at 1 for half of the workers, else at 1 and 2."""
    if name == "rule":
        return channel_of(rule(sparsity, epsilon), sparsity, epsilon)
    if name == "k-RR":
        return RandomizedResponse(alphabet=SCALE, epsilon=epsilon).channel()
    if name == "dealt":
        workers = {str(worker): worker % 2 for worker in range(1, WORKERS + 1)}
        return ChannelTable.by_worker([cut(epsilon, 1), cut(epsilon, 1, 2)], workers)
    if name == "designed":
        return design_channel(objective(1 - sparsity), epsilon)
    return cut(epsilon, *((1,) if name == "blocks{1}" else (1, 2)))


def objective(participation_rate: float) -> DesignObjective:
    """Return what is publicly known: truths N(0, 1), two kinds of workers, and how often they answer."""
    truths = np.arange(-4.0, 4.01, 0.25)
    prior = np.exp(-0.5 * truths**2)
    answers = answer_table(truths, np.array(SIGMAS), SCALE.values, 1.0)
    return DesignObjective(
        alphabet=SCALE, prior=prior / prior.sum(), worker_model=answers, participation_rate=participation_rate
    )


def measure(name: str, sparsity: float, epsilon: float, seed: int) -> Errors:
    """Return one seed's figures."""
    crowd = numeric_crowd(workers=WORKERS, tasks=TASKS, sparsity=sparsity, scale=SCALE, source=seeded(seed))
    channel, truth = channel_of(name, sparsity, epsilon), crowd.truth
    apart = isinstance(channel, ChannelTable) or channel.null_output is not None
    # Where NULL is merged with answers, how often workers answer cannot be learned: it is taken as public.
    settings = None if apart else (1 - sparsity,)
    public = Gaussian(prior_mean=0.0, prior_deviation=1.0, participations=settings)
    unaided = Gaussian(participations=settings)
    reports = perturb_cells(crowd.answers, channel, seeded(1000 + seed))
    fitted = public.fit(reports, channel=channel)
    learned = unaided.fit(reports, channel=channel).truth
    oracle = public.fit_known(reports, sigma=crowd.quality, participation=1 - sparsity, channel=channel)
    workers = fitted.workers
    unknown = np.where(np.isnan(learned), np.nanmedian(learned), learned)
    found = (np.zeros_like(truth), fitted.truth, oracle.truth, unknown)
    errors = [float(np.abs(one - truth).mean()) for one in found]
    return Errors(
        *errors,
        correlation=float(np.corrcoef(fitted.truth, truth)[0, 1]) if fitted.truth.std() > 0 else 0.0,
        coverage=float(np.mean((fitted.low <= truth) & (truth <= fitted.high))),
        sigma_coverage=float(np.mean((workers.sigma_low <= crowd.quality) & (crowd.quality <= workers.sigma_high))),
    )


def main() -> None:
    """Read the arguments and print one line per sparsity, epsilon and channel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--channels", nargs="+", default=list(CHANNELS), choices=CHANNELS)
    parser.add_argument("--sparsity", nargs="+", type=float, default=list(TARGETS))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.5, 1.0, 2.0, 3.0, 5.0])
    given = parser.parse_args()
    print(
        "| sparsity | epsilon | channel | exact | constant | error | target | of constant | oracle | ratio |", end=" "
    )
    print("correlation | coverage | of sigma | learned prior |")
    for sparsity in given.sparsity:
        for epsilon in given.epsilon:
            for name in given.channels:
                row(name, sparsity, epsilon, given.seeds)


def row(name: str, sparsity: float, epsilon: float, seeds: int) -> None:
    """Print the means over seeds."""
    mean = Errors(*np.mean([measure(name, sparsity, epsilon, seed) for seed in range(seeds)], axis=0))
    channel = channel_of(name, sparsity, epsilon)
    exact = channel.guarantee.epsilon if isinstance(channel, ChannelTable) else channel.epsilon
    label = f"rule: {rule(sparsity, epsilon)}" if name == "rule" else name
    figures = (mean.constant, mean.error, TARGETS[sparsity][epsilon], mean.error / mean.constant, mean.oracle)
    more = (mean.correlation, mean.coverage, mean.sigma_coverage, mean.learned)
    print(
        f"| {sparsity:g} | {epsilon:g} | {label} | {format_bound(exact)} |", *(f"{x:.3f} |" for x in figures), end=" "
    )
    print(f"{mean.error / mean.oracle:.2f} |", *(f"{x:.3f} |" for x in more), flush=True)


if __name__ == "__main__":
    main()
