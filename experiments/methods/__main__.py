"""Comparison of all methods for labels on ten public data sets: `python -m experiments.methods`.

Needs the folder `CROWDVEIL_DATA`; about two minutes on two cores. Writes `results/methods.csv` and
`results/methods.md`, and the table of docs/how-to/choose-a-method.md.
"""

import re
from pathlib import Path

from experiments.methods.comparison import METHODS, RESULTS, SETS, measured, read, warm_up, write
from experiments.methods.tables import by_set, summary

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "choose-a-method.md"
TABLE = re.compile(r"^\| method \|.*?(?=^[^|])", re.DOTALL | re.MULTILINE)

if __name__ == "__main__":
    warm_up(METHODS)
    write((row for name in SETS for row in measured(name, METHODS)), RESULTS)
    rows = read(RESULTS)
    lines = "\n".join(summary(rows))
    parts = ["# Methods on ten data sets", lines, "Accuracy / ECE / log-loss, and seconds:", "\n".join(by_set(rows))]
    RESULTS.with_suffix(".md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    PAGE.write_text(TABLE.sub(f"{lines}\n", PAGE.read_text("utf-8"), count=1), encoding="utf-8")
    print(lines)
