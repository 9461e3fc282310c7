"""Table of audits: every mechanism has a row, no bound exceeds a proof, and the page shows the table."""

from pathlib import Path

from experiments.audit import bounds

from crowdveil.mechanisms import MECHANISMS

PAGE = Path(__file__).parent.parent.parent / "docs" / "explanation" / "audits.md"


def test_every_mechanism_has_a_row():
    """The registry and the cases of the table name the same mechanisms; the saved rows are those of the cases."""
    cases = [(name, mechanism.name) for name, mechanism, *_ in bounds.mechanisms()]
    releases = [name for name, *_ in bounds.releases()]

    assert set(MECHANISMS) == {mechanism for _, mechanism in cases}
    assert [name for name, _ in cases] + releases + [bounds.COUNTS] == [row.name for row in bounds.read()]


def test_no_bound_exceeds_the_exact_loss():
    """Exactly the claims below the exact loss are refuted; a million draws of a cell of epsilon 1 bound it by 0.97."""
    rows = bounds.read()

    assert [] == [row.name for row in rows if row.bound > row.exact]
    assert [] == [row.name for row in rows if row.refuted != (row.claimed < row.exact * (1 - 1e-9))]
    assert all(row.bound >= 0.97 for row in rows if row.draws == bounds.CELL_DRAWS and row.exact > 0.99)


def test_the_page_shows_the_table():
    """The table of the page is that of the saved rows."""
    assert bounds.table(bounds.read()) in PAGE.read_text("utf-8")


def test_a_release_of_the_table_is_drawn_anew():
    """The functions that release claims accept both inputs of their pair, and give numbers within the bounds."""
    for _, method, first, second in bounds.releases():
        for claims in (first, second):
            assert all(0 <= value <= 100 for value in bounds.release_of(method)(claims))
