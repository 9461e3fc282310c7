"""Settings of mechanisms, and their descriptions."""

from typing import Any

import pytest

from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms import MECHANISMS, SunTwoLayer, TwoLayer
from crowdveil.privacy.mechanism_settings import MechanismSettings, build_mechanism, describe
from crowdveil.simulate.channel_assignment import ChannelAssignment
from crowdveil.simulate.perturbed_collection import expected_rows, perturb_collection

LABELS, GRID = Categories(("no", "yes")), Scale(0, 9)


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_registered_mechanism_is_built_by_name(name: str) -> None:
    """A name, an epsilon and, where needed, dimensions give an instance of the class registered under that name."""
    dimensions = 2 if name == "matrix-factorization-published" else None
    built = build_mechanism(MechanismSettings(name=name, epsilon=1.5, dimensions=dimensions), GRID, tasks=7)

    assert MECHANISMS[name] is type(built)
    assert 1.5 == pytest.approx(built.epsilon, rel=1e-12)
    assert describe(built).startswith(f"{name} (")


def test_two_layer_takes_epsilon_or_both_ends() -> None:
    """Epsilon, epsilon with low, or low and high; the number of answers is that of the tasks unless given."""
    by_epsilon = build_mechanism(MechanismSettings(name="two-layer", epsilon=1.0, low=0.2), LABELS, tasks=12)
    by_ends = build_mechanism(MechanismSettings(name="two-layer", low=0.2, high=0.5, answers=3), LABELS, tasks=12)

    assert isinstance(by_epsilon, TwoLayer)
    assert isinstance(by_ends, TwoLayer)
    assert (0.2, 12) == (by_epsilon.low, by_epsilon.answers)
    assert (0.2, 0.5, 3) == (by_ends.low, by_ends.high, by_ends.answers)


def test_suns_two_layer_takes_a_smallest_budget_and_counts_all_tasks() -> None:
    """The smallest budget is 0 and the number of cells that of the tasks, unless given."""
    usual = build_mechanism(MechanismSettings(name="sun-two-layer", epsilon=1.0), LABELS, tasks=12)
    given = build_mechanism(MechanismSettings(name="sun-two-layer", epsilon=1.0, low=0.4, answers=30), LABELS, tasks=12)

    assert SunTwoLayer(alphabet=LABELS, epsilon=1.0, answers=12) == usual
    assert SunTwoLayer(alphabet=LABELS, epsilon=1.0, low=0.4, answers=30) == given


@pytest.mark.parametrize(
    ("alphabet", "wanted"),
    [
        (LABELS, {"name": "nonsense", "epsilon": 1.0}),
        (LABELS, {"name": "one-layer"}),
        (LABELS, {"name": "two-layer"}),
        (LABELS, {"name": "two-layer", "high": 0.5}),
        (LABELS, {"name": "two-layer", "epsilon": 1.0, "low": 0.1, "high": 0.5}),
        (LABELS, {"name": "sun-two-layer", "epsilon": 1.0, "low": 1.0}),
        (LABELS, {"name": "laplace", "epsilon": 1.0}),
        (LABELS, {"name": "matrix-factorization", "epsilon": 1.0}),
        (GRID, {"name": "matrix-factorization", "epsilon": 1.0, "participation": "public"}),
        (GRID, {"name": "matrix-factorization-published", "epsilon": 1.0}),
        (GRID, {"name": "laplace", "epsilon": 1.0, "null_value": "middle"}),
    ],
    ids=str,
)
def test_invalid_settings_are_refused(alphabet: Alphabet, wanted: dict[str, Any]) -> None:
    """Unknown names, missing or contradictory settings, and unfit alphabets raise SettingsError."""
    with pytest.raises(SettingsError):
        build_mechanism(MechanismSettings(**wanted), alphabet, tasks=5)


def test_one_cell_sends_one_report() -> None:
    """Answers that repeat a pair are refused for every mechanism, matrix factorization included."""
    answers = Reports.from_arrays(["a", "a"], ["u", "u"], [1, 2], alphabet=None, numeric=True, duplicates="all")
    coded = Reports(answers.task, answers.worker, GRID.encode(answers.value), answers.tasks, answers.workers, GRID)
    for name in ("matrix-factorization", "randomized-response"):
        mechanism = build_mechanism(MechanismSettings(name=name, epsilon=1.0), GRID, tasks=1)
        with pytest.raises(ReportsError, match="one cell sends one report"):
            perturb_collection(coded, ChannelAssignment(mechanism=mechanism), seed=1)


def test_foreseen_rows_follow_from_the_lists_where_participation_is_protected() -> None:
    """Answers change what is foreseen where everyone sees who answered, and nowhere else."""
    one, four = (
        Reports.from_arrays(
            list("abcd")[:rows],
            list("uvwx")[:rows],
            ["no"] * rows,
            alphabet=LABELS,
            tasks=list("abcd"),
            workers=list("uvwx"),
        )
        for rows in (1, 4)
    )
    foreseen = {}
    for participation in ("protected", "public"):
        wanted = MechanismSettings(name="randomized-response", epsilon=1.0, participation=participation)  # type: ignore[arg-type]
        setup = ChannelAssignment(mechanism=build_mechanism(wanted, LABELS, tasks=4))
        foreseen[participation] = [expected_rows(answers, setup) for answers in (one, four)]

    assert foreseen["protected"][0] == foreseen["protected"][1] > 4
    assert [1, 4] == foreseen["public"]


def test_too_many_reports_are_refused_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every mechanism that makes rows is held to the same limit (here: 3 reports)."""
    monkeypatch.setattr("crowdveil.simulate.perturbed_collection.MAX_REPORTS", 3)
    answers = Reports.from_arrays(list("abcd"), list("uvwx"), ["no", "yes", "no", "yes"], alphabet=LABELS)
    for name in ("two-layer", "randomized-response"):
        mechanism = build_mechanism(MechanismSettings(name=name, epsilon=1.0), LABELS, tasks=4)
        with pytest.raises(SettingsError, match="at most 3 reports"):
            perturb_collection(answers, ChannelAssignment(mechanism=mechanism), seed=1)
