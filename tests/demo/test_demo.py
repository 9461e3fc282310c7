"""The demo tells the truth: its rows are what the library computes, its page stands alone and says what it is."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.data.reports import Reports
from crowdveil.demo import Demo, run_demo
from crowdveil.demo.devices import assignment_for, expected, mechanisms_for
from crowdveil.demo.page import hidden, render, show_bound, show_claim, verdict
from crowdveil.demo.pictures import claims_picture
from crowdveil.demo.scenes import Scene, every_task, on_scale, scenes, smile_crowd, sun_crowd
from crowdveil.demo.trials import ASSIGNED, Trial, compare_with_unprotected, run, trials_for
from crowdveil.errors import SettingsError
from crowdveil.estimators import DawidSkene, Gaussian
from crowdveil.evaluation.metrics import score
from crowdveil.mechanisms import MECHANISMS, RandomizedResponse
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, numeric_crowd, perturb


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo on a machine without data, run once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROWDVEIL_DATA", "/nonexistent")
        return run_demo(tmp_path_factory.mktemp("demo"))


def test_every_mechanism_and_a_fitting_method_is_shown(told: Demo) -> None:
    """Without data the demo makes up a numeric and a binary crowd and shows every registered mechanism."""
    assert {"unprotected", *MECHANISMS} == {row.mechanism for row in told.rows}
    assert {"simulated-numbers", "simulated-smiles"} == {row.scene for row in told.rows}


def test_every_private_row_says_what_is_protected(told: Demo) -> None:
    """Every perturbed row names participation, claimed and exact epsilon; a broken claim carries its reason."""
    for row in (row for row in told.rows if row.asked is not None):
        assert row.participation in ("protected", ASSIGNED, "public")
        assert row.claimed is not None
        assert row.exact is not None
        assert (row.exact > row.claimed * (1 + 1e-9)) == bool(row.reason), row


def test_unprotected_errors_stand_beside_the_others(told: Demo) -> None:
    """Each row carries the error of its own method on unprotected answers."""
    plain = {(row.scene, row.method): row.error for row in told.rows if row.asked is None}
    row = next(r for r in told.rows if r.method == "dawid-skene + channel" and r.scene == "simulated-smiles")

    assert plain["simulated-smiles", "dawid-skene"] == row.unprotected


def test_a_row_is_what_the_library_computes() -> None:
    """The channel-aware Dawid-Skene row equals a fit by hand with the same seed and settings."""
    scene = small_scene()
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=3.0)
    row = run(Trial(scene=scene, mechanism=mechanism, seed=5)).rows[-1]

    reports = perturb(scene.answers, mechanism, seeded(5))
    estimate = DawidSkene(max_steps=200, tolerance=1e-3).fit(reports, channel=mechanism.channel())
    expected = score(estimate, scene.gold, error="error_rate")

    assert "dawid-skene + channel" == row.method
    assert (expected.error, expected.baseline, expected.correlation) == (row.error, row.constant_error, row.correlation)


def test_numbers_are_inferred_with_their_public_prior() -> None:
    """The gaussian row equals a fit by hand with the scene's normal prior."""
    crowd = numeric_crowd(workers=60, tasks=30, sparsity=0.5, source=seeded(3))
    scene = replace(small_scene(), answers=crowd.answers, gold=crowd.gold, error="mae", prior=(0.0, 1.0))
    mechanism = RandomizedResponse(alphabet=Scale(0, 9), epsilon=3.0)
    row = run(Trial(scene=scene, mechanism=mechanism, seed=5)).rows[-1]

    reports = perturb(scene.answers, mechanism, seeded(5))
    gaussian = Gaussian(prior_mean=0.0, prior_deviation=1.0, max_steps=100, tolerance=9e-3)
    found = score(gaussian.fit(reports, channel=mechanism.channel()), scene.gold)

    assert ("gaussian + channel", found.error, found.correlation) == (row.method, row.error, row.correlation)


