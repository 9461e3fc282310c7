"""Promises that every registered mechanism keeps, and the cells that a budget pays for."""

import math
import re
from dataclasses import FrozenInstanceError, fields, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import MECHANISMS, Laplace, MatrixFactorization, RandomizedResponse, TwoLayer
from crowdveil.mechanisms.budget_per_cell import mechanism_within_budget
from crowdveil.published import MatrixFactorizationPublished, SunTwoLayer
from crowdveil.randomness import secure, seeded
from crowdveil.standalone.checks import CERTIFIED
from tests.chi_square import chi_square_p_value
from tests.mechanisms.examples import EXAMPLES as CASES

CELLWISE = [case for case in CASES if case.channel() is not None]
ON_REQUEST = [case for case in CASES if {field.name: field.init for field in fields(cast(Any, case))}["epsilon"]]
PUBLIC = [case for case in CASES if case.participation == "public"]
PROTECTED = [case for case in CASES if case.participation == "protected"]


def below_exp(epsilon: float) -> Fraction:
    """A partial sum of the exponential series in exact arithmetic: below e^epsilon by less than 1e-60."""
    term = total = Fraction(1)
    for n in range(1, 200):
        term *= Fraction(epsilon) / n
        total += term
    return total


def task_count(mechanism, most=12):
    """Number of tasks to try: the mechanism's own where it is fixed."""
    return mechanism.tasks if "tasks" in {field.name for field in fields(mechanism)} else most


def answer_vectors(mechanism, most=12):
    """Nothing answered, everything answered alike, and mixed answers."""
    tasks, null = task_count(mechanism, most), mechanism.alphabet.size
    return [np.full(tasks, null), np.zeros(tasks, dtype=int), np.arange(tasks) % (null + 1)]


@pytest.mark.parametrize("name", MECHANISMS)
def test_registry_knows_a_mechanism_by_its_name(name):
    """Each entry has its own class, whose name agrees with the key, and examples."""
    assert {MECHANISMS[name]} == {type(case) for case in CASES if case.name == name}


@pytest.mark.parametrize("mechanism", CASES, ids=repr)
def test_a_mechanism_is_a_frozen_value(mechanism):
    """Its settings cannot be changed, it equals its copy and can be a key."""
    with pytest.raises(FrozenInstanceError):
        mechanism.alphabet = None

    assert 1 == len({mechanism, replace(mechanism)})


@pytest.mark.parametrize("mechanism", CASES, ids=repr)
def test_help_lists_public_names_only(mechanism):
    """`dir` of a mechanism has its settings and `guarantee`, and of private names none."""
    names = set(dir(type(mechanism)))

    assert {"guarantee", "perturb", *(field.name for field in fields(mechanism) if field.init)} <= names
    assert not {name for name in names if name.startswith("_")}


@pytest.mark.parametrize("mechanism", CASES, ids=repr)
def test_exact_epsilon_is_the_one_asked_for_or_explained(mechanism):
    """The exact epsilon per cell is at most the asked one, unless a reason says why."""
    guarantee = mechanism.guarantee

    assert guarantee.epsilon <= mechanism.epsilon or guarantee.reason
    assert ("cell", mechanism.participation) == (guarantee.unit, guarantee.participation)


@pytest.mark.parametrize("mechanism", CELLWISE, ids=repr)
def test_integer_column_ratio_keeps_epsilon_exactly(mechanism):
    """Every ratio of two integers in one column is at most e^epsilon, exactly, and at most what is certified."""
    columns = zip(*mechanism.channel().rows, strict=True)
    worst = max(Fraction(a, b) for column in columns for a in column for b in column)

    assert worst <= below_exp(mechanism.epsilon)
    assert worst <= below_exp(mechanism.guarantee.epsilon) + Fraction(1, 10**50)


