"""Known truths (gold): validation, alignment with tasks, and certainty of their posteriors."""

import json
from collections.abc import Callable, Mapping, Sized
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.frames import is_frame, read_gold_frame
from crowdveil.answers.identifiers import index_of, no_common_task_error
from crowdveil.answers.ingest.gold_files import DrawnGold
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import MAGNITUDE_HINT, MAGNITUDE_RULE, Alphabet, Scale, squares_safely
from crowdveil.errors import ReportsError, SettingsError, numpy_scalars_to_python
from crowdveil.hints import command_advice, one_of

SHOWN = 3
NO_GOLD = -1
"""Label code of tasks without a known truth."""
RANDOM_GOLD = {
    True: "They were drawn at random, so this estimates the accuracy on the other tasks.",
    False: "They are not a random sample of the tasks, so the accuracy on the others may differ.",
    None: "This estimates the accuracy on the other tasks only if gold was drawn at random.",
}
"""Meaning of a cross-validated accuracy, by `CrossValidation.random`."""


@dataclass(frozen=True, eq=False)
class Gold:
    """Known truths; memory grows with their number, not with that of tasks.

    Attributes:
        tasks: codes of tasks with known truth, ascending, shape (known,).
        truths: label codes (int64), or numbers (float64), shape (known,).
        unknown: number of gold tasks that are not among the tasks.
    """

    tasks: NDArray[np.int64]
    truths: NDArray[Any]
    unknown: int

    @property
    def number_of_known_truths(self) -> int:
        """Number of tasks with known truth."""
        return int(np.isfinite(self.truths).sum())

    def mask(self, tasks: int) -> NDArray[np.bool_] | None:
        """Return whether each of all tasks has a known truth, shape (tasks,); None if none has."""
        mask = np.zeros(tasks, dtype=bool)
        mask[self.tasks[np.isfinite(self.truths)]] = True
        return mask if self.number_of_known_truths else None

    def truths_of_tasks(self, first: int, stop: int) -> NDArray[Any]:
        """Return the truths of the tasks first .. stop-1, NO_GOLD (nan for numbers) where unknown; (stop - first,)."""
        nothing = np.nan if self.truths.dtype.kind == "f" else NO_GOLD
        aligned = np.full(stop - first, nothing, self.truths.dtype)
        known = slice(*np.searchsorted(self.tasks, (first, stop)))
        aligned[self.tasks[known] - first] = self.truths[known]
        return aligned


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """Truths of gold tasks inferred without their known truth.

    Attributes:
        tasks: number of gold tasks with reports.
        right: number of them that are right by fits to the other folds of gold.
        right_without_gold: the same by a fit without any gold; None if there is none.
        random: whether gold was drawn at random: True if the seed of its draw was checked, False if it looks unlike
            a random sample, None if it is unknown.
        order_reversed: whether the order of answers says the opposite of gold, where truths have labels of their own.
    """

    tasks: int
    right: int
    right_without_gold: int | None = None
    random: bool | None = None
    order_reversed: bool = False

    def __str__(self) -> str:
        without = self.right_without_gold
        other = "" if without is None else f" ({without / self.tasks:.3f} without gold)"
        accuracy = f"Cross-validated accuracy on {self.tasks:,} gold tasks: {self.right / self.tasks:.3f}{other}"
        order = " Without gold, the order of the truths looks reversed." if self.order_reversed else ""
        return f"{accuracy}. {RANDOM_GOLD[self.random]}{order}"

    def to_json(self) -> str:
        """Return it as JSON text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the cross-validation in JSON text.

        Raises:
            ValueError, TypeError: it is none.
        """
        found = cls(**json.loads(text))
        counts = [found.tasks, found.right, *([] if found.right_without_gold is None else [found.right_without_gold])]
        if not all(type(count) is int and 0 <= count <= found.tasks for count in counts) or found.tasks < 1:
            raise ValueError("a cross-validation counts gold tasks, and those that are right")
        if found.random not in (True, False, None) or type(found.order_reversed) is not bool:
            raise ValueError("random must be True, False or None, and order_reversed True or False")
        return found


def as_gold(gold: Any) -> Mapping[Any, Any]:
    """Return known truths by task: of a mapping or a frame; empty for None; errors as `drawn_gold`."""
    return {} if gold is None else drawn_gold(gold).truths


