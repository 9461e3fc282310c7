"""`crowdveil audit`: mechanisms, files, functions and commands; verdicts and exit codes."""

import json
from pathlib import Path
from typing import cast

import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.channels.certificate import digest
from crowdveil.mechanisms.memoised import Memoised
from tests.campaign.builders import build_campaign
from tests.cli.conftest import Run

RESPONSE = ("randomized-response", "--epsilon", 1, "--labels", "no,yes", "--draws", 2000)


def test_a_private_mechanism_passes(run: Run) -> None:
    """The table has claim, exact loss, bound, event and verdict; the bound is below the exact loss."""
    printed = run("audit", *RESPONSE).stdout

    assert "holds: the exact loss is at most 1" in printed
    assert ["target", "neighbours", "claim", "exact", "bound", "event", "inputs", "draws", "verdict"] == [
        line.split()[0] for line in printed.splitlines() if not line.startswith(" ")
    ]


def test_a_refuted_claim_ends_with_1(run: Run) -> None:
    """The published matrix factorization: the document of a refuted audit is that of a command that is done."""
    words = ("--epsilon", 1, "--scale", "0:9", "--tasks", 8, "--dimensions", 3, "--ridge", 1e-6, "--draws", 400)
    found = json.loads(run("audit", "matrix-factorization-published", *words, "--json", code=1).stdout)

    assert ("done", True, "infinity") == (found["status"], found["refuted"], found["exact"])
    assert found["drawn"]["epsilon_bound"] > 1


def test_certificates_and_campaigns_are_compared_exactly(run: Run, sent: Path) -> None:
    """Epsilon 3 holds for the certificate, 2.9 does not; a campaign's claim is that of its channels, or of a worker."""
    worker = run("audit", sent / "certificate.json", "--neighbours", "worker", "--tasks", 5).stdout
    built = build_campaign().write(Path("asked"))

    assert "holds" in run("audit", sent / "certificate.json").stdout
    assert "refuted" in run("audit", sent / "certificate.json", "--epsilon", 2.9, code=1).stdout
    assert "epsilon 15 per worker" in worker
    assert "holds" in run("audit", built).stdout
    assert "epsilon 4 per worker" in run("audit", built / "campaign.json", "--neighbours", "worker").stdout


def test_a_function_is_audited_on_the_given_inputs(run: Run) -> None:
    """A module in the working folder; inputs are JSON, or else text."""
    Path("leaky_box.py").write_text("def same(value):\n    return 1\n\n\ndef whole(value):\n    return value\n")
    words = ("--input", "[1, 2]", "--neighbour", "text", "--epsilon", 1, "--draws", 100)

    assert "not refuted" in run("audit", "leaky_box:same", *words).stdout
    assert "refuted: epsilon 1 is claimed" in run("audit", "leaky_box:whole", *words, code=1).stdout


def test_a_command_is_audited_on_the_given_files(run: Run) -> None:
    """A command of crowdveil runs in this process; the lists from answers show who answered."""
    Path("one.csv").write_text("task,worker,label\n1,1,no\n")
    Path("two.csv").write_text("task,worker,label\n1,2,no\n")
    command = "crowdveil perturb {input} --mechanism randomized-response --epsilon 1 --labels no,yes --out {out}"
    words = ("--input", "one.csv", "--neighbour", "two.csv", "--epsilon", 1, "--draws", 60)
    lists = "--tasks tasks.csv --workers every-worker.csv"

    assert "not refuted" in run("audit", "--command", f"{command} {lists}", *words).stdout
    assert "refuted" in run("audit", "--command", f"{command} --lists-from-answers", *words, code=1).stdout


def memoised(name: str, **claims: object) -> str:
    """Write a certificate of memoised reports with other claims and a right checksum, and return its name."""
    data = Memoised(alphabet=Categories(("no", "yes")), epsilon=2.0, report_epsilon=1.0).tables.certificate()
    changed: dict[str, object] = {**data, "claims": {**cast(dict[str, object], data["claims"]), **claims}}
    Path(name).write_text(json.dumps(changed | {"sha256": digest(changed)}))
    return name


