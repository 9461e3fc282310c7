"""Shares of labels by task and group, from the cells of a collection and the design of its sample."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.evidence import Evidence
from crowdveil.errors import SettingsError
from crowdveil.hints import advice
from crowdveil.quality.shares.counts import Cells, ReportSums, asked_cells
from crowdveil.quality.shares.differences import GroupsOfTask, compare_groups, with_adjusted
from crowdveil.quality.shares.people import Grouping, shares_of_totals
from crowdveil.quality.shares.result import POOLED, Difference, Group, GroupTest, Shares
from crowdveil.quality.shares.score import ShareEstimates, score_estimates
from crowdveil.quality.shares.weighted import (
    LinearSums,
    combined_strata,
    effective_estimates,
    fieller_estimates,
    linear_sums,
)

Progress = Callable[[float, float | None], None]
BATCH_NUMBERS = 1 << 20
"""Numbers in the tables of the rows that are computed together."""
MAX_COMPARED = 12
"""Largest number of groups whose differences are all computed."""
DIGITS = 6
"""Decimals of a share, which the pseudo-reports leave exact."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """Weight and cluster of each worker, and strata with their shares of the population; None without."""

    weight: NDArray[np.float64] | None = None
    unit: NDArray[np.int64] | None = None
    strata: tuple[Grouping, NDArray[np.float64]] | None = None

    def public_inputs(self, *, grouped: bool) -> tuple[str, ...]:
        """Return the names of what was given of people beside their reports."""
        given = {"weights": self.weight, "totals": self.strata, "clusters": self.unit}
        return (*(("groups",) if grouped else ()), *(name for name, value in given.items() if value is not None))


@dataclass(frozen=True)
class Settings:
    """Level of the intervals, whether those of all labels hold together, and whether tasks are pooled."""

    level: float
    simultaneous: bool
    pooled: bool
    progress: Progress | None

    def levels(self, labels: int, inputs: int) -> NDArray[np.float64]:
        """Return the level of the interval of each input; two labels have one share, so one interval."""
        found = np.full(inputs, self.level)
        if self.simultaneous and labels > 2:
            found[:labels] = 1 - (1 - self.level) / labels
        return found


def strata_of_totals(
    totals: Any, groupings: tuple[Grouping, ...], notes: tuple[str, ...], design: Design
) -> tuple[Grouping, NDArray[np.float64]]:
    """Return the strata of known totals, and their shares of the population."""
    if len(groupings) != 1:
        hint = advice("Give {by} with one column besides the workers.")
        raise SettingsError("totals need one column of groups", value=f"{len(groupings)} columns", hint=hint)
    if design.unit is not None:
        hint = advice("Leave {totals} or {clusters} out.")
        raise SettingsError("totals and clusters do not go together", value="both", hint=hint)
    return groupings[0], shares_of_totals(totals, groupings[0], notes)


def shares_of_cells(
    cells: Cells, evidence: Evidence, groupings: tuple[Grouping, ...], design: Design, settings: Settings,
    notes: tuple[str, ...],
) -> Shares:  # fmt: skip
    """Return the shares of all groupings, everyone first, as rows of one result.

    Args:
        cells: reports with their model.
        evidence: of the same reports, with those asked.
        groupings: groups of workers by column.
        design: weights, clusters and strata.
        settings: level of the intervals, and pooling.
        notes: what the reader must know.
    """
    labels, inputs = cells.model.labels, len(cells.symbols)
    levels, found, methods = settings.levels(labels, inputs), list[ShareEstimates](), set[str]()
    compared, said = Compared([], []), list[str]()
    for number, grouping in enumerate(groupings):
        if number == 0 and design.strata is not None:
            found.append(_stratified(cells, design, settings, levels))
            methods.add("sums")
            continue
        plain = design.weight is None and design.unit is None and not settings.pooled
        sums = _sums(cells, grouping, design, settings)
        part, used = _estimates(sums, cells, levels, plain, settings.progress)
        found.append(part)
        methods |= used
        if number:
            said += compare_all(grouping, sums.total if plain else None, part, cells, settings, compared)
    joined = ShareEstimates(*(np.round(np.concatenate(part, axis=1), DIGITS) for part in zip(*found, strict=True)))
    known = evidence.asked.cells_known or cells.model.protected
    asked, sent = _cells_and_reports(cells, groupings, evidence, known, settings.pooled)
    silent = _silent(cells, groupings, evidence, known, design, settings.pooled)
    lowest, highest = _bounds(joined.share, silent, labels)
    names = np.array([POOLED]) if settings.pooled else cells.reports.tasks
    return Shares(
        tasks=names,
        groups=tuple(Group(one.by, name) for one in groupings for name in one.names),
        symbols=cells.symbols,
        **{name: getattr(joined, name) for name in ("share", "unclipped", "low", "high", "standard_error")},
        lowest=lowest,
        highest=highest,
        asked=asked,
        reports=sent,
        level=settings.level,
        simultaneous=settings.simultaneous,
        channel_used=evidence.channel is not None,
        method="score" if methods <= {"score"} else "sums",
        pooled=settings.pooled,
        weighted=design.weight is not None or design.strata is not None,
        totals="" if design.strata is None else "answers" if cells.model.protected else "everyone",
        public_inputs=design.public_inputs(grouped=len(groupings) > 1),
        differences=tuple(compared.differences),
        tests=with_adjusted(compared.tests),
        notes=(*notes, *said),
    )


def _sums(cells: Cells, grouping: Grouping, design: Design, settings: Settings) -> ReportSums:
    """Return the sums of reports by task (or pooled) and group, over the units of the design."""
    groups = len(grouping.names)
    if settings.pooled or design.unit is not None:
        unit = np.arange(len(grouping.code)) if design.unit is None else design.unit
        return cells.unit_sums(grouping.code, groups, design.weight, unit, pooled=settings.pooled)
    return cells.sums(grouping.code, groups, design.weight)


def _estimates(
    sums: ReportSums, cells: Cells, levels: NDArray[np.float64], plain: bool, progress: Progress | None
) -> tuple[ShareEstimates, set[str]]:
    """Return the estimates, indexed [task, group, input], and the methods of their intervals."""
    shape, model = sums.total.shape[:2], cells.model
    rows, table, inputs = sums.flat(), model.full_table, len(levels)
    found = np.full((len(ShareEstimates._fields), len(rows.total), inputs), np.nan)
    channels = np.stack([rows.total[:, model.channel == one].sum(axis=1) > 0 for one in range(model.channel.max() + 1)])
    single = channels.sum(axis=0) <= 1
    for one in range(len(channels)) if plain else ():
        own = single & (channels.argmax(axis=0) == one)
        part = model.channel == one
        found[:, own] = _distinct_score_estimates(
            rows.total[own][:, part], table[:, part], model.labels, levels, progress
        )
    others = ~single if plain else np.ones(len(single), dtype=bool)
    if others.any():
        found[:, others] = np.stack(
            _estimates_of_sums(linear_sums(rows.rows(others), table, model.channel, model.labels), cells, levels)
        )
    methods = ({"score"} if not others.all() else set()) | ({"sums"} if others.any() else set())
    return ShareEstimates(*found.reshape(len(found), *shape, inputs)), methods


def _estimates_of_sums(found: LinearSums, cells: Cells, levels: NDArray[np.float64]) -> ShareEstimates:
    """Return score intervals of the effective number of reports of one channel, else Fieller's; by row."""
    model = cells.model
    estimates = np.stack(fieller_estimates(found, model.labels, levels))
    channels = np.stack([found.reports[:, model.channel == one].any(axis=1) for one in np.unique(model.channel)])
    single = (channels.sum(axis=0) == 1) & ~np.isnan(found.freedom)
    for place, one in enumerate(np.unique(model.channel)):
        own, part = single & channels[place], model.channel == one
        if own.any():
            rows = LinearSums(*(values[own] for values in found))._replace(reports=found.reports[own][:, part])
            estimates[:, own] = np.stack(effective_estimates(rows, model.full_table[:, part], model.labels, levels))
    return ShareEstimates(*estimates)


