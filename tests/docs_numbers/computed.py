"""Claims that follow from formulas and settings."""

import math
import re
from decimal import ROUND_CEILING, Decimal
from functools import cache
from typing import Any

import numpy as np
from experiments.papers.huai2019.table2 import PRINTED as HUAI_TABLE_2
from experiments.papers.huai2019.table2 import PRISCROWD, UNIFORM
from experiments.papers.li2018.printed import TABLE_2, TABLE_3
from experiments.papers.sun2018.participation import largest_area
from experiments.theory.published_bounds import (
    beta_flip_epsilon,
    factorization_error_bound,
    private_wisdom,
    published_factorization_delta,
    randomized_response_cell_error,
    randomized_response_mean_limit,
    row_space_error_floor,
    smaller_change_probability,
    smallest_tasks,
    smallest_workers,
)

from crowdveil import Categories, MajorityVote, OneCoin, RandomizedResponse
from crowdveil.channel_design import one_coin_worker_model
from crowdveil.em.acceleration import REMAINING_CHANGE
from crowdveil.estimators import Lfc
from crowdveil.evaluation.metrics import score
from crowdveil.mechanisms import DesignObjective
from crowdveil.privacy.composition import composition
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd
from tests.docs_numbers.claim import Figures, claims_of, page_text
from tests.experiments.test_published_bounds import (
    NORMALISED,
    SPARSE_EXAMPLE,
    half_zero_half_nine,
    laplace_example,
    lone_worker_laplace_error,
    readings,
)

VERDICTS = "explanation/verdicts.md"
EPSILONS = (0.5, 1.0, 2.0, 3.0, 5.0)


def randomized_response(labels: str, participation: Any = "public") -> RandomizedResponse:
    """Return randomized response at epsilon 1 over one-letter labels."""
    return RandomizedResponse(alphabet=Categories(tuple(labels)), epsilon=1.0, participation=participation)


def five_cells() -> Figures:
    """Return epsilon of five cells at delta 1e-6, rounded up to six decimals."""
    exact = composition(randomized_response("ny"), tasks=5, delta=1e-6)[1].exact
    return (str(Decimal(exact).quantize(Decimal("1e-6"), rounding=ROUND_CEILING)),)


@cache
def nats(epsilon: float, share: float) -> float:
    """Return the information of one report: four labels alike, workers who are right three times in four."""
    labels, workers = Categories(tuple("abcd")), one_coin_worker_model(4, 0.75)
    setting = DesignObjective(alphabet=labels, prior=np.full(4, 0.25), worker_model=workers, participation_rate=share)
    return setting.score(RandomizedResponse(alphabet=labels, epsilon=epsilon).channel().probabilities)


