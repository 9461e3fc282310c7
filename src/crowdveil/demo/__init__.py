"""Demo: every mechanism and estimator on three crowds, as rows and one HTML page."""

import json
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from crowdveil.demo.conclusion import conclude
from crowdveil.demo.crowds import DemoCrowd, demo_crowds
from crowdveil.demo.page import render
from crowdveil.demo.trials import Result, Row, Trial, compare_with_unprotected, run, trials_for
from crowdveil.files.atomic_write import Outputs, write_outputs

PAGE_FILE = "demo.html"
ROWS_FILE = "demo.json"
MAX_THREADS = 8
Progress = Callable[[int, int, str], None]
"""Callback with the number of finished trials, the number of all trials, and the title of the last one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Demo:
    """Crowds, results in the order of the table, and path of the page."""

    crowds: tuple[DemoCrowd, ...]
    results: tuple[Result, ...]
    page: Path

    @property
    def rows(self) -> tuple[Row, ...]:
        """All lines of the table."""
        return tuple(row for result in self.results for row in result.rows)

    @property
    def conclusions(self) -> dict[str, str]:
        """Conclusion in words for each crowd, by its title."""
        return {
            crowd.title: conclude(crowd, [row for row in self.rows if row.crowd == crowd.name]) for crowd in self.crowds
        }

    def to_json(self, seed: int) -> dict[str, object]:
        """Return the rows as a JSON object; an infinite epsilon is the text "infinity"."""
        rows = [
            {name: "infinity" if value == math.inf else value for name, value in asdict(row).items()}
            for row in self.rows
        ]
        head = {"simulation": True, "seed": seed, "page": str(self.page)}
        return {**head, "conclusions": self.conclusions, "rows": rows}


def demo_outputs(out: Path) -> Outputs:
    """Return `demo.html` and `demo.json` as outputs."""
    return Outputs(folder=out, names=(PAGE_FILE, ROWS_FILE), kind="demo")


def run_demo(out: Path, *, data: Path | None = None, seed: int = 1, progress: Progress | None = None) -> Demo:
    """Perturb every crowd with every mechanism, infer with every applicable method, and write page and rows.

    Simulation only, no privacy: the reports follow from `seed`.

    Args:
        out: folder for `demo.html` and `demo.json`.
        data: folder of the data sets; by default the data directory. Without data sets the crowds are simulated.
        seed: seed of the simulated devices.
        progress: callback after each trial.

    Raises:
        SettingsError: the folder cannot be written, or contains other files with these names.
    """
    outputs = demo_outputs(out)
    outputs.check()
    crowds = demo_crowds(data)
    plain = [Trial(crowd=crowd, mechanism=None, seed=seed) for crowd in crowds]
    private = [trial for crowd in crowds for trial in trials_for(crowd, seed)]
    results = compare_with_unprotected(_in_order(plain + private, progress))
    demo = Demo(crowds=crowds, results=results, page=out / PAGE_FILE)
    rows = json.dumps(demo.to_json(seed), indent=1)
    write_outputs(outputs, {PAGE_FILE: render(crowds, results, seed), ROWS_FILE: rows})
    return demo


def _in_order(trials: list[Trial], progress: Progress | None) -> list[Result]:
    """Run trials on all cores and return their results in the given order."""
    threads = ThreadPoolExecutor(min(os.cpu_count() or 1, MAX_THREADS))
    try:
        running = {threads.submit(run, trial): place for place, trial in enumerate(trials)}
        found: dict[int, Result] = {}
        for future in as_completed(running):
            found[running[future]] = future.result()
            if progress is not None:
                progress(len(found), len(trials), future.result().trial.title)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
    return [found[place] for place in range(len(trials))]
