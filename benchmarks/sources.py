"""From a source of answers to truths as Parquet, whole processes: folder of Parquet, DuckDB, Dask, Spark.

    python -m benchmarks.sources --rows 1000000

The answers have 10 a task, 100 a worker and 5 labels, with integer ids. Dask and Spark write a folder of Parquet from
their own process, cluster started beforehand; the time to write is counted. Spark runs if pyspark and Java are there.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PARTS = 16


def answers(rows: int) -> pa.Table:
    """Return answers of workers who are right with probability .4 to .9."""
    generator = np.random.default_rng(1)
    tasks, workers = rows // 10, max(rows // 100, 10)
    task = np.repeat(np.arange(tasks), 10)
    worker = ((generator.integers(0, workers, tasks)[:, None] + 7919 * np.arange(10)) % workers).ravel()
    right = generator.random(len(task)) < generator.uniform(0.4, 0.9, workers)[worker]
    label = np.where(right, generator.integers(0, 5, tasks)[task], generator.integers(0, 5, len(task)))
    order = generator.permutation(len(task))
    columns = task[order], worker[order], pa.array(list("abcde")).take(pa.array(label[order]))
    return pa.table(dict(zip(("task", "worker", "label"), columns, strict=True)))


def write_parts(table: pa.Table, folder: Path) -> None:
    """Write a folder of `PARTS` Parquet files."""
    folder.mkdir()
    size = -(-len(table) // PARTS)
    for part in range(PARTS):
        pq.write_table(table.slice(part * size, size), folder / f"part-{part:02d}.parquet")


def infer(source: str, out: Path) -> None:
    """Run `crowdveil infer` on a source; the truths are written as Parquet."""
    words = ["-m", "crowdveil", "infer", source, "--format", "parquet", "--out", str(out)]
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert (out / "truths.parquet").exists()


def from_duckdb(table: pa.Table, scratch: Path) -> Callable[[], None]:
    """Return a run on a table in a DuckDB file."""
    import duckdb

    with duckdb.connect(str(scratch / "answers.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("create table votes as select * from given")
    return lambda: infer(f"{scratch / 'answers.duckdb'}?votes", scratch / "of-duckdb")


def from_dask(table: pa.Table, scratch: Path) -> Callable[[], None]:
    """Return a run on a Dask data frame of a local cluster."""
    import dask.dataframe as dd
    from distributed import Client

    Client(n_workers=2, threads_per_worker=1, dashboard_address=None)  # type: ignore[no-untyped-call]
    frame = dd.from_pandas(table.to_pandas(), npartitions=PARTS)  # type: ignore[no-untyped-call]

    def run() -> None:
        frame.to_parquet(scratch / "dask-parts", write_index=False)
        infer(str(scratch / "dask-parts"), scratch / "of-dask")

    return run


def from_spark(table: pa.Table, scratch: Path) -> Callable[[], None]:
    """Return a run on a Spark data frame of a local master."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    frame = spark.read.parquet(str(scratch / "parts"))

    def run() -> None:
        frame.write.parquet(str(scratch / "spark-parts"))
        infer(str(scratch / "spark-parts"), scratch / "of-spark")
        assert spark.read.parquet(str(scratch / "of-spark" / "truths.parquet")).count() == table.num_rows // 10

    return run


def main() -> None:
    """Print the seconds of every source that is installed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        scratch, table = Path(folder), answers(rows)
        write_parts(table, scratch / "parts")
        runs: dict[str, Callable[[], None]] = {}
        runs["folder of Parquet"] = lambda: infer(str(scratch / "parts"), scratch / "of-parts")
        runs["table in DuckDB"] = from_duckdb(table, scratch)
        runs["Dask data frame"] = from_dask(table, scratch)
        if find_spec("pyspark") and which("java"):
            runs["Spark data frame"] = from_spark(table, scratch)
        print(f"| source, {rows:,} answers | seconds to truths.parquet |\n| --- | --- |")
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            print(f"| {name} | {time.perf_counter() - start:.1f} |", flush=True)


if __name__ == "__main__":
    main()
