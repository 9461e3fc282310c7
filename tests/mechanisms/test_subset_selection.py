"""Subset selection and optimized unary encoding: their tables by the papers' definitions, sizes, NULL and limits."""

import math
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from crowdveil.channels.alphabet import NULL, Categories
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Participation
from crowdveil.design.channel_design import design_channel, one_coin_confusion
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import DesignObjective, OptimizedUnaryEncoding, RandomizedResponse, SubsetSelection
from crowdveil.mechanisms.subset_selection import BLANK, symbol_sets
from tests.mechanisms.test_mechanism_contract import below_exp

KINDS = (SubsetSelection, OptimizedUnaryEncoding)


def labels(size: int) -> Categories:
    """An alphabet of `size` labels."""
    return Categories(tuple(f"label {k}" for k in range(size)))


def unary_table(size: int, epsilon: float) -> dict[frozenset[int], list[float]]:
    """Return the probability of every set of bits for each answer, bit by bit; no and all labels are one set."""
    flip = 1 / (math.exp(epsilon) + 1)
    table: dict[frozenset[int], list[float]] = {}
    for bits in product((0, 1), repeat=size):
        row = []
        for answer in range(size):
            chance = 1.0
            for label, bit in enumerate(bits):
                one = 0.5 if label == answer else flip
                chance *= one if bit else 1 - one
            row.append(chance)
        held = frozenset(k for k, bit in enumerate(bits) if bit)
        key = frozenset() if len(held) == size else held
        table[key] = (np.array(table[key]) + row).tolist() if key in table else row
    return table


@pytest.mark.parametrize("size", [3, 5, 8])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_unary_encoding_has_the_probabilities_of_independent_bits(size: int, epsilon: float) -> None:
    """The table over sets is the product over bits, with the sets of no and of all labels as one symbol."""
    channel = OptimizedUnaryEncoding(alphabet=labels(size), epsilon=epsilon, participation="public").channel()
    expected = unary_table(size, epsilon)
    sets = [members for held in range(1, size) for members in combinations(range(size), held)]

    assert len(expected) == len(channel.outputs)
    assert BLANK == channel.outputs[-1]
    for members, column in zip((*sets, ()), channel.probabilities.T, strict=True):
        np.testing.assert_allclose(column, expected[frozenset(members)], rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("size", "epsilon", "held"), [(4, 0.5, 2), (10, 0.5, 4), (10, 1.0, 3), (10, 2.0, 1), (2, 0.1, 1)]
)
def test_subset_selection_weighs_sets_that_hold_the_answer(size: int, epsilon: float, held: int) -> None:
    """Sets of round(K / (e^eps + 1)) labels have weight e^eps if they hold the answer, else 1."""
    mechanism = SubsetSelection(alphabet=labels(size), epsilon=epsilon, participation="public")
    weights = np.array(
        [
            [math.exp(epsilon) if x in members else 1.0 for members in combinations(range(size), held)]
            for x in range(size)
        ]
    )

    assert held == mechanism.labels_per_report
    np.testing.assert_allclose(
        mechanism.channel().probabilities, weights / weights.sum(axis=1, keepdims=True), rtol=0, atol=1e-11
    )


