"""Comparison of all methods for labels on ten public data sets: `python -m experiments.methods [METHOD...]`.

Needs the folder `CROWDVEIL_DATA`; about four minutes. Named methods are measured anew, rows of others stay.
Writes `results/methods.csv`, `results/methods.md`, and the table of docs/how-to/choose-a-method.md.
"""

import re
import sys
from pathlib import Path

from experiments.methods.comparison import CONSTANT, METHODS, RESULTS, SETS, Row, measured, warm_up
from experiments.methods.tables import by_set, summary
from experiments.rows import read_rows, write_rows

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "choose-a-method.md"
TABLE = re.compile(r"^\| method \|.*?(?=^[^|])", re.DOTALL | re.MULTILINE)

if __name__ == "__main__":
    methods = tuple(sys.argv[1:]) or METHODS
    kept = [row for row in read_rows(RESULTS, Row) if row.method in METHODS and row.method not in methods]
    warm_up(methods)
    found = [row for name in SETS for row in measured(name, methods)]
    ordered = sorted(kept + found, key=lambda row: (SETS.index(row.data), (CONSTANT, *METHODS).index(row.method)))
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, ordered, lambda cell: round(cell, 4) if isinstance(cell, float) else cell)
    rows = read_rows(RESULTS, Row)
    lines = "\n".join(summary(rows))
    parts = ["# Methods on ten data sets", lines, "Accuracy / ECE / log-loss, and seconds:", "\n".join(by_set(rows))]
    RESULTS.with_suffix(".md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    PAGE.write_text(TABLE.sub(f"{lines}\n", PAGE.read_text("utf-8"), count=1), encoding="utf-8")
    print(lines)
