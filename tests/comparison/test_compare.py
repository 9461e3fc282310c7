"""Comparison of mechanisms: rows equal to fits by hand, beside the best constant and the unprotected answers."""

from collections.abc import Callable
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from crowdveil import Categories, DawidSkene, HierarchicalDawidSkene, MajorityVote, Reports, Scale, compare
from crowdveil.comparison.compare import Comparison
from crowdveil.errors import SettingsError
from crowdveil.inference.scores.metrics import score
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.randomness import seeded
from crowdveil.simulate import Crowd, categorical_crowd, numeric_crowd, perturb_reports

LABELS = Categories(("no", "yes"))


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    """Return a crowd of 60 workers on 80 tasks."""
    return categorical_crowd(workers=60, tasks=80, labels=LABELS, sparsity=0.5, source=seeded(1))


@pytest.fixture(scope="module")
def comparison(crowd: Crowd) -> Comparison:
    """Return randomized response at two epsilons, by name."""
    return compare(["randomized-response"], crowd, epsilons=(1.0, 3.0), seed=5)


def test_rows_are_those_of_fits_by_hand(crowd: Crowd, comparison: Comparison) -> None:
    """Errors are scores of the default method on reports with the same seed, and on unprotected answers."""
    plain = score(HierarchicalDawidSkene().fit(crowd.answers), crowd.gold)
    for epsilon, row in zip((None, 1.0, 3.0), comparison.rows, strict=True):
        scored = plain
        if epsilon is not None:
            mechanism = RandomizedResponse(alphabet=LABELS, epsilon=epsilon)
            reports = perturb_reports(crowd.answers, mechanism, seeded(5))
            scored = score(HierarchicalDawidSkene().fit(reports, channel=mechanism.channel()), crowd.gold)

        assert (scored.error, plain.error, plain.baseline) == (row.error, row.unprotected, row.constant_error)
        assert epsilon == row.requested


def test_a_private_row_names_epsilon_unit_and_participation(comparison: Comparison) -> None:
    """Exact epsilons per cell and per worker, with participation, stand in every private row."""
    for row in comparison.rows[1:]:
        assert ("cell", "protected") == (row.unit, row.participation)
        assert row.exact is not None
        assert row.exact_worker is not None
        assert row.exact_worker >= 79 * row.exact


def test_mechanisms_are_values_names_or_functions(crowd: Crowd) -> None:
    """A value stays as it is; names and functions of epsilon are built at every epsilon."""
    made: Callable[[float], Any] = lambda epsilon: RandomizedResponse(alphabet=LABELS, epsilon=epsilon)  # noqa: E731
    found = compare([made(0.5), "randomized-response", made], crowd, epsilons=(1.0, 2.0), methods=["majority-vote"])

    assert [None, 0.5, 1.0, 2.0, 1.0, 2.0] == [row.requested for row in found.rows]
    assert found.rows[2].error == found.rows[4].error


def test_methods_are_names_or_estimators(crowd: Crowd) -> None:
    """Every method has a row for unprotected answers and one per mechanism; methods without channels read reports."""
    found = compare(["randomized-response"], crowd, epsilons=[2.0], methods=["weighted-vote", MajorityVote()])

    assert ["weighted-vote", "majority-vote", "weighted-vote", "majority-vote + channel"] == [
        row.method for row in found.rows
    ]


def test_numbers_are_compared_with_the_mean_too() -> None:
    """On a scale the weighted mean stands beside the default; sums are compared with the mean's error."""
    numbers = numeric_crowd(workers=40, tasks=20, sparsity=0.5, scale=Scale(0, 4), source=seeded(1))

    found = compare(["randomized-response", "matrix-factorization"], numbers, epsilons=[3.0])

    methods = [(row.mechanism, row.method) for row in found.rows]
    assert ("randomized-response", "gaussian + channel") in methods
    assert ("unprotected", "weighted-mean") in methods
    assert ("matrix-factorization", "factorization-mean") == methods[-1]
    assert all("mae" == row.error_name for row in found.rows)


