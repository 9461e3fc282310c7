"""Ranking of a frame of comparisons, or of comparisons that were read, by one call."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack
from unicodedata import normalize

import numpy as np
import pyarrow as pa

from crowdveil.answers.comparisons.columns import ComparisonNames, comparisons_of_table
from crowdveil.answers.comparisons.reading import comparisons_of_frame
from crowdveil.answers.comparisons.repeats import without_repeats
from crowdveil.answers.comparisons.values import Comparisons
from crowdveil.answers.facts.asked import UNKNOWN
from crowdveil.answers.frames import as_table
from crowdveil.answers.ingest.column_checks import Duplicates
from crowdveil.answers.ingest.labels import spelling_groups
from crowdveil.arguments import did_you_mean
from crowdveil.channels.alphabet import NULL
from crowdveil.channels.channel import Channel
from crowdveil.display.counts import number_of
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators.ranking.channels import ReportTable, report_table
from crowdveil.estimators.ranking.fit import NOTHING_KNOWN, Known
from crowdveil.estimators.ranking.methods import RANKING_METHODS, RankingMethod
from crowdveil.hints import advising_own_arguments
from crowdveil.inference.ranking.ranking import Ranking

MethodChoice = str | RankingMethod | None
"""Name of a method of ranking, or a method; None for the default."""
GOLD = "gold"
MOST_WITHOUT_NULL = 14
"""Expected number of NULL reports above which none at all has a probability below one in a million."""
ENOUGH_NULL = 50
"""Least expected number of NULL reports from which less than half of it has a probability below one in 10,000."""
MANY, ENOUGH = 1 / 3, 100
"""Share of workers who may guess from which a note says so, and mean answers of a worker from which none does."""
SHOWN_SPELLINGS = 3
"""Groups of names that look alike, in a note."""


class NameKeywords(TypedDict, total=False):
    """Names of the columns of comparisons, where their names do not say so."""

    left: str | None
    right: str | None
    worker: str | None
    label: str | None
    list: str | None


@advising_own_arguments
def rank(
    comparisons: Any,
    method: MethodChoice = None,
    *,
    channel: Channel | None = None,
    participation_rate: float | None = None,
    gold: Any = None,
    duplicates: Duplicates = "all",
    **names: Unpack[NameKeywords],
) -> Ranking:
    """Return the ranking of items that workers compared in pairs.

    Args:
        comparisons: a row for each comparison, as a frame of any kind or a dict of columns: left, right, worker, label
            (left, right, tie, or the winner's name), and list for several lists of items.
        method: "hierarchical-davidson" (default), "davidson", "bradley-terry" or "counting", or a method.
        channel: channel of the reports, whose answers are left, right and maybe tie; None for answers.
        participation_rate: share of the asked comparisons that are answered, where the channel hides it.
        gold: pairs whose order is known, as a frame: left, right, label.
        duplicates: if a worker compares a pair again: keep "all", the "first" or the "last" of them, or refuse
            ("error").
        names: names of the columns left, right, worker, label and list.

    Raises:
        ReportsError: a missing column, an item against itself, or an answer that is none.
        SettingsError: an unknown method, or a channel that is not one of comparisons.

    Warns:
        UserWarning: groups of items that no comparison connects.

    >>> import crowdveil as cv
    >>> answers = {"left": [*"aab"], "right": [*"bcc"], "worker": [1, 1, 2], "label": ["left", "a", "tie"]}
    >>> cv.rank(answers).to_arrow()["item"].to_pylist()[0]
    'a'
    """
    unknown = sorted(names.keys() - NameKeywords.__annotations__.keys())
    if unknown:
        hint = did_you_mean(unknown[0], ("method", "channel", "gold", "duplicates", *NameKeywords.__annotations__))
        raise SettingsError("options must be known", value=unknown[0], hint=hint)
    reading, sent = ComparisonNames(**names), None if channel is None else report_table(channel, participation_rate)
    if channel is None and participation_rate is not None:
        raise SettingsError("participation_rate goes with a channel", value=participation_rate, hint="Give channel=.")
    notes: tuple[str, ...] = ()
    if isinstance(comparisons, Comparisons):
        rows = comparisons
    else:
        rows, notes = comparisons_of_frame(comparisons, reading, None if sent is None else sent.outputs)
    found = rank_comparisons(without_repeats(rows, duplicates), method, sent=sent, gold=gold, notes=notes)
    for note in found.notes:
        warnings.warn(note, UserWarning, stacklevel=3)
    return found


def rank_comparisons(
    rows: Comparisons,
    method: MethodChoice = None,
    *,
    sent: ReportTable | None = None,
    gold: Any = None,
    notes: tuple[str, ...] = (),
) -> Ranking:
    """Return the ranking of comparisons that were read; `sent` is the table of their channel, `gold` a frame."""
    chosen = method_of(method)
    table = None if sent is None else sent.table
    if sent is not None:
        _refuse_unknown_cells(rows, sent)
        rows = replace(rows, answer_names=sent.answers)
    known, more = (NOTHING_KNOWN, ()) if gold is None else known_orders(gold, rows)
    scored = chosen.fit(rows, table, known)
    found = Ranking(comparisons=rows, method=chosen, scored=scored, table=table, known=len(known))
    slow = () if found.converged else (f"The fit did not converge in {number_of(chosen.max_sweeps, 'sweep')}.",)
    unsure = _notes_on_guessing(found)
    unsure = (*found.direction_notes(), *unsure)
    return replace(found, notes=(*notes, *more, *unsure, *spelling_notes(rows), *rows.notes(), *slow))


def _notes_on_guessing(found: Ranking) -> tuple[str, ...]:
    """Return a sentence where many workers may guess and ranges are of the normal approximation, which is too sure."""
    rows, scored = found.comparisons, found.scored
    enough = scored.by_draws or scored.few or len(rows) >= ENOUGH * len(rows.workers)
    if enough or scored.fitted is None or scored.fitted.problem.pooled:
        return ()
    unsure = found.workers_who_may_guess
    if unsure < MANY * len(rows.workers):
        return ()
    return (
        f"{unsure:,} of {number_of(len(rows.workers), 'worker')} may guess. Ranges and intervals take their "
        "reliability as known, and can be too short.",
    )


def spelling_notes(rows: Comparisons) -> tuple[str, ...]:
    """Return a sentence on items of a list, and one on workers, whose names differ in spaces, case or form alone."""
    of_list = [f"{rows.list_of_item[code]} {name}" for code, name in enumerate(rows.items)]
    found = []
    for kind, names, shown in (("items", of_list, rows.items), ("workers", list(map(str, rows.workers)), rows.workers)):
        groups = spelling_groups(names)
        if groups:
            texts = "; ".join(_shown_apart([str(shown[code]) for code in group]) for group in groups[:SHOWN_SPELLINGS])
            more = "; and more" if len(groups) > SHOWN_SPELLINGS else ""
            found.append(f"These are read as different {kind}: {texts}{more}. If they are one, spell them alike.")
    return tuple(found)


def _shown_apart(names: Sequence[str]) -> str:
    """Return names in quotes; those that a reader could not tell apart with escaped letters."""
    same = len({normalize("NFC", name) for name in names}) < len(names)
    return ", ".join(map(ascii if same else repr, names))


def _refuse_unknown_cells(rows: Comparisons, sent: ReportTable) -> None:
    """Refuse reports with no NULL, or with far fewer than the noise alone gives: some must be absent.

    Raises:
        ReportsError: as `Asked.require_cells`.
    """
    if NULL not in sent.outputs:
        return
    null = sent.outputs.index(NULL)
    found, least = int((rows.answer == null).sum()), sent.least_null * len(rows)
    none = not found and sent.table[:, null].min() * len(rows) > MOST_WITHOUT_NULL
    if none or (least >= ENOUGH_NULL and found < least / 2):
        UNKNOWN.require_cells()


def method_of(method: MethodChoice) -> RankingMethod:
    """Return the method of a name.

    Raises:
        SettingsError: no such method.
    """
    if isinstance(method, RankingMethod):
        return method
    name = next(iter(RANKING_METHODS)) if method is None else method
    if name not in RANKING_METHODS:
        hint = did_you_mean(name, RANKING_METHODS) or f"Such as {next(iter(RANKING_METHODS))!r}."
        raise SettingsError(f"method must be one of {', '.join(RANKING_METHODS)}", value=method, hint=hint)
    return RANKING_METHODS[name]()


def gold_roles(found: Sequence[str], source: str) -> dict[str, str]:
    """Return the column of each role of known orders, which need no worker; errors as `ComparisonNames.roles`."""
    return ComparisonNames().roles(found, source, optional=("worker", "list"))


def known_orders(gold: Any, rows: Comparisons) -> tuple[Known, tuple[str, ...]]:
    """Return the known orders of a frame in the codes of the comparisons, and notes; a known tie orders nothing.

    Raises:
        ReportsError: as `comparisons_of_table`, or an item that was not compared.
    """
    table = as_table(gold, source=GOLD)
    roles = {role: name for role, name in gold_roles(table.column_names, GOLD).items() if role != "worker"}
    table = table.select(list(roles.values())).rename_columns(list(roles))
    read, _ = comparisons_of_table(table.append_column("worker", pa.array([GOLD] * len(table))), roles, GOLD)
    code = _codes_by_name(rows)
    ordered = np.flatnonzero(read.answer != 1)
    first = np.where(read.answer == 0, read.left, read.right)[ordered]
    second = np.where(read.answer == 0, read.right, read.left)[ordered]
    places = np.array([code.get(name, -1) for name in _names(read)], dtype=np.int32)
    absent = np.flatnonzero(places < 0)
    if len(absent):
        raise ReportsError(
            "known orders must be of items that were compared",
            source=GOLD,
            examples=", ".join(repr(str(read.items[item])) for item in absent[:3]),
            hint="Leave these rows out.",
        )
    ties = len(read) - len(ordered)
    notes: tuple[str, ...] = (
        (f"{number_of(ties, 'known tie')} of gold not used: a tie says nothing of the order.",) if ties else ()
    )
    orders = {*zip(places[first].tolist(), places[second].tolist(), strict=True)}
    both = sum((worse, better) in orders for better, worse in orders) // 2
    if both:
        notes += (f"{number_of(both, 'pair')} of gold known in both orders: correct the wrong rows.",)
    return Known(better=places[first], worse=places[second]), notes


def _codes_by_name(rows: Comparisons) -> Mapping[tuple[str, str], int]:
    return {name: code for code, name in enumerate(_names(rows))}


def _names(rows: Comparisons) -> list[tuple[str, str]]:
    """Return list and name of each item, as text."""
    return [(rows.lists[of], str(item)) for of, item in zip(rows.list_of_item, rows.items, strict=True)]
