"""`crowdveil data synthesize`: printed guarantees, files and refusals."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from crowdveil.files.output_record import RECORD_FILE
from tests.cli.conftest import Run, RunJson

PRIVATE = ("data", "synthesize", "numbers.csv", "--bounds", "-2:7", "--epsilon", 2, "--out", "made")


def every_task(*more: str) -> str:
    """Write a list of the tasks of the crowd, and more, and return its name."""
    rows = Path("numbers-gold.csv").read_text("utf-8").splitlines()[1:]
    Path("tasks.csv").write_text("\n".join(["task", *(row.split(",")[0] for row in rows), *more]) + "\n", "utf-8")
    return "tasks.csv"


def written() -> set[str]:
    """Names of the files in the output folder, but for the record of what was written there."""
    return {path.name for path in Path("made").iterdir()} - {RECORD_FILE}


def test_a_private_release_prints_its_epsilon_per_claim_and_per_worker(run: Run) -> None:
    """Two files appear, and both epsilons are printed with their units."""
    shown = run(*PRIVATE, "--records", 5).stdout

    assert written() == {"synthetic.csv", "guarantee.json"}
    assert "at most 2 (per claim, participation public)" in shown
    assert "(per worker, participation public)" in shown


def test_an_export_is_refused_with_a_list_of_tasks(refusal: Callable[..., str]) -> None:
    """What an export is read as, or refused for, depends on the answers; plain columns do not."""
    Path("runs.csv").write_text("HITId,WorkerId,Input.text,Answer.q\n1,ann,x,2\n", "utf-8")
    hidden = ("--participation", "protected", "--expected-claims", 2, "--tasks", every_task())

    assert "must have plain columns" in refusal("data", "synthesize", "runs.csv", *PRIVATE[3:], *hidden)


@pytest.mark.parametrize("records", [[], [{"task": "1", "worker": "ann", "value": 3}]])
def test_json_is_refused_with_a_list_of_tasks(refusal: Callable[..., str], records: list[object]) -> None:
    """JSON without a claim has no columns, so that its refusal alone would show that there is no claim."""
    Path("claims.json").write_text(json.dumps(records), "utf-8")
    hidden = ("--participation", "protected", "--expected-claims", 2, "--tasks", every_task())

    assert "in a table with a header" in refusal("data", "synthesize", "claims.json", *PRIVATE[3:], *hidden)


@pytest.mark.parametrize("question", ["known", "other"])
@pytest.mark.parametrize("chosen", [(), ("--question", "known")])
def test_questions_are_refused_with_a_list_of_tasks(
    refusal: Callable[..., str], question: str, chosen: tuple[str, ...]
) -> None:
    """A refusal of an unknown question, or of a task with two, would show a single claim."""
    Path("claims.csv").write_text(f"task,worker,question,value\n1,ann,{question},3\n", "utf-8")
    hidden = ("--participation", "protected", "--expected-claims", 2, "--tasks", every_task())

    assert "must be to one question" in refusal("data", "synthesize", "claims.csv", *PRIVATE[3:], *hidden, *chosen)


@pytest.mark.parametrize("method", ["histogram", "pooled-shape"])
def test_a_worker_can_be_protected_whole(run_json: RunJson, method: str) -> None:
    """With --unit worker the whole release costs a worker at most epsilon."""
    said = run_json(*PRIVATE, "--method", method, "--unit", "worker")
    epsilon = {guarantee["unit"]: guarantee["epsilon"] for guarantee in said["guarantees"]}

    assert 1.99 < epsilon["worker"] <= 2.0
    assert epsilon["cell"] < 1.0


def test_participation_can_be_protected(run_json: RunJson) -> None:
    """With protected participation the file says what remains public, and workers need --most-claims."""
    hidden = (*PRIVATE, "--participation", "protected", "--expected-claims", 24, "--tasks", every_task())
    said = run_json(*hidden)
    bounded = run_json(*hidden, "--most-claims", 4, "--unit", "worker", "--replace")

    assert [guarantee["epsilon"] for guarantee in said["guarantees"]] == [2.0, "infinity"]
    assert "list of tasks" in said["public"]
    assert [guarantee["epsilon"] for guarantee in bounded["guarantees"]] == [0.5, 2.0]


def test_protected_participation_asks_for_the_list_of_tasks(refusal: Callable[..., str], run_json: RunJson) -> None:
    """A list taken from the claims is refused; with one, neither file nor stdout shows which tasks have claims."""
    hidden = (*PRIVATE, "--participation", "protected", "--expected-claims", 24)
    listed = every_task("a task without claims")

    assert "claims: --tasks." in refusal(*hidden)
    said = run_json(*hidden, "--tasks", listed)
    kept = [line for line in Path("numbers.csv").read_text("utf-8").splitlines() if not line.startswith("5,")]
    Path("numbers.csv").write_text("\n".join(kept) + "\n", encoding="utf-8")
    fewer = run_json(*hidden, "--tasks", listed, "--replace")

    assert len(Path(listed).read_text("utf-8").splitlines()) - 1 == said["tasks"]
    varying = ("records", "withheld", "expected", "replaced")
    assert {k: v for k, v in said.items() if k not in varying} == {k: v for k, v in fewer.items() if k not in varying}


def test_no_claim_is_released_like_any_other_number(refusal: Callable[..., str], run_json: RunJson) -> None:
    """With protected participation a file without a claim makes a release; only a list of tasks is needed for that."""
    header, claim = "task,worker,value\n", "1,ann,3\n"
    hidden = ("--participation", "protected", "--expected-claims", 24)
    said = {}
    for name, text in (("none.csv", header), ("one.csv", header + claim)):
        Path(name).write_text(text, encoding="utf-8")
        words = ("data", "synthesize", name, *PRIVATE[3:], *hidden, "--tasks", every_task())
        said[name] = run_json(*words, "--replace")
    varying = ("records", "withheld", "expected", "replaced", "warnings")
    none, one = ({k: v for k, v in data.items() if k not in varying} for data in said.values())

    assert none == one
    assert 20 == none["tasks"]
    unlisted = ("data", "synthesize", "none.csv", *PRIVATE[3:], *hidden, "--replace")
    assert "there must be at least one answer" in refusal(*unlisted)


def test_a_seed_is_announced_as_no_privacy(run: Run, run_json: RunJson) -> None:
    """Two runs with one seed write the same numbers and promise nothing."""
    first = run_json(*PRIVATE, "--seed", 3)
    numbers = Path("made/synthetic.csv").read_bytes()
    again = run(*PRIVATE, "--seed", 3, "--replace")

    assert first["simulation"]
    assert "carries no privacy" in again.stdout
    assert numbers == Path("made/synthetic.csv").read_bytes()


def test_a_second_release_is_refused_without_replace(refusal: Callable[..., str], run: Run) -> None:
    """A folder with a release is left as it is without --replace; the table and the file say what epsilon holds for."""
    shown = run(*PRIVATE).stdout
    numbers = Path("made/synthetic.csv").read_bytes()

    assert "a second release of the same claims adds to the privacy loss" in refusal(*PRIVATE)
    assert numbers == Path("made/synthetic.csv").read_bytes()
    assert "epsilons of several runs on the same answers add up" in " ".join(shown.split())
    run(*PRIVATE, "--replace")
    assert numbers != Path("made/synthetic.csv").read_bytes()
    assert json.loads(Path("made/guarantee.json").read_text("utf-8"))["holds_for"].startswith("one run")


@pytest.mark.parametrize("value", ["nan", "NULL", ""])
def test_no_claim_is_left_out_by_its_value(
    refusal: Callable[..., str], run: Run, run_json: RunJson, value: str
) -> None:
    """With public participation a row without a number is refused with and without --missing skip.

    Else its value would change the number of claims, and with it the settings in guarantee.json.
    """
    Path("numbers.csv").write_text(Path("numbers.csv").read_text("utf-8") + f"1,new,{value}\n", "utf-8")
    hidden = ("--participation", "protected", "--expected-claims", 24, "--tasks", every_task())

    for missing in ("skip", "error"):
        assert "no row may be left out because of its value" in refusal(*PRIVATE, "--missing", missing)
    run(*PRIVATE, "--missing", "skip", "--seed", 1)
    assert 2.0 == run_json(*PRIVATE, "--missing", "skip", *hidden, "--replace")["guarantees"][0]["epsilon"]


def test_the_number_of_clipped_claims_is_for_the_curator_only(run: Run) -> None:
    """The number of clipped claims is printed and not written."""
    shown = run(*(word if word != "-2:7" else "0:5" for word in PRIVATE), "--outside", "clip").stdout

    assert "clipped" in shown
    assert "clip" not in Path("made/guarantee.json").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (("--method", "pooled-shape", "--expected-claims", "3"), "--expected-claims is an option of histogram"),
        (("--method", "pooled-shape", "--participation", "protected"), "of histogram, not of pooled-shape"),
        (("--bounds", "7"), "is not LOW:HIGH"),
    ],
)
def test_wrong_usage_is_named(run: Run, words: tuple[object, ...], rule: str) -> None:
    """An option without a meaning for the method ends with exit code 2 and its name."""
    assert rule in " ".join(run(*PRIVATE, *words, code=2).stderr.split())


def test_refusals_name_the_way_out(refusal: Callable[..., str]) -> None:
    """Claims outside the bounds, and an output that would replace the input, are refused in one line."""
    assert "outside='clip'" in refusal(*(word if word != "-2:7" else "0:5" for word in PRIVATE))
    Path("made").mkdir()
    Path("numbers.csv").rename("made/synthetic.csv")
    assert "must not replace" in refusal("data", "synthesize", "made/synthetic.csv", *PRIVATE[3:])
