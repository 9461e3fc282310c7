"""The conclusion of the demo follows from the rows by a fixed rule, and a chart has at most six lines."""

from dataclasses import replace

import pytest

from crowdveil.comparison.trials import ASSIGNED, PROTECTED, Row
from crowdveil.demo.chart import IGNORED, MAX_LINES, chart_lines
from crowdveil.demo.conclusion import conclusion_text
from crowdveil.demo.crowds import DemoCrowd
from tests.demo.test_demo import small_crowd

METHOD = "dawid-skene + channel"
PLAIN = Row(
    crowd="small", mechanism="unprotected", requested=None, claimed=None, exact=None, exact_worker=None, unit="cell",
    participation="-", reason="", method="dawid-skene", channel_used=False, error=0.1, error_name="error_rate",
    unprotected=0.1, constant="no", constant_error=0.5, correlation=0.5, scored=40, reports=9, steps=1,
    converged=True,
)  # fmt: skip


def private(epsilon: float, error: float, **fields: object) -> Row:
    """Return a row of randomized response."""
    usual = {"participation": PROTECTED, "mechanism": "randomized-response", "method": METHOD, "channel_used": True}
    epsilons = {"requested": epsilon, "claimed": epsilon, "exact": epsilon}
    return replace(PLAIN, error=error, **{**usual, **epsilons, **fields})  # type: ignore[arg-type]


@pytest.fixture
def crowd() -> DemoCrowd:
    """A small crowd with labels."""
    return small_crowd()


def test_the_smallest_epsilon_with_half_of_the_gain_is_chosen(crowd: DemoCrowd) -> None:
    """Half of the gain is an error of 0.3 here: epsilon 2 reaches it, epsilon 1 does not."""
    text = conclusion_text(crowd, [PLAIN, private(1.0, 0.31), private(3.0, 0.2), private(2.0, 0.3)])

    assert "choose randomized-response at epsilon 2 per cell, participation protected" in text
    assert "error 0.300, where the best constant has 0.500 and unprotected answers have 0.100" in text


@pytest.mark.parametrize(
    "fields",
    [{"exact": 1.5}, {"exact": float("inf")}, {"participation": "public"}, {"method": "majority-vote"}],
    ids=str,
)
def test_false_claims_and_public_participation_are_not_chosen(crowd: DemoCrowd, fields: dict[str, object]) -> None:
    """Rows with a false claim, visible participation or another method do not count."""
    text = conclusion_text(crowd, [PLAIN, private(1.0, 0.2, **fields), private(3.0, 0.2)])

    assert "at epsilon 3 per cell" in text


def test_assigned_cells_are_a_weaker_choice(crowd: DemoCrowd) -> None:
    """A smaller epsilon on assigned cells is named with its weaker guarantee; alone it is the only advice."""
    assigned = private(1.0, 0.25, participation=ASSIGNED)

    assert "at epsilon 1 per cell among assigned cells only" in conclusion_text(
        crowd, [PLAIN, private(3.0, 0.2), assigned]
    )
    assert "no epsilon shown" in conclusion_text(crowd, [PLAIN, private(3.0, 0.4), assigned])
    assert "Collect more answers for each task" in conclusion_text(crowd, [PLAIN, private(3.0, 0.4)])


def test_answers_that_do_not_beat_the_constant_give_no_choice(crowd: DemoCrowd) -> None:
    """If unprotected answers are no better than the constant, no mechanism is recommended."""
    assert "choose" not in conclusion_text(crowd, [replace(PLAIN, error=0.5), private(1.0, 0.2)])


def test_a_chart_has_at_most_six_lines(crowd: DemoCrowd) -> None:
    """Of eight methods, five mechanisms and assigned cells, four lines are drawn besides both references."""
    rows = [private(epsilon, 0.3, method=f"method-{k} + channel") for k in range(8) for epsilon in (1.0, 3.0)]
    rows += [private(epsilon, 0.2, mechanism=f"mechanism-{k}") for k in range(5) for epsilon in (1.0, 3.0)]
    rows += [private(epsilon, 0.4) for epsilon in (1.0, 3.0)]
    rows += [private(epsilon, 0.6, method="majority-vote", channel_used=False) for epsilon in (1.0, 3.0)]
    rows += [private(epsilon, 0.1, participation=ASSIGNED) for epsilon in (1.0, 3.0)]
    rows += [private(epsilon, 0.0, mechanism="false", exact=9.0) for epsilon in (1.0, 3.0)]
    names = [name for name, _ in chart_lines(crowd, [PLAIN, *rows])]

    assert MAX_LINES == len(names) + 2
    assert ["dawid-skene", IGNORED] == names[:2]
    assert "assigned cells" == names[-1]
    assert "false" not in names
