"""Memory that `infer` adds while it reads: at once, and within a limit; as CSV, gzipped CSV, Parquet and a hive folder.

    python -m benchmarks.reading_memory --rows 5000000 --memory 200MB

Each run is a process of its own. Its anonymous memory is sampled; that of a run on four answers is subtracted. Mapped
files, which the system can take back, are in the resident memory only. Needs Linux.
"""

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

PER_TASK, WORKERS, DAYS = 5, 5000, 20
MB = 10**6


class Run(NamedTuple):
    """Peaks of anonymous and resident memory in bytes, and seconds of processor time."""

    anonymous: int
    resident: int
    seconds: float


def answers(rows: int) -> pa.Table:
    """Return answers in random order, of workers who are right with probability .775."""
    generator = np.random.default_rng(1)
    tasks = rows // PER_TASK
    task = np.repeat(np.arange(tasks), PER_TASK)
    worker = (task * 7 + np.tile(np.arange(PER_TASK), tasks) * 1009) % WORKERS
    right = generator.random(len(task)) < 0.7
    label = np.where(right, generator.integers(0, 4, tasks)[task], generator.integers(0, 4, len(task)))
    order = generator.permutation(len(task))
    names = {
        "task": np.char.add("item-", task[order].astype(str)),
        "worker": np.char.add("w", worker[order].astype(str)),
    }
    return pa.table({**names, "label": np.array(["cat", "dog", "bird", "fish"])[label[order]]})


def write_forms(table: pa.Table, folder: Path) -> dict[str, Path]:
    """Return the files and folders of a table by form."""
    forms = {"CSV": "answers.csv", "gzipped CSV": "answers.csv.gz", "Parquet": "answers.parquet", "hive folder": "hive"}
    paths = {form: folder / name for form, name in forms.items()}
    pyarrow.csv.write_csv(table, paths["CSV"])
    with paths["CSV"].open("rb") as plain, gzip.open(paths["gzipped CSV"], "wb", 1) as packed:
        shutil.copyfileobj(plain, packed)
    pq.write_table(table, paths["Parquet"], row_group_size=500_000)
    size = -(-len(table) // DAYS)
    for day in range(DAYS):
        part = paths["hive folder"] / f"day={day}" / "part-0.parquet"
        part.parent.mkdir(parents=True)
        pq.write_table(table.slice(day * size, size), part)
    return paths


def infer(source: Path, out: Path, *words: str) -> Run:
    """Run `crowdveil infer` on a source."""
    command = [
        sys.executable,
        "-m",
        "crowdveil",
        "infer",
        str(source),
        "--out",
        str(out),
        "--format",
        "parquet",
        *words,
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    status, peaks = Path(f"/proc/{process.pid}/status"), dict.fromkeys(("RssAnon:", "VmHWM:"), 0)
    while True:
        found = dict(line.split()[:2] for line in status.read_text().splitlines() if line.startswith(tuple(peaks)))
        if not found:  # ended, not yet waited for
            break
        peaks = {name: max(peak, 1024 * int(found[name])) for name, peak in peaks.items()}
        time.sleep(0.005)
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise SystemExit(f"infer ended with {process.returncode}.")
    return Run(peaks["RssAnon:"], peaks["VmHWM:"], usage.ru_utime + usage.ru_stime)


def main() -> None:
    """Print a line for each form, without and with the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--memory", default="200MB")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "small.csv").write_text("task,worker,label\n1,a,x\n1,b,y\n2,a,x\n2,b,x\n", "utf-8")
        small = infer(folder / "small.csv", folder / "of-small")
        for form, path in write_forms(answers(asked.rows), folder).items():
            for limit in ((), ("--memory", asked.memory)):
                run = infer(path, folder / "found", *limit)
                added = [(one - other) / MB for one, other in zip(run[:2], small[:2], strict=True)]
                text = f"{added[0]:6.0f} MB added, {added[1]:6.0f} MB resident, {run.seconds:5.1f} s of processor time"
                print(f"{form:12} {' '.join(limit) or 'at once':16} {text}", flush=True)


if __name__ == "__main__":
    main()
