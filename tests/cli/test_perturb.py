"""`crowdveil perturb`: files that belong together, a true account, and the word simulation where a seed was given."""

import json
import re
from pathlib import Path

import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.channels.channel import Channel
from crowdveil.channels.rounding import format_bound
from crowdveil.cli.display import number_with_six_digits
from crowdveil.mechanisms import TwoLayer
from crowdveil.storage.crowd import read_crowd
from tests.cli.conftest import LABELS, LISTS, Refusal, Run, RunJson, rows, written

RESPONSE = ("--mechanism", "randomized-response", "--epsilon", 2, "--labels", ",".join(LABELS), *LISTS)


def test_writes_reports_certificate_and_crowd_that_belong_together(folder: Path, run: Run) -> None:
    """Three files appear; the crowd names the certificate's seal and lists everyone; the certificate checks."""
    run("perturb", "labels.csv", *RESPONSE, "--out", "sent")
    crowd = json.loads(Path("sent/crowd.json").read_bytes())
    certificate = Path("sent/certificate.json").read_bytes()

    assert {"reports.csv", "certificate.json", "crowd.json"} == written(folder / "sent")
    assert json.loads(certificate)["sha256"] == crowd["certificate_sha256"]
    assert LABELS == Channel.from_certificate(certificate).alphabet.names
    assert (20, 30) == (len(crowd["tasks"]), len(crowd["workers"]))
    assert {"task", "worker", "label"} == set(rows(Path("sent/reports.csv"))[0])
    assert LABELS == tuple(crowd["alphabet"]["names"])


def test_without_a_seed_nothing_speaks_of_a_simulation(run: Run) -> None:
    """Secure randomness is the default, and neither table, crowd nor certificate calls it a simulation."""
    result = run("perturb", "labels.csv", *RESPONSE, "--out", "sent")
    crowd = json.loads(Path("sent/crowd.json").read_bytes())

    assert "simulation" not in result.output.lower()
    assert "randomized-response" == json.loads(Path("sent/certificate.json").read_bytes())["mechanism"]
    assert (False, None) == (crowd["simulation"], crowd["seed"])
    stated = read_crowd("sent/crowd.json").collection.guarantee_text
    assert stated.startswith("epsilon = 2 per cell, participation protected")


@pytest.mark.parametrize("value", ["nan", "NULL", ""])
def test_public_participation_leaves_no_row_out_by_its_value(
    run: Run, run_json: RunJson, refusal: Refusal, value: str
) -> None:
    """A row without an answer is refused, skipped or not; a simulation, and protected participation, may skip it."""
    Path("labels.csv").write_text(Path("labels.csv").read_text("utf-8") + f"1,new,{value}\n", "utf-8")
    words = ("perturb", "labels.csv", *RESPONSE[:-4], "--out", "sent")
    public = ("--participation", "public")

    for missing in ("skip", "error"):
        assert "no row may be left out because of its value" in refusal(*words, *public, "--missing", missing)
    assert run_json(*words, *public, "--missing", "skip", "--seed", 1)["holds_for"] is None
    Path("every-worker.csv").write_text(Path("every-worker.csv").read_text("utf-8") + "new\n", "utf-8")
    shown = run(*words, *LISTS, "--missing", "skip", "--replace").stdout
    assert "epsilons of several runs on the same answers add up" in " ".join(shown.split())


def test_a_seed_is_a_simulation_in_table_crowd_and_json(run: Run, run_json: RunJson) -> None:
    """With --seed, the table, crowd.json and the JSON each say simulation and that there is no privacy."""
    table = run("perturb", "labels.csv", *RESPONSE, "--seed", 3, "--out", "sent").stdout
    data = run_json("perturb", "labels.csv", *RESPONSE, "--seed", 3, "--out", "sent", "--replace")
    crowd = json.loads(Path("sent/crowd.json").read_bytes())

    assert table.startswith("simulation only: no privacy")
    shown = " ".join(table.split())
    assert "epsilon none: simulation; without --seed it would be " in shown
    assert f"{format_bound(data['accounts'][0]['exact'], 4)} per cell (single answer)" in shown
    assert "epsilon=" not in shown
    assert "claimed" not in shown
    assert "holder" not in shown
    assert "carries no privacy" in table
    assert (True, 3) == (data["simulation"], data["seed"])
    assert data["privacy"].startswith("none: ")
    assert (True, 3) == (crowd["simulation"], crowd["seed"])
    stated = read_crowd("sent/crowd.json").collection.guarantee_text
    assert stated.startswith("none: a simulation carries no privacy")