def printed(guarantee) -> float:
    """The exact epsilon in a guarantee's text, read back as a float."""
    text = re.match(r"epsilon = (none \(infinite\)|[0-9.e+-]+)", str(guarantee))[1]
    return math.inf if text.startswith("none") else float(text)


@pytest.mark.parametrize("mechanism", CELLWISE, ids=repr)
@pytest.mark.parametrize("cells", [1, 3, 7])
def test_printed_epsilon_is_not_below_the_loss_of_the_integers(mechanism, cells):
    """Printed epsilons of a cell and of a worker, read back, are at least the logarithm of the worst integer ratio."""
    columns = zip(*mechanism.channel().rows, strict=True)
    worst = max(Fraction(max(column), min(column)) for column in columns)

    cell, worker = mechanism.guarantees(cells)

    assert worst <= below_exp(printed(cell)) + Fraction(1, 10**50)
    assert worst**cells <= below_exp(printed(worker)) * (1 + Fraction(1, 10**50))
    assert worst**cells <= below_exp(worker.epsilon) * (1 + Fraction(1, 10**50))


@pytest.mark.parametrize("mechanism", CASES, ids=repr)
def test_printed_epsilon_is_not_below_the_stated_one(mechanism):
    """Whatever the mechanism, the text read back is at least the float of the guarantee, and close to it."""
    for guarantee in mechanism.guarantees(5):
        assert guarantee.epsilon <= printed(guarantee) <= guarantee.epsilon * (1 + 2e-5)


@pytest.mark.parametrize("mechanism", CELLWISE, ids=repr)
def test_channel_and_mechanism_say_the_same(mechanism):
    """The channel bears the mechanism's name, alphabet, participation and epsilon."""
    channel = mechanism.channel()

    assert (mechanism.name, mechanism.alphabet) == (channel.mechanism, channel.alphabet)
    assert mechanism.guarantee == channel.guarantee


def test_certificates_name_the_mechanisms_with_a_channel():
    """The words that a certificate can name are those of all registered mechanisms with a channel per cell."""
    assert {mechanism.name for mechanism in CELLWISE} == set(CERTIFIED)


@pytest.mark.parametrize("mechanism", CASES, ids=repr)
def test_report_has_one_shape_for_a_number_of_tasks(mechanism):
    """Length and type of a report depend on the number of tasks only, never on the answers."""
    shapes = {
        (report.shape, report.dtype)
        for seed, answers in enumerate(answer_vectors(mechanism))
        for report in (mechanism.perturb(answers, seeded(seed)),)
    }

    assert 1 == len(shapes)


@pytest.mark.parametrize("mechanism", CASES, ids=repr)
@pytest.mark.parametrize("wrong", ["too large", "negative", "fraction", "table"])
def test_answers_outside_the_alphabet_are_refused(mechanism, wrong):
    """A code other than those of labels and NULL is refused."""
    answers = np.zeros(task_count(mechanism), dtype=int)
    spoilt = {
        "too large": answers + mechanism.alphabet.size + 1,
        "negative": answers - 1,
        "fraction": answers + 0.5,
        "table": answers[:, None],
    }[wrong]

    with pytest.raises(SettingsError, match="answer"):
        mechanism.perturb(spoilt, seeded(0))


@pytest.mark.parametrize("mechanism", ON_REQUEST, ids=repr)
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 9e-7, 20.5, 1e6])
def test_absurd_epsilon_is_refused(mechanism, epsilon):
    """Epsilon must be between a millionth and 20; there is no unprotected mode."""
    with pytest.raises(SettingsError, match="epsilon must be in"):
        replace(mechanism, epsilon=epsilon)


@pytest.mark.parametrize("mechanism", PUBLIC, ids=repr)
def test_public_null_stays_null_and_answers_do_not_become_null(mechanism):
    """Where participation is public, exactly the unanswered cells are NULL in the report."""
    answers, channel = answer_vectors(mechanism, 40)[-1], mechanism.channel()
    null = mechanism.alphabet.size if channel is None else len(channel.outputs)

    report = mechanism.perturb(answers, seeded(1))

    assert (answers == mechanism.alphabet.size).tolist() == (report == null).tolist()


