"""`crowdveil.share`: shares of labels among answers, with intervals, groups, weights and known totals."""

from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.evidence import Evidence, require_known_channel, sends_null_reports
from crowdveil.answers.frame_answers import ColumnKeywords
from crowdveil.arguments import require_bool, require_number, require_whole_number
from crowdveil.channels.alphabet import NULL
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.display.counts import number_of
from crowdveil.em.observation_model import observation_model
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.hints import advice, advising_own_arguments
from crowdveil.inference.answers import evidence_of_answers
from crowdveil.quality.agreement.alpha import refuse_repeats
from crowdveil.quality.shares.counts import Cells
from crowdveil.quality.shares.estimate import Design, Progress, Settings, shares_of_cells, strata_of_totals
from crowdveil.quality.shares.people import Grouping, everyone, read_clusters, read_groupings, read_weights
from crowdveil.quality.shares.result import Shares

LEVEL = 0.95
"""Default level of intervals."""
MIN_GROUP = 10
"""Default least number of workers in a group that is shown."""
FEW_CLUSTERS = 30
"""Number of clusters below which a note says that intervals are too narrow: with 5 those of 95 % hold 85 %."""

FEW_EFFECTIVE = 100
"""Effective number of people below which a note says so: with 50, intervals of 95 % hold 85 to 91 %."""


@advising_own_arguments
def share(
    answers: Any,
    *,
    channel: Channel | ChannelTable | None = None,
    assignment: Assignment | None = None,
    level: float = LEVEL,
    simultaneous: bool = False,
    pooled: bool = False,
    by: Any = None,
    min_group: int = MIN_GROUP,
    weights: Any = None,
    totals: Any = None,
    clusters: Any = None,
    progress: Progress | None = None,
    **options: Unpack[ColumnKeywords],
) -> Shares:
    """Return the share of each label among the answers to each task, and of no answer among those asked.

    Args:
        answers: a frame as in `aggregate`; `Reports`; or `Evidence`, which has its channel and those asked.
        channel, assignment: of reports, which are then corrected for the noise. A channel with NULL reports needs
            `tasks` and `workers`, too.
        level: level of the intervals.
        simultaneous: whether the intervals of all labels of a task hold together (Bonferroni); two labels always do.
        pooled: whether all tasks are one; the unit of sampling is then the worker.
        by: public groups: a frame with the column "worker" and one for each grouping, or the group of each worker.
        min_group: least number of workers in a group; smaller ones are joined, and not shown if still smaller.
        weights: survey weight of each worker: a mapping, or a frame with the columns "worker" and one of weights.
        totals: known number of people in each group, with one column of groups: the shares of everyone are weighted to
            these totals (post-stratification).
        clusters: cluster of each worker where clusters of workers were sampled; likewise.
        progress: called with the finished and the expected number of rows.
        options: names of columns and options of reading, as in `aggregate`.

    Raises:
        ReportsError: the answers, numbers without an alphabet, a worker with two reports on a task, or reports of a
            channel with NULL reports where those asked are unknown.
        SettingsError: a level outside (0, 1), groups, weights or totals that break a rule.

    >>> import crowdveil as cv
    >>> answers = {"task": ["q"] * 100, "worker": [*range(100)], "label": ["yes"] * 30 + ["no"] * 70}
    >>> print(cv.share(answers, level=0.9))
    Shares, with 90 % intervals
    q: no 70.0 % (62.0 to 76.9)
    q: yes 30.0 % (23.1 to 38.0)
    """
    for name, value in (("simultaneous", simultaneous), ("pooled", pooled)):
        require_bool(name, value)
    require_level(level)
    require_whole_number("min_group", min_group, least=1)
    evidence = share_evidence(answers, channel, assignment, options)
    cells = cells_of_evidence(evidence)
    groupings, notes = ((), ()) if by is None else read_groupings(by, cells.reports.workers, least=min_group)
    design = _design(cells, groupings, notes, weights, totals, clusters)
    if design.unit is not None and (number := len(np.unique(design.unit))) < FEW_CLUSTERS:
        notes = (*notes, f"{number_of(number, 'cluster')}: of fewer than {FEW_CLUSTERS}, intervals are too narrow.")
    notes = (*notes, *_notes_on_weights(design))
    settings = Settings(level, simultaneous, pooled, progress)
    every = (everyone(len(cells.reports.workers)), *groupings)
    return shares_of_cells(cells, evidence, every, design, settings, (*evidence.notes, *notes))


def _design(
    cells: Cells, groupings: tuple[Grouping, ...], notes: tuple[str, ...], weights: Any, totals: Any, clusters: Any
) -> Design:
    """Return the weights, clusters and strata of the workers asked."""
    workers = cells.reports.workers
    design = Design(
        weight=None if weights is None else read_weights(weights, workers),
        unit=None if clusters is None else read_clusters(clusters, workers),
    )
    return design if totals is None else replace(design, strata=strata_of_totals(totals, groupings, notes, design))


def _notes_on_weights(design: Design) -> tuple[str, ...]:
    """Return a note if weights leave few people effective, by Kish's number, of all or of a stratum of totals."""
    if design.weight is None:
        return ()
    group = np.zeros(len(design.weight), np.int64) if design.strata is None else design.strata[0].code
    sums, squares = (np.bincount(group[group >= 0], power[group >= 0]) for power in (design.weight, design.weight**2))
    least = float((sums[squares > 0] ** 2 / squares[squares > 0]).min(initial=np.inf))
    if least >= FEW_EFFECTIVE:
        return ()
    where = "" if design.strata is None else " in a group of the totals"
    return (f"Weights as unequal as these leave {least:.0f} effective people{where}; intervals may be too narrow.",)


def require_level(level: Any) -> None:
    """Refuse a level of intervals outside (0, 1)."""
    require_number("level", level)
    if not 0 < level < 1:
        raise SettingsError("level must be between 0 and 1", value=level, hint="Such as level=0.95.")


def share_evidence(
    answers: Any, channel: Channel | ChannelTable | None, assignment: Assignment | None, options: ColumnKeywords
) -> Evidence:
    """Return answers as evidence; evidence as it is, without options of reading."""
    if not isinstance(answers, Evidence):
        return evidence_of_answers(answers, None, channel, assignment, options)
    for value in (channel, assignment, options):
        if value:
            rule = "evidence has its channel, assignment and options of reading"
            raise SettingsError(rule, value=value, hint="Leave them out, or give the answers.")
    return answers


def cells_of_evidence(evidence: Evidence) -> Cells:
    """Return the cells of evidence with the model of their reports.

    Raises:
        ReportsError: protected reports without their channel, numbers without an alphabet, reports that the channel
            cannot send, unknown cells, or a worker with two reports on a task.
    """
    reports, channel = evidence.reports, require_known_channel(evidence, "share")
    if reports.alphabet is None:
        raise ReportsError(
            "shares are of labels, or of the values of a scale",
            source="reports",
            examples="numbers without a scale",
            hint=advice("Give the scale of the numbers, or their labels: {alphabet}."),
        )
    refuse_repeats(reports)
    if sends_null_reports(channel):
        evidence.asked.require_cells()
    used = channel or Channel.identity(reports.alphabet, "public")
    coded, model = observation_model(used, reports, evidence.assignment)
    return Cells(reports=coded, model=model, symbols=used.alphabet.names + ((NULL,) if model.protected else ()))
