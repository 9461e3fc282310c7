"""Figure 3: MAE change against sparsity, 2,000 workers and 200 tasks."""

from experiments.papers.exhibit import Row, Verdict
from experiments.papers.sun2018.sparsity import exhibit, summary


def verdict(rows: list[Row]) -> Verdict:
    """Return that MF stays below 0.5 at epsilon 1 only, and above the constant everywhere."""
    found = summary(rows)
    sentence = (
        f"LP and RR grow with sparsity at epsilon 1, as printed, and MF stays below 0.5 there (at most "
        f"{found.at_one:.2f}); at epsilon 0.1 it exceeds 0.5 (up to {found.at_tenth:.2f}), "
        f"and the constant 0 has a smaller error than MF at every point{found.better}."
    )
    return Verdict("reproduced in part", sentence, found.holds and found.at_tenth > 0.5 > found.at_one)


EXHIBIT = exhibit(
    "sun2018/figure3",
    "MAE change against sparsity, 2,000 workers and 200 tasks",
    "Sun et al. 2018, Figure 3",
    crowds={"quick": (1000, 100), "default": (2000, 200), "full": (2000, 200)},
    repeats={"quick": (1, 0), "default": (5, 1), "full": (20, 3)},
    verdict=verdict,
)
