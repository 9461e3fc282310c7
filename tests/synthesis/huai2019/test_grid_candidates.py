"""Candidates on a public grid: integer tables, exact probabilities against the printed curve, attainable records."""

import csv
import math
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from crowdveil.errors import SettingsError
from crowdveil.folder.synthesis import SYNTHETIC_FILE, SynthesisSettings, synthesize, write_synthesis
from crowdveil.randomness import seeded
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.huai2019.accounting import WeightProfile, single_candidate
from crowdveil.synthesis.huai2019.candidates import (
    MAX_CELLS,
    TOP_MASS,
    WEIGHT_STEPS,
    IntegerPrivacyTest,
    PrivacyTest,
    integer_weights,
    kernel_table,
)
from crowdveil.synthesis.huai2019.kernel_density import KERNELS, Bandwidth
from crowdveil.synthesis.huai2019.methods import HuaiCorrected
from crowdveil.synthesis.huai2019.weights import Weighting
from tests.chi_square import chi_square_p_value
from tests.synthesis.exact_release import GridKernel, corrected_record, excess, grid_attempt

CELLS, WIDTH = 24, 2
SETTINGS = [
    PrivacyTest(k=3, gamma=2.0, epsilon0=1.0),
    PrivacyTest(k=5, gamma=4.0, epsilon0=0.5),
    PrivacyTest(k=6, gamma=1.5, epsilon0=0.125),
]
PUBLIC_WEIGHTS = (1.0, 0.5, 0.25, 0.5, 1.0, 0.125, 0.5)


def method(test: PrivacyTest, weights: tuple[float, ...] = (), **settings: object) -> HuaiCorrected:
    """The mode on a grid of `CELLS` cells of width 1, with kernels `WIDTH` cells wide."""
    return HuaiCorrected(
        test=test,
        cells=CELLS,
        bandwidth=Bandwidth(rule="given", width=float(WIDTH)),
        weighting=Weighting(kind="public", workers=weights) if weights else Weighting(kind="uniform"),
        **settings,  # type: ignore[arg-type]
    )


def claims_in(cells: list[int]) -> Claims:
    """One task with a claim in each of these cells, off their centres."""
    value = np.array(cells) + 0.3
    return Claims.from_arrays(["t"] * len(cells), range(len(cells)), value, bounds=(0, CELLS))


def passing(made: HuaiCorrected, cells: list[int]) -> np.ndarray:
    """Exact probability of every candidate that passes, for claims in these cells."""
    sampler = made.sampler(claims_in(cells))
    table = sampler.tables[0]
    kernel = GridKernel(table.mass.tolist(), table.bins.tolist())
    return grid_attempt(cells, sampler.weight.tolist(), kernel, made.test, CELLS)


def exact(made: HuaiCorrected, cells: list[int]) -> np.ndarray:
    """Exact probability of every record, for claims in these cells."""
    return corrected_record(passing(made, cells), math.ceil(made.public_share * 2**20) / 2**20)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("gamma", [1.001, 1.5, 4.0])
def test_masses_of_one_bin_differ_by_less_than_gamma(kernel: str, gamma: float) -> None:
    """The ratio of any two integer masses in a bin is below gamma, and every mass is positive and in a bin."""
    table = kernel_table(KERNELS[kernel], 40.0, gamma)

    assert table.mass[0] == TOP_MASS
    assert table.mass.min() >= 1
    assert table.bins.min() >= 0
    for number in np.unique(table.bins):
        inside = table.mass[table.bins == number].tolist()
        assert Fraction(max(inside), min(inside)) < Fraction(gamma)


def test_bins_are_counted_on_both_sides_up_to_the_reach() -> None:
    """A distance and its negative share a bin, masses are symmetric, and beyond the reach there is none."""
    table = kernel_table(KERNELS["epanechnikov"], 3.0, 2.0)
    distance = np.arange(-table.reach - 2, table.reach + 3)

    assert table.bin_of(distance).tolist() == [-1, -1, *table.bins[:0:-1], *table.bins, -1, -1]
    assert int(table.cumulative[-1]) == 2 * int(table.mass.sum()) - TOP_MASS


def test_wide_tables_fit_into_an_integer() -> None:
    """Masses of the widest kernel add up to less than 2**62."""
    assert int(kernel_table(KERNELS["gaussian"], float(MAX_CELLS), 2.0).cumulative[-1]) < 2**62


@pytest.mark.slow
@pytest.mark.parametrize("weights", [(), PUBLIC_WEIGHTS])
@pytest.mark.parametrize("test", SETTINGS, ids=str)
def test_exact_records_keep_the_printed_curve(test: PrivacyTest, weights: tuple[float, ...]) -> None:
    """For clusters with one claim moved anywhere, exact delta is at most the printed, for every t, in both directions.

    All probabilities are positive: no record can be attained from one of two neighbours only.
    """
    made = method(test, weights)
    near = [11, 12, 12, 13, 12, 11, 12]
    points = made.release(claims_in(near), seeded(1)).curves[0].exact
    tables = [exact(made, [place, *near[1:]]) for place in (0, 5, 9, 12, 16, 23)]

    assert min(table.min() for table in tables) > 0
    assert all(abs(table.sum() - 1) < 1e-12 for table in tables)
    for point in points:
        for one, other in permutations(tables, 2):
            assert excess(one, other, 1.0, point.epsilon) <= point.delta


