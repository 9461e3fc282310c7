"""Reviews of a crowd: workers below a bound, and conclusions from known truths."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crowdveil as cv
from crowdveil.answers.evidence import Evidence
from crowdveil.answers.facts.collection import Collection
from crowdveil.answers.ingest.gold_files import DrawnGold, load_gold_and_seed
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.guarantee import Guarantee
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.inference.given import KnownTruths
from crowdveil.inference.infer import infer
from crowdveil.inference.methods import Method
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.quality.conclusions import conclude_from_drawn_gold
from crowdveil.quality.review.workers import review_workers
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd
from crowdveil.simulate.perturbation import perturb_reports

LABELS = Categories(("no", "yes"))
GOOD, CONSTANT, COIN, BAD, NEW = range(16), 16, 17, 18, 19
"""Workers with ability .9, a worker who always says yes, one who guesses, one with ability .3, one with two answers."""


def answers() -> Reports:
    """Answers of the workers above to 100 tasks."""
    source = np.random.default_rng(4)
    truth = source.integers(0, 2, 100)
    ability = np.array([*[0.9] * 16, 0.5, 0.5, 0.3, 0.5])[:, None]
    value = np.where(source.random((20, 100)) < ability, truth, 1 - truth)
    value[CONSTANT] = 1
    answered = np.ones((20, 100), dtype=bool)
    answered[NEW, 2:] = False
    worker, task = np.nonzero(answered)
    return Reports(task.astype(np.int32), worker.astype(np.int32), value[worker, task].astype(np.int16),
        np.arange(100).astype(str), np.arange(20).astype(str), LABELS)  # fmt: skip


def evidence(reports: Reports, **parts: object) -> Evidence:
    """Evidence without a file."""
    return Evidence(observed=reports, **{"no_channel_reason": "no certificate was found", **parts})  # type: ignore[arg-type]


def test_bad_workers_are_listed_with_their_reasons() -> None:
    """The constant worker is listed first, then the bad and the guessing one, each with a reason; nobody else is."""
    review = review_workers(infer(evidence(answers())))
    reasons = {one.worker: " ".join(one.reasons) for one in review.found}

    assert [str(CONSTANT), str(BAD), str(COIN)] == list(reasons)
    assert ["repeats", "chance", "ability"] == [one.kind for one in review.found]
    assert "All 100 answers are 'yes'; others contradict about" in reasons[str(CONSTANT)]
    assert "less than by chance" in reasons[str(BAD)]
    assert "The ability is below" in reasons[str(COIN)]


def test_behind_a_channel_only_intervals_count() -> None:
    """Noise makes intervals wide: the bad worker is listed for ability alone, and no good one is."""
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=3.0, participation="public")
    sent = perturb_reports(answers(), mechanism, seeded(2))
    review = review_workers(infer(evidence(sent, channel=mechanism.channel())))

    assert review.channel_used
    assert str(BAD) in {one.worker for one in review.found}
    assert set() == {str(worker) for worker in GOOD} & {one.worker for one in review.found}
    assert all(one.reasons == (one.reasons[0],) and "ability" in one.reasons[0] for one in review.found)


def test_what_cannot_be_reviewed_is_refused(tmp_path: Path) -> None:
    """Protected reports without a channel, methods without intervals, and bounds outside (0, 1) are refused."""
    facts = Collection(mechanism="two-layer", description="two-layer", guarantee=Guarantee(epsilon=1.0))
    with pytest.raises(ReportsError, match="noise counts as a worker's errors"):
        review_workers(infer(evidence(answers(), collection=facts)))
    with pytest.raises(SettingsError, match="intervals"):
        review_workers(infer(answers(), Method(name="majority-vote")))
    with pytest.raises(SettingsError, match="between 0 and 1"):
        review_workers(infer(answers()), bound=1.5)


CONCLUSIONS_LABELS = cv.Categories(("no", "yes"))
CROWD = categorical_crowd(workers=12, tasks=300, labels=CONCLUSIONS_LABELS, sparsity=0.4, source=cv.seeded(2))
TRUTHS = {str(task): truth for task, truth in CROWD.gold.items()}
PAIRS = [("1", "2"), ("3", "4"), ("5", "6"), ("7", "8")]


def gold_of(seed: int, number: int = 50) -> dict[str, Any]:
    """Return the truths of the first tasks of a draw."""
    drawn = cv.draw_gold(CROWD.answers, number, seed=seed)["task"].to_pylist()
    return {task: TRUTHS[task] for task in drawn}


def test_intervals_hold_about_nine_times_in_ten() -> None:
    """Over 150 draws of 50 gold tasks, 85 to 97 % of intervals hold; those of differences may be wider than needed."""
    inferred = infer(CROWD.answers)
    every = conclude_from_drawn_gold(inferred, KnownTruths(truths=TRUTHS), stated_random=True, compare=PAIRS)
    exact = {(row.quantity, row.name, row.other): row.found.estimate for row in every.rows}
    held: dict[str, list[bool]] = {}
    for seed in range(150):
        drawn = KnownTruths(truths=gold_of(seed), seed=seed)
        for row in conclude_from_drawn_gold(inferred, drawn, compare=PAIRS).rows:
            inside = row.found.low <= exact[row.quantity, row.name, row.other] <= row.found.high
            held.setdefault(row.quantity, []).append(inside)

    assert {"prevalence", "accuracy", "difference"} == set(held)
    for quantity, found in held.items():
        assert np.mean(found) >= 0.85, quantity
        assert quantity == "difference" or np.mean(found) <= 0.97, quantity


def test_all_known_truths_give_exact_shares() -> None:
    """With the truth of every task, estimate and both ends are the share of a truth, or of right answers."""
    found = cv.conclude(CROWD.answers, TRUTHS, random=True)
    rows = {(row["quantity"], row["name"]): row["estimate"] for row in found.to_pylist()}
    answers = CROWD.answers
    worker = str(answers.workers[0])
    right = [
        answers.alphabet.names[value] == TRUTHS[str(answers.tasks[task])]
        for task, who, value in zip(answers.task, answers.worker, answers.value, strict=True)
        if who == 0
    ]

    assert rows["prevalence", "yes"] == pytest.approx(np.mean([truth == "yes" for truth in TRUTHS.values()]))
    assert rows["accuracy", worker] == pytest.approx(np.mean(right))
    assert found["low"].to_pylist() == found["high"].to_pylist()


def test_gold_that_is_not_a_draw_is_refused() -> None:
    """Gold without a seed, with another seed, or without one task, is refused; stated randomness must look random."""
    gold = gold_of(1)
    with pytest.raises(ReportsError, match="drawn at random"):
        cv.conclude(CROWD.answers, gold)
    with pytest.raises(ReportsError, match="first tasks of the draw with seed 2"):
        cv.conclude(CROWD.answers, gold, seed=2)
    yes = {task: truth for task, truth in TRUTHS.items() if truth == "yes"}
    with pytest.raises(ReportsError, match="not a random sample"):
        cv.conclude(CROWD.answers, dict(list(yes.items())[:60]), random=True)
    with pytest.raises(ReportsError, match="10 gold tasks"):
        cv.conclude(CROWD.answers, gold_of(1, 9), seed=1)


def test_behind_a_channel_there_are_prevalences_only() -> None:
    """Reports with their channel give the prevalences; accuracies are asked for in vain."""
    mechanism = cv.RandomizedResponse(alphabet=CONCLUSIONS_LABELS, epsilon=3.0)
    reports = cv.perturb(CROWD.answers, mechanism, cv.seeded(1))
    gold = {task: TRUTHS[task] for task in cv.draw_gold(reports, 50, seed=4)["task"].to_pylist()}
    found = cv.conclude(reports, gold, seed=4, channel=mechanism.channel())

    assert ["prevalence"] * 2 == found["quantity"].to_pylist()
    with pytest.raises(SettingsError, match="behind a channel"):
        cv.conclude(reports, gold, seed=4, channel=mechanism.channel(), compare=[("w1", "w2")])


def test_a_file_of_gold_is_filled_from_the_top(tmp_path: Path) -> None:
    """With a column seed, tasks whose truth is still empty are left out; without it an empty truth is refused."""
    path = tmp_path / "gold.csv"
    path.write_text("task,truth,seed\nb,yes,5\na,no,5\nc,,5\n")

    assert DrawnGold({"a": "no", "b": "yes"}, 5) == load_gold_and_seed(path)
    path.write_text("task,truth\nb,yes\nc,\n")
    with pytest.raises(ReportsError, match="needs a truth"):
        load_gold_and_seed(path)
    for text, rule in (
        ("b,yes,5\na,no,6\n", "one seed"),
        ("b,yes,\n", "one seed"),
        ("b,,5\n", "no truth is known yet"),
    ):
        path.write_text("task,truth,seed\n" + text)
        with pytest.raises(ReportsError, match=rule):
            load_gold_and_seed(path)
