"""Bounds of the papers, as printed and as derived here.

Sun: Sun, Dong, Wang, Yu, Qin, Big Data 2018. Li: Li et al., KDD 2018. Wang: Wang and Xu, private Dawid-Skene.
Huai: Huai et al., IJCAI 2019. A function computes what is printed unless its first line says otherwise; whether that
holds, with proofs and counterexamples, is in `docs/explanation/verdicts.md`.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.stats import binom

from crowdveil.errors import SettingsError
from crowdveil.mechanisms.randomized_response import epsilon_for_flip
from crowdveil.mechanisms.two_layer import SharedFlipDistribution


def laplace_exact_epsilon(claimed: float, *, value_range: float, domain_size: float) -> float:
    """Exact epsilon of Laplace noise of scale |Gamma| / claimed, in nats per cell (Sun, equation 7 and Theorem 1).

    A cell moves by at most `value_range` = max - min, so the loss is value_range / scale.
    """
    return claimed * value_range / domain_size


def laplace_cell_error(
    sigma: ArrayLike, participation: ArrayLike, deviation: ArrayLike, *, noise_scale: float
) -> NDArray[np.float64]:
    """The cell error e_ij of Sun, Theorem 2, for workers with fixed weights.

    Args:
        sigma: standard deviation of each worker's answers, shape (workers,).
        participation: share of tasks each worker answers, shape (workers,).
        deviation: |truth - expectation of what replaces NULL|, shape (tasks,).
        noise_scale: |Gamma| / epsilon, the scale of the Laplace noise.

    Returns:
        Indexed [worker, task], in units of the answers.
    """
    share = np.atleast_1d(np.asarray(participation, dtype=float))[:, None]
    spread = np.atleast_1d(np.asarray(sigma, dtype=float))[:, None] * math.sqrt(2 / math.pi)
    off = np.atleast_1d(np.asarray(deviation, dtype=float))[None, :]
    return (1 - share) * (off + noise_scale) + share * (spread + noise_scale)


def randomized_response_cell_error(
    truth: float, answer_probabilities: ArrayLike, *, values: ArrayLike, epsilon: float, participation: float
) -> float:
    """The cell error e_ij of Sun, Theorem 3: NULL reports count as the number 0 in it.

    Args:
        truth: the task's true number.
        answer_probabilities: N(x; truth, sigma) for every x of `values`, normalised or not: the paper does not say.
        values: the answers Gamma, shape (labels,).
        epsilon: of equation 8, in nats.
        participation: share of tasks the worker answers.
    """
    x, weights = np.asarray(values, dtype=float), np.asarray(answer_probabilities, dtype=float)
    flip = 1 / (len(x) + math.exp(epsilon))
    expected = flip * x.sum() + (math.exp(epsilon) - 1) * flip * x
    null = abs(truth - flip * float(x.sum()))
    return (1 - participation) * null + participation * float(weights @ np.abs(truth - expected))


def randomized_response_mean_limit(
    answer_probabilities: ArrayLike, *, values: ArrayLike, epsilon: float, participation: float
) -> float:
    """Where Sun's Algorithm 1 with equal weights really tends to: the mean of the non-NULL reports (derived here).

    Arguments as in `randomized_response_cell_error`; `answer_probabilities` must sum to 1.
    """
    x, weights = np.asarray(values, dtype=float), np.asarray(answer_probabilities, dtype=float)
    flip = 1 / (len(x) + math.exp(epsilon))
    kept = (math.exp(epsilon) - 1) * flip
    total = flip * float(x.sum()) + participation * kept * float(weights @ x)
    return total / (flip * len(x) + participation * kept)


def mean_error_bound(cell_errors: ArrayLike, quality: ArrayLike) -> float:
    """Average cell errors [worker, task] over tasks, weighted by worker quality (Sun, Theorems 2 and 3)."""
    weights = np.asarray(quality, dtype=float)
    return float((weights / weights.sum()) @ np.asarray(cell_errors, dtype=float).mean(axis=1))


def published_factorization_delta(epsilon: float) -> float:
    """Smallest delta of the published factorization at its claimed epsilon, in a two-task example (derived here).

    One dimension, both task profiles 1: a worker who answers only task 2 with 0 sends u = -noise; one who answers both
    with 0 sends u = -noise / 2. The densities' ratio exp(|u| / B) / 2 is unbounded; the excess over exp(epsilon) is
    exp(-epsilon) / 4. Refutes Sun, Theorem 4.
    """
    return math.exp(-epsilon) / 4


def factorization_error_bound(
    *, largest_quality: float, workers: int, dimensions: int, noise_scale: float, tasks: int
) -> float:
    """Mean absolute error that Sun, Theorem 5 claims for matrix factorization; `noise_scale` is |Gamma| / epsilon."""
    return largest_quality * workers * (math.sqrt(2 / math.pi) + dimensions * noise_scale / tasks)


def row_space_error_floor(profiles: NDArray[np.float64], truths: NDArray[np.float64]) -> float:
    """Mean absolute error below which no estimate of the form u V can fall, whatever the noise (derived here).

    Let r be the part of the truths orthogonal to the rows of V. For every u: <r, truths - u V> = |r|^2, hence
    sum |truths - u V| >= |r|^2 / max |r|.

    Args:
        profiles: V, shape (dimensions, tasks).
        truths: shape (tasks,).
    """
    basis, _ = np.linalg.qr(profiles.T)
    rest = truths - basis @ (basis.T @ truths)
    return float(rest @ rest / (np.abs(rest).max() * len(truths)))


def row_space_least_error(profiles: NDArray[np.float64], truths: NDArray[np.float64]) -> float:
    """Least mean absolute error of any estimate of the form u V, by the dual linear program (derived here).

    It is the largest <truths, y> / n over all y in [-1, 1]^n with V y = 0; see `row_space_error_floor` for a lower
    bound in closed form.

    Args:
        profiles: V, shape (dimensions, tasks).
        truths: shape (tasks,).
    """
    found = linprog(-truths, A_eq=profiles, b_eq=np.zeros(len(profiles)), bounds=(-1, 1), method="highs")
    return float(-found.fun / len(truths))


def one_layer_epsilon(flip_probability: float, *, labels: int) -> float:
    """Epsilon of one answer that is replaced with `flip_probability` by another label, in nats (Li, Theorem 6.2).

    The absolute value is ours: above (labels - 1) / labels the printed logarithm is negative.
    """
    if not 0 < flip_probability < 1:
        raise SettingsError("flip_probability must be in (0, 1)", value=flip_probability)
    return epsilon_for_flip(flip_probability, labels)


def two_layer_claimed_epsilon(low: float, high: float, *, labels: int) -> float:
    """Epsilon that Li, Theorem 6.3 gives two-layer with U(low, high); it is right for one answer per worker only."""
    return one_layer_epsilon(equal_flip_probability(low, high), labels=labels)


def two_layer_exact_epsilon(low: float, high: float, *, labels: int, answers: int) -> float:
    """Exact epsilon per cell of two-layer when one flip probability serves `answers` answers (derived here)."""
    return SharedFlipDistribution(low=low, high=high, symbols=labels, cells=answers).cell_loss()


def beta_flip_epsilon(shape: float, *, answers: int) -> float:
    """Exact epsilon per cell of two labels if the shared flip probability follows Beta(shape, shape) (derived here).

    The mean is 1/2, so the claim is 0; shape 1 is U(0, 1). The probability of h differing cells among k is
    B(shape + h, shape + k - h) / B(shape, shape), and the largest ratio of neighbours is (shape + k - 1) / shape.
    """
    return math.log((shape + answers - 1) / shape)


def equal_flip_probability(low: float, high: float) -> float:
    """Flip probability of the one-layer mechanism that equals two-layer on ONE answer (Li, Theorem 6.4)."""
    return (low + high) / 2


def weighted_vote_error_printed(correct: ArrayLike) -> float:
    """Bound on the error of log-odds weighted voting as printed (Li, equation 7); false, see the verdict.

    Args:
        correct: probability of a correct binary answer of each worker, shape (workers,), in (0, 1).
    """
    p = np.asarray(correct, dtype=float)
    return float(np.prod((p / math.e + (1 - p) * math.e) ** np.log(p / (1 - p))))


def weighted_vote_error_bound(correct: ArrayLike) -> float:
    """Bound on the error of log-odds weighted voting that does hold (derived here): the product of 2 sqrt(p (1 - p)).

    Chernoff with half the log-odds: E exp(-(t x) ln(p / (1 - p)) / 2) = 2 sqrt(p (1 - p)) for each worker.
    """
    p = np.asarray(correct, dtype=float)
    return float(np.prod(2 * np.sqrt(p * (1 - p))))


def smaller_change_probability(users: int) -> float:
    """Probability that the product of `users` flip probabilities ~ U(0, b) is below (b / 2)^users (derived here).

    This is how often the error rate change of Li, section 6.2 is smaller under two-layer than under one-layer. Minus
    the logarithms of uniform numbers add up to a Gamma(users, 1) number, which must exceed users ln 2.
    """
    x = users * math.log(2)
    return math.exp(-x) * sum(x**j / math.factorial(j) for j in range(users))


def private_effective_ability(abilities: ArrayLike, epsilon: float) -> NDArray[np.float64]:
    """Effective ability after binary randomized response, shape (workers,) (Wang, equations 12 and 13)."""
    ability = np.asarray(abilities, dtype=float)
    return math.tanh(epsilon / 2) * np.maximum(ability, 1 - ability) + (1 - math.tanh(epsilon / 2)) / 2


def private_wisdom(abilities: ArrayLike, epsilon: float) -> float:
    """Collective private wisdom, in [0, 1] (Wang, equation 14)."""
    return float(np.mean((2 * private_effective_ability(abilities, epsilon) - 1) ** 2))


def projection_range(tasks: int, wisdom: float) -> tuple[float, float] | None:
    """Interval of lambda that Wang, equation 16 asks for; None where it is empty."""
    rate = math.sqrt(math.log(tasks) / tasks)
    low, high = 16 / wisdom * rate, 1 / 8 - rate / 2
    return (low, high) if low <= high else None


def smallest_tasks(wisdom: float) -> int:
    """Smallest number of tasks, at least 3, with a non-empty `projection_range`; larger ones have it too (derived)."""
    low, high = 3, 4
    while projection_range(high, wisdom) is None:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if projection_range(middle, wisdom) is None else (low, middle)
    return low


def smallest_workers(tasks: int, wisdom: float) -> int | None:
    """Workers that the step from equation 30 to 31 of Wang, Theorem 2 needs and its statement omits (derived here).

    4 ln(1 / lambda) sqrt(n ln m) <= n wisdom / 4 at the largest admissible lambda; None where no lambda is admissible.
    """
    admissible = projection_range(tasks, wisdom)
    if admissible is None:
        return None
    return math.ceil(math.log(tasks) * (16 * math.log(1 / admissible[1]) / wisdom) ** 2)


def truth_error_bound(workers: int, wisdom: float) -> float:
    """Share of wrong truths that Wang, Theorem 2 allows private Dawid-Skene (equation 17)."""
    return 2 * math.exp(-workers * wisdom / 2)


def refuting_workers(tasks: int, wisdom: float) -> int:
    """Smallest odd number of workers for which Wang, equation 17 allows no wrong truth at all (derived here)."""
    workers = math.floor(2 * math.log(2 * tasks) / wisdom) + 1
    return workers + 1 - workers % 2


def failure_probability(workers: int, tasks: int, wisdom: float, *, spammers: int = 0) -> float:
    """Probability, at least, that Wang's Algorithm 1 errs on some task after one step from the truths (derived here).

    Outside an event of probability 2 n / m^2 the share of right reports of every worker is within sqrt(ln m / m) of its
    expectation. If their log-odds then satisfy (k - 1) high + 2 spammers spam < (k + 1) low, a task on which most of
    the k `workers` report wrongly is wrong. 0 if (16) is empty or the log-odds can differ more.

    Args:
        workers: k, odd, who report right with probability (1 + sqrt(wisdom)) / 2.
        tasks: m.
        wisdom: of these workers; that of the crowd is smaller by k / n.
        spammers: n - k further workers, whose reports are right with probability 1/2.
    """
    crowd = workers + spammers
    admissible = projection_range(tasks, wisdom * workers / crowd)
    if admissible is None:
        return 0.0
    rate, right = math.sqrt(math.log(tasks) / tasks), (1 + math.sqrt(wisdom)) / 2
    shares = np.clip((right - rate, right + rate, 0.5 + rate), admissible[1], 1 - admissible[1])
    low, high, spam = np.log(shares / (1 - shares))
    if (workers - 1) * high + 2 * spammers * spam >= (workers + 1) * low:
        return 0.0
    wrong = float(binom.cdf(workers // 2, workers, right))
    return max(0.0, -math.expm1(tasks * math.log1p(-wrong)) - 2 * crowd / tasks**2)


def ability_error_bound(tasks: int, epsilon: float) -> float:
    """Largest error of an ability after unbiasing, for epsilon in (0, 1] (Wang, Theorem 3, equation 32).

    Raises:
        SettingsError: epsilon outside (0, 1].
    """
    if not 0 < epsilon <= 1:
        raise SettingsError("Theorem 3 speaks of epsilon in (0, 1]", value=epsilon)
    return 6 * math.sqrt(math.log(tasks) / tasks) / epsilon


def density_distance_bound(
    *, bandwidth: float, samples: float, top: float, squared_norm: float, support: float
) -> float:
    """Expected squared distance of a density and that of samples from it, as Huai, Theorem 1 claims in one dimension.

    `top` is A, the density's supremum, `squared_norm` is B, the integral of the squared kernel, `support` is V.
    """
    first = 4 * top * bandwidth + (top * bandwidth) ** 2 * support
    return first + squared_norm / (samples * bandwidth) + top * squared_norm * support / samples
