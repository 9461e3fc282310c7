"""Data sets by name: where they are looked for, what is read, and how published ones are converted."""

import json
from pathlib import Path

import pytest
from experiments.papers import EXHIBITS
from experiments.papers.run import load_exhibit

from crowdveil.answers import datasets
from crowdveil.answers.published_sets import (
    PUBLISHED,
    convert_published_files,
    dataset_outputs,
    published_set_state,
)
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.atomic_write import write_outputs
from tests.answers.test_reports import cells

REAL = datasets.data_directory()
NAMES = datasets.available()
FOLDER = Path(__file__).parent
COUNTS = json.loads((FOLDER / "real_sets.json").read_text("utf-8"))
"""Kind of each set, and its rows, distinct pairs, workers, tasks, gold tasks with answers, and answers left out."""
SAMPLES = json.loads((FOLDER / "published_sets.json").read_text("utf-8"))
"""Published files of every set, their bytes read as Latin-1, and the converted rows of answers and truths."""


@pytest.mark.parametrize("name", COUNTS)
def test_real_sets_have_the_stated_counts(name) -> None:
    """Rows, distinct pairs, workers, tasks and scorable gold are those that the collection states."""
    if name not in NAMES:
        pytest.skip(f"no data set {name} in {REAL}: set {datasets.VARIABLE}")
    data = datasets.load(name)
    crowd = {"workers": len(data.answers.workers), "tasks": len(data.answers.tasks)}
    counted = {"rows": data.rows, "pairs": data.pairs, "gold": data.gold_with_answers, "left_out": data.left_out}

    assert name not in PUBLISHED or published_set_state(name, REAL) == "as measured"
    assert COUNTS[name] == {"kind": data.kind, **crowd, **counted}


@pytest.mark.skipif("adult2" not in NAMES, reason=f"no data set adult2 in {REAL}: set {datasets.VARIABLE}")
def test_the_policy_decides_how_many_answers_count() -> None:
    """adult2: 89,796 answers with one per pair, 92,721 with all; labels in the order of meaning."""
    first, every = datasets.load("adult2"), datasets.load("adult2", duplicates="all")

    assert (89796, 92721) == (len(first.answers), len(every.answers))
    assert Categories(("G", "P", "R", "X"), ordered=True) == first.answers.alphabet


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return an empty data directory that the environment names."""
    monkeypatch.setenv(datasets.VARIABLE, str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def make(home: Path, name: str, meta: dict[str, object], answers: str, truth: str | None = None) -> None:
    """Write a data set."""
    folder = home / name
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps(meta))
    (folder / "answers.csv").write_text("task,worker,answer\n" + answers)
    if truth is not None:
        (folder / "truth.csv").write_text("task,truth\n" + truth)


def test_the_first_answer_and_the_first_truth_count(home) -> None:
    """Of repeated answers the first in file order counts, of two truths too; gold without answers is counted."""
    meta: dict[str, object] = {"kind": "categorical", "labels": ["x", "y", "z"]}
    make(home, "small", meta, "a,v,y\na,v,x\nb,v,x\n", "a,y\nq,x\na,x\n")

    data = datasets.load("small")

    assert [("a", "v", "y"), ("b", "v", "x")] == cells(data.answers)
    assert ({"a": "y", "q": "x"}, 1, 1) == (data.gold, data.gold_with_answers, data.gold_without_answers)
    assert (("x", "y", "z"), 3, 2) == (data.answers.alphabet.names, data.rows, data.pairs)


def test_answers_that_are_no_numbers_are_counted_and_left_out(home) -> None:
    """A numeric set keeps what can be read and says how many rows could not; a stated range becomes a scale."""
    make(home, "degrees", {"kind": "numeric", "labels": "-5..30"}, "a,v,11-Dec\na,v,1.5\nb,v,2\n", "a,2\n")
    make(home, "counts", {"kind": "numeric", "labels": "positive numbers"}, "a,v,1e18\n")

    data, other = datasets.load("degrees"), datasets.load("counts")

    assert [("a", "v", 1.5), ("b", "v", 2.0)] == cells(data.answers)
    assert (3, 2, 1, {"a": 2.0}) == (data.rows, data.pairs, data.left_out, data.gold)
    assert (Scale(-5, 30), None, {}) == (data.scale, other.scale, other.gold)


def test_unknown_names_are_answered_with_what_is_there(home) -> None:
    """A misspelt name, or one that leads out of the directory, is refused with the names that exist."""
    make(home, "small", {"kind": "binary", "labels": ["0", "1"]}, "a,v,0\n")

    for name in ("smal", "../data/small", ""):
        with pytest.raises(SettingsError, match="there are: small"):
            datasets.load(name)
    assert ("small",) == datasets.available()


def test_an_empty_or_missing_directory_says_how_to_choose_one(home) -> None:
    """Without data sets, or without the directory itself, the way out names the variable."""
    with pytest.raises(SettingsError, match=r"holds none.*CROWDVEIL_DATA"):
        datasets.load("adult2")
    home.rmdir()
    with pytest.raises(SettingsError, match=r"data directory must exist.*CROWDVEIL_DATA"):
        datasets.load("adult2")
    assert () == datasets.available()


@pytest.mark.parametrize(
    "text", ["{", '{"kind": "graph", "labels": []}', '{"kind": "ordinal", "labels": "1..5"}', "[]"]
)
def test_a_damaged_description_is_refused(home, text) -> None:
    """A meta.json that is no description is refused with its path."""
    make(home, "small", {}, "a,v,0\n")
    (home / "small" / "meta.json").write_text(text)

    with pytest.raises(ReportsError, match=r"small/meta\.json: "):
        datasets.load("small")


def test_answers_outside_the_labels_are_refused(home) -> None:
    """An answer that meta.json does not list is named by file and row."""
    make(home, "small", {"kind": "binary", "labels": ["0", "1"]}, "a,v,0\nb,v,2\n")

    with pytest.raises(ReportsError, match=r"small/answers\.csv, line 3: every label must be one of 0, 1"):
        datasets.load("small")


def test_the_directory_follows_the_rule(monkeypatch, tmp_path) -> None:
    """The variable wins; else shared/data next to the checkout; else the user's cache."""
    module = tmp_path / "checkout" / "src" / "crowdveil" / "answers" / "datasets.py"
    sibling = tmp_path / "shared" / "data"
    monkeypatch.setattr(datasets, "__file__", str(module))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(datasets.VARIABLE, raising=False)
    assert tmp_path / "cache" / "crowdveil" / "data" == datasets.data_directory()

    sibling.mkdir(parents=True)
    assert sibling == datasets.data_directory()

    monkeypatch.setattr(
        datasets, "__file__", str(tmp_path / "checkout" / "lib" / "crowdveil" / "answers" / "datasets.py")
    )
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert Path.home() / ".cache" / "crowdveil" / "data" == datasets.data_directory()

    monkeypatch.setenv(datasets.VARIABLE, "~/answers")
    assert Path.home() / "answers" == datasets.data_directory()


