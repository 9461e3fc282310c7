"""Tokens and links: text forms, hashes bound to one campaign, refusals."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.campaign.token import Token, token_hash
from crowdveil.errors import CampaignError
from crowdveil.standalone.checks import Refused, parse_link

_BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def test_secrets_are_new_and_not_shown():
    """Two tokens of one slot differ; the printed form of a token holds no secret."""
    first, second = Token.new(3), Token.new(3)

    assert first.secret != second.secret
    assert "Token(slot=3)" == repr(first)


def test_the_hash_binds_campaign_and_slot():
    """Another campaign, slot or secret has another hash."""
    token = Token(5, bytes(range(16)))
    hashes = {
        token_hash(bytes(32), token),
        token_hash(b"\1" + bytes(31), token),
        token_hash(bytes(32), Token(6, token.secret)),
        token_hash(bytes(32), Token(5, bytes(16))),
    }

    assert 4 == len(hashes)
    assert {32} == set(map(len, hashes))


@pytest.mark.parametrize(
    "text", ["", "A" * 26, "A" * 28, "A" * 26 + "B", "A" * 26 + "+", "é" * 27, "A" * 26 + "=", "_" * 27]
)
def test_another_text_is_no_token(text):
    """A text of another length, alphabet or slot, or with spare bits, is refused without being repeated."""
    with pytest.raises(CampaignError) as caught:
        Token.from_text(text)

    assert "token" == caught.value.defect
    assert len(text) < 26 or text not in str(caught.value)


def test_the_slot_of_a_token_cannot_be_any_number():
    """A token has a slot below a million and 16 secret bytes."""
    for slot, secret in ((-1, bytes(16)), (1_000_000, bytes(16)), (0, bytes(15))):
        with pytest.raises(CampaignError, match="token"):
            Token(slot, secret)


FRAGMENT = f"#1.{'A' * 43}.{'A' * 27}"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        (f"device.html{FRAGMENT}", None),
        (f"file:///home/ann/device.html{FRAGMENT}", None),
        (f" https://example.org/a/{FRAGMENT}\n", "https://example.org"),
        (f"http://localhost:9000/a/{FRAGMENT}", "http://localhost:9000"),
    ],
)
def test_a_link_may_follow_a_file_name(text, url):
    """Without a service the link follows the name of the page; white space around is left out."""
    assert url == parse_link(text)[0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://example.org/a/",
        f"https://example.org/b/{FRAGMENT}",
        f"http://example.org/a/{FRAGMENT}",
        f"https://example.org/a/#2.{'A' * 43}.{'A' * 27}",
        f"https://example.org/a/{FRAGMENT}x",
        f"https://example.org/a/#1.{'A' * 42}B.{'A' * 27}",
        f"https://example.org/a/#1.{'A' * 43}.{'A' * 26}B",
    ],
)
def test_another_text_is_no_link(text):
    """Other addresses, versions and damaged links are refused, without repeating the token."""
    with pytest.raises(Refused, match="not a complete link") as caught:
        parse_link(text)

    assert re.search("A{27}", str(caught.value)) is None


@pytest.mark.slow
@given(st.one_of(st.text(max_size=40), st.text(alphabet=_BASE64URL, min_size=27, max_size=27)))
def test_any_text_is_a_token_or_a_campaign_error(text):
    """A text gives a token with this very text, or a CampaignError; no other exception leaves."""
    try:
        found = Token.from_text(text).text
    except CampaignError:
        found = None

    assert found in (None, text)
