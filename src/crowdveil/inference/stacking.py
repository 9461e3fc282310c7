"""Stacking (Wolpert, Neural Networks 1992): multinomial regression of known truths, with a normal prior of its weights.

    P(k | t) ~ exp(sum_f weight[f] features[t, k, f]),   weight[f] ~ N(mean[f], deviation[f]^2)

Features with weights of their own for every label are `label_features`, class biases those of a column
of ones.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.gold import CrossValidation
from crowdveil.em.kernels.numpy_backend import softmax
from crowdveil.hints import command_advice

FLOOR = 1e-3
"""Smallest probability whose logarithm counts."""
RIGHT_WORTH, LEARNING_RATE = 2.0, 0.1
"""Nats of log-loss that a right truth is worth, and the share of the evidence that counts, in weights of a mixture."""
ENOUGH = 0.01
"""Expected loss of the weights, in nats of a task, that further gold tasks are counted for."""


@dataclass(frozen=True, eq=False)
class Regression:
    """Fitted weights.

    Attributes:
        weights: most probable weights, shape (features,).
        effective: effective number of weights that the truths determined, the trace of H (H + prior precision)^-1 with
            the Hessian H of the log likelihood (MacKay, Neural Computation 1992, eq. 4.9).
    """

    weights: NDArray[np.float64]
    effective: float

    def probabilities(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(label) of tasks, [task, label], from features [task, label, feature]."""
        return softmax(features @ self.weights)[0]


def label_features(features: NDArray[np.float64], labels: int) -> NDArray[np.float64]:
    """Return features [task, feature] as [task, label, label * feature]: each label has its own weights."""
    expanded = np.einsum("tf,kl->tklf", features, np.eye(labels))
    return expanded.reshape(len(features), labels, -1)


def log_losses(posterior: NDArray[np.float64], truths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the log-loss of each known truth, shape (tasks,); the posterior is indexed [task, label]."""
    return np.asarray(-np.log(np.maximum(posterior[np.arange(len(truths)), truths], FLOOR)))


def mixture_weights(
    posteriors: NDArray[np.float64], truths: NDArray[np.int64], prior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return weights of posteriors by their log-loss and accuracy on known truths, shape (posteriors,).

        weight ~ prior exp(LEARNING_RATE sum_t (RIGHT_WORTH right_t - log-loss_t)),
    a Gibbs posterior (Bissiri et al., JRSS B 2016). Few truths leave the weights near the prior.

    Args:
        posteriors: of the known truths, none fitted to the truth that it is of; indexed [posterior, task, label].
        truths: label codes, shape (tasks,).
        prior: weights without known truths, shape (posteriors,).

    >>> import numpy as np
    >>> good, bad = np.array([[0.9, 0.1]] * 20), np.array([[0.4, 0.6]] * 20)
    >>> mixture_weights(np.stack([good, bad]), np.zeros(20, dtype=int), np.full(2, 0.5)).round(2).tolist()
    [1.0, 0.0]
    """
    gains = [(RIGHT_WORTH * (one.argmax(axis=1) == truths) - log_losses(one, truths)).sum() for one in posteriors]
    return np.asarray(softmax(np.log(prior)[None] + LEARNING_RATE * np.array([gains]))[0][0])


def further_gold_clause(effective: float, known: int) -> str:
    """Return how many gold tasks beyond `known` determine `effective` weights, and which, as a clause."""
    more = max(0, ceil(effective / (2 * ENOUGH)) - known)
    further = f"about {more:,} more, drawn at random (`crowdveil data draw-gold`)," if more else "no more"
    return f"{further} would bring the weights within {ENOUGH:g} nats of their best"


def cross_validate_gold(
    crossed: NDArray[np.float64], truths: NDArray[np.int64], plain: NDArray[np.float64]
) -> tuple[CrossValidation, str]:
    """Return the cross-validation of gold tasks, and its error and log-loss in words (without gold in brackets).

    Arguments as in `log_loss_warning`.
    """
    right = [one.argmax(axis=1) == truths for one in (crossed, plain)]
    loss = [float(log_losses(one, truths).mean()) for one in (crossed, plain)]
    error = np.std(right[0] * 1.0 - right[1]) / len(truths) ** 0.5
    check = CrossValidation(len(truths), int(right[0].sum()), int(right[1].sum()))
    return check, f"; the gain in accuracy has a standard error of {error:.3f}; log-loss {loss[0]:.3f} ({loss[1]:.3f})"


def log_loss_warning(
    crossed: NDArray[np.float64], plain: NDArray[np.float64], truths: NDArray[np.int64]
) -> tuple[str, ...]:
    """Return a warning if gold makes the log-loss of gold worse by more than a standard error; empty if it does not.

    Args:
        crossed: posterior of gold tasks by the other folds of gold, [task, label].
        plain: their posterior without any gold.
        truths: their label codes.
    """
    with_gold, without = log_losses(crossed, truths), log_losses(plain, truths)
    rise = with_gold - without
    if rise.mean() <= rise.std() / len(rise) ** 0.5:
        return ()
    return (
        f"Gold makes the probabilities worse: log-loss {with_gold.mean():.3f} on gold tasks that are held out, "
        f"{without.mean():.3f} without any gold. Leave gold out"
        + command_advice(" and give it as {score}")
        + ", or draw more gold tasks.",
    )


def fit_regression(
    features: NDArray[np.float64],
    truths: NDArray[np.int64],
    *,
    mean: NDArray[np.float64],
    deviation: NDArray[np.float64],
) -> Regression:
    """Return the most probable weights given known truths (L-BFGS in standard deviations; the posterior is concave).

    Args:
        features: indexed [task, label, feature].
        truths: label codes, shape (tasks,).
        mean: prior means of the weights, shape (features,).
        deviation: prior standard deviations of the weights, positive, shape (features,).

    >>> import numpy as np
    >>> logs = np.log([[[0.9], [0.1]], [[0.2], [0.8]]])
    >>> fit = fit_regression(logs, np.array([0, 1]), mean=np.ones(1), deviation=np.full(1, 0.01))
    >>> fit.weights.round(2).tolist(), fit.probabilities(logs)[0].round(2).tolist()
    ([1.0], [0.9, 0.1])
    """
    # Imported here: scipy.optimize loads in half a second, and most commands fit no regression.
    from scipy.optimize import minimize

    places, whitened, start = np.arange(len(truths)), features * deviation, features @ mean

    def loss(moves: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        shares = softmax(whitened @ moves + start)[0]
        likelihood = np.log(np.maximum(shares[places, truths], np.finfo(float).tiny)).sum()
        residual = -shares
        residual[places, truths] += 1
        return float(0.5 * moves @ moves - likelihood), moves - np.einsum("tk,tkf->f", residual, whitened)

    moves = minimize(loss, np.zeros(len(mean)), jac=True, method="L-BFGS-B").x
    shares = softmax(whitened @ moves + start)[0]
    centred = whitened - np.einsum("tk,tkf->tf", shares, whitened)[:, None]
    hessian = np.einsum("tk,tkf,tkg->fg", shares, centred, centred)
    effective = float(np.trace(np.linalg.solve(hessian + np.eye(len(mean)), hessian)))
    return Regression(mean + deviation * moves, effective)
