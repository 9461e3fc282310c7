"""Error of `gaussian` on the crowd of Sun et al. through the designed channel, with the error of known workers.

2000 workers, 200 tasks, truth N(0, 1) clipped to [0, 9], answers rounded and clipped, half of the workers with sigma 1
and half with sigma 5; participation protected. `python -m experiments.utility.sun_crowd` prints means over five seeds.
"""

from itertools import product

import numpy as np

from crowdveil import Gaussian, QuantizedResponse, Scale
from crowdveil.channels.channel import Channel
from crowdveil.design.channel_design import design_channel
from crowdveil.estimators.gaussian.discretization import normal_answer_probabilities
from crowdveil.estimators.gaussian.estimator import fit_known
from crowdveil.mechanisms import DesignObjective
from crowdveil.randomness import seeded
from crowdveil.simulate import numeric_crowd, perturb_cells

SCALE, WORKERS, TASKS, SIGMAS = Scale(0, 9), 2000, 200, (1.0, 5.0)
COLUMNS = ("sparsity", "epsilon", "constant", "error", "known workers", "coverage", "coverage of sigma")
SCARCE = 150
"""Unchanged answers per task, expected through {0}, {1..9} and NULL, below which the designed channel is used."""


def channel_of(workers: int, sparsity: float, epsilon: float) -> Channel:
    """Return the channel chosen from public numbers: the designed one if information is scarce, else two cuts.

    Designed channels are best for one report; many reports through two cuts have more information than through one.
    """
    kept = workers * (1 - sparsity) * np.expm1(epsilon) / (np.exp(epsilon) + 2)
    if epsilon <= 1 or kept < SCARCE:
        return design_channel(objective(1 - sparsity), epsilon)
    return QuantizedResponse(alphabet=SCALE, epsilon=epsilon, cuts=(1, 2)).channel()


def objective(participation_rate: float) -> DesignObjective:
    """Return what is publicly known: truths N(0, 1), two kinds of workers, and how often they answer."""
    truths = np.arange(-4.0, 4.01, 0.25)
    prior = np.exp(-0.5 * truths**2)
    answers = normal_answer_probabilities(truths, np.array(SIGMAS), SCALE.values, 1.0)
    return DesignObjective(
        alphabet=SCALE, prior=prior / prior.sum(), worker_model=answers, participation_rate=participation_rate
    )


def figures(sparsity: float, epsilon: float, seed: int) -> tuple[float, ...]:
    """Return one seed's errors of constant, fit and known workers, and the coverages of truths and sigmas."""
    crowd = numeric_crowd(workers=WORKERS, tasks=TASKS, sparsity=sparsity, scale=SCALE, source=seeded(seed))
    channel, truth = channel_of(WORKERS, sparsity, epsilon), crowd.truth
    # Where NULL is merged with answers, how often workers answer cannot be learned: it is taken as public.
    rates = None if channel.null_output is not None else (1 - sparsity,)
    method = Gaussian(prior_mean=0.0, prior_deviation=1.0, participations=rates)
    reports = perturb_cells(crowd.answers, channel, seeded(1000 + seed))
    fitted = method.fit(reports, channel=channel)
    known = fit_known(method, reports, sigma=crowd.quality, participation=1 - sparsity, channel=channel)
    errors = [float(np.abs(truths - truth).mean()) for truths in (np.zeros_like(truth), fitted.truth, known.truth)]
    inside = (fitted.low <= truth) & (truth <= fitted.high)
    sigmas = (fitted.workers.sigma_low <= crowd.quality) & (crowd.quality <= fitted.workers.sigma_high)
    return *errors, float(inside.mean()), float(sigmas.mean())


if __name__ == "__main__":
    print("|", *(f"{name} |" for name in COLUMNS))
    for sparsity, epsilon in product((0.5, 0.9, 0.99), (0.5, 1.0, 2.0, 3.0, 5.0)):
        means = np.mean([figures(sparsity, epsilon, seed) for seed in range(5)], axis=0)
        print(f"| {sparsity:g} | {epsilon:g} |", *(f"{value:.3f} |" for value in means), flush=True)