def test_a_seed_repeats_and_its_absence_does_not(run: Run) -> None:
    """The same seed writes the same bytes, another seed or none writes others."""
    for name, seed in {"a": ("--seed", 5), "b": ("--seed", 5), "c": ("--seed", 6), "d": (), "e": ()}.items():
        run("perturb", "labels.csv", *RESPONSE, *seed, "--out", name)
    a, b, c, d, e = (Path(name, "reports.csv").read_bytes() for name in "abcde")

    assert a == b
    assert 4 == len({a, c, d, e})


@pytest.mark.parametrize("extra", [(), ("--participation", "public")])
def test_json_and_table_say_the_same_numbers(run: Run, run_json: RunJson, extra: tuple[str, ...]) -> None:
    """Every epsilon and every count of the JSON stands in the table; answers are counted where all see them."""
    listed = ("--labels", ",".join(LABELS), *LISTS)
    words = ("perturb", "labels.csv", "--mechanism", "two-layer", "--epsilon", 1, *listed, "--out", "sent", *extra)
    table = " ".join(run(*words).stdout.split())
    reports = len(rows(Path("sent/reports.csv")))
    data = run_json(*words, "--replace")

    for row in data["accounts"]:
        assert (
            f"exact {format_bound(row['exact'])}, claimed {number_with_six_digits(row['claimed'])} (per {row['unit']}"
            in table
        )
        assert f"participation {row['participation']})" in table
    answered = f"{data['answers']:,}" if extra else "not counted, since participation is protected;"
    assert f"{answered} from {data['workers']:,} workers on {data['tasks']:,} tasks" in table
    assert f"reports {reports:,}" in table
    assert data["reports"] == len(rows(Path("sent/reports.csv")))
    assert all(path in table for path in data["files"])


def test_laplace_takes_ordered_labels_and_a_label_for_null(run_json: RunJson) -> None:
    """Ordered labels are positions, and --null-value may name one of them."""
    data = run_json(
        "perturb", "labels.csv", "--mechanism", "laplace", "--labels", "no,maybe,yes", "--ordered", *LISTS,
        "--epsilon", 1, "--null-value", "maybe", "--out", "sent",
    )  # fmt: skip

    assert 1.0 == data["parameters"]["null_value"]
    assert {"no", "maybe", "yes"} == {row["label"] for row in rows(Path("sent/reports.csv"))}


def test_mechanisms_without_a_channel_state_guarantee_and_parameters_in_the_crowd(folder: Path, run: Run) -> None:
    """Two-layer writes no certificate, with --replace removes an old one, and crowd.json states the exact epsilon."""
    run("perturb", "labels.csv", *RESPONSE, "--out", "sent")
    layers = ("--mechanism", "two-layer", "--low", 0.1, "--high", 0.4, "--labels", ",".join(LABELS), *LISTS)
    result = run("perturb", "labels.csv", *layers, "--out", "sent", "--replace")
    crowd = json.loads(Path("sent/crowd.json").read_bytes())

    assert {"reports.csv", "crowd.json"} == written(folder / "sent")
    assert crowd["certificate_sha256"] is None
    assert "two-layer" == crowd["mechanism"]
    assert crowd["description"].startswith("two-layer (low=0.1, high=0.4, answers=20")
    assert crowd["guarantee"]["epsilon"] != crowd["guarantee"]["claimed"] is not None
    assert "no channel per cell" in result.stdout


def test_matrix_factorization_writes_sums(folder: Path, run_json: RunJson) -> None:
    """The vectors of all workers are written as their sum; nothing about single workers is kept."""
    data = run_json(
        "perturb", "numbers.csv", "--mechanism", "matrix-factorization", "--scale", "-2:7", "--epsilon", 1,
        *LISTS, "--dimensions", 4, "--out", "sent",
    )  # fmt: skip
    sums = json.loads(Path("sent/sums.json").read_bytes())

    assert {"sums.json", "crowd.json"} == written(folder / "sent")
    assert (4, 4) == (len(sums["values"]), len(sums["participation"]))
    assert 30 == data["reports"]


