"""The default with random gold on ten public sets, scored on the tasks outside it.

`python -m experiments.methods.with_gold [SET...]` writes `results/with_gold.csv`, rows of the other sets stay, and
prints the tables (ten minutes, half of them fits of `ebcc`). Draws are numbered from `FIRST_DRAW`: those below it were
looked at while the mixture was built, whose settings were chosen on simulated crowds.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from experiments.methods.comparison import CONSTANT, SETS, log_loss, reported_gold
from experiments.rows import read_rows, write_rows

from crowdveil import infer
from crowdveil.answers import datasets
from crowdveil.em.estimate import Estimate
from crowdveil.inference.gold_stack import estimate_stacked_with_gold, fits_without_gold
from crowdveil.inference.scores.gold_errors import align_gold, gold_codes, tied_label_weights
from crowdveil.inference.scores.metrics import score

SIZES, DRAWS, FIRST_DRAW = (10, 20, 50, 100, 200), 8, 100
LEAST_SCORED, SURE = 30, 0.99
WITH, WITHOUT, VOTE = "with gold", "without gold", "majority-vote"
RESULTS = Path(__file__).parent / "results" / "with_gold.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One method on one set, means over draws of gold, scored on the other tasks.

    Attributes:
        data, known, method: set, number of gold tasks, and method.
        accuracy: ties split.
        least_gain: least accuracy of a draw less that without gold.
        calibration_error, log_loss: of the confidence; probabilities of .001 or more; None for the constant.
        sure, sure_right: tasks with a confidence of .99 or more, and those of them that are right, over all draws.
    """

    data: str
    known: int
    method: str
    accuracy: float
    least_gain: float
    calibration_error: float | None
    log_loss: float | None
    sure: int
    sure_right: float


def measured(name: str, sizes: tuple[int, ...] = SIZES, draws: range | None = None) -> Iterator[Row]:
    """Yield the rows of a set: each method for each number of gold tasks that leaves `LEAST_SCORED` to score."""
    data = datasets.load(name, duplicates="first")
    gold, reports = reported_gold(data), data.answers
    inputs: dict[str, Any] = dict.fromkeys(("channel", "assignment", "prior", "history"))
    estimator = infer(reports).estimator
    assert estimator is not None
    without = fits_without_gold(estimator, reports, inputs)
    vote = infer(reports, VOTE).estimate
    draws = range(FIRST_DRAW, FIRST_DRAW + DRAWS) if draws is None else draws
    for known in (size for size in sizes if size <= len(gold) - LEAST_SCORED):
        found: dict[str, list[tuple[float, ...]]] = {WITH: [], WITHOUT: [], VOTE: [], CONSTANT: []}
        for draw in draws:
            drawn = {list(gold)[place] for place in np.random.default_rng([draw, known]).permutation(len(gold))[:known]}
            shown, rest = ({task: gold[task] for task in gold if (task in drawn) == inside} for inside in (True, False))
            guided = estimator.fit(reports, **inputs | {"gold": shown})
            stack = estimate_stacked_with_gold(estimator, reports, inputs | {"gold": shown}, guided, without)
            fits = {WITH: guided if stack is None else stack.estimate, WITHOUT: without.result, VOTE: vote}
            for method, fit in fits.items():
                found[method].append(_scores(fit, rest))
            found[CONSTANT].append((1 - score(vote, rest).baseline, 0.0, 0.0, 0.0, 0.0))
        yield from (_row(name, known, method, np.array(scores), found) for method, scores in found.items())


def _scores(estimate: Estimate, gold: dict[str, Any]) -> tuple[float, ...]:
    """Return accuracy, calibration error, log-loss, sure tasks, and those of them that are right."""
    aligned, found = align_gold(estimate, gold), score(estimate, gold)
    assert found.calibration_error is not None
    right = tied_label_weights(aligned)[np.arange(len(aligned.at)), gold_codes(aligned)]
    sure = estimate.posterior[aligned.at].max(axis=1) >= SURE
    return 1 - found.error, found.calibration_error, log_loss(aligned), float(sure.sum()), float(right[sure].sum())


def _row(name: str, known: int, method: str, scores: np.ndarray, found: dict[str, list[tuple[float, ...]]]) -> Row:
    accuracy, error, loss, _, _ = scores.mean(axis=0).round(4).tolist()
    without = np.array(found[WITHOUT])[:, 0]
    certain = method == CONSTANT
    return Row(
        data=name,
        known=known,
        method=method,
        accuracy=accuracy,
        least_gain=round(float((scores[:, 0] - without).min()), 4),
        calibration_error=None if certain else error,
        log_loss=None if certain else loss,
        sure=int(scores[:, 3].sum()),
        sure_right=float(scores[:, 4].sum().round(2)),
    )


def table(rows: list[Row]) -> list[str]:
    """Return the means over sets for each number of gold tasks, as lines of a table."""
    lines = [
        "| gold | method | sets | accuracy | least gain of a run | ECE | log-loss | .99 is right |",
        "|---" * 8 + "|",
    ]
    for known in SIZES:
        for method in (WITH, WITHOUT, VOTE, CONSTANT):
            some = [row for row in rows if (row.known, row.method) == (known, method)]
            if not some:
                continue
            measures = [np.mean([row.accuracy for row in some]), min(row.least_gain for row in some)]
            if method != CONSTANT:
                measures += [
                    np.mean([getattr(row, column) for row in some]) for column in ("calibration_error", "log_loss")
                ]
            shown = [f"{one:.3f}" for one in measures] + [""] * (4 - len(measures))
            sure = sum(row.sure for row in some)
            right = f"{sum(row.sure_right for row in some):.0f} of {sure}" if sure else ""
            lines.append(f"| {known} | {method} | {len(some)} | {' | '.join(shown)} | {right} |")
    return lines


def losses(rows: list[Row]) -> dict[tuple[str, int], float]:
    """Return the mean gain over the better of vote and result without gold, by set and number of gold tasks."""
    accuracy = {(row.data, row.known, row.method): row.accuracy for row in rows}
    return {
        (data, known): own - max(accuracy[data, known, WITHOUT], accuracy[data, known, VOTE])
        for (data, known, method), own in accuracy.items()
        if method == WITH
    }


def written(rows: list[Row], name: str) -> list[Row]:
    """Write the rows of all sets, those of a set measured anew, and return them."""
    every = [*(row for row in rows if row.data != name), *measured(name)]
    every.sort(key=lambda row: (SETS.index(row.data), row.known))
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, every)
    return every


if __name__ == "__main__":
    rows = read_rows(RESULTS, Row) if RESULTS.exists() else []
    for name in sys.argv[1:] or SETS:
        rows = written(rows, name)
    print("\n".join(table(rows)))
    for (data, known), gain in sorted(losses(rows).items(), key=lambda item: item[1])[:10]:
        print(f"{data} {known}: {gain:+.4f}")
