"""Canonical bytes, names that people compare, tokens, and receipts."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.campaign.files.invitations import render_link_sheet
from crowdveil.campaign.planning.creation import write_new_campaign_folder
from crowdveil.campaign.rules.assignment_part import AssignmentPart
from crowdveil.campaign.rules.canonical_json import canonical_bytes, parse_canonical
from crowdveil.campaign.rules.document import Campaign, spaced_name_to_compare
from crowdveil.campaign.rules.report import make_receipt
from crowdveil.campaign.rules.token import Link, Token, token_hash
from crowdveil.cli import main
from crowdveil.errors import CampaignError
from crowdveil.standalone import device as one_file
from crowdveil.standalone.checks import Refused, parse_link
from tests.campaign.service.accessibility import await_screen
from tests.campaign.service.browser import chromium, needs_chromium
from tests.device_vectors import read_vectors

KEYS = st.text("abcxyz019_", min_size=1, max_size=5)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8).filter(lambda text: text.isascii())
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(1e-4, 1e9).filter(lambda x: not x.is_integer())
VALUES = st.recursive(
    st.none() | st.booleans() | TEXTS | NUMBERS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@given(VALUES)
def test_what_is_written_is_read_back(value):
    """A value survives writing and reading."""
    assert value == parse_canonical(canonical_bytes(value), 10**6)


@pytest.mark.parametrize(
    ("text", "defect"),
    [
        ("[1e999]", "number"),
        ("[" * 100_000 + "]" * 100_000, "not json"),
        ("[0.50]", "not canonical"),
        ('["\\u00E9"]', "not canonical"),
        ("[-0.0]", "number"),
        ("[0.00001]", "number"),
    ],
)
def test_other_texts_of_a_value_are_refused(text, defect):
    """Every text but the canonical one is refused by its defect, as those of the shared vectors."""
    with pytest.raises(CampaignError) as caught:
        parse_canonical(text.encode("utf-8"), 10**6)

    assert defect == caught.value.defect


def test_size_is_checked_before_parsing():
    """A text beyond the limit is not parsed."""
    with pytest.raises(CampaignError, match="oversize"):
        parse_canonical(b"[" * 11, 10)


def test_a_character_beyond_the_basic_plane_is_two_escapes():
    """A character beyond U+FFFF is written as two surrogate escapes, as JavaScript can write it."""
    assert b'["\\ud83d\\ude00"]' == canonical_bytes(["\U0001f600"])
    assert ["\U0001f600"] == parse_canonical(b'["\\ud83d\\ude00"]', 100)


@pytest.mark.parametrize("value", [1.0, float("nan"), float("inf"), 2**53, 1e-9])
def test_values_without_a_canonical_text_are_not_written(value):
    """A value that no reader accepts is refused by the writer."""
    with pytest.raises(CampaignError):
        canonical_bytes({"value": value})


FORGED = read_vectors("same_prefix.json")
"""Two campaigns, of epsilon 0.7 and 20, whose names have the same first 8 characters."""
CHARACTER_BITS, LEAST_BITS = 6, 128


def written(vector: dict[str, Any], folder: Path) -> Campaign:
    """Write the folder of a campaign and return the campaign."""
    campaign = Campaign.from_bytes(vector["campaign"].encode())
    parts = [AssignmentPart.from_bytes(vector["part"].encode(), campaign, 0)]
    write_new_campaign_folder(folder, campaign, parts)
    return campaign


def test_a_forged_campaign_has_another_code() -> None:
    """Two campaigns with the same 8 characters and epsilons of 0.7 and 20 have different codes of 132 bits."""
    one, other = (Campaign.from_bytes(vector["campaign"].encode()) for vector in FORGED)

    assert one.name[:8] == other.name[:8]
    assert (0.7, 20.0) == pytest.approx((one.epsilon, other.epsilon), rel=1e-6)
    assert spaced_name_to_compare(one.name) != spaced_name_to_compare(other.name)
    assert all(spaced_name_to_compare(campaign.name) == one_file.compared(campaign.name) for campaign in (one, other))


@pytest.mark.parametrize("vector", FORGED, ids=lambda vector: vector["name"])
def test_every_place_shows_at_least_128_bits(vector: dict[str, Any], tmp_path: Path) -> None:
    """Device, sheet and commands show one code of at least 128 bits, which begins the campaign's name."""
    campaign, folder = written(vector, tmp_path / "survey"), tmp_path / "survey"
    link = Link(None, campaign.name, Token.new(0))
    code = spaced_name_to_compare(campaign.name)
    with one_file.Device(link.text, tmp_path / "home", folder) as device:
        device.open()
        shown = {"device": one_file.promise(device), "sheet": render_link_sheet(campaign, [link])}
    for words in (
        ["campaign", "invite", folder],
        ["campaign", "page", folder, "--out", tmp_path / "device.html"],
        ["verify", folder / "campaign.json"],
    ):
        shown[" ".join(map(str, words))] = CliRunner().invoke(main, list(map(str, words))).stdout

    assert campaign.name.startswith(code.replace(" ", ""))
    assert CHARACTER_BITS * len(code.replace(" ", "")) >= LEAST_BITS
    assert [] == [place for place, text in shown.items() if code not in text]


@pytest.mark.slow
@needs_chromium
def test_the_page_shows_at_least_128_bits(tmp_path: Path) -> None:
    """The pages of the two campaigns show their own codes."""
    found = []
    with chromium() as browser:
        for number, vector in enumerate(FORGED):
            campaign, file = written(vector, tmp_path / str(number)), tmp_path / f"{number}.html"
            CliRunner().invoke(main, ["campaign", "page", str(tmp_path / str(number)), "--out", str(file)])
            page = browser.new_page()
            page.goto(f"{file.as_uri()}{Link(None, campaign.name, Token.new(0)).text}")
            await_screen(page, "intro")
            found.append(page.inner_text("dd.code"))

    assert [spaced_name_to_compare(vector["campaign_name"]) for vector in FORGED] == found
    assert 2 == len(set(found))


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
        f"https://example.org/a/#1.{'A' * 42}B.{'A' * 27}",
        f"https://example.org/a/#1.{'A' * 43}.{'A' * 26}B",
    ],
)
def test_another_text_is_no_link(text):
    """Other addresses, versions and damaged links are refused, without repeating the token."""
    with pytest.raises(Refused, match="no link of a campaign") as caught:
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


KEY, NAME, REPORT, BODY = bytes(32), "A" * 43, "0f" * 16, b"\1\2\3"
RECEIPT = make_receipt(KEY, NAME, REPORT, BODY)


def test_a_receipt_is_repeatable():
    """Two receipts of one report are equal, and name no date."""
    assert RECEIPT == make_receipt(KEY, NAME, REPORT, BODY)
    assert {"campaign", "format", "mac", "report", "stored_sha256"} == set(json.loads(RECEIPT))


@pytest.mark.parametrize(
    "other",
    [
        (b"\1" * 32, NAME, REPORT, BODY),
        (KEY, "B" * 43, REPORT, BODY),
        (KEY, NAME, "1f" * 16, BODY),
        (KEY, NAME, REPORT, b"\1\2\4"),
    ],
)
def test_a_receipt_is_bound_to_its_report(other):
    """Another key, campaign, report or body gives another code."""
    assert json.loads(make_receipt(*other))["mac"] != json.loads(RECEIPT)["mac"]
