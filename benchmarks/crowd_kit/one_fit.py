"""One measured fit in its own process: `python one_fit.py PROGRAM METHOD STEPS FOLDER LABELS.npy`.

PROGRAM is crowdveil, numpy (crowdveil with numpy kernels), crowd-kit, or bandwidth, which only reads memory and has no
further arguments. FOLDER holds the columns of `write_crowd`. Prints one JSON object: seconds and processor seconds of
the fit, from a table in memory to the labels, which are saved; seconds of a fit of a few rows before it, which loads
code; and the peak memory in MB of the fit beyond the table, and of the process. The peer's interpreter runs this file
too, so that it imports nothing of crowdveil but where crowdveil is the contender.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = ("task", "worker", "label")
WARM_ROWS = 2000
BANDWIDTH_NUMBERS = 1 << 25
"""Doubles read to measure the bandwidth: 256 MB, beyond every cache."""
BANDWIDTH_READS = 5
KERNELS = "CROWDVEIL_KERNELS"
STATUS = Path("/proc/self/status")
Fit = Callable[[Any], Any]


def crowdveil_fit(method: str, steps: int) -> Fit:
    """Return what fits a table with crowdveil; labels in the order of the tasks' numbers."""
    from crowdveil import aggregate
    from crowdveil.answers.reports import Reports
    from crowdveil.estimators import DawidSkene, MajorityVote, OneCoin

    if method in ("default", "converged"):
        name = None if method == "default" else "dawid-skene"
        return lambda table: np.asarray(aggregate(table, name)["truth"])
    fits: dict[str, Any] = {
        "dawid-skene": DawidSkene(max_steps=steps + 1, tolerance=0),
        "one-coin": OneCoin(max_steps=steps + 1, tolerance=0),
        "majority-vote": MajorityVote(),
    }
    return lambda table: fits[method].fit(Reports.from_frame(table)).truth.astype(np.int64)


def peer_fit(method: str, steps: int) -> Fit:
    """Return what fits a table with crowd-kit; labels in the order of the tasks' numbers."""
    from crowdkit.aggregation import DawidSkene, MajorityVote, OneCoinDawidSkene

    fits = {
        "default": DawidSkene(),
        "converged": DawidSkene(),
        "dawid-skene": DawidSkene(n_iter=steps, tol=0),
        "one-coin": OneCoinDawidSkene(n_iter=steps, tol=0),
        "majority-vote": MajorityVote(),
    }
    return lambda table: fits[method].fit_predict(table).sort_index().to_numpy()


def load(folder: Path, rows: int | None = None) -> Any:
    """Return the columns, or their first rows, as a pandas frame, or an Arrow table where there is no pandas."""
    columns = {name: np.array(np.load(folder / f"{name}.npy", mmap_mode="r")[:rows]) for name in COLUMNS}
    if find_spec("pandas") is None:
        import pyarrow as pa

        return pa.table(columns)
    import pandas as pd

    return pd.DataFrame(columns)


def warm_up(fit: Fit, folder: Path, program: str) -> None:
    """Fit a few rows, with the kernels that all of them will take."""
    few = load(folder, WARM_ROWS)
    if program != "crowdveil":
        fit(few)
        return
    from crowdveil.em.kernels.dispatch import use_compiled

    rows = np.load(folder / f"{COLUMNS[0]}.npy", mmap_mode="r").size
    os.environ[KERNELS] = "compiled" if use_compiled(rows) else "plain"
    fit(few)
    del os.environ[KERNELS]


def reset_peak_memory() -> None:
    """Let the most memory held be counted anew from here, where the system can do that."""
    if STATUS.exists():
        Path("/proc/self/clear_refs").write_text("5")


def memory() -> float:
    """Return the most memory that this process held, in MB."""
    if STATUS.exists():
        return next(int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith("VmHWM")) / 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return peak / 1024 if sys.platform == "darwin" else peak


def bandwidth() -> dict[str, float]:
    """Return how many GB a second one thread reads."""
    held = np.ones(BANDWIDTH_NUMBERS)
    times = []
    for _ in range(BANDWIDTH_READS):
        begin = time.thread_time()
        held.sum()
        times.append(time.thread_time() - begin)
    return {"gigabytes_per_second": held.nbytes / float(np.median(times)) / 1e9}


def measure(program: str, method: str, steps: int, folder: Path, labels: Path) -> dict[str, float]:
    """Load, warm up, fit; see the file's head."""
    begin = time.perf_counter()
    fit = (peer_fit if program == "crowd-kit" else crowdveil_fit)(method, steps)
    warm_up(fit, folder, program)
    first, table, before = time.perf_counter() - begin, load(folder), memory()
    reset_peak_memory()
    held, begin, processor = memory(), time.perf_counter(), time.process_time()
    found = fit(table)
    wall, processor = time.perf_counter() - begin, time.process_time() - processor
    peak = memory()
    np.save(labels, found)
    beyond = {"memory": peak - held, "peak": max(peak, before)}
    return {"wall": wall, "processor": processor, "first": first} | beyond


def main(program: str, *words: str) -> None:
    """Print what was measured."""
    if program == "bandwidth":
        measured = bandwidth()
    else:
        method, steps, folder, labels = words
        if program == "numpy":
            os.environ[KERNELS] = "plain"
        measured = measure(program, method, int(steps), Path(folder), Path(labels))
    print(json.dumps(measured))


if __name__ == "__main__":
    main(*sys.argv[1:])