def _distinct_score_estimates(
    counts: NDArray[np.float64], table: NDArray[np.float64], labels: int, levels: NDArray[np.float64],
    progress: Progress | None,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the estimates of each row, stacked; equal rows are computed once."""
    distinct, places = np.unique(counts, axis=0, return_inverse=True)
    found, step = [np.zeros((len(ShareEstimates._fields), 0, len(table)))], max(1, BATCH_NUMBERS // table.size)
    for first in range(0, len(distinct), step):
        found.append(np.stack(score_estimates(distinct[first : first + step], table, labels, levels)))
        if progress is not None:
            progress(min(first + step, len(distinct)), len(distinct))
    return np.asarray(np.concatenate(found, axis=1)[:, places.ravel()])


class Compared(NamedTuple):
    """Differences and tests found so far."""

    differences: list[Difference]
    tests: list[GroupTest]


def compare_all(
    grouping: Grouping, counts: NDArray[np.float64] | None, found: ShareEstimates, cells: Cells, settings: Settings,
    compared: Compared,
) -> list[str]:  # fmt: skip
    """Add the differences and tests of a column to `compared`, and return notes; `counts` is None for weighted sums."""
    groups, model = len(grouping.names), cells.model
    if groups < 2:
        return []
    tasks = [POOLED] if settings.pooled else cells.reports.tasks.tolist()
    for task, name in enumerate(tasks):
        own = ShareEstimates(*(part[task] for part in found))
        tables, sent = [], []
        if counts is not None:
            used = [np.unique(model.channel[row > 0]) for row in counts[task]]
            if all(len(channels) == 1 for channels in used):
                part = [model.channel == channels[0] for channels in used]
                tables = [model.full_table[:, kept] for kept in part]
                sent = [row[kept] for row, kept in zip(counts[task], part, strict=True)]
        of_task = GroupsOfTask(name, grouping.by, grouping.names, tables, sent, own)
        labels, pairs = cells.symbols[: model.labels], groups <= MAX_COMPARED
        differences, tests = compare_groups(
            of_task, labels, settings.level, pairs=pairs, simultaneous=settings.simultaneous
        )
        compared.differences.extend(differences)
        compared.tests.extend(tests)
    if groups > MAX_COMPARED:
        return [f"{grouping.by}: differences are of at most {MAX_COMPARED} groups; there are {groups}."]
    return []


def _stratified(cells: Cells, design: Design, settings: Settings, levels: NDArray[np.float64]) -> ShareEstimates:
    """Return the shares of everyone weighted to known totals, indexed [task, 1, input]."""
    assert design.strata is not None
    grouping, share_of_stratum = design.strata
    sums, model = _sums(cells, grouping, design, settings), cells.model
    found = list[ShareEstimates]()
    for task in range(len(sums.total)):
        parts = linear_sums(ReportSums(*(part[task] for part in sums)), model.full_table, model.channel, model.labels)
        found.append(_estimates_of_sums(combined_strata(parts, share_of_stratum), cells, levels))
    return ShareEstimates(*(np.stack(part) for part in zip(*found, strict=True)))


def _cells_and_reports(
    cells: Cells, groupings: tuple[Grouping, ...], evidence: Evidence, known: bool, pooled: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of cells asked and of reports other than NULL, indexed [task, group]."""
    asked, sent = [], []
    for grouping in groupings:
        groups = len(grouping.names)
        cells_asked = asked_cells(cells, grouping.code, groups, evidence.assignment, known=known)
        asked.append(np.rint(cells_asked).astype(np.int64))
        listed = cells.counts(grouping.code, groups)[:, :, : cells.model.listed_symbol_count]
        sent.append(listed[:, :, cells.model.is_informative].sum(axis=2).astype(np.int64))
    found = [np.concatenate(part, axis=1) for part in (asked, sent)]
    return (found[0].sum(axis=0)[None], found[1].sum(axis=0)[None]) if pooled else (found[0], found[1])


def _silent(
    cells: Cells, groupings: tuple[Grouping, ...], evidence: Evidence, known: bool, design: Design, pooled: bool
) -> NDArray[np.float64]:
    """Return the share of the cells asked that are without a report, indexed [task, group], weighted as the shares."""
    rows = list[NDArray[np.float64]]()
    for number, grouping in enumerate(groupings):
        weight, groups = design.weight, len(grouping.names)
        asked = asked_cells(cells, grouping.code, groups, evidence.assignment, known=known, weight=weight)
        sums = cells.sums(grouping.code, groups, weight).total[:, :, : cells.model.listed_symbol_count]
        sent = sums[:, :, cells.model.is_informative].sum(axis=2)
        asked, sent = (one.sum(axis=0)[None] if pooled else one for one in (asked, sent))
        rows.append(1 - sent / np.where(asked > 0, asked, 1.0))
        if number == 0 and design.strata is not None:
            rows[0][:] = np.nan  # a share of known totals is no share of the cells asked
    found = np.concatenate(rows, axis=1)
    return found if known else np.full(found.shape, np.nan)


def _bounds(
    share: NDArray[np.float64], silent: NDArray[np.float64], labels: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the shares if nobody, or everybody, of those without an answer had the label; nan where unknown.

    Where participation is protected, the share of no answer is that of the channel's last input, not `silent`.
    """
    lowest, highest = np.full((2, *share.shape), np.nan)
    if share.shape[2] > labels:
        silent = share[:, :, labels]
    lowest[:, :, :labels] = share[:, :, :labels] * (1 - silent)[:, :, None]
    highest[:, :, :labels] = lowest[:, :, :labels] + silent[:, :, None]
    return np.round(lowest, DIGITS), np.round(highest, DIGITS)
