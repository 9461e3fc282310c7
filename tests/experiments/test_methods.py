"""Comparison of methods: log-loss by hand, and the published tables."""

import math
import re
from pathlib import Path

import pytest
from experiments.methods.__main__ import PAGE, TABLE
from experiments.methods.comparison import CONSTANT, RESULTS, SETS, Row, log_loss
from experiments.methods.tables import by_set, summary
from experiments.rows import read_rows

from crowdveil import MajorityVote, Reports
from crowdveil.inference.scores.gold_errors import align_gold


def test_log_loss_equals_that_by_hand() -> None:
    """Three tasks: confidence 1 and right, confidence 3/4 and wrong, confidence 1/2 and half right."""
    answers = [*[("s", w, "a") for w in range(4)], *[("t", w, "a" if w else "b") for w in range(4)]]
    answers += [("u", 0, "a"), ("u", 1, "b")]
    estimate = MajorityVote().fit(Reports.from_arrays(*zip(*answers, strict=True)))
    aligned = align_gold(estimate, {"s": "a", "t": "b", "u": "a"})

    assert pytest.approx((math.log(4) + math.log(2)) / 3) == log_loss(aligned)


def test_every_method_has_a_row_for_every_set() -> None:
    """The results are complete: all sets for all methods, the best constant among them."""
    rows = read_rows(RESULTS, Row)

    assert sorted((row.method, row.data) for row in rows) == sorted(
        (method, data) for method in {row.method for row in rows} for data in SETS
    )
    assert CONSTANT in {row.method for row in rows}


def test_published_tables_are_those_of_the_results() -> None:
    """The page and results/methods.md hold the tables that `results/methods.csv` gives."""
    rows, (page,) = read_rows(RESULTS, Row), TABLE.findall(PAGE.read_text("utf-8"))
    tables = re.findall(r"(?:^\|.*\n)+", Path(RESULTS.with_suffix(".md")).read_text("utf-8"), re.MULTILINE)

    assert summary(rows) == page.splitlines()
    assert [summary(rows), by_set(rows)] == [table.splitlines() for table in tables]
