"""Files of answers that the one-file device reads: as spreadsheets save them, and what is refused of them."""

import pytest

from crowdveil.standalone import device as one_file
from crowdveil.standalone.checks import Refused, find_answer
from crowdveil.standalone.device import Device
from tests.standalone.test_device import answered, link_of


def test_a_task_that_the_file_leaves_out_has_no_answer(service, tmp_path):
    """A file of answers replaces the answers of an interrupted run: a task that it leaves out is NULL."""
    answers = tmp_path / "my.csv"
    answers.write_text("task,label\nt1,quokka\n")
    with answered(service, tmp_path) as device:
        assert {0: "", 1: "quokka", 2: "", 3: ""} == one_file.read_answer_file(answers, device)


CAPS = "Task,LABEL\r\nt1,quokka\r\nt3, narwhal \r\n"


@pytest.mark.parametrize(
    "data",
    [
        CAPS.encode("utf-8-sig"),
        CAPS.encode("utf-16"),
        CAPS.replace(",", ";").encode(),
        CAPS.replace(",", "\t").encode(),
        ("sep=;\r\n" + CAPS.replace(",", ";")).encode("utf-8-sig"),
        ("sep=\t\r\n" + CAPS.replace(",", "\t")).encode("utf-16"),
        ("\r\n,,\r\n" + CAPS.replace("\r\n", ",\r\n")).encode(),
    ],
    ids=["mark", "utf-16", "semicolons", "tabs", "sep", "sep in utf-16", "empty rows and columns"],
)
def test_answers_saved_by_a_spreadsheet_are_read(service, tmp_path, data):
    """Byte-order mark, UTF-16, delimiters, a line sep=, case of the header, spaces and empty rows change nothing."""
    answers = tmp_path / "my.csv"
    answers.write_bytes(data)
    with answered(service, tmp_path) as device:
        assert {0: "", 1: "quokka", 2: "", 3: "narwhal"} == one_file.read_answer_file(answers, device)


def test_answers_are_found_in_another_unicode_form(tmp_path):
    """Tasks and labels match in composed and decomposed form, and a decimal comma is a point; both readers agree."""
    labels = ["ä", "ö", "1.5"]

    assert ["ä", "1.5", None, None] == [find_answer(labels, text) for text in ("a\u0308", "1,5", "1,500", "a")]


@pytest.mark.parametrize("data", ["task,label\nt0,é\n".encode("cp1252"), b"PK\x03\x04\x14\xff", b'task,label\nt0,"a'])
def test_another_kind_of_file_is_refused_in_one_sentence(service, tmp_path, data):
    """Text of western Windows, a spreadsheet and an open quote have a line, and say how to save the file."""
    answers = tmp_path / "my.csv"
    answers.write_bytes(data)
    with Device(link_of(service), tmp_path) as device, pytest.raises(Refused, match=r"line \d: .*save it as CSV UTF-8"):
        one_file.run(device, answers, tmp_path, None)

    assert [] == service.bodies


def test_a_file_without_rows_answers_nothing(service, tmp_path):
    """Only the header is the way to answer no task: every cell is NULL."""
    answers = tmp_path / "my.csv"
    answers.write_text("task,label\n")
    with answered(service, tmp_path) as device:
        assert {""} == set(one_file.read_answer_file(answers, device).values())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("task,label\nt9,quokka\n", "line 2: task 't9' is not yours. Your tasks: 't0', "),
        ("task,label\nt0,cat\n", "cat"),
        ("task,label\nt0,quokka\nt0,narwhal\n", "'t0' occurs twice"),
        ("task,label\nt1,quokka\nt0,\n", "line 3: task 't0' has no label"),
        ("task,label\nt0\n", "line 2: every row has 2 columns"),
        ("task,label,label\nt0,quokka,narwhal\n", "each once"),
        ("", "needs the columns task and label"),
        ("a,b\n1,2\n", "needs the columns"),
        (f"task,label\nt0,{'x' * 200_000}\n", "must be CSV"),
    ],
)
def test_wrong_answers_are_refused(service, tmp_path, text, reason):
    """A foreign task, an unknown or missing label, a task twice, other columns, an endless field: nothing is sent."""
    answers = tmp_path / "my.csv"
    answers.write_text(text)
    with Device(link_of(service), tmp_path) as device, pytest.raises(Refused, match=reason):
        one_file.run(device, answers, tmp_path, None)

    assert [] == service.bodies
