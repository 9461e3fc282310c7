"""Memory of `infer` on a folder under a limit: it must not follow the tasks, wherever a column might be held whole."""

import os
import subprocess
import sys

from crowdveil.labels import Categories
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd_folder

SMALL, LARGE = 1_050_000, 2_400_000
MOST_PER_TASK = 6
"""Bytes for each further task: counts of reports take four while they are read; whole columns ten or more."""
PROGRAM = """
import sys, tracemalloc
import pyarrow
import crowdveil.estimators.kernels.choice as choice
from crowdveil.cli import main
choice.BLOCK_REPORTS = 1 << 17
tracemalloc.start()
try:
    main(sys.argv[1:])
finally:
    print(tracemalloc.get_traced_memory()[1], pyarrow.default_memory_pool().max_memory(), file=sys.stderr)
"""


def peak_bytes(*words: str) -> int:
    """Return the most that Python and numpy, and the most that pyarrow, had allocated, in small blocks and plain code.

    Counted where it is asked for: what the process holds besides depends on its allocators, which are free to keep it.
    """
    settings = {**os.environ, "CROWDVEIL_KERNELS": "plain", "CROWDVEIL_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, *words]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, env=settings)
    return sum(int(word) for word in ended.stderr.splitlines()[-1].split())


def test_private_memory_does_not_follow_the_tasks(tmp_path) -> None:
    """With 2.3 times the tasks, infer asks for less than six bytes more for each: no column of names, truths,
    posteriors, pointers or codes is ever held whole."""
    labels, folders = Categories(("no", "yes")), (str(tmp_path / "small"), str(tmp_path / "large"))
    for folder, tasks in zip(folders, (SMALL, LARGE), strict=True):
        categorical_crowd_folder(folder, workers=500, tasks=tasks, labels=labels, sparsity=0.996, source=seeded(1))
    settings = ("--method", "one-coin", "--max-steps", "2", "--memory", "30MB", "--format", "parquet")

    small, large = (peak_bytes("infer", folder, *settings) for folder in folders)

    assert large - small < MOST_PER_TASK * (LARGE - SMALL), f"{small:,} {large:,}"
