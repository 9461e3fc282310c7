"""Files of known truths that are too large to hold are scored in parts."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.data import identifiers
from crowdveil.data.identifiers import NumberedIdentifiers
from crowdveil.data.reports import Reports
from crowdveil.em.estimate import Estimate, WorkerTable
from crowdveil.errors import ReportsError
from crowdveil.evaluation import streaming_metrics
from crowdveil.evaluation.gold import default_error
from crowdveil.evaluation.metrics import Score, score
from crowdveil.evaluation.streaming_metrics import ScoreSums
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, numeric_crowd
from crowdveil.workflow.evidence import read_evidence
from crowdveil.workflow.inference import Inference, infer, scored
from crowdveil.workflow.methods import Method

CROWD = categorical_crowd(
    workers=9, tasks=40, labels=Categories(("no", "maybe", "yes")), sparsity=0.5, source=seeded(3)
)
NUMBERS = numeric_crowd(workers=9, tasks=40, sparsity=0.5, source=seeded(3))


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read and score a few rows at a time."""
    monkeypatch.setattr(streaming_metrics, "TASKS_AT_ONCE", 7)
    monkeypatch.setattr(identifiers, "IDENTIFIERS_PER_BATCH", 5)


def inferred(folder: Path, reports: Reports, gold: str | None = None) -> Inference:
    """Return what the method that is usual for the reports infers from encoded blocks."""
    reports.save(folder / "blocks")
    return infer(read_evidence(folder / "blocks"), Method(), gold=gold)


def write(folder: Path, rows: list[tuple[str, object]], name: str = "gold.csv") -> str:
    """Write known truths."""
    path = folder / name
    path.write_text("task,truth\n" + "".join(f"{task},{truth}\n" for task, truth in rows), encoding="utf-8")
    return str(path)


def labelled(order: list[int]) -> list[tuple[str, object]]:
    """Return the truths of some tasks of the crowd."""
    return [(str(CROWD.answers.tasks[task]), str(CROWD.truth[task])) for task in order]


def both_ways(inference: Inference, gold: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Inference, Inference]:
    """Score a file as one, and in parts."""
    whole = scored(inference, gold)
    monkeypatch.setattr(streaming_metrics, "STREAMED_FROM", 0)
    return whole, scored(inference, gold)


def assert_alike(left: Inference, right: Inference) -> None:
    """Assert that scores are the same but for rounding, and notes the same."""
    assert left.score is not None
    assert right.score is not None
    for one, other in zip(dataclasses.astuple(left.score), dataclasses.astuple(right.score), strict=True):
        assert one == (pytest.approx(other, abs=1e-12) if isinstance(other, float) else other)
    assert left.notes == right.notes


