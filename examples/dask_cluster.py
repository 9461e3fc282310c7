"""A Dask cluster on one computer: a scheduler and two workers, each a process of its own, fit encoded answers.

    python examples/dask_cluster.py
    python examples/dask_cluster.py --answers 10_000_000 --workers 4

It simulates answers (no privacy), keeps them in a folder of encoded blocks, and infers the truths on the cluster and in
this process: both have the same bits. The processes end with the program, also after an error or Ctrl-C. On several
computers, start `dask scheduler` on one and `dask worker tcp://HOST:8786` on each of the others; the folder must have
the same path everywhere.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import crowdveil
from crowdveil.em.engines import Dask

START_SECONDS, STOP_SECONDS = 60.0, 10.0
"""Time limits for the scheduler to start, and for a process to end by itself."""


@contextmanager
def dask_cluster(workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and workers of one thread on this computer; yield the address and all processes.

    Raises:
        RuntimeError: the scheduler did not start.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory()))
        found = scratch / "scheduler.json"
        listening = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(found)]
        scheduler = stack.enter_context(running("scheduler", listening, scratch))
        address = address_of(found, scheduler)
        settings = ["--nthreads", "1", "--memory-limit", "0", "--no-dashboard", "--local-directory", str(scratch)]
        started = [
            stack.enter_context(running("worker", [address, "--no-nanny", *settings], scratch)) for _ in range(workers)
        ]
        yield address, [scheduler, *started]


@contextmanager
def running(role: str, words: list[str], scratch: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a part of the cluster as a process; it is ended afterwards, and its log is shown if it failed."""
    with (scratch / f"{role}.log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-m", "dask", role, *words], stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def address_of(file: Path, scheduler: subprocess.Popen[bytes]) -> str:
    """Return the address that the scheduler writes into a file at its start."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and scheduler.poll() is None:
        if file.exists() and file.stat().st_size:
            return str(json.loads(file.read_text("utf-8"))["address"])
        time.sleep(0.1)
    raise RuntimeError("The Dask scheduler did not start.")


def simulated_answers(count: int) -> crowdveil.Reports:
    """Return answers of workers who are right in half to all cases: ten a task, a hundred a worker."""
    draw = np.random.default_rng(1)
    tasks, workers = max(count // 10, 1), max(count // 100, 20)
    task = np.repeat(np.arange(tasks), 10)
    worker = ((draw.integers(workers, size=tasks)[:, None] + 7919 * np.arange(10)) % workers).ravel()
    right = draw.random(len(task)) < draw.uniform(0.5, 1.0, workers)[worker]
    truth = draw.integers(2, size=tasks)[task]
    return crowdveil.Reports.from_arrays(task, worker, np.where(right == truth, "yes", "no"))


def main() -> None:
    """Infer on the cluster and in this process, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    with TemporaryDirectory() as folder, dask_cluster(given.workers) as (address, processes):
        simulated_answers(given.answers).save(folder)
        reports = crowdveil.Reports.open(folder)
        print(f"{len(reports):,} answers; {len(processes)} processes, the scheduler at {address}")
        posteriors = []
        for name, engine in ((f"{given.workers} workers", Dask(address=address)), ("this process", None)):
            begin = time.perf_counter()
            found = crowdveil.infer(reports, engine=engine)
            posteriors.append(found.estimate.posterior)
            print(f"{name}: {found.estimate.steps} steps in {time.perf_counter() - begin:.1f} s")
    if not (posteriors[0] == posteriors[1]).all():
        raise SystemExit("The results differ.")
    print("The same bits.")


if __name__ == "__main__":
    main()
