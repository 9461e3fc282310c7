"""`crowdveil perturb --comparisons`: public pairs, sides, ties, participation, and the ranking of what was sent."""

import json
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from crowdveil.answers.comparisons.columns import NO_COMPARISON_NAMES
from crowdveil.answers.comparisons.reports import participation_of_reports
from crowdveil.answers.comparisons.sides import with_drawn_sides
from crowdveil.answers.sources.answer_source import local_source
from crowdveil.channels.channel import Channel
from crowdveil.randomness import seeded
from crowdveil.storage.ranking.comparisons import read_comparisons
from crowdveil.storage.ranking.pairs import read_public_pairs
from tests.cli.conftest import Refusal, Run, RunJson, rows, write, written

ITEMS, WORKERS = "abcdef", [f"w{number}" for number in range(40)]
LISTS = ("--tasks", "pairs.csv", "--workers", "people.csv")
RESPONSE = ("--mechanism", "randomized-response", "--epsilon", 3)


@pytest.fixture(autouse=True)
def comparisons(folder: Path) -> None:
    """Files of all pairs of six items, of forty workers, and of their comparisons, of which 30 % are missing."""
    random = np.random.default_rng(7)
    write("pairs.csv", "left,right", *(f"{a},{b}" for a, b in combinations(ITEMS, 2)))
    write("people.csv", "worker", *WORKERS)
    lines = []
    for worker, (a, b) in product(WORKERS, combinations(ITEMS, 2)):
        if random.random() < 0.7:
            better = a if random.random() < 1 / (1 + np.exp(ITEMS.index(a) - ITEMS.index(b))) else b
            label = "tie" if random.random() < 0.1 else better
            lines.append(f"{b},{a},{worker},{label}" if random.random() < 0.5 else f"{a},{b},{worker},{label}")
    write("compared.csv", "left,right,worker,label", *lines)


def test_from_answers_to_ranks(run: Run, run_json: RunJson) -> None:
    """Randomized comparisons are ranked through the certificate; the share that was answered is estimated."""
    sent = run_json("perturb", "compared.csv", "--comparisons", *RESPONSE, *LISTS, "--out", "sent")
    found = run_json("rank", "sent")

    assert written("sent") == {"reports.csv", "certificate.json", "crowd.json"}
    assert (sent["tasks"], sent["workers"], sent["answers"]) == (15, 40, None)
    assert [one["exact"] for one in sent["accounts"] if one["unit"] == "cell"] == [pytest.approx(3.0)]
    assert [one["exact"] for one in sent["accounts"] if one["unit"] == "worker"] == [pytest.approx(45.0)]
    assert (found["comparisons"], found["channel_used"]) == (600, True)
    assert found["ranks"]["items"][0]["item"] in "ab"
    assert found["ranks"]["items"][-1]["item"] in "ef"
    assert "of the comparisons asked are answered" in found["warnings"][0]
    read = read_comparisons(local_source(Path("sent/reports.csv")), NO_COMPARISON_NAMES)
    channel = Channel.from_certificate(Path("sent/certificate.json").read_bytes())
    assert participation_of_reports(read.rows, channel) == pytest.approx(0.7, abs=0.1)


def test_ranking_is_that_of_the_answers(run: Run, run_json: RunJson) -> None:
    """At the largest epsilon the reports are the answers, turned into the order of the list, NULL where none is."""
    run("perturb", "compared.csv", "--comparisons", *RESPONSE[:3], 20, *LISTS, "--out", "sent")
    sent = {(row["task"], row["worker"]): row["label"] for row in rows("sent/reports.csv")}
    answers = rows("compared.csv")

    assert len(sent) == len(answers)
    for row in answers:
        first, second = sorted((row["left"], row["right"]))
        said = {first: "left", second: "right", "tie": "tie"}[row["label"]]
        assert sent[f"{first}|{second}", row["worker"]] == said
    ranked = run_json("rank", "sent")["ranks"]["items"]
    assert [one["item"] for one in ranked] == [
        one["item"] for one in run_json("rank", "compared.csv")["ranks"]["items"]
    ]


