"""Bad workers come first in a review, by their answers: repeaters, copies, and who cannot be told from careful work."""

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.utility.crowds.crowd import Crowd, coin_tables, crowd_by_tables, drawn_truths, repeated_tables
from experiments.utility.crowds.kinds import copying, few_tasks, kinds, repeating
from experiments.utility.crowds.reviews import ReviewRow, is_ordered, reviewed, roles_of

import crowdveil as cv
from crowdveil.cli import main
from crowdveil.pages.review_sentences import crowd_review_sentences
from crowdveil.quality.review.label_patterns import LabelPatterns
from crowdveil.quality.review.leave_one_out import VotesOfOthers
from crowdveil.quality.review.workers import Review, review_workers


def review_of(crowd: Crowd) -> Review:
    """Return the review of a crowd by the default."""
    return review_workers(cv.infer(crowd.reports))


def rare_positives(seed: int, *, careful: int, repeaters: int, share: float = 0.02) -> Crowd:
    """Return 40 workers of ability .7 to .9 on 800 tasks, of whom some are always right, and some say always no."""
    rng = np.random.default_rng(seed)
    ability = rng.uniform(0.7, 0.9, 40)
    ability[:careful] = 1.0
    tables = coin_tables(ability, 2)
    tables[careful : careful + repeaters] = repeated_tables(np.eye(2)[[0] * repeaters], 2)
    shares = np.array([1 - share, share])
    return crowd_by_tables(rng, drawn_truths(rng, 800, shares), shares, tables, 5)


@pytest.mark.parametrize("style", ["one", "two", "each", "others"])
def test_repeaters_are_listed_first_and_nobody_else(style: str) -> None:
    """Half of the workers repeat a label, two in turn, each another one, or one with 5 % others: all are named."""
    review = review_of(repeating(np.random.default_rng(7), share=0.5, style=style))

    assert set(map(str, range(20))) == {one.worker for one in review.found}
    assert {"repeats"} == {one.kind for one in review.found}
    assert "contradict" in review.found[0].reasons[0]
    assert max(one.weight for one in review.found) < 0.5


def test_answers_of_others_leave_the_own_answer_out() -> None:
    """N of worker i is the sum over answers of the posterior of others, as the equation in loops."""
    crowd = repeating(np.random.default_rng(3), workers=8)
    reports, found = crowd.reports, VotesOfOthers.of_reports(crowd.reports)
    informed, labels = found.weights, 3
    weight = informed[reports.worker]
    counted = np.array([weight[reports.value == label].sum() for label in range(labels)]) + 1
    equal = compared = 0.0
    for one in range(len(reports)):
        for other in range(len(reports)):
            if one != other and reports.task[one] == reports.task[other]:
                compared += weight[one] * weight[other]
                equal += weight[one] * weight[other] * (reports.value[one] == reports.value[other])
    skill = np.sqrt((labels * equal / compared - 1) / (labels - 1))
    prior = np.maximum((counted / counted.sum() - (1 - skill) / labels) / skill, 0.5 / len(reports.tasks))
    expected = np.zeros((8, labels, labels))
    for row in range(len(reports)):
        others = np.flatnonzero((reports.task == reports.task[row]) & (np.arange(len(reports)) != row))
        scores = np.log(prior)
        for other in others.tolist():
            says = skill * (np.arange(labels) == reports.value[other]) + (1 - skill) / labels
            scores = scores + weight[other] * np.log(says)
        said = np.exp(scores - scores.max())
        expected[reports.worker[row], :, reports.value[row]] += said / said.sum() * (weight[others].sum() > 1e-9)

    np.testing.assert_allclose(found.answers, expected, atol=1e-9)


def test_copies_are_grouped_with_what_they_count_as() -> None:
    """Seven near-copies and their source are one group that counts as one to two workers; each names another one."""
    review = review_of(copying(np.random.default_rng(1)))

    assert [set(map(str, range(8, 16)))] == [set(group.workers) for group in review.groups]
    assert 1 < review.groups[0].counts_as < 2
    assert {"copies"} == {one.kind for one in review.found}
    assert all("shared answers are equal" in one.reasons[0] for one in review.found)
    assert {"8"} == {one.group for one in review.found}


def test_the_page_of_results_counts_copies() -> None:
    """The sentences of the page count copies by their answers, say what they count as, and name them on request."""
    found = cv.infer(copying(np.random.default_rng(1)).reports)
    silent, named = (
        " ".join(crowd_review_sentences(found.estimate, found.evidence, with_workers=with_workers))
        for with_workers in (False, True)
    )

    assert "8 of 16 workers copy another worker." in silent
    assert "8 workers who answer alike count as 1." in silent
    assert "8 of 16 workers copy another worker: 8, 9, 10" in named


