"""Several questions on the device of one file: asked one after the other, and promised together."""

import json

import pytest

from crowdveil.campaign.report_body import decode
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.mechanisms import Laplace
from crowdveil.standalone import device as one_file
from crowdveil.standalone.checks import Refused
from crowdveil.standalone.device import Device
from tests.campaign.builders import build_questions, response

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
    """Each question stands once, with its possible answers, before its tasks; the promise is the sum over all."""
    replies = iter(["yes", "", "3"])
    monkeypatch.setattr("builtins.input", lambda _: next(replies))
    one_file.show(one_file.promise(device))
    one_file.ask(device)
    promise, asked = capsys.readouterr().out.split("to all curators.")
    first, second = "Question 1?", "Question 2?"

    assert [1, None, 3] == device.record["answers"]
    assert [1, 1] == [asked.count(text) for text in (first, second)]
    assert asked.index("no, yes") < asked.index(second) < asked.index("0, 1, 2, 3, 4")
    assert "epsilon 1.500 for a single answer, 2.500 for all of yours" in promise
    assert all(text in promise.split("One random symbol")[0] for text in (first, second))


def test_a_file_of_answers_names_the_question(device, tmp_path):
    """Tasks of one name are told apart by the number of their question; the report has the symbols of both."""
    path = written(tmp_path, "task,question,label\nt0,1,no\nt0,2,4\n")
    one_file.run(device, path, tmp_path / "out", None)
    (report,) = (tmp_path / "out").iterdir()
    body = bytes.fromhex(json.loads(report.read_bytes())["symbols"])

    assert 3 == len(decode(body, BUILT.campaign, 0, (0, 1, 2)))
    assert {0: "no", 1: "", 2: "4"} == one_file.read_answers(path, device)


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
