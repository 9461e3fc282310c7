"""Every figure of the verdicts on the papers, computed again; the data sets and tables that they speak of."""

import math
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from experiments.papers.huai2019.table1 import PRINTED as HUAI_TABLE_1
from experiments.papers.huai2019.table2 import PRINTED as HUAI_TABLE_2
from experiments.papers.wang2018.condition16 import at_least
from experiments.papers.wang2018.lemmas import log_odds_ratio
from experiments.theory.published_bounds import (
    beta_flip_epsilon,
    density_distance_bound,
    equal_flip_probability,
    factorization_error_bound,
    failure_probability,
    laplace_cell_error,
    laplace_exact_epsilon,
    mean_error_bound,
    one_layer_epsilon,
    private_wisdom,
    published_factorization_delta,
    randomized_response_cell_error,
    randomized_response_mean_limit,
    refuting_workers,
    row_space_error_floor,
    smaller_change_probability,
    smallest_tasks,
    smallest_workers,
    truth_error_bound,
    two_layer_claimed_epsilon,
    two_layer_exact_epsilon,
    weighted_vote_error_printed,
)
from experiments.theory.verdicts import VERDICTS, Verdict

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.data.reports import Reports
from crowdveil.estimators.dawid_skene import DawidSkene
from crowdveil.estimators.weighted_vote import WeightedVote
from crowdveil.mechanisms.matrix_factorization_published import MatrixFactorizationPublished
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.mechanisms.sun_two_layer import SunTwoLayer
from crowdveil.synthesis.huai2019.accounting import WeightProfile, published_claim
from crowdveil.synthesis.huai2019.candidates import PrivacyTest
from tests.experiments.test_published_bounds import (
    NORMALISED,
    SPARSE_EXAMPLE,
    half_zero_half_nine,
    laplace_example,
    lone_worker_laplace_error,
    majority_error,
    randomized_response_example,
)
from tests.real_data import load_or_skip
from tests.synthesis.exact_release import excess, lone_claims

SUN_TABLE_II = {"snow_wsd": (34, 177, 0.903955, 0.0, 0.705882), "adult2": (825, 11_040, 0.999909, 0.316033, 0.993666)}
"""Workers, tasks; maximum, minimum and average sparsity as printed."""

HUAI_OBJECTS = tuple(objects for _, objects in HUAI_TABLE_1.values())
"""Objects of the three data sets."""

LI_AT_EPSILON_0 = {"two-layer": (0.1992, 0.1793), "one-layer": (0.2212, 0.2277)}
"""Error rate change of truth discovery, last row of Tables 2 and 3."""


def outlier_seen_by_failures(claims: int, threshold: int, epsilon0: float) -> float:
    """P(test fails | one outlier) - P(test fails | none): one candidate, equal weights, a tight cluster."""
    fails = [0.5 * math.exp(-epsilon0 * (count - threshold)) if count >= threshold else
             1 - 0.5 * math.exp(-epsilon0 * (threshold - count)) for count in (1, claims - 1, claims)]  # fmt: skip
    return (fails[0] + (claims - 1) * fails[1]) / claims - fails[2]


def relative_entropies(local: list[float], shared: list[float]) -> tuple[float, float]:
    """Huai's objective (4) at the product of equation 5, and at the square root of the product."""
    one, two = np.array(local), np.array(shared)
    weights = [(one * two) ** power / ((one * two) ** power).sum() for power in (1, 0.5)]
    product, root = (float((c * np.log(c / one) + c * np.log(c / two)).sum()) for c in weights)
    return product, root


def huai_theorem_1() -> str:
    """Left side (its part that no number of samples removes) and right side of Theorem 1 for one claim."""
    step = 1e-4
    z = np.arange(-2, 2, step) + step / 2
    kernel, u = np.maximum(0.75 * (1 - z * z), 0), np.abs(z)
    convolved = 3 / 160 * (2 - u) ** 3 * (u * u + 6 * u + 4)
    h, m = 1e-3, 1e6
    left = ((convolved - kernel) ** 2).sum() * step / h
    right = density_distance_bound(bandwidth=h, samples=m, top=0.75 / h, squared_norm=0.6, support=2 * h)
    return f"{left:.2f} > {right:.3f} (one claim, h = {h:g}, m = {m:g})"


