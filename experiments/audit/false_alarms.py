"""Rates of false alarms of true claims, at a large alpha, so that they can be counted.

Mechanisms are audited again and again at their exact epsilon. Commands are drawn into one pool of outputs of one input,
which is split at random into two samples of equal inputs: their claim of epsilon 0 is true, and the search has every
byte to be misled by.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from experiments.audit.bounds import mechanisms
from experiments.audit.commands import CASES, Case, command_pairs

from crowdveil.campaign.statement.claims import audit_mechanism
from crowdveil.privacy.audit.black_box import Pair, audit_black_box
from crowdveil.randomness import seeded

ALPHA = 0.2
MECHANISM_AUDITS, MECHANISM_DRAWS = 50, 200
SPLITS, POOL = 20, 80
"""Audits of a command, and outputs in its pool, half of which serve as draws of each of two equal inputs."""


@dataclass(frozen=True, slots=True)
class AlarmRate:
    """Alarms among audits of true claims at `ALPHA`."""

    name: str
    audits: int
    alarms: int


def measured() -> Iterator[AlarmRate]:
    """Yield the rates of all mechanisms with a finite guarantee, and of all single commands."""
    for name, mechanism, tasks, neighbours, rounds in mechanisms():
        unit = int(neighbours == "worker")
        exact = mechanism.guarantees_over(tasks, rounds)[unit].epsilon
        if math.isfinite(exact):
            audit = partial(audit_mechanism, mechanism, neighbours, tasks=tasks, rounds=rounds, draws=MECHANISM_DRAWS)
            audits = (audit(alpha=ALPHA, source=seeded(seed)) for seed in range(MECHANISM_AUDITS))
            alarms = sum((result.lower_bound_of_epsilon or 0.0) > exact for result in audits)
            yield AlarmRate(name, MECHANISM_AUDITS, alarms)
    for case in single_commands():
        with command_pairs(case) as pairs:
            yield AlarmRate(case.name, SPLITS, split_alarms(pairs[0].first(POOL), SPLITS))


def single_commands() -> list[Case]:
    """Return the cases of one command; several in turn are made of these."""
    return [case for case in CASES if len(case.commands) == 1]


def split_alarms(pool: Any, splits: int) -> int:
    """Return how many random splits of outputs of one input refute epsilon 0."""
    generator, alarms = np.random.default_rng(0), 0
    for _ in range(splits):
        order = generator.permutation(len(pool))
        halves = [iter([pool[place] for place in half]) for half in np.array_split(order, 2)]
        first, second = (_taken(half) for half in halves)
        pair = Pair("one input", first, second)
        alarms += audit_black_box([pair], epsilon=0.0, draws=len(pool) // 2, alpha=ALPHA).refuted
    return alarms


def _taken(outputs: Iterator[object]) -> Callable[[int], list[object]]:
    return lambda count: list(islice(outputs, count))


def table(rows: Sequence[AlarmRate]) -> str:
    """Return the Markdown table of the rates."""
    lines = ["| true claim | audits | alarms | rate |", "| --- | --- | --- | --- |"]
    lines += [f"| {row.name} | {row.audits} | {row.alarms} | {row.alarms / row.audits:.2f} |" for row in rows]
    return "\n".join(lines)
