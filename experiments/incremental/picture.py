"""The picture of docs/how-to/resume-fits.md: while reports come in, how far a stream is from a fit of all reports so
far.

Run `python experiments/incremental/picture.py`; it needs the public data sets, writes `results/so_far.csv` and
`docs/pictures/incremental.svg`. A hundred parts of whole tasks, one order (seed 0).
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from made_to_grow import SETS, part, real

from crowdveil import DawidSkene, OneCoin, Stream
from crowdveil.plotting import ON_ANY_PAGE, file_bytes

ROOT = Path(__file__).parents[2]
OUT = Path(__file__).parent / "results" / "so_far.csv"
PARTS, SHOWN = 100, (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100)
COLOURS = {DawidSkene: "#3b82f6", OneCoin: "#0d9488"}


def so_far(name: str, method: Any) -> Iterator[dict[str, Any]]:
    """Yield the share of truths that differ from the fit of the reports so far."""
    reports = real(name).reports
    place = np.random.default_rng(0).permutation(len(reports.tasks)) * PARTS // len(reports.tasks)
    stream = Stream(method(), reports.alphabet)
    for came in range(PARTS):
        stream.add(part(reports, place[reports.task] == came, np.flatnonzero(place == came)))
        if came + 1 in SHOWN:
            tasks = np.flatnonzero(place <= came)
            whole = method().fit(part(reports, place[reports.task] <= came, tasks))
            codes = {str(task): code for code, task in enumerate(stream.estimate().tasks)}
            now = stream.estimate().posterior[[codes[str(task)] for task in whole.tasks]]
            differ = float((now.argmax(axis=1) != whole.posterior.argmax(axis=1)).mean())
            yield {"set": SETS[name], "method": method.name, "parts": came + 1, "differ": differ}


def main() -> None:
    """Measure, write and draw."""
    found = [row for name in ("duchenne", "snow_rte") for method in COLOURS for row in so_far(name, method)]
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
            one.set(title=title, xlabel="parts that came in, of 100", ylim=(0, None))
        axes[0].set_ylabel("truths that differ\nfrom a fit so far, %")
        axes[0].legend()
        (ROOT / "docs" / "pictures" / "incremental.svg").write_bytes(file_bytes(figure, "svg"))


if __name__ == "__main__":
    main()
