"""Demo: rows equal to the results of the library, and a page without external resources."""

import json
import re
from dataclasses import dataclass, replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import pytest

from crowdveil.answers.datasets import load
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.comparison.demo import Demo, run_demo
from crowdveil.comparison.demo.crowds import DemoCrowd, demo_crowds, every_nth_task, simulated_ratings
from crowdveil.comparison.demo.page import (
    chart_lines,
    claimed_epsilon_text,
    comparison_with_constant,
    exact_epsilon_text,
    page_html,
)
from crowdveil.comparison.demo.trials import (
    EVERY,
    POINTS_PER_STEP,
    demo_mechanisms,
    demo_methods,
    objective_from_public_numbers,
    trials_of_demo_crowd,
)
from crowdveil.comparison.trials import Row, Trial, compare_with_unprotected, run_trial
from crowdveil.errors import SettingsError
from crowdveil.estimators import ESTIMATORS, DawidSkene, Gaussian, MajorityVote
from crowdveil.inference.scores.metrics import score
from crowdveil.mechanisms import MECHANISMS, Mechanism, RandomizedResponse
from crowdveil.randomness import seeded
from crowdveil.registry import ESTIMATOR_ENTRIES, MECHANISM_ENTRIES, EstimatorEntry, MechanismEntry
from crowdveil.simulate import categorical_crowd, numeric_crowd, perturb_reports

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo() -> Demo:
    """Demo without data sets, run once."""
    return run_demo(demo_crowds(None))


def test_everything_registered_is_shown(demo: Demo) -> None:
    """Without data sets every mechanism and method has rows, on a numeric and a binary simulation."""
    assert {"unprotected", *MECHANISMS} == {row.mechanism for row in demo.rows}
    assert {*ESTIMATORS, "factorization-mean"} == {row.estimator for row in demo.rows}
    assert {"simulated-ratings", "simulated-judgements"} == {row.crowd for row in demo.rows}


def test_what_is_not_run_is_named(demo: Demo) -> None:
    """Each method of a crowd has a row after each of its mechanisms, or is named with the reason."""
    page, data = demo.texts("demo.html")["demo.html"], json.loads(demo.texts("demo.html")["demo.json"])
    for crowd in demo.crowds:
        rows = [row for row in demo.rows if row.crowd == crowd.name]
        missing = {(pair.mechanism, pair.method): pair.reason for pair in demo.not_run if pair.crowd == crowd.name}
        methods = {row.estimator for row in rows if row.mechanism == "unprotected"}
        shown = {(row.mechanism, row.estimator) for row in rows}
        for mechanism in {row.mechanism for row in rows}:
            assert methods == {name for name in methods if {(mechanism, name)} & (shown | set(missing))}
        assert all(missing.values())
    assert len(demo.not_run) == len(data["not_run"]) > 0
    assert "Not run: gaussian with laplace: a report for every cell" in page


class Coin(RandomizedResponse):  # type: ignore[misc]
    """Mechanism that is not built in."""

    name = "coin"


class Mob(MajorityVote):  # type: ignore[misc]
    """Method that is not built in."""

    name = "mob"


@dataclass(frozen=True, slots=True)
class GivenMechanism(MechanismEntry):
    """Entry of `Coin`."""

    def import_class(self) -> Any:
        """Return the class."""
        return Coin


@dataclass(frozen=True, slots=True)
class GivenMethod(EstimatorEntry):
    """Entry of `Mob`."""

    def import_class(self) -> Any:
        """Return the class."""
        return Mob


