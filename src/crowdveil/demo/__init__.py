"""The whole story in two minutes: answers, devices that perturb them, a curator who infers, one page that compares."""

import json
import math
import os
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from crowdveil.demo.page import render
from crowdveil.demo.scenes import Scene, scenes
from crowdveil.demo.trials import Result, Row, Trial, compare_with_unprotected, run, trials_for
from crowdveil.engines.processes import ProcessHandle
from crowdveil.files.atomic_write import Outputs, write_outputs

PAGE_FILE = "demo.html"
ROWS_FILE = "demo.json"
MOST_CORES = 8
Progress = Callable[[int, int, str], None]
"""Called as trials end: how many are done, of how many, and what ended."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Demo:
    """What the demo found: its crowds, the results in the order of the table, and where the page was written."""

    scenes: tuple[Scene, ...]
    results: tuple[Result, ...]
    page: Path

    @property
    def rows(self) -> tuple[Row, ...]:
        """All lines of the table."""
        return tuple(row for result in self.results for row in result.rows)

    def to_json(self, seed: int) -> dict[str, object]:
        """Return the rows for a program; an epsilon that promises nothing is the text "infinity"."""
        rows = [
            {name: "infinity" if value == math.inf else value for name, value in asdict(row).items()}
            for row in self.rows
        ]
        return {"simulation": True, "seed": seed, "page": str(self.page), "rows": rows}


def demo_outputs(out: Path) -> Outputs:
    """Return `demo.html` and `demo.json` as outputs."""
    return Outputs(folder=out, names=(PAGE_FILE, ROWS_FILE), kind="demo")


def run_demo(out: Path, *, data: Path | None = None, seed: int = 1, progress: Progress | None = None) -> Demo:
    """Perturb every crowd with every mechanism, infer with every method that fits, and write page and rows.

    Devices are simulated from `seed`: the same seed gives the same numbers, and nobody is protected by them.

    Args:
        out: folder for `demo.html` and `demo.json`.
        data: folder with the data sets; by default the data directory, and made-up crowds where it has none.
        seed: of the simulated devices.
        progress: called after every trial.

    Raises:
        SettingsError: the folder cannot be written, or holds other files of these names.
    """
    outputs = demo_outputs(out)
    outputs.check()
    crowds = scenes(data)
    plain = [Trial(scene=scene, mechanism=None, seed=seed) for scene in crowds]
    private = [trial for scene in crowds for trial in trials_for(scene, seed)]
    results = compare_with_unprotected(_in_order(plain + private, progress))
    demo = Demo(scenes=crowds, results=results, page=out / PAGE_FILE)
    rows = json.dumps(demo.to_json(seed), indent=1)
    write_outputs(outputs, {PAGE_FILE: render(crowds, results, seed), ROWS_FILE: rows})
    return demo


def _in_order(trials: list[Trial], progress: Progress | None) -> list[Result]:
    """Run trials on all cores and return their results in the order given."""
    found: dict[int, Result] = {}
    with closing(_run_all(trials)) as results:
        for place, result in results:
            found[place] = result
            if progress is not None:
                progress(len(found), len(trials), result.trial.title)
    return [found[place] for place in range(len(trials))]


def _run_all(trials: list[Trial]) -> Generator[tuple[int, Result]]:
    """Yield places and results as trials end; worker processes end with the generator, whatever they are about."""
    with ExitStack() as stack:
        waiting = iter(enumerate(trials))
        running: dict[Future[Result], tuple[int, ProcessHandle]] = {}
        for place, trial in islice(waiting, min(os.cpu_count() or 1, MOST_CORES)):
            process = stack.enter_context(closing(ProcessHandle()))
            running[process.submit(run, trial, trial.title)] = place, process
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                place, process = running.pop(future)
                for later, trial in islice(waiting, 1):
                    running[process.submit(run, trial, trial.title)] = later, process
                yield place, future.result()