def test_frames_text_and_pictures_have_the_rows(comparison: Comparison) -> None:
    """Frames have one line per row; text, card and plot say that it is a simulation and show constant and errors."""
    first, errors = comparison.rows[0], [row.error for row in comparison.rows]

    assert errors == comparison.to_pandas()["error"].tolist() == comparison.to_polars()["error"].to_list()
    assert 3 == str(comparison).count("hierarchical-dawid-skene")
    card = " ".join(ElementTree.fromstring(comparison._repr_html_()).itertext())
    for shown in (str(comparison), card):
        assert "Simulation only, no privacy" in shown
        assert f"Best constant {first.constant}: error {first.constant_error:.3g} on 80 gold tasks" in shown
    ax = Figure().subplots()
    assert ax is comparison.plot(ax)
    assert [row.error for row in comparison.rows[1:]] == list(cast(Any, ax.lines[0].get_ydata()))


def test_too_few_steps_are_visible(crowd: Crowd) -> None:
    """A row of a fit that did not converge says so."""
    found = compare(["randomized-response"], crowd, epsilons=[2.0], methods=[DawidSkene(max_steps=1)])

    assert 2 == str(found).count("NOT CONVERGED")


def test_nothing_to_compare_is_refused(crowd: Crowd) -> None:
    """No mechanism, no epsilon, an unknown name and free numbers are refused."""
    free = Crowd(
        answers=Reports.from_arrays([1], [1], [0.5], numeric=True),
        truth=crowd.truth[:1],
        quality=crowd.quality[:1],
        quality_name="sigma",
    )
    with pytest.raises(SettingsError, match="needs a mechanism and an epsilon"):
        compare([], crowd)
    with pytest.raises(SettingsError, match="needs a mechanism and an epsilon"):
        compare(["randomized-response"], crowd, epsilons=[])
    with pytest.raises(SettingsError, match="a mechanism must be one of"):
        compare(["randomised"], crowd)
    with pytest.raises(SettingsError, match="need labels or numbers on a scale"):
        compare(["laplace"], free)


def test_a_frame_with_gold_is_a_crowd() -> None:
    """A frame of answers and its gold give the rows of the same answers as a crowd; a frame alone is refused."""
    crowd = categorical_crowd(workers=9, tasks=20, labels=Categories(("a", "b")), sparsity=0.0, source=seeded(3))
    answers = crowd.answers
    frame = {
        "task": [str(answers.tasks[task]) for task in answers.task],
        "worker": [str(answers.workers[worker]) for worker in answers.worker],
        "label": [answers.alphabet.names[value] for value in answers.value],
    }
    lists: dict[str, Any] = {
        "alphabet": answers.alphabet,
        "tasks": answers.tasks.tolist(),
        "workers": answers.workers.tolist(),
    }
    found = compare(["randomized-response"], frame, gold=crowd.gold, epsilons=[2.0], **lists)

    assert compare(["randomized-response"], crowd, epsilons=[2.0]).rows == found.rows
    with pytest.raises(SettingsError, match="must have answers and gold"):
        compare(["randomized-response"], frame)


def test_a_pair_that_is_not_run_is_named() -> None:
    """Sets of labels and sums are not read by every method: text, card, frame and table name the pairs and reasons."""
    numbers = numeric_crowd(workers=40, tasks=20, sparsity=0.5, scale=Scale(0, 9), source=seeded(1))
    found = compare(
        ["quantized-response", "matrix-factorization", "laplace"], numbers, epsilons=[1.0], methods=["gaussian"]
    )
    rows = {(row.mechanism, row.estimator) for row in found.rows if row.requested is not None}
    missing = {(pair.mechanism, pair.method): pair.reason for pair in found.not_run}

    assert {(one, "weighted-mean") for one in ("quantized-response", "matrix-factorization")} | {
        ("matrix-factorization", "gaussian")
    } == set(missing)
    assert not rows & set(missing)
    names = ("quantized-response", "matrix-factorization", "laplace")
    asked = {(mechanism, method) for mechanism in names for method in ("gaussian", "weighted-mean")}
    assert asked == (rows | set(missing)) - {("matrix-factorization", "factorization-mean")}
    sentence = "Not run: weighted-mean with quantized-response: reports are sets or intervals, and would be read"
    for shown in (str(found), found._repr_html_(), found.to_latex()):
        assert sentence in shown
    frame = found.to_pandas()
    assert len(found.rows) + len(found.not_run) == len(frame)
    assert frame["error"].isna().tolist() == (frame["not_run"] != "").tolist()


def test_a_method_is_given_once(crowd: Crowd) -> None:
    """Two estimators of one name would have one row, so they are refused."""
    with pytest.raises(SettingsError, match="each method is given once"):
        compare(["randomized-response"], crowd, methods=[DawidSkene(), DawidSkene(max_steps=3)])
