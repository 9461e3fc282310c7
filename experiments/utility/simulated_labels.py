"""Errors of naive and channel-aware inference on simulated crowds of labels, by epsilon of randomized response.

A sparse crowd like AdultContent2 with skewed labels, and a binary one; with best constant, unprotected errors and
correlations. Run
`python experiments/utility/simulated_labels.py [--crowds sparse binary]`.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil import Categories, DawidSkene, MajorityVote, OneCoin, RandomizedResponse
from crowdveil.estimators import Estimator
from crowdveil.evaluation import metrics
from crowdveil.randomness import seeded
from crowdveil.simulate import Crowd, categorical_crowd, perturb

LETTERS = Categories(("a", "b", "c", "d", "e"))
SHARES = (0.72, 0.12, 0.08, 0.05, 0.03)
OTHER_SEEDS = 1000
"""Offset between the seeds of crowds and of reports."""


class Setting(NamedTuple):
    """Crowd by seed, number of seeds, pairs of epsilon and participation, and prior."""

    draw: Callable[[int], Crowd]
    seeds: int
    guarantees: tuple[tuple[float, str], ...]
    prior: tuple[float, ...]


def sparse(seed: int) -> Crowd:
    """Return a crowd of the size of AdultContent2, one cell in a hundred answered."""
    return categorical_crowd(
        workers=825, tasks=11_040, labels=LETTERS, sparsity=0.99, prior=SHARES, source=seeded(seed)
    )


def uniform_abilities(generator: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Return abilities uniform between 0.4 and 0.9."""
    return generator.uniform(0.4, 0.9, count)


def binary(seed: int) -> Crowd:
    """Return a crowd of the shape of Duchenne: two labels, some workers worse than chance."""
    labels = Categories(("no", "yes"))
    return categorical_crowd(
        workers=64, tasks=2134, labels=labels, sparsity=0.87, ability=uniform_abilities, source=seeded(seed)
    )


SETTINGS = {
    "sparse": Setting(sparse, 2, tuple((e, "protected") for e in (1.0, 2.0, 3.0, 4.0, 5.0, 7.0)), SHARES),
    "binary": Setting(
        binary, 5, tuple((e, p) for p in ("public", "protected") for e in (0.5, 1.0, 2.0, 3.0, 5.0)), (0.5, 0.5)
    ),
}
METHODS: tuple[tuple[str, Estimator[Any, Any], bool, bool], ...] = (
    ("naive majority-vote", MajorityVote(), False, False),
    ("naive dawid-skene", DawidSkene(), False, False),
    ("majority-vote", MajorityVote(), True, False),
    ("one-coin", OneCoin(tolerance=1e-4), True, False),
    ("dawid-skene", DawidSkene(tolerance=1e-4), True, False),
    ("dawid-skene, public prior", DawidSkene(tolerance=1e-4), True, True),
)
"""Name, estimator, whether it uses the channel, and whether it has the prior."""


def unprotected(setting: Setting) -> str:
    """Return the constant's error and those of unprotected inference, means over seeds."""
    crowds = [setting.draw(seed) for seed in range(setting.seeds)]
    scores = [
        [metrics.score(method.fit(crowd.answers), crowd.gold) for method in (MajorityVote(), DawidSkene())]
        for crowd in crowds
    ]
    vote, model = (np.mean([one[k].error for one in scores]) for k in (0, 1))
    constant = np.mean([one[0].baseline for one in scores])
    return f"constant {constant:.3f}; unprotected: majority-vote {vote:.3f}, dawid-skene {model:.3f}"


def rows(setting: Setting) -> Iterator[str]:
    """Yield a line per guarantee: error of each method and its correlation with the truth."""
    for epsilon, participation in setting.guarantees:
        found = np.zeros((setting.seeds, len(METHODS), 2))
        for seed in range(setting.seeds):
            crowd = setting.draw(seed)
            labels = crowd.answers.alphabet
            assert labels is not None
            mechanism = RandomizedResponse(alphabet=labels, epsilon=epsilon, participation=participation)  # type: ignore[arg-type]
            reports = perturb(crowd.answers, mechanism, seeded(OTHER_SEEDS + seed))
            prior = dict(zip(labels.names, setting.prior, strict=True))
            for k, (_, method, uses_channel, has_prior) in enumerate(METHODS):
                channel = mechanism.channel() if uses_channel else None
                estimate = method.fit(reports, channel=channel, prior=prior if has_prior else None)
                score = metrics.score(estimate, crowd.gold)
                found[seed, k] = score.error, score.correlation
        cells = [f"{error:.3f} ({correlation:.2f})" for error, correlation in found.mean(axis=0)]
        yield f"| {epsilon:g} | {participation} | {' | '.join(cells)} |"


def main() -> None:
    """Print a table for each crowd."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crowds", nargs="+", default=tuple(SETTINGS), choices=SETTINGS)
    for name in parser.parse_args().crowds:
        setting = SETTINGS[name]
        print(f"{name}: {unprotected(setting)}; means of {setting.seeds} seeds; error (correlation)\n")
        print(f"| epsilon | participation | {' | '.join(words for words, *_ in METHODS)} |")
        print("|" + "---|" * (len(METHODS) + 2))
        for row in rows(setting):
            print(row, flush=True)
        print()


if __name__ == "__main__":
    main()
