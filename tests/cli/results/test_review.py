"""`crowdveil review`: the workers of the library in a table, a file and JSON."""

from pathlib import Path

from tests.cli.conftest import Run, RunJson, rows


def test_the_file_has_a_row_and_a_sentence_for_each_worker(folder: Path, run: Run, run_json: RunJson) -> None:
    """With a bound of .99 all workers whose interval ends below it are in the file, with reason and interval."""
    data = run_json("review", "labels.csv", "--below", 0.99, "--out", "review.csv")
    found = rows("review.csv")

    assert data["review"]["of"] == len(found) > 0
    assert all(float(row["ability_low"]) <= float(row["ability_high"]) for row in found)
    assert all(row["reason"].endswith(".") for row in found)
    assert found[0]["worker"] in run("review", "labels.csv", "--below", 0.99).stdout
