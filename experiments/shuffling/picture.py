"""Picture of `trust_models.csv`: error against the loss of a cell and of a worker, one line per trust model.

python experiments/shuffling/picture.py
"""

import csv
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams.update({"svg.hashsalt": "crowdveil", "svg.fonttype": "none"})
from matplotlib import pyplot as plt  # noqa: E402

RESULTS = Path(__file__).parent / "results"
MODELS = {"local": "#1b6ca8", "shuffled": "#b3541e", "curator": "#3d7a3d"}
CROWDS = {"sun 0.5": "Sun, sparsity 0.5", "sun 0.9": "Sun, sparsity 0.9", "adult2": "AdultContent2"}
LOSSES = {"cell_epsilon": "epsilon per cell", "worker_epsilon": "epsilon per worker"}


def main() -> None:
    """Write `results/trust_models.svg`."""
    with (RESULTS / "trust_models.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    figure, axes = plt.subplots(len(LOSSES), len(CROWDS), figsize=(11, 6), sharey="col", layout="constrained")
    for line, (loss, label) in zip(axes, LOSSES.items(), strict=True):
        for axis, (crowd, title) in zip(line, CROWDS.items(), strict=True):
            for model, colour in MODELS.items():
                points = sorted(
                    (float(r[loss]), float(r["error"])) for r in rows if (r["crowd"], r["model"]) == (crowd, model)
                )
                axis.plot(*zip(*points, strict=True), color=colour, marker="o", label=model)
            axis.axhline(next(float(r["constant"]) for r in rows if r["crowd"] == crowd), color="#777", linestyle=":")
            axis.set(xscale="log", title=title, xlabel=f"{label}, delta 1e-6", ylabel="error", ylim=(0, 0.8))
    axes[0, 0].legend()
    figure.savefig(RESULTS / "trust_models.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
