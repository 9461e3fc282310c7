"""`crowdveil infer`: channels, gold, data sets and saved fits; truths and workers are written, table and JSON agree."""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from crowdveil.cli import progress
from crowdveil.registry import ESTIMATOR_ENTRIES, estimators_with
from crowdveil.storage.results.result_files import read_results
from tests.cli.conftest import LABELS, LISTS, Refusal, Run, RunJson, rows

FOR_LABELS = estimators_with(kind="categorical", needs_ordered_labels=False)
SENT = ("sent/reports.csv", "--out", "found")


@pytest.mark.slow
@pytest.mark.parametrize("method", FOR_LABELS)
def test_every_method_for_labels_recovers_truths_at_a_large_epsilon(method: str, sent: Path, run_json: RunJson) -> None:
    """At epsilon 3 on 30 workers of ability 1/2 to 1, every method errs on at most 3 of 20 tasks (seeds fixed)."""
    data = run_json("infer", *SENT, "--method", method, "--score", "labels-gold.csv")

    assert (method, ESTIMATOR_ENTRIES[method].capabilities.reads_channel) == (data["method"], data["channel_used"])
    assert data["score"]["error"] <= 0.15
    assert data["score"]["error"] < data["score"]["baseline"]


@pytest.mark.slow
def test_reports_that_do_not_identify_the_truths_say_so_first(run_json: RunJson) -> None:
    """Where NULL is sent as a number and little is known, the first warning is that the truths are not identified."""
    run_json(
        "perturb",
        "numbers.csv",
        *("--mechanism", "laplace", "--scale", "-2:7", "--epsilon", 1, *LISTS, "--out", "sent"),
    )
    data = run_json("infer", *SENT)

    assert data["warnings"][0].startswith("These reports do not identify the truths")
    assert 0 == data["baseline"]["moved"]
    assert {("-2", "7")} == {(row["low"], row["high"]) for row in rows("found/truths.csv")}


def test_json_and_table_say_the_same_numbers(sent: Path, run: Run, run_json: RunJson) -> None:
    """Every count, error, quality and truth of the JSON stands in the table, in the table's rounding."""
    words = ("infer", *SENT, "--score", "labels-gold.csv")
    table, data = " ".join(run(*words).stdout.split()), run_json(*words)
    score = data["score"]

    assert f"{data['reports']:,} from {data['workers']:,} workers on {data['tasks']:,} tasks" in table
    assert f"steps {data['steps']:,}, converged" in table
    assert f"error_rate {score['error']:.4f} (constant {score['constant']}: {score['baseline']:.4f})" in table
    assert f"correlation {score['correlation']:.3f}, {score['scored']} gold tasks" in table
    assert data["baseline"]["sentence"] in table
    assert f"expected {100 * data['baseline']['expected_error']:.1f} % wrong" in table
    for name in ("lowest", "median", "highest"):
        assert f"{name} {data['quality'][name]:.3g}" in table
    for truth in data["truths"]["items"]:
        expected = (
            f"{truth['task']}: {truth['truth']} ({truth['reports']} reports, confidence {truth['confidence']:.4f})"
        )
        assert expected in table


def test_the_certificate_matters_and_can_be_left_out(sent: Path, run_json: RunJson) -> None:
    """With the certificate in the folder of the reports the channel is in the fit; with --no-certificate it is not."""
    through, without = run_json("infer", *SENT), run_json("infer", *SENT, "--no-certificate")
    (sent / "certificate.json").rename("elsewhere.json")
    given = run_json("infer", *SENT, "--certificate", "elsewhere.json")

    assert [True, False, True] == [data["channel_used"] for data in (through, without, given)]
    assert "none: as asked" == without["noise_model"]
    assert through["truths"] == given["truths"] != without["truths"]
    assert through["noise_model"].endswith("randomized-response, SIMULATION from seed 4: no privacy")


