"""Demo: every mechanism and estimator on three crowds, as rows and one HTML page."""

import json
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass

from crowdveil.comparison.demo.crowds import DemoCrowd
from crowdveil.comparison.demo.page import page_html
from crowdveil.comparison.demo.trials import trials_of_demo_crowd
from crowdveil.comparison.trials import NotRun, Row, Trial, compare_with_unprotected, run_trial

PAGE_FILE = "demo.html"
ROWS_FILE = "demo.json"
MAX_THREADS = 8
Progress = Callable[[int, int, str], None]
"""Callback with the number of finished trials, the number of all trials, and the title of the last one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Demo:
    """Crowds, rows in the order of the table, seed of the simulated devices, and what was not run."""

    crowds: tuple[DemoCrowd, ...]
    rows: tuple[Row, ...]
    seed: int
    not_run: tuple[NotRun, ...] = ()

    def to_json(self, page: str) -> dict[str, object]:
        """Return the rows as a JSON object that names the page; an infinite epsilon is the text "infinity"."""
        rows = [
            {name: "infinity" if value == math.inf else value for name, value in asdict(row).items()}
            for row in self.rows
        ]
        missing = [asdict(pair) for pair in self.not_run]
        return {"simulation": True, "seed": self.seed, "page": page, "rows": rows, "not_run": missing}

    def texts(self, page: str) -> dict[str, str]:
        """Return the contents of page and rows by file name; the rows name the page."""
        rows = json.dumps(self.to_json(page), indent=1)
        return {PAGE_FILE: page_html(self.crowds, self.rows, self.seed, self.not_run), ROWS_FILE: rows}


def run_demo(crowds: Sequence[DemoCrowd], *, seed: int = 1, progress: Progress | None = None) -> Demo:
    """Perturb every crowd with every mechanism, and infer with every method that reads its reports.

    Simulation only, no privacy: the reports follow from `seed`.

    Args:
        crowds: `demo_crowds`.
        seed: seed of the simulated devices.
        progress: callback after each trial.
    """
    parts = [trials_of_demo_crowd(crowd, seed) for crowd in crowds]
    rows = _rows_of([trial for part in parts for trial in part.trials], progress)
    not_run = tuple(pair for part in parts for pair in part.not_run)
    return Demo(crowds=tuple(crowds), rows=compare_with_unprotected(rows), seed=seed, not_run=not_run)


def _rows_of(trials: list[Trial], progress: Progress | None) -> list[Row]:
    """Run trials on all cores and return their rows in the order of the trials."""
    threads = ThreadPoolExecutor(min(os.cpu_count() or 1, MAX_THREADS))
    try:
        running = {threads.submit(run_trial, trial): trial for trial in trials}
        for done, future in enumerate(as_completed(running), start=1):
            future.result()
            if progress is not None:
                progress(done, len(trials), running[future].title)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
    return [row for future in running for row in future.result()]
