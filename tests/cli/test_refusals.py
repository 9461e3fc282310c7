"""Bad input gets one line that names file, row, rule and way out, and nothing is written."""

from pathlib import Path

import pytest

from tests.cli.conftest import LABELS, LISTS, Refusal, Run

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


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "1e9", "inf", "1e-9"])
def test_absurd_epsilons_are_refused(epsilon: str, refusal: Refusal) -> None:
    """Epsilon outside [1e-06, 20] is refused with the rule and a useful range."""
    words = ("labels.csv", "--mechanism", "randomized-response", "--epsilon", epsilon, "--out", "sent")
    line = refusal("perturb", *words)

    assert "epsilon must be in [1e-06, 20]" in line
    assert "0.1 and 8" in line
    assert not Path("sent").exists()


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


def test_settings_that_a_mechanism_cannot_have_are_refused(refusal: Refusal) -> None:
    """Null values off the domain, unknown words, missing dimensions and too many cells get their rule."""
    laplace = (
        "perturb",
        "numbers.csv",
        "--mechanism",
        "laplace",
        "--scale",
        "-2:7",
        "--epsilon",
        1,
        *LISTS,
        "--out",
        "sent",
    )

    assert "value of the domain" in refusal(*laplace, "--null-value", "0.5")
    assert "value of the domain" in refusal(*laplace, "--null-value", "centre")
    published = ("--mechanism", "matrix-factorization-published", "--scale", "-2:7", "--epsilon", 1, "--out", "sent")
    assert "dimensions" in refusal("perturb", "numbers.csv", *published)
    layers = ("--mechanism", "two-layer", "--epsilon", 1, "--answers", 3, "--out", "sent")
    assert "1..3 cells" in refusal("perturb", "labels.csv", "--labels", ",".join(LABELS), *LISTS, *layers)


def test_lists_must_be_complete_and_named(refusal: Refusal) -> None:
    """A list of tasks that misses one, repeats one or holds an empty name is refused."""
    for contents, said in (("task\n1\n2\n", "given list"), ("task\n1\n1\n", "repeat"), ("task,x\n1,2\n,3\n", "line 3")):
        Path("tasks.csv").write_text(contents)
        assert said in refusal("perturb", "labels.csv", "--tasks", "tasks.csv", *PERTURB)


def test_a_folder_that_cannot_be_written_is_named(refusal: Refusal) -> None:
    """An --out that is a file is refused with its name."""
    assert "'numbers.csv'" in refusal("perturb", "labels.csv", "--lists-from-answers", *PERTURB[:-1], "numbers.csv")
    assert "'numbers.csv'" in refusal("infer", "labels.csv", "--out", "numbers.csv")


def test_a_failed_run_leaves_earlier_files_as_they_were(run: Run, refusal: Refusal) -> None:
    """What stood in the folder before a refused run stands there afterwards, byte for byte."""
    run("perturb", "labels.csv", "--seed", 1, *PERTURB)
    before = {path: path.read_bytes() for path in Path("sent").iterdir()}
    Path("bad.csv").write_text("task,worker,label\na,u,x\na,u,y\n")
    refusal("perturb", "bad.csv", *PERTURB)

    assert before == {path: path.read_bytes() for path in Path("sent").iterdir()}


def test_names_cannot_steer_the_terminal(refusal: Refusal) -> None:
    """Escape sequences in a label reach neither table nor error message."""
    Path("bad.csv").write_text("task,worker,label\na,u,\x1b[2Jx\nb,u,\x1b[2Jx\n")

    assert "\x1b" not in refusal("perturb", "bad.csv", "--labels", "x,y", *PERTURB)


@pytest.mark.parametrize(
    "words",
    [
        ("perturb", "labels.csv", "--mechanism", "nonsense", "--epsilon", "1", "--out", "sent"),
        ("perturb", "labels.csv", "--mechanism", "laplace", "--out", "sent"),
        ("perturb", "labels.csv", *PERTURB, "--low", "0.1"),
        ("perturb", "labels.csv", *PERTURB, "--null-value", "0"),
        ("perturb", "labels.csv", *PERTURB, "--labels", "a,b", "--scale", "0:9"),
        ("perturb", "labels.csv", *PERTURB, "--ordered"),
        ("perturb", "labels.csv", *PERTURB, "--scale", "0-9"),
        ("perturb", "labels.csv", *PERTURB, "--seed", "-1"),
        ("perturb", "labels.csv", "--mechanism", "two-layer", "--high", "0.4", "--out", "sent"),
        (
            "perturb",
            "labels.csv",
            "--mechanism",
            "two-layer",
            "--epsilon",
            "1",
            "--low",
            "0",
            "--high",
            "1",
            "--out",
            "x",
        ),
        ("infer", "labels.csv", "--max-steps", "0"),
        ("infer", "labels.csv", "--labels", '"a"4,b'),
        ("infer", "labels.csv", "--labels", "a\nb"),
        ("infer", "labels.csv", "--certificate", "c.json", "--no-certificate"),
        ("infer", "sums.json", "--prior", "prior.csv"),
        ("account", "--mechanism", "randomized-response", "--epsilon", "1", "--tasks", "10"),
        ("nonsense",),
    ],
    ids=lambda words: " ".join(map(str, words[:1] + words[-2:])),
)
def test_wrong_usage_ends_with_two(words: tuple[str, ...], run: Run) -> None:
    """What could never work, whatever the files say, is wrong usage: exit code 2, and nothing is written."""
    result = run(*words, code=2)

    assert "" == result.stdout
    assert "Usage: " in result.stderr
    assert not Path("sent").exists()
