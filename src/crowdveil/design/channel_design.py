"""Optimal finite channels for a design objective at a given epsilon, by linear programming over staircase columns.

Kairouz, Oh and Viswanath (2016), Theorems 2 and 4: for an objective that is a sum of sublinear gains, one per report
symbol, some optimal channel has staircase columns only. The entries of a staircase column are its weight times 1 or
e^epsilon. The weights solve a linear program with one equation per input. Mutual information is such an objective.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from crowdveil.channels.alphabet import Scale
from crowdveil.channels.channel import Channel, exp_rounded_down
from crowdveil.channels.guarantee import require_epsilon
from crowdveil.errors import CrowdveilError, SettingsError
from crowdveil.mechanisms import Designed, DesignObjective, QuantizedResponse, RandomizedResponse
from crowdveil.mechanisms.quantized_response import Blocks, block_names

MAX_COLUMNS = 4096
"""Largest number of sets of one size that are enumerated."""

MAX_INTERVAL_ENDS = 24
"""Largest number of interval ends of candidate sets; they lie at quantiles of the answer distribution."""

MAX_AXES = 8
"""Largest number of principal axes that order the inputs for candidate sets."""

MIN_COLUMN_WEIGHT = 1e-11
"""Weight up to which a column of the optimum is treated as a rounding error."""

MAX_SEARCH_INPUTS, MAX_STARTS, MAX_SEARCH_ROUNDS = 32, 64, 30
"""Limits of column generation by local search: number of inputs, of starting sets, and of rounds."""

MAX_KEPT = 512
"""Columns of highest reduced cost that stay in the linear program from round to round."""

MIN_REDUCED_COST = 1e-7
"""Smallest reduced cost of a new column, relative to the largest gain of a column."""

MIN_GAIN = 1e-26
"""Gain of a column, in nats, up to which it is treated as a rounding error."""

MIN_RELATIVE_GAIN = 1e-12
"""Smallest relative improvement of the objective for which the optimum replaces a closed-form channel."""

Sets = NDArray[np.bool_]
"""Indicators of input sets, shape (inputs, sets); a column is e^epsilon times as large on its set as elsewhere."""


def design_channel(objective: DesignObjective, epsilon: float, *, null_apart: bool = False) -> Channel:
    """Return the channel with the largest objective at `epsilon`; the ratio of its integers never exceeds e^epsilon.

    Up to 14 inputs (labels, and NULL if participation is protected) the result is the exact optimum. For more inputs it
    is the optimum over candidate columns: small sets, intervals of an ordered alphabet with and without NULL, sets
    along the principal axes of the worker model, their complements, and the blocks of the best quantized response. Up
    to 32 inputs a local search adds columns. If randomized response, quantized response or a random label for NULL is
    equally good, that channel is returned. The mechanism name is always "designed".

    Args:
        objective: design objective with the public model.
        epsilon: privacy loss of one cell, in nats.
        null_apart: exclude report symbols that merge NULL with labels. The share of answered tasks can then be
            estimated from the reports; the objective decreases noticeably for small epsilon only.

    Raises:
        SettingsError: epsilon is not accepted.
        CrowdveilError: the linear program could not be solved.
    """
    require_epsilon(epsilon)
    quantized = QuantizedResponse.for_objective(objective, epsilon)
    closed_form = _closed_form_channels(objective, epsilon, quantized)
    sets = _candidate_sets(objective, quantized.partition)
    if null_apart and objective.participation == "protected":
        sets, closed_form = sets[:, ~sets[-1] | (sets.sum(axis=0) == 1)], closed_form[:2]
    best = max(closed_form, key=lambda channel: objective.objective_of_channel(channel.probabilities))
    found = _optimal_channel(objective, epsilon, sets, null_apart=null_apart)
    if found is not None:
        least = objective.objective_of_channel(best.probabilities) * (1 + MIN_RELATIVE_GAIN)
        best = found if objective.objective_of_channel(found.probabilities) > least else best
    return replace(best, mechanism=Designed.name)


def one_coin_confusion(labels: int, ability: float) -> NDArray[np.float64]:
    """Return P(answer | truth) of the one-coin model, shape (labels, labels): correct with probability `ability`."""
    if labels < 2 or not 0 <= ability <= 1:
        hint = "An ability is the probability of a right answer."
        raise SettingsError(
            "a one-coin worker needs two labels and an ability in [0, 1]", value=(labels, ability), hint=hint
        )
    table = np.full((labels, labels), (1 - ability) / (labels - 1))
    np.fill_diagonal(table, ability)
    return table


def normal_worker_model(
    scale: Scale, sigmas: tuple[float, ...], truths: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return P(answer | truth) of truth plus normal error, rounded and clipped to the scale.

    Args:
        scale: the grid of answers.
        sigmas: standard deviation of the error of each worker type.
        truths: numbers, shape (truths,), on or off the grid; the grid itself by default.

    Returns:
        Shape (types, truths, labels).

    Raises:
        SettingsError: `sigmas` is empty, or holds a number that is not positive and finite.
    """
    if not (sigmas and all(0 < sigma < math.inf for sigma in sigmas)):
        raise SettingsError(
            "standard deviations must be positive and finite",
            value=sigmas,
            hint="Such as 0.5 and 1, in units of the scale.",
        )
    centres = scale.values if truths is None else np.asarray(truths, dtype=float)
    edges = scale.values[:-1] + scale.step / 2
    below = ndtr((edges - centres[:, None]) / np.reshape(sigmas, (-1, 1, 1)))
    return np.diff(below, axis=2, prepend=0.0, append=1.0)


