"""Report of each worker on one task, as a symbol of the observation model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.em.observation_model import NO_IMPLICIT_NULL
from crowdveil.errors import SettingsError
from crowdveil.quality.shares.counts import Cells

NO_REPORT = -1
"""Symbol of a worker without a report, where that is no report of NULL."""
SHOWN_TASKS = 5
"""Names of tasks in an error."""


def place_of_task(cells: Cells, name: Any, argument: str) -> int:
    """Return the code of a task; None is the only one.

    Raises:
        SettingsError: no such task, or several and no name.
    """
    names = list(map(str, np.asarray(cells.reports.tasks)))
    if name is None and len(names) == 1:
        return 0
    if str(name) not in names:
        value = "none" if name is None else str(name)
        hint = f"Tasks are {', '.join(names[:SHOWN_TASKS])}{', ...' if len(names) > SHOWN_TASKS else ''}."
        raise SettingsError(f"{argument} must be a task of the answers", value=value, hint=hint)
    return names.index(str(name))


def symbol_of_workers(cells: Cells, task: int) -> NDArray[np.int64]:
    """Return the symbol of each worker's report on a task, in the order of `full_table`; NO_REPORT for none."""
    model = cells.model
    chosen = model.choice[model.worker_group, model.task_group[task]]
    found = np.where(chosen == NO_IMPLICIT_NULL, NO_REPORT, model.listed_symbol_count + chosen)
    block = cells.reports.rows.block(task, task + 1)
    found[block.worker] = block.value
    return np.asarray(found, dtype=np.int64)
