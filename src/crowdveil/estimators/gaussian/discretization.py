"""Numbers on grids: normal errors rounded onto the grid of answers, priors over a finer grid of truths, quantiles."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crowdveil.channels.alphabet import Alphabet, Scale

POINTS = 512
"""Points of truth across the scale, at most: finer grids of answers get fewer points per step."""
PER_STEP = 8
"""Points of truth per step of the answers, at most."""
MARGIN_STEPS, MARGIN_SHARE = 3.0, 0.25
"""How far truths may lie beyond the scale: steps, or a share of the range where that is more."""
PRIOR_REACH = 4.0
"""Deviations of a public normal prior that the grid of truths covers."""
STRAY = 0.01
"""Share of tasks that a learned prior leaves to chance: truths spread evenly over the grid."""

FINER = 8
"""Points for each of a coarse grid where its laws are smooth."""


def step_of(alphabet: Alphabet) -> float:
    """Return the distance of two neighbouring answers; ordered labels stand at 0, 1, 2, ..."""
    return alphabet.step if isinstance(alphabet, Scale) else 1.0


def truth_points(
    alphabet: Alphabet, reach: tuple[float, float] | None, most_per_step: int = PER_STEP
) -> NDArray[np.float64]:
    """Return the grid of truths, ascending: the answers, points between them, and a margin beyond both ends.

    Args:
        alphabet: the answers.
        reach: an interval that the margin must cover as well; None for none.
        most_per_step: points per step of the answers, at most.
    """
    values, step = alphabet.values, step_of(alphabet)
    per_step = max(1, min(most_per_step, POINTS // alphabet.size))
    margin = max(MARGIN_STEPS * step, MARGIN_SHARE * float(values[-1] - values[0]))
    first, last = float(values[0]) - margin, float(values[-1]) + margin
    if reach is not None:
        first, last = min(first, reach[0]), max(last, reach[1])
    below = int(np.ceil((values[0] - first) / step * per_step))
    above = int(np.ceil((last - values[0]) / step * per_step))
    return np.add(values[0], np.arange(-below, above + 1) * (step / per_step), dtype=np.float64)


def answer_table(
    points: NDArray[np.float64], sigmas: NDArray[np.float64], values: NDArray[np.float64], step: float
) -> NDArray[np.float64]:
    """Return P(answer | truth) where the answer is truth plus a normal error, rounded and clipped to the grid.

    C[mu, x] = Phi((x + step/2 - mu) / sigma) - Phi((x - step/2 - mu) / sigma); the ends of the grid take the tails.

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
    # Differences of small tails, not of numbers close to 1, on either side.
    return np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def normal_prior(points: NDArray[np.float64], mean: float, deviation: float) -> NDArray[np.float64]:
    """Return the logarithm of a normal prior on the grid, shape (points,)."""
    scores = -0.5 * ((points - mean) / deviation) ** 2
    return np.asarray(scores - _log_sum(scores))


def label_prior(points: NDArray[np.float64], alphabet: Alphabet, prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of a prior that is given by label, shape (points,).

    The probability of an answer is spread evenly over the truths that round to it; those of both ends stand for truths
    up to one step beyond the scale too. Points farther out get next to nothing.
    """
    values, step = alphabet.values, step_of(alphabet)
    nearest = np.clip(np.rint((points - values[0]) / step), 0, alphabet.size - 1).astype(int)
    inside = (points > values[0] - 1.01 * step) & (points < values[-1] + 1.01 * step)
    weight = np.where(inside, 1.0, 1e-12)
    share = prior[nearest] * weight / np.bincount(nearest, weights=weight, minlength=alphabet.size)[nearest]
    return np.log(share / share.sum())


def normal_family(points: NDArray[np.float64], alphabet: Alphabet) -> NDArray[np.float64]:
    """Return the priors that may be learned: normals of many means and deviations, with a share of stray truths.

    Two parameters are learned and not a histogram, because reports that hold little information determine no more.

    Returns:
        Probabilities, indexed [prior, truth]; rows sum to 1, the widest prior around the middle of the scale is last.
    """
    step, reach = step_of(alphabet), float(alphabet.values[-1] - alphabet.values[0])
    every = -(-len(points) // 48)
    means = points[len(points) // 2 % every :: every]
    # From a quarter of a step to the range, in factors of at most 2.
    deviations = np.geomspace(step / 4, max(reach, step), int(np.ceil(np.log2(4 * max(reach / step, 1)))) + 1)
    wide = np.append(np.repeat(deviations, len(means)), 2 * max(reach, step))
    centre = np.append(np.tile(means, len(deviations)), alphabet.values.mean())
    density = np.exp(-0.5 * ((points - centre[:, None]) / wide[:, None]) ** 2)
    return (1 - STRAY) * density / density.sum(axis=1, keepdims=True) + STRAY / len(points)


def place_weights(family: NDArray[np.float64], points: NDArray[np.float64], alphabet: Alphabet) -> NDArray[np.float64]:
    """Return how far priors are believed beforehand, shape (priors,), sums to 1.

    That truths lie mostly below the scale (so that its low end is the truth of most tasks), within it, or above it, is
    taken to be equally likely: ends of a scale are where truths often gather.
    """
    place = np.digitize(family @ points, alphabet.values[[0, -1]])
    weights = 1 / np.bincount(place, minlength=3)[place]
    return np.asarray(weights / weights.sum())


def point_masses(points: NDArray[np.float64], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return certainty about numbers, shared by the two neighbouring points; indexed [number, truth]."""
    at = np.clip((numbers - points[0]) / (points[1] - points[0]), 0, len(points) - 1)
    left = np.minimum(at.astype(int), len(points) - 2)
    masses = np.zeros((len(numbers), len(points)))
    rows = np.arange(len(numbers))
    masses[rows, left], masses[rows, left + 1] = left + 1 - at, at - left
    return masses


def quantiles(
    posterior: NDArray[np.float64], points: NDArray[np.float64], levels: Sequence[float]
) -> NDArray[np.float64]:
    """Return quantiles of distributions over points, each point's mass spread over its cell.

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


def refined(logs: NDArray[np.float64], points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return smooth distributions over a finer grid, their logarithms interpolated by natural cubic splines.

    A coarse grid gives a smooth law steps, and quantiles that lie in the wrong part of a cell.

    Args:
        logs: logarithms of unnormalised probabilities, indexed [row, point].
        points: evenly spaced, ascending, two or more, shape (points,).

    Returns:
        Probabilities of `FINER` points in each point's cell, rows sum to 1; and these points.
    """
    # Loading it takes time that only fits of numbers need.
    from scipy.interpolate import CubicSpline

    places = (np.arange(len(points) * FINER) + 0.5) / FINER - 0.5
    inside = np.clip(places, 0, len(points) - 1)
    fine = logs @ CubicSpline(np.arange(len(points)), np.eye(len(points)), bc_type="natural")(inside).T
    dense = np.exp(fine - fine.max(axis=1, keepdims=True))
    return dense / dense.sum(axis=1, keepdims=True), np.add(points[0], places * (points[1] - points[0]))


def _log_sum(scores: NDArray[np.float64]) -> float:
    top = scores.max()
    return float(top + np.log(np.exp(scores - top).sum()))
