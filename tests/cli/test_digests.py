"""Digests and guarantees of a collection: changed files are refused, and what is stated comes from certificates."""

import gzip
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from crowdveil.answers.columnar_store import STORE_FILES
from crowdveil.answers.reports import Reports
from crowdveil.storage.crowd import read_crowd
from tests.cli.conftest import LABELS, LISTS, Refusal, Run, RunJson

RESPONSE = ("perturb", "labels.csv", "--mechanism", "randomized-response", "--labels", ",".join(LABELS), *LISTS)
SUMS = ("perturb", "numbers.csv", "--mechanism", "matrix-factorization", "--scale", "-2:7", "--seed", 1)
FORMS = {"csv": "reports.csv", "parquet": "reports.parquet", "blocks": "value.bin"}


def crowd_in(folder: str) -> dict[str, Any]:
    """Return what the crowd.json of a folder says."""
    found: dict[str, Any] = json.loads(Path(folder, "crowd.json").read_bytes())
    return found


def reports_in(folder: str, form: str) -> str:
    """Return what infer is given: the folder of encoded blocks, or the file."""
    return folder if form == "blocks" else f"{folder}/{FORMS[form]}"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_crowd_names_the_reports_by_their_digest(form: str, run: Run) -> None:
    """crowd.json holds the SHA-256 of the file of reports as it was written, with the digest of the certificate."""
    run(*RESPONSE, "--epsilon", 1, "--format", form, "--out", "sent")
    written = Path("sent", FORMS[form]).read_bytes()

    assert hashlib.sha256(written).hexdigest() == crowd_in("sent")["reports_sha256"]
    assert json.loads(Path("sent/certificate.json").read_bytes())["sha256"] == crowd_in("sent")["certificate_sha256"]


@pytest.mark.parametrize("form", FORMS)
def test_reports_of_another_epsilon_are_refused(form: str, run: Run, refusal: Refusal) -> None:
    """Reports of epsilon 0.5 in a folder of epsilon 8 are refused by infer and encode, with the way out."""
    for epsilon, folder in ((0.5, "low"), (8, "high")):
        run(*RESPONSE, "--epsilon", epsilon, "--format", form, "--out", folder)
    for name in os.listdir("low"):
        if name not in ("crowd.json", "certificate.json"):
            shutil.copy(Path("low", name), Path("high", name))
    given = reports_in("high", form)

    for words in (("infer", given, "--out", "a"), ("data", "encode", given, "--out", "b")):
        line = refusal(*words)
        assert "must be unchanged since the crowd.json of their folder was written" in line
        assert "--accept-edited" in line
    assert not any(Path(name).exists() for name in "ab")


def test_a_simulation_with_a_real_crowd_is_refused(run: Run, refusal: Refusal) -> None:
    """Seeded reports do not pass under the crowd.json and the certificate of a real collection."""
    run(*RESPONSE, "--epsilon", 2, "--out", "real")
    run(*RESPONSE, "--epsilon", 2, "--seed", 3, "--out", "simulated")
    shutil.copy("simulated/reports.csv", "real/reports.csv")
    named, found = crowd_in("real")["reports_sha256"], crowd_in("simulated")["reports_sha256"]

    assert f"SHA-256 {found}, crowd.json names {named}" in refusal("infer", "real/reports.csv")
    shutil.copy("real/certificate.json", "simulated/certificate.json")
    assert "not the crowd's" in refusal("infer", "simulated/reports.csv")


def test_sums_of_another_collection_are_refused(run: Run, refusal: Refusal, run_json: RunJson) -> None:
    """Sums have a digest like reports; edited on purpose, they are read with a warning."""
    for epsilon, folder in ((1, "low"), (8, "high")):
        run(*SUMS, "--epsilon", epsilon, "--dimensions", 4, "--out", folder)
    sums = json.loads(Path("high/sums.json").read_bytes())
    sums["values"][0] += 1
    Path("high/sums.json").write_text(json.dumps(sums))

    assert "--accept-edited" in refusal("infer", "high/sums.json")
    found = run_json("infer", "high/sums.json", "--accept-edited", "--out", "found")
    assert any(text.startswith("The reports were edited") for text in found["warnings"])


def test_a_renamed_or_gzipped_copy_is_the_same(run: Run, run_json: RunJson) -> None:
    """The digest is that of the content: another name, or gzip, changes nothing."""
    run(*RESPONSE, "--epsilon", 2, "--seed", 3, "--out", "sent")
    wanted = run_json("infer", "sent/reports.csv", "--out", "found")["truths"]
    Path("sent/copy.csv.gz").write_bytes(gzip.compress(Path("sent/reports.csv").read_bytes()))
    os.rename("sent/reports.csv", "sent/other.csv")

    assert wanted == run_json("infer", "sent/other.csv", "--out", "found")["truths"]
    assert wanted == run_json("infer", "sent/copy.csv.gz", "--out", "found")["truths"]


