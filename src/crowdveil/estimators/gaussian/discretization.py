"""Gaussian error model on grids: truths, error classes (sigma, participation), and P(report | truth, class).

A worker of class c = (sigma, s) sends report y about a task of truth mu with probability
R_c[mu, y] = (1 - s) Q[NULL, y] + s sum_x C_sigma[mu, x] Q[x, y],
where Q is the channel and C_sigma the normal error with deviation sigma, rounded onto the grid of answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crowdveil.channels.alphabet import Alphabet, Scale
from crowdveil.em.deconvolution import AnswerFrequencies
from crowdveil.em.observation_model import ObservationModel

TINY = 1e-300
MAX_POINTS = 512
"""Upper bound of truths across the scale; finer scales get fewer truths per step."""
MAX_POINTS_PER_STEP = 8
"""Upper bound of truths per step of the answers."""
MARGIN_STEPS, MARGIN_SHARE = 3.0, 0.25
"""Margin of the truths beyond the scale: the larger of these steps and this share of the range."""
PRIOR_REACH = 4.0
"""Standard deviations of a public normal prior that the grid of truths covers."""
MEAN_DEVIATION_SHARE, PLACE_SHARE = 0.25, 0.1
"""Hyperprior of a learned prior's mean: normal at mid-scale with this share of the range as standard deviation, mixed
with this share of equal odds below, within and above the scale."""
UNIFORM_SHARE = 0.01
"""Weight of the uniform distribution in every learned prior."""
REFINEMENT = 8
"""Points per cell of a coarse grid after spline interpolation."""
SIGMA_RATIO = 2.0**0.5
MIN_SIGMA_STEPS = 2.0**-1.5
"""Smallest sigma, in steps of the answers; with less, nearly all answers round to the truth."""
PARTICIPATION_FACTORS = (1 / 8, 1 / 4, 1 / 2, 2**-0.5, 1.0, 2**0.5, 2.0, 4.0, 8.0)
"""Participation rates of classes, relative to the crowd's."""
PARTICIPATION_CANDIDATES = 2.0 ** -np.arange(0, 8.25, 0.25)
"""Rates of the crowd, from 1 to 1/256, that a fit averages over if the pooled reports do not determine the rate."""
NEIGHBOUR_SHARE = 0.02
"""Share of a sigma's weight that each smoothing step moves to each neighbour."""
MAX_PARTICIPATION = 1 - 1e-6
"""Upper bound of a class's participation: at 1, a single NULL report would exclude the class."""


