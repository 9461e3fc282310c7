"""The channel: integer tables, exact epsilon, sampling."""

import json
import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crowdveil.channels import channel as channel_module
from crowdveil.channels.alphabet import NULL, Categories, Scale
from crowdveil.channels.channel import DENOMINATOR, Channel, exp_rounded_down, retained_share
from crowdveil.channels.guarantee import Guarantee
from crowdveil.errors import CertificateError, SettingsError
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.randomness import secure, seeded
from crowdveil.standalone.checks import CERTIFIED
from crowdveil.standalone.verification import epsilon_of
from tests.chi_square import chi_square_p_value

PRECISE = Context(prec=100)
YES_NO = Categories(("no", "yes"))
RATINGS = RandomizedResponse(alphabet=Categories(("G", "P", "R", "X"), ordered=True), epsilon=1.0).channel()


def names(size: int) -> tuple[str, ...]:
    """Return `size` distinct symbols."""
    return tuple(f"s{k}" for k in range(size))


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    """Draw a table of positive probabilities, indexed [input, output]."""
    shape = (draw(st.integers(2, 5)), draw(st.integers(2, 5)))
    entries = st.lists(st.floats(1e-4, 1.0), min_size=shape[1], max_size=shape[1])
    weights = np.array([draw(entries) for _ in range(shape[0])])
    return weights / weights.sum(axis=1, keepdims=True)


def from_table(table: np.ndarray, claim: Fraction | None) -> Channel:
    """Return a channel over public participation whose outputs are named s0, s1, ..."""
    alphabet = Categories(names(len(table)))
    return Channel.from_probabilities(alphabet, "public", names(table.shape[1]), table, claim, "random")


@pytest.mark.parametrize(
    ("outputs", "rows", "defect"),
    [
        (("a", "a"), ((1, 1), (1, 1)), "duplicate symbols"),
        (("a", "b"), ((1, 1),), "shape"),
        (("a", "b"), ((1, 1), (2,)), "shape"),
        (("a", "b"), (), "shape"),
        (("a", "b"), ((1, 1), (1.0, 1)), "non-integer"),
        (("a", "b"), ((True, 1), (1, 1)), "non-integer"),
        (("a", "b"), ((3, -1), (1, 1)), "negative entry"),
        (("a", "b"), ((1, 1), (1, 2)), "row sum"),
        (("a", "b"), ((1, 2), (2, 1)), "denominator"),
        (("a",), ((1,), (1,)), "denominator"),
        (("a", "b"), ((2, 0), (2, 0)), "empty column"),
    ],
)
def test_malformed_tables_are_refused_by_name(outputs, rows, defect):
    """A channel that is no table of probabilities over one power of two does not come into being."""
    with pytest.raises(CertificateError) as refused:
        Channel(YES_NO, "public", outputs, rows)

    assert defect == refused.value.defect


def test_null_is_an_input_exactly_when_participation_is_protected():
    """The last row belongs to NULL where participation is protected."""
    assert ("G", "P", "R", "X", NULL) == RATINGS.inputs
    assert ("no", "yes") == RandomizedResponse(alphabet=YES_NO, epsilon=1.0, participation="public").channel().inputs


def test_epsilon_is_the_worst_column_ratio():
    """Warner's 3:1 coin has epsilon ln 3; the guarantee names the participation."""
    coin = Channel(YES_NO, "public", ("no", "yes"), ((3, 1), (1, 3)))

    assert Fraction(3) == coin.ratio
    assert Guarantee(epsilon=epsilon_of(Fraction(3)), participation="public") == coin.guarantee


def test_a_report_that_rules_out_an_answer_has_infinite_epsilon():
    """A zero under a positive entry leaves no finite ratio."""
    revealing = Channel(YES_NO, "public", ("no", "yes"), ((2, 0), (1, 1)))

    assert (None, math.inf) == (revealing.ratio, revealing.epsilon)


