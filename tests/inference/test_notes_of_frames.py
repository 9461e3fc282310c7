"""Notes on answers in memory: those that a file of the same answers has, and gold in mapped labels."""

import warnings
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import crowdveil as cv

MAKERS: dict[str, Any] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "arrow": pa.table,
    "dict": dict,
    "duckdb": lambda cells: duckdb.connect().from_arrow(pa.table(cells)),
}
SIMILAR = {
    "task": ["q1", "q1 ", "Q1", "q2", "q2", "q2", "q2"],
    "worker": ["ann", "bob", "cyd", "ann", "bob ", "bob", "cyd"],
    "label": ["yes", "yes", "no", "no", "no", "yes", "no"],
}
SHARED = {
    "task": [1, 1, 1, 2, 2, 2],
    "worker": [*"abcabc"],
    "label": ["cat;dog", "dog;cat", "dog", "cat", "cat;dog", "dog"],
}
CODED = {"task": [*range(6)] * 3, "worker": [w for w in "abc" for _ in range(6)], "label": [*"YNYNYN"] * 3}
CASES = {
    "names": (SIMILAR, ("These are read as different tasks: 'Q1' (1 answer), 'q1' (1 answer), 'q1 ' (1 answer)",
                        "These are read as different workers: 'bob' (2 answers), 'bob ' (1 answer)",
                        "If these names mean the same, 1 answer of a worker to a task would be repeated, "
                        "such as (q2, bob).")),
    "separators": (SHARED, ("Read as one label each: 'cat;dog', 'dog;cat'. If they are several choices, state the "
                            "separator: multiple=';'.",)),
}  # fmt: skip


def notes_of(frame: Any, **options: Any) -> list[str]:
    """Return the warnings of truths by majority vote."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cv.aggregate(frame, "majority-vote", **options)
    return [str(one.message) for one in caught if issubclass(one.category, UserWarning)]


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("case", CASES)
def test_frames_have_the_notes_of_files(tmp_path: Path, kind: str, case: str) -> None:
    """Names that differ in spaces or case, their repeated answers, and shared separators are named in every frame."""
    cells, expected = CASES[case]
    found = notes_of(MAKERS[kind](cells))

    assert list(expected) == [note if case == "separators" else note.removesuffix(". Use one spelling for each task.")
                              .removesuffix(". Use one spelling for each worker.") for note in found]  # fmt: skip


def test_other_column_names_and_verbs_have_these_notes() -> None:
    """Columns of other names are looked at too, and `agreement`, `review` and `infer` say the same."""
    other = {f"my {name}": cells for name, cells in SIMILAR.items()}
    columns = {name: f"my {name}" for name in SIMILAR}

    assert notes_of(SIMILAR) == notes_of(other, **columns)
    assert notes_of(SIMILAR) == list(cv.infer(SIMILAR, "majority-vote").notes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cv.agreement(SIMILAR)
    assert notes_of(SIMILAR) == [str(one.message) for one in caught][:3]


def test_stated_readings_have_no_note() -> None:
    """A stated separator, stated labels, and names that differ more than in spelling are not warned of."""
    assert [] == notes_of(SHARED, multiple="none")
    assert [] == notes_of({"task": ["a", "b"], "worker": [1, 2], "label": ["x", "y"]})


@pytest.mark.parametrize("kind", ["gold frame", "mapping", "score"])
@pytest.mark.parametrize("spelling", ["Y", "y", "yes", "Yes "])
def test_a_map_of_labels_applies_to_gold(kind: str, spelling: str) -> None:
    """Known truths may have the labels before or after the map, and their spellings if these are merged."""
    reading: dict[str, Any] = {"map_labels": {"Y": "yes", "y": "yes", "N": "no"}, "merge_labels": True}
    known = {task: spelling if task % 2 == 0 else "N" for task in range(6)}
    frame = pd.DataFrame({"task": list(known), "truth": list(known.values())})
    gold = frame if kind == "gold frame" else known
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cv.infer(CODED, "majority-vote", gold=gold, **reading)

    assert ({"yes", "no"}, 6) == (set(found.estimate.alphabet.names), found.estimate.gold_used)
