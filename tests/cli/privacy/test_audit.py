"""`crowdveil audit`: mechanisms, files and commands; verdicts and exit codes."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crowdveil.channels.rounding import format_lower
from crowdveil.privacy.audit.black_box import BlackBoxAudit, Finding
from crowdveil.privacy.audit.claims import Audit
from crowdveil.privacy.audit.confidence import Counts
from crowdveil.standalone import verification
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_command_is_audited_on_the_given_files(run: Run) -> None:
    """A command of crowdveil runs in this process; the lists from answers show who answered."""
    Path("one.csv").write_text("task,worker,label\n1,1,no\n")
    Path("two.csv").write_text("task,worker,label\n1,2,no\n")
    command = "crowdveil perturb {input} --mechanism randomized-response --epsilon 1 --labels no,yes --out {out}"
    words = ("--input", "one.csv", "--neighbour", "two.csv", "--epsilon", 1, "--draws", 60)
    lists = "--tasks tasks.csv --workers every-worker.csv"

    assert "not refuted" in run("audit", "--command", f"{command} {lists}", *words).stdout
    assert "refuted" in run("audit", "--command", f"{command} --lists-from-answers", *words, code=1).stdout


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("randomized-response", "--command", "cat {input}"),
        ("--command", "cat {input}", "--epsilon", 1),
        ("--command", "cat {input}", "--input", "labels.csv", "--neighbour", "numbers.csv"),
        ("--command", "cat {input}", "--input", "labels.csv", "--epsilon", 1),
        (*RESPONSE, "--input", "1"),
        (*RESPONSE, "--delta", 0.1),
        ("sent/certificate.json", "--rounds", 2),
        ("--command", "cat {input}", "--input", "labels.csv", "--neighbour", "numbers.csv", "--epsilon", 1,
         "--labels", "no,yes"),
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


@pytest.mark.parametrize("command", ["audit", "verify", "statement"])
def test_an_open_question_is_neither_yes_nor_no(
    command: str, run: Run, sent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A false claim ends with 1; a missing file, a crash and a closed pipe end with 3, and say nothing of the claim."""
    path = sent / "certificate.json"
    run(command, path)
    for error in (RuntimeError("a defect"), MemoryError(), BrokenPipeError(32, "closed"), OSError(5, "a bad disk")):
        with monkeypatch.context() as patched:
            patched.setattr(Path, "open", raising(error))
            patched.setattr(Path, "read_bytes", raising(error))
            run(command, path, code=3)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"ratio": [2, 1]}))

    run(command, path, code=1)


def raising(error: BaseException) -> Callable[..., None]:
    """Return a function that raises an error."""

    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_bounds_are_rounded_in_their_direction() -> None:
    """A lower bound is never printed above its value, nor a claim below it; the confidence goes down."""
    assert ("0.9999", "0.6453", "0", "inf") == (
        format_lower(0.99999, 4), format_lower(0.64537, 4), format_lower(0.0), format_lower(math.inf)
    )  # fmt: skip
    counts = Counts(first=1, second=0, first_draws=1, second_draws=1)
    finding = Finding(pair="one", event="an event", counts=counts, epsilon=0.99996, delta=0.0)
    claim = {"claimed_epsilon": 0.5, "claimed_delta": 0.0}
    drawn = BlackBoxAudit(**claim, draws=100, pairs=1, alpha=1e-9, finding=finding)
    audit = Audit(target="a", neighbours="b", unit=None, claimed_epsilon=0.5, draws=drawn)

    assert "with confidence 0.999999 it is at least 0.9999" in audit.verdict


def test_the_independent_program_has_the_same_exit_codes(sent: Path) -> None:
    """0 for a true certificate, 1 for a false one, 2 without a file, 3 for a file that cannot be read."""
    true, false = sent / "certificate.json", Path("false.json")
    false.write_text(json.dumps(json.loads(true.read_text()) | {"ratio": [2, 1]}))
    calls = ([str(true)], [str(false)], [], ["absent.json"])
    words = [[sys.executable, str(verification.__file__), *files] for files in calls]

    assert [0, 1, 2, 3] == [subprocess.run(call, capture_output=True, check=False).returncode for call in words]
