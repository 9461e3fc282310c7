"""Made-up crowds in folders: the law of those in memory, in bounded memory, with their truths beside them."""

import os
from pathlib import Path

import numpy as np
import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.data.columnar_store import STORE_FILES
from crowdveil.data.identifiers import NumberedIdentifiers
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators import OneCoin
from crowdveil.files.output_record import RECORD_FILE
from crowdveil.randomness import seeded
from crowdveil.simulate import CrowdFolder, categorical_crowd_folder, large_crowds
from tests.chi_square import chi_square_p_value

LABELS = Categories(("no", "maybe", "yes"))
PRIOR = (0.5, 0.2, 0.3)
SETTINGS = {"workers": 40, "tasks": 3000, "labels": LABELS, "sparsity": 0.8, "prior": PRIOR}


def two_abilities(generator: np.random.Generator, count: int) -> np.ndarray:
    """Return 0.9 for the first half of the workers, and more than 1 for the others."""
    return np.where(np.arange(count) < count // 2, 0.9, 1.5)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[CrowdFolder, Path]:
    """Return a crowd that was drawn in 60 ranges of tasks, and its folder."""
    folder = tmp_path_factory.mktemp("crowd")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_crowds, "SUCCESSES_PER_CHUNK", 400)
        patch.setattr(large_crowds, "TASKS_AT_ONCE", 128)
        return categorical_crowd_folder(folder, **SETTINGS, ability=two_abilities, source=seeded(3)), folder


def test_answers_follow_the_law(made) -> None:
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
