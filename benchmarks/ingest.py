"""Reading a file of text ids into reports in canonical order, against reading and dictionary encoding by pyarrow.

    python -m benchmarks.ingest --rows 10000000 --ids random

The peer reads and encodes; it does not sort names and rows, or check for repeated and missing cells. The upper limit
reads only.
"""

import argparse
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from benchmarks.harness import compare, peak_megabytes, print_own_peak, table

from crowdveil import Reports

PEER = "pyarrow read + dictionary encode"
NAMES = ["task", "worker", "label"]
LETTERS = np.frombuffer(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", dtype=np.uint8)


def write_files(folder: Path, rows: int, ids: str) -> None:
    """Write `answers.csv` and `.parquet` (rows in random order, 10 a task and 100 a worker, 5 labels) and blocks."""
    generator = np.random.default_rng(1)
    tasks, workers = rows // 10, max(rows // 100, 10)
    task = np.repeat(np.arange(tasks), 10)
    worker = ((generator.integers(0, workers, tasks)[:, None] + 7919 * np.arange(10)) % workers).ravel()
    order = generator.permutation(len(task))
    columns = [
        (task[order], id_names("task-", tasks, ids, generator)),
        (worker[order], id_names("w", workers, ids, generator)),
        (generator.integers(0, 5, len(task)), pa.array(list("abcde"))),
    ]
    coded = [pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names) for codes, names in columns]
    text = pa.table([column.dictionary_decode() for column in coded], names=NAMES)
    pa.csv.write_csv(text, folder / "answers.csv", pa.csv.WriteOptions(quoting_style="none"))
    pa.parquet.write_table(text, folder / "answers.parquet")
    Reports.from_frame(pa.table(coded, names=NAMES)).save(folder / "blocks")


def id_names(beginning: str, count: int, ids: str, generator: np.random.Generator) -> Any:
    """Return distinct ids in random order: numbered, or 14 random letters and digits as of a crowd platform."""
    if ids == "numbered":
        return pa.array([f"{beginning}{number:07d}" for number in generator.permutation(count)])
    letters = LETTERS[generator.integers(0, 36, (count, 13))]
    return pa.array(["A" + row.tobytes().decode() for row in letters])


def contenders(folder: Path) -> dict[str, Callable[[], object]]:
    """Return the contenders on the files of `write_files`."""
    csv, parquet = folder / "answers.csv", folder / "answers.parquet"
    return {
        PEER: lambda: encode(pa.csv.read_csv(csv)),
        "pyarrow read of text (upper limit)": lambda: read_text(csv),
        "Reports.from_csv": lambda: Reports.from_csv(csv),
        "Reports.from_parquet": lambda: Reports.from_parquet(parquet),
        "Reports.open": lambda: Reports.open(folder / "blocks"),
    }


def encode(text: pa.Table) -> list[object]:
    """Dictionary-encode the columns in threads."""
    with ThreadPoolExecutor(len(NAMES)) as threads:
        return list(threads.map(lambda column: column.dictionary_encode(), text.columns))


def read_text(csv: Path) -> int:
    """Read the columns as text block by block, and discard them."""
    kinds = pa.csv.ConvertOptions(column_types=dict.fromkeys(NAMES, pa.string()))
    return sum(batch.num_rows for batch in pa.csv.open_csv(csv, convert_options=kinds))


def main() -> None:
    """Print the comparison; with --only, run one contender and print its peak memory."""
    parser = argparse.ArgumentParser(description="Time of reading reports.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--ids", choices=["numbered", "random"], default="numbered")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs=2, metavar=("FOLDER", "NAME"))
    options = parser.parse_args()
    if options.only:
        contenders(Path(options.only[0]))[options.only[1]]()
        print_own_peak()
        return
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), options.rows, options.ids)
        results = compare(contenders(Path(folder)), rounds=options.rounds, peer=PEER)
        peaks = {name: peak_megabytes(["-m", "benchmarks.ingest", "--only", folder, name]) for name in results}
    print(f"{options.rows:,} rows, {options.ids} ids\n\n{table(results, peaks)}")


if __name__ == "__main__":
    main()
