"""Quantized response: its channel and objective, and the names of its blocks."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crowdveil.channels.alphabet import NULL, Categories, Scale
from crowdveil.channels.channel import DENOMINATOR
from crowdveil.design.channel_design import one_coin_confusion
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import DesignObjective, QuantizedResponse, RandomizedResponse
from crowdveil.mechanisms.quantized_response import block_names
from tests.mechanisms.test_mechanism_contract import below_exp

DIGITS = Scale(0, 9)
COLOURS = Categories(("red", "green", "blue", "grey"))
PARTICIPATIONS = st.sampled_from(["protected", "public"])


@pytest.mark.parametrize("participation", ["protected", "public"])
@pytest.mark.parametrize("blocks", [((0, 3), (1, 2)), ((2,), (0, 1, 3)), ((0,), (1,), (2,), (3,))])
def test_table_is_randomized_response_over_blocks(blocks, participation):
    """The own block with e^eps / (S - 1 + e^eps), every other symbol with 1 / (S - 1 + e^eps), NULL a symbol too."""
    channel = QuantizedResponse(alphabet=COLOURS, epsilon=1.5, blocks=blocks, participation=participation).channel()
    symbols = [set(block) for block in blocks] + ([{4}] if participation == "protected" else [])
    expected = np.empty((len(channel.inputs), len(symbols)))
    for x in range(len(channel.inputs)):
        for y, block in enumerate(symbols):
            expected[x, y] = (math.exp(1.5) if x in block else 1) / (len(symbols) - 1 + math.exp(1.5))

    np.testing.assert_allclose(channel.probabilities, expected, rtol=0, atol=1e-13)


def test_cuts_are_first_codes_of_blocks():
    """The cuts (1, 5) of a scale 0..9 make the blocks 0, 1..4 and 5..9, and NULL stays apart."""
    mechanism = QuantizedResponse(alphabet=DIGITS, epsilon=1.0, cuts=(1, 5))

    assert ("0", "1..4", "5..9", NULL) == mechanism.channel().outputs
    assert Categories(("0", "1..4", "5..9"), ordered=True) == mechanism.channel().report_alphabet
    assert ((0,), (1, 2, 3, 4), (5, 6, 7, 8, 9)) == mechanism.partition


def test_a_block_for_every_label_is_randomized_response():
    """With nothing merged the table is the integer table of randomized response."""
    every = QuantizedResponse(alphabet=DIGITS, epsilon=0.7, cuts=tuple(range(1, 10))).channel()
    plain = RandomizedResponse(alphabet=DIGITS, epsilon=0.7).channel()

    assert (plain.rows, plain.outputs, plain.report_alphabet) == (every.rows, every.outputs, every.report_alphabet)


@pytest.mark.slow
@given(st.integers(1, 9), st.floats(1e-6, 20), PARTICIPATIONS)
@example(1, 20.0, "public")
@example(9, 1e-6, "protected")
def test_ratio_never_exceeds_the_claim_and_wastes_little(last, epsilon, participation):
    """The integer ratio stays below e^epsilon, and falls short by less than one part in 2^48 of a symbol's share."""
    cuts = tuple(range(1, last + 1))
    channel = QuantizedResponse(alphabet=DIGITS, epsilon=epsilon, cuts=cuts, participation=participation).channel()

    assert channel.ratio <= below_exp(epsilon)
    assert epsilon - channel.epsilon <= (len(channel.outputs) + math.exp(epsilon)) ** 2 / DENOMINATOR + 1e-15


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "either cuts or blocks"),
        ({"cuts": (1,), "blocks": ((0,), (1, 2, 3))}, "either cuts or blocks"),
        ({"cuts": (0, 1)}, "ascending"),
        ({"cuts": (4,)}, "ascending"),
        ({"cuts": (2, 2)}, "ascending"),
        ({"cuts": (2, 1)}, "ascending"),
        ({"blocks": ((0, 1, 2, 3),)}, "two or more"),
        ({"blocks": ((0, 1), (2,))}, "every code"),
        ({"blocks": ((0, 1), (1, 2, 3))}, "every code"),
        ({"blocks": ((0, 1, 2, 3), ())}, "two or more"),
        ({"blocks": ((1, 0), (2, 3))}, "ascend"),
    ],
)
def test_what_is_no_partition_is_refused(wrong, message):
    """Cuts out of order or out of range, blocks that leave out or repeat a code, both or neither."""
    ratings = Categories(("G", "P", "R", "X"), ordered=True)

    with pytest.raises(SettingsError, match=message):
        QuantizedResponse(alphabet=ratings, epsilon=1.0, **wrong)


