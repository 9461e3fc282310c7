"""Agreement of the answers in a file, through the channel of its folder if there is one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.evidence import Evidence, require_known_channel
from crowdveil.answers.identifiers import Identifiers
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.quality.agreement.alpha import LEVEL, Agreement, measure_agreement
from crowdveil.quality.agreement.corrected_for_channel import agreement_through_channel
from crowdveil.quality.agreement.kappa import kappas

ANOTHER_LABEL = "(another label)"
"""Label that nobody gave, where all answers are one label."""
INFER = "Fit the reports with `crowdveil infer`: workers.csv compares the workers."


def agreement_corrected_for_channel(evidence: Evidence, level: float = LEVEL) -> Agreement:
    """Return the agreement of answers; that of protected reports only if the noise of their channel can be corrected.

    Args:
        evidence: answers or reports.
        level: level of all intervals.

    Raises:
        ReportsError: protected reports without a certificate, a worker with two answers to a task, or no task with two
            answers.
        SettingsError: several channels, or a channel that cannot be inverted.
    """
    channel = require_known_channel(evidence, "agreement")
    if channel is None:
        return replace(measure_agreement(evidence.reports, level), kappas=kappas(evidence.reports, level))
    if isinstance(channel, ChannelTable):
        raise SettingsError(
            "agreement is corrected for one channel, not for a table of them", value=channel.mechanism, hint=INFER
        )
    return agreement_through_channel(evidence.reports, channel, assignment=evidence.assignment, level=level)


def evidence_of_any_labels(read: Callable[[Categories | None], Evidence]) -> Evidence:
    """Return the evidence that a function reads by an alphabet, or None; answers of one label are no error."""
    try:
        return read(None)
    except ReportsError as error:
        if error.code != "one label":
            raise
        return read(Categories((error.values["label"], ANOTHER_LABEL)))


def agreement_notes(found: Agreement) -> tuple[str, ...]:
    """Return a sentence on an alpha that says less than it seems to."""
    if found.tasks != 1 or found.channel_used or found.all_agree:
        return ()
    return (
        "Alpha of one task is 0 whenever its answers differ: the disagreement by chance is taken from the same "
        "answers. Compare several tasks.",
    )


def worker_columns(found: Agreement) -> dict[str, Identifiers]:
    """Return each worker's agreement with the others as columns: worker, agreement or difference, pairs.

    Raises:
        SettingsError: the agreement of workers is not known.
    """
    if found.workers is None:
        raise SettingsError("workers cannot be compared through a channel", value="a channel", hint=INFER)
    return {"worker": found.workers.names, found.pairwise_name: found.workers.pairwise, "pairs": found.workers.pairs}


def agreement_columns(found: Agreement) -> dict[str, NDArray[Any]]:
    """Return the measures of all answers as columns: measure, value, low, high."""
    rows = {
        **{f"alpha, {metric}": alpha for metric, alpha in found.alphas.items()},
        **{f"kappa, {name}": kappa for name, kappa in found.kappas.items()},
        found.pairwise_name: found.pairwise,
    }
    ends = {end: np.array([getattr(one, end) for one in rows.values()]) for end in ("value", "low", "high")}
    return {"measure": np.array(list(rows), dtype=np.str_), **ends}
