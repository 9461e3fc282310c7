"""Exhibits of the papers: each runs at the quick size, has its columns, and its verdict's inequality holds."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from experiments.papers import EXHIBITS
from experiments.papers.__main__ import main
from experiments.papers.cache import PROGRAMS, programs_digest
from experiments.papers.exhibit import Exhibit, Verdict
from experiments.papers.li2018.seeds import pooled
from experiments.papers.page import command
from experiments.papers.run import PAPERS, load_exhibit, measured_rows, read_rows, reproduce, selected
from experiments.papers.sun2018.parameters import is_of_changed_crowd

from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import Outputs
from tests.real_data import load_or_skip

LARGEST = {".csv": 100_000, ".svg": 150_000}
"""Largest size in bytes of a committed file."""


def committed(name: str, ending: str) -> Path:
    """Return the path of a committed result."""
    return (PAPERS / name.replace("/", "/results/")).with_suffix(ending)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXHIBITS)
def test_quick_run_holds(name: str, tmp_path: Path):
    """The quick run has the columns of the exhibit, writes three files, and the inequality of the verdict holds."""
    exhibit = load_exhibit(name)
    for data in exhibit.data:
        load_or_skip(data)

    done = reproduce(name, size="quick", out=tmp_path / "out", cache=tmp_path / "cache")

    assert name == exhibit.name
    assert {exhibit.columns} == {tuple(row) for row in done.rows}
    assert done.verdict.inequality
    assert [".csv", ".svg", ".md"] == [path.suffix for path in done.files]
    assert done.rows == read_rows(done.files[0])
    assert f"`{command(exhibit, 'quick')}`" in done.files[2].read_text("utf-8")


DRAWN = [name for name in EXHIBITS if any("seed" in step for step in load_exhibit(name).configurations("quick"))]
"""Exhibits that draw random numbers."""


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_quick_run_holds_under_another_seed(name: str) -> None:
    """The inequality of the verdict does not rest on the draws of one seed."""
    exhibit = load_exhibit(name)
    for data in exhibit.data:
        load_or_skip(data)
    steps = [
        step | ({"seed": step["seed"] + 1000} if "seed" in step else {}) for step in exhibit.configurations("quick")
    ]
    rows = [dict.fromkeys(exhibit.columns) | row for step in steps for row in exhibit.measure(step)]

    assert exhibit.verdict(rows).inequality


@pytest.mark.parametrize("name", ["sun2018/figure2", "sun2018/figure3", "sun2018/large_sweep"])
def test_mechanisms_are_compared_on_the_same_crowds(name: str) -> None:
    """At a point all mechanisms have as many crowds, and the same."""
    crowds: dict[tuple, set[tuple]] = {}
    for row in read_rows(committed(name, ".csv")):
        point = (row["tasks"], row["sparsity"], row["claimed_epsilon"])
        crowds.setdefault(point, set()).add((row["repeats"], row["unprotected"], row["constant"]))

    assert {1} == {len(found) for found in crowds.values()}


@pytest.mark.parametrize("name", ["table2", "table3", "figure3", "figure4", "other_distributions"])
def test_tables_of_li_rest_on_two_seeds(name: str) -> None:
    """Every row has a thousand trials of two seeds, but for the slower default of crowdveil."""
    rows = [
        row for row in read_rows(committed(f"li2018/{name}", ".csv")) if row.get("inference") != "crowdveil default"
    ]

    assert 2 == len({row["seed"] for row in rows})
    assert min(row["repeats"] for row in pooled(rows)) >= 1000


@pytest.mark.parametrize("name", EXHIBITS)
def test_committed_results_hold(name: str):
    """A committed table has the columns; its verdict holds and is on the page; files are small; steps differ."""
    exhibit, rows = load_exhibit(name), read_rows(committed(name, ".csv"))
    verdict, page = exhibit.verdict(rows), committed(name, ".md").read_text("utf-8")

    assert {exhibit.columns} == {tuple(row) for row in rows}
    assert verdict.inequality
    assert verdict.sentence in page
    assert f"`{command(exhibit, 'full')}`" in page
    assert [] == [ending for ending, most in LARGEST.items() if committed(name, ending).stat().st_size > most]
    for size in ("quick", "default", "full"):
        steps = [tuple(sorted(step.items())) for step in exhibit.configurations(size)]
        assert 0 < len(steps) == len(set(steps))


@pytest.mark.parametrize("name", EXHIBITS)
def test_committed_results_can_be_replaced(name: str):
    """The record of the folder has the committed files as they are, so that the command on their page replaces them."""
    names = tuple(committed(name, ending).name for ending in (".csv", ".svg", ".md"))
    outputs = Outputs(folder=committed(name, ".csv").parent, names=names, kind="exhibit")

    assert set(names) == {path.name for path in outputs.check_replaced_files()}


ALTERED = {
    "sun2018/theorem1": ("exact_epsilon", lambda row: row["mechanism"] == "LP as printed", 0.8),
    "sun2018/table2": ("answers", lambda row: row["data"] == "Web", 0.9),
    "sun2018/figure2": ("exact_epsilon", lambda row: row["mechanism"] == "crowdveil", 1.1),
    "sun2018/figure3": ("error", lambda row: row["setting"] == "d = 2, ridge 0.1, gaussian V", 0.5),
    "sun2018/figure4": ("change", lambda row: row["tasks"] == 200, 0.5),
    "sun2018/parameters": ("change", lambda row: row["setting"] == "NULL becomes a uniform draw", 0.01),
    "beyond/summary": ("error", lambda row: row["setting"] == "NULL becomes 0", 0.1),
    "sun2018/figure5": ("exact_epsilon", lambda row: row["mechanism"] == "2-Layer", 0.4),
    "huai2019/table2": ("error", lambda row: row["mechanism"] == "pooled-shape, epsilon 1", 0.9),
    "huai2019/figure1": ("error", lambda row: row["curve"] == "histogram" and row["error"] is not None, 2),
    "huai2019/figure3": ("above_global", lambda row: row["curve"] == "combined", -1),
    "huai2019/figure4": ("sise", lambda row: (row["crowd"], row["records"]) == ("weather_temperature", 30), 60),
    "huai2019/figure5": ("candidates", lambda row: (row["mechanism"][:5], row["records"]) == ("with ", 20), 1.3),
    "huai2019/equation5": ("root", lambda row: row["root"] > 0, 2),
    "huai2019/theorem1": ("distance", lambda row: row["bandwidth"] == 1.0, 100),
    "huai2019/theorem2": ("exact_delta", lambda row: row["release"] == "one candidate, failure unseen", 1000),
    "sun2018/participation": ("exact_epsilon", lambda row: row["mechanism"] == "matrix-factorization", 1.1),
    "sun2018/theorem4": ("exact_epsilon", lambda row: row["neighbours"] == "values 0 and 9", 0.9),
    "sun2018/theorem5": ("exact_epsilon", lambda row: row["mechanism"] == "crowdveil", 1.1),
    "li2018/table2": ("exact_epsilon", lambda row: row["equal"] == "exact, answer", 1.1),
    "li2018/table3": ("exact_epsilon", lambda row: row["equal"] == "exact, answer", 1.1),
    "li2018/figure3": ("exact_worker_epsilon", lambda row: row["equal"] == "exact, worker", 1.1),
    "li2018/figure4": ("exact_worker_epsilon", lambda row: row["equal"] == "exact, worker", 1.1),
    "li2018/section62": ("exact_epsilon", lambda row: row["mechanism"] == "two-layer", 0.9),
    "li2018/section61": ("exact_epsilon", lambda row: row["mechanism"] == "two-layer", 0.9),
    "wang2018/condition16": ("bound_17", lambda row: row["crowd"] == "1e20 tasks", 9),
    "wang2018/lemmas": ("ratio", lambda row: row["claim"] == "Lemma 2", 3),
    "wang2018/theorem1": ("exact_epsilon_definition_3", lambda row: row["tasks"] == 9, 0.9),
    "wang2018/abilities_by_task": ("error_by_group", lambda row: row["groups"] == 10, 100),
}
"""A number of the verdict's sentence: column, rows, and the factor that makes the sentence false."""


