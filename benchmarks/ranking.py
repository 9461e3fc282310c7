"""Times of rankings beside choix, crowd-kit and evalica, as ratios within one run.

python benchmarks/ranking.py --sizes 1e4x100x40 1e5x1000x200 --rounds 3
python benchmarks/ranking.py --sizes 1e6x10000x5000 --rounds 1 --contenders hierarchical-davidson

Sizes are comparisons x items x workers. Peers that are not installed are left out; PYTHONPATH may name their folder.
Peers get what they read, without the time to make it: choix and crowd-kit get no ties.
"""

import argparse
import importlib.util
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from benchmarks.harness import compare
from experiments.utility.comparisons.crowd import BASE, Crowd, draw_crowd
from scipy.stats import kendalltau

from crowdveil.answers.comparisons.values import Comparisons
from crowdveil.estimators.ranking.methods import RANKING_METHODS, RankingMethod
from crowdveil.inference.ranking.rank import rank_comparisons

Scores = Callable[[], Any]
PEER = "choix ilsr"
MOST_CHOIX_ITEMS = 3000
"""Items up to which choix is fitted: each step of ilsr solves a dense system of all items, in cubic time."""


def crowd_of_size(rows: int, items: int, workers: int) -> Crowd:
    """Return a crowd of this size, of whom a fifth guess."""
    return draw_crowd(BASE.named("size", items=items, workers=workers, per_item=2 * rows // items), 300)


def own_contenders(rows: Comparisons) -> dict[str, Scores]:
    """Return a fit of each method of ranking, and last the default with all ranges and intervals."""
    found: dict[str, Scores] = {name: partial(_scores, method, rows) for name, method in RANKING_METHODS.items()}
    return found | {"default with intervals": partial(_ranks, rows)}


def _scores(method: type[RankingMethod], rows: Comparisons) -> Any:
    return method().fit(rows).scores


def _ranks(rows: Comparisons) -> Any:
    """Return the negative ranks, after their ranges and all intervals were computed."""
    return -rank_comparisons(rows).ranks.rank


def peers(rows: Comparisons) -> dict[str, Scores]:
    """Return a fit of each peer that is installed."""
    found: dict[str, Scores] = {}
    wins = np.where(rows.answer == 2, rows.right, rows.left)
    losses = np.where(rows.answer == 2, rows.left, rows.right)
    tied = rows.answer == 1
    pairs = [*zip(wins[~tied].tolist(), losses[~tied].tolist(), strict=True)]
    if importlib.util.find_spec("choix"):
        import choix

        if len(rows.items) <= MOST_CHOIX_ITEMS:
            found[PEER] = lambda: choix.ilsr_pairwise(len(rows.items), pairs, alpha=0.01)
        found["choix lsr (one step of ilsr)"] = lambda: choix.lsr_pairwise(len(rows.items), pairs, alpha=0.01)
    if importlib.util.find_spec("evalica"):
        import evalica

        winner = {0: evalica.Winner.X, 1: evalica.Winner.Draw, 2: evalica.Winner.Y}
        sides = [winner[answer] for answer in rows.answer.tolist()]
        names = rows.left.tolist(), rows.right.tolist()

        def by_evalica() -> Any:
            return evalica.bradley_terry(*names, sides).scores.reindex(range(len(rows.items))).to_numpy()

        found["evalica bradley_terry"] = by_evalica
    if importlib.util.find_spec("crowdkit"):
        found |= _crowdkit(rows, wins, tied)
    return found


def _crowdkit(rows: Comparisons, wins: Any, tied: Any) -> dict[str, Scores]:
    import pandas as pd
    from crowdkit.aggregation import BradleyTerry

    columns = {"worker": rows.worker, "left": rows.left, "right": rows.right, "label": wins}
    frame = pd.DataFrame(columns)[~tied]
    every = range(len(rows.items))
    return {"crowd-kit BradleyTerry": lambda: BradleyTerry(n_iter=100).fit_predict(frame).reindex(every).to_numpy()}


def main() -> None:
    """Print a table for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=["1e4x100x40", "1e5x1000x200"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contenders", nargs="*", default=None)
    given = parser.parse_args()
    for size in given.sizes:
        crowd = crowd_of_size(*(int(float(part)) for part in size.split("x")))
        every: Mapping[str, Scores] = own_contenders(crowd.comparisons) | peers(crowd.comparisons)
        chosen = {name: one for name, one in every.items() if given.contenders is None or name in given.contenders}
        print(f"\n{size}: Kendall's tau", {name: round(_tau(one(), crowd), 3) for name, one in chosen.items()})
        peer = PEER if PEER in chosen else next(iter(chosen))
        print(f"| contender | wall s | processor s | times {peer}: wall | processor |\n{'| --- ' * 5}|")
        for name, rounds in compare(chosen, rounds=given.rounds, peer=peer).items():
            print("|", " | ".join([name, *(f"{median(part):.3g}" for part in zip(*rounds, strict=True))]), "|")


def _tau(scores: Any, crowd: Crowd) -> float:
    return float(kendalltau(np.nan_to_num(scores, nan=-np.inf), crowd.scores).statistic)


if __name__ == "__main__":
    main()
