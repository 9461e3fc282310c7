"""Equation 5: combined weights as minimisers of equation 4, on small instances by enumeration."""

from itertools import product

import numpy as np
from experiments.papers.exhibit import Configuration, Row, Verdict
from numpy.typing import NDArray

Floats = NDArray[np.float64]
COLUMNS = ("workers", "local", "share", "product", "root", "least_of_grid", "grid")


def measure(configuration: Configuration) -> list[Row]:
    """Return equation 4 at the product, at its square root, and its least value over all weights of a grid."""
    workers, parts = configuration["workers"], configuration["parts"]
    tried = shares(workers, configuration["grid"])
    rows: list[Row] = []
    for local, share in product(shares(workers, parts), repeat=2):
        weights = local * -np.log(share)
        at_product, at_root = (objective(one / one.sum(), local, share) for one in (weights, np.sqrt(weights)))
        least = min(objective(one, local, share) for one in tried)
        texts = (" ".join(f"{x:g}" for x in one) for one in (local, share))
        rows.append(dict(zip(COLUMNS, (workers, *texts, at_product, at_root, least, len(tried)), strict=True)))
    return rows


def shares(workers: int, parts: int) -> Floats:
    """Return all positive weights that add up to 1 in steps of 1 / parts, shape (instances, workers)."""
    found = [one for one in product(range(1, parts), repeat=workers) if sum(one) == parts]
    return np.array(found) / parts


def objective(combined: Floats, local: Floats, share: Floats) -> float:
    """Return equation 4 for global weights -ln(share), whose exp(-g) add up to 1 as equation 1 asks."""
    return float((combined * (2 * np.log(combined) - np.log(local) - np.log(-np.log(share)))).sum())


def verdict(rows: list[Row]) -> Verdict:
    """Return in how many instances the product is the minimiser."""
    excess = [row["product"] - row["root"] for row in rows]
    equal = [row for row, more in zip(rows, excess, strict=True) if abs(more) < 1e-5]
    beaten = sum(row["least_of_grid"] < row["product"] - 1e-5 for row in rows)
    holds = min(excess) > -1e-5 and beaten > 0
    holds &= all(row["least_of_grid"] > row["root"] - 1e-5 for row in rows)
    sentence = (
        f"the product is no minimiser of equation 4 in {len(rows) - len(equal)} of {len(rows)} instances (relative "
        f"entropy larger by up to {max(excess):.3f}; weights of a grid are better in {beaten}); in the other "
        f"{len(equal)} all products are equal; the normalised square root of the product is the minimiser in all."
    )
    return Verdict("not reproduced", sentence, holds)