@pytest.mark.parametrize("mechanism", PROTECTED, ids=repr)
def test_protected_null_is_perturbed(mechanism):
    """A worker who answers nothing sends a random report like anyone else: three seeds, not one report."""
    nothing = answer_vectors(mechanism, 40)[0]

    reports = {tuple(mechanism.perturb(nothing, seeded(seed)).tolist()) for seed in range(3)}

    assert len(reports) > 1


@pytest.mark.parametrize("mechanism", CASES, ids=repr)
def test_a_seed_repeats_a_report(mechanism):
    """The same seed gives the same report, another seed another one among ten."""
    answers = answer_vectors(mechanism)[-1]
    first = mechanism.perturb(answers, seeded(0)).tolist()

    assert first == mechanism.perturb(answers, seeded(0)).tolist()
    assert any(first != mechanism.perturb(answers, seeded(seed)).tolist() for seed in range(1, 11))


@pytest.mark.parametrize("mechanism", CASES, ids=repr)
def test_secure_randomness_works_or_the_mechanism_promises_nothing(mechanism):
    """A device can run every mechanism; one that refuses secure randomness has an infinite exact epsilon."""
    answers = answer_vectors(mechanism)[-1]
    try:
        report = mechanism.perturb(answers, secure())
    except SettingsError:
        assert math.isinf(mechanism.guarantee.epsilon)
    else:
        assert mechanism.perturb(answers, seeded(0)).shape == report.shape


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", CELLWISE, ids=repr)
def test_reports_follow_the_channel(mechanism):
    """Chi-square of 200,000 reports per answer accepts the table and rejects one changed by 5 %.

    False alarms: each row (about 50 in all) fails by chance with probability 1e-5. Fixed seeds.
    """
    channel = mechanism.channel()
    for code in range(len(channel.inputs)):
        report = mechanism.perturb(np.full(200_000, code), seeded(code))
        counts = np.bincount(report, minlength=len(channel.outputs))
        row = channel.probabilities[code]
        wrong = row * np.where(row == row.max(), 1.05, 1.0)

        assert chi_square_p_value(counts, row) > 1e-5
        assert chi_square_p_value(counts, wrong / wrong.sum()) < 1e-5


@pytest.mark.parametrize("mechanism", CASES, ids=repr)
def test_a_worker_loses_at_least_a_cell_and_at_most_the_sum(mechanism):
    """The loss of all cells is at least one cell's and at most the sum; both grow with the number of cells."""
    before = (0.0, 0.0)
    for cells in (1, 2, 7, 40):
        cell, worker = mechanism.guarantees(cells)

        assert ("cell", "worker") == (cell.unit, worker.unit)
        assert cell.epsilon <= worker.epsilon <= cells * cell.epsilon * (1 + 1e-12)
        assert before <= (cell.epsilon, worker.epsilon)
        before = (cell.epsilon, worker.epsilon)


@pytest.mark.parametrize("mechanism", CASES, ids=repr)
def test_law_of_a_single_cell_is_what_one_cell_loses(mechanism):
    """Where a report is made of cells, one cell alone has a channel with the epsilon of a one-cell worker."""
    alone, cellwise = mechanism.marginal_channel(), mechanism.channel()

    assert (alone is None) == mechanism.name.startswith("matrix-factorization")
    if alone is not None:
        assert mechanism.guarantees(1)[0].epsilon == alone.epsilon
        assert cellwise is None or cellwise.rows == alone.rows


