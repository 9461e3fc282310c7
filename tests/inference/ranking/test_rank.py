"""Rankings by one call: ranks, intervals, probabilities, groups, workers, triples, known orders, channels."""

import math
import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from experiments.utility.comparisons.crowd import BASE, draw_crowd

import crowdveil as cv
from crowdveil.answers.comparisons.values import Comparisons
from crowdveil.errors import ReportsError
from crowdveil.estimators.ranking.channels import report_table
from crowdveil.inference.ranking.rank import rank_comparisons
from crowdveil.inference.ranking.triples import intransitive_triples
from crowdveil.pages.ranking_page import lead_sentences
from crowdveil.privacy.statement import PrivacyStatement
from tests.estimators.ranking.test_fit import drawn, of_codes

FRAME = {
    "left": ["a", "b", "a", "c", "b", "a", "b", "c", "c", "d", "d", "d"] * 2,
    "right": ["b", "c", "c", "d", "d", "d", "a", "b", "a", "c", "b", "a"] * 2,
    "worker": [*"uvwuvw"] * 4,
    "label": ["left", "b", "left", "left", "left", "tie", "right", "b", "right", "right", "right", "tie"] * 2,
}


def test_ranks() -> None:
    """The table has the items by rank, with a range that holds the rank and an interval that holds the score."""
    found = cv.rank(FRAME)
    table = found.to_arrow().to_pydict()

    assert table["item"] == ["a", "b", "c", "d"]
    assert table["rank"] == [1, 2, 3, 4]
    assert [*table] == ["item", "rank", "rank_low", "rank_high", "score", "low", "high", "comparisons"]
    for low, value, high in (("rank_low", "rank", "rank_high"), ("low", "score", "high")):
        assert all(a <= b <= c for a, b, c in zip(table[low], table[value], table[high], strict=True))
    assert sum(table["comparisons"]) == 2 * len(FRAME["left"])


def test_probability() -> None:
    """Probabilities of the two orders add up to one, and the better item has the larger."""
    found = cv.rank(FRAME)

    assert found.probability("a", "d") > 0.5
    assert found.probability("a", "d") + found.probability("d", "a") == pytest.approx(1)
    with pytest.raises(cv.CrowdveilError, match="an item must be one that was compared"):
        found.probability("a", "z")


def test_groups_are_not_compared() -> None:
    """Across groups nothing is stated: a warning names them, each has ranks of its own, no pair joins them."""
    other = {
        name: [one + "2" if name in ("left", "right") else one for one in column] for name, column in FRAME.items()
    }
    label = {"label": [*["left"] * 5, "tie", *["right"] * 5, "tie"] * 4}
    both = {name: [*FRAME[name], *other[name]] for name in FRAME} | label
    with pytest.warns(UserWarning, match="No comparison connects 2 groups"):
        found = cv.rank(both)
    table = found.to_arrow().to_pydict()

    assert table["group"] == [1, 1, 1, 1, 2, 2, 2, 2]
    assert table["rank"] == [1, 2, 3, 4] * 2
    assert len(found.pairs()["better"]) == 12
    with pytest.raises(cv.CrowdveilError, match="two items that comparisons connect"):
        found.probability("a", "b2")


def test_lists() -> None:
    """Items of several lists are ranked by list without a warning; an item of two lists needs its list."""
    frame = {name: column * 2 for name, column in FRAME.items()} | {"list": ["p"] * 24 + ["q"] * 24}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cv.rank(frame)

    assert found.to_arrow().to_pydict()["list"] == ["p"] * 4 + ["q"] * 4
    assert found.probability("a", "b", list="p") > 0.5
    with pytest.raises(cv.CrowdveilError, match="State its list"):
        found.probability("a", "b")


def test_pairs_told_apart() -> None:
    """Pairs are listed with the better item first; those of probability .95 or more are told apart."""
    found = rank_comparisons(drawn(20, rows=1500))
    pairs = found.pairs()

    assert (pairs["probability"] >= 0.5 - 1e-9).all()
    assert found.told_apart == (int(pairs["told_apart"].sum()), 28)
    assert (pairs["told_apart"] == (pairs["probability"] >= 0.95)).all()