def test_probabilities_are_the_integers_over_the_denominator():
    """The likelihood table is read-only and its rows sum to one."""
    table = RATINGS.probabilities

    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-15)
    assert RATINGS.rows[2][3] / DENOMINATOR == table[2, 3]
    assert not table.flags.writeable


@given(tables(), st.floats(0.001, 1.0))
@example(np.array([[0.9, 0.1], [0.1, 0.9]]), 1e-9)
def test_rounding_never_exceeds_the_claim(table, share):
    """Random tables rounded under their own ratio, or a smaller one, keep it."""
    worst = Fraction(float((table.max(axis=0) / table.min(axis=0)).max()))
    claim = 1 + (worst - 1) * Fraction(share)

    channel = from_table(table, claim)

    assert channel.ratio <= claim
    assert DENOMINATOR == channel.denominator


@given(tables())
def test_rounding_without_a_claim_is_nearest(table):
    """Every entry is off by less than one part in the denominator (plus the float table's own error)."""
    channel = from_table(table, None)

    np.testing.assert_allclose(channel.probabilities, table, rtol=1e-12, atol=1.0 / DENOMINATOR)


def test_a_claim_below_one_is_refused():
    """No table has a column ratio below 1."""
    with pytest.raises(SettingsError, match="at least 1"):
        from_table(np.full((2, 2), 0.5), Fraction(1, 2))


def test_an_output_too_rare_for_48_bits_is_refused():
    """A column that rounds to zero everywhere is named, not dropped."""
    with pytest.raises(CertificateError, match="empty column"):
        from_table(np.array([[1 - 1e-20, 1e-20], [1 - 1e-20, 1e-20]]), Fraction(2))


@given(tables(), st.sampled_from([*CERTIFIED, "laplace+designed"]))
def test_certificates_round_trip(table, mechanism):
    """Writing and reading a certificate gives the same table, names, epsilon and seal."""
    alphabet = Categories(names(len(table)))
    channel = Channel.from_probabilities(alphabet, "public", names(table.shape[1]), table, None, mechanism)
    text = json.dumps(channel.certificate())

    again = Channel.from_certificate(text)

    assert (channel.alphabet, channel.outputs, channel.rows) == (again.alphabet, again.outputs, again.rows)
    assert (channel.mechanism, channel.epsilon) == (again.mechanism, again.epsilon)
    assert text == json.dumps(again.certificate())


def test_retention_of_randomized_response_is_the_kept_share():
    """For k-ary randomized response the retention is the probability of sending the truth and not a uniform symbol."""
    kept = (math.e - 1) / (math.e + 4)

    assert pytest.approx(kept, abs=1e-12) == retained_share(RATINGS)
    assert 1.0 == retained_share(Channel.identity(YES_NO, "protected"))
    assert 0.0 == retained_share(Channel(YES_NO, "public", ("no", "yes"), ((1, 1), (1, 1))))


@given(st.floats(1e-6, 20))
def test_exponential_is_rounded_down(epsilon):
    """The rational is below exp(epsilon) (100 digits), by a relative 1e-54 at most."""
    true = Fraction(PRECISE.exp(Decimal(epsilon)))

    assert true * (1 - Fraction(1, 10**54)) < exp_rounded_down(epsilon) < true


@pytest.mark.parametrize("source", [seeded(1), secure()], ids=["seeded", "secure"])
@pytest.mark.parametrize("answer", range(5))
def test_samples_follow_the_table(answer, source):
    """Chi-square of 40,000 reports per answer against the row, both sources; false alarm 1e-7 each."""
    reports = RATINGS.sample(np.full(40_000, answer), source)

    assert chi_square_p_value(np.bincount(reports, minlength=5), RATINGS.probabilities[answer]) > 1e-7


