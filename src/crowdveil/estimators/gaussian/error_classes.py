"""Kinds of workers for numbers: how far their errors reach and how many tasks they answer, seen through the channel."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Alphabet
from crowdveil.em.deconvolution import AnswerFrequencies
from crowdveil.em.observation_model import ObservationModel
from crowdveil.estimators.gaussian import discretization as grid

TINY = 1e-300
SIGMA_RATIO = 2.0**0.5
SMALLEST_SIGMA = 2.0**-1.5
"""In steps of the answers: below it nearly all answers round to the truth."""
PARTICIPATIONS = (1 / 8, 1 / 4, 1 / 2, 2**-0.5, 1.0, 2**0.5, 2.0, 4.0, 8.0)
"""Classes of participation, in units of the crowd's."""
BLUR = 0.02
NEVER_ALL = 1 - 1e-6
"""No class answers every cell for certain, or one NULL report would exclude it."""


@dataclass(frozen=True, eq=False)
class Classes:
    """Kinds of workers: all pairs of a sigma and a participation, sigma-major.

    Attributes:
        points: the grid of truths.
        sigmas, participations: ascending.
        model: how symbols speak of answers.
        parts: P(symbol) in cells that are not answered, and in those answered with each sigma; indexed
            [symbol, 1 + sigma, truth].
        mixing: how the parts make up a class, R_c[mu, y] = sum_k mixing[c, k] parts[y, k, mu]; rows sum to 1.
        silence: R_c[mu, NULL] of the silent channels, indexed [silent, class, truth].
    """

    points: NDArray[np.float64]
    sigmas: NDArray[np.float64]
    participations: NDArray[np.float64]
    model: ObservationModel
    parts: NDArray[np.float64]
    mixing: NDArray[np.float64]
    silence: NDArray[np.float64]

    def split(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return responsibilities [worker, class] as [worker, sigma, participation]."""
        return q.reshape(-1, len(self.sigmas), len(self.participations))


def sigma_grid(alphabet: Alphabet) -> NDArray[np.float64]:
    """Return deviations from a third of a step to the range, in factors of the square root of 2."""
    step = grid.step_of(alphabet)
    widest = max(float(np.ptp(alphabet.values)), 2 * step)
    count = int(np.ceil(np.log(widest / (SMALLEST_SIGMA * step)) / np.log(SIGMA_RATIO)))
    return np.multiply(SMALLEST_SIGMA * step, SIGMA_RATIO ** np.arange(count), dtype=np.float64)


def blurring(sigmas: int) -> NDArray[np.float64]:
    """Return the matrix that moves a little of the share of every sigma to its neighbours; rows sum to 1.

    The likeliest mixture sits on a few sigmas however little is known, and intervals of sigma would be far too short;
    smoothing after every step (Silverman et al. 1990) spreads it as far as the reports leave open.
    """
    moved = np.eye(sigmas, k=1) + np.eye(sigmas, k=-1)
    return np.asarray(np.eye(sigmas) + BLUR * (moved - np.diag(moved.sum(axis=1))))


def near(rates: NDArray[np.float64], centre: float) -> NDArray[np.float64]:
    """Return shares that fall off around the crowd's participation: at first, workers are thought to be alike."""
    weight = np.exp(-2.0 * np.log(rates / centre) ** 2) + 1e-3
    return np.asarray(weight / weight.sum())


def worker_classes(
    points: NDArray[np.float64],
    alphabet: Alphabet,
    model: ObservationModel,
    sigmas: NDArray[np.float64],
    rates: NDArray[np.float64],
) -> Classes:
    """Return the probabilities of reports for every pair of a sigma and a participation."""
    answered = grid.answer_table(points, sigmas, alphabet.values, grid.step_of(alphabet))
    answered = answered @ model.everything[: alphabet.size]
    # Where participation is public every cell that reports was answered, and the last row is a label's.
    rates = rates if model.protected else np.ones_like(rates)
    unanswered = np.broadcast_to(model.everything[-1], (1, *answered.shape[1:]))
    parts = np.concatenate((unanswered, answered)).transpose(2, 0, 1)
    shares = np.kron(np.eye(len(sigmas)), rates[:, None])
    mixing = np.column_stack((np.tile(1 - rates, len(sigmas)), shares))
    listed = np.ascontiguousarray(parts[: model.symbols])
    return Classes(points, sigmas, rates, model, listed, mixing, mixing @ parts[model.symbols :])


def participation_grid(pool: AnswerFrequencies, given: tuple[float, ...] | None) -> NDArray[np.float64]:
    """Return the classes of participation, ascending; only 1 where it is public."""
    if not pool.protected:
        return np.ones(1)
    rates = pool.participation * np.array(PARTICIPATIONS) if given is None else np.array(given)
    return np.unique(np.minimum(rates, NEVER_ALL))