@pytest.mark.parametrize("name", ALTERED)
def test_a_verdict_does_not_hold_on_altered_rows(name: str):
    """A sentence that the rows contradict makes its inequality false."""
    exhibit, rows = load_exhibit(name), read_rows(committed(name, ".csv"))
    column, chosen, factor = ALTERED[name]
    altered = [row | {column: row[column] * factor} if chosen(row) and row[column] else row for row in rows]

    assert (True, False) == (exhibit.verdict(rows).inequality, exhibit.verdict(altered).inequality)


def test_the_summary_has_every_swept_setting_of_sun():
    """Every setting of `sun2018/parameters` on the crowd of the figures is in the summary, at each of its epsilons."""
    summary = read_rows(committed("beyond/summary", ".csv"))
    swept = [row for row in read_rows(committed("sun2018/parameters", ".csv")) if not is_of_changed_crowd(row)]
    numbers = [row for row in summary if row["panel"] == "numbers"]
    epsilons = {row["exact_epsilon"] for row in summary if row["mechanism"] == "crowdveil"}
    shown = Counter((row["mechanism"], row["setting"]) for row in numbers)

    assert {(f"Sun: {row['mechanism']}", row["setting"]): len(epsilons) for row in swept}.items() <= shown.items()


def test_pages_name_exhibits_that_exist():
    """Every exhibit that a page names, such as "see sun2018/parameters", exists."""
    papers = "|".join(sorted({name.partition("/")[0] for name in EXHIBITS}))
    texts = [committed(name, ".md").read_text("utf-8") for name in EXHIBITS]
    named = {found for text in texts for found in re.findall(rf"(?<![\w/])(?:{papers})/\w+(?!/)", text)}

    assert set() == named - set(EXHIBITS)


