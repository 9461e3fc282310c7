"""Exact losses of mechanisms and of columns, and claims that they refute."""

import math
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from experiments.audit import must_catch

from crowdveil.campaign.statement.claims import audit_mechanism
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import Laplace, RandomizedResponse, TwoLayer
from crowdveil.privacy.audit.black_box import BlackBoxAudit, Pair, audit_black_box
from crowdveil.privacy.audit.columns import distinguishing_columns, lowest_bit_exponent
from crowdveil.privacy.audit.exact_loss import exact_loss, worst_loss
from crowdveil.privacy.audit.outputs import NUMBERS, drawn_outputs_by_part
from crowdveil.published import MatrixFactorizationPublished
from crowdveil.randomness import seeded
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
    return [
        column.name for column in distinguishing_columns(drawn_outputs_by_part(first), drawn_outputs_by_part(second))
    ]


def differing(first, second) -> list[str]:
    """Return the names of the columns that are constant in each sample and differ between them."""
    both = drawn_outputs_by_part(first), drawn_outputs_by_part(second)
    found = []
    for column in distinguishing_columns(*both):
        one, two = (np.unique(column.read(outputs)) for outputs in both)
        if len(one) == len(two) == 1 and one[0] != two[0]:
            found.append(column.name)
    return found


def test_an_array_has_one_part_with_a_number_per_position():
    """Rows of an array are draws."""
    outputs = drawn_outputs_by_part(np.arange(6).reshape(3, 2))
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

    assert [-2, 1, 0, -1, -1040, -55, 2000, 2000, 2000] == lowest_bit_exponent(numbers).tolist()


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
    everything, backwards = drawn_outputs_by_part(MIXED), drawn_outputs_by_part(MIXED[::-1])
    for column in distinguishing_columns(everything, drawn_outputs_by_part(MIXED[3:] + MIXED[:9])):
        among = column.read(everything).astype(float)

        np.testing.assert_array_equal(among[::-1], column.read(backwards).astype(float))
        for number, output in enumerate(MIXED):
            alone = column.read(drawn_outputs_by_part([output])).astype(float)
            np.testing.assert_array_equal(alone, among[[number]], err_msg=f"{column.name}: {output!r}")


def test_bytes_beyond_the_shorter_output_are_compared():
    """Texts of different lengths are padded with a value that no byte has."""
    part = drawn_outputs_by_part(["ab", "a"]).part("")

    assert [[97, 98], [97, -1]] == part.numbers.tolist()


def test_a_part_that_no_draw_has_is_absent():
    """A file that occurs in later draws only can be read from earlier ones."""
    outputs = drawn_outputs_by_part([{"a": 1}, {"a": 2}])

    assert [-1, -1] == outputs.part("b").size.tolist()
    assert "the set of parts" in names([{"a": 1}], [{"b": 1}])


def audit(function, first, second, *, epsilon: float, delta: float = 0.0, draws: int) -> BlackBoxAudit:
    """Return the audit of a function on two inputs."""
    pair = Pair.of_function(function, first, second)
    return audit_black_box([pair], epsilon=epsilon, delta=delta, draws=draws)


@pytest.mark.slow
def test_published_matrix_factorization_reveals_participation():
    """Eight tasks, three dimensions, participation neighbours: the size of the entries shows who answered."""
    mechanism = MatrixFactorizationPublished(alphabet=Scale(0, 9), epsilon=1.0, tasks=8, dimensions=3, ridge=1e-6)

    result = audit_mechanism(mechanism, "participation", tasks=8, draws=1000, source=seeded(1))

    assert result.refuted
    assert result.lower_bound_of_epsilon > 3


@pytest.mark.slow
def test_published_matrix_factorization_protects_values_of_known_tasks():
    """With value neighbours alone the claim is not refuted: there Theorem 4 is right."""
    mechanism = MatrixFactorizationPublished(alphabet=Scale(0, 9), epsilon=1.0, tasks=8, dimensions=3, ridge=1e-6)

    result = audit_mechanism(mechanism, "value", tasks=8, draws=1500, source=seeded(1))

    assert result.lower_bound_of_epsilon <= 0.9
    assert (None, False) == (result.exact, result.refuted)