@pytest.mark.parametrize(("size", "held", "partitions"), [(14, 5, 64), (20, 8, 64), (47, 2, 42), (1024, 400, 64)])
def test_too_many_sets_are_replaced_by_blocks_of_partitions(size: int, held: int, partitions: int) -> None:
    """Beyond 1,024 sets, public partitions into blocks of about the size hold each label as often."""
    sets = symbol_sets(size, held)
    blocks = max(2, round(size / held))

    held_by = np.zeros(size, dtype=int)
    for members, weight in sets.items():
        held_by[list(members)] += weight
    assert partitions * blocks == sum(sets.values()) >= len(sets)
    assert {size // blocks, -(-size // blocks)} >= {len(members) for members in sets}
    assert [partitions] * size == held_by.tolist()


def test_partitions_depend_on_the_number_of_labels_alone() -> None:
    """The first order of the labels is that by SHA-256 of "0/label": anyone can draw it again."""
    order = sorted(range(14), key=lambda code: sha256(f"0/{code}".encode()).digest())

    assert (tuple(sorted(order[:7])), tuple(sorted(order[7:]))) == tuple(symbol_sets(14, 7))[:2]


@pytest.mark.parametrize("size", [0, 4, 9, 1.5, 2.0, "2", True])
def test_a_size_that_holds_no_or_all_labels_is_refused(size: Any) -> None:
    """A set of a whole number of labels, from one to all but one, says something of the answer."""
    with pytest.raises(SettingsError, match="size of sets"):
        SubsetSelection(alphabet=labels(4), epsilon=1.0, size=size)


def objective_of(size: int, participation: Participation, ability: float = 0.75) -> DesignObjective:
    """Return the objective of equally frequent labels and workers of one ability."""
    return DesignObjective(
        alphabet=labels(size),
        prior=np.full(size, 1 / size),
        worker_model=one_coin_confusion(size, ability),
        participation_rate=0.4 if participation == "protected" else 1.0,
        participation=participation,
    )


@pytest.mark.parametrize("size", [3, 5, 10])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_the_best_size_has_the_information_of_the_optimal_design(size: int, epsilon: float) -> None:
    """For equally frequent labels no table of any form informs more of a truth than the sets of the best size."""
    objective = objective_of(size, "public")
    best = SubsetSelection.for_objective(objective, epsilon)
    designed = design_channel(objective, epsilon)

    assert best.size in range(1, size)
    assert objective.objective_of_channel(best.channel().probabilities) == pytest.approx(
        objective.objective_of_channel(designed.probabilities), rel=1e-9
    )


@pytest.mark.parametrize("participation", ["public", "protected"])
@pytest.mark.parametrize(("epsilon", "ability"), [(0.2, 0.3), (1.0, 0.5), (1.0, 0.95), (2.0, 0.75), (5.0, 0.75)])
def test_sizes_between_the_two_limits_hold_the_best(
    participation: Participation, epsilon: float, ability: float
) -> None:
    """No size from 1 to 9 of ten labels has a larger objective than the chosen one."""
    objective = objective_of(10, participation, ability)
    best = SubsetSelection.for_objective(objective, epsilon)
    values = [objective.objective_of_channel(replace(best, size=size).channel().probabilities) for size in range(1, 10)]

    assert 1 + int(np.argmax(values)) == best.size


def null_as_own_symbol(public: np.ndarray, epsilon: float) -> np.ndarray:
    """Return a table with NULL as input and symbol: a = (1 - L) / (E - L), L = sum of column maxima / E."""
    ratio, largest = math.exp(epsilon), public.max(axis=0)
    least = largest.sum() / ratio
    kept = (1 - least) / (ratio - least)
    answers = np.hstack(((1 - kept) * public, np.full((len(public), 1), kept)))
    return np.vstack((answers, np.append((1 - kept) * largest / ratio, kept * ratio)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [2, 5, 10])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_null_is_a_symbol_of_its_own(kind: type, size: int, epsilon: float) -> None:
    """The protected table follows from the public one by the formula of the page."""
    public, protected = (
        kind(alphabet=labels(size), epsilon=epsilon, participation=participation).channel()
        for participation in ("public", "protected")
    )

    assert (*public.outputs, NULL) == protected.outputs
    np.testing.assert_allclose(
        protected.probabilities, null_as_own_symbol(public.probabilities, epsilon), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("participation", ["public", "protected"])
def test_sets_of_one_label_are_randomized_response(participation: Participation) -> None:
    """With one label a report both tables have the same integers, NULL included."""
    one, other = (
        kind(alphabet=labels(5), epsilon=2.0, participation=participation).channel()
        for kind in (SubsetSelection, RandomizedResponse)
    )

    assert (other.outputs, other.rows) == (one.outputs, one.rows)


def test_unary_encoding_given_the_size_is_subset_selection() -> None:
    """Among sets of three of ten labels the probabilities are those of subset selection at epsilon 1."""
    subset, unary = (kind(alphabet=labels(10), epsilon=1.0, participation="public").channel() for kind in KINDS)
    places = [unary.outputs.index(name) for name in subset.outputs]
    chosen = unary.probabilities[:, places]

    np.testing.assert_allclose(chosen / chosen.sum(axis=1, keepdims=True), subset.probabilities, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("kind", "size"),
    [*((kind, size) for kind in KINDS for size in (2, 3, 7, 10)), (SubsetSelection, 14), (SubsetSelection, 60)],
)
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.7, 2.5, 10.0, 20.0])
@pytest.mark.parametrize("participation", ["public", "protected"])
def test_integers_never_exceed_epsilon_and_lose_little(
    kind: type, size: int, epsilon: float, participation: str
) -> None:
    """The worst integer ratio is at most e^epsilon, and its logarithm within 2e-6 of epsilon."""
    channel: Channel = kind(alphabet=labels(size), epsilon=epsilon, participation=participation).channel()
    worst = max(Fraction(max(column), min(column)) for column in zip(*channel.rows, strict=True))

    assert worst <= below_exp(epsilon)
    assert epsilon - channel.epsilon <= 2e-6 * min(1.0, epsilon)
    assert channel.certificate()["mechanism"] == kind.name  # type: ignore[attr-defined]


def test_unary_encoding_refuses_more_labels_than_a_table_has_sets() -> None:
    """Eleven labels have 2,048 sets, more than the symbols of a table."""
    with pytest.raises(SettingsError, match="at most 10"):
        OptimizedUnaryEncoding(alphabet=labels(11), epsilon=1.0)


def test_the_symbol_of_no_information_has_a_name_of_its_own() -> None:
    """A label may be called as the symbol is: the symbol then gets a prime."""
    alphabet = Categories((BLANK, "other"))

    assert f"{BLANK}'" in OptimizedUnaryEncoding(alphabet=alphabet, epsilon=1.0).channel().outputs