def test_labels_without_order_have_no_cuts():
    """Cuts of an unordered alphabet are refused; blocks are the way out."""
    with pytest.raises(SettingsError, match="Give blocks"):
        QuantizedResponse(alphabet=COLOURS, epsilon=1.0, cuts=(1,))


def random_question(seed, alphabet, **given):
    """Prior and answers of labels drawn at random, two kinds of workers; 40 % of cells are answered."""
    generator, size = np.random.default_rng(seed), alphabet.size
    return DesignObjective(
        alphabet=alphabet,
        prior=generator.dirichlet(np.ones(size)),
        worker_model=generator.dirichlet(np.full(size, 0.5), size=(2, size)),
        participation_rate=0.4,
        **given,
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 6), PARTICIPATIONS)
def test_chosen_cuts_are_the_best_of_all(seed, epsilon, participation):
    """No other way to cut a scale of five points has a larger objective."""
    scale = Scale(0, 4)
    objective = random_question(seed, scale, participation=participation)
    scores = []
    for number in range(1, 5):
        for cuts in combinations(range(1, 5), number):
            other = QuantizedResponse(alphabet=scale, epsilon=epsilon, cuts=cuts, participation=participation)
            scores.append(objective.objective_of_channel(other.channel().probabilities))

    chosen = QuantizedResponse.for_objective(objective, epsilon)

    assert (epsilon, participation) == (chosen.epsilon, chosen.participation)
    assert max(scores) == pytest.approx(objective.objective_of_channel(chosen.channel().probabilities), rel=1e-9)


def test_labels_without_order_are_cut_from_frequent_to_rare():
    """Unordered labels: the best of all ways to cut their line by frequency, given as blocks of ascending codes."""
    objective = random_question(5, COLOURS)
    line = np.argsort(-objective.marginal_answer_distribution).tolist()
    scores = {}
    for number in range(1, 4):
        for cuts in combinations(range(1, 4), number):
            blocks = tuple(tuple(sorted(line[a:b])) for a, b in pairwise((0, *cuts, 4)))
            other = QuantizedResponse(alphabet=COLOURS, epsilon=1.0, blocks=blocks)
            scores[blocks] = objective.objective_of_channel(other.channel().probabilities)

    assert max(scores, key=scores.get) == QuantizedResponse.for_objective(objective, 1.0).blocks


def test_a_question_without_an_answer_still_has_blocks():
    """Where no report can say anything, every cut is as good and the fewest blocks are chosen."""
    objective = DesignObjective(alphabet=DIGITS, prior=np.eye(10)[0], worker_model=np.eye(10), participation_rate=0.1)

    assert 2 == len(QuantizedResponse.for_objective(objective, 1.0).partition)


RATINGS = Categories(("G", "P", "R", "X"), ordered=True)
BLOCKS_COLOURS = Categories(("red", "green", "blue"))


@pytest.mark.parametrize(
    ("alphabet", "block", "name"),
    [
        (Scale(0, 9), (0,), "0"),
        (Scale(0, 9), (1, 2, 3, 4, 5, 6, 7, 8, 9), "1..9"),
        (Scale(-1, 1, 0.5), (0, 1, 4), "-1..-0.5|1"),
        (Scale(0, 9), (8, 9, 10), "8..9|NULL"),
        (Scale(0, 9), (10,), "NULL"),
        (RATINGS, (0, 2, 3), "G|R..X"),
        (RATINGS, (3, 4), "X|NULL"),
        (BLOCKS_COLOURS, (0, 1), "red|green"),
    ],
)
def test_a_block_is_named_by_what_it_holds(alphabet, block, name):
    """One label keeps its name, neighbours of an order are a range, the rest is listed; NULL ends no range."""
    assert (name,) == block_names(alphabet, [block])


def test_labels_in_the_form_of_composed_names_do_not_collide():
    """Every set of labels with dots and bars in them, NULL too, has a name of its own; single labels keep theirs."""
    labels = ("a", "b", "a|b", "a..b", "b|a..b", "a|b|NULL")
    for ordered in (False, True):
        sets = [block for size in range(1, 8) for block in combinations(range(7), size)]

        names = block_names(Categories(labels, ordered), sets)

        assert len(sets) == len(set(names))
        assert (*labels, "NULL") == names[:7]


def test_blocks_of_single_labels_are_the_alphabet() -> None:
    """Ten labels that are as frequent, up to rounding, keep their order where no two are merged."""
    alphabet = Categories(tuple(f"label {k}" for k in range(10)))
    objective = DesignObjective(
        alphabet=alphabet,
        prior=np.full(10, 0.1),
        worker_model=one_coin_confusion(10, 2 / 3),
        participation="public",
    )

    channel = QuantizedResponse.for_objective(objective, 4.0).channel()

    assert alphabet == channel.report_alphabet
