"""Result files are read back with the numbers that `infer` printed, and only if they are unchanged."""

import json
from pathlib import Path

import numpy as np
import pytest

from crowdveil.errors import ReportsError
from crowdveil.release.result_files import doubtful, read_results
from tests.release.conftest import Folder, command


@pytest.mark.parametrize("method", ["dawid-skene", "one-coin", "majority-vote", "weighted-vote"])
def test_best_constant_is_the_one_that_infer_prints(collected: Folder, method: str) -> None:
    """Best constant, its expected error and that of the truths are those of the estimate, for every kind of method."""
    folder = collected(method=("--method", method))
    printed = json.loads(command("infer", folder / "reports.csv", "--method", method, "--json"))["baseline"]
    found = read_results(folder).estimate

    if printed["estimate_error"] is None:
        assert found.baseline.estimate_error is None
    else:
        assert (printed["constant"], printed["moved"]) == (found.baseline.constant, found.baseline.moved)
        assert pytest.approx(printed["expected_error"], abs=1e-12) == found.baseline.expected_error
        assert pytest.approx(printed["estimate_error"], abs=1e-12) == found.baseline.estimate_error


@pytest.mark.slow
def test_numbers_have_their_intervals_and_the_median(numbers: Path) -> None:
    """Truths on a scale are numbers with intervals; the best constant is their median."""
    printed = json.loads(command("infer", numbers / "reports.csv", "--json"))["baseline"]
    found = read_results(numbers).estimate

    assert found.alphabet is None
    assert found.low is not None
    assert found.high is not None
    assert (found.low <= found.high).all()
    assert printed["constant"] == found.baseline.constant
    assert pytest.approx(printed["expected_error"]) == found.baseline.expected_error


def test_parquet_is_the_same(collected: Folder, tmp_path: Path) -> None:
    """Files in Parquet give the truths of the files in CSV."""
    folder = collected()
    command("infer", folder / "reports.csv", "--format", "parquet", "--out", tmp_path / "parquet")
    csv, parquet = read_results(folder).estimate, read_results(tmp_path / "parquet").estimate

    np.testing.assert_array_equal(csv.tasks, parquet.tasks)
    np.testing.assert_array_equal(csv.worker_names, parquet.worker_names)
    np.testing.assert_array_equal(csv.truth, parquet.truth)
    np.testing.assert_allclose(csv.workers.quality, parquet.workers.quality)


def test_doubtful_tasks_have_the_smallest_confidence(collected: Folder) -> None:
    """The doubtful tasks are those with the smallest confidence, the smallest first."""
    found = read_results(collected(epsilon=1.0)).estimate
    assert found.confidence is not None
    chosen = doubtful(found, 4)
    others = np.delete(found.confidence, chosen)

    assert sorted(found.confidence[chosen]) == list(found.confidence[chosen])
    assert found.confidence[chosen].max() <= others.min()


@pytest.mark.parametrize("name", ["truths.csv", "workers.csv"])
def test_changed_results_are_refused(plain: Path, name: str) -> None:
    """A file that was edited after `infer` wrote it is not released."""
    path = plain / name
    path.write_text(path.read_text("utf-8").replace("1", "2", 1), "utf-8")

    with pytest.raises(ReportsError, match="unchanged since"):
        read_results(plain)


def test_other_folders_are_refused(tmp_path: Path) -> None:
    """A folder without the files of an estimate is refused with a hint."""
    with pytest.raises(ReportsError, match="must hold truths and workers"):
        read_results(tmp_path)
