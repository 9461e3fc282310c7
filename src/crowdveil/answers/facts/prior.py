"""Public prior: probability of each label as truth, known before anyone answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.facts.inputs import Input
from crowdveil.arguments import require_instance, require_number
from crowdveil.channels.alphabet import Alphabet
from crowdveil.errors import CrowdveilError, ReportsError, SettingsError

SUM_TOLERANCE = 1e-6
"""Largest accepted |sum - 1|."""
SHOWN = 3
"""Labels that an error names."""
EXAMPLE = "Such as {'no': 0.7, 'yes': 0.3}."


@dataclass(frozen=True, kw_only=True, eq=False)
class Prior:
    """Public probability of each label: all are positive, and their sum is 1.

    Attributes:
        probabilities: by label.
        source: file that has a row for each label in this order; empty for a value in memory.
        inputs: what it was read from.

    Raises:
        SettingsError: no mapping from label to number, or probabilities that are not positive or do not sum to 1.
        ReportsError: the same, in a file.
    """

    probabilities: Mapping[str, float]
    source: str = ""
    inputs: tuple[Input, ...] = ()

    def __post_init__(self) -> None:
        require_instance("prior", self.probabilities, Mapping, what="a mapping from label to probability", hint=EXAMPLE)
        for share in self.probabilities.values():
            require_number("a probability of the prior", share)
        above = [label for label, share in self.probabilities.items() if share > 1]
        if above:
            raise self._error("prior probabilities must be at most 1", above, hint=EXAMPLE)
        wrong = [label for label, share in self.probabilities.items() if not share > 0]
        if wrong:
            rule = "prior probabilities must be positive: no report can overrule a prior of 0"
            raise self._error(rule, wrong, hint="Give a rare label a small probability, such as 1e-6.")
        total = float(sum(self.probabilities.values()))
        if not abs(total - 1) < SUM_TOLERANCE:
            rule = f"prior probabilities must sum to 1, not to {total:.9g}"
            raise self._error(rule, [], hint="Divide each by their sum.")

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return a prior of a mapping from label to probability; errors as for the prior itself."""
        return given if isinstance(given, cls) else cls(probabilities=given)

    def in_label_order(self, alphabet: Alphabet | None) -> NDArray[np.float64]:
        """Return the probabilities in the order of the labels, shape (labels,), sum 1.

        Raises:
            SettingsError, ReportsError: other labels than those of the prior.
        """
        names = () if alphabet is None else alphabet.names
        wrong = sorted(map(str, self.probabilities.keys() ^ set(names)))
        if wrong:
            labels = f"{len(names)} labels" if len(names) > 2 * SHOWN else f"labels {', '.join(names)}"
            rule = f"the prior must give a probability to each of the {labels} and to no other"
            hint = "Give each label once, as it is written in the answers."
            if self.source:
                raise ReportsError(rule, source=self.source, examples=", ".join(wrong[:SHOWN]), hint=hint)
            raise SettingsError(rule, value=wrong[:SHOWN], hint=hint)
        vector = np.array([float(self.probabilities[name]) for name in names])
        return vector / vector.sum()

    def _error(self, rule: str, wrong: list[str], *, hint: str) -> CrowdveilError:
        """Return the error of some labels; of a file it names their rows."""
        found = {label: float(self.probabilities[label]) for label in wrong[:SHOWN] or self.probabilities}
        if not self.source:
            return SettingsError(rule, value=found, hint=hint)
        row_of = {label: row for row, label in enumerate(self.probabilities, start=1)}
        examples = ", ".join(f"{label!r} has {share:g}" for label, share in found.items()) if wrong else ""
        rows = tuple(row_of[label] for label in wrong[:SHOWN])
        return ReportsError(rule, source=self.source, rows=rows, examples=examples, hint=hint)
