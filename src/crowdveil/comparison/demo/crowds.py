"""Crowds of the demo: public data sets, or simulated crowds."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from crowdveil.answers.datasets import Dataset
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.comparison.trials import GoldCrowd
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, numeric_crowd

CROWD_SEED = 1
REAL = {"adult2", "duchenne", "weather_temperature"}
TEMPERATURES = Scale(0, 120, 5)
"""Public scale of temperatures in cities, in degrees Fahrenheit."""
TASK_STEP = 8
"""Every eighth task of the temperatures is used, to keep the demo short."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DemoCrowd(GoldCrowd):
    """Crowd of the demo.

    Attributes:
        title: heading of the page.
        description: source of the answers, in one sentence.
        prior: mean and standard deviation of the public normal prior of numbers; None for labels.
    """

    title: str
    description: str
    prior: tuple[float, float] | None = None

    @property
    def participation_rate(self) -> float:
        """Share of answered cells, from the public mean number of answers per task."""
        return round(len(self.answers) / len(self.answers.tasks)) / len(self.answers.workers)


def demo_crowds(load: Callable[[str], Dataset] | None) -> tuple[DemoCrowd, ...]:
    """Return AdultContent2, Duchenne and temperatures of cities, or two simulated crowds.

    Args:
        load: returns the data set of a name of `REAL`, with the first answer of each worker to each task; None for
            simulated crowds.
    """
    if load is not None:
        ratings = labelled_crowd(load("adult2"), "web sites rated G, P, R or X by how adult they are")
        judgements = labelled_crowd(load("duchenne"), "photographs judged: a true smile or a posed one")
        return ratings, judgements, web_site_temperature_crowd(load("weather_temperature"))
    return simulated_ratings(), simulated_yes_no_crowd()


def labelled_crowd(data: Dataset, question: str) -> DemoCrowd:
    """Return the crowd of a data set of labels."""
    size = f"{len(data.answers.workers):,} workers, {len(data.answers.tasks):,} tasks, {len(data.answers):,} answers"
    return DemoCrowd(
        name=data.name,
        title=data.meta["title"],
        description=f"Real answers: {question} ({size}; {data.gold_with_answers} tasks with gold).",
        answers=data.answers,
        gold=data.gold,
        error="error_rate",
    )


def web_site_temperature_crowd(data: Dataset) -> DemoCrowd:
    """Return temperatures claimed by web sites, on a public scale.

    The public prior is normal: mean at the middle of the scale, standard deviation a quarter of its range.
    """
    numbers = every_nth_task(data.answers, TASK_STEP)
    answers = replace(numbers, value=TEMPERATURES.encode(numbers.value), alphabet=TEMPERATURES)
    shown = set(answers.tasks.tolist())
    gold = {task: truth for task, truth in data.gold.items() if task in shown}
    return DemoCrowd(
        name=data.name,
        title="Temperatures that web sites claim",
        description=f"Real answers: {len(answers.workers)} web sites claim the temperature of a US city at an hour, in "
        f"degrees Fahrenheit, on the scale 0, 5, ..., 120 (every eighth task: {len(answers.tasks):,}, "
        f"{len(answers):,} answers; {len(gold):,} tasks with gold).",
        answers=answers,
        gold=gold,
        error="mae",
        prior=(TEMPERATURES.low + TEMPERATURES.range / 2, TEMPERATURES.range / 4),
    )


def every_nth_task(answers: Reports, step: int) -> Reports:
    """Return the answers to every `step`-th task, over the same workers."""
    kept = answers.task % step == 0
    return replace(
        answers,
        task=answers.task[kept] // step,
        worker=answers.worker[kept],
        value=answers.value[kept],
        tasks=answers.tasks[::step],
    )


def simulated_ratings() -> DemoCrowd:
    """Return a crowd as in Sun et al. (2018), section VI-A, with 800 workers and 60 tasks; numbers 0 to 9."""
    simulated = numeric_crowd(workers=800, tasks=60, sparsity=0.9, source=seeded(CROWD_SEED))
    return DemoCrowd(
        name="simulated-ratings",
        title="Simulated ratings from 0 to 9",
        description="Simulated as in Sun et al. (2018), smaller: 800 workers, 60 tasks, 90 % of the cells without an "
        "answer; standard deviation 1 for half of the workers, 5 for the others. No data directory was found.",
        answers=simulated.answers,
        gold=simulated.gold,
        error="mae",
        prior=(0.0, 1.0),
    )


def simulated_yes_no_crowd() -> DemoCrowd:
    """Return a binary crowd as large as Duchenne: 64 workers, 2,134 tasks, mean ability 0.75."""
    simulated = categorical_crowd(
        workers=64,
        tasks=2134,
        labels=Categories(("no", "yes"), ordered=True),
        sparsity=0.87,
        prior=(0.6, 0.4),
        ability=lambda generator, count: np.clip(generator.normal(0.75, 0.12, count), 0.5, 0.98),
        source=seeded(CROWD_SEED),
    )
    return DemoCrowd(
        name="simulated-judgements",
        title="Simulated yes/no judgements",
        description="Simulated: 64 workers, 2,134 tasks, about eight answers per task, mean ability 0.75. "
        "No data directory was found.",
        answers=simulated.answers,
        gold=simulated.gold,
        error="error_rate",
    )
