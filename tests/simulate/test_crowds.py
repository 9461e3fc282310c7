"""Simulated crowds: sizes, truths, worker quality and answers, in memory and in folders."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.data.columnar_store import STORE_FILES
from crowdveil.data.identifiers import NumberedIdentifiers
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import OneCoin
from crowdveil.files.output_record import RECORD_FILE
from crowdveil.randomness import seeded
from crowdveil.simulate import CrowdFolder, categorical_crowd, categorical_crowd_folder, crowds, numeric_crowd
from tests.chi_square import chi_square_p_value

LABELS = Categories(("G", "P", "R", "X"), ordered=True)


def constant(number):
    """A draw that is always the same number."""
    return lambda generator, count: np.full(count, number)


def test_numeric_answers_follow_the_recipe():
    """Answers are truth plus noise, rounded and clipped: shares within 5 standard errors (2e-5 in all).

    40,000 expected answers; every truth is 2, half the workers have sigma 1 and half sigma 5.
    """
    crowd = numeric_crowd(workers=2000, tasks=200, sparsity=0.9, truth=constant(2.0), source=seeded(11))
    edges = np.array([-np.inf, *np.arange(0.5, 9), np.inf])
    for sigma in (1.0, 5.0):
        mine = crowd.answers.value[crowd.quality[crowd.answers.worker] == sigma]
        expected = np.diff(norm.cdf((edges - 2.0) / sigma))
        error = np.sqrt(expected * (1 - expected) / len(mine))

        assert (np.abs(np.bincount(mine, minlength=10) / len(mine) - expected) <= 5 * error + 1e-12).all()


def test_half_of_the_workers_are_good():
    """Exactly half of the workers have each standard deviation, not the first half."""
    crowd = numeric_crowd(workers=1000, tasks=3, sparsity=0.5, source=seeded(1))

    assert {1.0: 500, 5.0: 500} == dict(zip(*np.unique(crowd.quality, return_counts=True), strict=True))
    assert 0 < (crowd.quality[:500] == 1.0).sum() < 500


def test_numeric_truth_is_clipped_normal():
    """Truths are standard normal clipped to the scale: their mean is 1 / sqrt(2 pi) within 5 standard errors (6e-7)."""
    crowd = numeric_crowd(workers=1, tasks=100_000, sparsity=0.99, source=seeded(2))

    assert crowd.truth.min() == 0.0
    assert abs(crowd.truth.mean() - 1 / math.sqrt(2 * math.pi)) < 5 * crowd.truth.std() / math.sqrt(100_000)
    assert crowd.gold[1] == crowd.truth[0]


def test_sparsity_is_the_share_of_null_cells():
    """Cells are answered with probability 1 - sparsity, within 5 standard errors (6e-7); all names are listed."""
    crowd = numeric_crowd(workers=3000, tasks=500, sparsity=0.98, source=seeded(3))

    assert abs(len(crowd.answers) - 30_000) < 5 * math.sqrt(1_500_000 * 0.02 * 0.98)
    assert (500, 3000) == (len(crowd.answers.tasks), len(crowd.answers.workers))
    assert np.array_equal(np.arange(1, 501), crowd.answers.tasks)


def test_without_sparsity_everybody_answers_everything():
    """Sparsity 0 fills every cell once."""
    crowd = categorical_crowd(workers=7, tasks=5, labels=LABELS, sparsity=0.0, source=seeded(4))

    assert [5] * 7 == crowd.answers.per_worker.tolist()


def test_able_workers_answer_the_truth_and_others_any_other_label():
    """Ability 1 repeats the truth; ability 0 spreads evenly over the other labels (5 standard errors, 6e-7 each)."""
    able = categorical_crowd(workers=3, tasks=50, labels=LABELS, sparsity=0.0, ability=constant(1.0), source=seeded(5))
    unable = categorical_crowd(
        workers=300, tasks=100, labels=LABELS, sparsity=0.0, ability=constant(0.0), source=seeded(6)
    )
    codes = [LABELS.names.index(name) for name in unable.truth]
    shift = (unable.answers.value - np.array(codes)[unable.answers.task]) % 4

    assert np.array_equal(able.truth[able.answers.task], np.array(LABELS.names)[able.answers.value])
    assert (np.abs(np.bincount(shift, minlength=4) / 30_000 - [0, 1 / 3, 1 / 3, 1 / 3]) < 5 * 0.0028).all()
    assert (np.bincount(shift, minlength=4)[0], unable.quality_name) == (0, "ability")


def test_the_prior_gives_the_truths():
    """Labels are truths as often as the prior says: within 5 standard errors (6e-7 each)."""
    prior = (0.7, 0.2, 0.1, 0.0)
    crowd = categorical_crowd(workers=1, tasks=50_000, labels=LABELS, sparsity=0.999, prior=prior, source=seeded(8))
    shares = np.array([(crowd.truth == name).mean() for name in LABELS.names])

    assert (np.abs(shares - prior) <= 5 * np.sqrt(np.array(prior) * (1 - np.array(prior)) / 50_000)).all()


def test_answers_per_worker_are_kept():
    """A number holds for every worker, a draw for each its own, clipped to the number of tasks; no task twice."""
    same = categorical_crowd(workers=40, tasks=30, labels=LABELS, answers_per_worker=6, source=seeded(9))
    own = categorical_crowd(
        workers=4,
        tasks=30,
        labels=LABELS,
        answers_per_worker=lambda generator, count: np.array([0.0, 2.4, 30.0, 999.0]),
        source=seeded(9),
    )

    assert [6] * 40 == same.answers.per_worker.tolist()
    assert [0, 2, 30, 30] == own.answers.per_worker.tolist()
    for crowd in (same, own):
        pairs = list(zip(crowd.answers.task.tolist(), crowd.answers.worker.tolist(), strict=True))

        assert len(pairs) == len(set(pairs))


def test_chosen_tasks_are_uniform():
    """With 3 of 30 tasks per worker, a tenth of 20,000 workers choose each task (5 standard errors, 2e-5 in all)."""
    crowd = categorical_crowd(workers=20_000, tasks=30, labels=LABELS, answers_per_worker=3, source=seeded(10))

    assert (np.abs(crowd.answers.per_task - 2000) < 5 * math.sqrt(20_000 * 0.09)).all()


def test_a_seed_makes_the_same_crowd_again():
    """One seed gives one crowd, another seed another."""
    crowds = [numeric_crowd(workers=50, tasks=40, sparsity=0.5, source=seeded(seed)) for seed in (1, 1, 2)]

    assert np.array_equal(crowds[0].answers.value, crowds[1].answers.value)
    assert not np.array_equal(crowds[0].truth, crowds[2].truth)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"workers": 0}, "at least one worker"),
        ({"tasks": 0}, "at least one worker"),
        ({"sparsity": 1.0}, "sparsity must be in"),
        ({"sparsity": math.nan}, "sparsity must be in"),
        ({"sigmas": ()}, "standard deviations"),
        ({"sigmas": (1.0, -1.0)}, "standard deviations"),
    ],
)
def test_impossible_numeric_crowds_are_refused(change, rule):
    """Sizes, sparsity and deviations out of range are refused by name."""
    with pytest.raises(SettingsError, match=rule):
        numeric_crowd(**{"workers": 2, "tasks": 2, "sparsity": 0.5, "scale": Scale(0, 9), "source": seeded(1)} | change)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({}, "either sparsity or answers_per_worker"),
        ({"sparsity": 0.5, "answers_per_worker": 1}, "either sparsity or answers_per_worker"),
        ({"sparsity": 0.5, "prior": (0.5, 0.5)}, "4 probabilities"),
        ({"sparsity": 0.5, "prior": (0.5, 0.5, 0.5, -0.5)}, "4 probabilities"),
        ({"sparsity": 0.5, "prior": (0.5, 0.5, 0.5, 0.5)}, "4 probabilities"),
        ({"sparsity": -0.1}, "sparsity must be in"),
    ],
)
def test_impossible_categorical_crowds_are_refused(change, rule):
    """A wrong prior, sparsity, or not exactly one rule of participation is refused by name."""
    with pytest.raises(SettingsError, match=rule):
        categorical_crowd(**{"workers": 2, "tasks": 2, "labels": LABELS, "source": seeded(1)} | change)


FOLDER_LABELS = Categories(("no", "maybe", "yes"))
PRIOR = (0.5, 0.2, 0.3)
SETTINGS = {"workers": 40, "tasks": 3000, "labels": FOLDER_LABELS, "sparsity": 0.8, "prior": PRIOR}


def two_abilities(generator: np.random.Generator, count: int) -> np.ndarray:
    """Return 0.9 for the first half of the workers, and more than 1 for the others."""
    return np.where(np.arange(count) < count // 2, 0.9, 1.5)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[CrowdFolder, Path]:
    """Return a crowd that was drawn in 60 ranges of tasks, and its folder."""
    folder = tmp_path_factory.mktemp("crowd")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crowds, "SUCCESSES_PER_CHUNK", 400)
        patch.setattr(crowds, "TRUTHS_PER_DRAW", 128)
        return categorical_crowd_folder(folder, **SETTINGS, ability=two_abilities, source=seeded(3)), folder


def test_answers_follow_the_distribution(made) -> None:
    """Truths have the prior's shares, cells answer alike, and answers are right by ability, else any other label.

    3,000 truths and 24,000 expected answers, one seed; chi-square tests, each refused at 1e-4: 5e-4 false alarms.
    """
    answers, truth = made[0].answers, made[0].truth
    task, worker, value = answers.task, answers.worker, answers.value
    shift = (value - truth[task]) % 3

    assert chi_square_p_value(np.bincount(truth), PRIOR) > 1e-4
    assert chi_square_p_value(answers.per_worker, np.full(40, 1 / 40)) > 1e-4
    assert chi_square_p_value([len(answers), 120_000 - len(answers)], (0.2, 0.8)) > 1e-4
    assert chi_square_p_value(np.bincount(task // 100), np.full(30, 1 / 30)) > 1e-4
    assert chi_square_p_value(np.bincount(shift[worker < 20]), (0.9, 0.05, 0.05)) > 1e-4
    assert (shift[worker >= 20] == 0).all()


def test_names_follow_from_a_rule(made) -> None:
    """Tasks and workers are numbered from 0, in as many digits as the last one needs; all are listed."""
    answers = made[0].answers

    assert isinstance(answers.tasks, NumberedIdentifiers)
    assert (3000, "task-0000", "task-2999") == (len(answers.tasks), answers.tasks[0], answers.tasks[-1])
    assert (40, "worker-00", "worker-39") == (len(answers.workers), answers.workers[0], answers.workers[-1])


def test_the_folder_opens_again(made) -> None:
    """The folder holds blocks, truths and abilities, and opens with the same crowd; abilities are clipped."""
    again = CrowdFolder.open(made[1])

    assert sorted([*STORE_FILES, "truth.npy", "ability.npy", RECORD_FILE]) == sorted(os.listdir(made[1]))
    assert made[0].truth.tolist() == again.truth.tolist()
    assert made[0].answers.value.tolist() == again.answers.value.tolist()
    assert [0.9] * 20 + [1.0] * 20 == again.ability.tolist()


def test_truths_can_be_scored(made) -> None:
    """One-coin on eight answers a task of good workers finds nearly all truths: codes are those of the estimate."""
    estimate = OneCoin().fit(made[0].answers)

    assert (estimate.posterior.argmax(axis=1) == made[0].truth).mean() > 0.98


def test_a_seed_gives_one_crowd(tmp_path, made) -> None:
    """The same seed draws the same crowd, another seed another one; progress ends with all tasks."""
    seen: list[tuple[int, int]] = []
    crowds = [
        categorical_crowd_folder(
            tmp_path / name, **SETTINGS, source=seeded(seed), progress=lambda done, of: seen.append((done, of))
        )
        for name, seed in {"a": 5, "b": 5, "c": 6}.items()
    ]
    values = [crowd.answers.value.tolist() for crowd in crowds]

    assert values[0] == values[1] != values[2]
    assert (3000, 3000) == seen[-1]


@pytest.mark.parametrize("change", [{"workers": 0}, {"sparsity": 1.0}, {"prior": (0.5, 0.5)}])
def test_impossible_crowds_are_refused(tmp_path, change) -> None:
    """Nobody, nothing but NULL, or a prior of other labels is refused before anything is written."""
    with pytest.raises(SettingsError):
        categorical_crowd_folder(tmp_path / "crowd", **(SETTINGS | change), source=seeded(1))
    assert not (tmp_path / "crowd").exists()


@pytest.mark.parametrize("name", ["truth.npy", "ability.npy"])
def test_truths_that_do_not_fit_are_refused(tmp_path, name) -> None:
    """Absent, unreadable or too few truths or abilities are refused by the file's name."""
    categorical_crowd_folder(tmp_path, **SETTINGS, source=seeded(1))
    for damage in (lambda path: np.save(path, np.zeros(3)), lambda path: path.write_bytes(b"x"), Path.unlink):
        damage(tmp_path / name)

        with pytest.raises(ReportsError, match=name):
            CrowdFolder.open(tmp_path)