def test_memoised_reports_are_compared_for_ever_and_once(run: Run) -> None:
    """Certificate and mechanism: both tables, value and participation, unit and claim; per worker, times the cells."""
    file = memoised("memoised.json")
    found = json.loads(run("audit", file, "--json").stdout)
    drawn = json.loads(run("audit", "memoised", *RESPONSE[1:], "--json").stdout)
    worker = run("audit", file, "--neighbours", "worker", "--tasks", 5).stdout

    for data in (found, drawn):
        assert [("for ever", "value"), ("for ever", "participation"), ("one report", "value")] == [
            (loss["reports"], loss["neighbours"]) for loss in data["losses"][:3]
        ]
        assert {"cell"} == {loss["unit"] for loss in data["losses"]}
    assert [2.0, 2.0, 1.0, 1.0] == pytest.approx([loss["exact"] for loss in found["losses"]], abs=1e-5)
    assert [1.0, 1.0, 0.5, 0.5] == [loss["claimed_epsilon"] for loss in drawn["losses"]]
    assert found["claimed_epsilon"] == found["losses"][0]["claimed_epsilon"]
    assert "NULL" in found["losses"][1]["because"]
    assert "holds: the exact loss is at most 10 (for ever) and 5 (one report)" in worker


@pytest.mark.parametrize(
    ("claims", "words", "about"),
    [
        ({"for_ever": [2, 1]}, (), "(for ever)"),
        ({"per_report": [1, 2]}, (), "(one report)"),
        ({}, ("--epsilon", 1.9), "1.9 is claimed (for ever), and the exact loss is 2"),
        ({}, ("--report-epsilon", 0.9), "0.9 is claimed (one report), and the exact loss is 1"),
    ],
    ids=str,
)
def test_a_memoised_claim_that_is_too_small_is_refuted(
    run: Run, claims: dict[str, object], words: tuple[object, ...], about: str
) -> None:
    """A certificate that was edited to claim less, and a smaller claim than that of the file, end with 1."""
    shown = " ".join(run("audit", memoised("less.json", **claims), *words, code=1).stdout.split())

    assert "verdict refuted: epsilon" in shown
    assert about in shown


def test_a_device_that_redraws_its_permanent_answer_is_refuted(run: Run) -> None:
    """Twelve reports of as many permanent answers lose more than epsilon for ever."""
    Path("forgetful.py").write_text(
        "import numpy as np\nfrom crowdveil import Categories, Memoised\nfrom crowdveil.randomness import seeded\n"
        "mechanism = Memoised(alphabet=Categories(('no', 'yes')), epsilon=1, report_epsilon=0.5)\nsource = seeded(5)\n"
        "def reports(answer):\n    return mechanism.perturb(np.full(12, answer), source)\n"
    )
    words = ("--input", 0, "--neighbour", 1, "--epsilon", 1, "--draws", 4000)

    assert "refuted: epsilon 1 is claimed" in run("audit", "forgetful:reports", *words, code=1).stdout


def test_a_claim_of_one_report_needs_memoised_reports(run: Run, sent: Path) -> None:
    """A certificate of one table has no claim of one report apart from its own."""
    error = run("audit", sent / "certificate.json", "--report-epsilon", 1, code=1).stderr

    assert "certificate of memoised reports only" in error


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("randomized-response", "--command", "cat {input}"),
        ("json:loads", "--epsilon", 1),
        ("json:loads", "--input", "1", "--neighbour", "2"),
        ("json:loads", "--input", "1", "--epsilon", 1),
        (*RESPONSE, "--input", "1"),
        (*RESPONSE, "--delta", 0.1),
        ("sent/certificate.json", "--rounds", 2),
        ("json:loads", "--input", "1", "--neighbour", "2", "--epsilon", 1, "--labels", "no,yes"),
        ("no-such-mechanism", "--epsilon", 1),
        ("randomized-response", "--labels", "no,yes"),
        ("--command", "cat {input}", "--input", "labels.csv", "--neighbour", "numbers.csv", "--neighbours", "value",
         "--epsilon", 1),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_usage_is_refused(run: Run, words: tuple[object, ...]) -> None:
    """Neither or two targets, a missing claim or input, and options of another kind of target."""
    run("audit", *words, code=2)


@pytest.mark.parametrize("name", ["json:none", "no_such_module:f", "json:__name__"])
def test_a_function_that_does_not_exist_is_refused(run: Run, name: str) -> None:
    """No such function, no such module, and a name that is no function."""
    words = ("--input", "1", "--neighbour", "2", "--epsilon", 1)

    assert "module:function" in run("audit", name, *words, code=1).stderr
