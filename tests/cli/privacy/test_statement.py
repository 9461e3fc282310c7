"""`crowdveil statement` of a folder, a certificate and a campaign; epsilon only where it was checked."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crowdveil.campaign.canonical import canonical_bytes
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.certificate import digest, simulation_mark
from crowdveil.mechanisms.memoised import Memoised
from crowdveil.privacy.statement import ONE_OF_SEVERAL
from tests.campaign.builders import build_campaign
from tests.cli.conftest import Refusal, Run

LISTS = ("--tasks", "tasks.csv", "--workers", "workers.csv", "--labels", "no,yes")


def send(run: Run, *options: object) -> None:
    """Perturb three answers of two workers into sent/."""
    Path("answers.csv").write_text("task,worker,label\na,u,no\na,v,yes\nb,v,yes\n")
    Path("tasks.csv").write_text("task\na\nb\n")
    Path("workers.csv").write_text("worker\nu\nv\n")
    run("perturb", "answers.csv", "--mechanism", "randomized-response", "--epsilon", 2, *LISTS, *options,
        "--out", "sent")  # fmt: skip


def document(run: Run, *words: object) -> dict[str, object]:
    """Return the JSON document of a statement."""
    found: dict[str, object] = json.loads(run("statement", *words, "--json").stdout)
    return found


def test_a_folder_of_reports_needs_no_truths(run: Run, folder: Path) -> None:
    """The statement of reports is the same before and after the inference, and that of its certificate is narrower."""
    send(run)
    before = document(run, "sent")
    run("infer", "sent/reports.csv")
    certificate = document(run, "sent/certificate.json", "--answers", 2)

    assert before == document(run, "sent")
    assert ("reports", "protected", 2) == (before["subject"], before["privacy"], before["answers_per_worker"])
    assert ("certificate", before["epsilon_per_worker"]) == (certificate["subject"], certificate["epsilon_per_worker"])
    assert before["certificate_sha256"] == certificate["certificate_sha256"]


def test_a_simulation_states_no_epsilon(run: Run, folder: Path) -> None:
    """The folder and the certificate of a simulation have no epsilon."""
    send(run, "--seed", 1)

    for source in ("sent", "sent/certificate.json"):
        shown = run("statement", source).stdout
        assert "epsilon" not in shown
        assert "privacy" in shown


def test_truths_of_other_reports_are_refused(run: Run, folder: Path) -> None:
    """A folder whose truths were changed states nothing."""
    send(run)
    run("infer", "sent/reports.csv")
    Path("sent/truths.csv").write_text("task,truth\n")

    assert "unchanged" in run("statement", "sent", code=1).stderr


def test_a_campaign_by_file_and_by_folder(run: Run, folder: Path) -> None:
    """campaign.json and its folder have the same statement; a number of answers is refused."""
    build_campaign().write(Path("asked"))
    found = document(run, "asked")

    assert document(run, "asked/campaign.json") == found
    assert "campaign" == found["subject"]
    assert "with a certificate only" in run("statement", "asked", "--answers", 3, code=1).stderr


def test_a_campaign_that_asks_more_than_it_says_is_refused(run: Run, folder: Path) -> None:
    """Fewer answers of a worker than its parts ask for would state too small an epsilon."""
    build_campaign().write(Path("asked"))
    file = Path("asked/campaign.json")
    data = json.loads(file.read_bytes())
    file.write_bytes(canonical_bytes(data | {"cells": 1, "body_bytes": data["symbol_bytes"]}))

    result = run("statement", "asked", code=1)

    assert "No worker is asked more than 1 tasks" in result.stderr
    assert not result.stdout


def memoised(epsilon: float = 2.0, report_epsilon: float = 1.0, **fields: object) -> str:
    """Write a certificate of memoised reports, with other fields and a right checksum, and return its name."""
    tables = Memoised(alphabet=Categories(("no", "yes")), epsilon=epsilon, report_epsilon=report_epsilon).tables
    data = tables.certificate() | fields
    Path("memoised.json").write_text(json.dumps(data | {"sha256": digest(data)}))
    return "memoised.json"


def test_memoised_reports_have_both_losses_per_answer_and_per_worker(run: Run, folder: Path) -> None:
    """The loss for ever stands before that of one report, in text and JSON, and equals what `verify` finds."""
    text = " ".join(run("statement", memoised(), "--answers", 5).stdout.split())
    found, checked = document(run, memoised(), "--answers", 5), json.loads(run("verify", memoised(), "--json").stdout)
    unknown = " ".join(run("statement", memoised()).stdout.split())

    ever = "for ever, lose epsilon 10 for all answers of one worker (at most 5), epsilon 2 per single answer"
    once = "one report of each answer loses epsilon 5 for all answers of one worker (at most 5), epsilon 1 per single"
    assert text.index(ever) < text.index(once)
    assert "factor of at most 7.39, one report by at most 2.72" in text
    assert "88.1 % sure of either after all reports of that answer" in text
    for name in ("epsilon_per_answer", "epsilon_per_report"):
        assert checked[name] == pytest.approx(found[name], rel=1e-12)
    assert (10.0, 5.0) == pytest.approx((found["epsilon_per_worker"], found["epsilon_per_worker_report"]), abs=1e-4)
    assert 2 == unknown.count("and that times the number of asked tasks")


def test_memoised_reports_are_stated_only_with_true_claims(refusal: Refusal, folder: Path) -> None:
    """A claim of less is refused; so is shuffling, which one report would have to be stated for alone."""
    assert "the claim for_ever must be" in refusal(
        "statement", memoised(claims={"for_ever": [2, 1], "per_report": [2, 1]})
    )
    assert "not shuffled" in refusal("statement", memoised(), "--shuffled", 100, "--delta", 1e-6)


def test_a_marked_table_of_memoised_reports_states_nothing(run: Run, folder: Path) -> None:
    """A mark of a simulation on the permanent table leaves no epsilon."""
    tables = Memoised(alphabet=Categories(("no", "yes")), epsilon=2.0, report_epsilon=1.0).tables
    permanent = replace(tables.permanent, mechanism=tables.permanent.mechanism + simulation_mark(1)).certificate()
    found = document(run, memoised(permanent=permanent))

    assert ("none", None) == (found["privacy"], found["epsilon_per_answer"])
    assert "epsilon" not in found["text"]


def test_one_memoised_report_is_not_stated_alone(run: Run, folder: Path) -> None:
    """The reports of `perturb` are one for each answer, and the statement says what it does not bound."""
    send(run)
    before = run("statement", "sent").stdout
    run("perturb", "answers.csv", "--mechanism", "memoised", "--epsilon", 2, *LISTS, "--out", "once")

    for source in ("once", "once/certificate.json"):
        assert ONE_OF_SEVERAL in " ".join(run("statement", source).stdout.split())
    assert ONE_OF_SEVERAL not in " ".join(before.split())


def test_nothing_is_stated_of_a_folder_that_does_not_exist(refusal: Refusal, folder: Path) -> None:
    """A misspelled name is an error, not a statement that can be filed."""
    assert "must exist" in refusal("statement", "snet")


@pytest.mark.parametrize("command", ["statement", "audit"])
def test_a_table_in_place_of_a_certificate_is_named(refusal: Refusal, folder: Path, command: str) -> None:
    """A file of answers is refused by its name, with what to give."""
    line = refusal(command, "labels.csv")

    assert "must be a certificate or a campaign, got 'labels.csv'" in line
    assert "Give certificate.json" in line