def huai_loop() -> str:
    """Exact delta of the loop at epsilon 20 and the claimed one."""
    test = PrivacyTest(k=20, gamma=4.0, epsilon0=1.0)
    one, other = lone_claims(25, test)
    exact = excess(one.given_pass(), other.given_pass(), one.step, 20.0)
    profile = WeightProfile(largest=0.04, leverage=np.ones(19), ratio=1.0, relative_maximum=1.0)
    return f"delta {exact:.4f} > {published_claim(test, profile)[0].delta:.1e} (25 claims, k = 20, epsilon0 = 1)"


def wang_theorem_4_workers(workers: int, delta: float, epsilon: float) -> float:
    """Workers that the completed Theorem 2 needs in Theorem 4's instance of `workers` workers."""
    experts = math.ceil(workers**delta)
    wisdom = private_wisdom(np.repeat([1.0, 0.5], [experts, workers - experts]), epsilon)
    needed = smallest_workers(max(workers, smallest_tasks(wisdom)), wisdom)
    assert needed is not None
    return needed


def column_ratio(channel: Channel) -> float:
    """Worst ratio of two entries in one column of the integer table."""
    assert channel.ratio is not None
    return float(channel.ratio)


def sun_table() -> str:
    """Sparsities of Web by its fewest, most and average answers of a worker, and the average of AdultContent."""
    web = [1 - answers / 177 for answers in (17, 177, 1770 / 34)]
    return "Web {:.6f}, {:.0f}, {:.6f}; AdultContent {:.6f}, printed {:.6f}".format(
        *web, 1 - 89_796 / (825 * 11_040), SUN_TABLE_II["adult2"][-1]
    )


def sun_two_layer() -> str:
    """Exact loss of a cell in the two data sets, five labels."""
    losses = [
        SunTwoLayer(alphabet=Scale(0, 4), epsilon=epsilon, answers=tasks).guarantee
        for epsilon, tasks in ((1.0, 177), (3.0, 11_040))
    ]
    return "{:.3f} at claimed {:g} (177 tasks, 5 labels); {:.3f} at claimed {:g} (11,040 tasks)".format(
        *(figure for loss in losses for figure in (loss.epsilon, loss.claimed))
    )


def uniform_flips() -> str:
    """Losses of 100 answers under uniform flip probabilities and under others of the same mean."""
    beta, whole = (beta_flip_epsilon(shape, answers=100) for shape in (2, 1))
    narrow, wide = (two_layer_exact_epsilon(*ends, labels=2, answers=100) for ends in ((0.25, 0.288), (0, 0.538)))
    mean = equal_flip_probability(0, 0.538)
    return (
        f"k = 100: Beta(2, 2) {beta:.3f} < U(0, 1) {whole:.3f}; "
        f"mean {mean:.3f}: U(0.25, 0.288) {narrow:.3f} < U(0, 0.538) {wide:.3f}"
    )


def gains_at_epsilon_0() -> tuple[float, float]:
    """Return how much smaller the printed changes of truth discovery are under two-layer, in Tables 2 and 3."""
    one, two = (
        own - other for own, other in zip(LI_AT_EPSILON_0["one-layer"], LI_AT_EPSILON_0["two-layer"], strict=True)
    )
    return one, two


def votes_at_equal_claim() -> str:
    """Return the exact errors of three votes under one-layer and under two-layer, whose flips are averaged on a grid.

    The error is linear in each worker's flip probability, so that midpoints give the exact mean.
    """

    def error(flips: tuple[float, ...]) -> float:
        right = [0.8 * (1 - flip) + 0.2 * flip for flip in flips]
        outcomes = [one for one in product((True, False), repeat=3) if sum(one) < 2]
        return sum(math.prod(p if r else 1 - p for p, r in zip(right, one, strict=True)) for one in outcomes)

    grid = [0.538 * (place + 0.5) / 10 for place in range(10)]
    two = float(np.mean([error(flips) for flips in product(grid, repeat=3)]))
    assert two == pytest.approx(error((0.269,) * 3))
    return f"error {error((0.269,) * 3):.4f} = {two:.4f} (3 workers of ability 0.8, flips 0.269 or U(0, 0.538))"