@pytest.mark.parametrize(
    ("more", "outputs"),
    [
        (("--epsilon", 1), ["left", "right"]),
        (("--epsilon", 1, "--ties", 0.6), ["left", "tie", "right", "NULL"]),
        (("--epsilon", 1, "--participation", "public"), ["left", "right"]),
        (("--epsilon", 3, "--participation", "public"), ["left", "tie", "right"]),
        (("--budget", 15), ["left", "right"]),
    ],
)
def test_designed_chooses_symbols(run: Run, run_json: RunJson, more: tuple[object, ...], outputs: list[str]) -> None:
    """Two symbols or three follow from epsilon, ties and participation; a report of two has no NULL."""
    run("perturb", "compared.csv", "--comparisons", "--mechanism", "designed", *more, *LISTS, "--out", "sent")
    certificate = json.loads(Path("sent/certificate.json").read_bytes())

    assert certificate["outputs"] == outputs
    assert certificate["alphabet"]["names"] == ["left", "tie", "right"]
    hidden = certificate["participation"] == "protected"
    if hidden and outputs == ["left", "right"]:
        assert len(rows("sent/reports.csv")) == 600
    rate = ("--participation-rate", 0.7) if hidden else ()
    assert run_json("rank", "sent", *rate)["channel_used"]


def test_tossed_participation_must_be_stated(run: Run, run_json: RunJson, refusal: Refusal) -> None:
    """With two symbols reports do not show how many comparisons were answered: the share is stated or refused."""
    run("perturb", "compared.csv", "--comparisons", "--mechanism", "designed", "--epsilon", 1, *LISTS, "--out", "sent")

    for words in (("rank", "sent"), ("next", "sent", "--comparisons", "--budget", 3)):
        assert "needs participation_rate" in refusal(*words)
        assert run_json(*words, "--participation-rate", 0.7)["warnings"] is not None
    alone = ("next", "sent", "--budget", 3, "--participation-rate", 0.7)
    assert "--participation-rate requires --comparisons" in run(*alone, code=2).stderr


def test_assignment_with_sides(run: Run, run_json: RunJson) -> None:
    """Assigned pairs have drawn sides, which reports keep; a worker spends epsilon for assigned pairs only."""
    run("data", "assign", "--comparisons", *LISTS, "--per-task", 40, "--out", "asked.csv")
    asked = rows("asked.csv")
    run("perturb", "compared.csv", "--comparisons", *RESPONSE[:3], 20, "--assignment", "asked.csv", "--out", "sent")
    shown = {(f"{row['left']}|{row['right']}", row["worker"]) for row in asked}
    found = read_comparisons(local_source(Path("sent/reports.csv")), NO_COMPARISON_NAMES, None, 0.7).rows

    assert len(asked) == 600
    assert 200 < sum(row["left"] < row["right"] for row in asked) < 400
    assert {(row["task"], row["worker"]) for row in rows("sent/reports.csv")} <= shown
    left, right = found.items[found.left], found.items[found.right]
    assert {(f"{a}|{b}", found.workers[w]) for a, b, w in zip(left, right, found.worker, strict=True)} == shown
    assert len(found) == 600


def test_two_symbols_of_assigned_pairs(run: Run, run_json: RunJson) -> None:
    """Reports of two symbols on assigned pairs have these symbols, one for each pair, and are ranked."""
    run("data", "assign", "--comparisons", *LISTS, "--per-task", 40, "--out", "asked.csv")
    words = ("--mechanism", "designed", "--epsilon", 1, "--assignment", "asked.csv", "--out", "sent")
    run("perturb", "compared.csv", "--comparisons", *words)

    assert {row["label"] for row in rows("sent/reports.csv")} == {"left", "right"}
    assert run_json("rank", "sent", "--participation-rate", 0.7)["comparisons"] == 600


def test_each_worker_spends_what_is_assigned(run: Run, run_json: RunJson) -> None:
    """A worker with three comparisons spends epsilon three times, and unassigned comparisons are refused."""
    run("data", "assign", "--comparisons", *LISTS, "--per-task", 8, "--out", "asked.csv")
    asked = rows("asked.csv")
    lines = [f"{row['left']},{row['right']},{row['worker']},left" for row in asked]
    write("few.csv", "left,right,worker,label", *lines)
    sent = run_json("perturb", "few.csv", "--comparisons", *RESPONSE, "--assignment", "asked.csv", "--out", "sent")

    assert [one["exact"] for one in sent["accounts"] if one["unit"] == "worker"] == [pytest.approx(9.0)]
    assert sent["assigned"] == 120


