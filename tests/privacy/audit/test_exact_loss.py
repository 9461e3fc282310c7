"""Exact losses of mechanisms, and of the columns of their tables."""

import math
from fractions import Fraction

import numpy as np
import pytest

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import Laplace, RandomizedResponse
from crowdveil.privacy.audit.columns import fit_columns, lowest_bit
from crowdveil.privacy.audit.exact_loss import exact_loss, worst_loss
from crowdveil.privacy.audit.outputs import NUMBERS, read_outputs
from tests.mechanisms.examples import EXAMPLES

CHANNELS = [channel for one in EXAMPLES if (channel := one.channel()) is not None]


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: f"{channel.mechanism}-{channel.participation}")
def test_the_worst_pair_has_the_worst_ratio_of_the_table(channel):
    """Over values and participation the exact loss is the channel's epsilon, and the named pair attains it."""
    losses = [exact_loss(channel, "value")]
    if channel.protects_participation:
        losses.append(exact_loss(channel, "participation"))
    worst = max(losses, key=lambda loss: loss.epsilon)
    rows = [channel.rows[channel.inputs.index(name)] for name in (worst.first, worst.second)]
    report = channel.outputs.index(worst.report)

    assert channel.epsilon == worst.epsilon
    assert channel.ratio == Fraction(rows[0][report], rows[1][report])


def test_neighbours_restrict_the_pairs():
    """A laplace channel with a public replacement of NULL in the middle loses half as much about participation."""
    channel = Laplace(alphabet=Scale(0, 4), epsilon=2.0, null_value=2.0).channel()

    assert exact_loss(channel, "value").epsilon == pytest.approx(2.0, rel=1e-9)
    assert exact_loss(channel, "participation").epsilon == pytest.approx(1.0, rel=1e-9)


def test_a_worker_loses_the_sum_of_the_cells():
    """All cells can have their worst report at once."""
    channel = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0).channel()

    assert exact_loss(channel, "worker", 7).epsilon == pytest.approx(7.0, rel=1e-9)
    assert worst_loss([channel, channel], "worker", 7).epsilon == exact_loss(channel, "worker", 7).epsilon


def test_a_report_that_rules_an_answer_out_has_infinite_loss():
    """The identity channel."""
    loss = exact_loss(Channel.identity(Categories(("no", "yes")), "public"))

    assert math.isinf(loss.epsilon)
    assert {loss.first, loss.second} == {"no", "yes"}


def test_public_participation_has_no_neighbours_in_participation():
    """Nothing is claimed, so nothing is compared."""
    channel = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0, participation="public").channel()

    with pytest.raises(SettingsError, match="participation is public"):
        exact_loss(channel, "participation")


def names(first, second) -> list[str]:
    """Return the names of the columns of two samples."""
    return [column.name for column in fit_columns(read_outputs(first), read_outputs(second))]


def differing(first, second) -> list[str]:
    """Return the names of the columns that are constant in each sample and differ between them."""
    both = read_outputs(first), read_outputs(second)
    found = []
    for column in fit_columns(*both):
        one, two = (np.unique(column.read(outputs)) for outputs in both)
        if len(one) == len(two) == 1 and one[0] != two[0]:
            found.append(column.name)
    return found


def test_an_array_has_one_part_with_a_number_per_position():
    """Rows of an array are draws."""
    outputs = read_outputs(np.arange(6).reshape(3, 2))
    part = outputs.part(NUMBERS)

    assert (3, [NUMBERS]) == (outputs.draws, list(outputs.parts))
    assert [2, 2, 2] == part.size.tolist()
    assert [[0, 1], [2, 3], [4, 5]] == part.numbers.tolist()
    assert 3 == len(set(part.content.tolist()))


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ([[1, 2]] * 3, [[1, 2, 3]] * 3, "the length"),
        ([np.zeros((2, 3))] * 3, [np.zeros((3, 2))] * 3, "type and shape"),
        (["a,b\nc\n"] * 3, ["a,b\nd\n"] * 3, "the place of 'c' (-1: absent)"),
        (["a\nb\n"] * 3, ["b\na\n"] * 3, "the place of 'a' (-1: absent)"),
        ([b"\x00\x01"] * 3, [b"\x00\x02"] * 3, "byte 2"),
        ([{"x": "1"}] * 3, [{"x": "1", "y": "2"}] * 3, "the set of parts"),
        ([{"x": "1"}] * 3, [{"x": "1", "y": ""}] * 3, "the length of y"),
        ([1.5] * 3, [{"failure": "no"}] * 3, "the set of parts"),
        ([0.5] * 3, [0.1] * 3, "the lowest bit of number 1"),
        ([{1, 2}] * 3, [{1, 3}] * 3, "the whole"),
    ],
)
def test_every_kind_of_difference_has_a_column(first, second, name):
    """Length, shape, order of lines, bytes, names of parts, empty files, failures, last bits and other types."""
    assert name in differing(first, second)


def test_equal_outputs_have_no_column_that_differs():
    """The same outputs give no difference, whatever their form."""
    for outputs in ([[1, 2]] * 4, ["text"] * 4, [{"a": b"1", "b": 2.5}] * 4, [None] * 4):
        assert [] == differing(outputs, outputs)


def test_the_lowest_bit_is_the_exponent_of_the_last_binary_digit():
    """0.75 is an odd multiple of 2^-2, 6 of 2^1; zero and infinity have 2000."""
    numbers = np.array([0.75, 6.0, 1.0, -0.5, 2.0**-1040, 0.1, 0.0, np.inf, np.nan])

    assert [-2, 1, 0, -1, -1040, -55, 2000, 2000, 2000] == lowest_bit(numbers).tolist()


MIXED = [
    1, 2.5, [1, 2], [1.0, 2.0, -1.0], (True, False), np.zeros((2, 2)), "a,b\nc", b"", None, {"x": 1},
    {"x": "1", "y": 2}, {"failure": "no"}, np.float32(0.1), [np.nan, 1.0], {"x": [1, 2], "y": None}, "c,b", {1, 2},
    2**60, [],
]  # fmt: skip
"""Outputs of all kinds; none is usual for a single function."""


def test_a_column_is_a_function_of_the_single_output():
    """The number of a draw does not depend on the other draws: else the same outputs could seem different.

    Every column that is fitted on all kinds of outputs gives an output alone the number that it gives it among others.
    """
    everything, backwards = read_outputs(MIXED), read_outputs(MIXED[::-1])
    for column in fit_columns(everything, read_outputs(MIXED[3:] + MIXED[:9])):
        among = column.read(everything).astype(float)

        np.testing.assert_array_equal(among[::-1], column.read(backwards).astype(float))
        for number, output in enumerate(MIXED):
            alone = column.read(read_outputs([output])).astype(float)
            np.testing.assert_array_equal(alone, among[[number]], err_msg=f"{column.name}: {output!r}")


def test_bytes_beyond_the_shorter_output_are_compared():
    """Texts of different lengths are padded with a value that no byte has."""
    part = read_outputs(["ab", "a"]).part("")

    assert [[97, 98], [97, -1]] == part.numbers.tolist()


def test_a_part_that_no_draw_has_is_absent():
    """A file that occurs in later draws only can be read from earlier ones."""
    outputs = read_outputs([{"a": 1}, {"a": 2}])

    assert [-1, -1] == outputs.part("b").size.tolist()
    assert "the set of parts" in names([{"a": 1}], [{"b": 1}])
