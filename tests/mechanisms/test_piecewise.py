"""Piecewise, OGPM, square wave and staircase: published figures, the lossless cut, NULL, and the loss by rounding."""

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import exp_rounded_down
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import MECHANISMS, Ogpm, Piecewise, RandomizedResponse, SquareWave, Staircase
from crowdveil.mechanisms.piecewise import MAX_ANSWERS, windows_of_answers, with_null_symbol
from tests.mechanisms.test_mechanism_contract import below_exp

KINDS = (Piecewise, Ogpm, SquareWave, Staircase)
WINDOWS = (Piecewise, Ogpm, SquareWave)


def test_windows_have_the_published_widths():
    """At epsilon 1 square wave has b = .256083, and the others a window of .377541."""
    wave = SquareWave.window_width(1.0)

    assert 0.256083 == pytest.approx(float(wave / (1 - wave) / 2), abs=5e-7)
    assert 0.377541 == pytest.approx(float(Ogpm.window_width(1.0)), abs=5e-7)
    assert Ogpm.window_width(1.0) == Piecewise.window_width(1.0)


def test_square_wave_of_three_answers():
    """At epsilon 1 the first row, the share of NULL, and NULL sent as NULL have their printed values."""
    public = SquareWave(alphabet=Scale(0, 2), epsilon=1.0, participation="public").channel().probabilities
    protected = SquareWave(alphabet=Scale(0, 2), epsilon=1.0).channel().probabilities

    assert sorted([0.209012, 0.203926, 0.005086, 0.568153, 0.013824]) == pytest.approx(sorted(public[0]), abs=5e-7)
    assert (0.176343, 0.479349) == pytest.approx((protected[0, -1], protected[-1, -1]), abs=5e-7)


@pytest.mark.parametrize(("epsilon", "rank"), [(0.5, 7), (1.0, 9), (2.0, 9), (4.0, 11)])
def test_ogpm_merges_answers_at_the_ends(epsilon, rank):
    """Answers near an end of a scale of 11 have one row."""
    table = Ogpm(alphabet=Scale(0, 10), epsilon=epsilon, participation="public").channel().probabilities

    assert rank == np.linalg.matrix_rank(table)


@pytest.mark.parametrize("labels", [2, 5])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_randomized_response_with_null_is_randomized_response_of_one_label_more(labels, epsilon):
    """NULL as a symbol of its own beside K labels gives the table of K + 1 symbols."""
    names = Categories(tuple("abcdef"[:labels]))
    one = RandomizedResponse(alphabet=names, epsilon=epsilon, participation="public").channel().probabilities
    more = RandomizedResponse(alphabet=names, epsilon=epsilon, participation="protected").channel().probabilities

    assert more == pytest.approx(with_null_symbol(one, math.exp(epsilon)), abs=1e-12)


@pytest.mark.parametrize("participation", ["protected", "public"])
@pytest.mark.parametrize(("answers", "most"), [(11, 1e-11), (101, 1e-10)])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("kind", KINDS)
def test_rounding_loses_nearly_nothing(kind, epsilon, answers, most, participation):
    """The integers reach epsilon but for a part of 1e-11 on 11 answers and 1e-10 on 101, and never exceed it."""
    channel = kind(alphabet=Scale(0, answers - 1), epsilon=epsilon, participation=participation).channel()

    assert channel.ratio <= exp_rounded_down(epsilon)
    assert epsilon * (1 - most) <= channel.epsilon


