"""Channels of comparisons: P(report | answer) in the order left, tie, right, with participation."""

from typing import Any, NamedTuple

import numpy as np

from crowdveil.answers.comparisons.values import ANSWERS, LEFT, RIGHT, TIE
from crowdveil.arguments import require_instance
from crowdveil.channels.channel import Channel
from crowdveil.errors import SettingsError
from crowdveil.estimators.ranking.likelihood import Floats

TOSSED = 1e-12
"""Largest difference of a tie's probabilities from those of a tossed coin."""


class ReportTable(NamedTuple):
    """Table of a channel of comparisons.

    Attributes:
        table: probabilities of reports by answer.
        outputs: names of the reports.
        answers: answers that workers can give.
        least_null: smallest probability of NULL, whatever is answered by whomever.
    """

    table: Floats
    outputs: tuple[str, ...]
    answers: tuple[str, ...]
    least_null: float = 0.0


def report_table(channel: Channel, participation_rate: float | None = None) -> ReportTable:
    """Return the table of a channel.

    Without a tie among its answers, a worker who cannot decide tosses a coin; a table that tosses ties is the same, for
    reports then tell nothing of ties. Where participation is protected, each
    row is mixed with that of "no answer": the share `participation_rate` of the cells asked is answered.

    Raises:
        SettingsError: other answers than left, right and maybe tie; or participation without its rate.
    """
    kind: Any = Channel
    require_instance("channel", channel, kind, what="a Channel", hint="Comparisons are sent through one channel.")
    names = channel.alphabet.names
    if set(names) not in ({LEFT, RIGHT}, set(ANSWERS)):
        hint = "Such as Categories(('left', 'tie', 'right')), or ('left', 'right') if ties are tossed."
        raise SettingsError("a channel of comparisons must have the answers left, right and maybe tie",
                            value=", ".join(names), hint=hint)  # fmt: skip
    rows = dict(zip(channel.inputs, channel.probabilities, strict=True))
    tie = rows[TIE] if TIE in names else (rows[LEFT] + rows[RIGHT]) / 2
    table = np.stack([rows[LEFT], tie, rows[RIGHT]])
    if np.allclose(2 * tie, rows[LEFT] + rows[RIGHT], rtol=0, atol=TOSSED):
        names = LEFT, RIGHT
    if not channel.protects_participation:
        if participation_rate not in (None, 1):
            raise SettingsError("participation_rate goes with a channel that protects participation",
                                value=participation_rate, hint="Leave it out.")  # fmt: skip
        return ReportTable(table, channel.outputs, names)
    if participation_rate is None or not 0 < participation_rate <= 1:
        raise SettingsError(
            "a channel that protects participation needs participation_rate, the share of asked comparisons that are "
            "answered, in (0, 1]",
            value=participation_rate,
            hint="Such as 0.8; 1 if everybody answers.",
        )
    none = channel.probabilities[-1]
    null = channel.null_output
    least = 0.0 if null is None else float(channel.probabilities[:, null].min())
    return ReportTable(participation_rate * table + (1 - participation_rate) * none, channel.outputs, names, least)
