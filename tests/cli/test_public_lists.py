"""What a guarantee needs to be public is given or refused; nothing that is written follows from who answered."""

import json
from pathlib import Path

import numpy as np
import pytest

from crowdveil.answers.facts.collection import GUARANTEE_SCOPE
from crowdveil.randomness import Secure
from crowdveil.storage.crowd import read_crowd
from tests.cli.conftest import LABELS, LISTS, Refusal, Run, RunJson, write

RESPONSE = ("--mechanism", "randomized-response", "--epsilon", 2)
GIVEN = {"labels": ("--labels", ",".join(LABELS)), "tasks": LISTS[:2], "workers": LISTS[2:]}
EVERYTHING = tuple(word for words in GIVEN.values() for word in words)
ANSWERS = ["a,ann,yes", "a,bob,no", "b,bob,no", "c,cid,maybe"]
"""Worker ann, worker cid, task c, task b and the labels yes and maybe occur once."""


def contents(folder: str) -> dict[str, bytes]:
    """Return the files of a folder by name."""
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


@pytest.fixture
def same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace secure randomness by draws with which every input of a channel gives its first output."""
    monkeypatch.setattr(Secure, "words", lambda self, count: np.zeros(count, dtype=np.int64))


@pytest.fixture
def listed(folder: Path) -> None:
    """Write lists and an assignment of three tasks and four workers, one of whom has no answer."""
    write("tasks.csv", "task", "a", "b", "c")
    write("every-worker.csv", "worker", "dan", "cid", "bob", "ann")
    write("asked.csv", "task,worker", "a,ann", "a,bob", "b,bob", "b,dan", "c,cid")


@pytest.mark.parametrize("missing", [("labels",), ("tasks",), ("workers",), ("labels", "tasks", "workers")])
def test_a_list_that_is_not_given_is_refused(missing: tuple[str, ...], refusal: Refusal, run: Run) -> None:
    """Without a seed, each list that would be taken from the answers is named with its option; nothing is written."""
    given = [word for name, words in GIVEN.items() if name not in missing for word in words]
    line = refusal("perturb", "labels.csv", *RESPONSE, *given, "--out", "sent")

    assert f"{' and '.join(filter(None, (', '.join(missing[:-1]), missing[-1])))} taken from the answers" in line
    assert all(f"--{name}" in line for name in (*missing, "lists-from-answers", "seed"))
    assert not Path("sent").exists()
    run("perturb", "labels.csv", *RESPONSE, *given, "--seed", 1, "--out", "sent")


@pytest.mark.parametrize("missing", ["labels", "tasks", "workers"])
def test_lists_from_answers_leave_no_epsilon(missing: str, run: Run, run_json: RunJson) -> None:
    """With --lists-from-answers the files have a caveat in place of every epsilon, and infer repeats it."""
    given = [word for name, words in GIVEN.items() if name != missing for word in words]
    words = ("perturb", "labels.csv", *RESPONSE, *given, "--lists-from-answers")
    table = run(*words, "--out", "sent").stdout
    printed = run(*words, "--out", "again", "--json").stdout
    data, crowd = json.loads(printed), Path("sent/crowd.json").read_text()
    found = run_json("infer", "sent/reports.csv", "--out", "found")
    caveat = f"{missing} were taken from the answers, and show who answered and what: no privacy"

    assert f"none: {caveat}" == data["privacy"] == read_crowd("sent/crowd.json").collection.guarantee_text
    assert json.loads(crowd)["guarantee"] is None
    assert [missing] == data["lists_from_answers"] == json.loads(crowd)["lists_from_answers"]
    assert table.startswith(f"no privacy   {caveat}")
    assert [] == [text for text in (table, printed, crowd, found["noise_model"]) if "epsilon" in text.lower()]
    assert ([], {}) == (data["accounts"], data["parameters"])
    certified = json.loads(Path("sent/certificate.json").read_bytes())["mechanism"]
    assert "randomized-response, LISTS FROM ANSWERS: no privacy" == certified
    assert f"{caveat.capitalize()}." in found["warnings"]


def test_with_public_participation_only_labels_must_be_given(refusal: Refusal, run_json: RunJson) -> None:
    """Where everyone may see who answered what, tasks and workers may follow from the answers, labels may not."""
    words = ("perturb", "labels.csv", *RESPONSE, "--participation", "public", "--out", "sent")

    assert "labels taken from the answers" in refusal(*words)
    data = run_json(*words, *GIVEN["labels"])
    assert ([], 20, 30) == (data["lists_from_answers"], data["tasks"], data["workers"])
    assert "participation public" in data["privacy"]


QUANTIZED = ("--mechanism", "quantized-response", "--epsilon", 2)
SETTINGS: dict[str, tuple[object, ...]] = {
    "csv": RESPONSE,
    "parquet": (*RESPONSE, "--format", "parquet"),
    "blocks": (*RESPONSE, "--format", "blocks"),
    "assigned": (*RESPONSE, "--assignment", "asked.csv"),
    "cuts dealt": (*QUANTIZED, "--cuts", "yes", "--cuts", "maybe", "--ordered"),
    "laplace": ("--mechanism", "laplace", "--epsilon", 1, "--ordered"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kept", [ANSWERS[1:], ANSWERS[:2] + ANSWERS[3:], ANSWERS[:3], []])
@pytest.mark.parametrize("setting", SETTINGS)
def test_nothing_but_reports_follows_from_one_answer(
    setting: str, kept: list[str], run: Run, listed: None, same_draws: None
) -> None:
    """Without a worker's, a task's or a label's only answer, or any, all files and all that is printed are the same."""
    words = (*SETTINGS[setting], "--labels", ",".join(LABELS), *LISTS)
    printed, files = [], []
    for name, rows in (("with", ANSWERS), ("without", kept)):
        write("answers.csv", "task,worker,label", *rows)
        result = [
            run("perturb", "answers.csv", *words, "--out", name, *extra) for extra in ((), ("--json", "--replace"))
        ]
        printed.append([(one.stdout.replace(f"{name}/", "sent/"), one.stderr) for one in result])
        files.append(contents(name))

    assert files[0] == files[1]
    assert printed[0] == printed[1]


