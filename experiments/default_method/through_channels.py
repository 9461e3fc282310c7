"""The default for labels behind randomized response: error against naive readings and the best constant.

Cells are public sets by epsilon (per answer) and participation; means over seeds. Naive readings take reports as
answers: the majority vote, and the same method without the channel.
"""

import argparse
from typing import Any

import numpy as np

from crowdveil import Categories, HierarchicalDawidSkene, MajorityVote, RandomizedResponse
from crowdveil.data import datasets
from crowdveil.evaluation import metrics
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb

SETS = ("bluebird", "duchenne", "snow_rte", "dog", "snow_wsd", "d_possent", "web_zhou", "d_product", "adult2", "s_rel")
EPSILONS = (1.0, 2.0, 3.0, 5.0)


def main() -> None:
    """Print accuracies and calibration errors of every cell, marked where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    for name in given.sets.split(","):
        for participation in ("public", "protected"):
            for epsilon in EPSILONS:
                print(name, participation, f"{epsilon:g}", cell(name, participation, epsilon, given.seeds), flush=True)


def cell(name: str, participation: Any, epsilon: float, seeds: int) -> str:
    """Return the figures of one cell as text."""
    data = datasets.load(name)
    assert isinstance(data.answers.alphabet, Categories)
    mechanism = RandomizedResponse(alphabet=data.answers.alphabet, epsilon=epsilon, participation=participation)
    answered = set(np.asarray(data.answers.tasks)[data.answers.per_task > 0].astype(str).tolist())
    gold = {task: truth for task, truth in data.gold.items() if str(task) in answered}
    rows = []
    for seed in range(seeds):
        reports = perturb(data.answers, mechanism, seeded(seed))
        own = metrics.score(HierarchicalDawidSkene().fit(reports, channel=mechanism.channel()), gold)
        naive = [1 - metrics.error_rate(one.fit(reports), gold) for one in (MajorityVote(), HierarchicalDawidSkene())]
        rows.append((1 - own.error, own.calibration_error or 0.0, *naive, 1 - own.baseline))
    accuracy, calibration, vote, unread, constant = np.mean(rows, axis=0)
    missed = [
        *(["BELOW NAIVE"] if accuracy < max(vote, unread) - 0.01 else []),
        *(["BELOW CONSTANT"] if accuracy < constant - 0.02 else []),
        *(["CALIBRATION"] if calibration > 0.1 else []),
    ]
    naive_text = f"vote {vote:.3f} without channel {unread:.3f}"
    return " ".join((f"{accuracy:.3f}/{calibration:.3f}", naive_text, f"constant {constant:.3f}", *missed))


if __name__ == "__main__":
    main()