def test_workers() -> None:
    """Workers are listed by slope, with direction, side and ties; counting knows their numbers only."""
    table = cv.rank(FRAME).workers()

    assert sorted(table["worker"]) == ["u", "v", "w"]
    assert (np.diff(table["slope"]) >= 0).all()
    assert ((table["right_direction"] > 0.5) == (table["slope"] > 0)).all()
    assert [*cv.rank(FRAME, "counting").workers()] == ["worker", "comparisons"]


def test_predictions() -> None:
    """Answers of a known worker, and of one who was never seen, are predicted; they add up to one."""
    found = cv.rank(FRAME)
    for worker in ("u", None):
        assert sum(found.predict("a", "d", worker).values()) == pytest.approx(1)
    assert found.predict("b", "d")["left"] > found.predict("d", "b")["left"]
    with pytest.raises(cv.CrowdveilError, match="worker must be one who has answered"):
        found.predict("a", "d", "z")
    with pytest.raises(cv.CrowdveilError, match="predicts no answers"):
        cv.rank(FRAME, "counting").predict("a", "d")


def circles_by_loops(rows: Comparisons) -> tuple[int, int]:
    """Return the numbers of triples with majorities, and of those in a circle, by loops."""
    items = len(rows.items)
    net = np.zeros((items, items))
    for left, right, answer in zip(rows.left, rows.right, rows.answer, strict=True):
        net[left, right] += 1 - answer
        net[right, left] -= 1 - answer
    closed = circles = 0
    for one in range(items):
        for two in range(one + 1, items):
            for three in range(two + 1, items):
                signs = np.sign([net[one, two], net[two, three], net[three, one]])
                closed += int((signs != 0).all())
                circles += int(abs(signs.sum()) == 3)
    return closed, circles


@pytest.mark.parametrize("seed", range(3))
def test_intransitive_triples(seed: int) -> None:
    """Triples are those of loops over all; every example is a circle."""
    random = np.random.default_rng(seed)
    rows = drawn(seed, rows=60).with_answers(random.integers(0, 3, 60))
    found = intransitive_triples(rows, most=1000)

    assert (found.closed, found.intransitive) == circles_by_loops(rows)
    assert len(found.examples) == found.intransitive
    assert (found.margins > 0).all()


def test_known_orders() -> None:
    """Known orders turn round a ranking of which most answers are reversed; known ties are not used."""
    frame = {**FRAME, "label": [*["right"] * 5, "tie", *["left"] * 5, "tie"] * 2}
    gold = {"left": ["a", "b", "d"], "right": ["d", "c", "b"], "label": ["a", "left", "right"]}
    found = cv.rank(frame, gold=gold)

    assert cv.rank(frame).probability("a", "d") < 0.5
    assert found.probability("a", "d") > 0.5
    assert found.known == 3
    with pytest.raises(cv.CrowdveilError, match="known orders must be of items that were compared"):
        cv.rank(frame, gold={"left": ["a"], "right": ["z"], "label": ["a"]})
    with pytest.warns(UserWarning, match="1 known tie of gold not used"):
        cv.rank(frame, gold={"left": ["a", "b"], "right": ["d", "c"], "label": ["a", "tie"]})


@pytest.mark.parametrize("labels", [("left", "tie", "right"), ("left", "right")])
def test_reports_of_a_channel(labels: tuple[str, ...]) -> None:
    """Reports of randomized response are ranked through its channel; triples of votes are then not counted."""
    random = np.random.default_rng(21)
    left = random.integers(0, 6, 3000)
    right = (left + random.integers(1, 6, 3000)) % 6
    channel = cv.RandomizedResponse(alphabet=cv.Categories(labels), epsilon=1.0, participation="public").channel()
    answers = np.where(random.random(3000) < 1 / (1 + np.exp(left - right)), "left", "right")
    codes = np.array([channel.inputs.index(answer) for answer in answers])
    cumulative = channel.probabilities.cumsum(axis=1)[codes]
    reports = np.array(channel.outputs)[(random.random((3000, 1)) > cumulative[:, :-1]).sum(axis=1)]
    frame = {"left": left, "right": right, "worker": np.arange(3000) % 30, "label": reports}
    found = cv.rank(frame, channel=channel)

    assert found.to_arrow()["item"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert found.triples is None


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"method": "davidsn"}, "method must be one of"),
        ({"method": 3}, "method must be one of"),
        ({"participation_rate": 0.5}, "goes with a channel"),
        ({"labels": 1}, "options must be known"),
    ],
)
def test_wrong_settings(given: dict[str, Any], rule: str) -> None:
    """Unknown methods and options, and a rate without a channel, are refused."""
    with pytest.raises(cv.CrowdveilError, match=rule):
        cv.rank(FRAME, **given)


