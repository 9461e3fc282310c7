"""The record of truths names everything that they depend on, and statements read it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from crowdveil import seeded
from crowdveil.answers.facts.inputs import Input, inputs_of_json
from crowdveil.channels.alphabet import Categories
from crowdveil.cli.infer import infer
from crowdveil.cli.options import FILE_PATH
from crowdveil.files.output_record import RECORD_FILE, read_record
from crowdveil.simulate import categorical_crowd
from tests.cli.conftest import Refusal, Run, RunJson, write

LABELS = "no,yes"
PUBLIC_LISTS = ("--labels", LABELS, "--tasks", "tasks.csv", "--workers", "workers.csv")
NO_INPUT = {"save_fit", "score"}
"""Files that no written truth depends on: an output, and truths that only score what is printed."""


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """Stand in a folder with answers, their reports in `sent`, and files for every option of `infer`."""
    monkeypatch.chdir(tmp_path)
    made = categorical_crowd(
        workers=10, tasks=30, labels=Categories(("no", "yes")), sparsity=0.4, source=seeded(1)
    ).answers
    answers = [
        f"{made.tasks[task]},{made.workers[worker]},{made.alphabet.names[value]}"
        for task, worker, value in zip(made.task.tolist(), made.worker.tolist(), made.value.tolist(), strict=True)
    ]
    write("answers.csv", "task,worker,label", *answers)
    write("tasks.csv", "task", *map(str, made.tasks.tolist()))
    write("workers.csv", "worker", *map(str, made.workers.tolist()))
    perturbed(run, "sent", 0.5)
    write("gold.csv", "task,truth", "1,no", "2,yes", "3,no")
    write("prior.csv", "label,probability", "no,0.5", "yes,0.5")
    write("history.csv", "worker,correct,answers", "1,8,10", "2,9,10")
    write("costs.csv", "truth,decision,cost", "no,yes,1", "yes,no,2")
    run("infer", "sent/reports.csv", "--out", "first", "--save-fit", "saved.fit")
    return tmp_path


def perturbed(run: Run, folder: str, epsilon: float) -> None:
    """Protect the answers once more, with secure randomness."""
    words = ("--mechanism", "randomized-response", "--epsilon", epsilon, *PUBLIC_LISTS, "--out", folder)
    run("perturb", "answers.csv", *words)


def recorded(folder: str) -> tuple[Input, ...]:
    """Inputs in the record of the truths in a folder."""
    entry = next(entry for entry in read_record(Path(folder)) if entry.name == "truths.csv")
    return inputs_of_json(entry.inputs)


def moved_without_crowd() -> None:
    """Pass on two of the three files of the collection."""
    Path("two").mkdir()
    for name in ("reports.csv", "certificate.json"):
        Path("two", name).write_bytes(Path("sent", name).read_bytes())


def appended(path: str, text: bytes = b"\n") -> None:
    """Change a file by one byte that its readers skip."""
    Path(path).write_bytes(Path(path).read_bytes() + text)


def another_fit(run: Run) -> None:
    """Save the fit of fewer steps, whose file differs."""
    run("infer", "sent/reports.csv", "--out", "again", "--max-steps", 2, "--save-fit", "saved.fit")


FILES: dict[str, tuple[str, str, Callable[[Run], None]]] = {
    "gold": ("gold.csv", "sent/reports.csv", lambda _: appended("gold.csv")),
    "prior": ("prior.csv", "sent/reports.csv", lambda _: appended("prior.csv")),
    "history": ("history.csv", "sent/reports.csv", lambda _: appended("history.csv")),
    "costs": ("costs.csv", "sent/reports.csv", lambda _: appended("costs.csv")),
    "start_from": ("saved.fit", "sent/reports.csv", another_fit),
    "asked_tasks": ("tasks.csv", "two/reports.csv", lambda _: appended("tasks.csv")),
    "asked_workers": ("workers.csv", "two/reports.csv", lambda _: appended("workers.csv")),
    "certificate": ("sent/certificate.json", "two/reports.csv", lambda _: appended("sent/certificate.json")),
}
"""File of each option that names an input, the reports with which it is read, and how it is changed by a byte."""
LISTS = {"asked_tasks": "tasks.csv", "asked_workers": "workers.csv"}


def options_of_files() -> dict[str, str]:
    """Options of `infer` that name a file, by parameter, with their flag."""
    options = [one for one in infer.params if isinstance(one, click.Option)]
    named = [one for one in options if one.type is FILE_PATH or one.metavar == "FILE"]
    return {str(one.name): one.opts[0] for one in named}


def test_every_option_that_names_a_file_is_known_here() -> None:
    """A new option of `infer` that names a file fails this test until its record is tested."""
    assert options_of_files().keys() == FILES.keys() | NO_INPUT


@pytest.mark.parametrize("option", FILES)
def test_a_changed_byte_of_an_input_changes_the_record(option: str, sent: Path, run: Run) -> None:
    """One byte more in a file that `infer` reads changes the inputs in the record of its truths."""
    file, reports, change = FILES[option]
    moved_without_crowd()
    lists = [
        word for name, path in LISTS.items() if reports.startswith("two") for word in (options_of_files()[name], path)
    ]
    given = [] if option in LISTS else [options_of_files()[option], file]
    words = ("infer", reports, *lists, *given)

    run(*words, "--out", "before")
    change(run)
    run(*words, "--out", "after")

    assert recorded("before") != recorded("after")
    assert len(recorded("before")) == len(recorded("after"))


def test_what_only_scores_changes_nothing_that_is_written(sent: Path, run: Run) -> None:
    """Truths, workers and record are the same whatever truths score them."""
    run("infer", "sent/reports.csv", "--score", "gold.csv", "--out", "one")
    write("gold.csv", "task,truth", "1,yes", "2,no")
    run("infer", "sent/reports.csv", "--score", "gold.csv", "--out", "other")

    for name in ("truths.csv", "workers.csv", RECORD_FILE):
        assert Path("one", name).read_bytes() == Path("other", name).read_bytes()


def statement(run_json: RunJson, folder: str) -> dict[str, Any]:
    """The statement of privacy of a folder, as JSON."""
    return run_json("statement", folder)


def test_a_history_of_raw_answers_ends_the_claim(sent: Path, run: Run, run_json: RunJson) -> None:
    """Truths that depend on abilities from unprotected answers have no epsilon, in statement and page."""
    run("infer", "answers.csv", "--out", "raw")
    run("infer", "sent/reports.csv", "--history", "raw", "--out", "found")

    stated = statement(run_json, "found")
    page = run_json("report", "found", "--out", "page.html")

    assert ("none", None, None) == tuple(
        stated[name] for name in ("privacy", "epsilon_per_answer", "epsilon_per_worker")
    )
    assert "the history of the workers" in " ".join(stated["statement"])
    assert ("none", None) == (page["privacy"], page["epsilon_per_answer"])
    assert "most 62.3" not in Path("page.html").read_text("utf-8")


@pytest.mark.parametrize("option", ["--history", "--start-from"])
def test_another_collection_of_the_same_answers_adds_its_epsilon(
    option: str, sent: Path, run: Run, run_json: RunJson
) -> None:
    """Answers protected twice, at 0.5 and at 1, cost 1.5, whether the second came as a history or as a saved fit."""
    perturbed(run, "twice", 1.0)
    run("infer", "twice/reports.csv", "--out", "earlier", "--save-fit", "earlier.fit")
    if option == "--history":
        run("infer", "sent/reports.csv", option, "earlier", "--out", "found")
    else:
        perturbed(run, "again", 1.0)
        run("infer", "again/reports.csv", option, "earlier.fit", "--out", "found")
    single = 0.5 if option == "--history" else 1.0

    stated = statement(run_json, "found")

    assert single + 1.0 == pytest.approx(stated["epsilon_per_answer"], abs=1e-9)
    assert 30 * (single + 1.0) == pytest.approx(stated["epsilon_per_worker"], abs=1e-6)
    assert single + 1.0 <= stated["epsilon_per_answer"] + 1e-12
    assert "this is added" in " ".join(stated["statement"])


@pytest.mark.parametrize("option", [("--history", "first"), ("--start-from", "saved.fit")])
def test_results_of_the_same_reports_add_nothing(
    option: tuple[str, str], sent: Path, run: Run, run_json: RunJson
) -> None:
    """A history or saved fit of these very reports is one release with them."""
    run("infer", "sent/reports.csv", *option, "--out", "found")

    stated = statement(run_json, "found")

    assert 0.5 == pytest.approx(stated["epsilon_per_answer"], abs=1e-9)


def test_a_chain_of_histories_names_each_release_once(sent: Path, run: Run, run_json: RunJson) -> None:
    """Histories of histories do not nest: the record of the eighth week has the size of the second, epsilon stays."""
    sizes = []
    for week in range(1, 9):
        run(
            "infer", "sent/reports.csv", "--history", f"week{week - 1}" if week > 1 else "first", "--out", f"week{week}"
        )
        sizes.append(Path(f"week{week}", RECORD_FILE).stat().st_size)

    assert sizes[1] == pytest.approx(sizes[-1], rel=0.05)
    assert 0.5 == pytest.approx(statement(run_json, "week8")["epsilon_per_answer"], abs=1e-9)


def test_gold_ends_the_claim_unless_it_is_stated_to_be_public(sent: Path, run: Run, run_json: RunJson) -> None:
    """Known truths may depend on answers: without a word there is no epsilon, with it the statement says whose word."""
    run("infer", "sent/reports.csv", "--gold", "gold.csv", "--out", "found")
    run("infer", "sent/reports.csv", "--gold", "gold.csv", "--public-gold", "--out", "public")

    silent, stated = statement(run_json, "found"), statement(run_json, "public")

    assert ("none", "protected") == (silent["privacy"], stated["privacy"])
    assert 0.5 == pytest.approx(stated["epsilon_per_answer"], abs=1e-9)
    assert any("who inferred the truths states" in text for text in stated["not_covered"])


def test_a_saved_fit_of_unknown_origin_ends_the_claim(sent: Path, run: Run, run_json: RunJson) -> None:
    """A saved fit that does not name its inputs, such as one of Python or an older version, leaves no epsilon."""
    from dataclasses import replace

    from crowdveil.em.saved_fit import SavedFit

    unknown = replace(SavedFit.from_bytes(Path("saved.fit").read_bytes()), inputs=())
    Path("saved.fit").write_bytes(unknown.to_bytes())
    run("infer", "sent/reports.csv", "--start-from", "saved.fit", "--out", "found")

    assert "none" == statement(run_json, "found")["privacy"]


def test_truths_without_recorded_inputs_have_no_claim(sent: Path, run: Run, run_json: RunJson) -> None:
    """A record that does not say what its truths depend on, as older versions wrote it, states no epsilon."""
    record = json.loads(Path("first", RECORD_FILE).read_text("utf-8"))
    for entry in record["files"]:
        entry.pop("inputs")
    Path("first", RECORD_FILE).write_text(json.dumps(record), "utf-8")

    stated = statement(run_json, "first")

    assert "none" == stated["privacy"]
    assert "does not say what they depend on" in " ".join(stated["statement"])


def test_a_damaged_list_of_inputs_is_refused(sent: Path, refusal: Refusal) -> None:
    """A record whose inputs are of another form is refused with its folder."""
    record = json.loads(Path("first", RECORD_FILE).read_text("utf-8"))
    for entry in record["files"]:
        entry["inputs"] = [{"role": "reports"}]
    Path("first", RECORD_FILE).write_text(json.dumps(record), "utf-8")

    assert "must say what its truths depend on" in refusal("statement", "first", code=3)
