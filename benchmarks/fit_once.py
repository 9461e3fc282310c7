"""One fit in a process of its own: `python fit_once.py crowdveil|crowd-kit METHOD STEPS TABLE.parquet LABELS.npy`.

STEPS is the number of updates of the posterior after the majority vote, the same in both programs.

Prints, as JSON, the seconds and processor seconds of the fit (from data frame to truths), the seconds of a fit on a
small table before it (which loads code, and compiles it the first time), and the most memory that the fit needed beyond
the loaded table, in MB.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

COMPILED_FROM = 65536


def ours(method: str, steps: int, frame: pd.DataFrame) -> Any:
    """Return crowdveil's labels in the order of the tasks' names."""
    from crowdveil import DawidSkene, MajorityVote, OneCoin, Reports

    fits = {
        "dawid-skene": DawidSkene(max_steps=steps + 1, tolerance=0),
        "one-coin": OneCoin(max_steps=steps + 1, tolerance=0),
        "majority-vote": MajorityVote(),
    }
    return fits[method].fit(Reports.from_frame(frame)).truth.astype(np.int64)


def peers(method: str, steps: int, frame: pd.DataFrame) -> Any:
    """Return crowd-kit's labels in the order of the tasks' names."""
    from crowdkit.aggregation import DawidSkene, MajorityVote, OneCoinDawidSkene

    fits = {
        "dawid-skene": DawidSkene(n_iter=steps, tol=0),
        "one-coin": OneCoinDawidSkene(n_iter=steps, tol=0),
        "majority-vote": MajorityVote(),
    }
    return fits[method].fit_predict(frame).sort_index().to_numpy()


@contextmanager
def environment(kernels: str) -> Iterator[None]:
    """Say which kernels crowdveil warms up; the fit that counts chooses by itself."""
    os.environ["CROWDVEIL_KERNELS"] = kernels
    yield
    del os.environ["CROWDVEIL_KERNELS"]


def memory() -> float:
    """Return the most memory this process ever held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(program: str, method: str, steps: str, table: str, labels: str) -> None:
    """Load the table, warm up on a part of it, fit."""
    frame = pd.read_parquet(table)
    fit = ours if program == "crowdveil" else peers
    begin = time.perf_counter()
    with environment("compiled" if len(frame) >= COMPILED_FROM else "plain"):
        fit(method, int(steps), frame.iloc[:2000])
    warm, held = time.perf_counter() - begin, memory()
    begin, processor = time.perf_counter(), time.process_time()
    found = fit(method, int(steps), frame)
    seconds, processor = time.perf_counter() - begin, time.process_time() - processor
    np.save(labels, found)
    measured = {"seconds": seconds, "processor": processor, "first": warm, "memory": memory() - held, "peak": memory()}
    print(json.dumps(measured))


if __name__ == "__main__":
    main(*sys.argv[1:])
