"""What a fit is told beside its reports, and what that asks of them."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.labels import Alphabet
from crowdveil.reports import Reports


def check_null_reports(reports: Reports, channel: Channel) -> None:
    """Check that the cells without a report can be counted as NULL reports.

    Raises:
        SettingsError: participation is public.
        ReportsError: a cell has two reports.
    """
    if channel.participation == "public":
        raise SettingsError(
            "a channel that sends NULL must protect participation, or its NULL reports look like blank cells",
            value=channel.mechanism,
        )
    repeats = 0
    for part in reports.parts():
        same_cell = (part.task[1:] == part.task[:-1]) & (part.worker[1:] == part.worker[:-1])
        repeats += int(same_cell.sum())
    if repeats:
        raise ReportsError(
            f"one cell sends one report, but {repeats} reports repeat a (task, worker) pair",
            way_out="Read the reports with duplicates='first' or 'last'.",
        )


def prior_vector(alphabet: Alphabet | None, prior: Mapping[str, float]) -> NDArray[np.float64]:
    """Return the prior in the order of the labels, shape (labels,), sum 1.

    Raises:
        SettingsError: other labels, or no probabilities.
    """
    names = () if alphabet is None else alphabet.names
    if set(prior) != set(names):
        raise SettingsError(f"the prior must give a probability to exactly the labels {names}", value=dict(prior))
    vector = np.array([float(prior[name]) for name in names])
    named = dict(zip(names, vector.tolist(), strict=True))
    above = {name: probability for name, probability in named.items() if probability > 1}
    if above:
        raise SettingsError("prior probabilities must be at most 1", value=above)
    wrong = {name: probability for name, probability in named.items() if not probability > 0}
    if wrong:
        raise SettingsError(
            "prior probabilities must be positive: a report can contradict a 0",
            value=wrong,
            way_out="Give a label that hardly occurs a small probability, such as 1e-6.",
        )
    if not abs(vector.sum() - 1) < 1e-6:
        raise SettingsError("prior probabilities must sum to 1", value=float(vector.sum()))
    return vector / vector.sum()