@settings(max_examples=40, deadline=None)
@given(kind=st.sampled_from(KINDS), answers=st.integers(2, 40), epsilon=st.floats(1e-3, 16))
def test_any_epsilon_is_kept_and_nearly_used(kind, answers, epsilon):
    """On any scale and at any epsilon the exact loss is at most epsilon, and at least .99 of it."""
    for participation in ("protected", "public"):
        channel = kind(alphabet=Scale(0, answers - 1), epsilon=epsilon, participation=participation).channel()

        assert channel.ratio <= exp_rounded_down(epsilon)
        assert 0.99 * epsilon <= channel.epsilon


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_the_cut_is_lossless(kind, epsilon):
    """A symbol's probabilities are the integrals of the density over its points, whose proportions are the symbol's."""
    answers, fine = 7, 20_000
    width = kind.window_width(epsilon)
    windows = windows_of_answers(kind, answers, width)
    points = (np.arange(fine) + 0.5) / fine
    inside = np.array([(float(low) <= points) & (points <= float(high)) for low, high in windows])
    ratio, share = math.exp(epsilon), float(width)
    density = np.where(inside, ratio, 1.0) / (share * ratio + 1 - share)
    table = kind(alphabet=Scale(0, answers - 1), epsilon=epsilon, participation="public").channel().probabilities
    # Masses of sets of points with the same windows, by any order of the symbols.
    codes = (2 ** np.arange(answers)) @ inside
    masses = np.array([density[:, codes == code].mean(axis=1) * (codes == code).mean() for code in np.unique(codes)])

    assert len(masses) == table.shape[1] <= 2 * answers - 1
    assert np.sort(masses, axis=0) == pytest.approx(np.sort(table.T, axis=0), abs=4 / fine * ratio)


def test_ends_of_windows_that_nearly_meet_do_not_cost_epsilon():
    """Windows whose ends nearly meet, here by 1e-9 of the scale, still have a table with nearly all of epsilon."""
    low, high = 0.5, 3.0
    for _ in range(60):  # 10 windows of piecewise have common ends where w = 2 / 11
        middle = (low + high) / 2
        low, high = (middle, high) if Piecewise.window_width(middle) > Fraction(2, 11) else (low, middle)
    for epsilon in (low, low + 1e-9, low - 1e-9):
        channel = Piecewise(alphabet=Scale(0, 9), epsilon=epsilon).channel()

        assert epsilon * (1 - 1e-6) <= channel.epsilon <= epsilon


