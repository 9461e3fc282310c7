"""Every method on every crowd, one row each.

python -m experiments.utility.crowds > experiments/utility/results/crowds.csv
python -m experiments.utility.crowds --seeds 7 8 --methods hierarchical-dawid-skene --family copies
python -m experiments.utility.crowds --table experiments/utility/results/crowds.csv
"""

import argparse
import importlib.util
import sys
from pathlib import Path

import numpy as np
from experiments.rows import four_digits, read_rows, write_rows
from experiments.utility.crowds.kinds import kinds
from experiments.utility.crowds.measure import CONSTANT, CROWD_KIT, METHODS, ORACLE, Row, measured

SEEDS = (200, 201, 202)
RESULTS = Path(__file__).parent.parent / "results" / "crowds.csv"


def table(rows: list[Row]) -> list[str]:
    """Return the mean accuracy of each method by family, and of all, as lines of a table; last the calibration."""
    methods = [*dict.fromkeys(row.method for row in rows if row.method not in (CONSTANT, ORACLE)), CONSTANT, ORACLE]
    families = dict.fromkeys(row.family for row in rows)
    lines = [" | ".join(("| crowds", "fits", *methods)) + " |", "|---" * (len(methods) + 2) + "|"]
    for family in (*families, None):
        some = [row for row in rows if family in (None, row.family)]
        fits = sum(row.seeds for row in some) // len(methods)
        found = [np.mean([row.accuracy for row in some if row.method == method]) for method in methods]
        lines.append(" | ".join((f"| {family or 'all'}", str(fits), *(f"{one:.3f}" for one in found))) + " |")
    for name in ("calibration_error", "log_loss"):
        found = [np.mean([getattr(row, name) or 0.0 for row in rows if row.method == method]) for method in methods]
        lines.append(" | ".join((f"| {name}", "", *(f"{one:.3f}" if one else "" for one in found))) + " |")
    return lines


def main() -> None:
    """Write the rows, or the table of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--family", default="", help="part of the names of families")
    parser.add_argument("--table", type=Path, help="rows to show as a table")
    given = parser.parse_args()
    if given.table is not None:
        print("\n".join(table(read_rows(given.table, Row))))
        return
    kit = [f"crowd-kit {name}" for name in CROWD_KIT] if importlib.util.find_spec("crowdkit") else []
    methods = given.methods if given.methods != METHODS else (*METHODS, *kit)
    chosen = [kind for kind in kinds() if given.family in kind.family]
    write_rows(sys.stdout, Row, measured(chosen, given.seeds, methods), four_digits)


if __name__ == "__main__":
    main()