def test_two_items() -> None:
    """Two items and one comparison are ranked."""
    found = rank_comparisons(of_codes(*(np.array([one], dtype=np.int32) for one in (0, 1, 0, 0))))

    assert found.to_arrow()["item"].to_pylist() == [0, 1]
    assert found.ranks.rank_high.tolist() == [2, 2]


def test_many_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit of exact covariances the ranking is the same, and its ranges are near."""
    exact = rank_comparisons(drawn(22, items=30, rows=3000))
    for name in ("estimators.ranking.posterior.EXACT", "inference.ranking.ranking.EXACT"):
        monkeypatch.setattr(f"crowdveil.{name}", 0)
    drawn_ranges = rank_comparisons(drawn(22, items=30, rows=3000))

    assert not drawn_ranges.has_pairs
    np.testing.assert_array_equal(drawn_ranges.ranks.rank, exact.ranks.rank)
    assert np.abs(drawn_ranges.ranks.rank_low - exact.ranks.rank_low).mean() < 1.5


def test_names_that_look_alike() -> None:
    """Items of one list, and workers, whose names differ in spaces or Unicode form alone are named in a warning."""
    frame = {
        "left": ["e\u0301", "a", "a "],
        "right": ["\u00e9", "b", "b"],
        "worker": ["u", "u", "u "],
        "label": ["tie"] * 3,
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cv.rank(frame)
    texts = [str(one.message) for one in caught]

    assert any("different items: 'a', 'a '; 'e\\u0301', '\\xe9'." in text for text in texts), texts
    assert any("different workers: 'u', 'u '." in text for text in texts)


def test_absent_null_reports_are_refused() -> None:
    """Many reports of a channel that sends NULL, and no NULL among them, are not all that were asked."""
    alphabet = cv.Categories(("left", "tie", "right"))
    channel = cv.RandomizedResponse(alphabet=alphabet, epsilon=1.0).channel()
    rows = 200
    frame: dict[str, list[Any]] = {
        "left": ["a"] * rows,
        "right": ["b"] * rows,
        "worker": [n % 5 for n in range(rows)],
        "label": ["tie"] * rows,
    }

    with pytest.raises(ReportsError, match="need the lists of all tasks and workers"):
        cv.rank(frame, channel=channel, participation_rate=0.8)
    few = frame | {"label": [*["NULL"] * 15, *["left"] * 185]}
    assert report_table(channel, 0.8).least_null == pytest.approx(1 / (3 + math.e))
    assert rank_of(few, channel=channel, participation_rate=0.8)
    with pytest.raises(ReportsError, match="need the lists of all tasks and workers"):
        rank_of({name: column * 2 for name, column in few.items()}, channel=channel, participation_rate=0.8)
    with_null = frame | {"label": [*["NULL"] * 40, *["left"] * 160]}
    assert cv.rank(with_null, channel=channel, participation_rate=0.8).comparisons.workers.tolist() == [*range(5)]


@pytest.mark.parametrize("policy", ["first", "last"])
def test_repeated_pairs(policy: str) -> None:
    """Of a pair that a worker compares again, in either order, the first or last row is kept."""
    frame = {"left": [*"aba"], "right": [*"bac"], "worker": [*"uuu"], "label": ["left", "left", "tie"]}
    kept = cv.rank(frame, "davidson", duplicates=policy).comparisons  # type: ignore[arg-type]

    assert len(kept) == 2
    assert kept.items[kept.left].tolist() == [{"first": "a", "last": "b"}[policy], "a"]


def test_note_where_many_may_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where half of the workers guess and ranges are of the approximation, a note says so; draws need none."""
    kind = BASE.named("half guess", items=30, per_item=40, workers=24, spam=0.5)
    rows = draw_crowd(kind, 1).comparisons

    assert not [note for note in rank_comparisons(rows).notes if "may guess" in note]
    monkeypatch.setattr("crowdveil.estimators.ranking.methods.DRAWN_ROWS", 10)
    assert [note for note in rank_comparisons(rows).notes if "can be too short" in note]


