"""Crowds of the experiments: Duchenne smiles, and a simulation with the sizes of the private peer grading set.

Worker model of the simulation: the truth of each presentation is a fair coin. 72 students belong to 26 groups of two or
three; each student grades five random presentations of other groups, 360 grades in all. A student's ability is a Beta
number, and every grade is right with that probability, independently. The mean ability is chosen so
that the majority vote without protection has the accuracy that the paper prints, 0.73.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from experiments.papers.li2018.truth_discovery import Crowd
from numpy.typing import NDArray

from crowdveil.answers import datasets
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories

DUCHENNE, PEER, UNEQUAL = "duchenne", "peer grading, simulated", "peer grading, unequal abilities"
STUDENTS, GROUPS, EACH = 72, 26, 5
MEAN_ABILITY, CONCENTRATION = 0.58, 10.0
"""Mean of the students' abilities, and sum of the two shapes of their Beta distribution."""
UNEQUAL_CONCENTRATION = 1.0
"""Concentration of the sweep: most students are nearly always right or nearly always wrong."""
LABELS = Categories(("no", "yes"))


@cache
def duchenne() -> Crowd:
    """Return the Duchenne smiles of Whitehill et al. 2009 from the data directory."""
    data = datasets.load("duchenne")
    answers = data.answers
    truths = {str(name): 1.0 if str(label) == "1" else -1.0 for name, label in data.gold.items()}
    answered = {str(name): code for code, name in enumerate(np.asarray(answers.tasks)) if answers.per_task[code]}
    gold = [name for name in truths if name in answered]
    return Crowd(
        task=answers.task.astype(np.int64),
        worker=answers.worker.astype(np.int64),
        answer=np.where(answers.value == 1, 1.0, -1.0),
        tasks=len(answers.tasks),
        workers=len(answers.workers),
        gold=np.array([answered[name] for name in gold]),
        truth=np.array([truths[name] for name in gold]),
    )


def peer_grading(*seeds: int, ability: float = MEAN_ABILITY, concentration: float = CONCENTRATION) -> Crowd:
    """Return one simulated peer grading set; its seed is one integer or several."""
    generator = np.random.default_rng([2018, *seeds])
    truth = generator.choice([-1.0, 1.0], GROUPS)
    abilities = generator.beta(ability * concentration, (1 - ability) * concentration, STUDENTS)
    task, worker = assigned(generator)
    right = generator.random(len(task)) < abilities[worker]
    answer = np.where(right, truth[task], -truth[task])
    return Crowd(task, worker, answer, GROUPS, STUDENTS, np.arange(GROUPS), truth)


def assigned(generator: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return presentation and student of each grade, never of the own group."""
    student = generator.permutation(STUDENTS)
    own = np.arange(STUDENTS) % GROUPS
    steps = np.array([generator.choice(np.arange(1, GROUPS), EACH, replace=False) for _ in range(STUDENTS)])
    return ((own[:, None] + steps) % GROUPS).ravel(), np.repeat(student, EACH)


def crowd_of(name: str, seeds: Sequence[int]) -> Crowd:
    """Return a crowd by name; the seed counts for simulated ones only."""
    if name == DUCHENNE:
        return duchenne()
    return peer_grading(*seeds, concentration=UNEQUAL_CONCENTRATION if name == UNEQUAL else CONCENTRATION)


def as_reports(crowd: Crowd, reports: NDArray[np.float64]) -> Reports:
    """Return the reports as `infer` reads them."""
    codes = crowd.task.astype(np.int32), crowd.worker.astype(np.int32), (reports > 0).astype(np.int16)
    tasks, workers = (np.arange(count).astype(str) for count in (crowd.tasks, crowd.workers))
    return Reports(*codes, tasks, workers, LABELS)