def wang_theorem_2() -> str:
    """Return what C' must exceed with perfect workers at epsilon 1, and the sizes for which the theorem holds."""
    wisdom = private_wisdom([1.0], 1.0)
    found = [
        f"> {at_least(tasks * failure_probability(refuting_workers(tasks, wisdom), tasks, wisdom))} at m = {tasks:.0e}"
        for tasks in (10**8, 10**12)
    ]
    tasks = smallest_tasks(wisdom)
    sizes = f"m >= {tasks:.2e}, n >= {smallest_workers(tasks, wisdom):.2e}"
    return f"C' {', '.join(found)}; true for {sizes} at best (epsilon 1)"


def wang_theorem_4() -> str:
    """Return what C' must exceed among 1e6 workers with n^0.41 experts, and the workers that the proof needs."""
    workers, wisdom = 10**6, math.tanh(1) ** 2
    experts = math.ceil(workers**0.41)
    tasks = math.floor(math.exp(experts * wisdom / 2) / 2)
    assert truth_error_bound(experts, wisdom) <= 1 / tasks
    assert math.log(tasks) <= experts * wisdom
    constant = tasks * failure_probability(experts, tasks, wisdom, spammers=workers - experts)
    return (
        f"C' > {at_least(constant)} ({experts} experts of {workers:.0e} workers, m = {tasks:.0e}, epsilon 2); "
        f"needs {wang_theorem_4_workers(workers, 0.4, 2.0):.1e} of {workers:.0e} workers (delta 0.4, epsilon 2)"
    )


def sum_and_square(cell: tuple[float, float]) -> bool:
    """Whether SISE is larger than the square of ISE."""
    return cell[1] > cell[0] ** 2


def huai_cells() -> list[tuple[float, float]]:
    """ISE and SISE of all cells."""
    return [cell for ise, sise in HUAI_TABLE_2.values() for cell in zip(ise, sise, strict=True)]


def huai_table() -> str:
    """How many cells contradict sums, and how many means."""
    above = sum(map(sum_and_square, huai_cells()))
    return f"SISE > ISE^2 in {above} of {len(huai_cells())} cells, SISE < ISE^2 in the other {15 - above}"


def sent_numbers() -> str:
    """Numbers of u and of u V in the setting of Theorem 5, where V gives u back."""
    mechanism = MatrixFactorizationPublished(alphabet=Scale(0, 9), epsilon=1.0, tasks=1000, dimensions=100)
    profiles = mechanism.profile_table
    assert np.linalg.matrix_rank(profiles) == len(profiles)
    return f"{profiles.shape[0]:,} numbers instead of {profiles.shape[1]:,} (the setting of Theorem 5)"


