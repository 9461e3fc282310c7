"""Lower bounds against claims for all mechanisms and release methods: `python -m experiments.audit`.

About fifteen minutes on one core. Writes `results/bounds.csv` and the table of docs/explanation/audits.md.
"""

import re
from pathlib import Path

from experiments.audit.bounds import Row, measured, table, write

PAGE = Path(__file__).parent.parent.parent / "docs" / "explanation" / "audits.md"
TABLE = re.compile(r"^\| case \|.*?(?=^[^|]|\Z)", re.DOTALL | re.MULTILINE)

if __name__ == "__main__":
    rows: list[Row] = []
    for row in measured():
        rows.append(row)
        print(f"{row.name:45} {row.neighbours:25} claim {row.claimed:.4g} bound {row.bound:.4f}", flush=True)
        write(rows)
    PAGE.write_text(TABLE.sub(lambda _: table(rows) + "\n", PAGE.read_text("utf-8"), count=1), encoding="utf-8")
