"""Figure 4: MAE change against sparsity, 10,000 workers and 1,000 tasks."""

from experiments.papers.exhibit import Row, Verdict
from experiments.papers.sun2018.sparsity import exhibit, summary


def verdict(rows: list[Row]) -> Verdict:
    """Return that MF stays below 0.5, and above the constant."""
    found = summary(rows)
    sentence = (
        "MF stays below 0.5 at both epsilons, as printed, where a worker has 100 answers or more for its 5 dimensions "
        f"(at most {max(found.at_one, found.at_tenth):.2f}), and LP and RR grow with sparsity at epsilon 1; but the "
        f"constant 0 has a smaller error than MF at every point{found.better}."
    )
    return Verdict("reproduced but trivial", sentence, found.holds and max(found.at_one, found.at_tenth) < 0.5)


EXHIBIT = exhibit(
    "sun2018/figure4",
    "MAE change against sparsity, 10,000 workers and 1,000 tasks",
    "Sun et al. 2018, Figure 4",
    crowds={"quick": (600, 1000), "default": (10_000, 1000), "full": (10_000, 1000)},
    repeats={"quick": (1, 0), "default": (1, 0), "full": (3, 1)},
    verdict=verdict,
)
