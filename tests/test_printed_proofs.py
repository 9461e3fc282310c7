"""Figures on the proof pages of designed channels, factorization, two-layer and shuffling are recomputed."""

import math
from decimal import ROUND_CEILING, Context, Decimal
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.design.channel_design import design_channel, normal_worker_model, one_coin_confusion
from crowdveil.estimators.factorization_mean import FactorizationMean
from crowdveil.mechanisms import DesignObjective, MatrixFactorization, RandomizedResponse
from crowdveil.privacy.shuffling import shuffled_cell_guarantee, shuffled_worker_guarantee
from crowdveil.randomness import seeded
from tests.comparators import comparators

PAGES = Path(__file__).parent.parent / "docs" / "explanation"
TRUTHS = np.arange(-4, 9.01, 0.25)
DENSITY = np.exp(-(TRUTHS**2) / 2)
SCALE, FIVE = Scale(0, 9), Categories(tuple("01234"), ordered=True)
OBJECTIVES = {
    "synthetic": DesignObjective(
        alphabet=SCALE,
        prior=DENSITY / DENSITY.sum(),
        worker_model=normal_worker_model(SCALE, (1.0, 5.0), TRUTHS),
        participation_rate=0.1,
    ),
    "skewed": DesignObjective(
        alphabet=FIVE,
        prior=np.array([0.72, 0.07, 0.07, 0.07, 0.07]),
        worker_model=one_coin_confusion(5, 0.75),
        participation_rate=0.01,
    ),
}
BASELINES = (
    "randomized-response",
    "null-as-coin",
    "symmetric-unary-encoding",
    "optimized-unary-encoding",
    "subset-selection",
    "quantized-response",
)


def rows(page: str, head: str) -> list[list[str]]:
    """Return the cells of the rows of a table, from its head on."""
    lines = (PAGES / page).read_text("utf-8").split(head, 1)[1].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[: lines.index("")]]


def share(number: float, digits: int = 3) -> str:
    """Return a share with some digits after the point and without the zero before it."""
    return f"{number:.{digits}f}".removeprefix("0")


@pytest.mark.parametrize(("name", "epsilon"), [("synthetic", 1), ("synthetic", 5), *(("skewed", e) for e in (1, 3, 5))])
def test_the_table_of_designed_channels(name, epsilon):
    """Information of one report: best channel against unprotected answers, and six mechanisms against the best."""
    objective = OBJECTIVES[name]
    best = objective.objective_of_channel(design_channel(objective, epsilon).probabilities)
    others = comparators(objective, epsilon)
    unprotected = objective.objective_of_channel(np.eye(objective.alphabet.size + 1))
    found = [
        share(best / unprotected, 4),
        *(share(objective.objective_of_channel(others[one]) / best) for one in BASELINES),
    ]
    first = ["synthetic", "skewed"].index(name)
    table = rows("mechanisms/designed.md", "| setting |")
    starts = [number for number, row in enumerate(table) if row[0]] + [len(table)]

    assert found in [row[2:] for row in table[starts[first] : starts[first + 1]] if row[1] == str(epsilon)]


@pytest.mark.parametrize(("shape", "printed"), [(1, "4.605"), (2, "3.922")])
def test_two_layer_with_other_distributions(shape, printed):
    """Loss of one of 100 answers, two labels, p ~ Beta(c, c), by quadrature of Theorem 1: ln((k - 1 + c) / c)."""
    cells = 100
    density = beta(shape, shape).pdf
    kept, flipped = (
        quad(lambda p, h=h: density(p) * p**h * (1 - p) ** (cells - h), 0, 1, epsabs=0, limit=500)[0] for h in (0, 1)
    )

    assert printed == f"{math.log(kept / flipped):.3f}"
    assert math.log(kept / flipped) == pytest.approx(math.log((cells - 1 + shape) / shape))
    assert printed in (PAGES / "mechanisms" / "two-layer.md").read_text("utf-8")


@pytest.mark.slow
def test_the_table_of_shuffling_is_rounded_up():
    """Central epsilon of a cell, of several cells, and of two linked reports, at local epsilon 3."""
    epsilon = 3
    channel = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=epsilon).channel()
    found = [shuffled_cell_guarantee(channel, reports=2000, delta=1e-6).epsilon]
    for cells, linked in ((5, 1), (20, 1), (200, 1), (2, 2)):
        found.append(shuffled_worker_guarantee(channel, reports=2000, cells=cells, delta=1e-6, linked=linked).epsilon)
    up = Context(prec=3, rounding=ROUND_CEILING)
    printed = {row[0]: row[1:] for row in rows("shuffling.md", "| local epsilon |")}[str(epsilon)][:5]

    assert [float(up.create_decimal(Decimal(one))) for one in found] == [float(one) for one in printed]


def factorization_figures(mechanism: MatrixFactorization, workers: int, answered: float) -> str:
    """Return correlation and MAE over 60 tasks as on the page, the mean of five crowds; a flat estimate has 0."""
    found = []
    for seed in range(5):
        generator = np.random.default_rng(seed)
        truth = np.clip(generator.normal(4.5, 2, 60), 0, 9)
        _, task = np.nonzero(generator.random((workers, 60)) < answered)
        codes = SCALE.encode(truth[task] + generator.normal(0, 1, len(task)))
        summed = mechanism.simulate_sum_of_reports(task, codes, 60, workers, seeded(seed))
        estimate = FactorizationMean().fit(mechanism.totals_in_answer_units(summed, tasks=60, workers=workers)).truth
        flat = np.ptp(estimate) < 1e-9
        found.append((0.0 if flat else np.corrcoef(estimate, truth)[0, 1], np.abs(estimate - truth).mean()))
    correlation, error = np.mean(found, axis=0)
    return f"{correlation:.2f}".replace("0.", ".") + " / " + f"{error:.2f}".removeprefix("0")


@pytest.mark.parametrize(("number", "epsilon", "dimensions"), [(0, 1, 60), (1, 3, 60), (2, 3, 20)])
def test_the_table_of_matrix_factorization(number, epsilon, dimensions):
    """Correlation and MAE with 100, 1,000 and 10,000 workers, half of the cells answered."""
    mechanism = MatrixFactorization(alphabet=SCALE, epsilon=epsilon, dimensions=dimensions)
    printed = rows("mechanisms/matrix-factorization.md", "| $\\varepsilon$ | buckets |")[number]

    assert printed[2:] == [factorization_figures(mechanism, workers, 0.5) for workers in (100, 1000, 10_000)]


def test_matrix_factorization_with_few_answers():
    """A tenth of the cells answered, a bucket for each task, epsilon 3."""
    mechanism = MatrixFactorization(alphabet=SCALE, epsilon=3, dimensions=60)
    figures = [factorization_figures(mechanism, workers, 0.1) for workers in (100, 1000, 10_000)]
    page = (PAGES / "mechanisms" / "matrix-factorization.md").read_text("utf-8")

    assert "reaches {}, {} and {}.".format(*figures) in page