def test_a_certificate_that_was_changed_is_refused_by_its_defect(sent: Path, refusal: Refusal) -> None:
    """One changed entry breaks the seal; the message names file, defect and way out, and nothing is written."""
    path = sent / "certificate.json"
    data = json.loads(path.read_bytes())
    data["rows"][0][0] += 1
    path.write_text(json.dumps(data))
    line = refusal("infer", *SENT)

    assert "Certificate refused (hash)" in line
    assert str(path) in line
    assert "--no-certificate" in line
    assert not Path("found").exists()


def test_another_certificate_than_the_crowds_is_refused(sent: Path, run: Run, refusal: Refusal) -> None:
    """A sound certificate whose seal is not the one in crowd.json is refused, and so is a missing one."""
    run("perturb", "labels.csv", "--mechanism", "one-layer", "--epsilon", 1, "--seed", 1, "--out", "other")

    assert "not the crowd's" in refusal("infer", *SENT, "--certificate", "other/certificate.json")
    (sent / "certificate.json").unlink()
    assert "Certificate refused (missing)" in refusal("infer", *SENT)
    assert not Path("found").exists()


def test_labels_must_be_those_of_the_certificate(sent: Path, refusal: Refusal) -> None:
    """Other --labels than the certificate's, and reports with another label, are refused."""
    assert "those of the certificate" in refusal("infer", *SENT, "--labels", "no,yes")
    reports = (sent / "reports.csv").read_text()
    (sent / "reports.csv").write_text(reports.replace(",yes", ",sometimes"))
    assert "'sometimes'" in refusal("infer", *SENT, "--accept-edited")


def test_a_certificate_without_its_crowd_needs_the_lists_of_all_who_were_asked(
    sent: Path, refusal: Refusal, run_json: RunJson
) -> None:
    """Without crowd.json silent workers are unknown, which is refused; with both lists nobody is lost, and a warning
    says that the certificate cannot be checked."""
    run_json("infer", *SENT, "--out", "with")
    (sent / "crowd.json").unlink()
    for lists in ((), LISTS[:2], LISTS[2:]):
        line = refusal("infer", *SENT, *lists)
        assert "need the lists of all tasks and workers that were asked" in line
        assert "--tasks and --workers" in line
    data = run_json("infer", *SENT, *LISTS, "--out", "without")
    found = [{row["task"]: row for row in rows(Path(name, "truths.csv"))} for name in ("with", "without")]

    assert data["channel_used"]
    assert found[0].keys() == found[1].keys()
    for task, row in found[0].items():
        assert row["truth"] == found[1][task]["truth"]
        assert float(row["confidence"]) == pytest.approx(float(found[1][task]["confidence"]))
    assert any("No crowd.json in the folder of the reports" in text for text in data["warnings"])


def test_a_simulation_says_so_and_a_real_collection_does_not(sent: Path, run: Run) -> None:
    """The warning comes first in the table of a simulation, and is absent otherwise."""
    assert run("infer", *SENT).stdout.startswith("warning")
    assert "simulation: they carry no privacy" in run("infer", *SENT).stdout
    labels = ("--labels", ",".join(LABELS), *LISTS)
    run("perturb", "labels.csv", "--mechanism", "one-layer", "--epsilon", 3, *labels, "--out", "real")
    assert "simulation" not in run("infer", "real/reports.csv").stdout


def test_a_fit_that_has_not_settled_says_so(sent: Path, run: Run, run_json: RunJson) -> None:
    """With too few steps, table and JSON both say that the fit has not converged; a huge tolerance settles it."""
    table = run("infer", *SENT, "--method", "dawid-skene", "--max-steps", 2).stdout
    data = run_json("infer", *SENT, "--method", "dawid-skene", "--max-steps", 2)

    assert 2 == table.count("NOT CONVERGED")
    assert (2, False) == (data["steps"], data["converged"])
    assert run_json("infer", *SENT, "--tolerance", 1)["converged"]


