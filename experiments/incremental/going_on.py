"""How many passes a fit takes that goes on from 90 % or 99 % of the tasks, beside a fit from the start.

Run `python experiments/incremental/going_on.py`; it needs the public data sets, writes `results/going_on.csv` and
prints the table of README.md. Means over three orders of tasks (seeds 0, 1 and 2).
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from made_to_grow import SETS, Crowd, made_up, part, real

from crowdveil import DawidSkene, OneCoin, PrivateDawidSkene, SavedFit, fit_on

OUT = Path(__file__).parent / "results" / "going_on.csv"
SEEDS = (0, 1, 2)
SHARES = (0.9, 0.99)
TOLERANCES = (1e-6, 1e-3)
METHODS = (DawidSkene, OneCoin, PrivateDawidSkene)


def measure(crowd: Crowd, method: Any, tolerance: float, share: float, seed: int) -> dict[str, Any]:
    """Fit a share of the tasks, go on with all, and compare with a fit of all."""
    reports, estimator = crowd.reports, method(tolerance=tolerance)
    order = np.random.default_rng(seed).permutation(len(reports.tasks))
    early = order < share * len(reports.tasks)
    saved: SavedFit | None = fit_on(estimator, part(reports, early[reports.task])).saved
    gone_on = fit_on(estimator, reports, start_from=saved)
    whole = estimator.fit(reports)
    apart = np.abs(gone_on.estimate.posterior - whole.posterior)
    return {
        "from_start": whole.steps,
        "going_on": gone_on.passes,
        "truths_differ": float((gone_on.estimate.truth != whole.truth).mean()),
        "furthest": float(apart.max()),
        "objective_gained": gone_on.estimate.log_likelihoods[-1] - whole.log_likelihoods[-1],
    }


def rows() -> Iterator[dict[str, Any]]:
    """Yield every measurement."""
    for name in ("made up", *SETS):
        for method in METHODS:
            for tolerance in TOLERANCES:
                for share in SHARES:
                    for seed in SEEDS:
                        crowd = made_up(seed) if name == "made up" else real(name)
                        head = {"set": SETS.get(name, name), "method": method.name, "tolerance": tolerance}
                        yield head | {"share": share, "seed": seed} | measure(crowd, method, tolerance, share, seed)


def main() -> None:
    """Measure, write and print."""
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
                cells.append(f"{np.mean([row['going_on'] for row in mine if row['share'] == share]):.0f}")
        last = [row for row in found if (row["set"], row["method"], row["tolerance"]) == (name, method, TOLERANCES[0])]
        cells.append(f"{max(row['furthest'] for row in last):.0e}")
        gains = [row["objective_gained"] for row in last]
        cells.append(f"{min(gains):+.2f} to {max(gains):+.2f}" if max(map(abs, gains)) > 1e-4 else "0")
        print(f"| {name} | `{method}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
