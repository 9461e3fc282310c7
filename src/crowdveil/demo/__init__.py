"""Demo: every mechanism and estimator on three crowds, as rows and one HTML page."""

import json
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from crowdveil.comparison import Row, Trial, compare_with_unprotected, run_trial
from crowdveil.demo.crowds_and_trials import DemoCrowd, demo_crowds, trials_of_demo_crowd
from crowdveil.demo.page import page_html
from crowdveil.files.atomic_write import Outputs, write_outputs

PAGE_FILE = "demo.html"
ROWS_FILE = "demo.json"
MAX_THREADS = 8
Progress = Callable[[int, int, str], None]
"""Callback with the number of finished trials, the number of all trials, and the title of the last one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Demo:
    """Crowds, rows in the order of the table, and path of the page."""

    crowds: tuple[DemoCrowd, ...]
    rows: tuple[Row, ...]
    page: Path

    def to_json(self, seed: int) -> dict[str, object]:
        """Return the rows as a JSON object; an infinite epsilon is the text "infinity"."""
        rows = [
            {name: "infinity" if value == math.inf else value for name, value in asdict(row).items()}
            for row in self.rows
        ]
        head = {"simulation": True, "seed": seed, "page": str(self.page)}
        return {**head, "rows": rows}


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
    outputs.check_and_list_replaced_files()
    crowds = demo_crowds(data)
    trials = [trial for crowd in crowds for trial in trials_of_demo_crowd(crowd, seed)]
    demo = Demo(crowds=crowds, rows=compare_with_unprotected(_rows_of(trials, progress)), page=out / PAGE_FILE)
    rows = json.dumps(demo.to_json(seed), indent=1)
    write_outputs(outputs, {PAGE_FILE: page_html(crowds, demo.rows, seed), ROWS_FILE: rows})
    return demo


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
