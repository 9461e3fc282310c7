"""Files of `crowdveil share` on neighbouring inputs: nothing but numbers that follow from reports may change."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import RunJson, write

OF_REPORTS = {"share", "unclipped", "low", "high", "standard_error", "lowest", "highest", "reports"}
"""Columns that follow from the reports."""
NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?(e-?\d+)?|not determined|infinity|null")


def given(label: str | None) -> dict[str, str]:
    """Return the answers of 60 people, of whom p0 says the label or nothing."""
    answers = {f"p{k}": "yes" if k % 3 == 0 else "no" for k in range(60) if k % 7}
    return answers if label is None else {"p0": label} | answers


def masked(value: Any, name: str = "") -> Any:
    """Return JSON values in which numbers of reports have no value; lists keep their order and length."""
    if isinstance(value, dict):
        return {key: masked(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [masked(one) for one in value]
    if name in OF_REPORTS or isinstance(value, float) or value is None:
        return "number"
    return NUMBER.sub("#", value) if isinstance(value, str) else value


@pytest.mark.parametrize("label", ["no", None])
def test_only_numbers_of_reports_change(
    label: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_json: RunJson
) -> None:
    """If one person says no in place of yes, or nothing, lists, order, groups and counts stay, byte by byte."""
    monkeypatch.chdir(tmp_path)
    write("people.csv", "worker", *(f"p{k}" for k in range(60)))
    write("tasks.csv", "task", "drugs", "theft")
    write("groups.csv", "worker,sex", *(f"p{k},{'fm'[k % 2]}" for k in range(60)))
    found = []
    for name, answers in (("one", given("yes")), ("other", given(label))):
        write("answers.csv", "task,worker,label", *(f"drugs,{worker},{said}" for worker, said in answers.items()))
        lists = ("--tasks", "tasks.csv", "--workers", "people.csv", "--labels", "no,yes")
        run_json("perturb", "answers.csv", "--mechanism", "randomized-response", "--epsilon", 6, *lists,
                 "--seed", 4, "--out", name)  # fmt: skip
        written = ("--by", "groups.csv", "--out", "shares.csv", "--page", "page.html")
        data = run_json("share", name, *written)
        with Path("shares.csv").open() as stream:
            rows = [{key: cell for key, cell in row.items() if key not in OF_REPORTS} for row in csv.DictReader(stream)]
        page = NUMBER.sub("#", Path("page.html").read_text())
        for path in ("answers.csv", "shares.csv", "page.html"):
            Path(path).unlink()
        found.append((rows, page, masked(data), Path(name, "reports.csv").read_bytes()))
    (rows, page, data, sent), (other_rows, other_page, other_data, other_sent) = found

    assert sent != other_sent
    assert rows == other_rows
    assert page == other_page
    assert data == other_data
