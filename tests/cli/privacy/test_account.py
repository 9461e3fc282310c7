"""`crowdveil account`: claimed and exact epsilon, per cell and per worker, over rounds."""

import pytest

from crowdveil.channels.rounding import format_bound, sum_rounded_up
from crowdveil.cli.display import format_number
from tests.cli.conftest import Run, RunJson


def test_rows_name_unit_participation_and_rounds(run: Run, run_json: RunJson) -> None:
    """Four rows for three rounds: cell and worker, once and over all rounds; the table holds every figure."""
    words = ("account", "--mechanism", "two-layer", "--epsilon", 1, "--labels", "no,yes", "--tasks", 40, "--rounds", 3)
    table, data = " ".join(run(*words).stdout.split()), run_json(*words)
    rows = data["accounts"]

    assert [("cell", 1), ("worker", 1), ("cell", 3), ("worker", 3)] == [(row["unit"], row["rounds"]) for row in rows]
    assert sum_rounded_up([(rows[0]["exact"], 3)]) == rows[2]["exact"]
    for row in rows:
        assert (
            f"exact {format_bound(row['exact'])}, claimed {format_number(row['claimed'])} (per {row['unit']}" in table
        )
    assert rows[0]["exact"] > rows[0]["claimed"] == 1.0
    assert f"because {rows[0]['reason']}" in table


def test_an_infinite_loss_is_a_word(run: Run, run_json: RunJson) -> None:
    """What promises nothing is "none (infinite)" in the table and "infinity" in JSON."""
    words = ("account", "--mechanism", "matrix-factorization-published", "--epsilon", 1, "--scale", "0:9")
    more = ("--dimensions", 2, "--tasks", 10)

    assert "exact none (infinite), claimed 1 (per cell" in run(*words, *more).stdout
    assert ["infinity"] * 2 == [row["exact"] for row in run_json(*words, *more)["accounts"]]


def test_the_mechanism_row_shows_given_settings_only(run: Run, run_json: RunJson) -> None:
    """Defaults are left out and epsilon is rounded up to four digits; JSON keeps every parameter."""
    designed = ("account", "--mechanism", "designed", "--epsilon", 1, "--labels", "a,b,c", "--tasks", 5)
    quantized = ("account", "--mechanism", "quantized-response", "--epsilon", "1.23456", "--scale", "1:3", "--tasks", 5)

    assert "designed (epsilon=1, outputs=" in run(*designed).stdout
    assert "quantized-response (epsilon=1.235, cuts=(1, 2))" in run(*quantized).stdout
    assert {"epsilon", "cuts", "blocks"} == run_json(*quantized)["parameters"].keys()


@pytest.mark.slow
def test_delta_adds_the_composed_loss(run: Run, run_json: RunJson) -> None:
    """With --delta the exact, advanced and summed epsilon over all rounds stand side by side; without it none does."""
    words = ("account", "--mechanism", "randomized-response", "--epsilon", 0.1, "--labels", "no,yes")
    more = ("--tasks", 500, "--rounds", 2)
    cell, worker = run_json(*words, *more, "--delta", 1e-6)["compositions"]

    assert [("cell", 1, 2), ("worker", 500, 2)] == [
        (row["unit"], row["cells"], row["rounds"]) for row in (cell, worker)
    ]
    assert worker["exact"] < worker["advanced"] < worker["pure"] <= 100.0
    shown = run(*words, *more, "--delta", 1e-6).stdout
    assert f"epsilon {format_bound(worker['exact'])} at delta 1e-06, by exact composition (larger: sum 100" in shown
    assert {"exact"} == {cell["least"], worker["least"]}
    assert [] == run_json(*words, *more)["compositions"]
    assert "delta must be in" in run(*words, *more, "--delta", 2, code=1).stderr


def test_a_bound_above_the_sum_is_never_the_answer(run: Run, run_json: RunJson) -> None:
    """Two large cells: the sum is named, advanced composition stands behind it as larger, and JSON names the member."""
    words = ("account", "--mechanism", "matrix-factorization", "--epsilon", 8, "--scale", "0:2", "--tasks", 2)
    rows = run_json(*words, "--delta", 1e-6)["compositions"]
    shown = " ".join(run(*words, "--delta", 1e-6).stdout.split())

    for row in rows:
        pure, advanced = format_bound(row["pure"]), format_bound(row["advanced"])
        assert row["exact"] <= row["pure"] < row["advanced"]
        assert row[row["least"]] == min(row["pure"], row["exact"], row["advanced"])
        text = f"epsilon {pure} at delta 0, the sum; no less at delta 1e-06 (larger: advanced composition {advanced})"
        assert text in shown
