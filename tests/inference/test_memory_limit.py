"""Memory limit of `infer` on encoded blocks: the peak stays within it, and does not grow with the tasks."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from benchmarks.crowd_folder import categorical_crowd_folder

from crowdveil.channels.alphabet import Categories
from crowdveil.randomness import seeded

pytestmark = pytest.mark.slow

METHODS = ("majority-vote", "one-coin", "dawid-skene")
SMALL, LARGE = 500_000, 1_000_000
MOST_PER_TASK = 6
"""Bytes for each further task: counts of reports take four while they are read; whole columns ten or more."""
MORE = 25_000_000
"""Bytes above the smallest limit that leave space for posteriors or coded blocks."""
WRITING = 24_000_000
"""Bytes that the command may use outside the fit: writing the truths, in parts."""
PROGRAM = """
import gc, json, re, sys, tracemalloc
tracemalloc.start()
import pyarrow
import crowdveil.em.kernels.dispatch as choice
import crowdveil.em.loop as loop
from crowdveil.cli import start
from crowdveil.answers.reports import Reports
choice.BLOCK_REPORTS = loop.BLOCK_REPORTS = 1 << 17
Reports.blocks.__defaults__ = (1 << 17,)
pool = pyarrow.system_memory_pool()
pyarrow.set_memory_pool(pool)

def run(folder, method, memory, *more):
    gc.collect()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0] + pool.bytes_allocated()
    steps = [] if method == "majority-vote" else ["--max-steps", "2"]
    sys.argv[1:] = ["infer", folder, "--method", method, "--memory", str(memory), "--format", "parquet", *steps, *more]
    try:
        start()
    except SystemExit as ended:
        return ended.code, tracemalloc.get_traced_memory()[1] + pool.max_memory() - before

def least(folder, method):
    said, sys.stdout = sys.stdout, open(folder + "/refusal", "w+")
    run(folder, method, 1, "--json")
    sys.stdout.seek(0)
    document, sys.stdout = json.load(sys.stdout), said
    return document["error"]["details"]["least"]

asked = json.loads(sys.argv[1])
run(asked[0][0], "dawid-skene", 10**9)  # loads what there is to load
for folder, method, more in asked:
    limit = least(folder, method) + 500_000 + more
    print(json.dumps([*run(folder, method, limit), limit]), file=sys.stderr)
"""


class Ran(NamedTuple):
    """Exit code of an `infer`, its peak of allocated bytes, and its limit."""

    code: int
    peak: int
    limit: int


def folder_of(tasks: int, made: Path) -> str:
    """Return a folder with two answers a task, of 2000 workers."""
    labels = Categories(("no", "yes"))
    categorical_crowd_folder(made, workers=2000, tasks=tasks, labels=labels, sparsity=0.999, source=seeded(1))
    return str(made)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    """Return every method under the smallest limit that is accepted and under a larger one, and one-coin with more
    tasks; all in one process, in small blocks and plain code.

    Python's, numpy's and pyarrow's allocations are counted where they are asked for, those of code included: what the
    process holds besides depends on its allocators.
    """
    small, large = (folder_of(tasks, tmp_path_factory.mktemp("crowd")) for tasks in (SMALL, LARGE))
    asked: list[tuple[Any, ...]] = [(small, method, more) for method in METHODS for more in (0, MORE)]
    asked += [(large, "one-coin", 0)]
    settings = {**os.environ, "CROWDVEIL_KERNELS": "plain", "CROWDVEIL_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, json.dumps(asked)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, env=settings)
    return [Ran(*json.loads(line)) for line in ended.stderr.splitlines() if line.startswith("[")]


def test_the_command_keeps_to_its_limit(runs: list[Ran]) -> None:
    """The peak of majority-vote, one-coin and dawid-skene stays within the limit of the fit and the bytes for
    writing."""
    assert 2 * len(METHODS) + 1 == len(runs)
    assert [0] * len(runs) == [ran.code for ran in runs]
    assert all(ran.peak < ran.limit + WRITING for ran in runs), runs


def test_memory_does_not_grow_with_the_tasks(runs: list[Ran]) -> None:
    """With twice the tasks, infer asks for less than six bytes more for each: no column of names, truths,
    posteriors, pointers or codes is ever held whole."""
    small, large = runs[METHODS.index("one-coin") * 2].peak, runs[2 * len(METHODS)].peak

    assert large - small < MOST_PER_TASK * (LARGE - SMALL), f"{small:,} {large:,}"