def counting(exhibit: Exhibit, measured: list[dict]) -> Exhibit:
    """Return the exhibit with a list of the steps that it measures."""

    def measure(step):
        measured.append(step)
        return exhibit.measure(step)

    return replace(exhibit, measure=measure)


def test_an_interrupted_run_continues(tmp_path: Path):
    """Steps that were stored are not measured again; a damaged file is, and the rows are the same."""
    measured: list[dict] = []
    exhibit = counting(load_exhibit("sun2018/theorem1"), measured)
    first = measured_rows(exhibit, "quick", tmp_path)
    steps = len(measured)
    next(tmp_path.rglob("*.json")).write_text("{", "utf-8")
    again = measured_rows(exhibit, "default", tmp_path)

    assert (first, steps) == (measured_rows(exhibit, "quick", tmp_path), len(exhibit.configurations("quick")))
    assert len(measured) == len(exhibit.configurations("default")) + 1
    assert all(row in again for row in first)


def test_a_changed_program_asks_for_new_rows(tmp_path: Path):
    """The key of the cache depends on the modules of experiments and package."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "one" / "measure.py").write_text("a = 1")
    (tmp_path / "two" / "measure.py").write_text("a = 2")

    assert programs_digest((tmp_path / "one",)) != programs_digest((tmp_path / "two",))
    assert {"crowdveil", "experiments"} == {folder.name for folder in PROGRAMS}


def test_a_file_of_somebody_else_is_not_replaced(tmp_path: Path):
    """A file that was not written by an exhibit stays, and nothing is written beside it."""
    (tmp_path / "theorem1.md").write_text("mine", "utf-8")

    with pytest.raises(SettingsError, match="not replaced"):
        reproduce("sun2018/theorem1", size="quick", out=tmp_path, cache=tmp_path / "cache")
    assert ["theorem1.md"] == [path.name for path in tmp_path.iterdir()]


def test_exhibits_of_two_papers_do_not_replace_each_other(tmp_path: Path):
    """Two papers have a Theorem 1; with one folder each has its files in a folder of its paper."""
    names = ["sun2018/theorem1", "wang2018/theorem1"]
    done = CliRunner().invoke(
        main, [*names, "--quick", "--out", str(tmp_path / "out"), "--cache", str(tmp_path / "rows")]
    )

    assert (0, False) == (done.exit_code, "replaced" in done.output)
    assert ["sun2018", "wang2018"] == sorted(path.parent.name for path in tmp_path.rglob("theorem1.csv"))


@pytest.mark.parametrize("change", [{"configuration": None}, {"rows": None}, {"rows": [{"mechanism": "LP"}]}])
def test_a_cache_file_that_is_not_whole_is_measured_again(change: dict, tmp_path: Path):
    """A file without its configuration, without rows, or with rows of other columns counts as damaged."""
    exhibit = load_exhibit("sun2018/theorem1")
    expected = measured_rows(exhibit, "quick", tmp_path)
    for path in tmp_path.rglob("*.json"):
        document = json.loads(path.read_text("utf-8")) | change
        whole = {name: value for name, value in document.items() if value is not None}
        path.write_text(json.dumps(whole), "utf-8")

    assert expected == measured_rows(exhibit, "quick", tmp_path)


@pytest.mark.slow
def test_a_verdict_that_fails_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The page and a warning say that the inequality does not hold."""
    exhibit = replace(load_exhibit("sun2018/theorem1"), verdict=lambda rows: Verdict("reproduced", "It holds.", False))
    monkeypatch.setattr("experiments.papers.run.load_exhibit", lambda name: exhibit)
    done = reproduce(exhibit.name, size="quick", out=tmp_path / "out", cache=tmp_path)

    assert "does not hold" in done.warnings[0]
    assert "does not hold" in (tmp_path / "out" / "theorem1.md").read_text("utf-8")