def test_what_is_registered_newly_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mechanism and a method that are registered get their rows without another change."""
    monkeypatch.setitem(cast(Any, MECHANISM_ENTRIES), "coin", GivenMechanism("coin", "", "Coin"))
    capabilities = ESTIMATOR_ENTRIES["majority-vote"].capabilities
    monkeypatch.setitem(cast(Any, ESTIMATOR_ENTRIES), "mob", GivenMethod("mob", "", "Mob", capabilities))

    rows = run_demo([small_crowd()]).rows

    assert {1.0, 3.0, 5.0} == {row.requested for row in rows if row.mechanism == "coin"}
    assert {"unprotected", "randomized-response"} == {row.mechanism for row in rows if row.estimator == "mob"}


def test_labels_without_an_order_are_named() -> None:
    """A method for ordered labels is not run on others, and the reason says so."""
    (missing,) = [one for one in trials_of_demo_crowd(small_crowd(), 1).not_run if one.mechanism == EVERY]

    assert ("ordinal-dawid-skene", "the labels have no order") == (missing.method, missing.reason)


def test_every_private_row_names_epsilon_and_participation(demo: Demo) -> None:
    """Every perturbed row has participation, claimed and exact epsilon; an epsilon above the claim has a reason."""
    for row in (row for row in demo.rows if row.requested is not None):
        assert row.participation in ("protected", "public")
        assert row.claimed is not None
        assert row.exact is not None
        assert (row.exact > row.claimed * (1 + 1e-9)) == bool(row.reason), row


def test_a_row_equals_a_direct_fit() -> None:
    """The channel-aware Dawid-Skene row equals a direct fit with the same seed and settings."""
    crowd = small_crowd()
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=3.0)
    row = row_of(trial_of(crowd, mechanism, 5), "dawid-skene + channel")

    reports = perturb_reports(crowd.answers, mechanism, seeded(5))
    estimate = DawidSkene(max_steps=200, tolerance=1e-3).fit(reports, channel=mechanism.channel())
    expected = score(estimate, crowd.gold, error="error_rate")

    assert "dawid-skene + channel" == row.method
    assert (expected.error, expected.baseline, expected.correlation) == (row.error, row.constant_error, row.correlation)


def test_numbers_are_inferred_with_their_public_prior() -> None:
    """The gaussian row equals a direct fit with the normal prior of the crowd."""
    numbers = numeric_crowd(workers=60, tasks=30, sparsity=0.5, source=seeded(3))
    crowd = replace(small_crowd(), answers=numbers.answers, gold=numbers.gold, error="mae", prior=(0.0, 1.0))
    mechanism = RandomizedResponse(alphabet=Scale(0, 9), epsilon=3.0)
    row = row_of(trial_of(crowd, mechanism, 5), "gaussian + channel")

    reports = perturb_reports(crowd.answers, mechanism, seeded(5))
    gaussian = Gaussian(
        prior_mean=0.0, prior_deviation=1.0, max_steps=100, tolerance=9e-3, points_per_step=POINTS_PER_STEP
    )
    found = score(gaussian.fit(reports, channel=mechanism.channel()), crowd.gold)

    assert ("gaussian + channel", found.error, found.correlation) == (row.method, row.error, row.correlation)


def test_the_design_objective_has_the_public_prior() -> None:
    """The design objective is the normal prior rounded to the scale, and the mean participation rate."""
    crowd = simulated_ratings()
    question = objective_from_public_numbers(Scale(0, 9), crowd)

    assert pytest.approx([0.6915, 0.2417, 0.0606], abs=1e-4) == question.prior[:3].tolist()
    assert 80 / 800 == question.participation_rate


def test_the_channel_reduces_the_error_on_simulated_ratings(demo: Demo) -> None:
    """At epsilon 3 the channel-aware error on simulated ratings is less than a tenth of the naive one."""
    rows = [
        r for r in demo.rows if (r.crowd, r.mechanism, r.requested) == ("simulated-ratings", "randomized-response", 3.0)
    ]
    rows = [row for row in rows if row.participation == "protected"]
    naive, channel_aware = (
        next(r.error for r in rows if r.method == name) for name in ("weighted-mean", "gaussian + channel")
    )

    assert channel_aware < naive / 10
    assert channel_aware < rows[0].constant_error


def test_page_has_no_external_resources(demo: Demo) -> None:
    """The page is one valid file with inline pictures and no external resources."""
    page = demo.texts("demo.html")["demo.html"]
    parser = Balanced()
    parser.feed(page)

    assert [] == parser.open
    assert 2 == page.count("<svg")
    assert [] == re.findall(r'(?:src|href)="(?!#)[^"]*"|url\((?!#)|@import', page)
    assert len(re.findall(r'\bid="([^"]+)"', page)) == len(set(re.findall(r'\bid="([^"]+)"', page)))


def test_json_rows_equal_the_table(demo: Demo) -> None:
    """Page and file name the seed of the simulation; demo.json has every row, an infinite epsilon as text."""
    texts = demo.texts("demo.html")
    data = json.loads(texts["demo.json"])

    assert (True, 1, "demo.html") == (data["simulation"], data["seed"], data["page"])
    assert "This page is a simulation" in texts["demo.html"]
    assert [row.error for row in demo.rows] == [row["error"] for row in data["rows"]]
    assert {"infinity"} == {r["exact"] for r in data["rows"] if r["mechanism"] == "matrix-factorization-published"}


def test_progress_reaches_the_end() -> None:
    """Progress counts every trial once."""
    seen: list[tuple[int, int]] = []
    run_demo([small_crowd()], progress=lambda done, of, _: seen.append((done, of)))

    assert [(n + 1, seen[0][1]) for n in range(seen[0][1])] == seen


def test_a_directory_without_the_data_sets_is_refused(tmp_path: Path) -> None:
    """A given data directory without a data set raises an error with a hint."""
    with pytest.raises(SettingsError, match="CROWDVEIL_DATA"):
        demo_crowds(partial(load, directory=tmp_path))


def test_every_nth_task_keeps_its_answers() -> None:
    """Every third task keeps its name and its answers; all workers are kept."""
    answers = small_crowd().answers
    part = every_nth_task(answers, 3)
    by_name = {
        (str(answers.tasks[task]), int(worker), int(value))
        for task, worker, value in zip(answers.task, answers.worker, answers.value, strict=True)
        if task % 3 == 0
    }

    assert answers.tasks[::3].tolist() == part.tasks.tolist()
    assert len(answers.workers) == len(part.workers)
    assert by_name == {
        (str(part.tasks[task]), int(worker), int(value))
        for task, worker, value in zip(part.task, part.worker, part.value, strict=True)
    }


def test_two_layer_is_omitted_without_a_setting_for_its_claim() -> None:
    """With four labels at epsilon 1 Theorem 6.3 has no hyper-distribution from 0, so there is no row."""
    crowd = small_crowd(Categories(("a", "b", "c", "d")))
    assert ["two-layer at epsilon 1"] == [one.mechanism for one in demo_mechanisms(crowd)[1]]
    requested = {m.epsilon for m in demo_mechanisms(crowd)[0] if m.name == "two-layer"}

    assert 1.0 not in {round(epsilon, 6) for epsilon in requested}
    assert 3.0 in {round(epsilon, 6) for epsilon in requested}


def test_a_chart_has_the_best_methods_with_the_channel_and_one_without(demo: Demo) -> None:
    """Lines are of randomized response: at most three methods with the channel, best first, and one that ignores it."""
    for crowd in demo.crowds:
        lines = chart_lines([row for row in demo.rows if row.crowd == crowd.name])
        sums = [sum(error for _, error in points) for _, points in lines]

        assert "noise ignored" == lines[-1][0]
        assert 2 <= len(lines) <= 4
        assert sorted(sums[:-1]) == sums[:-1]
        assert [1.0, 2.0, 3.0, 4.0, 5.0] == [epsilon for epsilon, _ in lines[0][1]]


def test_verdict_compares_with_the_constant(demo: Demo) -> None:
    """An error within 0.005 of that of the constant is equal to it."""
    row = demo.rows[0]

    assert "better" == comparison_with_constant(replace(row, error=row.constant_error - 0.1))
    assert "equal" == comparison_with_constant(replace(row, error=row.constant_error + 0.001))
    assert "worse" == comparison_with_constant(replace(row, error=row.constant_error + 0.1))


def test_the_page_rounds_exact_epsilons_up() -> None:
    """Exact epsilons are rounded up, to four digits or to a whole number; claims are rounded to nearest."""
    exact = (None, float("inf"), 33084.2, 0.5, 1.0846045)

    assert ("–", "infinite", "33,085", "0.5", "1.085") == tuple(map(exact_epsilon_text, exact))
    assert ("–", "1", "1.084") == tuple(map(claimed_epsilon_text, (None, 1.0, 1.0841)))


def test_markup_in_titles_is_escaped() -> None:
    """Markup in the title of a crowd is escaped on the page."""
    crowd = small_crowd(title="<script>alert(1)</script>")
    response = RandomizedResponse(alphabet=LABELS, epsilon=3.0)
    rows = [row for mechanism in (None, response) for row in run_trial(trial_of(crowd, mechanism, 1))]
    page = page_html([crowd], compare_with_unprotected(rows), 1)

    assert "<script" not in page
    assert "&lt;script&gt;" in page


LABELS = Categories(("no", "yes"))


def trial_of(crowd: DemoCrowd, mechanism: Mechanism | None, seed: int) -> Trial:
    """Return a trial with the methods of the demo."""
    plain, models, _ = demo_methods(crowd)
    return Trial(crowd=crowd, mechanism=mechanism, seed=seed, plain=plain, models=models)


def row_of(trial: Trial, method: str) -> Row:
    """Return the row of a method of a trial."""
    (row,) = (row for row in run_trial(trial) if row.method == method)
    return row


def small_crowd(labels: Categories = LABELS, title: str = "Small") -> DemoCrowd:
    """Crowd of 30 workers and 40 tasks."""
    crowd = categorical_crowd(workers=30, tasks=40, labels=labels, sparsity=0.4, source=seeded(3))
    answers: Reports = crowd.answers
    return DemoCrowd(
        name="small", title=title, description="Simulated.", answers=answers, gold=crowd.gold, error="error_rate"
    )


class Balanced(HTMLParser):
    """Parser that collects unclosed elements and asserts the order of end tags."""

    EMPTY = frozenset(("meta", "br", "path", "use", "rect", "image", "circle", "line"))

    def __init__(self) -> None:
        """Start without open elements."""
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Add an element."""
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Remove the element, which must be the last one."""
        if tag not in self.EMPTY:
            assert self.open.pop() == tag
