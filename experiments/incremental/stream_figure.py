"""Figure of the difference between a stream and a fit of all reports received so far.

Run `python experiments/incremental/stream_figure.py`; it needs the public data sets, and writes
`results/stream_progress.csv` and `docs/pictures/incremental.svg`. A hundred parts of whole tasks, one order (seed 0).
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from growing_reports import SETS, real_crowd, subset

from crowdveil import DawidSkene, OneCoin, Stream
from crowdveil.plotting import ON_ANY_PAGE, file_bytes

ROOT = Path(__file__).parents[2]
OUT = Path(__file__).parent / "results" / "stream_progress.csv"
PARTS, SHOWN = 100, (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100)
COLOURS = {DawidSkene: "#3b82f6", OneCoin: "#0d9488"}


def stream_differences(name: str, method: Any) -> Iterator[dict[str, Any]]:
    """Yield the share of truths that differ from a fit of the reports received so far."""
    reports = real_crowd(name).reports
    place = np.random.default_rng(0).permutation(len(reports.tasks)) * PARTS // len(reports.tasks)
    stream = Stream(method(), reports.alphabet)
    for received in range(PARTS):
        stream.add(subset(reports, place[reports.task] == received, np.flatnonzero(place == received)))
        if received + 1 in SHOWN:
            tasks = np.flatnonzero(place <= received)
            whole = method().fit(subset(reports, place[reports.task] <= received, tasks))
            codes = {str(task): code for code, task in enumerate(stream.estimate().tasks)}
            now = stream.estimate().posterior[[codes[str(task)] for task in whole.tasks]]
            differ = float((now.argmax(axis=1) != whole.posterior.argmax(axis=1)).mean())
            yield {"set": SETS[name], "method": method.name, "parts": received + 1, "differ": differ}


def main() -> None:
    """Write the measurements and the figure."""
    found = [row for name in ("duchenne", "snow_rte") for method in COLOURS for row in stream_differences(name, method)]
    with OUT.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    with plt.rc_context(ON_ANY_PAGE):
        figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
        for one, title in zip(axes, ("Duchenne", "RTE"), strict=True):
            for method, colour in COLOURS.items():
                mine = [row for row in found if (row["set"], row["method"]) == (title, method.name)]
                shares = [100 * row["differ"] for row in mine]
                one.plot([row["parts"] for row in mine], shares, marker="o", ms=3, color=colour, label=method.name)
            one.set(title=title, xlabel="parts received, of 100", ylim=(0, None))
        axes[0].set_ylabel("truths that differ\nfrom a batch fit, %")
        axes[0].legend()
        (ROOT / "docs" / "pictures" / "incremental.svg").write_bytes(file_bytes(figure, "svg"))


if __name__ == "__main__":
    main()
