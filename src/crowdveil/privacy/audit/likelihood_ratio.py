"""Likelihood ratios of the numbers at all positions of a part, learned from draws of two inputs.

Numbers are coded as levels: all different numbers if they are few, else quantile classes. The sum over positions of the
log-likelihood ratios is the optimal statistic if positions are independent; two further statistics serve where not.
"""

from dataclasses import dataclass

import numpy as np

from crowdveil.privacy.audit.outputs import ABSENT, Part, Values

SCORED = 4096
"""Most positions that enter a score: those that differ most."""
LEVELS = 16
"""Classes of a position with many different numbers."""


@dataclass(frozen=True, eq=False)
class Coding:
    """Levels of the numbers at some positions, and the log-likelihood ratio of each level.

    Attributes:
        positions: positions with different numbers, those that differ most between the inputs first.
        levels: lower ends of the levels after the first, by position.
        ratios: ln P(level | first input) / P(level | second), by position.
        usual: most frequent level under the first input, by position.
    """

    positions: list[int]
    levels: list[Values]
    ratios: list[Values]
    usual: list[int]

    def level_at_position(self, part: Part, index: int) -> Values:
        """Return the level of the number at a position, shape (draws,); levels are 0, 1, ..."""
        return np.searchsorted(self.levels[index], numbers_at_position(part, self.positions[index]), side="right")

    def summed_log_likelihood_ratio(self, part: Part) -> Values:
        """Return the sum over positions of the log-likelihood ratios, shape (draws,)."""
        total = np.zeros(len(part.size))
        for index in range(len(self.positions)):
            total += self.ratios[index][self.level_at_position(part, index)]
        return np.round(total, 9)

    def usual_count_code(self, part: Part) -> Values:
        """Return a code of the number of usual levels at the weaker positions and of the level at the strongest one."""
        equal = np.zeros(len(part.size), dtype=np.int64)
        for index in range(1, len(self.positions)):
            equal += self.level_at_position(part, index) == self.usual[index]
        return equal * (len(self.levels[0]) + 1) + self.level_at_position(part, 0)

    def strongest_levels_code(self, part: Part) -> Values:
        """Return a code of the levels at the three strongest positions, shape (draws,)."""
        code = np.zeros(len(part.size), dtype=np.int64)
        for index in range(min(3, len(self.positions))):
            code = code * (len(self.levels[index]) + 1) + self.level_at_position(part, index)
        return code


def numbers_at_position(part: Part, position: int) -> Values:
    """Return the numbers at a position, shape (draws,)."""
    return part.numbers[:, position] if position < part.numbers.shape[1] else np.full(len(part.size), ABSENT)


def coding_by_differing_positions(first: Part, second: Part) -> Coding:
    """Return the coding learned from draws of two inputs."""
    width = max(first.numbers.shape[1], second.numbers.shape[1])
    found = []
    for position in range(width):
        one, two = numbers_at_position(first, position), numbers_at_position(second, position)
        levels = _lower_ends_of_levels(np.concatenate((one, two)))
        if len(levels):
            shares = [
                _smoothed_shares_of_codes(np.searchsorted(levels, own, side="right"), len(levels) + 1)
                for own in (one, two)
            ]
            found.append((float(np.abs(shares[0] - shares[1]).sum()), position, levels, shares))
    found.sort(key=lambda entry: (-entry[0], entry[1]))
    found = found[:SCORED]
    return Coding(
        positions=[position for _, position, _, _ in found],
        levels=[levels for _, _, levels, _ in found],
        ratios=[np.log(shares[0] / shares[1]) for *_, shares in found],
        usual=[int(shares[0].argmax()) for *_, shares in found],
    )


def _lower_ends_of_levels(numbers: Values) -> Values:
    """Return the lower ends of the levels after the first: all different numbers if few, else quantiles."""
    distinct = np.unique(numbers)
    if len(distinct) > 4 * LEVELS:
        distinct = np.unique(np.quantile(numbers[~np.isnan(numbers)], np.arange(LEVELS) / LEVELS))
    return distinct[1:]


def _smoothed_shares_of_codes(codes: Values, count: int) -> Values:
    """Return the shares of the codes, shape (count,), with half a draw added to each."""
    tally = np.bincount(codes, minlength=count) + 0.5
    return np.asarray(tally / tally.sum())
