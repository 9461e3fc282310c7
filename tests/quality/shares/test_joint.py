"""Joint tables of two questions: values by hand, a likelihood in loops, and the price of the combined question."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

import crowdveil
from crowdveil import Categories, RandomizedResponse, Reports, seeded
from crowdveil.errors import SettingsError
from crowdveil.quality.shares.joint import SIGNS, OddsLikelihood, odds_ratio, plackett_table
from crowdveil.quality.shares.score import score_estimates
from tests.quality.shares.loops import randomized_response

PAIRS = sorted(itertools.product(range(3), repeat=2), key=lambda pair: (max(pair) > 1, pair))
"""Pairs of answers (yes, no, no answer), the four cells of the table first."""
COUNTS = np.array([110, 70, 40, 90, 260, 80, 40, 80, 60], dtype=float)
"""Reports of two questions at epsilon 2 each; rows are those of the first."""


def crossed(epsilon: float) -> NDArray[np.float64]:
    """Return P(pair of reports | pair of answers), as loops."""
    one = randomized_response(3, epsilon)
    return np.array([[one[a][y] * one[b][z] for y in range(3) for z in range(3)] for a, b in PAIRS])


def test_the_odds_ratio_has_its_known_digits() -> None:
    """ln OR is 3.6021 with standard error .7273."""
    ratio, error = odds_ratio(COUNTS, crossed(2.0))

    assert (3.6021, 0.7273) == (round(math.log(ratio), 4), round(error, 4))


@pytest.mark.parametrize(("epsilon", "needed"), [(0.5, (53_225, 1_419)), (1.0, (2_995, 229)), (2.0, (229, 57))])
def test_one_combined_question_needs_fewer_people(epsilon: float, needed: tuple[int, int]) -> None:
    """n times the variance of ln OR for the table .1 .1 .2 .6: two questions, and one with four labels at 2 epsilon."""
    cells, found = np.array([[0.1, 0.1], [0.2, 0.6]]), []
    full = np.zeros((3, 3))
    full[:2, :2], full[:2, 2], full[2, :2], full[2, 2] = 0.64 * cells, 0.16 * cells.sum(1), 0.16 * cells.sum(0), 0.04
    two = np.array([full[pair] for pair in PAIRS]), crossed(epsilon)
    one = np.append(0.64 * cells.ravel(), 0.36), np.array(randomized_response(5, 2 * epsilon))
    for shares, table in (two, one):
        slope = np.append(SIGNS / shares[:4], np.zeros(len(shares) - 4))
        found.append(slope @ np.linalg.inv(table / (shares @ table) @ table.T) @ slope)

    assert needed == tuple(round(value) for value in found)


def test_the_table_of_plackett_has_its_margins_and_odds_ratio() -> None:
    """Margins and odds ratio of the table are those it was made from, also near 1 and far from it."""
    for ratio in (1e-4, 0.3, 1.0, 1 + 1e-7, 5.0, 1e4):
        cells = plackett_table(0.3, 0.6, ratio)

        assert cells[0] + cells[1] == pytest.approx(0.3)
        assert cells[0] + cells[2] == pytest.approx(0.6)
        assert cells[0] * cells[3] / cells[1] / cells[2] == pytest.approx(ratio, rel=1e-4)


@pytest.mark.slow
def test_the_profile_is_that_of_loops() -> None:
    """With the odds ratio held, a search without gradients over the likelihood in loops finds the same maximum."""
    table, likelihood = crossed(2.0).tolist(), OddsLikelihood(COUNTS, crossed(2.0))

    def loss(free: Any, ratio: float) -> float:
        rows, columns = (1 / (1 + math.exp(-value)) for value in free[:2])
        weights = [1.0, *map(math.exp, free[2:])]
        cells = plackett_table(rows, columns, ratio)
        shares = [weight / sum(weights) for weight in (*(weights[0] * cells), *weights[1:])]
        total = 0.0
        for place, count in enumerate(COUNTS):
            total -= count * math.log(sum(share * row[place] for share, row in zip(shares, table, strict=True)))
        return total

    for log_odds in (2.0, 3.6, 5.0):
        found = minimize(loss, likelihood.start, args=(math.exp(log_odds),), method="Powell", options={"xtol": 1e-9})
        for _ in range(4):
            found = minimize(loss, found.x, args=(math.exp(log_odds),), method="Powell", options={"xtol": 1e-9})
        assert likelihood.value(log_odds) == pytest.approx(-found.fun, abs=1e-3)


def two_questions(people: int, epsilon: float, seed: int) -> tuple[Reports, Any]:
    """Return reports of two questions; 30, 10, 20 and 40 % of the people give the four pairs of answers."""
    rng = np.random.default_rng(seed)
    pairs = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])[rng.choice(4, size=people, p=(0.3, 0.1, 0.2, 0.4))]
    channel = RandomizedResponse(alphabet=Categories(("yes", "no")), epsilon=epsilon).channel()
    sent = channel.sample(np.where(rng.random((people, 2)) < 0.9, pairs, 2).ravel(), seeded(seed))
    kept, worker = sent < 2, np.repeat(np.arange(people), 2)
    task, names = np.tile(["drugs", "theft"], people), np.array(["yes", "no"])
    reports = Reports.from_arrays(
        task[kept], worker[kept], names[sent[kept]],
        alphabet=channel.alphabet, tasks=["drugs", "theft"], workers=[*range(people)],
    )  # fmt: skip
    return reports, channel


def test_reports_of_two_questions_give_the_table() -> None:
    """Of 20,000 people at epsilon 3 each cell is held within 4 standard errors, and so is ln 6."""
    reports, channel = two_questions(20_000, 3.0, 4)
    found = crowdveil.joint_share(reports, "drugs", "theft", channel=channel)

    assert (np.abs(found.unclipped - [[0.3, 0.1], [0.2, 0.4]]) < 4 * found.standard_error).all()
    assert abs(math.log(found.odds_ratio / 6)) < 4 * found.log_standard_error < 0.6
    assert found.odds_low < found.odds_ratio < found.odds_high
    assert (20_000, False) == (found.people, found.combined)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0])
def test_a_combined_question_protects_each_answer_at_its_epsilon_alone(epsilon: float) -> None:
    """The certified loss of a change of one of the two answers is that of the whole question, not half of it."""
    made = RandomizedResponse(alphabet=Categories(("both", "first", "second", "neither")), epsilon=epsilon).channel()
    table = made.probabilities
    losses = {
        pair: float(np.log(table[list(pair)].max(axis=0) / table[list(pair)].min(axis=0)).max())
        for pair in itertools.combinations(range(5), 2)
    }

    assert len({round(loss, 12) for loss in losses.values()}) == 1
    assert max(losses.values()) <= made.epsilon + 1e-12 <= epsilon + 1e-9
    assert losses[0, 1] == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize("combined", [True, False])
def test_expected_reports_give_the_table_exactly(combined: bool) -> None:
    """Reports in their expected numbers have the true cells and the true odds ratio, whatever share is silent."""
    cells = np.array([0.05, 0.15, 0.2, 0.6])
    if combined:
        shares, table = np.append(0.7 * cells, 0.3), np.array(randomized_response(5, 2.0))
    else:
        full = np.zeros((3, 3))
        full[:2, :2], full[:2, 2], full[2, :2], full[2, 2] = 0.7 * cells.reshape(2, 2), (0.05, 0.1), (0.02, 0.03), 0.1
        shares, table = np.array([full[pair] for pair in PAIRS]), crossed(1.0)
    counts = 1e6 * shares @ table
    found = score_estimates(counts[None], table, 4, np.full(len(table), 0.95))

    assert np.allclose(found.unclipped[0, :4], cells)
    assert odds_ratio(counts, table)[0] == pytest.approx(cells[0] * cells[3] / cells[1] / cells[2])


def test_a_combined_question_is_read_in_the_order_of_its_cells() -> None:
    """Labels of a combined question are the cells in the order that is given."""
    labels = ["both"] * 30 + ["drugs"] * 10 + ["theft"] * 20 + ["neither"] * 40
    answers = {"task": ["q"] * 100, "worker": [*range(100)], "label": labels}
    found = crowdveil.joint_share(answers, "q", cells=["both", "drugs", "theft", "neither"])

    assert found.combined
    assert np.allclose(found.share, [[0.3, 0.1], [0.2, 0.4]])
    assert found.odds_ratio == pytest.approx(6)
    assert found.odds_low < 6 < found.odds_high
    assert found.p_value < 0.01
    assert "odds ratio 6" in str(found)
    assert "yes, no (drugs): 10.0 %" in str(found)
    assert ["both", "drugs", "theft", "neither"] == found.to_arrow()["label"].to_pylist()


@pytest.mark.parametrize("cells", [None, ["both", "drugs"], ["both", "drugs", "theft", "nobody"]])
def test_the_meaning_of_labels_is_never_guessed(cells: list[str] | None) -> None:
    """Without an order of its four labels, or with another one, a combined question is refused with its labels."""
    answers = {"task": ["q"] * 40, "worker": [*range(40)], "label": ["both", "drugs", "theft", "neither"] * 10}

    with pytest.raises(SettingsError, match="Its labels are both, drugs, neither, theft; name each once, in this"):
        crowdveil.joint_share(answers, "q", cells=cells)


def test_cells_of_two_questions_are_refused() -> None:
    """The labels of a combined question say nothing of two questions."""
    answers = {"task": [*"ab"] * 20, "worker": [n for n in range(20) for _ in "ab"], "label": ["y", "n"] * 20}

    with pytest.raises(SettingsError, match="cells are labels of one combined question"):
        crowdveil.joint_share(answers, "a", "b", cells=["y", "n", "both", "neither"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("a", "c"),
            "a joint table is of tasks of the answers, got 'c'. Tasks are a, b. Name two, or one with four "
            "labels: first='a', second='b'.",
        ),
        (("a", "a"), "a joint table is of two questions"),
        (("a",), "a combined question has four labels"),
        ((), "a joint table is of tasks of the answers, got 'none of 2 tasks'"),
    ],
)
def test_other_questions_are_refused(words: tuple[str, ...], message: str) -> None:
    """An unknown task, one task twice, and two labels in place of four are refused with a hint."""
    answers = {"task": [*"ab"] * 20, "worker": [n for n in range(20) for _ in "ab"], "label": ["y", "n"] * 20}

    with pytest.raises(SettingsError) as refused:
        crowdveil.joint_share(answers, *words)

    assert message in str(refused.value)
    assert refused.value.hint