def test_sides_are_kept_or_turned(run: Run) -> None:
    """Both orders of a drawn assignment occur, and its cells are those of the assignment before."""
    run("data", "assign", "--tasks", "pairs.csv", "--workers", "people.csv", "--comparisons", "--per-task", 2,
        "--out", "asked.csv")  # fmt: skip
    plain = read_public_pairs(assignment=Path("asked.csv")).assignment
    assert plain is not None
    turned = with_drawn_sides(plain, seeded(1))
    cells = [
        {(frozenset(str(one.tasks[task]).split("|")), str(one.workers[worker]))
         for task, worker in zip(one.task, one.worker, strict=True)} for one in (plain, turned)
    ]  # fmt: skip

    assert cells[0] == cells[1]
    assert {*map(str, plain.tasks)} != {*map(str, turned.tasks)}


def test_several_lists(run: Run, run_json: RunJson) -> None:
    """Pairs of several lists have the list before the items, and are ranked list by list."""
    write("pairs.csv", "list,left,right", "s,a,b", "s,b,c", "s,a,c", "t,a,b")
    write("compared.csv", "list,left,right,worker,label", *(
        f"{pair},w{number},left" for number in range(20) for pair in ("s,a,b", "s,b,c", "s,a,c", "t,a,b")
    ))  # fmt: skip
    run("perturb", "compared.csv", "--comparisons", *RESPONSE, *LISTS, "--out", "sent")

    assert {row["task"] for row in rows("sent/reports.csv")} == {"s|a|b", "s|b|c", "s|a|c", "t|a|b"}
    assert run_json("rank", "sent", "--participation-rate", 0.5)["lists"] == 2


@pytest.mark.parametrize(
    ("file", "lines", "rule"),
    [
        ("pairs.csv", ("left,right", "a,b", "b,a"), "a pair is listed once, in whatever order"),
        ("pairs.csv", ("left,right",), "a list of pairs must have a row"),
        ("pairs.csv", ("left,right", "a,a"), "an item cannot be compared with itself"),
        ("pairs.csv", ("left,right", "a|x,b"), "a name of an item or list must have a sign, and no |"),
        ("pairs.csv", ("left,right", "a,"), "a name of an item or list must have a sign"),
        ("pairs.csv", ("left,right", "a,b"), "every pair that is compared must be in the list of pairs"),
        ("pairs.csv", ("one,other", "a,b"), "left"),
        ("compared.csv", ("left,right,worker,label", "a,b,w1,left", "b,a,w1,left"), "a pair is asked of a worker once"),
        ("compared.csv", ("left,right,worker,label", "a,b,w1,c"), "must be left, tie or right"),
        ("compared.csv", ("left,right,worker,label", "a,b,w99,left"), "w99"),
        ("people.csv", ("name", "w1"), "worker"),
    ],
)
def test_refused_files(refusal: Refusal, file: str, lines: tuple[str, ...], rule: str) -> None:
    """What breaks a rule is refused before anything is written."""
    write(file, *lines)

    assert rule in refusal("perturb", "compared.csv", "--comparisons", *RESPONSE, *LISTS, "--out", "sent")
    assert not Path("sent").exists()


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        (("left,right,worker", "a,b,w1", "b,a,w1"), "a pair is asked of a worker once"),
        (("left,right,worker", "a,b,w1", "c,d,w2"), "a worker compares pairs that were assigned to them"),
        (("left,right,worker", "a,z,w1"), "every assigned pair must be listed"),
    ],
)
def test_refused_assignments(refusal: Refusal, lines: tuple[str, ...], rule: str) -> None:
    """A curator cannot assign a pair in both orders, and devices answer assigned pairs only."""
    write("asked.csv", *lines)
    words = ("--assignment", "asked.csv", *(LISTS[:2] if "listed" in rule else ()))

    assert rule in refusal("perturb", "compared.csv", "--comparisons", *RESPONSE, *words, "--out", "sent")


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (("--labels", "left,right"), "leave out --labels"),
        (("--ability", 0.8), "leave out --ability"),
        (("--mechanism", "one-layer"), "--comparisons needs --mechanism"),
        (("--ties", 0.2), "--ties is an option of designed"),
    ],
)
def test_refused_options(run: Run, words: tuple[object, ...], rule: str) -> None:
    """Options of other answers are refused."""
    name = () if "one-layer" in words else RESPONSE[:2]
    if rule.endswith("--ability"):
        name = ("--mechanism", "designed")
    given = ("perturb", "compared.csv", "--comparisons", *name, "--epsilon", 1, *LISTS, *words, "--out", "sent")

    assert rule in run(*given, code=2).stderr