def _optimal_channel(
    objective: DesignObjective, epsilon: float, sets: Sets, *, null_apart: bool = False
) -> Channel | None:
    """Return the optimal channel over the columns of `sets` and further columns from local search.

    None if no column is informative. Different sets have different likelihood ratios, so no two columns of the optimum
    can be merged.
    """
    program = _solve_linear_program(objective, epsilon, sets)
    columns = sets
    for _ in range(MAX_SEARCH_ROUNDS if objective.input_count <= MAX_SEARCH_INPUTS else 0):
        if program is None:
            break
        better = _improving_sets(objective, epsilon, program, sets, null_apart=null_apart)
        if not better.shape[1]:
            break
        # Columns of low reduced cost leave the program; as members of `sets` they are priced again in every round.
        kept = np.argsort(-_reduced_costs(objective, epsilon, program, columns), kind="stable")[:MAX_KEPT]
        sets, columns = np.hstack((sets, better)), np.hstack((program.support, columns[:, kept], better))
        program = _solve_linear_program(objective, epsilon, columns)
    if program is None:
        return None
    blocks = [tuple(np.flatnonzero(members).tolist()) for members in program.support.T]
    order = sorted(range(len(blocks)), key=blocks.__getitem__)
    table = (_staircase_columns(program.support, epsilon) * program.weights)[:, order]
    table /= table.sum(axis=1, keepdims=True)
    names = block_names(objective.alphabet, sorted(blocks))
    claim = exp_rounded_down(epsilon)
    return Channel.from_probabilities(objective.alphabet, objective.participation, names, table, claim)


@dataclass(frozen=True, eq=False, slots=True)
class _Solution:
    """Optimum of the linear program over some candidate sets.

    A further column improves the optimum if its gain / `gain_scale` exceeds the sum of `dual` over its entries.

    Attributes:
        support: sets of the columns with positive weight, shape (inputs, support).
        weights: weights of the support, shape (support,).
        dual: dual variables of the equations, shape (inputs,).
        gain_scale: largest gain of a column, by which all gains are divided.
    """

    support: Sets
    weights: NDArray[np.float64]
    dual: NDArray[np.float64]
    gain_scale: float


def _staircase_columns(sets: Sets, epsilon: float) -> NDArray[np.float64]:
    """Return staircase columns scaled to a largest entry of 1, shape (inputs, sets)."""
    return np.where(sets, 1.0, math.exp(-epsilon))


def _solve_linear_program(objective: DesignObjective, epsilon: float, sets: Sets) -> _Solution | None:
    """Return the solution of the linear program over the columns of `sets`; None if no column has a gain.

    Gains are scaled because the tolerances of the solver are absolute.
    """
    # Imported here: scipy.optimize loads in about a second, and fits import this file without solving a program.
    from scipy.optimize import linprog

    columns = _staircase_columns(sets, epsilon)
    gains = objective.column_objective_terms(columns)
    gain_scale = float(gains.max())
    if gain_scale <= MIN_GAIN:
        return None
    solution = linprog(-gains / gain_scale, A_eq=columns, b_eq=np.ones(len(sets)), method="highs")
    if not solution.success:
        raise CrowdveilError(f"The solver found no optimum of the channel's linear program: {solution.message}")
    in_support = solution.x > MIN_COLUMN_WEIGHT
    return _Solution(sets[:, in_support], solution.x[in_support], -solution.eqlin.marginals, gain_scale)


def _reduced_costs(objective: DesignObjective, epsilon: float, program: _Solution, sets: Sets) -> NDArray[np.float64]:
    """Return what a small weight on the column of each set adds to the optimum, relative to `gain_scale`."""
    columns = _staircase_columns(sets, epsilon)
    return objective.column_objective_terms(columns) / program.gain_scale - program.dual @ columns