def simulated_errors() -> Figures:
    """Return the range of errors at epsilon 0.5 of the tutorial's own program; at 1 and 2 all are 0."""
    (code,) = re.findall(r"^```python\n(.*?)^```", page_text("tutorials/choose-epsilon.md"), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["runs"][1.0] + names["runs"][2.0] == [0.0] * 10
    return 100 * min(names["runs"][0.5]), 100 * max(names["runs"][0.5])


def planned_interval() -> Figures:
    """Return the upper end of the interval at epsilon 1 in the tutorial's console example, which another test runs."""
    return tuple(
        re.findall(r"^1 +randomized-response +[\d.]+ +0 to ([\d.]+) ", page_text("tutorials/choose-epsilon.md"), re.M)
    )


def kernel_distance() -> Figures:
    """Return the integral of (K * K - K)^2 for the Epanechnikov kernel on [-1, 1]."""
    z = np.linspace(-2, 2, 400_001)
    kernel, u = np.maximum(0.75 * (1 - z * z), 0), np.abs(z)
    return (float(((3 / 160 * (2 - u) ** 3 * (u * u + 6 * u + 4) - kernel) ** 2).sum() * (z[1] - z[0])),)


def constant_density_error() -> Figures:
    """Return the integrated squared error of 1/10 on -4 .. 6 against half N(-1, 0.6), half N(2, 0.9)."""
    x = np.linspace(-4, 6, 200_001)
    parts = [np.exp(-(((x - m) / s) ** 2) / 2) / (2 * s * math.sqrt(2 * math.pi)) for m, s in ((-1, 0.6), (2, 0.9))]
    return (float(((sum(parts) - 0.1) ** 2).sum() * (x[1] - x[0])),)


def failures() -> Figures:
    """Return the chances of a failed test (k = 5, epsilon0 = 1): 30 equal claims, one of them moved, and none."""
    fails = {count: 1 - math.exp(count - 5) / 2 if count < 5 else math.exp(5 - count) / 2 for count in (1, 29, 30)}
    mantissa, exponent = f"{fails[30]:.0e}".split("e")
    return (fails[1] + 29 * fails[29]) / 30, mantissa, str(int(exponent))


def constant_of_factorization() -> Figures:
    """Return the error of 4.5 for truths N(4.5, 2), clipped to 0..9, in the five crowds of the table."""
    truths = [np.clip(np.random.default_rng(seed).normal(4.5, 2, 60), 0, 9) for seed in range(5)]
    return (float(np.mean([np.abs(truth - 4.5).mean() for truth in truths])),)


def smallest_task_numbers(wisdom: float) -> Figures:
    """Return the fewest tasks of Theorem 2 of Wang and Xu at five epsilons."""
    found = [smallest_tasks(wisdom * private_wisdom([1.0], epsilon)) for epsilon in EPSILONS]
    return tuple(f"{one:.2e}".replace("e+0", "e") for one in found)


def fewest_workers() -> Figures:
    """Return the fewest workers at epsilon 1, to two digits."""
    wisdom = private_wisdom([1.0], 1.0)
    found = smallest_workers(smallest_tasks(wisdom), wisdom)
    assert found is not None
    return (round(found, -4),)


def most_right_labels() -> float:
    """Return the share of right labels, in percent, whose relative entropy from 1/4 is AdultContent2's information.

    Fano: the information of a uniform truth among K is at least the relative entropy of (p, 1 - p) from (1/K, 1 - 1/K)
    if a share p of the truths is inferred right.
    """
    information = 825 * nats(1.0, 89_796 / (825 * 11_028))
    shares = np.linspace(0.25, 0.99, 74_001)
    needed = shares * np.log(4 * shares) + (1 - shares) * np.log(4 / 3 * (1 - shares))
    return 100 * float(shares[np.searchsorted(needed, information)])


def gains_at_epsilon_0() -> Figures:
    """Return how much smaller the printed changes of truth discovery are under two-layer, in Tables 2 and 3."""
    return TABLE_2[-1][1] - TABLE_2[-1][3], TABLE_3[-1][1] - TABLE_3[-1][3]


def sun_theorem_5() -> Figures:
    """Return two lower bounds on every estimate's error, and the error that the theorem claims."""
    random = np.random.Generator(np.random.PCG64(0))
    truths, gaussian = random.uniform(0, 9, 1000), random.normal(size=(100, 1000))
    floors = row_space_error_floor(*half_zero_half_nine()), row_space_error_floor(gaussian, truths)
    claimed = factorization_error_bound(
        largest_quality=0.01, workers=100, dimensions=100, noise_scale=10, tasks=1000
    )  # fmt: skip
    return *floors, claimed


def sun_theorem_3() -> Figures:
    """Return the bound by four readings of the density."""
    names = ("density as printed", "density, normalised", "rounded and clipped", "absolute value, rounded")
    return tuple(randomized_response_cell_error(0, readings()[name], **SPARSE_EXAMPLE) for name in names)


def cells_of_table_2() -> Figures:
    """Return the cells, those that contradict sums and those that contradict means, with one example of each."""
    cells = [cell for ise, sise in HUAI_TABLE_2.values() for cell in zip(ise, sise, strict=True)]
    above = sum(sise > ise**2 for ise, sise in cells)
    (one, squares), (other, other_squares) = HUAI_TABLE_2[PRISCROWD], HUAI_TABLE_2[UNIFORM]
    first, second = (squares[0], one[0], one[0] ** 2), (other_squares[1], other[1], other[1] ** 2)
    return len(cells), above, *first, len(cells) - above, *second


def accuracy_with_many_labels() -> Figures:
    """Return the shares of right truths of three methods: 12 workers, 30 answers each, 120 tasks, 30 labels."""
    labels = Categories(tuple(f"label {number:02}" for number in range(30)))
    sized: dict[str, Any] = {"workers": 12, "tasks": 120, "labels": labels, "answers_per_worker": 30}
    crowds = [categorical_crowd(**sized, source=seeded(seed)) for seed in range(5)]
    methods = (Lfc(), OneCoin(), MajorityVote())
    return tuple(
        1 - float(np.mean([score(method.fit(crowd.answers), crowd.gold).error for crowd in crowds]))
        for method in methods
    )


CLAIMS = claims_of(
    {
        "how-to/choose-a-method.md": {
            (
                "30 labels and errors alike give it {} right truths, `one-coin` {} and a majority vote {} "
                "(means over five"
            ): accuracy_with_many_labels,
        },
        "explanation/channel-aware-inference.md": {
            "with five symbols, randomized response keeps the answer in {} % of the cells": lambda: (
                100 * float(randomized_response("abcde").channel().probabilities[0, 0]),
            ),
        },
        "explanation/mechanisms/two-layer.md": {
            r"for 100 answers the loss is {} with $\mathrm{Beta}(2, 2)$ and {} with $U(0, 1)$.": lambda: (
                beta_flip_epsilon(2, answers=100),
                beta_flip_epsilon(1, answers=100),
            ),
            "That the printed error rate change on Duchenne is {} smaller": lambda: gains_at_epsilon_0()[1:],
        },
        "explanation/performance.md": {
            "to move by more than {} in all further steps": lambda: (REMAINING_CHANGE,),
        },
        "decisions/0007-sparse-blocks.md": {
            "are dense: {} MB each for 100,000 workers and 4 labels": lambda: (100_000 * 4 * 4 * 8 / 1e6,),
        },
        "explanation/composition.md": {
            "5 cells at epsilon 1 have {} at delta 1e-6": five_cells,
        },
        "explanation/truth-per-epsilon.md": {
            (
                "if workers are right three times in four, they hold at most {} nats, "
                "and telling four equally likely labels apart takes ln 4 = {} nats."
            ): lambda: (825 * nats(1.0, 89_796 / (825 * 11_028)), math.log(4)),
            (
                "no inference from them gets more than {} % of equally likely labels right on average; the "
                "constant has {} %."
            ): lambda: (
                most_right_labels(),
                25.0,
            ),
            "one cell at epsilon 5 holds {} nats, ten at 0.5 hold {} (half of them answered)": lambda: (
                nats(5.0, 0.5),
                10 * nats(0.5, 0.5),
            ),
        },
        "tutorials/choose-epsilon.md": {
            "On real data the interval at 1 is 0 to {}:": planned_interval,
            "At epsilon 0.5 between {} % and {} % of the truths are wrong": simulated_errors,
        },
        "explanation/synthesis/utility.md": {
            "A constant density, which needs no claims, has {};": constant_density_error,
        },
        "explanation/synthesis/paper-reproduction.md": {
            r"\int (K * K - K)^2 = {}/h$": kernel_distance,
            "with 30 claims and 30 records, {}.": lambda: (1 - (1 - 1 / 30) ** 30,),
            r"with 30 equal claims of which one is moved far away, $F = {}$ and $F' = {} \cdot 10^{{}}$": failures,
        },
        "explanation/mechanisms/matrix-factorization.md": {
            "The best public constant, 4.5, has MAE {}.": constant_of_factorization,
        },
        "explanation/mechanisms/matrix-factorization-published.md": {
            r"{} at $\varepsilon = 0.1$, {} at 1, {} at 2. Quadrature": lambda: tuple(
                map(published_factorization_delta, (0.1, 1.0, 2.0))
            ),
            r"at most $1 - e^{-\varepsilon}/2$: {} at 0.1.": lambda: (largest_area(0.1),),
        },
        VERDICTS: {
            r"(\sqrt{2/\pi} + 10) = {}$": lambda: (laplace_example(0),),
            "the expected error of each is {}, where": lambda: (lone_worker_laplace_error(tasks=1000) * 1000 / 999,),
            "These give {}, {}, {} and {}; none gives 3.551.": sun_theorem_3,
            r"s\,\kappa} = {}": lambda: (randomized_response_mean_limit(NORMALISED, **SPARSE_EXAMPLE),),
            (
                "it is {} for unit profiles with half the truths 0 and half 9 under each profile, "
                "and {} for a Gaussian $V$ with uniform truths; the theorem claims {}."
            ): sun_theorem_5,
            "(n \\ln 2)^j / j!$: {}, {}, {} for $n = 1, 2, 3$.": lambda: tuple(
                map(smaller_change_probability, (1, 2, 3))
            ),
            "the printed ones differ by {} and {},": gains_at_epsilon_0,
            **{
                f"<tr><td>wisdom {wisdom}</td>" + "<td>{}</td>" * len(EPSILONS): lambda wisdom=wisdom: (
                    smallest_task_numbers(wisdom)
                )
                for wisdom in (1, 0.3)
            },
            "at epsilon 1 it needs at least {} workers.": fewest_workers,
            (
                "Of the {} pairs of the table {} contradict the first, such as {} against ${}^2 = {}$, "
                "and {} the second: the baselines Uniform "
                "and Basic (strong, normal) on Stock, such as {} against ${}^2 = {}$."
            ): cells_of_table_2,
        },
    }
)
