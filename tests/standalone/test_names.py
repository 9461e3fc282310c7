"""Names and texts of others on the one-file device, and several questions."""

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.campaign.device import SealingDevice as LibraryDevice
from crowdveil.campaign.rules.report import decode_body
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.mechanisms import Laplace
from crowdveil.standalone import device as one_file
from crowdveil.standalone.checks import (
    Refused,
    epsilon,
    first_confusable_pair,
    name_defect,
    shown,
    text_defect,
    visible_form,
)
from crowdveil.standalone.device import Device
from crowdveil.standalone.verification import parse_json
from tests.campaign.builders import build_campaign, build_questions, ledger_line, response

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
        ("", "it has no letter, digit or sign"),
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


FALSE_PROMISE = "Privacy loss: epsilon 0.001 for all of yours."


def test_a_curator_cannot_write_a_line_of_the_promise(tmp_path, monkeypatch, capsys):
    """However texts are broken or padded to the width of the terminal, each of their lines has the mark of a quote."""
    monkeypatch.setenv("COLUMNS", "60")
    padded = "\N{NO-BREAK SPACE}".join("." * 57 for _ in range(3)) + FALSE_PROMISE
    texts = {
        "title": f"Wards {FALSE_PROMISE}",
        "question": f"How often?\n{FALSE_PROMISE}\n\nReally?",
        "consent": f"{padded}\n{'病' * 60} {FALSE_PROMISE}",
    }
    built = build_campaign(url=None, content=texts)
    with Device(built.link(0).text, tmp_path / "home", built.write(tmp_path / "files")) as device:
        device.open()
        one_file.show(one_file.promise(device))
    lines = capsys.readouterr().out.splitlines()
    first, last = lines.index("In the words of the curator:") + 1, [line[:3] for line in lines].index("One")

    assert 12 <= last - first
    assert {"  | "} == {line[:4] for line in lines[first:last]}
    assert 60 >= max(len(line) + line.count("病") for line in lines[first:last])
    assert 1 == sum(line.startswith("Privacy loss: ") for line in lines)
    assert FALSE_PROMISE not in "\n".join(lines[:first] + lines[last:])


def test_a_title_in_the_ledger_stays_in_its_line(tmp_path, capsys):
    """Each line of a title in the ledger is marked as foreign, also after a line break or spaces up to the margin."""
    line = ledger_line(cells=1, numerator=2, denominator=1)
    one_file.add_to_ledger(tmp_path, [{**line, "title": "a\nto all curators: epsilon 0.000\u202e"}])
    one_file.print_ledger(one_file.read_ledger(tmp_path))
    printed = capsys.readouterr().out.splitlines()

    assert ["  | a", "  | to all curators: epsilon 0.000\ufffd"] == printed[1:3]
    assert 5 == len(printed)
    assert ["to all curators: epsilon 0.694"] == [text for text in printed if text.startswith("to all")]


def test_a_reply_of_the_service_stays_in_the_sentence(service, tmp_path):
    """A state that the service invents is shown without its line breaks."""
    service.link_state = "\nDone: all deleted"
    with Device(service.built.link(0).text, tmp_path) as device:
        device.open()
        with pytest.raises(Refused) as refusal:
            device.require_open()

    assert "\n" not in str(refusal.value) + refusal.value.name


@pytest.mark.parametrize("kind", [Device, LibraryDevice])
def test_two_links_of_a_campaign_draw_one_report(service, tmp_path, kind):
    """The second link is refused while the first report is drawn only, and after it is sent; another home may draw."""
    first, second = (service.built.link(slot).text for slot in (0, 1))
    with kind(first, tmp_path) as one, kind(second, tmp_path) as other:
        one.open()
        other.open()
        one.require_open()
        other.require_open()
        one.sample()
        with pytest.raises(Refused, match="--home") as drawn:
            other.sample()
        one.send()
        with pytest.raises(Refused) as sent:
            other.require_open()
        assert "verified" == other.record["state"]
    with kind(second, tmp_path / "other person") as another:
        another.open()
        another.sample()

    assert ["answered-before"] * 2 == [drawn.value.name, sent.value.name]
    assert 1 == len(service.bodies)


def test_the_ledger_decides_between_two_programs_that_draw_at_once(service, tmp_path, monkeypatch):
    """A program that looked into the ledger before the other one drew is refused when it writes its own lines."""
    with Device(service.built.link(0).text, tmp_path) as one, Device(service.built.link(1).text, tmp_path) as other:
        one.open()
        other.open()
        monkeypatch.setattr(other, "require_open", one.sample)

        with pytest.raises(Refused) as refusal:
            other.sample()

    assert ("answered-before", "verified") == (refusal.value.name, other.record["state"])


