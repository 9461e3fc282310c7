"""Agreement of the answers in a file, through the channel of its folder if there is one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.evidence import Evidence, channel_or_raise_if_unknown
from crowdveil.data.identifiers import Identifiers
from crowdveil.errors import SettingsError
from crowdveil.evaluation.agreement import Agreement, agreement
from crowdveil.evaluation.agreement_corrected_for_channel import agreement_through_channel

INFER = "Fit the reports with `crowdveil infer`: workers.csv compares the workers."


def agreement_corrected_for_channel(evidence: Evidence) -> Agreement:
    """Return the agreement of answers; that of protected reports only if the noise of their channel can be corrected.

    Raises:
        ReportsError: protected reports without a certificate, a worker with two answers to a task, or no task with two
            answers.
        SettingsError: several channels, or a channel that cannot be inverted.
    """
    channel = channel_or_raise_if_unknown(evidence, "agreement")
    if channel is None:
        return agreement(evidence.reports)
    if isinstance(channel, ChannelTable):
        raise SettingsError(
            "agreement is corrected for one channel, not for a table of them", value=channel.mechanism, hint=INFER
        )
    return agreement_through_channel(evidence.reports, channel, assignment=evidence.assignment)


def worker_columns(found: Agreement) -> dict[str, Identifiers]:
    """Return each worker's agreement with the others as columns: worker, agreement or difference, pairs.

    Raises:
        SettingsError: the agreement of workers is not known.
    """
    if found.workers is None:
        raise SettingsError("workers are not compared through a channel", value="a channel", hint=INFER)
    return {"worker": found.workers.names, found.pairwise_name: found.workers.pairwise, "pairs": found.workers.pairs}


def agreement_columns(found: Agreement) -> dict[str, NDArray[Any]]:
    """Return the measures of all answers as columns: measure, value, low, high."""
    rows = {
        **{f"alpha, {metric}": alpha for metric, alpha in found.alphas.items()},
        found.pairwise_name: found.pairwise,
    }
    ends = {end: np.array([getattr(one, end) for one in rows.values()]) for end in ("value", "low", "high")}
    return {"measure": np.array(list(rows), dtype=np.str_), **ends}
