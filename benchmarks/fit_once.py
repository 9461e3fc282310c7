"""One fit in a process of its own: `python fit_once.py crowdveil|crowd-kit METHOD TABLE.parquet LABELS.npy`.

Prints, as JSON, the seconds of the fit (from data frame to truths), the seconds of a fit on a small table before it
(which loads code and compiles it), and the most memory that the fit needed beyond the loaded table, in MB.
"""

import json
import resource
import sys
import time
from typing import Any

import numpy as np
import pandas as pd

STEPS = 20
"""Updates of the posterior after the majority vote, in both programs."""


def ours(method: str, frame: pd.DataFrame) -> Any:
    """Return crowdveil's labels in the order of the tasks' names."""
    from crowdveil import DawidSkene, MajorityVote, OneCoin, Reports

    fits = {
        "dawid-skene": DawidSkene(max_steps=STEPS + 1, tolerance=0),
        "one-coin": OneCoin(max_steps=STEPS + 1, tolerance=0),
        "majority-vote": MajorityVote(),
    }
    return fits[method].fit(Reports.from_frame(frame)).truth.astype(np.int64)


def peers(method: str, frame: pd.DataFrame) -> Any:
    """Return crowd-kit's labels in the order of the tasks' names."""
    from crowdkit.aggregation import DawidSkene, MajorityVote, OneCoinDawidSkene

    fits = {
        "dawid-skene": DawidSkene(n_iter=STEPS, tol=0),
        "one-coin": OneCoinDawidSkene(n_iter=STEPS, tol=0),
        "majority-vote": MajorityVote(),
    }
    return fits[method].fit_predict(frame).sort_index().to_numpy()


def memory() -> float:
    """Return the most memory this process ever held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(program: str, method: str, table: str, labels: str) -> None:
    """Load the table, warm up on a part of it, fit."""
    frame = pd.read_parquet(table)
    fit = ours if program == "crowdveil" else peers
    begin = time.perf_counter()
    fit(method, frame.iloc[: min(len(frame), 2000 if program == "crowd-kit" else 150_000)])
    warm, held, begin = time.perf_counter() - begin, memory(), time.perf_counter()
    found = fit(method, frame)
    seconds = time.perf_counter() - begin
    np.save(labels, found)
    print(json.dumps({"seconds": seconds, "first": warm, "memory": memory() - held, "peak": memory()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