def test_too_few_tasks_are_said(tmp_path: Path) -> None:
    """Two honest and three constant workers on six tasks: nobody is accused, constant ones are unclear, and why."""
    path = tmp_path / "labels.csv"
    truths = ["yes", "no"] * 3
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["task", "worker", "label"])
        for task, truth in enumerate(truths):
            writer.writerows([(task, who, truth) for who in "ab"])
            writer.writerows([(task, who, "no") for who in ("s1", "s2", "s3")])
    shown = CliRunner().invoke(main, ["review", str(path)]).output

    assert "Too few tasks to tell workers apart" in shown
    assert "3 of 5 workers: 3 unclear" in shown
    with pytest.warns(UserWarning, match="Too few tasks"):
        found = cv.review(cv.Reports.from_csv(path)).to_pylist()
    assert [("s1", "unclear"), ("s2", "unclear"), ("s3", "unclear")] == [(row["worker"], row["kind"]) for row in found]


def test_enough_tasks_tell_three_constant_workers_of_five() -> None:
    """On 50 tasks three of five workers who always say the first label repeat it, and no note is needed."""
    review = review_of(few_tasks(np.random.default_rng(2), tasks=50))

    assert ["2", "3", "4"] == sorted(one.worker for one in review.found if one.kind == "repeats")
    assert () == review.notes


@pytest.mark.parametrize("seed", [1, 2])
def test_careful_work_at_rare_truths_is_not_called_repeating(seed: int) -> None:
    """With 2 % true positives nobody can tell who is careful from who repeats: both are unclear, and a note says so."""
    review = review_of(rare_positives(seed, careful=6, repeaters=6))

    assert {"unclear"} == {one.kind for one in review.found}
    assert set(map(str, range(6, 12))) <= {one.worker for one in review.found} <= set(map(str, range(12)))
    assert "Most answers are 'label0'" in review.notes[0]


def test_careful_work_is_told_from_repeating_where_truths_differ() -> None:
    """With 20 % true positives repeaters are named, and the six workers who are always right are not listed."""
    review = review_of(rare_positives(3, careful=6, repeaters=6, share=0.2))

    assert set(map(str, range(6, 12))) == {one.worker for one in review.found if one.kind == "repeats"}
    assert not set(map(str, range(6))) & {one.worker for one in review.found}


def test_patterns_do_not_depend_on_names() -> None:
    """Other orders of tasks, labels and workers change no evidence on a worker."""
    reports, rng = repeating(np.random.default_rng(5)).reports, np.random.default_rng(0)
    task, worker, label = (rng.permutation(size) for size in (300, 40, 3))
    columns = task[reports.task], worker[reports.worker], label[reports.value]
    renamed = cv.Reports(columns[0], columns[1], columns[2], np.arange(300), np.arange(40), reports.alphabet)

    found, expected = LabelPatterns.of_reports(renamed), LabelPatterns.of_reports(reports)
    np.testing.assert_allclose(found.bayes_factor[worker], expected.bayes_factor, atol=1e-6)
    np.testing.assert_allclose(found.wrong[worker], expected.wrong, atol=1e-6)


def test_roles_of_simulated_workers() -> None:
    """Repeaters and copies are bad, the source of copies is neither bad nor honest, others are honest."""
    crowd = copying(np.random.default_rng(4))
    copies, repeaters = roles_of(crowd, copied=True), roles_of(repeating(np.random.default_rng(4)), copied=False)

    assert [False] * 9 + [True] * 7 == copies.bad.tolist()
    assert [True] * 8 + [False] * 8 == copies.honest.tolist()
    assert [True] * 16 + [False] * 24 == repeaters.bad.tolist()
    assert is_ordered(review_of(crowd), copies)


@pytest.mark.slow
def test_no_honest_worker_stands_before_a_bad_one() -> None:
    """Over the families of crowds, one seed that nothing was chosen on, bad workers are named and honest ones are not.

    Listed are at least 95 % of repeaters and of copies of a bad source, 80 % of repeaters with 5 % others, who can be
    the majority, and 40 % of the copies of a good source, who look excellent if a fifth of their answers are changed.
    """
    rows = {row.family: row for row in reviewed(list(kinds()), [77])}
    total = Counter[str]()
    for row in rows.values():
        total.update({name: getattr(row, name) for name in ReviewRow.__slots__ if name != "family"})

    assert total["ordered"] >= 0.98 * total["crowds"]
    assert total["named_bad"] >= 0.995 * total["named"]
    assert total["honest_listed"] <= 20
    for family, row in rows.items():
        least = 0.4 if "good source, 4-30" in family else 0.8 if "5 % others" in family else 0.95
        assert family == "others" or row.listed >= least * row.bad, family