@pytest.mark.parametrize("order", ["in order", "backwards", "with others", "twice"])
@pytest.mark.parametrize("numbered", [False, True])
def test_scores_are_those_of_the_whole(
    order: str, numbered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the order of gold, with unknown tasks and repeated rows, and whether names follow a rule or are listed,
    the score and what is said of guided tasks are those of a file that is read at once."""
    answers = CROWD.answers
    if numbered:
        answers = Reports.from_rows(
            answers.rows, NumberedIdentifiers.from_count("task-", len(answers.tasks)), answers.workers, answers.alphabet
        )
    some = [task for task in range(40) if task % 3]
    rows = labelled(some if order != "backwards" else some[::-1])
    rows = [(f"task-{task:02}" if numbered else name, truth) for (name, truth), task in zip(rows, some, strict=True)]
    rows += [("unknown", "no"), ("nothing", "perhaps"), ("unknown", "no")] if order == "with others" else []
    rows += rows[:3] if order == "twice" else []
    guide = write(tmp_path, rows[:2], "guide.csv")

    whole, parts = both_ways(inferred(tmp_path, answers, guide), write(tmp_path, rows), monkeypatch)

    assert_alike(parts, whole)
    assert any("also guided the fit" in note for note in parts.notes)


def test_numbers_are_scored_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates of numbers on a scale have the same mean absolute error, constant and correlation."""
    rows = [(str(name), float(truth)) for name, truth in zip(NUMBERS.answers.tasks, NUMBERS.truth, strict=True)]

    whole, parts = both_ways(inferred(tmp_path, NUMBERS.answers), write(tmp_path, list(rows[:31])), monkeypatch)

    assert_alike(parts, whole)


REFUSED = {
    "another label": ([("0", "perhaps")], "gold label 'perhaps' of task .* is not among"),
    "a truth that contradicts": ([("1", "no"), ("1", "yes")], "a gold task has one truth"),
    "a missing truth": ([("2", "")], "every gold task needs a truth"),
    "no known task": ([("unknown", "no")], "none of the 1 gold tasks is among the 40 tasks"),
}


@pytest.mark.parametrize("defect", REFUSED)
def test_bad_truths_are_refused(defect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Truths that are unknown, missing or contradicted, and files without a known task, are refused as ever."""
    rows, rule = REFUSED[defect]
    named = [(str(CROWD.answers.tasks[int(task)]) if task.isdigit() else task, truth) for task, truth in rows]
    monkeypatch.setattr(streaming_metrics, "STREAMED_FROM", 0)

    with pytest.raises(ReportsError, match=rule):
        scored(inferred(tmp_path, CROWD.answers), write(tmp_path, [*named]))


def test_words_for_numbers_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Truths of numbers must be finite numbers; the row is named."""
    monkeypatch.setattr(streaming_metrics, "STREAMED_FROM", 0)
    task = str(NUMBERS.answers.tasks[0])

    with pytest.raises(ReportsError, match="row 2: values must be finite numbers"):
        scored(inferred(tmp_path, NUMBERS.answers), write(tmp_path, [(task, 3), (task, "many")]))


def test_small_files_are_read_at_once(tmp_path: Path) -> None:
    """Only files from a size on are read in parts: memory decides nothing. Data sets are none."""
    small = Path(write(tmp_path, labelled([0])))
    big = tmp_path / "big.csv"
    with big.open("wb") as stream:
        stream.truncate(streaming_metrics.STREAMED_FROM)

    assert [False, True, False] == [streaming_metrics.is_large_file(str(gold)) for gold in (small, big, "dataset:none")]
    assert np.isfinite(small.stat().st_size)


TASKS = 60
ALPHABETS: dict[str, Alphabet | None] = {
    "labels": Categories(("b", "a", "c")),
    "points": Scale(0, 2, 1),
    "numbers": None,
}


def estimate_of(kind: str) -> Estimate:
    """Return an estimate with ties, and with tasks without reports."""
    rng = np.random.default_rng(4)
    posterior = rng.integers(0, 3, (TASKS, 3)) + 0.5
    posterior = posterior / posterior.sum(axis=1, keepdims=True)
    reports = rng.integers(0, 3, TASKS)
    if kind == "numbers":
        posterior = np.where(reports > 0, 100 + rng.normal(size=TASKS), np.nan)
    workers = WorkerTable(np.ones(1), "ability")
    names = np.array([f"t{task:02}" for task in range(TASKS)])
    crowd = (np.array(["w"]), workers, np.array([3]))
    return Estimate("m", ALPHABETS[kind], names, posterior, reports, *crowd, (), 1, True, False, 0, 0)


def truths_of(kind: str) -> list[object]:
    """Return a truth of each task."""
    drawn = np.random.default_rng(5).integers(0, 3, TASKS)
    return [("b", "a", "c")[code] for code in drawn] if kind == "labels" else [float(code) for code in drawn]


def short_slices(kind: str, truths: list[object], parts: int) -> Score:
    """Score part by part."""
    estimate, total = estimate_of(kind), None
    for at in np.array_split(np.arange(TASKS), parts):
        found = ScoreSums.of(estimate, at, [truths[task] for task in at])
        total = found if total is None else total + found
    assert total is not None
    return total.score(default_error(estimate), 0)


def assert_same_score(left: Score, right: Score) -> None:
    """Assert that two scores are the same but for rounding."""
    for one, other in zip(dataclasses.astuple(left), dataclasses.astuple(right), strict=True):
        assert one == (pytest.approx(other, abs=1e-12) if isinstance(other, float) else other)


@pytest.mark.parametrize("kind", ALPHABETS)
@pytest.mark.parametrize("parts", [1, 4, TASKS])
def test_parts_score_as_the_whole(kind: str, parts: int) -> None:
    """Whatever the parts, even single tasks, the score of all tasks comes out: ties, silence and constant included."""
    truths, estimate = truths_of(kind), estimate_of(kind)

    assert_same_score(
        short_slices(kind, truths, parts), score(estimate, dict(zip(estimate.tasks, truths, strict=True)))
    )


@pytest.mark.parametrize("kind", ALPHABETS)
def test_a_constant_side_has_no_correlation(kind: str) -> None:
    """Where all truths are alike the correlation is 0, and the constant is never wrong."""
    found = short_slices(kind, truths_of(kind)[:1] * TASKS, 7)

    assert (0.0, 0.0) == (found.correlation, found.baseline)