def test_assigned_cells_are_another_promise(told: Demo) -> None:
    """Rows of assigned cells say so, cost a worker less than the whole campaign, and are read through the channel."""
    rows = [row for row in told.rows if row.scene == "simulated-smiles" and row.mechanism == "randomized-response"]
    whole, assigned = ([row for row in rows if row.participation == what] for what in ("protected", ASSIGNED))
    by_epsilon = {row.exact: row.exact_worker or 0.0 for row in whole}

    assert {row.exact for row in assigned} == set(by_epsilon)
    assert all(row.through_channel and (row.exact_worker or 0.0) < by_epsilon[row.exact] for row in assigned)
    assert "only" in hidden(ASSIGNED)
    assert "a weaker promise" in told.page.read_text()


def test_nobody_is_left_out_of_a_crowd_that_is_asked_everything() -> None:
    """Where every worker answers every task there is no assigned variant."""
    crowd = categorical_crowd(workers=5, tasks=6, labels=LABELS, sparsity=0.0, source=seeded(1))
    scene = replace(small_scene(), answers=crowd.answers, gold=crowd.gold)

    assert assignment_for(scene) is None
    assert {"protected", "public"} == {trial.participation for trial in trials_for(scene, 1)}


def test_channels_for_numbers_are_chosen_by_the_public_prior_alone() -> None:
    """What is expected is the normal prior rounded to the scale, and how many answers a task gets."""
    scene = sun_crowd()
    question = expected(Scale(0, 9), scene)

    assert pytest.approx([0.6915, 0.2417, 0.0606], abs=1e-4) == question.prior[:3].tolist()
    assert 80 / 800 == question.participation_rate


def test_the_channel_pays_on_the_made_up_ratings(told: Demo) -> None:
    """On Sun et al.'s crowd at epsilon 3 the channel-aware error is a small part of the naive one."""
    rows = [
        r for r in told.rows if (r.scene, r.mechanism, r.asked) == ("simulated-numbers", "randomized-response", 3.0)
    ]
    rows = [row for row in rows if row.participation == "protected"]
    naive, knowing = (
        next(r.error for r in rows if r.method == name) for name in ("weighted-mean", "gaussian + channel")
    )

    assert knowing < naive / 10
    assert knowing < rows[0].constant_error


def test_page_stands_alone(told: Demo) -> None:
    """The page is one valid file with inline pictures and fetches nothing."""
    page = told.page.read_text()
    parser = Balanced()
    parser.feed(page)

    assert [] == parser.open
    assert 3 <= page.count("<svg")
    assert [] == re.findall(r'(?:src|href)="(?!#)[^"]*"|url\((?!#)|@import', page)
    assert len(re.findall(r'\bid="([^"]+)"', page)) == len(set(re.findall(r'\bid="([^"]+)"', page)))


def test_page_says_it_is_a_simulation(told: Demo) -> None:
    """The page and the rows for programs both name the seed and say that nobody is protected."""
    data = json.loads((told.page.parent / "demo.json").read_text())

    assert (True, 1) == (data["simulation"], data["seed"])
    assert "This page is a simulation" in told.page.read_text()


def test_rows_for_programs_equal_the_table(told: Demo) -> None:
    """demo.json holds every row with the same numbers, an infinite epsilon as text."""
    rows = json.loads((told.page.parent / "demo.json").read_text())["rows"]

    assert [row.error for row in told.rows] == [row["error"] for row in rows]
    assert {"infinity"} == {r["exact"] for r in rows if r["mechanism"] == "matrix-factorization-published"}


