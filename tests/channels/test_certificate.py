"""Certificates of channels, and the rounding of their tables."""

import copy
import json
import math
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories
from crowdveil.channels.certificate import LISTS_MARK, parse_certificate, simulation_mark
from crowdveil.channels.channel import Channel
from crowdveil.channels.rounding import (
    float_rounded_up,
    format_bound,
    format_delta,
    format_odds,
    format_three_decimals,
    lower_exact_value,
    sum_rounded_up,
)
from crowdveil.errors import CertificateError
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.standalone.checks import MAX_CERTIFICATE_BYTES, digest
from crowdveil.standalone.verification import epsilon_of

CASES = json.loads((Path(__file__).parent.parent / "vectors" / "certificates.json").read_text(encoding="utf-8"))
DEFECTS = {
    "not json",
    "format",
    "alphabet",
    "text",
    "mechanism",
    "shape",
    "oversize",
    "duplicate symbols",
    "non-integer",
    "negative entry",
    "row sum",
    "denominator",
    "empty column",
    "zero entry",
    "ratio",
    "hash",
}


def certificate() -> dict[str, object]:
    """Return a sound certificate."""
    alphabet = Categories(("no", "yes"))
    return RandomizedResponse(alphabet=alphabet, epsilon=1.0, participation="public").channel().certificate()


@pytest.mark.parametrize("case", CASES["positive"], ids=lambda case: case["name"])
def test_sound_certificates_are_accepted(case):
    """The shared sound certificates give the channel with the stated symbols, ratio, epsilon and seal."""
    channel = Channel.from_certificate(case["text"])

    assert case["inputs"] == list(channel.inputs)
    assert case["outputs"] == list(channel.outputs)
    assert Fraction(*case["ratio"]) == channel.ratio
    assert case["epsilon"] == channel.epsilon
    assert case["sha256"] == channel.certificate()["sha256"]


@pytest.mark.parametrize("case", CASES["negative"], ids=lambda case: case["name"])
def test_malformed_certificates_are_refused_by_name(case):
    """The shared malformed certificates are refused with the stated defect."""
    with pytest.raises(CertificateError) as refused:
        Channel.from_certificate(case["text"])

    assert case["defect"] == refused.value.defect


def test_the_shared_cases_cover_every_defect():
    """No defect is without a case, and no case has an unknown defect."""
    assert DEFECTS == {case["defect"] for case in CASES["negative"]}


def test_huge_text_is_refused_unread():
    """More bytes than the limit are refused before parsing, as text and as bytes."""
    for text in (" " * (MAX_CERTIFICATE_BYTES + 1), b" " * (MAX_CERTIFICATE_BYTES + 1)):
        with pytest.raises(CertificateError) as refused:
            parse_certificate(text)
        assert "oversize" == refused.value.defect


def test_layout_and_field_order_do_not_matter():
    """The seal is over the content: spaces, line ends and the order of fields are free."""
    shuffled = dict(reversed(certificate().items()))

    assert certificate() == parse_certificate(json.dumps(shuffled, indent=3))


def test_a_seal_covers_every_field():
    """Changing any one field changes the digest."""
    sealed = certificate()
    digests = {digest({**sealed, name: "changed"}) for name in sealed if name != "sha256"}

    assert len(sealed) - 1 == len(digests)
    assert sealed["sha256"] not in digests
    assert sealed["sha256"] == digest({**sealed, "sha256": "changed"})


@pytest.mark.parametrize("mechanism", ["", "epsilon=0.01", "two-layer", "laplace ", "laplace" + "+laplace" * 16])
def test_what_would_be_refused_is_not_sealed(mechanism):
    """A channel with another mechanism than a certificate can name is refused where the certificate is made."""
    channel = Channel.from_certificate(json.dumps(certificate()))

    with pytest.raises(CertificateError) as refused:
        replace(channel, mechanism=mechanism).certificate()

    assert "mechanism" == refused.value.defect
    assert (
        "designed"
        == Channel.from_certificate(json.dumps(replace(channel, mechanism="designed").certificate())).mechanism
    )


@pytest.mark.parametrize("addition", ["+laplace" * 15, LISTS_MARK, *map(simulation_mark, (0, 7, 10**30))])
def test_the_longest_name_and_every_mark_are_read_again(addition):
    """A certificate can name sixteen mechanisms, that lists were taken from the answers, and a seed of any size."""
    channel = replace(Channel.from_certificate(json.dumps(certificate())), mechanism="laplace" + addition)

    assert channel.mechanism == Channel.from_certificate(json.dumps(channel.certificate())).mechanism


@given(st.integers(0, 1), st.integers(0, 1), st.integers(1, 1000))
def test_a_shifted_count_cannot_pass(row, column, amount):
    """Moving counts inside a row, resealed, is refused unless the table still keeps the claim."""
    changed: dict[str, Any] = copy.deepcopy(certificate())
    rows = changed["rows"]
    rows[row][column] += amount
    rows[row][1 - column] -= amount
    text = json.dumps({**changed, "sha256": digest(changed)})
    worst = max(Fraction(max(pair), min(pair)) for pair in zip(*rows, strict=True))

    if worst <= Fraction(*changed["ratio"]):
        assert worst == Channel.from_certificate(text).ratio
    else:
        with pytest.raises(CertificateError, match="ratio"):
            Channel.from_certificate(text)


