"""`crowdveil statement` of a folder, a certificate and a campaign; epsilon only where it was checked."""

import json
import re
from datetime import date
from pathlib import Path

import pytest

from crowdveil.campaign.rules.canonical_json import canonical_bytes
from tests.campaign.builders import build_campaign, response
from tests.campaign.service.browser import chromium, needs_chromium
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
    assert "with a certificate only" in run("statement", "asked", "--answers", 3, code=3).stderr


def test_a_campaign_that_asks_more_than_it_says_is_refused(run: Run, folder: Path) -> None:
    """Fewer answers of a worker than its parts ask for would state too small an epsilon."""
    build_campaign().write(Path("asked"))
    file = Path("asked/campaign.json")
    data = json.loads(file.read_bytes())
    file.write_bytes(canonical_bytes(data | {"cells": 1, "body_bytes": data["symbol_bytes"]}))

    result = run("statement", "asked", code=1)

    assert "No worker is asked more than 1 tasks" in result.stderr
    assert not result.stdout


def test_nothing_is_stated_of_a_folder_that_does_not_exist(refusal: Refusal, folder: Path) -> None:
    """A misspelled name is an error, not a statement that can be filed."""
    assert "must exist" in refusal("statement", "snet", code=3)


@pytest.mark.parametrize("contents", [b"task,worker,label\na,u,x\n", b"", b"{", b'{"a": 1}', b"[1]", b"\xff\x00"])
@pytest.mark.parametrize("command", ["statement", "audit", "verify"])
def test_a_file_that_claims_nothing_is_named(refusal: Refusal, folder: Path, command: str, contents: bytes) -> None:
    """A file that is no JSON of a known format cannot be checked: it is refused by its name, with what to give."""
    Path("any.csv").write_bytes(contents)
    line = refusal(command, "any.csv", code=3)

    assert "must be a certificate or a campaign, got 'any.csv'" in line
    assert "Give certificate.json" in line


def test_the_heading_has_date_version_and_responsible_party(run: Run, folder: Path) -> None:
    """A statement that is filed says when, by which version and by whom; without a name it says so."""
    send(run, "--epsilon", 1)
    text = run("statement", "sent", "--responsible", "The library").stdout

    assert re.match(r"Statement of privacy\n\nDate \(UTC\): 20\d\d-\d\d-\d\d\nVersion: crowdveil \S+\n", text)
    assert "Responsible: The library\n" in text
    assert "Responsible: not named" in run("statement", "sent").stdout


def test_the_worst_case_for_a_person_comes_first(run: Run, folder: Path) -> None:
    """The first sentence says how sure anyone can be of all answers of a worker."""
    send(run, "--epsilon", 1)
    paragraph = run("statement", "sent").stdout.split("\n\n")[2]

    assert paragraph.startswith("Someone who thought two sets of all answers of a worker")


@pytest.mark.parametrize(("answers", "protects"), [(7, True), (8, False)])
def test_much_epsilon_is_not_called_protection(answers: int, protects: bool, run: Run, folder: Path) -> None:
    """Above an epsilon of 60 for a worker no sentence calls the answers protected."""
    send(run, "--epsilon", 8)
    said = document(run, "sent/certificate.json", "--answers", answers)
    text = " ".join(map(str, said["statement"]))  # type: ignore[call-overload]

    assert (float(str(said["epsilon_per_worker"])) <= 60) == protects
    assert protects == ("is protected by local differential privacy" in text)
    assert protects != ("cannot be called protected" in text)
    assert protects == ("is protected too (participation protected)" in text)
    assert protects != ("is randomized like an answer (participation protected)" in text)


def test_a_board_reads_what_a_campaign_states(run: Run, folder: Path) -> None:
    """Title, question, consent, the day of deletion and the expected error of the plan are facts of the statement."""
    built = build_campaign(content={"purge_after_days": 10}, closes=date(2099, 1, 1))
    built.write(Path("asked"))
    campaign = built.campaign
    plan = {"epsilon_per_worker": campaign.worker_epsilon, "tasks_per_worker": campaign.cells}
    expected = {"error_name": "share of wrong labels", "constant_error": 0.6, "protected": {"error": 0.2}}
    for epsilon, planned in ((0.0, True), (1.0, False)):
        plan["epsilon_per_worker"] += epsilon
        Path("asked/plan.json").write_text(json.dumps(plan | {"expected": expected}))
        facts = dict(document(run, "asked")["facts"])  # type: ignore[call-overload]

        assert repr(campaign.title) == facts["Title"]
        assert repr(campaign.question) == facts["Question"]
        assert repr(campaign.consent) == facts["Consent, in the curator's words"]
        assert "from 2099-01-11 on; promised, not checked" == facts["Reports deleted (UTC)"]
        assert planned == ("Expected usefulness" in facts), "only a plan of this campaign counts"
        if planned:
            assert facts["Expected usefulness"].startswith("share of wrong labels 0.2; 0.6 for the same answer")
        assert "73.2 % at 1" in facts["What an epsilon means"]


@pytest.mark.slow
@needs_chromium
def test_a_printed_statement_has_one_page(run: Run, folder: Path) -> None:
    """A campaign with three levels and a consent of 600 characters fits on a sheet of A4."""
    channels = [response(epsilon=one) for one in (0.25, 0.5, 1.0)]
    build_campaign(channels=channels, content={"levels": 3, "consent": "Take part." + " Take part." * 53}).write(
        Path("asked")
    )
    run("statement", "asked", "--responsible", "School of Lindenau", "--out", "filed.html")
    with chromium() as browser:
        page = browser.new_page()
        page.goto(Path("filed.html").resolve().as_uri())
        printed = page.pdf(format="A4", prefer_css_page_size=True)

    assert 1 == len(re.findall(rb"/Type\s*/Page[^s]", printed))


@pytest.mark.parametrize("name", ["", "a\nResponsible: b", "\u202eyrarbil"])
def test_a_name_that_could_mislead_is_refused(name: str, run: Run, folder: Path) -> None:
    """Line breaks and marks of direction do not enter the heading."""
    send(run, "--epsilon", 1)

    assert "printing characters" in run("statement", "sent", "--responsible", name, code=3).stderr