def test_noise_of_the_staircase_has_two_steps():
    """Of 11 answers at epsilon 1 the noise -3..3 is e times as likely as the other noise within the scale."""
    table = Staircase(alphabet=Scale(0, 10), epsilon=1.0, participation="public").channel().probabilities

    assert [math.e] * 3 == pytest.approx((table[5, [4, 5, 8]] / table[5, 1]).tolist())
    assert 1.0 == pytest.approx(table[5, 9] / table[5, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_labels_without_an_order_are_refused(kind):
    """A mechanism for numbers takes ordered labels, and no others."""
    assert kind(alphabet=Categories(("low", "high"), ordered=True), epsilon=1.0).channel().epsilon <= 1
    with pytest.raises(SettingsError, match="ordered labels"):
        kind(alphabet=Categories(("no", "yes")), epsilon=1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_longer_scale_than_a_certificate_holds_is_refused(kind):
    """More answers than have room for two symbols each are refused with a hint."""
    assert MECHANISMS[kind.name] is kind
    with pytest.raises(SettingsError, match="coarser step"):
        kind(alphabet=Scale(0, MAX_ANSWERS), epsilon=1.0)


def window_of_page(name, epsilon, x):
    """Return width and start of the window of an answer as the page on `piecewise` prints them."""
    ratio = math.exp(epsilon)
    width = 1 / (math.exp(epsilon / 2) + 1)
    if name == "square-wave":
        half = (epsilon * ratio - ratio + 1) / (2 * ratio * (ratio - 1 - epsilon))
        width = 2 * half / (1 + 2 * half)
    if name == "ogpm":
        return width, min(max(x - width / 2, 0.0), 1 - width)
    return width, x * (1 - width)


def windows_by_loops(name, epsilon, answers):
    """Return the table of the page by loops over pieces and answers: by the windows that hold a piece."""
    ratio = math.exp(epsilon)
    found: dict[tuple[bool, ...], list[float]] = {}
    windows = [window_of_page(name, epsilon, code / (answers - 1)) for code in range(answers)]
    ends = sorted({0.0, 1.0, *(end for width, start in windows for end in (start, start + width))})
    for low, high in pairwise(ends):
        middle, row, held = (low + high) / 2, [], []
        for width, start in windows:
            inside = start <= middle <= start + width
            height = ratio / (width * ratio + 1 - width)
            row.append((high - low) * (height if inside else height / ratio))
            held.append(inside)
        before = found.get(tuple(held), [0.0] * answers)
        found[tuple(held)] = [one + other for one, other in zip(before, row, strict=True)]
    columns = [column for held, column in found.items() if max(column) > 1e-12]
    return [[column[code] for column in columns] for code in range(answers)]


def staircase_by_loops(epsilon, answers):
    """Return the table of the page by a loop over noise, cut where it is below e^-40."""
    far = answers - 1
    near = math.ceil(far / (1 + math.exp(epsilon / 2)))
    top = 1 / (2 * near - 1 + 2 * far / (math.exp(epsilon) - 1))
    table = [[0.0] * answers for _ in range(answers)]
    most = far * math.ceil(40 / epsilon + 2)
    for answer, noise in product(range(answers), range(-most, most + 1)):
        steps = math.floor((abs(noise) + far - near) / far)
        table[answer][min(max(answer + noise, 0), far)] += top * math.exp(-epsilon * steps)
    return table


def null_by_loops(table, epsilon):
    """Return the table of the page with NULL as one more answer and symbol."""
    ratio, largest = math.exp(epsilon), [max(column) for column in zip(*table, strict=True)]
    least = sum(largest) / ratio
    share = (1 - least) / (ratio - least)
    answers = [[(1 - share) * entry for entry in row] + [share] for row in table]
    return [*answers, [(1 - share) * entry / ratio for entry in largest] + [share * ratio]]


@pytest.mark.parametrize("participation", ["protected", "public"])
@pytest.mark.parametrize("answers", [2, 3, 8, 11])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5, 4.0])
@pytest.mark.parametrize("kind", KINDS)
def test_tables_are_those_of_the_equations_on_the_pages(kind, epsilon, answers, participation):
    """Each table equals the printed equations as loops, up to the order of its symbols."""
    name = kind.name
    table = staircase_by_loops(epsilon, answers) if kind is Staircase else windows_by_loops(name, epsilon, answers)
    if participation == "protected":
        table = null_by_loops(table, epsilon)
    channel = kind(alphabet=Scale(0, answers - 1), epsilon=epsilon, participation=participation).channel()
    places = np.sqrt(np.arange(2, 2 + len(table)))  # columns of one table have different sums with these weights
    found, expected = (
        columns[np.argsort(columns @ places)] for columns in (channel.probabilities.T, np.array(table).T)
    )

    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("participation", ["protected", "public"])
@pytest.mark.parametrize(
    "alphabet",
    [Scale(0, 1), Scale(-100, 100, 20), Scale(0, 0.3, 0.1), Scale(0, 60), Categories(tuple("abcde"), ordered=True)],
    ids=str,
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_ratio_of_the_integers_is_at_most_that_of_epsilon(kind, alphabet, participation):
    """For every epsilon of a grid the ratios of all integers of a column are at most e^epsilon, in exact arithmetic."""
    for epsilon in (1e-4, 0.01, 0.1, 0.5, 1.0, 2.0, 3.7, 8.0, 14.0, 20.0):
        channel = kind(alphabet=alphabet, epsilon=epsilon, participation=participation).channel()
        worst = max(Fraction(max(column), min(column)) for column in zip(*channel.rows, strict=True))

        assert 1 < worst == channel.ratio <= below_exp(epsilon)


@pytest.mark.parametrize("kind", KINDS)
def test_on_another_scale_epsilon_is_kept(kind):
    """A mechanism on another scale has the other answers, and the same epsilon and participation."""
    first = kind(alphabet=Scale(0, 10), epsilon=0.7, participation="public")

    assert kind(alphabet=Scale(0, 100, 5), epsilon=0.7, participation="public") == first.on_scale(Scale(0, 100, 5))
