"""Memory of `infer` on a folder under a limit: it keeps to the limit, and does not follow the tasks."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.data.reports import Reports
from crowdveil.em.memory import TooLittleMemory
from crowdveil.errors import SettingsError
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd_folder
from crowdveil.workflow import private_memory
from crowdveil.workflow.private_memory import private_bytes
from crowdveil.workflow.resources import Resources

METHODS = ("majority-vote", "one-coin", "dawid-skene")
SMALL, LARGE = 500_000, 1_000_000
MOST_PER_TASK = 6
"""Bytes for each further task: counts of reports take four while they are read; whole columns ten or more."""
MORE = 25_000_000
"""Bytes beyond the smallest limit that leave room for posteriors or coded blocks."""
PROGRAM = """
import gc, json, re, sys, tracemalloc
tracemalloc.start()
import pyarrow
import crowdveil.em.kernels.dispatch as choice
import crowdveil.em.loop as loop
import crowdveil.workflow.private_memory as private_memory
from crowdveil.cli.start import start
from crowdveil.data.reports import Reports
choice.BLOCK_REPORTS = loop.BLOCK_REPORTS = 1 << 17
Reports.blocks.__defaults__ = (1 << 17,)
pool = pyarrow.system_memory_pool()
private_memory.PLAIN_CODE = 0  # it has been loaded by then
private_memory.private_bytes = lambda: tracemalloc.get_traced_memory()[0] + pool.bytes_allocated()

def run(folder, method, memory, *scored):
    gc.collect()
    tracemalloc.reset_peak()
    steps = [] if method == "majority-vote" else ["--max-steps", "2"]
    sys.argv[1:] = ["infer", folder, "--method", method, "--memory", str(memory), "--format", "parquet", *steps]
    sys.argv += scored
    try:
        start()
    except SystemExit as ended:
        return ended.code, tracemalloc.get_traced_memory()[1] + pool.max_memory()

def least(folder, method):
    said, sys.stderr = sys.stderr, open(folder + "/refusal", "w+")
    code, _ = run(folder, method, 1)
    sys.stderr.seek(0)
    told, sys.stderr = sys.stderr.read(), said
    return int(re.search(r"must be at least ([0-9,]+) bytes", told)[1].replace(",", ""))

asked = json.loads(sys.argv[1])
run(asked[0][0], "dawid-skene", 10**9)  # loads what there is to load
for folder, method, more, *scored in asked:
    limit = least(folder, method) + 500_000 + more
    print(json.dumps([*run(folder, method, limit, *scored), limit]), file=sys.stderr)
"""


class Ran(NamedTuple):
    """How an `infer` ended, the most that was allocated while it ran, and its limit."""

    code: int
    peak: int
    limit: int


def folder_of(tasks: int, made: Path) -> str:
    """Return a folder with two answers a task, of 2000 workers."""
    labels = Categories(("no", "yes"))
    categorical_crowd_folder(made, workers=2000, tasks=tasks, labels=labels, sparsity=0.999, source=seeded(1))
    return str(made)


def gold_of(folder: str) -> str:
    """Return a file with a truth for each task of a folder."""
    path = Path(folder, "gold.csv")
    path.write_text("task,truth\n" + "".join(f"{task},no\n" for task in Reports.open(folder).tasks), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    """Return every method under the smallest limit that is accepted and under a larger one, one-coin with more tasks,
    and with a score of all tasks; all in one process, in small blocks and plain code.

    Python's, numpy's and pyarrow's allocations are counted where they are asked for, those of code included: what the
    process holds besides depends on its allocators.
    """
    small, large = (folder_of(tasks, tmp_path_factory.mktemp("crowd")) for tasks in (SMALL, LARGE))
    asked: list[tuple[Any, ...]] = [(small, method, more) for method in METHODS for more in (0, MORE)]
    # Peaks of numpy and pyarrow, which are added up, come one after the other where truths are scored.
    asked += [(large, "one-coin", 0), (small, "one-coin", MORE, "--score", gold_of(small))]
    settings = {**os.environ, "CROWDVEIL_KERNELS": "plain", "CROWDVEIL_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, json.dumps(asked)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, env=settings)
    return [Ran(*json.loads(line)) for line in ended.stderr.splitlines() if line.startswith("[")]


def test_the_command_keeps_to_its_limit(runs: list[Ran]) -> None:
    """Of majority-vote, one-coin and dawid-skene, the most that is allocated, code included, stays below the limit;
    also where all tasks are scored."""
    assert 2 * len(METHODS) + 2 == len(runs)
    assert [0] * len(runs) == [ran.code for ran in runs]
    assert all(ran.peak < ran.limit for ran in runs), runs


def test_private_memory_does_not_follow_the_tasks(runs: list[Ran]) -> None:
    """With twice the tasks, infer asks for less than six bytes more for each: no column of names, truths,
    posteriors, pointers or codes is ever held whole."""
    small, large = runs[METHODS.index("one-coin") * 2].peak, runs[2 * len(METHODS)].peak

    assert large - small < MOST_PER_TASK * (LARGE - SMALL), f"{small:,} {large:,}"


def test_limits_are_shared_out_beside_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """In threads a fit gets what the process, its code and writing leave; other engines get the limit as it is."""
    monkeypatch.setattr(private_memory, "private_bytes", lambda: 50_000_000)
    monkeypatch.setenv("CROWDVEIL_KERNELS", "plain")
    beside = 50_000_000 + private_memory.PLAIN_CODE + private_memory.WRITING

    with Resources(memory=200_000_000).for_fit(10) as memory:
        assert 200_000_000 - beside == memory
    with Resources(memory=200_000_000, engine="processes").for_fit(10) as memory:
        assert 200_000_000 == memory
    with Resources().for_fit(10) as memory:
        assert memory is None
    told = rf"at least {beside + 7:,} bytes: {beside:,} for the command .* got 1000"
    with pytest.raises(SettingsError, match=told), Resources(memory=1000).for_fit(10):
        raise TooLittleMemory(7, 1000 - beside)


def test_private_bytes_are_those_of_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is allocated counts, in bytes; where the system does not tell, a usual number stands in."""
    status = tmp_path / "status"
    monkeypatch.setattr(private_memory, "STATUS", status)
    assert private_memory.AT_START == private_bytes()
    status.write_text("Name:\tx\nVmRSS:\t 90 kB\nRssAnon:\t      70 kB\n")
    assert 70 * 1024 == private_bytes()
    status.write_text("Name:\tx\nVmRSS:\t 90 kB\n")
    assert private_memory.AT_START == private_bytes()
