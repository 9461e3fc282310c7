"""Mechanisms for numbers by answers to a task: candidates of a plan are near the best, and the page has the figures."""

from itertools import groupby
from pathlib import Path

import pytest
from experiments.rows import read_rows
from experiments.utility.number_mechanisms import CLOSED, DESIGNED, QUANTIZED, UNPROTECTED, Row, campaign_of, channels

from crowdveil.planning import candidates
from crowdveil.planning.bayes_error import bayes_errors

ROOT = Path(__file__).parents[2]
ROWS: list[Row] = read_rows(ROOT / "experiments" / "utility" / "results" / "number_mechanisms.csv", Row)
SETTINGS = {
    key: {row.mechanism: row for row in rows} for key, rows in groupby(ROWS, lambda row: (row.epsilon, row.answers))
}


def test_every_mechanism_has_a_row_in_every_setting() -> None:
    """There are 22 settings with eight mechanisms and the unprotected answers, all with the same constant."""
    assert 22 == len(SETTINGS)
    assert {(*CLOSED, QUANTIZED, DESIGNED, UNPROTECTED)} == {tuple(rows) for rows in SETTINGS.values()}
    assert {"2.739"} == {f"{row.constant:.3f}" for row in ROWS}
    assert max(row.deviation for row in ROWS) < 0.05


def test_the_plan_has_a_candidate_near_the_best_mechanism() -> None:
    """Without a prior, the best candidate is nowhere more than 5 % worse than the best mechanism."""
    for (epsilon, answers), rows in SETTINGS.items():
        names = {one.name for one in candidates(campaign_of(answers), epsilon)}
        errors = {name: row.error for name, row in rows.items() if name != UNPROTECTED}

        assert min(errors[name] for name in names) <= 1.05 * min(errors.values())


def test_a_table_for_equally_likely_truths_gains_little_where_they_are() -> None:
    """The other candidates of a plan without a prior err nowhere 4 % more than a table chosen for such truths."""
    for (epsilon, answers), rows in SETTINGS.items():
        names = {one.name for one in candidates(campaign_of(answers), epsilon)}

        assert not names & {QUANTIZED, DESIGNED}
        assert min(rows[name].error for name in names) < 1.04 * min(rows[QUANTIZED].error, rows[DESIGNED].error)


def test_many_answers_are_worth_more_through_windows_than_through_blocks() -> None:
    """At 100 answers and epsilon 1 blocks have 1.5 times the error of square wave, and at 5 none is 5 % better."""
    many, few = SETTINGS[1.0, 100], SETTINGS[1.0, 5]

    assert many[QUANTIZED].error > 1.5 * many["square-wave"].error
    assert min(few[name].error for name in ("ogpm", "square-wave")) > 0.95 * few[QUANTIZED].error


@pytest.mark.parametrize(("epsilon", "answers", "mechanism"), [(1.0, 30, "ogpm"), (2.0, 3, DESIGNED)])
def test_a_row_is_measured_again(epsilon: float, answers: int, mechanism: str) -> None:
    """The program gives the error of the row."""
    campaign = campaign_of(answers)
    found = bayes_errors(campaign, channels(campaign, epsilon)[mechanism])

    assert SETTINGS[epsilon, answers][mechanism].error == pytest.approx(found.known_classes, rel=1e-3)


def test_the_page_has_the_figures() -> None:
    """The table on the page on planning has the rounded errors of its settings."""
    text = (ROOT / "docs" / "explanation" / "planning.md").read_text("utf-8")
    head, rule, *lines = text[text.index("| epsilon | answers |") :].split("\n\n")[0].splitlines()
    names = [cell.strip(" `") for cell in head.strip("|").split("|")][2:]

    assert rule
    for line in lines:
        epsilon, answers, *shown = [float(cell) for cell in line.strip("|").split("|")]
        errors = [SETTINGS[epsilon, int(answers)][name].error for name in names]
        assert errors == pytest.approx(shown, abs=0.0051)