@cache
def figures() -> dict[str, str]:
    """Compute the figure of every verdict, by the beginning of its claim."""
    nulls = RandomizedResponse(alphabet=Scale(0, 9), epsilon=1.0).channel()
    binary = RandomizedResponse(alphabet=Categories(("0", "1")), epsilon=1.0, participation="public").channel()
    ranges = [laplace_exact_epsilon(1, value_range=9, domain_size=10)]
    ranges.append(laplace_exact_epsilon(1, value_range=100, domain_size=2))
    rr = randomized_response_cell_error(0, NORMALISED, **SPARSE_EXAMPLE)
    limit = randomized_response_mean_limit(NORMALISED, **SPARSE_EXAMPLE)
    setting = {"largest_quality": 0.01, "workers": 100, "dimensions": 100, "noise_scale": 10, "tasks": 1000}
    flip = 1 / (1 + math.e)
    exact = two_layer_exact_epsilon(0, 1, labels=2, answers=100)
    second = {b: two_layer_exact_epsilon(0, b, labels=2, answers=100) for b in (2 * flip,)}
    printed, error = weighted_vote_error_printed(np.full(51, 0.4)), majority_error(51, 0.4)
    return {
        "Sun Theorem 1": f"{ranges[0]:.1f} (0..9), {ranges[1]:.0f} ({{0, 100}}) at claimed 1",
        "Sun Theorem 2": f"{laplace_example(0):.4f}; error at least {lone_worker_laplace_error(tasks=1000):.4f} > "
        f"bound {mean_error_bound(laplace_cell_error([1], [1 / 1000], [0], noise_scale=0.5), [1]):.4f}",
        "Sun slides, page 19": f"{laplace_example(1):.4f}",
        "Sun slides, page 22": f"{randomized_response_example(1):.3f} (truth 1), "
        f"{randomized_response_example(0):.3f} (truth 0)",
        "Sun slides, page 24": f"{sent_numbers()}; delta {published_factorization_delta(1):.4f} at epsilon 1",
        "Sun equation 8": f"ratio {column_ratio(nulls):.5f} at epsilon 1",
        "Sun Theorem 3": f"{rr:.3f}; {limit:.3f} > 3.551",
        "Sun Theorem 4": f"delta {published_factorization_delta(1):.4f} at epsilon 1",
        "Sun Theorem 5": f"{factorization_error_bound(**setting):.4f}; floor "
        f"{row_space_error_floor(*half_zero_half_nine()):.1f}",
        "Sun Table II": sun_table(),
        "Sun section VI-D": sun_two_layer(),
        "Li Theorem 6.2": f"{one_layer_epsilon(flip, labels=2):.4f} at flip {flip:.4f}, 2 labels",
        "Li Theorem 6.3": f"{exact:.3f} at k = 100, claimed {two_layer_claimed_epsilon(0, 1, labels=2):.0f}",
        "Li Theorem 6.4": f"{one_layer_epsilon(equal_flip_probability(0, 2 * flip), labels=2):.3f} against "
        f"{second[2 * flip]:.3f} at k = 100",
        "Li section 6.1": uniform_flips(),
        "Li section 6.2": f"smaller with probability {smaller_change_probability(2):.3f}; mean {0.5 * 0.5:g} = "
        f"{0.5**2:g} (n = 2, b = 1)",
        "Li section 6.3": f"flip 0.1, then flip 0.25 = flip {0.1 * 0.75 + 0.9 * 0.25:.1g}",
        "Li equation 7": f"bound {printed:.2e} < error {error:.4f} (51 workers, p = 0.4)",
        "Li Tables 2 and 3": "expected difference 0; printed {:.4f} and {:.4f}".format(*gains_at_epsilon_0()),
        "Li section 7.2": votes_at_equal_claim(),
        "Wang Theorem 1": f"ratio {column_ratio(binary):.5f} at epsilon 1",
        "Wang Theorem 2": wang_theorem_2(),
        "Wang Lemmas 1 to 3": f"the step is exceeded {log_odds_ratio(0.001, printed_step=True):.0f} times at lambda "
        "0.001",
        "Wang remark": f"{truth_error_bound(100, private_wisdom([1.0], 0.0)):g}",
        "Wang Theorem 3": f"{2 / math.tanh(0.5):.3f} <= 6 at epsilon 1",
        "Wang Theorem 4": wang_theorem_4(),
        "Huai equation 5": "relative entropy {:.4f} > {:.4f} (local 0.9 and 0.1, global 0.5 and 0.5)".format(
            *(relative_entropies([0.9, 0.1], [0.5, 0.5]))
        ),
        "Huai Theorem 1": huai_theorem_1(),
        "Huai Theorem 2": f"{huai_loop()}; failures seen: {outlier_seen_by_failures(30, 5, 1.0):.4f} "
        "(30 claims, k = 5)",
        "Huai Table 2": huai_table(),
    }


@pytest.mark.parametrize("verdict", VERDICTS, ids=lambda verdict: verdict.claim.split(":")[0])
def test_every_verdict_states_the_figure_that_its_formula_gives(verdict: Verdict) -> None:
    """The figure printed in a verdict is the figure computed from the formula."""
    assert figures()[verdict.claim.split(":")[0]] == verdict.figure


def test_every_figure_belongs_to_a_verdict() -> None:
    """No figure is computed for a verdict that is no longer there."""
    assert sorted(figures()) == sorted(verdict.claim.split(":")[0] for verdict in VERDICTS)


@pytest.mark.parametrize("name", SUN_TABLE_II)
def test_sparsities_of_the_sets_are_those_of_suns_table(name: str) -> None:
    """Maximum and minimum sparsity of the sets equal Table II to six digits; the average does for Web only.

    AdultContent's tasks are the 11,040 of the table, of which 11,028 have answers in our copy.
    """
    workers, tasks, *printed = SUN_TABLE_II[name]
    answers = load_or_skip(name).answers
    sparsity = 1 - answers.per_worker / tasks
    found = [round(float(figure), 6) for figure in (sparsity.max(), sparsity.min(), sparsity.mean())]

    assert workers == len(answers.workers)
    assert printed[:2] == found[:2]
    assert (printed[2] == found[2]) == (name == "snow_wsd")


