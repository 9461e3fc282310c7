"""Bad input gets one line that names file, row, rule and way out, and nothing is written."""

from pathlib import Path

import pytest

from tests.cli.conftest import Refusal, Run

PERTURB = ("--mechanism", "randomized-response", "--epsilon", 1, "--out", "sent")

DAMAGED: dict[str, tuple[bytes, str]] = {
    "missing column": (b"task,label\na,x\n", "column for the worker"),
    "NaN label": (b"task,worker,label\na,u,x\nb,u,y\nb,v,NaN\n", "line 4"),
    "repeated pair": (b"task,worker,label\na,u,x\na,u,y\n", "--duplicates"),
    "one label": (b"task,worker,label\na,u,x\nb,u,x\n", "2 to 1024"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_answers_are_refused_by_name(name: str, refusal: Refusal) -> None:
    """Damage in the header, a row or several is named with the file by both commands, and nothing is written."""
    contents, said = DAMAGED[name]
    Path("bad.csv").write_bytes(contents)

    for words in (("perturb", "bad.csv", *PERTURB), ("infer", "bad.csv", "--out", "sent")):
        line = refusal(*words)
        assert "bad.csv" in line
        assert said in line
    assert not Path("sent").exists()


@pytest.mark.parametrize("words", [("perturb", *PERTURB, "--lists-from-answers"), ("infer", "--out", "sent")])
def test_a_table_of_a_spreadsheet_is_refused_once_and_then_read(words: tuple, run: Run, refusal: Refusal) -> None:
    """The refusal lists every option that is needed, and no content of an answer; with them the table is read."""
    rows = "".join(f"{task};wör;{label}\n" for task, label in (("a", "gut"), ("b", "schlecht"), ("", ""), ("c", "gut")))
    Path("odd.csv").write_bytes(("frage;person;antwort\n" + rows.replace(";wör;\n", ";;\n")).encode("cp1252"))
    columns = ("--task-column", "frage", "--worker-column", "person", "--label-column", "antwort")
    line = refusal(words[0], "odd.csv", *words[1:])

    assert {*columns[::2], "'frage'", "'person'", "'antwort'"} <= {*line.replace(",", " ").replace(";", " ").split()}
    assert "--encoding cp1252" in line
    assert not any(label in line for label in ("gut", "schlecht"))
    assert "from 1 workers on 3 tasks" in run(words[0], "odd.csv", *columns, "--encoding", "cp1252", *words[1:]).stdout


def test_files_that_are_not_there_are_named(refusal: Refusal) -> None:
    """A missing file of answers, reports, gold, prior or certificate is named."""
    for option in ("--gold", "--score", "--prior", "--certificate"):
        assert "none.csv" in refusal("infer", "labels.csv", option, "none.csv", "--out", "found")
    assert "none.csv" in refusal("perturb", "none.csv", *PERTURB)
    assert "none.csv" in refusal("infer", "none.csv")
    assert "none.csv" in refusal("perturb", "labels.csv", "--tasks", "none.csv", *PERTURB)
    assert not Path("found").exists()


def test_numbers_without_a_scale_are_refused(refusal: Refusal) -> None:
    """A column of numbers asks for --scale, and a mechanism for numbers refuses labels."""
    Path("free.csv").write_text("task,worker,value\na,u,1.5\nb,u,2\n")

    assert "--scale LOW:HIGH" in refusal("perturb", "free.csv", *PERTURB)
    line = refusal("perturb", "labels.csv", "--mechanism", "matrix-factorization", "--epsilon", 1, "--out", "sent")
    assert "numeric answers" in line


def test_lists_must_be_complete_and_named(refusal: Refusal) -> None:
    """A list of tasks that misses one, repeats one or holds an empty name is refused."""
    for contents, said in (("task\n1\n2\n", "given list"), ("task\n1\n1\n", "repeat"), ("task,x\n1,2\n,3\n", "line 3")):
        Path("tasks.csv").write_text(contents)
        assert said in refusal("perturb", "labels.csv", "--tasks", "tasks.csv", *PERTURB)


def test_a_failed_run_leaves_earlier_files_as_they_were(run: Run, refusal: Refusal) -> None:
    """What stood in the folder before a refused run stands there afterwards, byte for byte."""
    run("perturb", "labels.csv", "--seed", 1, *PERTURB)
    before = {path: path.read_bytes() for path in Path("sent").iterdir()}
    Path("bad.csv").write_text("task,worker,label\na,u,x\na,u,y\n")
    refusal("perturb", "bad.csv", *PERTURB)

    assert before == {path: path.read_bytes() for path in Path("sent").iterdir()}
