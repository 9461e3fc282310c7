"""Neighbouring inputs of a mechanism: one worker's answers that differ in one cell, or in all."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import CrowdveilError, SettingsError
from crowdveil.mechanisms import Mechanism
from crowdveil.privacy.audit.black_box import FAILURE, Pair
from crowdveil.privacy.audit.exact_loss import Neighbours
from crowdveil.privacy.audit.outputs import Drawn
from crowdveil.randomness import Source

Codes = NDArray[np.int64]
MOST_INPUTS = 5
"""Largest number of symbols of a single cell of which all pairs are drawn; of more, the extreme ones."""


def mechanism_pairs(
    mechanism: Mechanism, neighbours: Neighbours, *, tasks: int, source: Source, rounds: int = 1
) -> list[Pair]:
    """Return pairs of neighbouring answers of one worker, with the mechanism's reports as outputs.

    Args:
        mechanism: mechanism of the worker's device.
        neighbours: what differs.
        tasks: number of tasks; a mechanism with independent cells is drawn for a single one unless all cells differ.
        source: randomness of the device.
        rounds: number of campaigns in which the same answers are reported.

    Raises:
        SettingsError: neighbours in participation, but participation is public.
    """
    if neighbours == "participation" and mechanism.participation == "public":
        raise SettingsError(
            f"{mechanism.name} with public participation does not protect participation",
            value=neighbours,
            hint="Audit the value or the worker.",
        )
    independent = draws_single_cells(mechanism, neighbours, rounds)
    inputs = (
        _neighbouring_single_answers(mechanism, neighbours)
        if independent
        else _neighbouring_answer_vectors(mechanism, neighbours, tasks)
    )
    draw = _draw_cells if independent else _repeated_outputs

    def sampler(answers: Codes) -> Callable[[int], Drawn]:
        return lambda count: draw(mechanism, answers, source, count, rounds)

    return [Pair(name, sampler(first), sampler(second)) for name, first, second in inputs]


def draws_single_cells(mechanism: Mechanism, neighbours: Neighbours, rounds: int) -> bool:
    """Return whether a single cell of one campaign is drawn."""
    return mechanism.channel() is not None and neighbours != "worker" and rounds == 1


def _draw_cells(mechanism: Mechanism, answers: Codes, source: Source, count: int, _: int) -> Drawn:
    return mechanism.perturb(np.repeat(answers, count), source)


def _repeated_outputs(mechanism: Mechanism, answers: Codes, source: Source, count: int, rounds: int) -> Drawn:
    """Return the reports of `count` workers with the same answers; a refusal is an output."""

    def report() -> object:
        try:
            return np.concatenate([mechanism.perturb(answers, source) for _ in range(rounds)])
        except CrowdveilError as error:
            return {FAILURE: f"{type(error).__name__}: {error}"}

    drawn = [report() for _ in range(count)]
    return drawn if any(isinstance(one, dict) for one in drawn) else np.stack(drawn)  # type: ignore[arg-type]


def _neighbouring_single_answers(mechanism: Mechanism, neighbours: Neighbours) -> list[tuple[str, Codes, Codes]]:
    labels = mechanism.alphabet.size
    names = (*mechanism.alphabet.names, "NULL")
    shown = range(labels) if labels <= MOST_INPUTS else (0, 1, labels // 2, labels - 2, labels - 1)
    null_pairs = [(label, labels) for label in shown]
    pairs = null_pairs if neighbours == "participation" else list(combinations(shown, 2))
    return [(f"{names[i]} against {names[j]}", np.array([i]), np.array([j])) for i, j in pairs]


def _neighbouring_answer_vectors(
    mechanism: Mechanism, neighbours: Neighbours, tasks: int
) -> list[tuple[str, Codes, Codes]]:
    """Return pairs of answers to all tasks: equal answers, mixed ones, and few where NULL is an input."""
    labels, null = mechanism.alphabet.size, mechanism.alphabet.size
    names = (*mechanism.alphabet.names, "NULL")
    equal, mixed = np.zeros(tasks, dtype=np.int64), np.arange(tasks, dtype=np.int64) % labels
    low, high = names[0], names[labels - 1]
    if neighbours == "worker":
        pairs = [(f"all {low} against all {high}", equal, equal + labels - 1)]
        if mechanism.participation == "protected":
            pairs.append((f"all {low} against all NULL", equal, equal + null))
        return pairs
    if neighbours == "value":
        return [
            (f"task 1: {low} against {high}, others {low}", equal, _with_first_code(equal, labels - 1)),
            (
                f"task 1: {low} against {high}, others mixed",
                _with_first_code(mixed, 0),
                _with_first_code(mixed, labels - 1),
            ),
        ]
    few, half = np.full(tasks, null), np.where(np.arange(tasks) % 4 == 1, mixed, null)
    return [
        (f"task 1: {high} against NULL, {rest}", _with_first_code(others, labels - 1), _with_first_code(others, null))
        for rest, others in (("others answered", equal), ("a quarter answered", half), ("no other answered", few))
    ]


def _with_first_code(codes: Codes, code: int) -> Codes:
    changed = codes.copy()
    changed[0] = code
    return changed
