"""Errors of all estimators on ordered labels of real crowds, by epsilon of randomized response.

AdultContent2 and web search from the data directory, participation protected, per cell; means over seeds 0 to 4. Run
`python experiments/utility/ordered_labels.py [--quick]`.
"""

import argparse
from typing import Any

import numpy as np

from crowdveil import DawidSkene, MajorityVote, OneCoin, OrdinalDawidSkene, RandomizedResponse
from crowdveil.data import datasets
from crowdveil.em.estimate import Estimate
from crowdveil.evaluation import metrics
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb

METHODS: tuple[Any, ...] = (
    MajorityVote(),
    OneCoin(tolerance=1e-4),
    DawidSkene(tolerance=1e-4),
    OrdinalDawidSkene(tolerance=1e-4),
)


def figures(estimate: Estimate, gold: dict[str, Any]) -> tuple[float, ...]:
    """Return error rate, mean absolute error in levels, log-loss, calibration error and correlation with gold."""
    found = metrics.error_rate(estimate, gold), metrics.mae(estimate, gold), metrics.log_loss(estimate, gold)
    return (*found, calibration_error(estimate, gold), metrics.correlation(estimate, gold))


def calibration_error(estimate: Estimate, gold: dict[str, Any], bins: int = 10) -> float:
    """Return the mean distance of confidence and accuracy, over equal bins of confidence."""
    place = {str(name): code for code, name in enumerate(estimate.tasks)}
    known = [(place[task], str(truth)) for task, truth in gold.items() if task in place]
    at = np.array([code for code, _ in known])
    right = estimate.truth[at] == np.array([truth for _, truth in known])
    sure = estimate.posterior[at].max(axis=1)
    of_bin = np.minimum((sure * bins).astype(int), bins - 1)
    return float(sum(abs((right[of_bin == b] - sure[of_bin == b]).sum()) for b in range(bins)) / len(at))


def main() -> None:
    """Print one line per data set, epsilon and method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, and epsilon 3 only")
    quick = parser.parse_args().quick
    print("| data | epsilon | method | error | MAE | log-loss | calibration | correlation |\n|" + "---|" * 8)
    for name in ("web_zhou", "adult2"):
        data = datasets.load(name)
        assert data.answers.alphabet is not None
        constant = metrics.score(MajorityVote().fit(data.answers), data.gold)
        print(f"| {name} | - | constant {constant.constant} | {constant.baseline:.3f} |")
        for epsilon in (None, 3.0) if quick else (None, 1.0, 2.0, 3.0, 4.0, 5.0):
            channel, sent = None, [data.answers]
            if epsilon is not None:
                mechanism = RandomizedResponse(alphabet=data.answers.alphabet, epsilon=epsilon)
                channel = mechanism.channel()
                sent = [perturb(data.answers, mechanism, seeded(seed)) for seed in range(1 if quick else 5)]
            for method in METHODS:
                each = [figures(method.fit(reports, channel=channel), data.gold) for reports in sent]
                shown = " | ".join(f"{x:.3f}" for x in np.mean(each, axis=0))
                print(
                    f"| {name} | {'-' if epsilon is None else f'{epsilon:g}'} | {method.name} | {shown} |", flush=True
                )


if __name__ == "__main__":
    main()