def write_sample(name: str, folder: Path) -> None:
    """Write the published files of a sample."""
    folder.mkdir(exist_ok=True)
    for file, contents in SAMPLES[name]["files"].items():
        (folder / file).write_bytes(contents.encode("latin-1"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_files_become_a_data_set(name: str, tmp_path: Path) -> None:
    """Answers, truths, kind and labels are those of the sample; the set can be loaded, and is not taken for ours."""
    write_sample(name, tmp_path / "published")
    files = convert_published_files(name, tmp_path / "published")
    write_outputs(dataset_outputs(name, tmp_path / "data"), files)
    meta = json.loads(files["meta.json"])
    loaded = datasets.load(name, directory=tmp_path / "data", duplicates="all")

    assert "task,worker,answer\n" + SAMPLES[name]["answers"] == files["answers.csv"]
    assert "task,truth\n" + SAMPLES[name]["truths"] == files["truth.csv"]
    assert (loaded.kind, PUBLISHED[name].licence) == (meta["kind"], meta["licence"])
    assert SAMPLES[name]["answers"].count("\n") == len(loaded.answers)
    assert ("other contents", "missing") == tuple(
        published_set_state(name, tmp_path / place) for place in ("data", "none")
    )


def test_every_set_that_an_exhibit_reads_is_published() -> None:
    """No exhibit needs a data set without a publisher, and no publisher is named without need."""
    assert set(PUBLISHED) == {data for name in EXHIBITS for data in load_exhibit(name).data}


def test_published_files_that_lack_something_are_refused(tmp_path: Path) -> None:
    """A missing file and a line with too few cells are errors that name file, row and publisher."""
    with pytest.raises(SettingsError, match=r"groundTruth\.txt.*pmaglione"):
        convert_published_files("duchenne", tmp_path)
    for name, file in (("duchenne", "groundTruth.txt"), ("population_tf", "population-gd.txt")):
        write_sample(name, tmp_path)
        (tmp_path / file).write_text("2001\n")
        with pytest.raises(ReportsError, match=rf"{file}, row 1: a line must"):
            convert_published_files(name, tmp_path)
