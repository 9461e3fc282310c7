"""`crowdveil infer dataset:NAME`: the answers of a public data set, read as answers and written elsewhere."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Refusal, Run, RunJson


@pytest.fixture
def tiny(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a data directory with a set of labels (a repeated answer, gold for two tasks) and one of numbers."""
    for name, answers, truths, meta in (
        ("tiny", "a,u,x\na,v,x\nb,v,y\nb,v,x\n", "a,x\nb,y\n", {"kind": "binary", "labels": ["x", "y"]}),
        ("sizes", "a,u,1\na,v,3\nb,v,7\n", "a,2\n", {"kind": "numeric", "labels": "0..10"}),
    ):
        (folder / "data" / name).mkdir(parents=True)
        (folder / "data" / name / "answers.csv").write_text("task,worker,answer\n" + answers)
        (folder / "data" / name / "truth.csv").write_text("task,truth\n" + truths)
        (folder / "data" / name / "meta.json").write_text(json.dumps(meta))
    monkeypatch.setenv("CROWDVEIL_DATA", str(folder / "data"))
    return folder / "data"


def test_a_data_set_is_read_as_answers(tiny: Path, run_json: RunJson) -> None:
    """Of repeated answers the first counts, gold takes no part, and a crowd.json in the current folder is not read."""
    Path("crowd.json").write_text("of something else")
    data = run_json("infer", "dataset:tiny", "--out", "found")

    assert (3, 2, 2, 0) == tuple(data[name] for name in ("reports", "tasks", "workers", "gold_used"))
    assert ("hierarchical-dawid-skene", "none: a data set holds answers") == (data["method"], data["noise_model"])
    assert ["1 answers repeat a (task, worker) pair; policy: first."] == data["warnings"]


def test_options_apply_to_a_data_set(tiny: Path, run_json: RunJson) -> None:
    """--duplicates chooses among repeated answers, and --score dataset:NAME takes its own gold."""
    data = run_json(
        "infer", "dataset:tiny", "--duplicates", "last", "--score", "dataset:tiny", "--method", "majority-vote"
    )

    assert ("majority-vote", 0.5, 2) == (data["method"], data["score"]["error"], data["score"]["scored"])


def test_numbers_of_a_data_set_need_no_scale(tiny: Path, run_json: RunJson) -> None:
    """Numbers are inferred as they are; with --scale they are put on its grid, and changes are counted."""
    free = run_json("infer", "dataset:sizes", "--out", "found")
    scaled = run_json("infer", "dataset:sizes", "--scale", "0:5", "--method", "gaussian", "--out", "found")

    assert ("student-t", 7.0) == (free["method"], free["truths"]["items"][1]["truth"])
    assert any(text.startswith("1 answer outside the scale was clipped: task ") for text in scaled["warnings"])


def test_nothing_is_written_into_the_data_directory(
    tiny: Path, run: Run, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Truths go to the current folder by default; inside the data directory --out must say where to."""
    run("infer", "dataset:tiny")
    before = sorted(tiny.rglob("*"))
    monkeypatch.chdir(tiny / "tiny")

    assert Path(tiny.parent, "truths.csv").exists()
    assert "must not go into the data directory" in refusal("infer", "dataset:tiny")
    assert before == sorted(tiny.rglob("*"))


def test_a_data_set_has_neither_certificate_nor_another_kind(tiny: Path, refusal: Refusal) -> None:
    """--certificate, --kind and other labels are refused with a way out, and so is an unknown set."""
    assert "known type and labels, and no channel" in refusal("infer", "dataset:tiny", "--certificate", "labels.csv")
    assert "answers of known type" in refusal("infer", "dataset:tiny", "--kind", "numeric")
    assert "got 'merge_labels'" in refusal("infer", "dataset:tiny", "--merge-labels")
    assert "has its own labels" in refusal("infer", "dataset:tiny", "--labels", "p,q")
    assert "there are: sizes, tiny" in refusal("infer", "dataset:none")