def test_few_reports_behind_noise() -> None:
    """Behind noise, with few reports of each worker, all count alike; with more, slopes differ."""
    labels = cv.Categories(("left", "tie", "right"))
    sent = report_table(cv.RandomizedResponse(alphabet=labels, epsilon=2.0, participation="public").channel())
    kinds = [BASE.named("reports", items=6, per_item=100, workers=workers) for workers in (60, 5)]
    few, many = (rank_comparisons(draw_crowd(kind, 3).comparisons, sent=sent) for kind in kinds)

    assert [*few.workers()] == ["worker", "side", "tie_rate", "comparisons"]
    assert few.workers_who_may_guess == 0
    assert len(np.unique(many.workers()["slope"])) == 5


def test_wrong_gold() -> None:
    """Gold without a label is told the columns that gold has; a pair known in both orders is named in a note."""
    with pytest.raises(ReportsError, match="known orders need one column each for left, right and label; found none"):
        cv.rank(FRAME, gold={"left": ["a"], "right": ["b"]})
    both = {"left": ["a", "b", "a"], "right": ["b", "a", "c"], "label": ["left"] * 3}

    assert "1 pair of gold known in both orders: correct the wrong rows." in rank_of(FRAME, gold=both).notes


def crowd_with_reversed(reverse: int, workers: int = 18) -> dict[str, list[Any]]:
    """Return comparisons of all pairs of six items, of which some workers reverse the order."""
    cells = [(a, b, worker) for worker in range(workers) for a, b in combinations("abcdef", 2)]
    return {
        "left": [a for a, _, _ in cells],
        "right": [b for _, b, _ in cells],
        "worker": [worker for _, _, worker in cells],
        "label": ["right" if worker < reverse else "left" for _, _, worker in cells],
    }


def rank_of(frame: dict[str, list[Any]], **given: Any) -> cv.Ranking:
    """Return the ranking of a frame; its notes are in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cv.rank(frame, **given)


def test_note_where_no_majority_decides() -> None:
    """Where about as many workers reverse the order as follow it, a note and the page say so, unless gold decides."""
    half, few = crowd_with_reversed(8), crowd_with_reversed(3)
    known = {"left": ["a"], "right": ["f"], "label": ["left"]}
    found = rank_of(half)
    (note,) = [note for note in found.notes if "may be reversed" in note]

    assert note.startswith("10 workers follow the order and 8 reverse it")
    assert note in lead_sentences(found, PrivacyStatement(status="none", reason="Plain."))
    assert not [note for note in rank_of(few).notes if "may be reversed" in note]
    assert not [note for note in rank_of(half, gold=known).notes if "may be reversed" in note]


def test_ties_rank_nothing() -> None:
    """Where no comparison prefers an item, ranks have the range of their whole group, and a note says so."""
    ties = crowd_with_reversed(0, workers=4) | {"label": ["tie"] * 60}
    other: dict[str, list[Any]] = {"left": ["x"] * 4, "right": ["y"] * 4, "worker": [0, 1, 2, 3], "label": ["left"] * 4}
    found, both = rank_of(ties), rank_of({name: [*ties[name], *other[name]] for name in ties})

    assert {*zip(found.ranks.rank_low.tolist(), found.ranks.rank_high.tolist(), strict=True)} == {(1, 6)}
    assert "No comparison prefers an item" in " ".join(found.notes)
    assert found.told_apart == (0, 15)
    assert "No comparison of 1 group prefers an item" in " ".join(both.notes)
    assert both.ranks.rank_high.tolist()[:6] == [6] * 6