def test_a_public_prior_is_read(sent: Path, run_json: RunJson) -> None:
    """A prior over the labels changes the fit."""
    Path("prior.csv").write_text("label,probability\nno,0.98\nyes,0.01\nmaybe,0.01\n")

    assert run_json("infer", *SENT)["truths"] != run_json("infer", *SENT, "--prior", "prior.csv")["truths"]


def test_a_vote_without_probabilities_leaves_confidence_empty(run: Run, run_json: RunJson) -> None:
    """weighted-vote writes empty cells for confidence and probabilities, null in JSON, and prints none."""
    words = ("infer", "labels.csv", "--method", "weighted-vote", "--out", "found", "--score", "labels-gold.csv")
    data = run_json(*words)
    truths = rows("found/truths.csv")

    assert {""} == {row[name] for row in truths for name in ("confidence", *(f"probability_{name}" for name in LABELS))}
    assert {None} == {truth["confidence"] for truth in data["truths"]["items"]}
    assert (None, None) == (data["score"]["log_loss"], data["baseline"]["estimate_error"])
    assert "confidence" not in run(*words).stdout


def test_mistakes_in_names_of_files_and_methods_are_explained(sent: Path, run: Run, refusal: Refusal) -> None:
    """The folder of a collection is its file, two files of reports are refused, and no method like a name suggested."""
    run("infer", "sent")
    Path("sent/reports.parquet").write_bytes(b"")
    assert "Give one of them: sent/reports.csv, sent/reports.parquet." in refusal("infer", "sent")
    assert "Did you mean" not in run("infer", *SENT, "--method", "xyz", code=2).stderr


def test_gold_guides_and_score_only_measures(sent: Path, run_json: RunJson) -> None:
    """Gold fixes its tasks; gold of unknown tasks is counted; a score on the same tasks is called flattering."""
    wrong = {row["task"]: "yes" if row["truth"] == "no" else "no" for row in rows("labels-gold.csv")[:3]}
    Path("gold.csv").write_text(
        "task,truth\n" + "".join(f"{task},{label}\n" for task, label in wrong.items()) + "z,no\n"
    )
    data = run_json("infer", *SENT, "--gold", "gold.csv", "--score", "labels-gold.csv")
    truths = {row["task"]: row["truth"] for row in rows("found/truths.csv")}

    assert (3, 1) == (data["gold_used"], data["gold_unknown"])
    assert wrong == {task: truths[task] for task in wrong}
    assert data["score"]["error"] >= 3 / 20
    assert any("3 of the scored tasks also guided" in text for text in data["warnings"])


def test_grid_gold_guides_a_fit_of_labels(run_json: RunJson, refusal: Refusal) -> None:
    """For methods that see grid points as labels, gold numbers must be grid points, however they are written."""
    run_json(
        "perturb", "numbers.csv", "--mechanism", "one-layer", "--scale", "-2:7", "--epsilon", 8, *LISTS, "--out", "sent"
    )
    Path("gold.csv").write_text("task,truth\n1,7.0\n")
    Path("off.csv").write_text("task,truth\n1,0.25\n")
    run_json("infer", *SENT, "--method", "dawid-skene", "--gold", "gold.csv")

    assert "7" == {row["task"]: row["truth"] for row in rows("found/truths.csv")}["1"]
    assert "gold of task '1' must be among" in refusal("infer", *SENT, "--method", "dawid-skene", "--gold", "off.csv")


def test_a_worse_result_than_a_constant_is_called_that(run_json: RunJson) -> None:
    """Where the best constant would have scored as well, a warning says so."""
    Path("noise.csv").write_text("task,worker,label\na,u,x\nb,u,y\n")
    Path("gold.csv").write_text("task,truth\na,y\nb,y\n")
    data = run_json("infer", "noise.csv", "--method", "majority-vote", "--score", "gold.csv")

    assert "Always answering y scores as well or better." in data["warnings"]


