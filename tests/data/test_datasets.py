"""Data sets by name: where they are looked for, what is read, and how published ones are converted."""

import json
from pathlib import Path

import pytest
from experiments.papers import EXHIBITS
from experiments.papers.run import load_exhibit

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.data import datasets
from crowdveil.data.published_sets import PUBLISHED, converted_files, converted_outputs, state_of
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.atomic_write import write_outputs
from tests.data.test_reports import cells

REAL = datasets.data_directory()
NAMES = datasets.available()
COUNTS = {  # rows, distinct pairs, workers, tasks, gold tasks with answers
    "adult2": (92721, 89796, 825, 11028, 347),
    "anesthesia": (315, 225, 5, 45, 0),
    "bluebird": (4212, 4212, 39, 108, 108),
    "d_possent": (20000, 20000, 85, 1000, 1000),
    "d_product": (24945, 24945, 176, 8315, 8315),
    "dog": (8070, 8070, 109, 807, 807),
    "duchenne": (30319, 17729, 64, 2134, 159),
    "n_emotion": (7000, 7000, 38, 700, 700),
    "peer_grading_mooc": (2084, 2084, 636, 724, 23),
    "population_cut": (4019, 4019, 2344, 1120, 263),
    "population_tf": (3572, 3572, 1955, 1172, 277),
    "s_rel": (98453, 96883, 766, 20232, 4460),
    "snow_rte": (8000, 8000, 164, 800, 800),
    "snow_valence": (1000, 1000, 38, 100, 100),
    "snow_wsd": (1770, 1770, 34, 177, 177),
    "weather_temperature": (95612, 71500, 16, 6374, 4514),
    "web_zhou": (15567, 15567, 177, 2665, 2653),
}
NOT_NUMBERS = {"weather_temperature": 683}
KINDS = {
    "binary": {"bluebird", "d_possent", "d_product", "duchenne", "snow_rte"},
    "ordinal": {"adult2", "anesthesia", "web_zhou"},
    "categorical": {"dog", "s_rel", "snow_wsd"},
}


@pytest.mark.parametrize("name", COUNTS)
def test_real_sets_have_the_stated_counts(name) -> None:
    """Rows, distinct pairs, workers, tasks and scorable gold are those that the collection states."""
    if name not in NAMES:
        pytest.skip(f"no data set {name} in {REAL}: set {datasets.VARIABLE}")
    data = datasets.load(name)
    crowd = len(data.answers.workers), len(data.answers.tasks)

    assert name not in PUBLISHED or state_of(name, REAL) == "as measured"
    assert COUNTS[name] == (data.rows, data.pairs, *crowd, data.gold_with_answers)
    assert NOT_NUMBERS.get(name, 0) == data.left_out
    assert next((kind for kind, names in KINDS.items() if name in names), "numeric") == data.kind


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
    meta = {"kind": "categorical", "labels": ["x", "y", "z"]}
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

    with pytest.raises(ReportsError, match=r"small/answers\.csv, row 2: every label must be one of 0, 1"):
        datasets.load("small")


def test_the_directory_follows_the_rule(monkeypatch, tmp_path) -> None:
    """The variable wins; else shared/data next to the checkout; else the user's cache."""
    module = tmp_path / "checkout" / "src" / "crowdveil" / "data" / "datasets.py"
    sibling = tmp_path / "shared" / "data"
    monkeypatch.setattr(datasets, "__file__", str(module))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(datasets.VARIABLE, raising=False)
    assert tmp_path / "cache" / "crowdveil" / "data" == datasets.data_directory()

    sibling.mkdir(parents=True)
    assert sibling == datasets.data_directory()

    monkeypatch.setattr(datasets, "__file__", str(tmp_path / "checkout" / "lib" / "crowdveil" / "data" / "datasets.py"))
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert Path.home() / ".cache" / "crowdveil" / "data" == datasets.data_directory()

    monkeypatch.setenv(datasets.VARIABLE, "~/answers")
    assert Path.home() / "answers" == datasets.data_directory()