def test_names_are_those_of_exhibits_or_papers():
    """A paper's name stands for its exhibits; an unknown name is refused with names that are near."""
    assert [name for name in EXHIBITS if name.startswith("sun2018/")] == selected(["sun2018", "sun2018/theorem1"])
    with pytest.raises(SettingsError, match="sun2018/theorem1"):
        selected(["sun218/theorem1"])


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the data directory away, and measure by reading the committed rows."""
    monkeypatch.setenv("CROWDVEIL_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    stored = "experiments.papers.run.measured_rows"
    monkeypatch.setattr(stored, lambda exhibit, *_: read_rows(committed(exhibit.name, ".csv")))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*sorted({one.partition("/")[0] for one in EXHIBITS}), "all"])
def test_without_data_the_other_exhibits_of_a_paper_are_written(name: str, tmp_path: Path, no_data: None):
    """Exhibits without their data sets are skipped by name, the others are written, and the exit code is 0."""
    words = [name, "--quick", "--out", str(tmp_path / "out"), "--json"]
    result = CliRunner().invoke(main, words)
    document = json.loads(result.stdout)
    expected = {one: list(load_exhibit(one).data) for one in selected([name]) if load_exhibit(one).data}

    assert (0, expected) == (result.exit_code, {one["name"]: one["missing"] for one in document["skipped"]})
    assert set(selected([name])) - set(expected) == {one["name"] for one in document["exhibits"]}
    assert 3 * len(document["exhibits"]) == len(document["files"])
    assert all(Path(path).is_file() for path in document["files"])
    assert bool(expected) == any("data sources" in text for text in document["warnings"])


@pytest.mark.parametrize("names", [["sun2018/figure1"], ["sun2018/theorem1", "sun2018/figure1"]])
def test_without_data_a_named_exhibit_is_refused(names: list[str], tmp_path: Path, no_data: None):
    """An exhibit that is named itself is not skipped: nothing is measured, and the error says how to get its data."""
    result = CliRunner().invoke(main, [*names, "--quick", "--out", str(tmp_path / "out")])

    assert (1, False) == (result.exit_code, (tmp_path / "out").exists())
    assert "Missing: snow_wsd, adult2. 'crowdveil data sources snow_wsd adult2'" in result.stderr


def test_the_list_names_every_exhibit():
    """`--list` shows every name."""
    result = CliRunner().invoke(main, ["--list"], env={"COLUMNS": "200"})

    assert result.exit_code == 0
    assert [name for name in EXHIBITS if name not in result.output] == []


def test_a_cache_that_cannot_be_written_is_refused_before_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The error names the folder of measured steps; nothing is measured or written."""
    monkeypatch.setattr("experiments.papers.run.measured_rows", lambda *_: pytest.fail("measured"))
    (tmp_path / "file").write_text("")
    words = ["sun2018/theorem1", "--quick", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(main, [*words, "--cache", str(tmp_path / "file" / "cache")])

    assert result.exit_code == 1
    assert "the folder of measured steps must be writable" in result.output
    assert not (tmp_path / "out").exists()