@pytest.mark.parametrize("option", ["--gold", "--score"])
def test_known_truths_of_other_tasks_are_refused_before_the_fit(option: str, sent: Path, refusal: Refusal) -> None:
    """Where no name matches, nothing is fitted or written, and the error shows names of both sides."""
    Path("other.csv").write_text("task,truth\n" + "".join(f"task {number},no\n" for number in range(1, 61)))
    line = refusal("infer", *SENT, option, "other.csv", "--max-steps", 1)

    assert "other.csv: no gold task is among the tasks (60 gold tasks, 20 tasks)" in line
    assert "gold tasks 'task 1', 'task 10', 'task 11'; tasks '1', '10', '11'" in line
    assert not Path("found").exists()


def test_known_truths_that_match_in_part_are_counted(sent: Path, run_json: RunJson) -> None:
    """A warning says how many of the known truths are of tasks, for guiding and for scoring."""
    Path("part.csv").write_text("task,truth\n1,no\n2,no\nx,no\ny,no\nz,no\n")
    guided = run_json("infer", *SENT, "--gold", "part.csv")
    scored = run_json("infer", *SENT, "--score", "part.csv")

    assert "2 of 5 gold tasks are among the tasks; 3 were skipped." in guided["warnings"]
    assert "2 of 5 tasks to score are among the tasks; 3 were skipped." in scored["warnings"]