def drawn_gold(gold: Any) -> DrawnGold:
    """Return known truths by task, and how their tasks were found.

    Args:
        gold: mapping from task to truth; or a frame, as of answers, with the columns of a file of gold.

    Raises:
        SettingsError: another type.
        ReportsError: a frame without these columns, or with two truths of one task.
    """
    if isinstance(gold, Mapping) and not (gold and all(map(_is_column, gold.values()))):
        return DrawnGold(gold, None)
    if not is_frame(gold):
        hint = "Such as {'task 1': 'yes'}, or a frame with the columns task and truth (pandas.read_csv)."
        raise SettingsError("gold must be a mapping from task to truth", value=type(gold).__name__, hint=hint)
    return read_gold_frame(gold)


def _is_column(value: object) -> bool:
    return isinstance(value, Sized) and not isinstance(value, str | bytes)


def align_gold(reports: Reports, gold: Mapping[Any, Any] | None, alphabet: Alphabet | None, *, numeric: bool) -> Gold:
    """Return known truths in task order.

    Truths are codes of `alphabet`, in which they are inferred; or, if `numeric`, numbers (a label's position for
    categories).

    Raises:
        ReportsError: a gold truth is not in the alphabet, no number, too large or small to compute with or outside the
            scale, or no gold task is among the tasks.
        SettingsError: gold is no mapping and no frame.
    """
    gold = as_gold(gold)
    read = _gold_reader(alphabet, numeric)
    requested = {str(task): (task, truth) for task, truth in (gold or {}).items()}
    found = sorted((code, name) for name, code in index_of(reports.tasks, requested).items())
    if requested and not found:
        raise no_common_task_error(requested, reports.tasks, "gold")
    truths = np.empty(len(found), dtype=np.float64 if numeric else np.int64)
    for place, (_, name) in enumerate(found):
        task, truth = requested[name]
        try:
            truths[place] = read(truth)
        except (KeyError, TypeError, ValueError) as error:
            as_written = 2.5 if alphabet is None else alphabet.names[0]
            known = "a number" if alphabet is None else f"among {alphabet.names}"
            raise ReportsError(
                f"gold of task {numpy_scalars_to_python(task)!r} must be {known}",
                source="gold",
                examples=repr(numpy_scalars_to_python(truth)),
                hint=f"Write it as in the answers, such as {as_written!r}, or leave the task out.",
            ) from error
    if numeric:
        _check_numbers(truths, [name for _, name in found], alphabet)
    return Gold(np.array([code for code, _ in found], dtype=np.int64), truths, len(gold or ()) - len(found))


def _check_numbers(truths: NDArray[Any], tasks: list[str], alphabet: Alphabet | None) -> None:
    """Refuse numbers beyond the ends of a scale, or too large to compute with; between its points they are accepted."""
    known = ~np.isnan(truths)
    rules = [(~squares_safely(truths), MAGNITUDE_RULE, MAGNITUDE_HINT)]
    if isinstance(alphabet, Scale):
        outside = (truths < alphabet.low) | (truths > alphabet.high)
        rule = f"must be on the scale from {alphabet.low:g} to {alphabet.high:g} to guide a fit"
        score = command_advice("only score with them ({score})")
        rules.append((outside, rule, one_of("correct these truths", "leave them out", score)))
    for wrong, rule, hint in rules:
        bad = np.flatnonzero(known & wrong)
        if len(bad):
            shown = ", ".join(f"{truths[at]:g} of task {tasks[at]!r}" for at in bad[:SHOWN])
            raise ReportsError(f"{len(bad):,} gold truths: each {rule}", source="gold", examples=shown, hint=hint)


def _gold_reader(alphabet: Alphabet | None, numeric: bool) -> Callable[[Any], float]:
    """Return a function from a gold truth to its code or number; it raises KeyError, TypeError or ValueError."""
    if alphabet is None or (numeric and isinstance(alphabet, Scale)):
        return float
    if isinstance(alphabet, Scale):
        # The names, unlike the values, are the floats that people write: 0.3 and not 0.1 * 3.
        codes = {float(name): code for code, name in enumerate(alphabet.names)}
        return lambda truth: codes[float(truth)]
    names = {name: code for code, name in enumerate(alphabet.names)}
    return lambda truth: names[str(truth)]


def one_hot_gold(posterior: NDArray[np.float64], gold: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the posterior, [task, label], with certainty for tasks with known truth; `gold` has shape (tasks,)."""
    known = np.flatnonzero(gold >= 0)
    fixed = posterior.copy() if known.size else posterior
    fixed[known] = 0.0
    fixed[known, gold[known]] = 1.0
    return fixed