def _improving_sets(
    objective: DesignObjective, epsilon: float, program: _Solution, sets: Sets, *, null_apart: bool
) -> Sets:
    """Return sets of positive reduced cost, by hill climbing from `sets` that adds or removes one input at a time."""
    reduced_cost = partial(_reduced_costs, objective, epsilon, program)
    apart = null_apart and objective.participation == "protected"
    current = sets[:, ~sets[-1]] if apart else sets
    current = current[:, np.argsort(-reduced_cost(current), kind="stable")[:MAX_STARTS]]
    flips = np.eye(objective.input_count, dtype=bool)[:, : objective.input_count - apart]
    value = reduced_cost(current)
    while True:
        near = current[:, :, None] ^ flips[:, None, :]
        values = reduced_cost(near.reshape(objective.input_count, -1)).reshape(near.shape[1:])
        best = values.argmax(axis=1)
        climbed = values.max(axis=1) > value + MIN_REDUCED_COST
        if not climbed.any():
            return np.unique(current[:, value > MIN_REDUCED_COST], axis=1)
        value = np.where(climbed, values.max(axis=1), value)
        current = np.where(climbed, near[:, np.arange(len(best)), best], current)


def _closed_form_channels(objective: DesignObjective, epsilon: float, quantized: QuantizedResponse) -> list[Channel]:
    """Return the closed-form channels: randomized response, quantized response, and a uniform label for NULL."""
    alphabet, participation = objective.alphabet, objective.participation
    response = RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation=participation).channel()
    channels = [response, quantized.channel()]
    if participation == "protected":
        public = RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation="public").channel()
        table = np.vstack((public.probabilities, public.probabilities.mean(axis=0)))
        claim = exp_rounded_down(epsilon)
        channels.append(
            Channel.from_probabilities(alphabet, participation, alphabet.names, table, claim, "null-as-coin")
        )
    return channels


def _candidate_sets(objective: DesignObjective, blocks: Blocks) -> Sets:
    """Return the candidate sets: all sets, or if a size has too many, all of the other sizes and structured ones."""
    inputs = objective.input_count
    sizes = _enumerable_sizes(inputs)
    candidates = [_membership_of_all_sets_of_size(inputs, size) for size in sizes]
    if len(sizes) < inputs - 1:
        merged = np.zeros((inputs, len(blocks)), dtype=bool)
        for number, block in enumerate(blocks):
            merged[list(block), number] = True
        candidates += [merged, _sets_at_principal_axis_ends(objective)]
        if objective.alphabet.ordered:
            intervals = _label_intervals(objective)
            candidates += [intervals, ~intervals]
    sets = np.unique(np.hstack(candidates), axis=1)
    return sets[:, sets.any(axis=0) & ~sets.all(axis=0)]


def _sets_at_principal_axis_ends(objective: DesignObjective) -> Sets:
    """Return the lower and upper ends of the inputs sorted along each principal axis of the worker model.

    For small epsilon mutual information is a quadratic form of the column; these are its principal axes.
    """
    spread = [
        np.sqrt(objective.prior)[:, None] * (inputs - objective.prior @ inputs)
        for inputs in objective.input_given_truth
    ]
    axes = np.linalg.svd(np.vstack(spread), full_matrices=False)[2][:MAX_AXES]
    places = axes.argsort(axis=1).argsort(axis=1).T
    cuts = np.unique(np.linspace(1, objective.input_count - 1, MAX_INTERVAL_ENDS).astype(int))
    lower = (places[:, :, None] < cuts).reshape(objective.input_count, -1)
    return np.hstack((lower, ~lower))


def _label_intervals(objective: DesignObjective) -> Sets:
    """Return intervals of ordered labels, each without and with NULL."""
    labels, inputs = objective.alphabet.size, objective.input_count
    reached = np.cumsum(objective.marginal_answer_distribution)
    ends = np.unique(np.searchsorted(reached, np.linspace(0, 1, MAX_INTERVAL_ENDS)[1:-1]) + 1)
    ends = np.unique(np.clip(np.concatenate(([0, 1], ends, [labels])), 0, labels))
    sets = np.zeros((inputs, math.comb(len(ends), 2)), dtype=bool)
    for number, (first, end) in enumerate(combinations(ends, 2)):
        sets[first:end, number] = True
    if inputs == labels:
        return sets
    null = sets.copy()
    null[-1] = True
    return np.hstack((sets, null))


def _enumerable_sizes(inputs: int) -> list[int]:
    """Return the set sizes with at most `MAX_COLUMNS` sets, and size 1."""
    return [size for size in range(1, inputs) if size == 1 or math.comb(inputs, size) <= MAX_COLUMNS]


def _membership_of_all_sets_of_size(inputs: int, size: int) -> Sets:
    """Return all sets of one size, shape (inputs, sets)."""
    members = np.array(list(combinations(range(inputs), size)))
    sets = np.zeros((inputs, len(members)), dtype=bool)
    sets[members, np.arange(len(members))[:, None]] = True
    return sets
