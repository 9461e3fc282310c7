"""The default for labels on ten public sets whose frequent truth is made more frequent, against its usual start.

Gold tasks with other truths are left out at random until the most frequent truth has the share; tasks without gold are
left out. It prints accuracies with the usual start and of the default by set, then both means of accuracy,
calibration error and log-loss; `DRAWS` draws.
"""

from unittest.mock import patch

import numpy as np
from ablation import SETS, Score, score, scored_gold

from crowdveil import HierarchicalDawidSkene, MajorityVote, Reports
from crowdveil.data import datasets
from crowdveil.data.datasets import Dataset
from crowdveil.estimators import hierarchical_dawid_skene
from crowdveil.evaluation.gold import gold_codes

SHARES, DRAWS = (0.8, 0.9, 0.95, 0.98), 4


def thinned(data: Dataset, share: float, seed: int) -> Reports:
    """Return the answers to gold tasks of whose truths the most frequent one has this share, or its own if larger."""
    aligned = scored_gold(MajorityVote().fit(data.answers), data.gold)
    truths = gold_codes(aligned)
    top = truths == np.bincount(truths).argmax()
    others = np.random.default_rng(seed).permutation(aligned.at[~top])
    most = max(2, int(top.sum() * (1 - share) / share))
    kept = np.isin(data.answers.task, np.concatenate((aligned.at[top], others[:most])))
    codes = (column[kept] for column in (data.answers.task, data.answers.worker, data.answers.value))
    return Reports(*codes, data.answers.tasks, data.answers.workers, data.answers.alphabet)


def scores_of(data: Dataset, reports: Reports) -> list[Score]:
    """Return the scores of the usual start and of the default."""
    with patch.object(hierarchical_dawid_skene, "starts_by_abilities", return_value=False):
        usual = HierarchicalDawidSkene().fit(reports)
    return [score(scored_gold(one, data.gold)) for one in (usual, HierarchicalDawidSkene().fit(reports))]


def main() -> None:
    """Print a row for every share."""
    sets = {name: datasets.load(name) for name in SETS}
    for share in SHARES:
        rows = np.array(
            [
                np.mean([scores_of(data, thinned(data, share, seed)) for seed in range(DRAWS)], axis=0)
                for data in sets.values()
            ]
        )
        cells = " ".join(
            f"{name} {usual:.3f} {now:.3f}" for name, (usual, now) in zip(SETS, rows[:, :, 0], strict=True)
        )
        print(share, cells, "|", *rows.mean(axis=0).round(3), flush=True)


if __name__ == "__main__":
    main()
