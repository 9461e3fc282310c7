"""Start-up time: `crowdveil infer` of a small file against a Python that imports numpy and pyarrow only.

`python -m benchmarks.startup --rows 10000`: each run is a new process.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from crowdveil.answers.write_reports import ordered_reports_table, write_table
from crowdveil.channels.alphabet import Categories
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd

TASKS_PER_ANSWER, WORKERS = 10, 100
IMPORTS = ["-c", "import numpy, pyarrow"]


def write_crowd(folder: Path, rows: int) -> Path:
    """Write a simulated crowd of about `rows` answers, ten per task, five labels."""
    tasks = max(rows // TASKS_PER_ANSWER, 1)
    labels = Categories(tuple("abcde"))
    sparsity = 1 - rows / (tasks * WORKERS)
    crowd = categorical_crowd(workers=WORKERS, tasks=tasks, labels=labels, sparsity=sparsity, source=seeded(1))
    table = ordered_reports_table(crowd.answers)
    with open(folder / "answers.csv", "wb") as stream:
        write_table(stream, table)
    return folder / "answers.csv"


def seconds(words: list[str]) -> tuple[float, float]:
    """Return wall and processor seconds of a Python process."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print medians, and the aim of 1.5 times the imports plus half a second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        infer = ["-m", "crowdveil", "infer", str(write_crowd(Path(name), given.rows)), "--out", name]
        seconds(infer)
        rounds = [(*seconds(IMPORTS), *seconds(infer)) for _ in range(given.rounds)]
    imports_wall, imports, wall, processor = (statistics.median(column) for column in zip(*rounds, strict=True))
    print("| command | wall s | processor s |\n| --- | --- | --- |")
    print(f"| import numpy, pyarrow | {imports_wall:.3f} | {imports:.3f} |")
    print(f"| crowdveil infer, {given.rows:,} rows | {wall:.3f} | {processor:.3f} |")
    print(f"| aim: 1.5 times the first and 0.5 s | {1.5 * imports_wall + 0.5:.3f} | {1.5 * imports + 0.5:.3f} |")


if __name__ == "__main__":
    main()