def test_numbers_that_are_clipped_are_not_counted(run: Run, run_json: RunJson, listed: None, same_draws: None) -> None:
    """Without a seed the rule is stated that a scale clips and rounds; how often it did is shown to a simulation."""
    words = (*("--mechanism", "laplace", "--epsilon", 1, "--scale", "0:9"), *LISTS, "--out", "sent", "--replace")
    printed = []
    for rows in (["a,ann,0.5", "a,bob,99"], ["a,ann,1"]):
        write("answers.csv", "task,worker,value", *rows)
        printed.append(run("perturb", "answers.csv", *words).stdout.partition("replaced")[0].partition("written")[0])
    write("answers.csv", "task,worker,value", "a,ann,0.5", "a,bob,99")
    simulated = run_json("perturb", "answers.csv", *words, "--seed", 1)["warnings"]

    assert printed[0] == printed[1]
    assert "clipped to the scale and rounded to its grid" in " ".join(printed[0].split())
    assert [text.split()[0] for text in simulated] == ["1", "1"]


def test_a_repeated_answer_of_a_data_set_is_not_counted(
    run_json: RunJson, listed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A data set's labels are public and its names are not: given lists, a run states the rule for repeats only."""
    Path("data/tiny").mkdir(parents=True)
    write("data/tiny/answers.csv", "task,worker,answer", "a,ann,x", "a,ann,y", "b,bob,x")
    write("data/tiny/meta.json", json.dumps({"kind": "binary", "labels": ["x", "y"]}))
    monkeypatch.setenv("CROWDVEIL_DATA", "data")
    data = run_json("perturb", "dataset:tiny", *RESPONSE, *LISTS, "--out", "sent")

    assert ([], 3, 4) == (data["lists_from_answers"], data["tasks"], data["workers"])
    assert ["Several answers of a worker to a task: policy 'first'."] == data["warnings"]


def test_a_data_set_lists_its_own_names_without_privacy_only(
    refusal: Refusal, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tasks and workers of a data set come from its answers: without a seed they are refused."""
    Path("data/tiny").mkdir(parents=True)
    write("data/tiny/answers.csv", "task,worker,answer", "a,ann,x", "b,bob,y")
    write("data/tiny/meta.json", json.dumps({"kind": "binary", "labels": ["x", "y"]}))
    monkeypatch.setenv("CROWDVEIL_DATA", "data")
    words = ("perturb", "dataset:tiny", *RESPONSE, "--out", "sent")

    assert "'tasks and workers taken from the answers'" in refusal(*words)
    run(*words, "--participation", "public")


def test_an_assignment_lists_tasks_and_workers(run_json: RunJson, listed: None) -> None:
    """Without further lists, all assigned tasks and workers are the campaign's, those who skipped everything too."""
    write("answers.csv", "task,worker,label", "a,bob,no")
    words = (*RESPONSE, "--assignment", "asked.csv", "--labels", ",".join(LABELS), "--out", "sent")
    data = run_json("perturb", "answers.csv", *words)
    crowd = json.loads(Path("sent/crowd.json").read_bytes())

    assert (["a", "b", "c"], ["ann", "bob", "cid", "dan"]) == (crowd["tasks"], crowd["workers"])
    assert "epsilon = 2 per cell, participation protected; hidden: which of the assigned" in data["privacy"]


@pytest.mark.parametrize(
    ("answers", "lists"), [("z,bob,no", ()), ("a,zoe,no", ()), ("a,cid,no", ()), ("a,bob,no", ("--workers", "few.csv"))]
)
def test_no_refusal_advises_to_leave_rows_out(
    answers: str, lists: tuple[str, ...], refusal: Refusal, listed: None
) -> None:
    """Answers outside the assignment, and assigned workers outside the list, never end in a thinned assignment."""
    write("answers.csv", "task,worker,label", answers)
    write("few.csv", "worker", "bob")
    words = (*RESPONSE, "--assignment", "asked.csv", "--labels", ",".join(LABELS), *lists, "--out", "sent")
    line = refusal("perturb", "answers.csv", *words)

    assert "leave" not in line.lower()
    assert "assignment" in line


@pytest.mark.parametrize("extra", [(), ("--participation", "public")])
def test_reports_of_held_answers_say_whom_they_do_not_protect_from(
    extra: tuple[str, ...], run: Run, run_json: RunJson
) -> None:
    """Table, JSON and what crowd.json is read as say that who holds the answers sees them all."""
    words = ("perturb", "labels.csv", *RESPONSE, *EVERYTHING, *extra, "--out", "sent")
    table, data = " ".join(run(*words).stdout.split()), run_json(*words, "--replace")

    assert GUARANTEE_SCOPE.startswith("the holder of the answers sees them all")
    assert f"holder {GUARANTEE_SCOPE}" in table
    assert GUARANTEE_SCOPE == data["holder"]
    assert read_crowd("sent/crowd.json").collection.guarantee_text.endswith(f"; {GUARANTEE_SCOPE}")


UNREAD: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "semicolons": ("frage;person;urteil\n", ";", ()),
    "a line above the header": ("# export\ntask,worker,label\n", ",", ()),
    "a header in another encoding": ("für;person;urteil\n", ";", ()),
    "a stated column that is absent": (
        "frage;person;urteil\n",
        ";",
        ("--task-column", "x", "--worker-column", "person", "--label-column", "urteil"),
    ),
}
CONTENTS = [[], ["a,ann,schön"], ["a,ann,1#5", "b,bob,2#5"], ["task,worker,label"], ["a,ann,yes,no", 'b,"bob']]


@pytest.mark.parametrize("header", UNREAD)
def test_no_answer_decides_what_a_refusal_of_columns_says(header: str, refusal: Refusal, listed: None) -> None:
    """Letters of another encoding, decimal commas, lengths of rows and quotes in answers are not part of it."""
    above, mark, words = UNREAD[header]
    lines = []
    for rows in CONTENTS:
        text = "".join(f"{row}\n" for row in rows).replace(",", mark).replace("#", ",")
        Path("answers.csv").write_bytes((above + text).encode("cp1252"))
        given = ("--labels", "no,yes", "--tasks", "tasks.csv", "--workers", "every-worker.csv", "--out", "sent")
        lines.append(refusal("perturb", "answers.csv", *RESPONSE, *given, *words))

    assert [lines[0]] * len(CONTENTS) == lines


@pytest.mark.parametrize("below", ["", "\n", "\n,,\n\n", "\r\n,,"])
def test_a_file_without_answers_may_end_in_blank_rows_or_within_its_header(
    below: str, run_json: RunJson, listed: None
) -> None:
    """A header without a line end, and blank rows in place of answers, are no defect."""
    Path("answers.csv").write_bytes(f"task,worker,label{below}".encode())
    given = ("--labels", "no,yes", "--tasks", "tasks.csv", "--workers", "every-worker.csv", "--out", "sent")

    assert 3 == run_json("perturb", "answers.csv", *RESPONSE, *given)["tasks"]
