"""Lower bound on the error of any channel and any inference on the crowd of Sun et al., by rate-distortion theory.

The information of the reports on a task is at most their number times that of the most informative channel
(`design_channel`), even if every worker is known. The mean error is at least the distortion-rate function of the truths
at that information (Shannon). The bound holds for one round, non-adaptive channels, and truths N(0, 1), for which the
constant 0 has error 0.399. The expected error with known workers is printed for several channels, by Monte Carlo. Run
`python experiments/utility/error_lower_bound.py [--tasks N]`.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sun_crowd import SCALE, SIGMAS, TARGETS, WORKERS, channel_of, objective

from crowdveil.channel_design import design_channel, normal_worker_model
from crowdveil.channels.channel import Channel
from crowdveil.estimators.gaussian.discretization import quantiles
from crowdveil.randomness import seeded

SLOPES, ROUNDS = np.geomspace(0.5, 40.0, 40), 2000
TRUTHS = np.arange(-4.0, 4.01, 0.125)


def distortion_rate(step: float = 0.05) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nats, ascending, and the distortion-rate function of N(0, 1) clipped at 0 (Blahut, Arimoto)."""
    values = np.arange(0.0, 4.001, step)
    prior = np.diff(ndtr((values[:-1] + values[1:]) / 2), prepend=0.0, append=1.0)
    distance = np.abs(values[:, None] - values)
    found = [(0.0, float(prior @ values))]
    for slope in SLOPES:
        likely, output = np.exp(-slope * distance), np.full(len(values), 1 / len(values))
        for _ in range(ROUNDS):
            output = output * ((prior / (likely @ output)) @ likely)
        chosen = likely * output
        chosen = chosen / chosen.sum(axis=1, keepdims=True)
        nats = prior @ (chosen * np.log(np.maximum(chosen, 1e-300) / np.maximum(output, 1e-300))).sum(axis=1)
        found.append((float(nats), float(prior @ (chosen * distance).sum(axis=1))))
    nats, errors = np.array(sorted(found)).T
    return nats, errors


def known_workers_error(channel: Channel, rate: float, tasks: int, seed: int = 100) -> tuple[float, float]:
    """Return the expected error of the posterior median with known workers, and its standard error."""
    rng = seeded(seed).generator
    truth = rng.standard_normal(tasks)
    scores = np.zeros((tasks, len(TRUTHS)))
    seen, expected = _reports(channel, rate, truth), _reports(channel, rate, TRUTHS)
    for kind in range(len(SIGMAS)):
        counts = rng.multinomial(WORKERS // len(SIGMAS), seen[kind])
        scores += counts @ np.log(expected[kind]).T
    weight = np.exp(scores - scores.max(axis=1, keepdims=True) - 0.5 * TRUTHS**2)
    median = quantiles(weight / weight.sum(axis=1, keepdims=True), TRUTHS, (0.5,))[:, 0]
    error = np.abs(np.maximum(median, 0) - np.maximum(truth, 0))
    return float(error.mean()), float(error.std() / np.sqrt(tasks))


def _reports(channel: Channel, rate: float, truths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(report | truth), indexed [class, truth, report]."""
    answers = normal_worker_model(SCALE, SIGMAS, truths)
    inputs = np.concatenate((rate * answers, np.full((*answers.shape[:2], 1), 1 - rate)), axis=2)
    table = inputs @ channel.probabilities
    return np.asarray(table / table.sum(axis=2, keepdims=True))


def row(sparsity: float, epsilon: float, bound: tuple[NDArray[np.float64], NDArray[np.float64]], tasks: int) -> str:
    """Return one line of the table."""
    target = objective(1 - sparsity)
    best = design_channel(target, epsilon)
    nats = WORKERS * target.score(best.probabilities)
    least = f"{np.interp(nats, *bound):.3f}" if nats < 1 else "–"
    names: Sequence[str] = ("blocks{1}", "blocks{1,2}", "k-RR")
    channels = [best, *(channel_of(name, sparsity, epsilon) for name in names)]
    errors = [known_workers_error(one, 1 - sparsity, tasks) for one in channels if isinstance(one, Channel)]
    figures = " | ".join(f"{mean:.3f} ± {chance:.3f}" for mean, chance in errors)
    what = ", ".join(best.outputs)
    return f"| {sparsity:g} | {epsilon:g} | {TARGETS[sparsity][epsilon]} | {nats:.3f} | {least} | {what} | {figures} |"


def main() -> None:
    """Read the arguments and print one line per sparsity and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=20000)
    tasks, bound = parser.parse_args().tasks, distortion_rate()
    print("| sparsity | epsilon | target | nats per task | least error | best channel | its known workers |", end=" ")
    print("blocks{1} | blocks{1,2} | k-RR |")
    for sparsity, targets in TARGETS.items():
        for epsilon in targets:
            print(row(sparsity, epsilon, bound, tasks), flush=True)


if __name__ == "__main__":
    main()
