"""Tasks whose truth somebody finds out: drawn from reports, and the next ones of a draw."""

import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.evidence import Evidence
from crowdveil.answers.identifiers import index_of, no_common_task_error
from crowdveil.answers.reports import Reports
from crowdveil.errors import SettingsError
from crowdveil.inference.given import KnownTruths
from crowdveil.inference.gold_draw import MAX_SEED, tasks_in_draw_order


@dataclass(frozen=True, kw_only=True)
class GoldDraw:
    """Tasks in the order of their draw.

    Attributes:
        tasks: their names.
        seed: of the draw.
        of: number of tasks with reports.
    """

    tasks: tuple[str, ...]
    seed: int
    of: int

    def gold_form_columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns task, truth (empty), seed."""
        size = len(self.tasks)
        return {
            "task": np.array(self.tasks, np.str_),
            "truth": np.full(size, "", np.str_),
            "seed": np.full(size, self.seed, np.int64),
        }


def draw_tasks_without_known(
    reports: Reports, number: int, *, seed: int | None = None, known: frozenset[str] = frozenset()
) -> GoldDraw:
    """Return tasks with reports in the order of a draw, without those that are known.

    Raises:
        SettingsError: fewer tasks are left than asked for, or a seed outside 0 to `MAX_SEED` - 1.
    """
    if seed is not None and not 0 <= seed < MAX_SEED:
        raise SettingsError(f"the seed must be between 0 and {MAX_SEED - 1:,}", value=seed)
    used = secrets.randbelow(MAX_SEED) if seed is None else seed
    order = tasks_in_draw_order(reports.tasks, np.asarray(reports.per_task), used)
    left = [task for task in order if task not in known]
    if number > len(left):
        raise SettingsError(
            f"number must be at most {len(left):,}, the number of tasks with reports and no known truth",
            value=number,
            hint=f"Draw {len(left):,} or fewer.",
        )
    return GoldDraw(tasks=tuple(left[:number]), seed=used, of=len(order))


def draw_more(evidence: Evidence, number: int, gold: KnownTruths) -> GoldDraw:
    """Return the next tasks of the draw of gold; without a seed, new ones among the other tasks.

    Raises:
        ReportsError: no gold task is among the tasks.
        SettingsError: as in `draw_tasks_without_known`.
    """
    known, seed = gold.truths, gold.seed
    tasks = evidence.reports.tasks
    if not index_of(tasks, dict.fromkeys(known)):
        raise no_common_task_error(known, tasks, "gold")
    return draw_tasks_without_known(evidence.reports, number, seed=seed, known=frozenset(map(str, known)))