@pytest.fixture
def tiny(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a data directory with a set of labels (a repeated answer, gold for two tasks) and one of numbers."""
    for name, answers, truths, meta in (
        ("tiny", "a,u,x\na,v,x\nb,v,y\nb,v,x\n", "a,x\nb,y\n", {"kind": "binary", "labels": ["x", "y"]}),
        ("sizes", "a,u,1\na,v,3\nb,v,7\n", "a,2\n", {"kind": "numeric", "labels": "0..10"}),
    ):
        (folder / "data" / name).mkdir(parents=True)
        (folder / "data" / name / "answers.csv").write_text("task,worker,answer\n" + answers)
        (folder / "data" / name / "truth.csv").write_text("task,truth\n" + truths)
        (folder / "data" / name / "meta.json").write_text(json.dumps(meta))
    monkeypatch.setenv("CROWDVEIL_DATA", str(folder / "data"))
    return folder / "data"


def test_a_data_set_is_read_as_answers(tiny: Path, run_json: RunJson) -> None:
    """Of repeated answers the first counts, gold takes no part, and a crowd.json in the current folder is not read."""
    Path("crowd.json").write_text("of something else")
    data = run_json("infer", "dataset:tiny", "--out", "found")

    assert (3, 2, 2, 0) == tuple(data[name] for name in ("reports", "tasks", "workers", "gold_used"))
    assert ("hierarchical-dawid-skene", "none: a data set holds answers") == (data["method"], data["noise_model"])
    assert ["1 answer repeats a (task, worker) pair; policy: first."] == data["warnings"]


def test_nothing_is_written_into_the_data_directory(
    tiny: Path, run: Run, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Truths go to the current folder by default; inside the data directory --out must say where to."""
    run("infer", "dataset:tiny")
    before = sorted(tiny.rglob("*"))
    monkeypatch.chdir(tiny / "tiny")

    assert Path(tiny.parent, "truths.csv").exists()
    assert "must not go into the data directory" in refusal("infer", "dataset:tiny")
    assert before == sorted(tiny.rglob("*"))


def test_a_data_set_has_neither_certificate_nor_another_kind(tiny: Path, refusal: Refusal) -> None:
    """--certificate, --kind and other labels are refused with a way out, and so is an unknown set."""
    assert "known type and labels, and no channel" in refusal("infer", "dataset:tiny", "--certificate", "labels.csv")
    assert "answers of known type" in refusal("infer", "dataset:tiny", "--kind", "numeric")
    assert "got 'merge_labels'" in refusal("infer", "dataset:tiny", "--merge-labels")
    assert "has its own labels" in refusal("infer", "dataset:tiny", "--labels", "p,q")
    assert "there are: sizes, tiny" in refusal("infer", "dataset:none")


@pytest.fixture
def grown(folder: Path) -> tuple[str, str]:
    """Return two files of reports, of which the second holds those of the first and more."""
    rows = (folder / "labels.csv").read_text("utf-8").splitlines(keepends=True)
    (folder / "early.csv").write_text("".join(rows[: len(rows) * 3 // 4]), "utf-8")
    return "early.csv", "labels.csv"


def test_a_fit_goes_on_with_more_reports(run_json: RunJson, grown: tuple[str, str]) -> None:
    """Saved, gone on from and saved again in the same file: the log-likelihood is that of a fit from the start."""
    words = ("--method", "one-coin", "--labels", ",".join(LABELS))
    first = run_json("infer", grown[0], *words, "--out", "a", "--save-fit", "fits/one.fit")
    going_on = ("--start-from", "fits/one.fit", "--save-fit", "fits/one.fit")
    second = run_json("infer", grown[1], *words, "--out", "b", *going_on)
    whole = run_json("infer", grown[1], *words, "--out", "c")

    assert Path("fits/one.fit").is_file()
    assert "fits/one.fit" in first["files"]
    assert second["steps"] < whole["steps"]
    assert whole["log_likelihood"] == pytest.approx(second["log_likelihood"], abs=1e-6)


@pytest.mark.parametrize("method", ["hierarchical-dawid-skene", "one-coin", "glad"])
def test_an_interrupted_fit_goes_on_from_its_last_step(
    method: str, run: Run, run_json: RunJson, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an interruption in its fourth step, a fit takes the steps that are left, and its truths are the same."""
    words = ("infer", "labels.csv", "--method", method, "--tolerance", 1e-9)
    whole = run_json(*words, "--out", "whole")
    with monkeypatch.context() as patch:
        patch.setattr(progress, "_Lines", Interrupted)
        stopped = run(*words, "--out", "stopped", "--save-fit", "kept.fit", code=130)
    again = run_json(*words, "--out", "again", "--start-from", "kept.fit", "--save-fit", "kept.fit")

    assert "kept.fit has the fit so far: go on with --start-from kept.fit." in stopped.stderr
    assert not Path("stopped").exists()
    assert whole["steps"] - 2 == again["steps"]
    read = [read_results(Path(folder)).estimate for folder in ("whole", "again")]
    np.testing.assert_allclose(read[0].posterior, read[1].posterior, atol=1e-12)


class Interrupted:
    """Progress of a phase, with Ctrl-C in the fourth step of a fit."""

    def __init__(self, text: str, *_: object, **__: object) -> None:
        self._fits = text == "inferring"

    def __call__(self, done: float, *_: object) -> None:
        """Interrupt the fourth step."""
        if self._fits and done == 4:
            raise KeyboardInterrupt

    def end(self) -> None:
        """Write nothing."""


def test_a_fit_is_saved_while_it_runs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit that takes minutes is saved in between, so that even a power failure loses little."""
    saved = []
    module = import_module("crowdveil.cli.infer")
    monkeypatch.setattr(module, "SECONDS_BETWEEN_SAVES", 0.0)
    monkeypatch.setattr(module, "_save_fit", lambda _, fit: saved.append(fit))
    run("infer", "labels.csv", "--out", "found", "--method", "one-coin", "--save-fit", "kept.fit")

    assert len(saved) >= 3
    assert {"reports"} == {one.role for one in saved[0].inputs}
    assert not (saved[0].state.by_worker["ability"] == saved[-1].state.by_worker["ability"]).all()


def test_reports_without_crowd_or_certificate_are_answers(run_json: RunJson) -> None:
    """A plain file of labels is read as answers, and the reading says why."""
    data = run_json("infer", "labels.csv", "--out", "found")

    assert "none: no certificate was found" == data["noise_model"]
    assert (None, False, []) == (data["simulation"], data["channel_used"], data["warnings"])