@pytest.mark.parametrize("form", ["csv", "blocks"])
def test_reports_edited_on_purpose_stay_marked(form: str, run: Run, run_json: RunJson) -> None:
    """With --accept-edited, infer says that the reports were edited, and so does what encode writes."""
    run(*RESPONSE, "--epsilon", 2, "--format", form, "--out", "sent")
    reports = Reports.open("sent") if form == "blocks" else Reports.from_csv("sent/reports.csv")
    if form == "blocks":
        kept = slice(0, len(reports) - 1)
        columns = reports.task[kept], reports.worker[kept], reports.value[kept]
        Reports(*columns, reports.tasks, reports.workers, reports.alphabet).save("other")
        for file in STORE_FILES:
            shutil.copy(Path("other", file), Path("sent", file))
    else:
        text = Path("sent/reports.csv").read_text()
        Path("sent/reports.csv").write_text(text.rsplit("\n", 2)[0] + "\n")
    given = reports_in("sent", form)
    accepted = (given, "--accept-edited", "--json", "--out")
    done = [json.loads(run(*words, *accepted, words[-1]).stdout) for words in (("infer",), ("data", "encode"))]
    done.append(run_json("infer", "encode", "--out", "x"))

    assert [len(reports) - 1] * 3 == [data["reports"] for data in done]
    assert [True] * 3 == [any(text.startswith("The reports were edited") for text in data["warnings"]) for data in done]
    stated = read_crowd("encode/crowd.json").collection.guarantee_text
    assert stated.startswith("unknown: the reports were edited after they were sent")
    assert (True, False) == (crowd_in("encode")["edited"], crowd_in("sent")["edited"])
    assert "warning" in run("infer", given, "--accept-edited", "--out", "z").stdout


def test_a_certificate_alone_is_tied_to_nothing(run: Run, run_json: RunJson) -> None:
    """Without crowd.json the channel is read, and a warning says that nothing ties the reports to it."""
    run(*RESPONSE, "--epsilon", 2, "--participation", "public", "--out", "sent")
    Path("sent/crowd.json").unlink()

    warnings = run_json("infer", "sent/reports.csv")["warnings"]

    assert any("whether the certificate is theirs cannot be checked" in text for text in warnings)


STATED_LABELS = ("--labels", "no,yes", "--mechanism", "randomized-response", "--epsilon", 2)
TASKS = range(20)
FORGED = {
    **{"epsilon": 0.01, "delta": 0.0, "unit": "cell", "participation": "protected"},
    **{"claimed": None, "reason": "hidden from everybody"},
}


def perturbed(run: Run, out: str, worker: str, *more: object) -> None:
    """Let one worker report on the tasks: that all reports are NULL happens once in 1e19 times."""
    rows = "".join(f"{task},{worker},{'no' if task % 2 else 'yes'}\n" for task in TASKS)
    Path(f"{out}.csv").write_text(f"task,worker,label\n{rows}", encoding="utf-8")
    run("perturb", f"{out}.csv", *STATED_LABELS, *more, "--out", out)


def lists(out: str, worker: str) -> tuple[str, ...]:
    """Write the lists of tasks and of one worker; return the options that give them."""
    Path("tasks.csv").write_text("task\n" + "".join(f"{task}\n" for task in TASKS), encoding="utf-8")
    Path(f"{out}-workers.csv").write_text(f"worker\n{worker}\n", encoding="utf-8")
    return "--tasks", "tasks.csv", "--workers", f"{out}-workers.csv"


def reworded(folder: str, **changes: object) -> dict[str, Any]:
    """Change some fields of a crowd.json and return the original values."""
    path = Path(folder) / "crowd.json"
    crowd: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(crowd | changes), encoding="utf-8")
    return crowd


@pytest.fixture
def collection(run: Run, folder: Path) -> None:
    """Make a collection that promises something."""
    perturbed(run, "first", "ann", *lists("first", "ann"))


@pytest.mark.parametrize("verb", [("infer",), ("data", "encode")])
def test_another_guarantee_than_the_certificate_is_refused(
    refusal: Refusal, collection: None, verb: tuple[str, ...]
) -> None:
    """A crowd.json whose guarantee was changed is refused by every reader; the certificate's is not stated for it."""
    reworded("first", guarantee=FORGED)

    assert "must state the mechanism and the guarantee" in refusal(*verb, "first/reports.csv", "--out", "written")
    assert not Path("written").exists()


def test_an_assignment_that_the_crowd_does_not_name_is_refused(refusal: Refusal, collection: None) -> None:
    """An assignment.csv beside reports that the crowd.json does not name is refused, not left out in silence."""
    Path("first/assignment.csv").write_text("task,worker\n0,ann\n", encoding="utf-8")

    assert "must be named by their crowd.json" in refusal("infer", "first/reports.csv")


def test_a_crowd_cannot_promise_what_its_certificate_does_not(run: Run, refusal: Refusal, collection: None) -> None:
    """Where the certificate is marked, a crowd.json from which the reasons were taken out is refused."""
    perturbed(run, "looked", "eve", "--lists-from-answers")
    reworded("looked", guarantee=FORGED, lists_from_answers=[])

    assert "must not state a guarantee" in refusal("infer", "looked/reports.csv")


def test_what_is_no_guarantee_is_refused(refusal: Refusal, collection: None) -> None:
    """A guarantee in other words than crowdveil's is refused; it could not be held to anything."""
    words = "perfect secrecy, epsilon = 0"
    reworded("first", guarantee=words)
    assert "'guarantee' of a crowd" in refusal("infer", "first/reports.csv")

    reworded("first", guarantee=None, stated_guarantee=words)
    assert "guarantee' of a crowd must be a guarantee as crowdveil writes it" in refusal("infer", "first/reports.csv")


@pytest.mark.parametrize("mark", [("--lists-from-answers",), ("--seed", 3)])
def test_a_marked_certificate_alone_shows_no_epsilon(run: Run, run_json: RunJson, folder: Path, mark: Any) -> None:
    """Parted from crowd.json, the certificate of a simulation or of lists from answers is read without an epsilon."""
    perturbed(run, "looked", "ann", *mark)
    Path("looked/crowd.json").unlink()
    read = run_json("infer", "looked/reports.csv", *lists("looked", "ann"))["noise_model"]

    assert read.startswith("channel of randomized-response, ")
    assert ": no privacy" in read
    assert "epsilon" not in read
