"""Answers that the tests of crowd-kit's interface share."""

import pandas as pd


def frame(columns: str, **answers: str) -> pd.DataFrame:
    """Return answers of each worker to the tasks a, b, ...; `columns` names the tasks, `.` is no answer."""
    rows = [
        (task, worker, label)
        for worker, labels in answers.items()
        for task, label in zip(columns, labels, strict=True)
        if label != "."
    ]
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


THREE = frame("abc", v="xxy", w="xyy", u="yyx")
"""Majorities x, y, y; v and w agree with 2 and 3 of them, u with 1."""
