"""Wrong usage ends with 2, refused values and bad input with 1: each one line with the rule, nothing written."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from crowdveil.cli import main
from tests.cli.conftest import LABELS, LISTS, Refusal, Run, write, written

ENORMOUS = "9" * 320
RESPONSE = "perturb labels.csv --mechanism randomized-response --epsilon 1 --out out"
NUMBERS = "perturb numbers.csv --scale -2:7 --epsilon 1 --seed 1 --out out"
ACCOUNT = "account --mechanism randomized-response --labels no,yes,maybe --tasks 10"
PLAN = "plan --tasks 40 --workers 30 --participation-rate 0.5"
LABELLED = f"{PLAN} --labels no,yes,maybe --target-error 0.2"
ASSIGN = f"data assign {' '.join(LISTS)} --out asked.csv"
WRONG = {
    "perturb labels.csv --mechanism nonsense --epsilon 1 --out out": "'nonsense' is not one of",
    "perturb labels.csv --mechanism laplace --out out": "--epsilon",
    f"{RESPONSE} --low 0.1": "--low is an option of two-layer",
    f"{RESPONSE} --null-value 0": "--null-value is an option of laplace",
    f"{RESPONSE} --labels a,b --scale 0:9": "--labels or --scale, not both",
    f"{RESPONSE} --ordered": "--ordered requires --labels",
    f"{RESPONSE} --scale 0-9": "is not LOW:HIGH",
    f"{RESPONSE} --seed -1": "--seed",
    "perturb labels.csv --mechanism two-layer --high 0.4 --out out": "Give --high with --low",
    f"{NUMBERS} --mechanism one-layer --cuts 3": "--cuts is an option of quantized-response",
    f"{NUMBERS} --mechanism one-layer --prior prior.csv": "--prior is an option of",
    f"{NUMBERS} --mechanism quantized-response --cuts 3 --participation-rate 0.1": "without --cuts",
    f"{NUMBERS} --mechanism designed --sigmas one": "not a list of numbers",
    "infer labels.csv --max-steps 0": "--max-steps",
    "infer labels.csv --labels '\"a\"4,b'": "closed quotes",
    "infer labels.csv --labels 'a\nb'": "separated by commas",
    "infer labels.csv --certificate c.json --no-certificate": "not both",
    "infer labels.csv --method david-skene": "Did you mean 'dawid-skene'?",
    "infer labels.csv --memory many": "'many' is not a size",
    "infer ''": "Invalid value for 'REPORTS...'",
    "infer labels.csv --truths no,yes --method dawid-skene": "--method cannot be used with --truths",
    "infer sums.json --prior prior.csv": "Sums accept only --method",
    "infer sums.json --merge-labels": "Sums accept only --method",
    "next labels.csv --gold gold.csv --budget 5 --per-worker 2": "--per-worker cannot be used with --gold",
    "conclude labels.csv --gold gold.csv --compare a": "two workers",
    "import tolka a.csv --out b.csv": "Did you mean 'toloka'?",
    "account --mechanism randomized-response --epsilon 1 --tasks 10": "--labels or --scale",
    f"{ACCOUNT} --budget 5 --epsilon 1": "--budget",
    ACCOUNT: "--budget",
    f"{ASSIGN} --per-task 2 --budget 4 --epsilon 1": "--per-task",
    ASSIGN: "--per-task",
    f"{ASSIGN} --per-task 2 --gold tasks.csv": "--gold and --gold-per-worker together",
    f"{PLAN} --target-error 0.1": "--labels or --scale",
    f"{LABELLED} --epsilon one": "not a list of numbers",
    f"{PLAN} --labels no,yes": "--budget",
    f"{PLAN} --labels no,yes --budget 2 --epsilon 1": "--budget",
    f"{PLAN} --labels no,yes --budget 2 --assigned-per-task 3": "--budget",
    "nonsense": "No such command",
    "infer labels.csv --truths a,b --engine dask --address tcp://a:1": "--address cannot be used with --truths",
    **{
        f"{command} {ENORMOUS}": "1000000000000"
        for command in (
            *("account --mechanism two-layer --tasks 3 --answers", "data assign --per-task"),
            *("infer labels.csv --max-steps", "plan --tasks", "plan --workers"),
            "account --mechanism matrix-factorization --tasks 3 --dimensions",
            *(f"data synthesize x --{name}" for name in ("records", "most-claims")),
        )
    },
}
"""Command lines by what their error says."""
SYNTHESIZE = "data synthesize numbers.csv --epsilon 1 --bounds -2:7 --out out"
REFUSED = {
    f"{SYNTHESIZE} --bounds 9:0": "Such as --bounds 0:100",
    f"{SYNTHESIZE} --expected-claims nan": "expected_claims must be positive and finite",
    f"{SYNTHESIZE.replace('numbers.csv', 'labels.csv')}": "If these are labels, choose a method for labels.",
    f"{ASSIGN} --per-task 1000": "Assign each task to fewer workers",
    "data sources nothing": "`crowdveil data sources` describes them",
    f"{LABELLED.replace('0.5', '2')}": "Such as 0.3: three tenths of the cells are answered",
    "infer labels.csv --certificate .": "Give a certificate.json",
    "infer labels.csv --certificate tasks.csv": "Request the certificate again",
    "infer labels.csv --abstain-below nan": "Such as 0.9",
    "infer labels.csv --encoding none": "Save the file as UTF-8",
    "review labels.csv --below 2": "Such as 0.5",
    "campaign invite none": "Give the folder that `crowdveil campaign new` wrote",
    "campaign serve none": "Give the folder that `crowdveil campaign new` wrote",
    "campaign new tasks.csv --out out": "`crowdveil campaign init` writes such a file",
    f"{LABELLED} --assigned-per-task 31": "a task is assigned to 1 to 30 workers",
    f"{LABELLED} --epsilon 30": "epsilon",
    f"{LABELLED} --sigmas 1,2": "sigmas describe workers on a scale",
    f"{LABELLED} --method gaussian": "the method of a plan for these answers is dawid-skene or",
    f"{PLAN} --scale 0:4 --target-error 0.1 --ability 0.8": "described by sigmas, not by ability",
    "infer labels.csv --method weighted-mean": "ordered labels",
    "infer labels.csv --method factorization-mean": "the method must be one of",
    "infer labels.csv --tolerance nan": "tolerance",
    "infer labels.csv --certificate none.json": "none.json: the file must exist and be readable",
    "infer labels.csv --memory 100": "memory must be about",
    "infer labels.csv --engine threads --address tcp://10.0.0.1:8786": "the engine threads has no address",
    "infer none.csv --engine dask --address nonsense": "must be one such as tcp://HOST:8786",
    "infer labels.csv --out numbers.csv": "'numbers.csv'",
    "infer labels.csv --prior other.csv": "and to no other",
    "infer labels.csv --prior other.csv --method weighted-vote": "no prior",
    f"{RESPONSE.replace('out out', 'out numbers.csv')} --lists-from-answers": "'numbers.csv'",
    "next labels.csv --budget 2 --workers ann,bob": "CSV file with the column worker",
    "next numbers.csv --budget 2": "labels only",
    **{
        RESPONSE.replace("epsilon 1", f"epsilon {epsilon}"): "epsilon must be in [1e-06, 20]"
        for epsilon in ("0", "-1", "nan", "1e9", "inf", "1e-9")
    },
    f"{NUMBERS} --mechanism laplace --null-value centre": "value of the domain",
    f"{NUMBERS} --mechanism matrix-factorization-published": "dimensions",
    f"{RESPONSE.replace('randomized-response', 'matrix-factorization')}": "numeric answers",
    f"perturb labels.csv --mechanism two-layer --epsilon 1 --answers 3 --labels {','.join(LABELS)} {' '.join(LISTS)} "
    "--out out": "1 to 3 cells",
    **{
        f"{ACCOUNT} --epsilon 1 {option} {ENORMOUS}": f"{option[2:]} must be from 1 to 1,000,000,000,000"
        for option in ("--tasks", "--rounds")
    },
}
"""Command lines by the rule that their error names."""


@pytest.mark.parametrize("line", WRONG, ids=lambda line: line[:60])
def test_wrong_usage_ends_with_two(line: str, run: Run) -> None:
    """What could never work, whatever the files hold, is wrong usage, and nothing is written."""
    result = run(*shlex.split(line), code=2)

    assert "" == result.stdout
    assert "Usage: " in result.stderr
    assert WRONG[line] in " ".join(result.stderr.split())


@pytest.mark.parametrize("line", REFUSED, ids=lambda line: line[:60])
def test_values_out_of_range_are_refused(line: str, refusal: Refusal) -> None:
    """A value that does not fit ends with one line that states the rule."""
    write("other.csv", "label,probability", "no,0.5", "yes,0.5")

    assert REFUSED[line] in refusal(*shlex.split(line))


@pytest.mark.parametrize(
    "line",
    [
        *("verify none.json", "statement none", "statement labels.csv --answers 3"),
        "audit --command false --input labels.csv --neighbour numbers.csv --epsilon 1",
        "audit --command 'cat {input}' --input none --neighbour labels.csv --epsilon 1",
        "audit --command 'cat {input}' --input . --neighbour labels.csv --epsilon 1",
    ],
)
def test_a_check_that_could_not_run_says_what_to_do(line: str, refusal: Refusal) -> None:
    """What ends with 3 has a hint, too."""
    assert refusal(*shlex.split(line), code=3)


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
    assert "from 1 worker on 3 tasks" in run(words[0], "odd.csv", *columns, "--encoding", "cp1252", *words[1:]).stdout


def test_files_that_are_not_there_are_named(refusal: Refusal) -> None:
    """A missing file of answers, reports, gold, prior or certificate is named."""
    for option in ("--gold", "--score", "--prior", "--certificate"):
        assert "none.csv" in refusal("infer", "labels.csv", option, "none.csv", "--out", "found")
    assert "none.csv" in refusal("perturb", "none.csv", *PERTURB)
    assert "none.csv" in refusal("infer", "none.csv")
    assert "none.csv" in refusal("perturb", "labels.csv", "--tasks", "none.csv", *PERTURB)
    assert not Path("found").exists()


def test_lists_must_be_complete_and_named(refusal: Refusal) -> None:
    """A list of tasks that misses one, repeats one or holds an empty name is refused."""
    for contents, said in (("task\n1\n2\n", "given list"), ("task\n1\n1\n", "repeat"), ("task,x\n1,2\n,3\n", "line 3")):
        Path("tasks.csv").write_text(contents)
        assert said in refusal("perturb", "labels.csv", "--tasks", "tasks.csv", *PERTURB)


def test_names_cannot_steer_the_terminal(refusal: Refusal) -> None:
    """Escape sequences in a label reach neither table nor error message."""
    Path("bad.csv").write_text("task,worker,label\na,u,\x1b[2Jx\nb,u,\x1b[2Jx\n")

    assert "\x1b" not in refusal("perturb", "bad.csv", "--labels", "x,y", *PERTURB)


def test_a_failed_run_leaves_earlier_files_as_they_were(run: Run, refusal: Refusal) -> None:
    """What stood in the folder before a refused run stands there afterwards, byte for byte."""
    run("perturb", "labels.csv", "--seed", 1, *PERTURB)
    before = {path: path.read_bytes() for path in Path("sent").iterdir()}
    Path("bad.csv").write_text("task,worker,label\na,u,x\na,u,y\n")
    refusal("perturb", "bad.csv", *PERTURB)

    assert before == {path: path.read_bytes() for path in Path("sent").iterdir()}


FULL = Path("/dev/full")


def path_options(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return all options and arguments that take a path, each as command and parameter."""
    if isinstance(command, click.Group):
        return [found for name, one in command.commands.items() for found in path_options(one, (*path, name))]
    return [(*path, str(one.name)) for one in command.params if isinstance(one.type, click.Path)]


