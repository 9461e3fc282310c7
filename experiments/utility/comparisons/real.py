"""Log-loss of withheld answers of a file of comparisons: by answer, by pair, and by worker, in ten folds.

python -m experiments.utility.comparisons.real comparisons.csv --label-column answer --seeds 0 1

The constant is the distribution of the answers that are not withheld; of a withheld worker, the shares of the pair are
smoothed by two answers of this distribution.
"""

import argparse
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.comparisons.columns import ComparisonNames
from crowdveil.answers.comparisons.reading import comparisons_of_source
from crowdveil.answers.comparisons.values import Comparisons
from crowdveil.answers.sources.answer_source import open_source
from crowdveil.estimators.ranking.unseen import PairAnswers, shrunk
from crowdveil.inference.ranking.rank import rank_comparisons

Floats = NDArray[np.float64]
Predict = Callable[[Comparisons, Comparisons], Floats]
"""Function from the answers that are kept and those that are withheld to the probabilities of the latter."""
FOLDS = 10


def units(rows: Comparisons) -> Mapping[str, NDArray[np.int64]]:
    """Return what is withheld together: each answer, all answers to a pair, all answers of a worker."""
    pairs = np.minimum(rows.left, rows.right).astype(np.int64) * len(rows.items) + np.maximum(rows.left, rows.right)
    return {"answer": np.arange(len(rows)), "pair": pairs, "worker": rows.worker.astype(np.int64)}


def constant(kept: Comparisons, withheld: Comparisons) -> Floats:
    """Return the distribution of the answers that are kept."""
    shares = np.bincount(kept.answer, minlength=3) / len(kept)
    return np.tile(shares, (len(withheld), 1))


def shares_of_pair(kept: Comparisons, withheld: Comparisons) -> Floats:
    """Return the smoothed shares of each pair."""
    counts = PairAnswers.of(kept).of_pairs(withheld.left, withheld.right)
    return shrunk(constant(kept, withheld), counts, 2.0)


def predicted_by(method: str) -> Predict:
    """Return the predictions of a method; workers without kept answers are unseen."""

    def predict(kept: Comparisons, withheld: Comparisons) -> Floats:
        seen = np.isin(withheld.worker, kept.worker)
        found = rank_comparisons(kept, method)
        return found.predict_rows(withheld.left, withheld.right, np.where(seen, withheld.worker, -1))

    return predict


def log_loss(rows: Comparisons, unit: NDArray[np.int64], seed: int, predict: Predict) -> float:
    """Return the mean log-loss of all answers, each withheld once."""
    _, place = np.unique(unit, return_inverse=True)
    fold = np.random.default_rng(seed).permutation(int(place.max()) + 1)[place] % FOLDS
    total = 0.0
    for one in range(FOLDS):
        kept, withheld = rows.only_rows(fold != one), rows.only_rows(fold == one)
        total -= float(np.log(predict(kept, withheld)[np.arange(len(withheld)), withheld.answer]).sum())
    return total / len(rows)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparisons", nargs="+")
    parser.add_argument("--label-column")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    given = parser.parse_args()
    with open_source(given.comparisons) as source:
        rows = comparisons_of_source(source, ComparisonNames(label=given.label_column))[0]
    every: dict[str, Predict] = {"constant": constant, "shares of the pair": shares_of_pair}
    every |= {method: predicted_by(method) for method in ("davidson", "hierarchical-davidson")}
    print(f"| withheld by | {' | '.join(units(rows))} |\n{'| --- ' * 4}|")
    for name, predict in every.items():
        losses = [
            np.mean([log_loss(rows, unit, seed, predict) for seed in given.seeds]) for unit in units(rows).values()
        ]
        print(f"| {name} | {' | '.join(f'{loss:.3f}' for loss in losses)} |", flush=True)


if __name__ == "__main__":
    main()
