"""A channel's certificate as a file: every malformed one is refused by its name; other clients share the cases."""

import copy
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories
from crowdveil.channels.certificate import (
    LISTS_MARK,
    parse_certificate,
    simulation_mark,
    with_checksum,
)
from crowdveil.channels.channel import Channel
from crowdveil.errors import CertificateError
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.standalone.checks import MAX_CERTIFICATE_BYTES, digest

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


def test_bytes_that_are_not_text_are_refused():
    """Invalid UTF-8 is not JSON."""
    with pytest.raises(CertificateError, match="not json"):
        parse_certificate(b"\xff\xfe\xfa")


def test_bytes_are_read_like_text():
    """A file may be handed over undecoded."""
    assert certificate() == parse_certificate(json.dumps(certificate()).encode())


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


def test_sealing_adds_format_and_hash_only():
    """The fields themselves are kept."""
    fields = {name: value for name, value in certificate().items() if name not in ("format", "sha256")}
    sealed = with_checksum(fields)

    assert {**fields, "format": "crowdveil-channel/1", "sha256": sealed["sha256"]} == sealed


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
    changed = copy.deepcopy(certificate())
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