@dataclass(frozen=True, eq=False)
class ErrorClasses:
    """Error classes of workers: all pairs of a sigma and a participation, sigma-major.

    Attributes:
        points: the grid of truths.
        sigmas, participations: ascending.
        model: P(symbol | answer).
        components: P(symbol | truth) without an answer, and with an answer of each sigma; indexed
            [symbol, 1 + sigma, truth].
        mixing: R_c[mu, y] = sum_k mixing[c, k] components[y, k, mu]; rows sum to 1.
        implicit_null: R_c[mu, NULL] of each implicit NULL, indexed [implicit NULL, class, truth].
    """

    points: NDArray[np.float64]
    sigmas: NDArray[np.float64]
    participations: NDArray[np.float64]
    model: ObservationModel
    components: NDArray[np.float64]
    mixing: NDArray[np.float64]
    implicit_null: NDArray[np.float64]

    def by_sigma_and_participation(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return responsibilities [worker, class] as [worker, sigma, participation]."""
        return q.reshape(-1, len(self.sigmas), len(self.participations))


def alphabet_step(alphabet: Alphabet) -> float:
    """Return the distance of neighbouring answers; ordered labels have positions 0, 1, 2, ..."""
    return alphabet.step if isinstance(alphabet, Scale) else 1.0


def truth_grid_with_margin(
    alphabet: Alphabet, reach: tuple[float, float] | None, most_per_step: int = MAX_POINTS_PER_STEP
) -> NDArray[np.float64]:
    """Return the grid of truths, ascending: the answers, points between them, and a margin beyond both ends.

    Args:
        alphabet: the answers.
        reach: interval that the grid must cover as well, or None.
        most_per_step: upper bound of points per step of the answers.
    """
    values, step = alphabet.values, alphabet_step(alphabet)
    per_step = max(1, min(most_per_step, MAX_POINTS // alphabet.size))
    margin = max(MARGIN_STEPS * step, MARGIN_SHARE * float(values[-1] - values[0]))
    first, last = float(values[0]) - margin, float(values[-1]) + margin
    if reach is not None:
        first, last = min(first, reach[0]), max(last, reach[1])
    below = int(np.ceil((values[0] - first) / step * per_step))
    above = int(np.ceil((last - values[0]) / step * per_step))
    return np.add(values[0], np.arange(-below, above + 1) * (step / per_step), dtype=np.float64)


def normal_answer_probabilities(
    points: NDArray[np.float64], sigmas: NDArray[np.float64], values: NDArray[np.float64], step: float
) -> NDArray[np.float64]:
    """Return P(answer | truth) of answers that are truth plus a normal error, rounded and clipped to the grid.

    C[mu, x] = Phi((x + step/2 - mu) / sigma) - Phi((x - step/2 - mu) / sigma); the ends of the grid include the tails.

    Args:
        points: truths mu.
        sigmas: standard deviations of the error, positive.
        values, step: the grid of answers, ascending.

    Returns:
        Indexed [sigma, truth, answer]; rows sum to 1.
    """
    edges = np.concatenate(([-np.inf], values[:-1] + step / 2, [np.inf]))
    z = (edges - points[:, None]) / sigmas[:, None, None]
    low, high = z[..., :-1], z[..., 1:]
    # Differences of small tails on either side, not of numbers close to 1.
    return np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def normal_log_prior(points: NDArray[np.float64], mean: float, deviation: float) -> NDArray[np.float64]:
    """Return the logarithm of a normal prior on the grid, shape (points,)."""
    scores = -0.5 * ((points - mean) / deviation) ** 2
    return np.asarray(scores - _log_sum_exp(scores))


def label_log_prior(points: NDArray[np.float64], alphabet: Alphabet, prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of a prior given by label, shape (points,).

    The probability of a label is spread evenly over the truths that round to it, at both ends up to one step beyond the
    scale. Points farther out get a negligible share.
    """
    values, step = alphabet.values, alphabet_step(alphabet)
    nearest = np.clip(np.rint((points - values[0]) / step), 0, alphabet.size - 1).astype(int)
    inside = (points > values[0] - 1.01 * step) & (points < values[-1] + 1.01 * step)
    weight = np.where(inside, 1.0, 1e-12)
    share = prior[nearest] * weight / np.bincount(nearest, weights=weight, minlength=alphabet.size)[nearest]
    return np.log(share / share.sum())


def candidate_normal_priors(points: NDArray[np.float64], alphabet: Alphabet) -> NDArray[np.float64]:
    """Return the candidate priors: normals of many means and deviations, mixed with a uniform share.

    Two parameters are learned instead of a histogram, since weakly informative reports determine no more.

    Returns:
        Probabilities, indexed [prior, truth]; rows sum to 1; the widest prior, at mid-scale, is last.
    """
    step, reach = alphabet_step(alphabet), float(alphabet.values[-1] - alphabet.values[0])
    every = -(-len(points) // 48)
    means = points[len(points) // 2 % every :: every]
    # From a quarter of a step to the range, in factors of at most 2.
    deviations = np.geomspace(step / 4, max(reach, step), int(np.ceil(np.log2(4 * max(reach / step, 1)))) + 1)
    deviation = np.append(np.repeat(deviations, len(means)), 2 * max(reach, step))
    mean = np.append(np.tile(means, len(deviations)), alphabet.values.mean())
    density = np.exp(-0.5 * ((points - mean[:, None]) / deviation[:, None]) ** 2)
    return (1 - UNIFORM_SHARE) * density / density.sum(axis=1, keepdims=True) + UNIFORM_SHARE / len(points)


def weights_of_candidate_priors(
    family: NDArray[np.float64], points: NDArray[np.float64], alphabet: Alphabet
) -> NDArray[np.float64]:
    """Return the hyperprior weights of candidate priors, shape (priors,), sum 1.

    Behind a channel, few reports do not separate truths near an end with large errors from truths in the middle with
    small ones; the normal part prefers the middle. The other part keeps means beyond the scale possible, since truths
    often accumulate at its ends.
    """
    ends, means = alphabet.values[[0, -1]], family @ points
    central = np.exp(-0.5 * ((means - ends.mean()) / (MEAN_DEVIATION_SHARE * (ends[1] - ends[0]))) ** 2)
    place = np.digitize(means, ends)
    balanced = 1 / np.bincount(place, minlength=3)[place]
    return (1 - PLACE_SHARE) * central / central.sum() + PLACE_SHARE * np.asarray(balanced / balanced.sum())


def point_masses(points: NDArray[np.float64], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return point masses at numbers, split linearly between the two neighbouring points; indexed [number, truth]."""
    at = np.clip((numbers - points[0]) / (points[1] - points[0]), 0, len(points) - 1)
    left = np.minimum(at.astype(int), len(points) - 2)
    masses = np.zeros((len(numbers), len(points)))
    rows = np.arange(len(numbers))
    masses[rows, left], masses[rows, left + 1] = left + 1 - at, at - left
    return masses


def quantiles(
    posterior: NDArray[np.float64], points: NDArray[np.float64], levels: Sequence[float]
) -> NDArray[np.float64]:
    """Return quantiles of distributions over points, with each point's mass uniform over its cell.

    Args:
        posterior: indexed [row, point]; rows sum to 1.
        points: ascending, shape (points,); cells end half way to the neighbours.
        levels: in (0, 1).

    Returns:
        Indexed [row, level].
    """
    middle = (points[:-1] + points[1:]) / 2
    edges = np.concatenate((2 * points[:1] - middle[:1], middle, 2 * points[-1:] - middle[-1:]))
    if len(points) == 1:
        edges = np.repeat(points, 2)
    summed = np.cumsum(posterior, axis=1)
    rows = np.arange(len(posterior))
    found = np.empty((len(posterior), len(levels)))
    for column, level in enumerate(levels):
        at = np.minimum((summed < level).sum(axis=1), len(points) - 1)
        mass = posterior[rows, at]
        inside = (level - (summed[rows, at] - mass)) / np.maximum(mass, np.finfo(float).tiny)
        found[:, column] = edges[at] + (edges[at + 1] - edges[at]) * np.clip(inside, 0.0, 1.0)
    return found


def probabilities_refined_by_splines(
    logs: NDArray[np.float64], points: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return distributions on a finer grid, by natural cubic splines through log-probabilities, and that grid.

    Args:
        logs: logarithms of unnormalized probabilities, indexed [row, point].
        points: evenly spaced, ascending, two or more, shape (points,).

    Returns:
        Probabilities of `REFINEMENT` points per cell, rows sum to 1; the points.
    """
    # The import is slow, and only fits of numbers need it.
    from scipy.interpolate import CubicSpline

    places = (np.arange(len(points) * REFINEMENT) + 0.5) / REFINEMENT - 0.5
    inside = np.clip(places, 0, len(points) - 1)
    fine = logs @ CubicSpline(np.arange(len(points)), np.eye(len(points)), bc_type="natural")(inside).T
    dense = np.exp(fine - fine.max(axis=1, keepdims=True))
    return dense / dense.sum(axis=1, keepdims=True), np.add(points[0], places * (points[1] - points[0]))


def _log_sum_exp(scores: NDArray[np.float64]) -> float:
    top = scores.max()
    return float(top + np.log(np.exp(scores - top).sum()))


def geometric_sigma_grid(alphabet: Alphabet) -> NDArray[np.float64]:
    """Return standard deviations from a third of a step to the range, in factors of sqrt(2)."""
    step = alphabet_step(alphabet)
    widest = max(float(np.ptp(alphabet.values)), 2 * step)
    count = int(np.ceil(np.log(widest / (MIN_SIGMA_STEPS * step)) / np.log(SIGMA_RATIO)))
    return np.multiply(MIN_SIGMA_STEPS * step, SIGMA_RATIO ** np.arange(count), dtype=np.float64)


def neighbour_smoothing_matrix(sigmas: int) -> NDArray[np.float64]:
    """Return the smoothing matrix of the EMS algorithm (Silverman et al. 1990) for shares of sigmas; rows sum to 1.

    The maximum-likelihood mixture has few atoms however weak the data, which makes intervals of sigma too short;
    smoothing after every M-step spreads it.
    """
    moved = np.eye(sigmas, k=1) + np.eye(sigmas, k=-1)
    return np.asarray(np.eye(sigmas) + NEIGHBOUR_SHARE * (moved - np.diag(moved.sum(axis=1))))


def initial_participation_shares(rates: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
    """Return initial shares of participation classes, log-normal around the crowd's rate `mean`; sum 1."""
    weight = np.exp(-2.0 * np.log(rates / mean) ** 2) + 1e-3
    return np.asarray(weight / weight.sum())


def crossed_error_classes(
    points: NDArray[np.float64],
    alphabet: Alphabet,
    model: ObservationModel,
    sigmas: NDArray[np.float64],
    rates: NDArray[np.float64],
) -> ErrorClasses:
    """Return the error classes of all pairs of a sigma and a participation rate."""
    answered = normal_answer_probabilities(points, sigmas, alphabet.values, alphabet_step(alphabet))
    answered = answered @ model.full_table[: alphabet.size]
    # With public participation every listed report is an answer; the last row of the table is then a label's.
    rates = rates if model.protected else np.ones_like(rates)
    unanswered = np.broadcast_to(model.full_table[-1], (1, *answered.shape[1:]))
    components = np.concatenate((unanswered, answered)).transpose(2, 0, 1)
    shares = np.kron(np.eye(len(sigmas)), rates[:, None])
    mixing = np.column_stack((np.tile(1 - rates, len(sigmas)), shares))
    listed = np.ascontiguousarray(components[: model.listed_symbol_count])
    return ErrorClasses(points, sigmas, rates, model, listed, mixing, mixing @ components[model.listed_symbol_count :])


def participation_grid(pool: AnswerFrequencies, given: tuple[float, ...] | None) -> NDArray[np.float64]:
    """Return the participation rates of classes, ascending; only 1 if participation is public."""
    if not pool.protected:
        return np.ones(1)
    rates = pool.participation * np.array(PARTICIPATION_FACTORS) if given is None else np.array(given)
    return np.unique(np.minimum(rates, MAX_PARTICIPATION))
