"""Exact worst ratio of finite channels: every pair of inputs and every report, in integers."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from crowdveil.channels.alphabet import NULL
from crowdveil.channels.channel import Channel
from crowdveil.channels.rounding import sum_rounded_up
from crowdveil.display.quotes import quoted
from crowdveil.errors import SettingsError
from crowdveil.standalone.verification import epsilon_of

Neighbours = Literal["value", "participation", "worker"]
"""What differs between two inputs: one answer; one answer against NULL; all answers of one worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactLoss:
    """Exact privacy loss of the worst pair of inputs.

    Attributes:
        epsilon: in nats, rounded up; infinite if a report rules an input out.
        first, second: worst pair of input symbols.
        report: report symbol with the worst ratio.
    """

    epsilon: float
    first: str
    second: str
    report: str

    def __str__(self) -> str:
        first, second, report = map(quoted, (self.first, self.second, self.report))
        return f"{first} against {second}, report {report}"


def exact_loss(channel: Channel, neighbours: Neighbours = "value", cells: int = 1) -> ExactLoss:
    """Return the exact loss of independent cells sent through a channel.

    Args:
        channel: channel of every cell.
        neighbours: "value": any two labels in one cell; "participation": a label and NULL in one cell; "worker": any
            two inputs in each of `cells` cells.
        cells: cells of one worker.

    Raises:
        SettingsError: neighbours in participation of a channel that does not protect it.
    """
    ratio, first, second, report = max(
        (_largest_ratio_inputs_and_report(channel, i, j) for i, j in _neighbouring_input_pairs(channel, neighbours)),
        key=lambda found: (found[0] is None, found[0] or 0),
    )
    count = cells if neighbours == "worker" else 1
    loss = float("inf") if ratio is None else sum_rounded_up([(epsilon_of(ratio), count)])
    names = channel.inputs
    return ExactLoss(epsilon=loss, first=names[first], second=names[second], report=channel.outputs[report])


def worst_loss(channels: Sequence[Channel], neighbours: Neighbours = "value", cells: int = 1) -> ExactLoss:
    """Return the largest loss of several channels; arguments and errors as `exact_loss`."""
    return max((exact_loss(channel, neighbours, cells) for channel in channels), key=lambda one: one.epsilon)


def _neighbouring_input_pairs(channel: Channel, neighbours: Neighbours) -> list[tuple[int, int]]:
    labels, inputs = channel.alphabet.size, len(channel.inputs)
    if neighbours == "participation":
        if inputs == labels:
            raise SettingsError(
                "participation is public in this channel: an answer and NULL are not neighbours",
                value=neighbours,
                hint=f"{NULL} is visible; audit the value or the worker.",
            )
        return [pair for label in range(labels) for pair in ((label, labels), (labels, label))]
    count = labels if neighbours == "value" else inputs
    return [(i, j) for i in range(count) for j in range(count) if i != j]


def _largest_ratio_inputs_and_report(
    channel: Channel, first: int, second: int
) -> tuple[Fraction | None, int, int, int]:
    """Return the largest ratio of a report's probabilities under two inputs (None: infinite), and the report."""
    rows = channel.rows[first], channel.rows[second]
    for report, (one, two) in enumerate(zip(*rows, strict=True)):
        if one and not two:
            return None, first, second, report
    ratios = [Fraction(one, two) if two else Fraction(0) for one, two in zip(*rows, strict=True)]
    best = max(range(len(ratios)), key=ratios.__getitem__)
    return ratios[best], first, second, best
