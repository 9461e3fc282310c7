"""Time and memory of `crowdveil infer FOLDER` in one process, and with a Dask cluster of two workers on this computer.

    python -m benchmarks.cluster --answers 1e8 --folder DISK

The crowd is that of `benchmarks.out_of_core`: two labels, ten answers a task, a thousand a worker. Each fit is the
command itself in a new process, with the default method. Private memory is RssAnon, the peak of the sum over command,
workers and scheduler, read every 20 ms. The simulated crowd stays in the folder for the next run.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.out_of_core import make
from examples.dask_cluster import dask_cluster

POLL_SECONDS = 0.02
WORKERS = 2
HEADER = "| answers | processes | s | processor s | private MB | of which the command | load before |"


def private_memory(process: int) -> int:
    """Return the private memory of a process in kB; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1])
    return 0


def processor_seconds(process: int) -> float:
    """Return the processor time of a process and its ended children; 0 if it has ended."""
    with suppress(OSError):
        parts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, parts[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def run(folder: Path, out: Path, name: str, threads: int, others: list[int], words: list[str]) -> str:
    """Run the command, and return its row of the table; `others` are the processes of a cluster."""
    load, begin = os.getloadavg()[0], time.perf_counter()
    busy = sum(map(processor_seconds, others))
    fit = ["-m", "crowdveil", "infer", str(folder), "--no-certificate", "--out", str(out), "--format", "parquet"]
    command = subprocess.Popen(
        [sys.executable, *fit, *words],
        stdout=subprocess.DEVNULL,
        env=os.environ | {"CROWDVEIL_THREADS": str(threads)},
    )
    most = own = 0
    spent = 0.0
    while command.poll() is None:
        mine = private_memory(command.pid)
        own, most = max(own, mine), max(most, mine + sum(map(private_memory, others)))
        spent = processor_seconds(command.pid) or spent
        time.sleep(POLL_SECONDS)
    seconds = time.perf_counter() - begin
    if command.returncode:
        sys.exit(f"{name} ended with {command.returncode}")
    spent += sum(map(processor_seconds, others)) - busy
    return f"{name} | {seconds:.1f} | {spent:.1f} | {most / 1000:,.0f} | {own / 1000:,.0f} | {load:.1f} |"


def digest(out: Path) -> str:
    """Return the digest of the truths of a run, and remove its folder."""
    found = hashlib.sha256((out / "truths.parquet").read_bytes()).hexdigest()
    shutil.rmtree(out)
    return found


def main() -> None:
    """Simulate a missing crowd, fit it, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=float, default=1e7)
    parser.add_argument("--folder", type=Path, required=True, help="folder of simulated crowds")
    given = parser.parse_args()
    folder = given.folder / f"{given.answers:.0e}"
    if not (folder / "blocks.json").exists():
        make(str(folder), str(given.answers))
    out = given.folder / f"{folder.name}-found"
    print(f"{HEADER}\n{'| --- ' * 7}|", flush=True)
    row = run(folder, out, "1", WORKERS, [], ["--engine", "threads"])
    found = {digest(out)}
    print(f"| {given.answers:.0e} | {row}", flush=True)
    with dask_cluster(WORKERS) as (address, processes):
        others = [process.pid for process in processes]
        row = run(folder, out, f"{WORKERS} of a cluster", 1, others, ["--engine", "dask", "--address", address])
    found.add(digest(out))
    print(f"| {given.answers:.0e} | {row}", flush=True)
    print("\nThe same truths." if len(found) == 1 else "\nThe truths differ.")


if __name__ == "__main__":
    main()