def test_a_five_percent_wrong_table_is_rejected():
    """The same test at the same size rejects (p < 1e-7) a sampler that keeps 5 % too few answers; power above 0.999."""
    keep = RATINGS.rows[0][0]
    lost = keep // 20 // 4 * 4
    wrong = [
        tuple(entry - lost if i == j else entry + lost // 4 for j, entry in enumerate(row))
        for i, row in enumerate(RATINGS.rows)
    ]
    sampler = Channel(RATINGS.alphabet, RATINGS.participation, RATINGS.outputs, tuple(wrong))

    reports = sampler.sample(np.zeros(40_000, dtype=int), seeded(1))

    assert chi_square_p_value(np.bincount(reports, minlength=5), RATINGS.probabilities[0]) < 1e-7


def test_reports_of_different_cells_are_independent():
    """Chi-square of 20,000 pairs of neighbouring reports against the product of their rows; false alarm 1e-7."""
    reports = RATINGS.sample(np.tile([0, 4], 20_000), seeded(2)).reshape(-1, 2)
    pairs = np.bincount(reports[:, 0] * 5 + reports[:, 1], minlength=25)

    assert chi_square_p_value(pairs, np.outer(RATINGS.probabilities[0], RATINGS.probabilities[4]).ravel()) > 1e-7


@pytest.mark.parametrize("answer", range(5))
def test_sampling_reads_six_bytes_per_cell_whatever_the_answer(monkeypatch, answer):
    """The amount of randomness read does not depend on the answer or on the report."""
    read: list[int] = []
    monkeypatch.setattr("os.urandom", lambda size: read.append(size) or b"\xab" * size)

    RATINGS.sample(np.full(1000, answer), secure())

    assert [6000] == read


def test_every_threshold_belongs_to_the_next_column():
    """A word equal to a cumulative count starts the next column, the word before it ends the last one."""
    ends = np.cumsum(RATINGS.rows[1])[:-1]

    class Scripted:
        simulation = True

        def words(self, count: int) -> np.ndarray:
            return np.stack([ends - 1, ends], axis=1).ravel().astype(np.uint64)

    reports = RATINGS.sample(np.full(8, 1), Scripted())

    assert [0, 1, 1, 2, 2, 3, 3, 4] == reports.tolist()


def test_sampling_in_parts_equals_sampling_at_once(monkeypatch):
    """Splitting many cells into parts changes no report."""
    answers = np.arange(1000) % 5
    whole = RATINGS.sample(answers, seeded(3))
    monkeypatch.setattr(channel_module, "CELLS_PER_BATCH", 64)

    assert whole.tolist() == RATINGS.sample(answers, seeded(3)).tolist()


@pytest.mark.parametrize("code", [-1, 5])
def test_codes_outside_the_inputs_are_refused(code):
    """A code that is no input is refused, not wrapped round."""
    with pytest.raises(SettingsError, match=r"0\.\.4"):
        RATINGS.sample(np.array([0, code]), secure())


def test_only_channels_with_finite_epsilon_are_sampled():
    """There is no unprotected mode."""
    with pytest.raises(SettingsError, match="epsilon is finite"):
        Channel.identity(YES_NO, "public").sample(np.array([0]), secure())


def test_only_channels_in_48_bits_are_sampled():
    """A table over another denominator is refused; the hint names what rounds it."""
    coin = Channel(YES_NO, "public", ("no", "yes"), ((3, 1), (1, 3)))

    with pytest.raises(SettingsError, match="from_probabilities"):
        coin.sample(np.array([0]), secure())


@pytest.mark.parametrize("participation", ["public", "protected"])
def test_identity_sends_every_input_as_it_is(participation):
    """The identity's table is a diagonal over all inputs."""
    identity = Channel.identity(YES_NO, participation)

    assert identity.inputs == identity.outputs
    np.testing.assert_array_equal(np.eye(len(identity.inputs)), identity.probabilities)


def test_reports_are_in_the_answers_alphabet_where_the_symbols_are_labels() -> None:
    """Non-NULL reports are the answers' own alphabet, or categories named by the outputs where these are others."""
    scale = Scale(0, 2)
    half = DENOMINATOR // 2
    blocks = Channel(scale, "protected", ("0", "1..2", "NULL"), ((half, half // 2, half // 2),) * 4)

    assert scale == Channel.identity(scale, "protected").report_alphabet
    assert Categories(("0", "1..2"), ordered=True) == blocks.report_alphabet