def test_suns_web_data_are_word_senses() -> None:
    """The word-sense set has the workers and tasks of Web, 1,770 answers, and one truth on 129 tasks (72.9 %)."""
    data = load_or_skip("snow_wsd")
    shape = len(data.answers.workers), len(data.answers.tasks), len(data.answers)

    assert (34, 177, 1770) == shape
    assert ("1", 129) == Counter(data.gold.values()).most_common(1)[0]
    assert 0.72 < 129 / len(data.gold) < 0.73


def test_no_reading_of_huais_measures_fits_all_cells_of_the_table() -> None:
    """Sums, means, and one of each over the objects of Table 1: every reading is violated by some cell.

    With x_i >= 0: sum x^2 <= (sum x)^2 and sum x^2 >= (sum x)^2 / N.
    """
    cells = huai_cells()
    objects = HUAI_OBJECTS * len(HUAI_TABLE_2)
    between = {
        "sums": [(ise**2 / n, ise**2) for (ise, _), n in zip(cells, objects, strict=True)],
        "means": [(ise**2, n * ise**2) for (ise, _), n in zip(cells, objects, strict=True)],
        "mean, sum": [(n * ise**2, n**2 * ise**2) for (ise, _), n in zip(cells, objects, strict=True)],
        "sum, mean": [(ise**2 / n**2, ise**2 / n) for (ise, _), n in zip(cells, objects, strict=True)],
    }
    violated = {
        name: sum(not low <= sise <= high for (low, high), (_, sise) in zip(limits, cells, strict=True))
        for name, limits in between.items()
    }

    assert {"sums": 12, "means": 3, "mean, sum": 15, "sum, mean": 15} == violated


@pytest.mark.parametrize("cells", [1, 2, 5, 8])
def test_whole_reports_of_uniform_flips_do_not_tell_answers_from_their_complement(cells: int) -> None:
    """Under U(0, 1) with two labels P(report | answers) = P(report | complement), exactly, for all vectors of k cells.

    The probability of h differing cells is the Beta integral h! (k - h)! / (k + 1)!.
    """
    vectors = list(product((0, 1), repeat=cells))
    for answers, report in product(vectors, vectors):
        complement = tuple(1 - x for x in answers)

        assert uniform_flip_law(answers, report) == uniform_flip_law(complement, report)
    assert sum(uniform_flip_law(vectors[0], report) for report in vectors) == 1


def uniform_flip_law(answers: tuple[int, ...], report: tuple[int, ...]) -> Fraction:
    """P(report | answers) if one flip probability, uniform on [0, 1], serves all cells."""
    cells, differing = len(answers), sum(x != y for x, y in zip(answers, report, strict=True))
    return Fraction(math.factorial(differing) * math.factorial(cells - differing), math.factorial(cells + 1))


@pytest.mark.slow
@pytest.mark.parametrize("truth", [(0, 0, 0), (0, 0, 1), (1, 0, 1)])
@pytest.mark.parametrize("estimator", [WeightedVote(), DawidSkene(max_steps=20)], ids=lambda method: method.name)
def test_inference_from_uniform_flips_errs_half_the_time(estimator, truth) -> None:
    """Two workers of ability 4/5 on three tasks, all 64 tables of reports: the expected error is exactly 1/2.

    For every truth, skewed or not, as the estimators treat labels alike; ties are split.
    """
    vectors = list(product((0, 1), repeat=3))
    ability = (Fraction(1, 5), Fraction(4, 5))
    one_worker = {
        report: sum(
            uniform_flip_law(answers, report) * math.prod(ability[x == t] for x, t in zip(answers, truth, strict=True))
            for answers in vectors
        )
        for report in vectors
    }
    error = 0.0
    for table in product(vectors, repeat=2):
        worker, task = np.indices((2, 3)).reshape(2, -1)
        values = np.array(table).ravel()
        reports = Reports(task, worker, values, np.arange(3), np.arange(2), Categories(("0", "1")))
        winners = estimator.fit(reports).winners
        share = (winners / winners.sum(axis=1, keepdims=True))[np.arange(3), list(truth)]
        error += float(one_worker[table[0]] * one_worker[table[1]]) * float(1 - share.mean())

    assert error == pytest.approx(0.5, abs=1e-12)
