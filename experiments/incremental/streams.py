"""Difference between a stream and a batch fit of all its reports, and errors of both and of the best constant.

Run `python experiments/incremental/streams.py`; it needs the public data sets, writes `results/streams.csv` and prints
the table of README.md. A hundred parts; means over two orders (seeds 0 and 1).
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from growing_reports import SETS, Crowd, perturbed, real_crowd, simulated_crowd, split

from crowdveil import DawidSkene, Estimate, OneCoin, Stream
from crowdveil.evaluation.metrics import score

OUT = Path(__file__).parent / "results" / "streams.csv"
SEEDS = (0, 1)
PARTS = 100
ALL_REPORTS = 1 << 40


def stream_of(crowd: Crowd, estimator: Any, seed: int, *, whole_tasks: bool, kept: int = ALL_REPORTS) -> Stream:
    """Return a stream updated with the reports of a crowd part by part."""
    reports, channel = crowd.reports, crowd.channel
    workers = None if channel is None else [str(name) for name in reports.workers]
    stream = Stream(estimator, reports.alphabet, channel=channel, workers=workers, kept_reports=kept)
    for one in split(reports, PARTS, seed, whole_tasks=whole_tasks):
        if len(one):
            stream.add(one)
    return stream


def aligned(estimate: Estimate, whole: Estimate) -> np.ndarray[Any, Any]:
    """Return the posterior of a stream in the task order of the batch fit."""
    place = {str(name): code for code, name in enumerate(estimate.tasks)}
    return estimate.posterior[[place[str(name)] for name in whole.tasks]]


def differ(estimate: Estimate, whole: Estimate) -> float:
    """Return the share of tasks whose most probable label differs from that of the batch fit."""
    return float((aligned(estimate, whole).argmax(axis=1) != whole.posterior.argmax(axis=1)).mean())


def measure(crowd: Crowd, method: Any, seed: int) -> dict[str, Any]:
    """Return differences of streams that keep all reports, or a tenth, from the batch fit."""
    whole = method().fit(crowd.reports, channel=crowd.channel)
    stream = stream_of(crowd, method(), seed, whole_tasks=True)
    came = stream.estimate()
    tenth = stream_of(crowd, method(), seed, whole_tasks=True, kept=len(crowd.reports) // 10).estimate()
    found: dict[str, Any] = {"tasks": differ(came, whole), "tenth": differ(tenth, whole)}
    found["rows"] = np.nan
    if crowd.channel is None:
        found["rows"] = differ(stream_of(crowd, method(), seed, whole_tasks=False).estimate(), whole)
    found |= {"steps": whole.steps, "settling": np.nan, "settled": np.nan, "furthest": np.nan}
    if whole.converged:
        found["settling"] = stream.settle()
        settled = stream.estimate()
        found["settled"] = differ(settled, whole)
        found["furthest"] = float(np.abs(aligned(settled, whole) - whole.posterior).max())
    for name, estimate in (("batch", whole), ("stream", came)):
        scored = score(estimate, crowd.gold)
        found |= {f"error_{name}": scored.error, f"correlation_{name}": scored.correlation}
        found["error_constant"] = scored.baseline
    return found


def crowds(seed: int) -> Iterator[tuple[str, Crowd]]:
    """Yield the crowds by name."""
    yield "made up", simulated_crowd(seed)
    for name, title in SETS.items():
        yield title, real_crowd(name)
    for epsilon in (4.0, 2.0):
        yield f"made up, epsilon {epsilon:g}", perturbed(simulated_crowd(seed), epsilon, seed)
    yield "Duchenne, epsilon 4", perturbed(real_crowd("duchenne"), 4.0, seed)


def percent(share: float) -> str:
    """Return a share in percent; empty for nan."""
    return "" if np.isnan(share) else f"{100 * share:.1f} %"


def main() -> None:
    """Write the measurements and print the table."""
    found = []
    for seed in SEEDS:
        for name, crowd in crowds(seed):
            for method in (DawidSkene, OneCoin):
                found.append({"set": name, "method": method.name, "seed": seed} | measure(crowd, method, seed))
                print(found[-1], flush=True)
    with OUT.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    for name, method in dict.fromkeys((row["set"], row["method"]) for row in found):
        mine = [row for row in found if (row["set"], row["method"]) == (name, method)]

        def mean(column: str, mine: list[dict[str, Any]] = mine) -> float:
            return float(np.mean([row[column] for row in mine]))

        shares = [percent(mean(column)) for column in ("tasks", "rows", "tenth")]
        settled = "" if np.isnan(mean("settling")) else f"{mean('settling'):.0f}"
        apart = percent(max(row["settled"] for row in mine))
        errors = [f"{mean(f'error_{which}'):.3f}" for which in ("constant", "batch", "stream")]
        correlation = f"{mean('correlation_batch'):.2f} / {mean('correlation_stream'):.2f}"
        cells = [name, f"`{method}`", *shares, apart, settled, f"{mean('steps'):.0f}", *errors, correlation]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