@pytest.mark.parametrize(("low", "high"), [(0.2, 0.4), (0.1, 0.3), (0.25, 0.45), (0.3, 0.5)])
def test_the_written_epsilon_is_not_below_the_exact_one(run: Run, low: float, high: float) -> None:
    """The epsilon in crowd.json, and those that its text and the table print, are at least that of the mechanism."""
    answered = ("--labels", ",".join(LABELS), *LISTS, "--answers", 20)
    table = run(
        "perturb", "labels.csv", "--mechanism", "two-layer", "--low", low, "--high", high, *answered, "--out", "sent"
    ).stdout
    crowd = json.loads(Path("sent/crowd.json").read_bytes())
    exact = TwoLayer(alphabet=Categories(LABELS), low=low, high=high, answers=20).guarantee.epsilon

    stated = read_crowd("sent/crowd.json").collection.guarantee_text
    written = (re.search(r"epsilon = ([0-9.]+)", stated), re.search(r"exact ([0-9.]+)", table))

    assert crowd["guarantee"]["epsilon"] >= exact
    assert [True, True] == [float(text[1]) >= exact for text in written if text]


def test_names_that_cannot_be_written_are_refused_before_anything_is(folder: Path, run: Run) -> None:
    """A label with a space around it and confusable workers are refused by name, and no file appears."""
    answers = {"label.csv": "task,worker,label\nt,r1a,no\n", "worker.csv": "task,worker,label\nt,r1a,no\nu, r1a,yes\n"}
    for name, text in answers.items():
        Path(name).write_text(text)
    words = ("--mechanism", "randomized-response", "--epsilon", 2, "--seed", 1, "--out", "sent")

    label = run("perturb", "label.csv", *words, "--labels", "no,yes\u00a0", code=1).stderr
    worker = run("perturb", "worker.csv", *words, "--labels", "no,yes", code=1).stderr

    assert "label 'yes\\xa0': it has leading or trailing white space" in label
    assert "'workers' of a crowd must be distinguishable" in worker
    assert not Path("sent").exists()


def test_names_that_a_spreadsheet_reads_as_formulas_are_named(folder: Path, run_json: RunJson) -> None:
    """The first such task, worker or label is in a warning of each command that writes CSV; numbers are not meant."""
    Path("odd.csv").write_text("task,worker,label\n=1+1,ann,yes\n-1,bob,no\n")
    Path("odd-tasks.csv").write_text("task\n-1\n=1+1\n")
    Path("odd-workers.csv").write_text("worker\nann\nbob\n")
    words = (
        *("--mechanism", "randomized-response", "--epsilon", 1, "--labels", "no,yes", "--tasks", "odd-tasks.csv"),
        *("--workers", "odd-workers.csv", "--out", "sent"),
    )
    warning = "A spreadsheet reads '=1+1' in the CSV as a formula: import its columns as text."

    assert warning in run_json("perturb", "odd.csv", *words)["warnings"]
    assert warning not in run_json("perturb", "odd.csv", *words, "--replace", "--format", "parquet")["warnings"]
    assert warning in run_json("infer", "odd.csv", "--out", "found")["warnings"]
    assert warning not in run_json("infer", "odd.csv", "--out", "found", "--format", "json")["warnings"]
    assert warning in run_json("share", "odd.csv", "--out", "shares.csv")["warnings"]
    assert warning not in run_json("share", "odd.csv")["warnings"]
    Path("wide.csv").write_text("task,ann,bob\n=1+1,yes,no\n")
    assert warning in run_json("import", "wide", "wide.csv", "--out", "long.csv")["warnings"]
    assert warning not in run_json("import", "wide", "wide.csv", "--out", "long.jsonl")["warnings"]
    assert not any("spreadsheet" in text for text in run_json("infer", "numbers.csv", "--out", "found")["warnings"])
