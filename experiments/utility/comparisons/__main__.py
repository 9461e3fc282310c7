"""Rankings of simulated crowds, one row each.

python -m experiments.utility.comparisons orders > experiments/utility/comparisons/results/orders.csv
python -m experiments.utility.comparisons coverage --seeds 0 1 2
python -m experiments.utility.comparisons proposals
python -m experiments.utility.comparisons noise --epsilons .5 1 2 4
"""

import argparse
import sys

from experiments.rows import four_digits, write_rows
from experiments.utility.comparisons.crowd import BASE, KINDS
from experiments.utility.comparisons.measure import (
    Coverage,
    Noise,
    Order,
    Proposal,
    coverages,
    noises,
    orders,
    proposals,
)

SEEDS = range(200, 224)
SIXTY = BASE.named("60 items", items=60, per_item=20)
NOISY = (BASE.named("100 an item", per_item=100), BASE)


def main() -> None:
    """Write the rows of one measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measure", choices=["orders", "coverage", "proposals", "noise"])
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--crowds", nargs="*", default=None, help="names of crowds")
    parser.add_argument("--epsilons", type=float, nargs="+", default=(0.5, 1.0, 2.0, 4.0))
    given = parser.parse_args()
    kinds = [kind for kind in KINDS if given.crowds is None or kind.name in given.crowds]
    if given.measure == "orders":
        write_rows(sys.stdout, Order, orders(kinds, given.seeds), four_digits)
    elif given.measure == "coverage":
        write_rows(sys.stdout, Coverage, coverages(kinds, given.seeds), four_digits)
    elif given.measure == "proposals":
        write_rows(sys.stdout, Proposal, proposals([SIXTY], given.seeds), four_digits)
    else:
        write_rows(sys.stdout, Noise, noises(NOISY, given.seeds, given.epsilons), four_digits)


if __name__ == "__main__":
    main()
