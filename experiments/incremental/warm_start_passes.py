"""Passes of a warm-started fit that has 90 % or 99 % of the tasks already, and of a cold start.

Run `python experiments/incremental/warm_start_passes.py`; it needs the public data sets, writes
`results/warm_start_passes.csv` and prints the table. Means over three orders of tasks (seeds 0, 1 and 2).
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from growing_reports import SETS, Crowd, real_crowd, simulated_crowd, subset

from crowdveil import DawidSkene, OneCoin, PrivateDawidSkene, SavedFit, fit_on

OUT = Path(__file__).parent / "results" / "warm_start_passes.csv"
SEEDS = (0, 1, 2)
SHARES = (0.9, 0.99)
TOLERANCES = (1e-6, 1e-3)
METHODS = (DawidSkene, OneCoin, PrivateDawidSkene)


def measure(crowd: Crowd, method: Any, tolerance: float, share: float, seed: int) -> dict[str, Any]:
    """Return the comparison of a fit warm-started from a share of the tasks with a cold start."""
    reports, estimator = crowd.reports, method(tolerance=tolerance)
    order = np.random.default_rng(seed).permutation(len(reports.tasks))
    early = order < share * len(reports.tasks)
    saved: SavedFit | None = fit_on(estimator, subset(reports, early[reports.task])).saved
    warm = fit_on(estimator, reports, start_from=saved)
    whole = estimator.fit(reports)
    apart = np.abs(warm.estimate.posterior - whole.posterior)
    return {
        "from_start": whole.steps,
        "warm_start": warm.passes,
        "truths_differ": float((warm.estimate.truth != whole.truth).mean()),
        "furthest": float(apart.max()),
        "objective_gained": warm.estimate.log_likelihoods[-1] - whole.log_likelihoods[-1],
    }


def rows() -> Iterator[dict[str, Any]]:
    """Yield all measurements."""
    for name in ("made up", *SETS):
        for method in METHODS:
            for tolerance in TOLERANCES:
                for share in SHARES:
                    for seed in SEEDS:
                        crowd = simulated_crowd(seed) if name == "made up" else real_crowd(name)
                        head = {"set": SETS.get(name, name), "method": method.name, "tolerance": tolerance}
                        yield head | {"share": share, "seed": seed} | measure(crowd, method, tolerance, share, seed)


def main() -> None:
    """Write the measurements and print the table."""
    found = list(rows())
    with OUT.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    keys = list(dict.fromkeys((row["set"], row["method"]) for row in found))
    for name, method in keys:
        cells = []
        for tolerance in TOLERANCES:
            mine = [row for row in found if (row["set"], row["method"], row["tolerance"]) == (name, method, tolerance)]
            cells.append(f"{np.mean([row['from_start'] for row in mine]):.0f}")
            for share in SHARES:
                cells.append(f"{np.mean([row['warm_start'] for row in mine if row['share'] == share]):.0f}")
        last = [row for row in found if (row["set"], row["method"], row["tolerance"]) == (name, method, TOLERANCES[0])]
        cells.append(f"{max(row['furthest'] for row in last):.0e}")
        gains = [row["objective_gained"] for row in last]
        cells.append(f"{min(gains):+.2f} to {max(gains):+.2f}" if max(map(abs, gains)) > 1e-4 else "0")
        print(f"| {name} | `{method}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