def started(*words: object, stdout: int) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, with a stdout of its own."""
    command = [sys.executable, "-m", "crowdveil", *map(str, words)]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_full_disk_under_stdout_is_one_line(words: tuple[str, ...], folder: Path) -> None:
    """Where the result cannot be printed, stderr says so in one line and that files are in place; exit code 75."""
    with open(FULL, "w") as full:
        done = started("infer", "labels.csv", *words, "--out", "found", stdout=full.fileno())
        helped = started("infer", "--help", *words, stdout=full.fileno())

    assert (75, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert "No space left on device. The command has written its files" in done.stderr
    assert {"truths.csv", "workers.csv"} == written("found")
    assert (75, 1) == (helped.returncode, len(helped.stderr.splitlines()))


@pytest.mark.parametrize("path", path_options(main), ids=" ".join)
def test_every_path_must_not_be_empty(path: tuple[str, ...]) -> None:
    """Every option and argument of every command that takes a path refuses an empty one."""
    command: Any = main
    for name in path[:-1]:
        command = command.commands[name]
    parameter = next(one for one in command.params if one.name == path[-1])

    with pytest.raises(click.UsageError, match="must not be empty"):
        parameter.type.convert("", parameter, None)


def test_messages_show_names_as_people_wrote_them(refusal: Refusal) -> None:
    """Tasks and truths stand in messages in plain quotes, without the types of a library."""
    Path("known.csv").write_text("task,truth\n1,purple\n")

    for option in ("--score", "--gold"):
        line = refusal("infer", "labels.csv", option, "known.csv", "--out", "found")
        assert "'purple'" in line
        assert "of task '1'" in line
        assert "np." not in line
    assert LABELS[0] in line