FACTORIZATIONS = (MatrixFactorization, MatrixFactorizationPublished)
NUMBERS, LABELS = Scale(0, 9), Categories(("no", "yes"))
SOUND = {
    Laplace: {"alphabet": NUMBERS, "epsilon": 1.0},
    TwoLayer: {"alphabet": LABELS, "low": 0.1, "high": 0.5, "participation": "public"},
    SunTwoLayer: {"alphabet": LABELS, "epsilon": 1.0},
    MatrixFactorization: {"alphabet": NUMBERS, "epsilon": 1.0},
    MatrixFactorizationPublished: {"alphabet": NUMBERS, "epsilon": 1.0, "tasks": 12, "dimensions": 3},
}
REFUSED = [
    (Laplace, "ordered labels", {"alphabet": LABELS}),
    *((Laplace, "null_value must be", {"null_value": wrong}) for wrong in (-1.0, 4.5, 10.0, math.nan, math.inf)),
    *(
        (TwoLayer, "0 <= low < high <= 1", {"low": low, "high": high})
        for low, high in ((-0.1, 0.5), (0.5, 0.5), (0.6, 0.5), (0.1, 1.1), (0.1, 0.1 + 1e-8), (math.nan, 0.5))
    ),
    (TwoLayer, "0 <= low < high <= 1", {"high": math.nan}),
    *((TwoLayer, "answers must be in", {"answers": wrong}) for wrong in (0, -1, 1_000_001)),
    *((SunTwoLayer, "answers must be in", {"answers": wrong}) for wrong in (0, 1_000_001)),
    (SunTwoLayer, "no public participation", {"participation": "public"}),
    (SunTwoLayer, "largest budget", {"epsilon": 10.5}),
    *((SunTwoLayer, "smallest budget", {"low": wrong}) for wrong in (1.0, -0.1, math.nan)),
    *((factors, "needs numeric answers", {"alphabet": LABELS}) for factors in FACTORIZATIONS),
    *((factors, "no public participation", {"participation": "public"}) for factors in FACTORIZATIONS),
    *((factors, "at least 1", {"dimensions": 0}) for factors in FACTORIZATIONS),
    (MatrixFactorizationPublished, "at least 1", {"tasks": 0}),
    (MatrixFactorizationPublished, "'gaussian' or 'uniform'", {"profiles": "unit"}),
    *((MatrixFactorizationPublished, "ridge", {"ridge": wrong}) for wrong in (-1.0, math.nan, math.inf)),
]


@pytest.mark.parametrize(("mechanism", "rule", "wrong"), REFUSED, ids=str)
def test_a_wrong_setting_is_refused_at_birth(mechanism, rule, wrong):
    """Each rule about the settings of a mechanism refuses what breaks it, and nothing else."""
    mechanism(**SOUND[mechanism])

    with pytest.raises(SettingsError, match=rule):
        mechanism(**(SOUND[mechanism] | wrong))


def response(epsilon: float) -> RandomizedResponse:
    """Return randomized response over two labels, participation protected."""
    return RandomizedResponse(alphabet=LABELS, epsilon=epsilon)


@example(budget=4.6, cells=27)  # the certified loss of the equal share, rounded up, is above the budget
@given(budget=st.floats(0.01, 50), cells=st.integers(1, 500))
def test_the_cells_together_stay_within_the_budget(budget: float, cells: int) -> None:
    """The certified loss of all cells is at most the budget, and leaves less than a millionth of it unspent."""
    mechanism = mechanism_within_budget(response, budget, cells, most=20.0)
    loss = Fraction(mechanism.channel().epsilon) * cells

    assert loss <= Fraction(budget)
    assert min(budget, 20 * cells) * (1 - 1e-6) <= loss


@pytest.mark.parametrize(("budget", "cells"), [(0.0, 3), (-1.0, 3), (float("inf"), 3), (float("nan"), 3), (1.0, 0)])
def test_a_budget_that_is_none_is_refused(budget: float, cells: int) -> None:
    """A budget is positive and finite, and is divided among at least one cell."""
    with pytest.raises(SettingsError):
        mechanism_within_budget(response, budget, cells)