HEADER = "!amt_annotation_ids\t!amt_worker_ids\torig_id\tresponse\tgold\n"
CLAIMS = '"ObjectID","PropertyID","PropertyValue","SourceID","TimeStamp"\n'
SAMPLES: dict[str, tuple[dict[str, str | bytes], str, str]] = {
    "snow_wsd": (
        {"wsd.standardized.tsv": HEADER + "1\tA9\t5:0@x\t1\t1\n2\tB7\t5:0@x\t3\t1\n3\tA9\t6:0@x\t2\t2\n"},
        "5:0@x,w1,1\n5:0@x,w2,3\n6:0@x,w1,2\n",
        "5:0@x,1\n6:0@x,2\n",
    ),
    "adult2": (
        {
            "labels.txt": "A9\thttp://B.com\tG\nB7\thttp://b.com\tX\nA9\thttp://a.com\tP\n",
            "gold.txt": "http://b.COM\tG\nhttp://never.com\tX\n",
        },
        "t1,w1,G\nt1,w2,X\nt2,w1,P\n",
        "t1,G\n",
    ),
    "duchenne": (
        {"workerResponses.txt": "A9\t2001\t1\nA9\t2001\t0\nB7\t2002\t1\n", "groundTruth.txt": "2001\t1\n2003\t0\n"},
        "2001,w1,1\n2001,w1,0\n2002,w2,1\n",
        "2001,1\n2003,0\n",
    ),
    "population_cut": (
        {
            "population-new.txt": (
                b"gary, indiana_2000\tcontributor #1: a\t102746\t2000\nlone_2000\tb\t5\t2000\n"
                b"gary, indiana_2000\tb\t9\t2000\nsame_2000\ta\t7\t2000\nsame_2000\tb\t7\t2000\n"
                b"huge_2000\ta\t126117856178246\t2000\nhuge_2000\tb\t4626\t2000\nhuge_2000\tc\t1\t2000\n"
            )
            + b"bogot\xc3\xa1_2005\tc\t4\t2005\nbogot\xc3\xa1_2005\tb\t5\t2005\n\xe3\x85cut_2004\tc\t4\t2004\n"
            + b"\xe3\x85cut_2004\tb\t8\t2004\n",
            "population-gd.txt": "gary, indiana, 2000, 102746\n",
        },
        '"gary, indiana_2000",w1,102746\n"gary, indiana_2000",w2,9\nbogotá_2005,w3,4\nbogotá_2005,w2,5\n'
        "ã\x85cut_2004,w3,4\nã\x85cut_2004,w2,8\n",
        '"gary, indiana_2000",102746\n',
    ),
    "population_tf": (
        {
            "population-new-new-new-TF.txt": "lone_2000\ta\t0.0\t815.0\t0.0\t815\ngary_2001\tb\t2.0\t7.0\t1.0\t9\n",
            "population-gd.txt": "gary, indiana, 2001, 9\n",
        },
        "lone_2000,w1,815\ngary_2001,w2,9\n",
        '"gary, indiana_2001",9\n',
    ),
    "weather_temperature": (
        {
            f"weather_claim{number}.csv": CLAIMS
            + f'"reno2908","Temperature","4{number}","site{number}","fri"\n"reno2908","Humidity","87","msn","fri"\n'
            for number in range(1, 17)
        }
        | {"weather_truth.csv": '"ObjectID","PropertyID","PropertyValue"\n"reno2908","Temperature","48"\n'},
        "".join(f"reno2908,w{number:02},4{number}\n" for number in range(1, 17)),
        "reno2908,48\n",
    ),
}
"""Published files of every set, and the converted answers and truths without their headers."""


def write_sample(name: str, folder: Path) -> None:
    """Write the published files of a sample."""
    folder.mkdir(exist_ok=True)
    for file, contents in SAMPLES[name][0].items():
        (folder / file).write_bytes(contents.encode() if isinstance(contents, str) else contents)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_files_become_a_data_set(name: str, tmp_path: Path) -> None:
    """Answers, truths, kind and labels are those of the sample; the set can be loaded, and is not taken for ours."""
    write_sample(name, tmp_path / "published")
    files = converted_files(name, tmp_path / "published")
    write_outputs(converted_outputs(name, tmp_path / "data"), files)
    meta = json.loads(files["meta.json"])
    loaded = datasets.load(name, directory=tmp_path / "data", duplicates="all")

    assert "task,worker,answer\n" + SAMPLES[name][1] == files["answers.csv"]
    assert "task,truth\n" + SAMPLES[name][2] == files["truth.csv"]
    assert (loaded.kind, PUBLISHED[name].licence) == (meta["kind"], meta["licence"])
    assert SAMPLES[name][1].count("\n") == len(loaded.answers)
    assert ("other contents", "missing") == tuple(state_of(name, tmp_path / place) for place in ("data", "none"))


def test_every_set_that_an_exhibit_reads_is_published() -> None:
    """No exhibit needs a data set without a publisher, and no publisher is named without need."""
    assert set(PUBLISHED) == {data for name in EXHIBITS for data in load_exhibit(name).data}


def test_published_files_that_lack_something_are_refused(tmp_path: Path) -> None:
    """A missing file and a line with too few cells are errors that name file, row and publisher."""
    with pytest.raises(SettingsError, match=r"groundTruth\.txt.*pmaglione"):
        converted_files("duchenne", tmp_path)
    for name, file in (("duchenne", "groundTruth.txt"), ("population_tf", "population-gd.txt")):
        write_sample(name, tmp_path)
        (tmp_path / file).write_text("2001\n")
        with pytest.raises(ReportsError, match=rf"{file}, row 1: a line must"):
            converted_files(name, tmp_path)
