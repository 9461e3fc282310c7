"""Figure 4: MAE change against sparsity, 10,000 workers and 1,000 tasks."""

from dataclasses import replace

from experiments.papers.exhibit import Configuration, Row, Size, Verdict
from experiments.papers.sun2018.accuracy import OURS, ours_is_best, points, step
from experiments.papers.sun2018.sparsity import CLAIMS, exhibit, summary


def verdict(rows: list[Row]) -> Verdict:
    """Return that MF stays below 0.5, and above the constant."""
    found = summary([row for row in rows if row["mechanism"] != OURS])
    ours = points([row for row in rows if row["mechanism"] == OURS], "sparsity", "claimed_epsilon")
    better = (
        f"; crowdveil at the exact epsilon of RR has the smallest change at the {len(ours)} points where it was run"
        if ours
        else ""
    )
    sentence = (
        "MF stays below 0.5 at both epsilons, as printed, where a worker has 100 answers or more on average for its 5 "
        f"dimensions (at most {max(found.at_one, found.at_tenth):.2f}), and LP and RR grow with sparsity at epsilon 1; "
        f"but the constant 0 has a smaller error than MF at every point{better}."
    )
    best = all(ours_is_best(rows, place) for place in ours)
    holds = found.holds and best and max(found.at_one, found.at_tenth) < 0.5
    return Verdict("reproduced but trivial", sentence, holds)


PUBLISHED = exhibit(
    "sun2018/figure4",
    "MAE change against sparsity, 10,000 workers and 1,000 tasks",
    "Sun et al. 2018, Figure 4",
    crowds={"quick": (600, 1000), "default": (10_000, 1000), "full": (10_000, 1000)},
    repeats={"quick": (1, 0), "default": (1, 0), "full": (3, 0)},
    verdict=verdict,
)
OURS_AT: dict[Size, tuple[float, ...]] = {"quick": (), "default": (0.9,), "full": (0.5, 0.7, 0.9)}
"""Sparsities at which crowdveil is run: minutes a point."""


def configurations(size: Size) -> list[Configuration]:
    """Return the steps of the published mechanisms, then those of crowdveil."""
    crowd = {"workers": 10_000, "tasks": 1000, "repeats": 1}
    ours = [step(OURS, epsilon, sparsity=sparsity, **crowd) for epsilon in CLAIMS for sparsity in OURS_AT[size]]
    return [*PUBLISHED.configurations(size), *ours]


EXHIBIT = replace(PUBLISHED, configurations=configurations)
