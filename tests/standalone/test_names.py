"""What is demanded of JSON and of names before a file of a collection is read."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.standalone.checks import (
    first_confusable_pair,
    name_defect,
    text_defect,
    visible_form,
)
from crowdveil.standalone.verification import parse_json

INVISIBLE_SIGNS = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\ufe00\ufe0f\uffa0\U000e0100\U000e01ef"
IGNORABLE_RANGES = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
"""Default_Ignorable_Code_Point of the Unicode character database, version 16.0: first and last of each range."""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1, "a": 1}', "'a' is repeated"),
        ('[{"b": {"a": 1, "c": 2, "a": 3}}]', "'a' is repeated"),
        ('{"a": NaN}', "NaN is not a finite number"),
        ('{"a": -Infinity}', "-Infinity is not a finite number"),
        ('{"a": 1e999}', "1e999 is not a finite number"),
        ("[" * 100_000, "nested too deeply"),
        ("", "Expecting value"),
        (b"\xff\xfe\xfa", "codec can't decode"),
    ],
)
def test_json_that_can_be_read_in_two_ways_is_refused(text, found):
    """Keys that stand twice at any depth, numbers that are not finite and endless nesting are refused."""
    with pytest.raises(ValueError, match=found):
        parse_json(text)


def test_plain_json_is_read():
    """Objects may share keys with one another; floats and integers keep their kind."""
    assert {"a": {"a": 1}, "b": [{"a": 1.5}, None, True]} == parse_json(
        b'{"a": {"a": 1}, "b": [{"a": 1.5}, null, true]}'
    )


@pytest.mark.parametrize(
    "name",
    [
        "yes",
        "r1a",
        "größer als",
        "no\u00a0break",
        "👩\u200d💻",
        "می\u200cخواهم",
        "क\u094d\u200dष",
        "e=0.01",
        "❤\ufe0f",
        "❤\ufe0f\u200d👩",
    ],
)
def test_printing_text_is_a_name(name):
    """Letters of any script, spaces inside and the joiners that spelling needs are fine."""
    assert ("", "") == (text_defect(name), name_defect(name))


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "it is empty"),
        (" yes", "it has leading or trailing white space"),
        ("yes\n", "it has leading or trailing white space"),
        ("yes\u00a0", "it has leading or trailing white space"),
        ("y\nes", "character U+000A is not printable"),
        ("\x1b[2Kyes", "character U+001B is not printable"),
        ("\x00", "character U+0000 is not printable"),
        ("y\x9bes", "character U+009B is not printable"),
        ("\u202eyes", "character U+202E is not printable"),
        ("y\u200bes", "character U+200B is not printable"),
        ("\ufeffyes", "character U+FEFF is not printable"),
        ("y\u200des", "character U+200D is not printable"),
        ("\u200dيس", "character U+200D is not printable"),
        ("يس\u200c", "character U+200C is not printable"),
        ("\ud800", "character U+D800 is not printable"),
        ("\ue000", "character U+E000 is not printable"),
        ("a\u2028b", "character U+2028 is not printable"),
        ("a\u2029b", "character U+2029 is not printable"),
        ("ye\u0301s", "it is not in normal form C"),
        *((f"y{sign}es", f"character U+{ord(sign):04X} is not printable") for sign in INVISIBLE_SIGNS),
        ("1\ufe0f", "character U+FE0F is not printable"),
        ("\ufe0f❤", "character U+FE0F is not printable"),
        ("\u2800", "character U+2800 is not printable"),
    ],
)
def test_what_is_no_name_is_said_why(name, fault):
    """A name that is confusable with another is refused, and the defect is named."""
    assert fault == name_defect(name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("r1a", " r1a"),
        ("r1a", "r1a\t"),
        ("r1a", "r1a\u00a0"),
        ("r1a", "r1\u200ba"),
        ("é", "e\u0301"),
        ("می\u200cخواهم", "میخواهم"),
        ("r1a", " \u200br1a"),
        ("r1 a", "r1  a"),
        ("r1 a", "r1\u00a0a"),
        ("r1 a", "r1\ta"),
        ("r1 a", "r1 \u2060 a"),
        ("r1 a", "r1\u2800a"),
        ("r1a", "r1a\u2800"),
        *(("r1a", f"r1{sign}a") for sign in INVISIBLE_SIGNS),
    ],
)
def test_confusable_names_are_found(one, other):
    """White space around or repeated, its kind, what is not printable and the normal form do not make two names."""
    assert (one, other) == first_confusable_pair(["w", one, "v", other, "u"])


@pytest.mark.parametrize(
    "names", [[], ["a"], ["a", "A"], ["a b", "ab"], ["a", "b", "é", "e"], ["Å", "A"], ["ａ", "a"], ["x²", "x2"]]
)
def test_names_that_differ_to_the_eye_are_apart(names):
    """Upper and lower case, an inner space, accents, width and height are differences."""
    assert first_confusable_pair(names) is None


@pytest.mark.slow
@given(st.text())
def test_a_name_is_what_is_visible_of_it(text):
    """A name without joiners, with single spaces, is its own visible form; a visible form is that of itself."""
    seen = visible_form(text)

    assert seen == visible_form(seen)
    if not name_defect(text) and not any(sign in "\u200c\u200d\ufe0e\ufe0f" for sign in text):
        assert " ".join(text.split()) == seen


def test_invisible_characters_are_those_of_unicode():
    """Every code point that Unicode calls ignorable, and every format character, is refused inside a word."""
    ignorable = {chr(code) for first, last in IGNORABLE_RANGES for code in range(first, last + 1)}
    formats = {chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Cf"}

    assert 4174 == len(ignorable)
    assert [] == [sign for sign in sorted(ignorable | formats) if not text_defect(f"a{sign}b")]