def test_progress_reaches_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress counts every trial once."""
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr("crowdveil.demo.scenes", lambda data: (small_scene(),))
    run_demo(tmp_path, progress=lambda done, of, _: seen.append((done, of)))

    assert [(n + 1, seen[0][1]) for n in range(seen[0][1])] == seen


def test_a_directory_without_the_sets_is_refused(tmp_path: Path) -> None:
    """A named data directory that lacks a set is an error with a way out, not a silent simulation."""
    with pytest.raises(SettingsError, match="CROWDVEIL_DATA"):
        scenes(tmp_path)


def test_numbers_come_onto_the_scale() -> None:
    """Free numbers are rounded to the scale and clipped to its ends; nobody's answer is lost."""
    free = Reports(np.arange(3), np.zeros(3, dtype=int), np.array([-7.0, 52.4, 300.0]), np.arange(3), np.array(["w"]))

    assert [0.0, 50.0, 120.0] == on_scale(free, Scale(0, 120, 5)).numbers.tolist()


def test_a_part_of_the_tasks_keeps_its_answers() -> None:
    """Every third task keeps its name and its answers, whoever gave them; workers stay."""
    answers = small_scene().answers
    part = every_task(answers, 3)
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


def test_recipes_are_reproducible() -> None:
    """The made-up crowds are the same on every machine."""
    for make in (sun_crowd, smile_crowd):
        np.testing.assert_array_equal(make().answers.value, make().answers.value)


def test_two_layer_is_left_out_where_its_claim_has_no_setting() -> None:
    """With four labels at epsilon 1 Theorem 6.3 has no hyper-distribution from 0: no row is made up."""
    scene = small_scene(Categories(("a", "b", "c", "d")))
    asked = {m.epsilon for m in mechanisms_for(scene) if m.name == "two-layer"}

    assert 1.0 not in {round(epsilon, 6) for epsilon in asked}
    assert 3.0 in {round(epsilon, 6) for epsilon in asked}


def test_verdict_and_epsilons_for_people(told: Demo) -> None:
    """A row within half a hundredth of the constant is equal to it; large and infinite epsilons read well."""
    row = told.rows[0]

    assert "better" == verdict(replace(row, error=row.constant_error - 0.1))
    assert "equal" == verdict(replace(row, error=row.constant_error + 0.001))
    assert "worse" == verdict(replace(row, error=row.constant_error + 0.1))


def test_the_page_rounds_exact_epsilons_up() -> None:
    """Exact figures are rounded up, to four digits or to a whole number; a claim is given to the nearest."""
    exact = (None, float("inf"), 33084.2, 0.5, 1.0846045)

    assert ("–", "infinite", "33,085", "0.5", "1.085") == tuple(map(show_bound, exact))
    assert ("–", "1", "1.084") == tuple(map(show_claim, (None, 1.0, 1.0841)))


def test_pictures_do_not_depend_on_the_hour(told: Demo) -> None:
    """The same rows give the same drawing, to the byte."""
    assert claims_picture(told.rows, 1.0) == claims_picture(told.rows, 1.0)


def test_hostile_names_do_not_reach_the_page_as_markup() -> None:
    """A title with markup in it is shown, not obeyed."""
    scene = small_scene(title="<script>alert(1)</script>")
    plain = run(Trial(scene=scene, mechanism=None, seed=1))
    private = run(Trial(scene=scene, mechanism=RandomizedResponse(alphabet=LABELS, epsilon=3.0), seed=1))
    page = render([scene], compare_with_unprotected([plain, private]), 1)

    assert "<script" not in page
    assert "&lt;script&gt;" in page


LABELS = Categories(("no", "yes"))


def small_scene(labels: Categories = LABELS, title: str = "Small") -> Scene:
    """A crowd small enough for a test."""
    crowd = categorical_crowd(workers=30, tasks=40, labels=labels, sparsity=0.4, source=seeded(3))
    answers: Reports = crowd.answers
    return Scene(name="small", title=title, story="Made up.", answers=answers, gold=crowd.gold, error="error_rate")


class Balanced(HTMLParser):
    """Collects elements that were opened and never closed, or closed in the wrong order."""

    EMPTY = frozenset(("meta", "br", "path", "use", "rect", "image", "circle", "line"))

    def __init__(self) -> None:
        """Start with nothing open."""
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Remember an element."""
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Forget it when it is closed."""
        if tag not in self.EMPTY:
            assert self.open.pop() == tag
