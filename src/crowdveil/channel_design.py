"""Optimal finite channels for a design objective at a given epsilon, by linear programming over staircase columns.

Kairouz, Oh and Viswanath (2016), Theorems 2 and 4: where every report adds a sublinear gain, some best channel has only
columns whose entries are 1 or e^epsilon, times a weight; the weights solve a linear program with one equation per
input. Mutual information and the probability of a right guess are such gains.
"""

import math
from dataclasses import dataclass, replace
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
"""Largest number of sets of one size that is enumerated; baselines with more report symbols are left out."""

MAX_INTERVAL_ENDS = 24
"""Largest number of interval ends among the candidate sets, at quantiles of the answer distribution."""

MAX_AXES = 8
"""Largest number of principal axes along which inputs are ordered."""

MIN_COLUMN_WEIGHT = 1e-11
"""Weight below which a column of the optimum is a rounding error."""

MAX_SEARCH_INPUTS, MAX_STARTS, MAX_SEARCH_ROUNDS = 32, 64, 30
"""Limits of the local search for better sets: number of inputs, of starting sets, and of rounds."""

MIN_REDUCED_COST = 1e-7
"""Smallest improvement of a new set, relative to the largest gain of a column."""

MIN_GAIN = 1e-26
"""Gain of a column, in nats, below which it is rounding error."""

MIN_RELATIVE_GAIN = 1e-12
"""Relative gain for which a designed channel is preferred to a simple one."""

Sets = NDArray[np.bool_]
"""Sets of inputs with the high entries of staircase columns, shape (inputs, sets)."""


def design_channel(objective: DesignObjective, epsilon: float, *, null_apart: bool = False) -> Channel:
    """Return the best channel for a question at `epsilon`; its integer ratio never exceeds e^epsilon.

    Exact up to 14 inputs (labels, and NULL where protected). Beyond, the best over a family: small sets, intervals of
    an ordered alphabet with and without NULL, cuts along the directions in which truths differ most, all their
    complements, the columns of the baseline_channels, and up to 32 inputs better sets that climbing from these finds.
    Where randomized response, quantized response or NULL as a coin is as good, that is returned as "designed".

    Args:
        question: what is publicly known.
        epsilon: privacy loss of one cell, in nats.
        null_apart: try only reports that mean NULL or labels, never both. It costs little but where epsilon is small,
            and the share of answered tasks can then be learned from the reports.

    Raises:
        SettingsError: epsilon is not accepted.
        CrowdveilError: the linear program could not be solved.
    """
    require_epsilon(epsilon)
    quantized = QuantizedResponse.for_objective(objective, epsilon)
    simple = _simple_channels(objective, epsilon, quantized)
    sets = _family(objective, quantized.partition)
    if null_apart and objective.participation == "protected":
        sets, simple = sets[:, ~sets[-1] | (sets.sum(axis=0) == 1)], simple[:2]
    best = max(simple, key=lambda channel: objective.score(channel.probabilities))
    found = _optimum(objective, epsilon, sets, null_apart=null_apart)
    if found is not None:
        least = objective.score(best.probabilities) * (1 + MIN_RELATIVE_GAIN)
        best = found if objective.score(found.probabilities) > least else best
    return replace(best, mechanism=Designed.name)


def mutual_information(channel: Channel, prior: ArrayLike, model: ArrayLike, participation_rate: float = 1.0) -> float:
    """Return the mutual information of truth and report, in nats per cell.

    Args:
        channel: what cells go through.
        prior: P(truth), shape (truths,).
        model: P(answer | truth), shape (truths, labels), or (kinds, truths, labels) for equal shares of workers whose
            kind is known: the average over kinds.
        participation_rate: share of cells that are answered; where participation is public the others say nothing.
    """
    return _objective_for(channel, prior, model, participation_rate).score(channel.probabilities)


def expected_error(channel: Channel, prior: ArrayLike, model: ArrayLike, participation_rate: float = 1.0) -> float:
    """Return the probability that the best guess of the truth from one cell is wrong; arguments as above."""
    objective = replace(_objective_for(channel, prior, model, participation_rate), criterion="correct")
    return 1 - objective.score(channel.probabilities)


def baseline_channels(objective: DesignObjective, epsilon: float) -> dict[str, NDArray[np.float64]]:
    """Return what a designed channel is compared with, by name: real tables P(report | input), shape (inputs, reports).

    Quantized response and subset selection (Ye and Barg 2018) are the best of their kind for the question. The unary
    encodings send one bit per input, kept or flipped (Wang et al. 2017); null-as-coin draws a label for an unanswered
    cell. Those with more than `MAX_COLUMNS` report symbols are left out.
    """
    require_epsilon(epsilon)
    inputs = objective.input_count
    simple = _simple_channels(objective, epsilon, QuantizedResponse.for_objective(objective, epsilon))
    tables = {channel.mechanism: channel.probabilities for channel in simple}
    subsets = (_subset_selection(_sets_of_size(inputs, size), epsilon) for size in _sizes(inputs))
    tables["subset-selection"] = max(subsets, key=objective.score)
    if 2**inputs <= MAX_COLUMNS:
        sets, half, whole = _every_set(inputs), math.exp(epsilon / 2), math.exp(epsilon)
        tables["symmetric-unary-encoding"] = _unary(sets, half / (1 + half), 1 / (1 + half))
        tables["optimized-unary-encoding"] = _unary(sets, 0.5, 1 / (1 + whole))
    return tables


