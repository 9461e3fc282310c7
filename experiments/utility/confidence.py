"""Confidence of the default, and its intervals of abilities, on crowds that break its assumptions.

`python -m experiments.utility.confidence` writes `results/confidence.csv` (a minute) and prints the means of families.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from experiments.rows import four_digits, read_rows, write_rows
from experiments.utility.crowds.broken import broken_kinds
from experiments.utility.crowds.crowd import Crowd
from experiments.utility.crowds.kinds import Kind
from experiments.utility.crowds.measure import CONSTANT, crowd_of, posterior_of

from crowdveil import infer
from crowdveil.em.estimate import Estimate
from crowdveil.inference.scores.metrics import score

SEEDS, OFTEN, SURE, LEAST_ANSWERS = (400, 401), 0.95, 0.99, 10
METHODS = ("hierarchical-dawid-skene", "dawid-skene", "majority-vote")
RESULTS = Path(__file__).parent / "results" / "confidence.csv"


@dataclass(frozen=True, slots=True)
class Row:
    """One method on one kind of crowd, over all seeds.

    Attributes:
        family, crowd, method: names.
        accuracy, confidence, calibration_error: means.
        often, often_right: tasks with a confidence of .95 or more, and those of them that are right.
        sure, sure_right: the same from .99 on.
        abilities, covered: workers with ten answers or more, and those whose interval has their share of right answers.
        width: mean width of these intervals.
    """

    family: str
    crowd: str
    method: str
    accuracy: float
    confidence: float | None = None
    calibration_error: float | None = None
    often: int = 0
    often_right: int = 0
    sure: int = 0
    sure_right: int = 0
    abilities: int = 0
    covered: int = 0
    width: float | None = None


def measured(kind: Kind, seeds: tuple[int, ...] = SEEDS) -> Iterator[Row]:
    """Yield the row of each method on a kind of crowd; last the best constant, which has no confidence."""
    crowds = [crowd_of(kind, seed) for seed in seeds]
    for method in METHODS:
        found = np.array([_measures(crowd, infer(crowd.reports, method).estimate) for crowd in crowds])
        means, sums = found.mean(axis=0), found.sum(axis=0).round().astype(int).tolist()
        values: list[Any] = [kind.family, kind.name, method, *means[:3].tolist(), *sums[3:9], float(means[9]) or None]
        yield Row(*values)
    constant = [(posterior_of(crowd, CONSTANT).argmax(axis=1) == crowd.truth).mean() for crowd in crowds]
    yield Row(kind.family, kind.name, CONSTANT, float(np.mean(constant)))


def _measures(crowd: Crowd, estimate: Estimate) -> tuple[float, ...]:
    """Return the columns of a row from the accuracy on, sums over the crowd from the fourth on."""
    found = score(estimate, {str(task): f"label{truth}" for task, truth in enumerate(crowd.truth.tolist())})
    confidence, right = estimate.posterior.max(axis=1), estimate.posterior.argmax(axis=1) == crowd.truth
    assert found.calibration_error is not None
    counts = [
        float(chosen.sum())
        for least in (OFTEN, SURE)
        for chosen in (confidence >= least, right & (confidence >= least))
    ]
    total = np.bincount(crowd.worker, minlength=crowd.workers)
    share = np.bincount(crowd.worker[crowd.label == crowd.truth[crowd.task]], minlength=crowd.workers) / np.maximum(
        total, 1
    )
    some, low, high = total >= LEAST_ANSWERS, estimate.workers.ability_low, estimate.workers.ability_high
    if low is None or high is None:
        return 1 - found.error, confidence.mean(), found.calibration_error, *counts, 0.0, 0.0, 0.0
    inside = some & (low <= share + 1e-9) & (share <= high + 1e-9)
    width = float((high - low)[some].mean()) if some.any() else 0.0
    return 1 - found.error, confidence.mean(), found.calibration_error, *counts, some.sum(), inside.sum(), width


def table(rows: list[Row]) -> list[str]:
    """Return the default by family, and every method over all families, as lines of a table."""
    lines = [
        "| crowds | method | accuracy | confidence | ECE | .95 is right | .99 is right | intervals hold | width |",
        "|---" * 9 + "|",
    ]
    families = dict.fromkeys(row.family for row in rows)
    chosen = [(family, METHODS[0]) for family in families] + [(None, method) for method in (*METHODS, CONSTANT)]
    for family, method in chosen:
        some = [row for row in rows if row.method == method and family in (None, row.family)]
        lines.append(f"| {family or 'all'} | {method} | {' | '.join(_shown(some))} |")
    return lines


def _shown(rows: list[Row]) -> list[str]:
    """Return the cells of a line: means, and shares of counts; empty where there are none."""
    names = ("accuracy", "confidence", "calibration_error", "width")
    means = {name: [value for row in rows if (value := getattr(row, name)) is not None] for name in names}
    text = {name: f"{np.mean(values):.3f}" if values else "" for name, values in means.items()}
    shares = []
    for part, whole in (("often_right", "often"), ("sure_right", "sure"), ("covered", "abilities")):
        number = sum(getattr(row, whole) for row in rows)
        shares.append(f"{sum(getattr(row, part) for row in rows) / number:.3f} of {number:,}" if number else "")
    return [text["accuracy"], text["confidence"], text["calibration_error"], *shares, text["width"]]


if __name__ == "__main__":
    found = [row for kind in broken_kinds() for row in measured(kind)]
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, found, four_digits)
    print("\n".join(table(read_rows(RESULTS, Row))))
