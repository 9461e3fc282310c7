"""Time and memory of `crowdveil infer FOLDER --memory` on a simulated crowd larger than memory.

    python -m benchmarks.out_of_core --answers 1e9 --memory 2GB --folder /large/disk

Two labels, ten answers a task, a thousand a worker, abilities uniform between one half and one. Each fit is the
command itself in a new process; private memory is RssAnon, read every 10 ms (without pages of mapped files, which the
system drops when it needs memory). The simulated crowd stays in the folder for the next run.
"""

import argparse
import importlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from benchmarks.crowd_folder import CrowdFolder, categorical_crowd_folder

from crowdveil.channels.alphabet import Categories
from crowdveil.randomness import seeded

LABELS = ("no", "yes")
POLL_SECONDS = 0.01
"""Interval between readings of a process's memory."""
HEADER = "| method | steps | s to the first | a step | processor s a step | s after | private MB | mapped MB | found |"
SIMULATION_FILE = "made.json"


class ProcessRun(NamedTuple):
    """JSON printed by a process, and its peak memory in MB."""

    printed: dict[str, Any]
    private: float
    mapped: float


def watch(words: list[str]) -> ProcessRun:
    """Return the result of this program in a new process with these arguments."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.out_of_core", *words], stdout=subprocess.PIPE, text=True
    )
    peaks = {"RssAnon": 0, "RssFile": 0}
    while process.poll() is None:
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            name, _, size = line.partition(":")
            if name in peaks:
                peaks[name] = max(peaks[name], int(size.split()[0]))
        time.sleep(POLL_SECONDS)
    printed = process.stdout.read() if process.stdout is not None else ""
    if process.returncode:
        sys.exit(printed or f"{words} ended with {process.returncode}")
    return ProcessRun(json.loads(printed.splitlines()[-1]), peaks["RssAnon"] / 1000, peaks["RssFile"] / 1000)


def make(folder: str, answers: str) -> None:
    """Simulate the crowd."""
    number, begin = int(float(answers)), time.perf_counter()
    tasks, workers = max(number // 10, 1), max(number // 1000, 20)
    crowd = categorical_crowd_folder(
        Path(folder),
        workers=workers,
        tasks=tasks,
        labels=Categories(LABELS),
        sparsity=1 - 10 / workers,
        source=seeded(1),
    )
    size = sum(path.stat().st_size for path in Path(folder).iterdir())
    seconds = {"seconds": time.perf_counter() - begin, "processor": time.process_time()}
    print(json.dumps({"answers": len(crowd.answers), "tasks": tasks, "workers": workers, "bytes": size, **seconds}))


def infer(*words: str) -> None:
    """Run `crowdveil infer` with these arguments, and print the end of each step."""
    command: Any = importlib.import_module("crowdveil.cli.infer")
    clock = [(time.perf_counter(), time.process_time())]

    @contextmanager
    def bar(_: str, **_options: str) -> Iterator[Any]:
        yield lambda done, total: clock.append((time.perf_counter(), time.process_time()))

    command.progress_bar = bar  # the only hook for the steps of the command
    sys.argv[1:] = ["infer", *words]
    with suppress(SystemExit):
        importlib.import_module("crowdveil.cli").start()
    clock.append((time.perf_counter(), time.process_time()))
    print(json.dumps({"clock": clock}))


def found(truths: Path, crowd: CrowdFolder) -> dict[str, float]:
    """Return the share of correct truths, that of the best constant, and their correlation with the truth."""
    cells, at = np.zeros(4), 0
    for batch in pq.ParquetFile(truths).iter_batches(columns=["truth"], batch_size=1 << 20):
        yes: Any = pc.equal(batch["truth"], LABELS[1]).to_numpy(zero_copy_only=False)
        cells += np.bincount(2 * crowd.truth[at : at + len(yes)] + yes, minlength=4)
        at += len(yes)
    table = cells.reshape(2, 2) / at
    of_truth, of_found = table.sum(axis=1), table.sum(axis=0)
    covered = float(table[1, 1] - of_truth[1] * of_found[1])
    spread = float(np.sqrt(of_truth.prod() * of_found.prod()))
    return {
        "right": float(np.trace(table)),
        "constant": float(of_truth.max()),
        "correlation": covered / spread if spread else 0.0,
    }


def fit(method: str, folder: Path, given: argparse.Namespace) -> str:
    """Return the table row of one fit."""
    out = folder.parent / f"{folder.name}-{method}"
    settings = ["--method", method, "--memory", given.memory, "--out", str(out), "--format", "parquet"]
    settings += ["--no-certificate", "--json"]
    if method != "majority-vote":
        settings += ["--max-steps", str(given.steps), "--tolerance", "0"]
    seen = watch(["infer", str(folder), *settings])
    result = found(out / "truths.parquet", CrowdFolder.open(folder))
    shutil.rmtree(out)
    clock = np.array(seen.printed["clock"])
    took = np.diff(clock, axis=0)
    # Until the first step has ended, reports are opened, checked and counted: it is not like the others.
    step = [f"{statistics.median(column):.2f}" if column else "" for column in took[1:-1].T.tolist()]
    times = f"{took[0, 0]:.1f} | {step[0]} | {step[1]} | {took[-1, 0]:.1f}"
    words = f"{result['right']:.4f} (constant {result['constant']:.4f}, correlation {result['correlation']:.4f})"
    return f"| {method} | {len(took) - 1} | {times} | {seen.private:,.0f} | {seen.mapped:,.0f} | {words} |"


def main() -> None:
    """Simulate missing crowds, fit them, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=float, default=1e7)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--methods", nargs="+", default=["majority-vote", "one-coin", "dawid-skene"])
    parser.add_argument("--folder", type=Path, required=True, help="folder of simulated crowds")
    given = parser.parse_args()
    folder = given.folder / f"{given.answers:.0e}"
    if not (folder / "blocks.json").exists():
        made = watch(["make", str(folder), str(given.answers)])
        record = made.printed | {"private": made.private}
        (given.folder / f"{folder.name}-{SIMULATION_FILE}").write_text(json.dumps(record))
    record = json.loads((given.folder / f"{folder.name}-{SIMULATION_FILE}").read_text())
    print(
        f"{record['answers']:,} answers on {record['tasks']:,} tasks by {record['workers']:,} workers, "
        f"{record['bytes'] / 1e9:.2f} GB, made in {record['seconds']:.0f} s ({record['processor']:.0f} s of processor) "
        f"with {record['private']:,.0f} MB; --memory {given.memory}\n\n{HEADER}\n{'| --- ' * 9}|",
        flush=True,
    )
    for method in given.methods:
        print(fit(method, folder, given), flush=True)
    print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        make(*sys.argv[2:])
    elif sys.argv[1:2] == ["infer"]:
        infer(*sys.argv[2:])
    else:
        main()
