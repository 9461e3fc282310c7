"""`account`, `audit` and `verify`: losses over rounds, verdicts on claims, and exit codes."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crowdveil.campaign.rules.document import Relay
from crowdveil.campaign.statement.claims import Audit
from crowdveil.channels.rounding import format_bound, format_lower, sum_rounded_up
from crowdveil.cli.display import number_with_six_digits
from crowdveil.cli.privacy.verify import CURATOR, MAKER, NO_PARTS
from crowdveil.privacy.audit.black_box import BlackBoxAudit, Finding
from crowdveil.privacy.audit.confidence import Counts
from crowdveil.standalone import verification
from crowdveil.standalone.checks import EVERY_TASK
from tests.campaign.builders import PUBLIC_KEY, build_campaign, response
from tests.cli.conftest import LABELS, LISTS, Run, RunJson


def test_rows_name_unit_participation_and_rounds(run: Run, run_json: RunJson) -> None:
    """Four rows for three rounds: cell and worker, once and over all rounds; the table holds every figure."""
    words = ("account", "--mechanism", "two-layer", "--epsilon", 1, "--labels", "no,yes", "--tasks", 40, "--rounds", 3)
    table, data = " ".join(run(*words).stdout.split()), run_json(*words)
    rows = data["accounts"]

    assert [("cell", 1), ("worker", 1), ("cell", 3), ("worker", 3)] == [(row["unit"], row["rounds"]) for row in rows]
    assert sum_rounded_up([(rows[0]["exact"], 3)]) == rows[2]["exact"]
    for row in rows:
        assert (
            f"exact {format_bound(row['exact'])}, claimed {number_with_six_digits(row['claimed'])} (per {row['unit']}"
            in table
        )
    assert rows[0]["exact"] > rows[0]["claimed"] == 1.0
    assert f"because {rows[0]['reason']}" in table


def test_an_infinite_loss_is_a_word(run: Run, run_json: RunJson) -> None:
    """What promises nothing is "none (infinite)" in the table and "infinity" in JSON."""
    words = ("account", "--mechanism", "matrix-factorization-published", "--epsilon", 1, "--scale", "0:9")
    more = ("--dimensions", 2, "--tasks", 10)

    assert "exact none (infinite), claimed 1 (per cell" in run(*words, *more).stdout
    assert ["infinity"] * 2 == [row["exact"] for row in run_json(*words, *more)["accounts"]]


@pytest.mark.slow
def test_delta_adds_the_composed_loss(run: Run, run_json: RunJson) -> None:
    """With --delta the exact, advanced and summed epsilon over all rounds stand side by side; without it none does."""
    words = ("account", "--mechanism", "randomized-response", "--epsilon", 0.1, "--labels", "no,yes")
    more = ("--tasks", 500, "--rounds", 2)
    cell, worker = run_json(*words, *more, "--delta", 1e-6)["compositions"]

    assert [("cell", 1, 2), ("worker", 500, 2)] == [
        (row["unit"], row["cells"], row["rounds"]) for row in (cell, worker)
    ]
    assert worker["exact"] < worker["advanced"] < worker["pure"] <= 100.0
    shown = run(*words, *more, "--delta", 1e-6).stdout
    least = f"epsilon at most {format_bound(worker['exact'])} at delta 1e-06, by the composed loss distribution"
    assert f"{least} (larger: sum 100" in " ".join(shown.split())
    assert {"exact"} == {cell["least"], worker["least"]}
    assert [] == run_json(*words, *more)["compositions"]
    assert "delta must be in" in run(*words, *more, "--delta", 2, code=1).stderr


def test_a_bound_above_the_sum_is_never_the_answer(run: Run, run_json: RunJson) -> None:
    """Two large cells: the sum is named, advanced composition stands behind it as larger, and JSON names the member."""
    words = ("account", "--mechanism", "matrix-factorization", "--epsilon", 8, "--scale", "0:2", "--tasks", 2)
    rows = run_json(*words, "--delta", 1e-6)["compositions"]
    shown = " ".join(run(*words, "--delta", 1e-6).stdout.split())

    for row in rows:
        pure, advanced = format_bound(row["pure"]), format_bound(row["advanced"])
        assert row["exact"] <= row["pure"] < row["advanced"]
        assert row[row["least"]] == min(row["pure"], row["exact"], row["advanced"])
        text = f"epsilon {pure} at delta 0, the sum; no less at delta 1e-06 (larger: advanced composition {advanced})"
        assert text in shown


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

    held = run("audit", "--command", f"{command} {lists}", *words).stdout
    assert "not refuted" in held
    assert "60 of each input" in " ".join(held.split())
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
    calls: tuple[list[str], ...] = ([str(true)], [str(false)], [], ["absent.json"])
    words = [[sys.executable, str(verification.__file__), *files] for files in calls]

    assert [0, 1, 2, 3] == [subprocess.run(call, capture_output=True, check=False).returncode for call in words]


VERIFY_RESPONSE = ("--mechanism", "randomized-response", "--epsilon", 3, "--seed", 1)


@pytest.fixture
def campaign(folder: Path) -> Path:
    """Return the campaign.json of a campaign folder."""
    build_campaign().write(Path("asked"))
    return Path("asked/campaign.json")


def test_a_campaign_is_claimed_by_the_curator(run: Run, campaign: Path) -> None:
    """Claimant, each claim, epsilon per answer and per worker, participation and name are printed."""
    shown = " ".join(run("verify", campaign).stdout.split())

    for text in (CURATOR, "per answer", "per worker, for at most", "participation", "not checked"):
        assert text in shown
    assert "FALSE" not in shown
    assert "No worker is asked more than" in shown


@pytest.mark.parametrize("kind", ["certificate", "campaign"])
def test_epsilon_is_printed_first(run: Run, campaign: Path, kind: str) -> None:
    """The first word of a file that holds is epsilon; a file with a false claim has none."""
    run("perturb", "labels.csv", *VERIFY_RESPONSE, "--lists-from-answers", "--out", "sent")
    file = campaign if kind == "campaign" else Path("sent/certificate.json")
    lines = run("verify", file).stdout.splitlines()
    Path("false.json").write_text(file.read_text("utf-8").replace('"denominator"', '"denominators"'), "utf-8")

    assert "epsilon" == lines[0].split()[0]
    assert "epsilon" not in [line.split()[0] for line in run("verify", "false.json", code=1).stdout.splitlines()]


def test_missing_parts_are_named(run: Run, campaign: Path) -> None:
    """A campaign without its parts is checked, and what is missing is named."""
    Path("alone.json").write_bytes(campaign.read_bytes())

    assert NO_PARTS in json.loads(run("verify", "alone.json", "--json").stdout)["not_checked"]
    assert NO_PARTS not in json.loads(run("verify", campaign, "--json").stdout)["not_checked"]


def test_the_lists_of_a_relay_are_checked_without_the_parts(run: Run, folder: Path) -> None:
    """Through a relay all lists are all tasks, which the SHA-256 of each part shows: nothing on them is left open."""
    relay = Relay("The library", PUBLIC_KEY, 2, "cell")
    Path("alone.json").write_bytes(build_campaign(content={"relay": relay}).campaign.to_bytes())
    checked = json.loads(run("verify", "alone.json", "--json").stdout)

    assert NO_PARTS not in checked["not_checked"]
    assert {"claim": EVERY_TASK, "holds": True, "found": ""} in checked["claims"]


def test_a_marked_certificate_has_no_epsilon(run: Run, folder: Path) -> None:
    """The certificate of a simulation claims no privacy, and that is what is printed."""
    run("perturb", "labels.csv", *VERIFY_RESPONSE, "--lists-from-answers", "--out", "sent")
    shown = " ".join(run("verify", "sent/certificate.json").stdout.split())

    assert MAKER in shown
    assert "none: the file is marked as without privacy" in shown


def test_a_false_claim_ends_with_1(run: Run, folder: Path) -> None:
    """The claim is printed as FALSE, named in the error, and with --json all claims are in the details."""
    run("perturb", "labels.csv", *VERIFY_RESPONSE, "--lists-from-answers", "--out", "sent")
    path = Path("sent/certificate.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"ratio": [2, 1]}))
    plain = run("verify", path, code=1)
    error = json.loads(run("verify", path, "--json", code=1).stdout)["error"]

    assert "FALSE" in plain.stdout
    assert "epsilon " not in plain.stdout.partition("FALSE")[0]
    assert ("ClaimError", str(path)) == (error["type"], error["value"])
    assert {False, True} == {claim["holds"] for claim in error["details"]["claims"]}
    assert "it is false that: The SHA-256" in error["message"]


def test_each_level_is_printed_with_its_epsilon(run: Run, folder: Path) -> None:
    """A campaign with levels has an epsilon for each of them, and says that a worker's level is visible."""
    channels = [response(epsilon=one) for one in (0.25, 0.5, 1.0)]
    Path("levels.json").write_bytes(build_campaign(channels=channels, content={"levels": 3}).campaign.to_bytes())
    printed = " ".join(run("verify", "levels.json").stdout.split())

    assert "a worker's level is visible. Found: epsilon 1.000, 2.000, 4.000 for all answers of a worker." in printed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--budget", 21, "--tasks", 1),
            ["Of the budget of 21 only 20 is used: the epsilon of an answer is at most 20."],
        ),
        (("--budget", 20, "--tasks", 1), []),
        (("--budget", 40, "--tasks", 1, "--rounds", 2), []),
        (("--budget", 70, "--tasks", 3, "--delta", 1e-6), ["Of the budget of 70 only 60 is used"]),
        (("--epsilon", 2, "--tasks", 3), []),
    ],
)
def test_a_part_of_the_budget_that_no_answer_can_use_is_named(
    words: tuple[object, ...], said: list[str], run_json: RunJson, run: Run
) -> None:
    """An answer has an epsilon of at most 20: what a larger budget leaves unused is a warning, in JSON and table."""
    line = ("account", "--mechanism", "randomized-response", "--labels", "no,yes", *words)
    found = run_json(*line)["warnings"]

    assert len(said) == len(found)
    assert all(text in one for text, one in zip(said, found, strict=True))
    assert bool(said) == ("is used" in " ".join(run(*line).stdout.split()))


def test_perturb_names_the_unused_part_of_a_budget(run_json: RunJson) -> None:
    """With 20 tasks a budget of 500 pays for an epsilon of 25 each, and 20 is used."""
    words = ("--mechanism", "randomized-response", "--labels", ",".join(LABELS), "--budget", 500)
    found = run_json("perturb", "labels.csv", *words, *LISTS, "--out", "sent")

    assert "Of the budget of 500 only 400 is used: the epsilon of an answer is at most 20." in found["warnings"]
