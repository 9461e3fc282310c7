"""The crowds of the demo: real answers where the data directory has them, otherwise made-up ones by stated recipes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.data.datasets import available, load
from crowdveil.data.reports import Reports
from crowdveil.evaluation.metrics import ErrorName
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, numeric_crowd

CROWD_SEED = 1
REAL = {"adult2", "duchenne", "weather_temperature"}
TEMPERATURES = Scale(0, 120, 5)
"""Public: what occurs in cities, in degrees Fahrenheit."""
EVERY = 8
"""Of the temperatures every eighth task is shown, so that the demo stays short."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """A crowd whose answers will be perturbed and inferred from.

    Attributes:
        name: short, unique.
        title: for people.
        story: where the answers come from, in a sentence.
        answers: unprotected answers; they stay on this machine.
        gold: known truth by task name.
        error: how truths are scored.
        prior: mean and deviation that numbers are publicly expected to have; None for labels.
    """

    name: str
    title: str
    story: str
    answers: Reports
    gold: Mapping[Any, Any]
    error: ErrorName
    prior: tuple[float, float] | None = None

    @property
    def participation_rate(self) -> float:
        """Share of cells that are answered: whoever pays for answers to a task knows how many they are."""
        return round(len(self.answers) / len(self.answers.tasks)) / len(self.answers.workers)


def scenes(data: Path | None) -> tuple[Scene, ...]:
    """Return the demo's crowds: AdultContent2, Duchenne and temperatures of cities, or two made-up crowds.

    Raises:
        SettingsError: a directory was named that lacks one of the sets.
    """
    if data is not None or REAL.issubset(available()):
        labels = real_scene("adult2", "web sites rated G, P, R or X by how adult they are", data)
        smiles = real_scene("duchenne", "photographs judged: a true smile or a posed one", data)
        return labels, smiles, weather_scene(data)
    return sun_crowd(), smile_crowd()


def real_scene(name: str, question: str, directory: Path | None) -> Scene:
    """Load a data set; of repeated answers of a worker to a task the first counts."""
    data = load(name, duplicates="first", directory=directory)
    size = f"{len(data.answers.workers):,} workers, {len(data.answers.tasks):,} tasks, {len(data.answers):,} answers"
    return Scene(
        name=name,
        title=data.meta["title"],
        story=f"Real answers: {question} ({size}; {data.gold_with_answers} tasks with gold).",
        answers=data.answers,
        gold=data.gold,
        error="error_rate",
    )


def weather_scene(directory: Path | None) -> Scene:
    """Load temperatures claimed by web sites, on a public scale; a site's first claim for a city and hour counts.

    What is publicly expected is as vague as the scale: its middle, give or take a quarter of its range.
    """
    data = load("weather_temperature", duplicates="first", directory=directory)
    answers = on_scale(every_task(data.answers, EVERY), TEMPERATURES)
    shown = set(answers.tasks.tolist())
    gold = {task: truth for task, truth in data.gold.items() if task in shown}
    return Scene(
        name=data.name,
        title="Temperatures that web sites claim",
        story=f"Real answers: {len(answers.workers)} web sites claim the temperature of a US city at an hour, in "
        f"degrees Fahrenheit, on the scale 0, 5, ..., 120 (every eighth task: {len(answers.tasks):,}, "
        f"{len(answers):,} answers; {len(gold):,} tasks with gold).",
        answers=answers,
        gold=gold,
        error="mae",
        prior=(TEMPERATURES.low + TEMPERATURES.range / 2, TEMPERATURES.range / 4),
    )


def every_task(answers: Reports, step: int) -> Reports:
    """Return the answers to every `step`-th task, over the same workers."""
    kept = answers.task % step == 0
    return replace(
        answers,
        task=answers.task[kept] // step,
        worker=answers.worker[kept],
        value=answers.value[kept],
        tasks=answers.tasks[::step],
    )


def on_scale(answers: Reports, scale: Scale) -> Reports:
    """Return free numbers as answers on a scale."""
    return replace(answers, value=scale.encode(answers.value), alphabet=scale)


def sun_crowd() -> Scene:
    """Make a crowd as in Sun et al. 2018, section VI-A, smaller: 800 workers, 60 tasks, numbers 0 to 9."""
    crowd = numeric_crowd(workers=800, tasks=60, sparsity=0.9, source=seeded(CROWD_SEED))
    return Scene(
        name="simulated-numbers",
        title="Simulated ratings from 0 to 9",
        story="Made up by the recipe of Sun et al. 2018, on a smaller scale: 800 workers, 60 tasks, nine cells of ten "
        "empty, half the workers with a standard deviation of 1, half of 5. No data directory was found.",
        answers=crowd.answers,
        gold=crowd.gold,
        error="mae",
        prior=(0.0, 1.0),
    )


def smile_crowd() -> Scene:
    """Make a binary crowd of the shape of the Duchenne set: 64 workers, 2134 tasks, abilities between .55 and .95."""
    crowd = categorical_crowd(
        workers=64,
        tasks=2134,
        labels=Categories(("no", "yes")),
        sparsity=0.87,
        prior=(0.6, 0.4),
        ability=lambda generator, count: np.clip(generator.normal(0.75, 0.12, count), 0.5, 0.98),
        source=seeded(CROWD_SEED),
    )
    return Scene(
        name="simulated-smiles",
        title="Simulated yes/no judgements",
        story="Made up: 64 workers, 2,134 tasks, about eight answers a task, abilities around three quarters. "
        "No data directory was found.",
        answers=crowd.answers,
        gold=crowd.gold,
        error="error_rate",
    )
