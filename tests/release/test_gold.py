"""Known truths that guided a fit are marked in its files, and left out of the errors on its page."""

import csv
import json
import re
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.crowd_review.gold_tasks import draw_from
from crowdveil.em.gold import CrossValidation
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.output_record import RECORD_FILE
from crowdveil.randomness import seeded
from crowdveil.release.result_files import read_results
from crowdveil.simulate import Crowd, categorical_crowd
from tests.release.conftest import LABELS, TASKS, command, write_answers, write_results

GOLD = 5


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    """Return 40 workers on 15 tasks, a fifth of them answered."""
    return categorical_crowd(workers=40, tasks=TASKS, labels=Categories(LABELS), sparsity=0.2, source=seeded(1))


def guided(folder: Path, crowd: Crowd, form: str = "csv", known: int = GOLD) -> Path:
    """Return the folder of truths that gold of the first tasks guided."""
    write_answers(folder, crowd)
    tasks = list(crowd.gold)[:known]
    (folder / "gold.csv").write_text("task,truth\n" + "".join(f"{task},{crowd.gold[task]}\n" for task in tasks))
    gold = ("--gold", folder / "gold.csv") if known else ()
    command("infer", folder / "answers.csv", *gold, "--format", form, "--out", folder / "found")
    return folder / "found"


@pytest.mark.parametrize("form", ["csv", "parquet", "json", "jsonl"])
def test_files_of_every_form_mark_gold(form: str, crowd: Crowd, tmp_path: Path) -> None:
    """Gold is read back from the files, and the best constant is that of the other tasks."""
    found = read_results(guided(tmp_path, crowd, form)).estimate
    printed = json.loads(
        command(
            "infer", tmp_path / "answers.csv", "--gold", tmp_path / "gold.csv", "--out", tmp_path / "again", "--json"
        )
    )

    assert found.gold is not None
    assert set(map(str, list(crowd.gold)[:GOLD])) == set(map(str, np.asarray(found.tasks)[found.gold]))
    assert (GOLD, GOLD) == (found.gold_used, found.baseline.gold)
    assert printed["baseline"]["sentence"] == str(found.baseline)


def test_files_without_gold_have_no_such_column(crowd: Crowd, tmp_path: Path) -> None:
    """Where no truth was known, the files say nothing of gold."""
    folder = guided(tmp_path, crowd, known=0)

    assert "gold" not in (folder / "truths.csv").read_text().splitlines()[0]
    assert "gold" not in (folder / RECORD_FILE).read_text()
    assert read_results(folder).estimate.gold is None


def test_the_page_marks_gold(crowd: Crowd, tmp_path: Path) -> None:
    """Gold tasks are marked, have no confidence, and are none of the doubtful tasks; pictures say that they are out."""
    folder = guided(tmp_path, crowd)
    write_results(folder)
    page = (folder / "report.html").read_text("utf-8")
    rows = re.findall(r"<tr><td>.*?</tr>", page[page.index('id="truths"') :], re.DOTALL)
    marked = [row for row in rows if '<span class="mark">gold</span>' in row]

    assert GOLD == len(marked) == page.count(">gold</span>")
    assert not any("%" in row for row in marked)
    assert f"of the {TASKS - GOLD} tasks without gold" in page
    assert "Tasks by confidence, without gold" in page
    assert "Compare some tasks whose truth you know" not in page


@pytest.mark.parametrize(
    ("column", "value"),
    [("gold", "maybe"), ("gold", ""), ("gold", "true"), ("probability_{}", "-3"), ("probability_{}", "7")],
)
def test_truths_that_no_estimate_has_are_refused(column: str, value: str, crowd: Crowd, tmp_path: Path) -> None:
    """Gold that is not certain, and probabilities that are none, are refused although their digest was made anew."""
    folder = guided(tmp_path, crowd)
    rows = list(csv.DictReader((folder / "truths.csv").read_text("utf-8").splitlines()))
    next(row for row in rows if row["gold"] == "false")[column.format(LABELS[0])] = value
    with (folder / "truths.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    _sealed_again(folder)

    with pytest.raises(ReportsError, match="probabilities that sum to 1, certain gold"):
        read_results(folder)


def test_a_check_on_more_gold_than_there_is_is_refused(crowd: Crowd, tmp_path: Path) -> None:
    """A cross-validation on more tasks than are gold is refused."""
    folder = guided(tmp_path, crowd)
    _sealed_again(folder, gold=asdict(CrossValidation(tasks=GOLD + 1, right=1)))

    with pytest.raises(ReportsError, match="more tasks than are gold"):
        read_results(folder)


def _sealed_again(folder: Path, **changed: object) -> None:
    """Write the record of a folder again, with the digest of its truths of now."""
    record = json.loads((folder / RECORD_FILE).read_text("utf-8"))
    entry = next(one for one in record["files"] if one["name"] == "truths.csv")
    entry |= {"sha256": sha256((folder / "truths.csv").read_bytes()).hexdigest()} | changed
    entry |= {"size": (folder / "truths.csv").stat().st_size} if "size" in entry else {}
    (folder / RECORD_FILE).write_text(json.dumps(record), "utf-8")


@pytest.mark.slow
def test_a_drawn_sample_is_told_from_other_gold(tmp_path: Path) -> None:
    """Only the first tasks of a seed's draw make the cross-validated accuracy an estimate; page and command say it."""
    crowd = categorical_crowd(workers=30, tasks=60, labels=Categories(("no", "yes")), sparsity=0.5, source=seeded(3))
    write_answers(tmp_path, crowd)
    drawn = draw_from(crowd.answers, 30, seed=4).tasks
    known = {str(task): truth for task, truth in crowd.gold.items()}
    gold, found = tmp_path / "gold.csv", tmp_path / "found"
    said = {}
    for name, tasks, seed in (("drawn", drawn, ",4"), ("gap", drawn[1:], ",4"), ("no seed", drawn, "")):
        head = "task,truth,seed\n" if seed else "task,truth\n"
        gold.write_text(head + "".join(f"{task},{known[task]}{seed}\n" for task in tasks))
        printed = command("infer", tmp_path / "answers.csv", "--gold", gold, "--out", found, "--json")
        said[name] = json.loads(printed)["cross_validation"]
        assert said[name]["sentence"] == write_results(found).sentences[-1]

    assert {"drawn": True, "gap": False, "no seed": None} == {name: one["random"] for name, one in said.items()}
    assert [30, 29, 30] == [one["tasks"] for one in said.values()]


@pytest.mark.slow
@pytest.mark.parametrize("changed", [{"right": 31}, {"tasks": 0}, {"random": 2}, {"more": 1}, {"right": True}])
def test_a_damaged_cross_validation_is_refused(changed: dict[str, object], tmp_path: Path) -> None:
    """A record whose counts are none is not released."""
    crowd = categorical_crowd(workers=30, tasks=60, labels=Categories(("no", "yes")), sparsity=0.5, source=seeded(3))
    record = guided(tmp_path, crowd, known=30) / RECORD_FILE
    data = json.loads(record.read_text("utf-8"))
    for entry in data["files"]:
        entry["gold"] |= changed
    record.write_text(json.dumps(data), "utf-8")

    with pytest.raises(SettingsError, match="must say how gold was cross-validated"):
        read_results(record.parent)