def one_coin_worker_model(labels: int, ability: float) -> NDArray[np.float64]:
    """Return P(answer | truth) of a worker who is right with probability `ability`, else wrong in any way alike."""
    if labels < 2 or not 0 <= ability <= 1:
        raise SettingsError("a one-coin worker needs two labels and an ability in [0, 1]", value=(labels, ability))
    table = np.full((labels, labels), (1 - ability) / (labels - 1))
    np.fill_diagonal(table, ability)
    return table


def normal_worker_model(
    scale: Scale, sigmas: tuple[float, ...], truths: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return P(answer | truth) of truth + normal error, rounded and clipped to the scale.

    Args:
        scale: the grid of answers.
        sigmas: standard deviation of each kind of worker; a `DesignObjective` gives them equal shares by default.
        truths: numbers, shape (truths,), also off the grid; the grid itself by default.

    Returns:
        Shape (kinds, truths, labels).

    Raises:
        SettingsError: no sigma, or one that is not positive and finite.
    """
    if not (sigmas and all(0 < sigma < math.inf for sigma in sigmas)):
        raise SettingsError("standard deviations must be positive and finite", value=sigmas)
    centres = scale.values if truths is None else np.asarray(truths, dtype=float)
    edges = scale.values[:-1] + scale.step / 2
    below = ndtr((edges - centres[:, None]) / np.reshape(sigmas, (-1, 1, 1)))
    return np.diff(below, axis=2, prepend=0.0, append=1.0)


def _objective_for(channel: Channel, prior: ArrayLike, model: ArrayLike, participation_rate: float) -> DesignObjective:
    return DesignObjective(
        alphabet=channel.alphabet,
        prior=np.asarray(prior, dtype=float),
        worker_model=np.asarray(model, dtype=float),
        participation_rate=participation_rate,
        participation=channel.participation,
    )


def _optimum(objective: DesignObjective, epsilon: float, sets: Sets, *, null_apart: bool = False) -> Channel | None:
    """Solve the linear program over the columns of `sets`, and of better sets near the used ones, as long as there are.

    None where no column says anything. Different sets are different likelihood ratios, so no two columns of the optimum
    could be merged.
    """
    program = _solve(objective, epsilon, sets)
    for _ in range(MAX_SEARCH_ROUNDS if objective.input_count <= MAX_SEARCH_INPUTS else 0):
        if program is None:
            break
        better = _better_sets(objective, epsilon, program, null_apart=null_apart)
        if not better.shape[1]:
            break
        program = _solve(objective, epsilon, np.hstack((program.tried, better)))
    if program is None:
        return None
    blocks = [tuple(np.flatnonzero(members).tolist()) for members in program.used.T]
    order = sorted(range(len(blocks)), key=blocks.__getitem__)
    table = (_columns(program.used, epsilon) * program.weights)[:, order]
    table /= table.sum(axis=1, keepdims=True)
    names = block_names(objective.alphabet, sorted(blocks))
    claim = exp_rounded_down(epsilon)
    return Channel.from_probabilities(objective.alphabet, objective.participation, names, table, claim)


@dataclass(frozen=True, eq=False, slots=True)
class _Solution:
    """The `tried` sets, those `used` in the optimum with their `weights`, and the `prices` of the inputs' equations.

    A set whose gain, over `unit`, exceeds its column's price would improve the optimum.
    """

    tried: Sets
    used: Sets
    weights: NDArray[np.float64]
    prices: NDArray[np.float64]
    unit: float


def _columns(sets: Sets, epsilon: float) -> NDArray[np.float64]:
    """Return staircase columns scaled to a largest entry of 1, shape (inputs, sets)."""
    return np.where(sets, 1.0, math.exp(-epsilon))


def _solve(objective: DesignObjective, epsilon: float, sets: Sets) -> _Solution | None:
    """Solve the linear program over given columns; gains are scaled, as the solver's tolerances are absolute."""
    # A second of loading that fits, which also import this file, need not wait for.
    from scipy.optimize import linprog

    columns = _columns(sets, epsilon)
    gains = objective.gains(columns)
    unit = float(gains.max())
    if unit <= MIN_GAIN:
        return None
    solution = linprog(-gains / unit, A_eq=columns, b_eq=np.ones(len(sets)), method="highs")
    if not solution.success:
        raise CrowdveilError(f"The linear program of a designed channel failed: {solution.message}")
    used = solution.x > MIN_COLUMN_WEIGHT
    return _Solution(sets, sets[:, used], solution.x[used], -solution.eqlin.marginals, unit)


def _better_sets(objective: DesignObjective, epsilon: float, program: _Solution, *, null_apart: bool) -> Sets:
    """Climb from the sets nearest to use, one input in or out at a time, to sets worth more than their price."""

    def worth(sets: Sets) -> NDArray[np.float64]:
        columns = _columns(sets, epsilon)
        return objective.gains(columns) / program.unit - program.prices @ columns

    apart = null_apart and objective.participation == "protected"
    current = program.tried[:, ~program.tried[-1]] if apart else program.tried
    current = current[:, np.argsort(-worth(current), kind="stable")[:MAX_STARTS]]
    flips = np.eye(objective.input_count, dtype=bool)[:, : objective.input_count - apart]
    value = worth(current)
    while True:
        near = current[:, :, None] ^ flips[:, None, :]
        values = worth(near.reshape(objective.input_count, -1)).reshape(near.shape[1:])
        best = values.argmax(axis=1)
        climbed = values.max(axis=1) > value + MIN_REDUCED_COST
        if not climbed.any():
            return np.unique(current[:, value > MIN_REDUCED_COST], axis=1)
        value = np.where(climbed, values.max(axis=1), value)
        current = np.where(climbed, near[:, np.arange(len(best)), best], current)


def _simple_channels(objective: DesignObjective, epsilon: float, quantized: QuantizedResponse) -> list[Channel]:
    """Return the channels that need no program: randomized response, the best quantized one, NULL as a coin."""
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


def _family(objective: DesignObjective, blocks: Blocks) -> Sets:
    """Return the sets to try: all of them where no size has too many, else all of few sizes and a family of others."""
    inputs = objective.input_count
    sizes = _sizes(inputs)
    tried = [_sets_of_size(inputs, size) for size in sizes]
    if len(sizes) < inputs - 1:
        merged = np.zeros((inputs, len(blocks)), dtype=bool)
        for number, block in enumerate(blocks):
            merged[list(block), number] = True
        tried += [merged, _along_axes(objective)]
        if objective.alphabet.ordered:
            intervals = _intervals(objective)
            tried += [intervals, ~intervals]
    sets = np.unique(np.hstack(tried), axis=1)
    return sets[:, sets.any(axis=0) & ~sets.all(axis=0)]


def _along_axes(objective: DesignObjective) -> Sets:
    """Line the inputs up along the directions in which truths differ most, and cut each line: both sides are sets.

    For small epsilon information is a quadratic form of the column, and its main axes are these directions.
    """
    spread = [
        np.sqrt(share * objective.prior)[:, None] * (inputs - objective.prior @ inputs)
        for share, inputs in zip(objective.type_shares, objective.input_model, strict=True)
    ]
    axes = np.linalg.svd(np.vstack(spread), full_matrices=False)[2][:MAX_AXES]
    places = axes.argsort(axis=1).argsort(axis=1).T
    cuts = np.unique(np.linspace(1, objective.input_count - 1, MAX_INTERVAL_ENDS).astype(int))
    lower = (places[:, :, None] < cuts).reshape(objective.input_count, -1)
    return np.hstack((lower, ~lower))


def _intervals(objective: DesignObjective) -> Sets:
    """Return intervals of ordered labels, with and without NULL."""
    labels, inputs = objective.alphabet.size, objective.input_count
    reached = np.cumsum(objective.answer_distribution)
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


def _sizes(inputs: int) -> list[int]:
    """Return the sizes of sets of which there are few enough; a single input always is."""
    return [size for size in range(1, inputs) if size == 1 or math.comb(inputs, size) <= MAX_COLUMNS]


def _sets_of_size(inputs: int, size: int) -> Sets:
    members = np.array(list(combinations(range(inputs), size)))
    sets = np.zeros((inputs, len(members)), dtype=bool)
    sets[members, np.arange(len(members))[:, None]] = True
    return sets


def _every_set(inputs: int) -> Sets:
    return (np.arange(2**inputs) >> np.arange(inputs)[:, None] & 1).astype(bool)


def _subset_selection(sets: Sets, epsilon: float) -> NDArray[np.float64]:
    """Send a set, e^epsilon times as likely if the answer is in it; all sets of one size, so rows sum alike."""
    table = np.where(sets, math.exp(epsilon), 1.0)
    return table / table.sum(axis=1, keepdims=True)


def _unary(sets: Sets, keep: float, flip: float) -> NDArray[np.float64]:
    """Send one bit per input: the answer's is 1 with probability `keep`, every other with probability `flip`."""
    others = np.where(sets, flip, 1 - flip)
    return others.prod(axis=0) * np.where(sets, keep / flip, (1 - keep) / (1 - flip))