def test_public_lists_are_needed(run: Run, refusal: Refusal) -> None:
    """Pairs or workers that are taken from the answers are refused, and ties without comparisons."""
    words = ("perturb", "compared.csv", *RESPONSE, "--out", "sent")

    for lists in (LISTS[:2], LISTS[2:], ()):
        assert "must be listed before anyone answers" in refusal(*words, "--comparisons", *lists)
    assert "--ties requires --comparisons" in run(*words, "--ties", 0.2, code=2).stderr


@pytest.mark.parametrize("label", ["NULL", ""])
def test_public_participation_needs_every_answer(refusal: Refusal, label: str) -> None:
    """With public participation a row without an answer is refused, as its value would decide who is seen."""
    write("compared.csv", "left,right,worker,label", "a,b,w1,left", f"a,c,w1,{label}")
    public = ("--participation", "public", "--out", "sent")

    assert refusal("perturb", "compared.csv", "--comparisons", *RESPONSE, *public)


def test_exports_are_not_private_answers(refusal: Refusal) -> None:
    """Answers that are randomized are read from plain tables only, so that no answer decides how they are read."""
    Path("compared.json").write_text(json.dumps(rows("compared.csv")), "utf-8")

    words = ("perturb", "compared.json", "--comparisons", *RESPONSE, *LISTS)
    assert "must have plain columns" in refusal(*words, "--out", "sent")


def test_one_row_of_several(run: Run) -> None:
    """Of several comparisons of a pair by a worker, in either order, the first or the last counts."""
    lines = ("a,b,w1,left", "b,a,w1,left", "a,b,w2,tie")
    write("compared.csv", "left,right,worker,label", *lines)
    for which, label in (("first", "left"), ("last", "right")):
        run("perturb", "compared.csv", "--comparisons", *RESPONSE[:3], 20, *LISTS, "--duplicates", which,
            "--out", which)  # fmt: skip
        assert {(row["worker"], row["label"]) for row in rows(f"{which}/reports.csv")} == {("w1", label), ("w2", "tie")}


def test_numbers_as_names(run: Run) -> None:
    """Items and workers that are numbers are read alike in all files."""
    write("pairs.csv", "left,right", "1,2", "2,10")
    write("people.csv", "worker", "1", "2")
    write("compared.csv", "left,right,worker,label", "2,1,1,left", "2,10,2,2")
    run("perturb", "compared.csv", "--comparisons", *RESPONSE[:3], 20, *LISTS, "--out", "sent")
    found = {(row["task"], row["worker"], row["label"]) for row in rows("sent/reports.csv")}

    assert found == {("1|2", "1", "right"), ("2|10", "2", "left")}


@pytest.mark.parametrize(
    "words",
    [
        ("--participation", "public"),
        ("--participation", "public", *LISTS[2:]),
        ("--participation", "public", *LISTS[:2]),
        ("--lists-from-answers",),
    ],
)
def test_order_of_rows_is_not_published(run: Run, words: tuple[str, ...]) -> None:
    """Rows with the winner left and their mirror image give the same public files, and the same turned answers."""
    answers = [(row["label"], row) for row in rows("compared.csv") if row["label"] != "tie"]
    both: dict[str, list[str]] = {"winner": [], "mirror": []}
    for best, row in answers:
        worst = row["left"] if best == row["right"] else row["right"]
        both["winner"].append(f"{best},{worst},{row['worker']},left")
        both["mirror"].append(f"{worst},{best},{row['worker']},right")
    for name, lines in both.items():
        write(f"{name}.csv", "left,right,worker,label", *lines)
        run("perturb", f"{name}.csv", "--comparisons", *RESPONSE[:3], 20, *words, "--out", name)
    public = written("winner") - {"reports.csv"}

    assert written("mirror") == written("winner")
    assert all(Path("winner", file).read_bytes() == Path("mirror", file).read_bytes() for file in public)
    assert {row["task"] for row in rows("winner/reports.csv")} == {"|".join(two) for two in combinations(ITEMS, 2)}
    assert rows("winner/reports.csv") == rows("mirror/reports.csv")


def test_without_lists_there_is_no_privacy(run: Run) -> None:
    """Pairs and workers taken from the answers are marked as without privacy."""
    shown = run("perturb", "compared.csv", "--comparisons", *RESPONSE, "--lists-from-answers", "--out", "sent").stdout

    assert "no privacy" in shown
    assert read_public_pairs() == (None, None, None)
