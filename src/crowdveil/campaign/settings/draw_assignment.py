"""Random assignment of tasks to slots with exclusions, as balanced as the exclusions allow.

Slots are served in random order; each takes the tasks that were given out least often so far, ties at random. Then
chains of replacements move surplus from tasks given out often to tasks given out rarely, until no chain is left; by the
theory of augmenting paths no assignment is then more balanced. The draw depends on public numbers only.
"""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.randomness import WORD_BITS, Source

Excluded = Sequence[Collection[int]]
"""Task indices that each slot must not get."""
Replacement = tuple[int, int, int]
"""Slot, task that it gives up, and task that it gets instead."""


def draw_assignment(
    tasks: int, slots: int, per_worker: int | None, excluded: Excluded, source: Source
) -> tuple[tuple[int, ...], ...]:
    """Return the task indices of each slot, ascending; the numbers of slots per task differ as little as possible.

    Args:
        tasks, slots: their numbers.
        per_worker: tasks of each slot; None for all that are not excluded.
        excluded: tasks that each slot must not get.
        source: randomness of the draw.

    Raises:
        SettingsError: a slot has fewer tasks left than it needs.
    """
    least = 1 if per_worker is None else per_worker
    for slot, forbidden in enumerate(excluded):
        left = tasks - len(set(forbidden))
        if left < least:
            raise SettingsError(
                f"every worker needs {least} tasks that are not excluded, worker {slot} has {left}",
                value=least,
                hint="Lower per_worker, add tasks, or shorten not_for.",
                value_in_rule=True,
            )
    if per_worker is None:
        return tuple(tuple(sorted(set(range(tasks)) - set(excluded[slot]))) for slot in range(slots))
    lists = _assign_in_random_order(tasks, slots, per_worker, excluded, source)
    _balance_workers_per_task(lists, tasks, excluded)
    return tuple(tuple(sorted(taken)) for taken in lists)


def _assign_in_random_order(
    tasks: int, slots: int, per_worker: int, excluded: Excluded, source: Source
) -> list[set[int]]:
    """Return the tasks of each slot: those given out least often, ties at random."""
    lists: list[set[int]] = [set() for _ in range(slots)]
    counts: NDArray[np.int64] = np.zeros(tasks, dtype=np.int64)
    for slot in np.argsort(source.words(slots), kind="stable").tolist():
        key = counts + source.words(tasks) * 2.0**-WORD_BITS
        key[list(excluded[slot])] = np.inf
        taken = np.argpartition(key, per_worker - 1)[:per_worker]
        counts[taken] += 1
        lists[slot] = set(taken.tolist())
    return lists


def _balance_workers_per_task(lists: list[set[int]], tasks: int, excluded: Excluded) -> None:
    """Replace tasks in place until the numbers of slots per task are as equal as the exclusions allow."""
    counts = np.bincount([task for taken in lists for task in taken], minlength=tasks)
    settled: set[int] = set()
    while True:
        surplus = [task for task in np.flatnonzero(counts > counts.min() + 1).tolist() if task not in settled]
        if not surplus:
            return
        first = max(surplus, key=lambda task: int(counts[task]))
        chain, reached = _find_replacement_chain(lists, counts, first, excluded)
        if not chain:
            # What these tasks reach is reached from `first` too, and they have no more slots than `first`.
            settled |= reached
            continue
        settled.clear()
        for slot, given, taken in chain:
            lists[slot].remove(given)
            lists[slot].add(taken)
        counts[first] -= 1
        counts[chain[-1][2]] += 1


def _find_replacement_chain(
    lists: Sequence[set[int]], counts: NDArray[np.int64], first: int, excluded: Excluded
) -> tuple[list[Replacement], set[int]]:
    """Return replacements that lead from a task to one with at least two slots less, and the tasks reached.

    Breadth-first search; without such a task the replacements are empty.
    """
    holders: list[list[int]] = [[] for _ in counts]
    for slot, taken in enumerate(lists):
        for task in taken:
            holders[task].append(slot)
    came: dict[int, tuple[int, int]] = {}
    queue, unseen, served = [first], set(range(len(counts))) - {first}, set[int]()
    for task in queue:
        for slot in holders[task]:
            if slot in served:
                continue
            served.add(slot)
            for other in unseen - lists[slot] - set(excluded[slot]):
                came[other] = slot, task
                if counts[other] <= counts[first] - 2:
                    return _replacements_ending_in_task(came, first, other), set(queue)
                queue.append(other)
                unseen.remove(other)
    return [], set(queue)


def _replacements_ending_in_task(came: dict[int, tuple[int, int]], first: int, last: int) -> list[Replacement]:
    """Return the chain that ends in `last`, in order from `first`."""
    chain = []
    while last != first:
        slot, task = came[last]
        chain.append((slot, task, last))
        last = task
    return chain[::-1]
