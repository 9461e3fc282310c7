"""Texts of public results: short and readable, without arrays, however large the result is."""

from typing import Any

import numpy as np
import pytest

import crowdveil as cv

LABELS = cv.Categories(tuple(f"label {code}" for code in range(300)))
MECHANISM = cv.RandomizedResponse(alphabet=LABELS, epsilon=2.0)
TASK, WORKER = (column.ravel() for column in np.indices((400, 300)))
REPORTS = cv.Reports.from_arrays(TASK, WORKER, np.array(LABELS.names)[TASK % 300], alphabet=LABELS)
ESTIMATE = cv.MajorityVote().fit(REPORTS)
CHANNEL = MECHANISM.channel()
TABLE = cv.ChannelTable.by_worker([CHANNEL, CHANNEL.identity(LABELS, "protected")], {"ann": 0, "bob": 1})
SMALL = {"task": [1, 1, 2, 2], "worker": [*"vwvw"], "label": ["no", "no", "yes", "no"]}
COMPARISON = cv.compare(["randomized-response"], SMALL, gold={1: "no", 2: "yes"}, epsilons=[1.0, 2.0])

TEXTS: dict[str, tuple[Any, str]] = {
    "reports": (
        REPORTS,
        "<Reports: 120,000 reports of 300 workers on 400 tasks; "
        "label 0, label 1, label 2, label 3, label 4 and 295 others>",
    ),
    "numbers": (
        cv.Reports.from_arrays([0, 1], [0, 1], [1.5, 2.5], numeric=True),
        "<Reports: 2 reports of 2 workers on 2 tasks; numbers>",
    ),
    "estimate": (ESTIMATE, "<Estimate by majority-vote: 400 tasks, 300 workers, "),
    "workers": (ESTIMATE.workers, "<WorkerTable: ability of 300 workers>"),
    "channel": (CHANNEL, "label 4 and 296 others; epsilon = 2 per cell, participation protected>"),
    "channel table": (TABLE, "2 channels for label 0, label 1, label 2, label 3, label 4 and 295 others; "),
    "assignment": (
        cv.Assignment.from_arrays(TASK, WORKER),
        "<Assignment: 120,000 cells of 300 workers and 400 tasks>",
    ),
    "comparison": (COMPARISON, "<Comparison: 3 rows; unprotected, randomized-response>"),
}


@pytest.mark.parametrize(("result", "text"), TEXTS.values(), ids=TEXTS)
def test_a_result_shows_what_it_is_in_one_short_line(result: Any, text: str) -> None:
    """The representation has sizes and names, at most 250 characters, and no array."""
    assert text in repr(result)
    assert len(repr(result)) <= 250
    assert "array(" not in str(result) + repr(result)