def test_a_channel_without_finite_epsilon_has_no_certificate():
    """The identity is refused for its zeros."""
    with pytest.raises(CertificateError, match="zero entry"):
        Channel.identity(Categories(("a", "b")), "public").certificate()


def test_a_channel_in_another_denominator_has_no_certificate():
    """Only the device's denominator is certified."""
    coin = Channel(Categories(("a", "b")), "public", ("a", "b"), ((1, 1), (1, 1)))

    with pytest.raises(CertificateError, match="denominator"):
        coin.certificate()


PRECISE = Context(prec=100)
losses = st.just(0.0) | st.floats(1e-300, 1e9)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.1, "0.1"),
        (1.0, "1"),
        (1.0846045, "1.08461"),
        (0.9999999999999962, "1"),
        (1.0000000000000002, "1.00001"),
        (20.0, "20"),
        (123456.1, "123457"),
        (1234567.0, "1.23457e+06"),
        (9.999999e-7, "1e-06"),
        (1.2345671e-7, "1.23457e-07"),
        (5e-324, "4.94066e-324"),
        (math.inf, "none (infinite)"),
    ],
)
def test_bounds_are_printed_rounded_up(value, text):
    """Six digits, the last one rounded up; what needs fewer digits is printed as it is."""
    assert text == format_bound(value)


def test_a_delta_has_three_digits():
    """A delta is rounded up to three digits."""
    assert "9.71e-07" == format_delta(9.7003e-7)


@given(losses, st.integers(1, 15))
@example(0.1 + 0.2, 15)
def test_a_printed_bound_read_back_is_not_below(value, digits):
    """Read back, the text is at least the value, and with one unit less in its last digit it would be below it."""
    text = format_bound(value, digits)
    last = Decimal(1).scaleb(Decimal(text).adjusted() - digits + 1)

    assert float(text) >= value
    assert value == 0 or float(Decimal(text) - last) < value


@given(st.fractions(0, 10**6))
@example(Fraction(1, 10))
@example(Fraction(3, 10) + Fraction(1, 10**30))
def test_a_float_states_at_least_the_exact_number(exact):
    """Both the float and the decimal number written for it are at least the exact number; the float below is not."""
    found = float_rounded_up(exact)
    below = math.nextafter(found, -math.inf)

    assert min(Fraction(found), Fraction(repr(found))) >= exact
    assert exact == 0 or min(Fraction(below), Fraction(repr(below))) < exact


@given(st.lists(st.tuples(losses, st.integers(0, 1000)), max_size=8))
@example([(0.1, 3)])
@example([(0.7, 7), (1.1, 10)])
def test_a_sum_is_rounded_up_once(terms):
    """A sum of losses is the exact sum of what the floats state, rounded up to a float."""
    exact = sum((lower_exact_value(value) * count for value, count in terms), Fraction(0))

    found = sum_rounded_up(terms)

    assert lower_exact_value(found) >= exact
    assert exact == 0 or lower_exact_value(math.nextafter(found, -math.inf)) < exact


def test_whole_sums_are_whole():
    """Ten times 0.1 is 1: the decimal number is below the binary one, and counts."""
    assert (1.0, 11.0) == (sum_rounded_up([(0.1, 10)]), sum_rounded_up([(1.1, 10)]))


def test_an_infinite_loss_counts_only_where_it_occurs():
    """An infinite term makes the sum infinite; zero times infinity is nothing."""
    assert math.inf == sum_rounded_up([(1.0, 2), (math.inf, 1)])
    assert 2.0 == sum_rounded_up([(1.0, 2), (math.inf, 0)])


@given(st.integers(1, 10**6), st.integers(1, 10**6))
@example(3, 3)
def test_logarithm_is_rounded_up(numerator, denominator):
    """Float and written number are at least the true logarithm (100 digits); two floats below, the float is not."""
    ratio = Fraction(max(numerator, denominator), min(numerator, denominator))
    true = PRECISE.ln(PRECISE.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))

    rounded = epsilon_of(ratio)

    assert min(Decimal(rounded), Decimal(repr(rounded))) >= true
    assert Decimal(math.nextafter(math.nextafter(rounded, -math.inf), -math.inf)) < true


def test_logarithm_just_above_a_float_is_not_lost():
    """A ratio whose logarithm is 1 + 1e-40 has an epsilon above 1: forty digits count."""
    ratio = Fraction(PRECISE.exp(Decimal(1))) * (1 + Fraction(1, 10**40))

    assert math.nextafter(1.0, 2.0) == epsilon_of(ratio)


def test_a_loss_beyond_all_floats_is_infinite():
    """What no float can state promises nothing."""
    assert math.inf == float_rounded_up(Fraction(10**400))
    assert math.inf == sum_rounded_up([(1.0, 10**400)])


@given(losses)
def test_a_promise_has_three_decimals_and_is_never_too_small(value):
    """A promise is at least the loss, less than a thousandth above it, and has three decimals."""
    text = format_three_decimals(value)

    assert 0 <= Fraction(text) - Fraction(repr(value)) < Fraction(1, 1000)
    assert 3 == len(text.partition(".")[2])


@pytest.mark.parametrize(
    ("epsilon", "text"), [(0.0, "1.0"), (1.0, "2.8"), (math.log(999.95), "1,000"), (20.0, "485,165,196"), (700.0, "∞")]
)
def test_odds_are_rounded_up(epsilon: float, text: str) -> None:
    """A factor of odds is written with one decimal below a thousand, as a whole number above, and never too small."""
    assert text == format_odds(epsilon)