def test_a_service_that_deletes_and_answers_503_gets_one_draw(service, tmp_path, monkeypatch):
    """Three starts against a service that stores, answers 503 and asks to clear all storage send the same bytes."""
    monkeypatch.setattr(Device.send, "__defaults__", (1, lambda _: None))
    service.faults = ["busy"] * 3
    for _ in range(3):
        with Device(service.built.link(0).text, tmp_path) as device:
            device.open()
            if device.record["state"] == "verified":
                device.sample()
            with pytest.raises(Refused, match="start again later"):
                device.send()

    assert (3, 1) == (len(service.bodies), len(set(service.bodies)))
    assert "4.000" == shown(epsilon(one_file.read_ledger(tmp_path)))


CHANNELS = [
    response(Categories(("no", "yes")), 0.5),
    Laplace(alphabet=Scale(0, 4), epsilon=1.5, participation="protected").channel(),
]
BUILT = build_questions(CHANNELS, [2, 1], [[0, 1, 2], [0, 2]], url=None)


@pytest.fixture
def device(tmp_path):
    """Return the device of the first worker, open."""
    with Device(BUILT.link(0).text, tmp_path / "home", BUILT.write(tmp_path / "files")) as opened:
        opened.open()
        yield opened


def written(folder, text):
    """Return a file of answers."""
    path = folder / "my.csv"
    path.write_text(text, "utf-8")
    return path


def test_the_terminal_shows_each_question_before_its_tasks(device, monkeypatch, capsys):
    """A question stands, with its possible answers, before its tasks; the promise is the sum over all."""
    replies = iter(["yes", "3", ""])
    monkeypatch.setattr("builtins.input", lambda _: next(replies))
    one_file.show(one_file.promise(device))
    one_file.ask(device)
    promise, asked = capsys.readouterr().out.split("to all curators.")
    first, second = "Question 1?", "Question 2?"

    assert [1, None, 3] == device.record["answers"]
    assert [2, 1] == [asked.count(text) for text in (first, second)]
    assert asked.index("no, yes") < asked.index(second) < asked.index("0, 1, 2, 3, 4")
    assert "epsilon 1.500 for a single answer, 2.500 for all of yours" in promise
    assert all(text in promise.split("One random symbol")[0] for text in (first, second))


def test_the_terminal_asks_all_questions_about_one_task_together(tmp_path, monkeypatch, capsys):
    """Each task has its questions before the next task, and an answer is that of its own question."""
    channels = [response(Categories(("no", "yes")), 1.0), response(Categories(("bad", "good")), 1.0)]
    built = build_questions(channels, [2, 2], [range(4)] * 2, url=None)
    replies = iter(["yes", "good", "", "bad"])
    monkeypatch.setattr("builtins.input", lambda _: next(replies))
    with Device(built.link(0).text, tmp_path, built.write(tmp_path / "files")) as device:
        device.open()
        one_file.ask(device)
        asked = [line for line in capsys.readouterr().out.splitlines() if "Question" in line or "Thing" in line]

        assert [1, None, 1, 0] == device.record["answers"]
    assert ["Question 1?", "Thing 0", "Question 2?", "Thing 0", "Question 1?", "Thing 1", "Question 2?", "Thing 1"] == [
        line.removeprefix("  | ") for line in asked if line.startswith("  | ")
    ]


def test_a_file_of_answers_names_the_question(device, tmp_path):
    """Tasks of one name are told apart by the number of their question; the report has the symbols of both."""
    path = written(tmp_path, "task,question,label\nt0,1,no\nt0,2,4\n")
    one_file.run(device, path, tmp_path / "out", None)
    (report,) = (tmp_path / "out").iterdir()
    body = bytes.fromhex(json.loads(report.read_bytes())["symbols"])

    assert 3 == len(decode_body(body, BUILT.campaign, 0, (0, 1, 2)))
    assert {0: "no", 1: "", 2: "4"} == one_file.read_answer_file(path, device)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("task,label\nt0,no\n", "needs the columns task and question and label"),
        ("task,question,label\nt1,2,4\n", "'t1' is not yours"),
        ("task,question,label\nt0,3,4\n", "'t0' is not yours"),
        ("task,question,label\nt0,1,4\n", "'4' is none of the possible answers"),
        ("task,question,label\nt0,2,yes\n", "'yes' is none of the possible answers"),
        ("task,question,label\nt0,2,1\nt0,2,2\n", "occurs twice"),
    ],
)
def test_an_answer_to_another_question_is_refused(device, tmp_path, text, reason):
    """An answer goes to a task of its question, with the labels of that question; nothing is drawn otherwise."""
    with pytest.raises(Refused, match=reason):
        one_file.run(device, written(tmp_path, text), tmp_path / "out", None)

    assert "body" not in device.record