def test_the_theorem_is_tight_at_t_1() -> None:
    """A lone claim reaches the delta of a passing candidate at t = 1, so that a smaller one would be found out."""
    made = method(PrivacyTest(k=3, gamma=1.5, epsilon0=1.0), kernel="epanechnikov")
    profile = WeightProfile.from_claims(claims_in([20] * 7), np.ones(7, dtype=np.int64), 3)
    point = single_candidate(IntegerPrivacyTest(made.test), profile)[0]
    lone, close = passing(made, [2] + [20] * 6), passing(made, [20] * 7)

    assert 0.999 * point.delta < excess(lone, close, 1.0, point.epsilon) <= point.delta * (1 + 1e-9)


@pytest.mark.parametrize("weights", [(), PUBLIC_WEIGHTS])
def test_records_have_their_exact_probabilities(weights: tuple[float, ...]) -> None:
    """60,000 records pass a chi-square test at 1e-4 against the definition, fixed seed."""
    cells = [3, 11, 12, 12, 13, 14, 22]
    made = method(SETTINGS[0], weights, records=60_000)
    value = made.release(claims_in(cells), seeded(3)).value
    counts = np.bincount(np.floor(value).astype(int), minlength=CELLS)

    assert chi_square_p_value(counts, exact(made, cells)) > 1e-4


@pytest.mark.parametrize("count", [0, 3, 4, 5, 9])
def test_candidates_pass_with_the_stated_probability(count: int) -> None:
    """Of 40,000 candidates the share that passes is within 4.5 standard errors of the probability."""
    test = IntegerPrivacyTest(PrivacyTest(k=4, gamma=2.0, epsilon0=0.7))
    chance = float(test.pass_probability(count))
    passed = test.passes(np.full(40_000, count), seeded(count)).mean()

    assert abs(passed - chance) < 4.5 * (chance * (1 - chance) / 40_000) ** 0.5


def test_a_claim_changes_the_chance_to_pass_by_at_most_exp_epsilon0() -> None:
    """Passing and failing, both: the ratio for one claim more is within exp(+- epsilon0), far from k and near it."""
    test = IntegerPrivacyTest(PrivacyTest(k=30, gamma=2.0, epsilon0=0.3))
    chance = test.pass_probability(np.arange(60))
    for share in (chance, 1 - chance):
        assert np.abs(np.diff(np.log(share))).max() <= test.epsilon0 * (1 + 1e-9)


@pytest.mark.slow
def test_the_file_holds_centres_of_public_cells_only(tmp_path: Path) -> None:
    """200 claims at 5.0, and the same with one at 5.3: all records of both files lie on one grid of 4,096 numbers.

    Floating-point candidates revealed the claim: 376 of 200,000 could be attained from neither 5.0 nor a public draw.
    """
    grid = 10 * ((np.arange(4096) + 0.5) / 4096)
    settings = SynthesisSettings(method="huai-corrected", epsilon=2e4, records=20_000, k=150, gamma=2.0, epsilon0=0.2)
    for moved in (5.0, 5.3):
        claims = Claims.from_arrays([0] * 200, range(200), [moved] + [5.0] * 199, bounds=(0, 10))
        write_synthesis(tmp_path, synthesize(claims, settings, bounds=(0, 10)), {})
        with open(tmp_path / SYNTHETIC_FILE, newline="", encoding="utf-8") as stream:
            written = [float(row["value"]) for row in csv.DictReader(stream)]

        assert len(written) == 20_000
        assert set(written) <= set(grid.tolist())


def test_tasks_of_other_bounds_have_their_own_grid() -> None:
    """A given width has fewer cells where bounds are wider; every record is a centre of one of its task's cells."""
    bounds = (np.array([0.0, 100.0]), np.array([8.0, 200.0]))
    claims = Claims.from_arrays([0] * 30 + [1] * 30, [*range(30)] * 2, [4.0] * 30 + [150.0] * 30, bounds=bounds)
    made = HuaiCorrected(
        records=200, cells=64, test=PrivacyTest(k=5), bandwidth=Bandwidth(rule="given", width=2.0)
    ).release(claims, seeded(1))
    cell = (made.value - bounds[0][made.task]) / (bounds[1] - bounds[0])[made.task] * 64 - 0.5

    np.testing.assert_array_equal(cell, np.rint(cell))
    spread = [float(np.median(np.abs(made.value[made.task == task] - middle))) for task, middle in ((0, 4), (1, 150))]
    assert 0.5 < spread[0] < 3
    assert 0.5 < spread[1] < 3


def test_weights_become_integers_that_seeds_are_drawn_by() -> None:
    """The largest weight of each task is at the top, and none is 0."""
    claims = Claims.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], bounds=(0, 5))

    assert integer_weights(np.array([0.75, 0.25, 1e-30, 1.0]), claims).tolist() == [
        WEIGHT_STEPS, round(WEIGHT_STEPS / 3), 1, WEIGHT_STEPS,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("width", "gamma", "rule"), [(0.5, 2.0, "bandwidth"), (MAX_CELLS + 1.0, 2.0, "bandwidth"), (3.0, 1.0001, "gamma")]
)
def test_tables_that_cannot_be_made_are_refused(width: float, gamma: float, rule: str) -> None:
    """A kernel narrower than a cell, one that is too wide, and bins that are too narrow are refused by name."""
    with pytest.raises(SettingsError, match=rule):
        kernel_table(KERNELS["gaussian"], width, gamma)