@pytest.mark.slow
def test_two_layer_with_fifty_answers():
    """Theorem 6.3 claims 1 for each of 50 answers with one flip probability; the exact loss is 3.91."""
    mechanism = TwoLayer.as_published(
        alphabet=Categories(("no", "yes")), epsilon=1.0, participation="public", answers=50
    )

    result = audit_mechanism(mechanism, tasks=50, draws=6000, source=seeded(2))

    assert result.claimed_epsilon == pytest.approx(1.0)
    assert result.refuted
    assert 1.5 < result.lower_bound_of_epsilon <= result.exact


def test_unary_encoding_with_a_missing_line():
    """The exact loss is ln(0.765 * 0.622 / (0.378 * 0.235)) = 1.68, not 1."""
    result = audit(must_catch.unary_encoding(labels=4, epsilon=1.0), 0, 1, epsilon=1.0, draws=8000)

    assert 1.0 < result.finding.epsilon <= 1.68


def test_floating_point_laplace():
    """The last bits of a double tell answer 0 from answer 9."""
    result = audit(must_catch.floating_point_laplace(high=9, epsilon=1.0), 0.0, 9.0, epsilon=1.0, draws=4000)

    assert result.refuted
    assert "lowest bit" in result.finding.event


def test_length_leak():
    """A report as long as the input."""
    result = audit(must_catch.length_leak(epsilon=1.0), [0, 1], [0, 1, 0], epsilon=1.0, draws=400)

    assert result.refuted
    assert "the length" in result.finding.event


def test_randomized_response_with_a_wrong_denominator():
    """With four labels the loss is ln(3e / 2) = 1.41."""
    result = audit(must_catch.wrong_denominator(labels=4, epsilon=1.0), 0, 1, epsilon=1.0, draws=8000)

    assert 1.0 < result.finding.epsilon <= 1.41


def test_repeated_randomized_response_of_an_accountant():
    """dp_accounting gives 50 uses of one event the epsilon of a single use; the audit refutes it."""
    epsilon = 1.7918
    event = dp_accounting.RandomizedResponseDpEvent(noise_parameter=2 / (1 + math.exp(epsilon)), num_buckets=2)
    claims = []
    for uses in (1, 50):
        accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
        accountant.compose(event, uses)
        claims.append(accountant.get_epsilon(1e-6))
    box = must_catch.repeated_response(uses=50, epsilon=epsilon)

    once = audit(must_catch.repeated_response(uses=1, epsilon=epsilon), 0, 1, epsilon=claims[0], draws=4000)
    often = audit(box, 0, 1, epsilon=claims[1], delta=1e-6, draws=400)

    assert claims[0] == pytest.approx(claims[1])
    assert (False, True) == (once.refuted, often.refuted)
    assert often.finding.delta > 0.5


@pytest.mark.slow
def test_synthetic_release_with_visible_failures():
    """Theorem 2 of Huai et al. claims (2.61, 0.11) for any number of records; how many passed shows one claim."""
    epsilon, delta = 1 + math.log1p(4), 6 * math.exp(-4)

    result = audit(must_catch.visible_failures(claims=6), 10.0, 90.0, epsilon=epsilon, delta=delta, draws=600)

    assert result.refuted


@pytest.mark.slow
def test_a_task_list_taken_from_the_claims():
    """A task is listed only if somebody made a claim on it."""
    result = audit(must_catch.task_list_from_claims(epsilon=1.0), ["b"], [], epsilon=1.0, draws=100)

    assert result.refuted


@pytest.mark.slow
def test_candidates_of_full_precision():
    """On the real numbers the ratio of densities is at most 1.8; the last bits show the claim behind a candidate."""
    epsilon = math.log(1 + 200 * 0.5 / (50 * math.sqrt(2 * math.pi)))
    box = must_catch.full_precision_candidates(bandwidth=50)

    result = audit(box, 0.0, 64.0, epsilon=epsilon, draws=40_000)

    assert result.refuted
    assert "lowest bit" in result.finding.event


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ValueError, TypeError, KeyError, AssertionError])
def test_an_exception_is_an_output(kind):
    """A function that fails for one input only is refuted by its failure."""

    def box(value: int) -> int:
        if value:
            raise kind("no report")
        return 0

    result = audit(box, 0, 1, epsilon=1.0, draws=200)

    assert result.refuted


def test_an_output_of_another_type_is_an_event():
    """Equal numbers as list and as array differ in nothing but type."""
    result = audit(lambda value: [1.0, 2.0] if value else np.array([1, 2]), 0, 1, epsilon=1.0, draws=200)

    assert result.refuted
