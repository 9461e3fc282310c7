"""Files of results: their reading, gold among them, and the review of workers."""

import csv
import json
import re
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories
from crowdveil.em.gold import CrossValidation
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.output_record import RECORD_FILE
from crowdveil.pages.review_sentences import _agreement_or_difference_sentence
from crowdveil.pages.truth_facts import least_certain_tasks
from crowdveil.quality.agreement.alpha import Agreement, Interval, measure_agreement
from crowdveil.quality.gold_tasks import draw_tasks_without_known
from crowdveil.randomness import seeded
from crowdveil.simulate import Crowd, categorical_crowd
from crowdveil.storage.results.result_files import read_results
from tests.inferred_folders import LABELS, TASKS, Folder, command, write_answers, write_results


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


def test_doubtful_tasks_have_the_smallest_confidence(collected: Folder) -> None:
    """The doubtful tasks are those with the smallest confidence, the smallest first."""
    found = read_results(collected(epsilon=1.0)).estimate
    assert found.confidence is not None
    chosen = least_certain_tasks(found, 4)
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
    drawn = draw_tasks_without_known(crowd.answers, 30, seed=4).tasks
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


REVIEW_LABELS = Path(__file__).parent.parent.parent / "docs" / "samples" / "labels.csv"


def review_of(folder: Path, reports: Path | None, **text: object) -> list[str]:
    """Return the sentences of the section."""
    write_results(folder, reports, **text)
    page = (folder / "report.html").read_text("utf-8").replace("\N{NO-BREAK SPACE}", " ")
    section = re.search(r'<section aria-labelledby="review">.*?</section>', page, re.DOTALL)
    return [] if section is None else re.findall(r"<li>(.*?)</li>", section[0])


@pytest.fixture
def found(tmp_path: Path) -> Path:
    """Results of the sample of labels."""
    command("infer", REVIEW_LABELS, "--out", tmp_path / "found")
    return tmp_path / "found"


def test_doubtful_tasks_lead_to_the_next_answers(tmp_path: Path) -> None:
    """Where two answers to a task differ, the page says so, and which command lists the answers that help."""
    tied = tmp_path / "labels.csv"
    tied.write_text(REVIEW_LABELS.read_text("utf-8") + "p13,ann,cat\np13,bob,dog\n", "utf-8")
    command("infer", tied, "--out", tmp_path / "found")

    assert "crowdveil next" in review_of(tmp_path / "found", tied)[2]


def test_agreement_is_that_of_the_answers(found: Path) -> None:
    """With the answers the page has their alpha; without them it has tasks and workers only."""
    alpha = measure_agreement(Reports.from_csv(REVIEW_LABELS)).alphas["nominal"]
    with_answers, without = review_of(found, REVIEW_LABELS), review_of(found, None)

    assert f"is {alpha.value:.2f} (90 % interval {alpha.low:.2f} to {alpha.high:.2f})" in with_answers[0]
    assert with_answers[-1] == without[-1]
    assert with_answers[3] == "1 of 5 workers repeats answers that others contradict."
    assert with_answers[2].startswith(without[0].removesuffix("."))


def test_workers_are_named_only_on_request(found: Path) -> None:
    """The sentence on workers counts them, and names them only with workers."""
    silent, named = review_of(found, None)[-1], review_of(found, None, with_workers=True)[-1]

    assert re.match(r"\d of 5 workers (has|have) an ability below", silent)
    assert ":" not in silent
    assert len(silent) < len(named)


def test_one_task_and_one_worker_are_singular(tmp_path: Path) -> None:
    """The sentences on a single answer count one task and one worker."""
    (tmp_path / "one.csv").write_text("task,worker,label\na,v,x\nb,v,y\n")
    command("infer", tmp_path / "one.csv", "--out", tmp_path / "found")
    (tmp_path / "gold.csv").write_text("task,truth\nb,y\n")
    command("infer", tmp_path / "one.csv", "--gold", tmp_path / "gold.csv", "--out", tmp_path / "guided")
    several, one = (" ".join(review_of(tmp_path / name, None)) for name in ("found", "guided"))

    assert "2 of 2 tasks have fewer than two reports" in several
    assert "1 of 1 task without gold has fewer than two reports" in one
    assert re.search("[01] of 1 worker has an ability below", several)


def test_a_difference_that_no_two_answers_have_is_not_estimable() -> None:
    """Corrected for noise, the mean difference of two numbers can exceed the scale; then it is not stated."""
    known = Agreement(
        alphas={},
        pairwise=Interval(11.7, 9.0, 14.0),
        pairwise_name="difference",
        tasks=4,
        answers=9,
        single=0,
        channel_used=True,
        workers=None,
    )

    assert "is 11.70 (90 % interval 9.00 to 14.00)." in _agreement_or_difference_sentence(known, 12.0)
    assert _agreement_or_difference_sentence(known, 10.0).endswith("is not estimable from these reports.")
