"""Shares of labels with their intervals, by task and group: the result of `share`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.answers.facts.asked import join_words
from crowdveil.answers.frames import ArrowRows
from crowdveil.answers.identifiers import Identifiers, identifiers_as_arrow
from crowdveil.arguments import require_number
from crowdveil.channels.alphabet import NULL
from crowdveil.display.counts import number_of
from crowdveil.display.html import Html, notebook_card, table
from crowdveil.errors import SettingsError

IntervalMethod = Literal["score", "sums"]
"""Clipped score intervals of counts, or Fieller's intervals of weighted sums."""
SHOWN_ROWS = 20
"""Rows in a text or notebook."""
Totals = Literal["", "answers", "everyone"]
"""Of whom shares weighted to known totals are: nobody, without totals; those who would answer; or all people."""
POOLED = "all tasks"
"""Name of the task of pooled shares."""


class Share(NamedTuple):
    """One row: a share with its interval; numbers are nan where unknown.

    Attributes:
        task: name of the task.
        by, group: public column and its value; both empty for everyone.
        label: label; empty for no answer.
        of: "answers" for labels, "asked" for no answer; "everyone" for labels with known totals where participation is
            public: of all people, if in each group those without an answer would answer like the others.
        share: estimate held in [0, 1].
        unclipped: estimate that may lie outside [0, 1]. Right on average with public participation; with protected
            participation nearly so where the number of answers is well known: pool small groups, average none.
        low, high: ends of the interval.
        standard_error: of the unclipped share.
        lowest, highest: the least and the largest share if all who were asked had answered, for the same reports.
        asked: number of cells asked.
        reports: number of reports other than "no answer".
    """

    task: Any
    by: str
    group: str
    label: str
    of: str
    share: float
    unclipped: float
    low: float
    high: float
    standard_error: float
    lowest: float
    highest: float
    asked: int
    reports: int

    def with_response_ratio(self, ratio: float) -> float:
        """Return the share among all who were asked, if people of this label answered `ratio` times as often as others.

        logit of it = logit of the unclipped share, held in [0, 1], minus ln ratio; no report can tell the ratio.

        Raises:
            SettingsError: a ratio that is not above 0 and finite.
        """
        require_number("ratio", ratio)
        if not 0 < ratio < np.inf:
            hint = "Such as 0.5, if people of this label answered half as often as others."
            raise SettingsError("ratio must be above 0 and finite", value=ratio, hint=hint)
        held = min(max(self.unclipped, 0.0), 1.0)
        return held / (held + ratio * (1 - held))


class Group(NamedTuple):
    """Group of workers: public column and its value; both empty for everyone."""

    by: str
    name: str


VALUES = ("share", "unclipped", "low", "high", "standard_error", "lowest", "highest")
"""Numbers of a row."""


class Difference(NamedTuple):
    """Difference of the shares of two groups, the first minus the second.

    Attributes:
        task, by, label: as in `Share`.
        first, second: the groups.
        difference, low, high: estimate held in [-1, 1], and its interval.
        unclipped: difference of the unclipped shares.
    """

    task: Any
    by: str
    first: str
    second: str
    label: str
    difference: float
    unclipped: float
    low: float
    high: float


class GroupTest(NamedTuple):
    """Test of no difference: all groups of a column have one share of a label.

    Attributes:
        task, by, label: as in `Share`.
        statistic: chi-squared, with `degrees` of freedom under no difference.
        p_value: probability of a statistic as large under no difference.
        adjusted: p value adjusted for all tests of the result (Holm).
    """

    task: Any
    by: str
    label: str
    statistic: float
    degrees: int
    p_value: float
    adjusted: float = float("nan")


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares(ArrowRows):
    """Shares of labels with intervals; arrays of shares are indexed [task, group, symbol].

    Attributes:
        tasks: task names; one name if tasks were pooled.
        groups: everyone, then the groups of each column.
        symbols: labels; then NULL if participation is protected.
        share, unclipped, low, high, standard_error, lowest, highest: as in `Share`.
        asked, reports: as in `Share`, indexed [task, group].
        level: level of the intervals.
        simultaneous: whether the intervals of all labels of a row of `asked` hold together with this level, and those
            of all differences of a task and column.
        channel_used: whether reports were corrected for the noise of a channel.
        method: "score" for counts through one channel, else "sums".
        pooled: whether all tasks were read as one; `asked` then counts the answers of all of them.
        weighted: whether people have survey weights, or known totals.
        totals: of whom shares weighted to known totals are, "answers" or "everyone"; empty without totals.
        public_inputs: what was given of people beside the reports: groups, weights, totals, clusters.
        differences: of each two groups of a column; of two labels for the last, since the other's are opposite.
        tests: of no difference between the groups of a column; likewise.
        notes: what the reader must know.

    >>> import crowdveil as cv
    >>> answers = {"task": ["q"] * 100, "worker": [*range(100)], "label": ["yes"] * 30 + ["no"] * 70}
    >>> yes = cv.share(answers)["q", "yes"]
    >>> yes.share, round(yes.low, 3), round(yes.high, 3)
    (0.3, 0.219, 0.396)
    """

    tasks: Identifiers
    groups: tuple[Group, ...]
    symbols: tuple[str, ...]
    share: NDArray[np.float64]
    unclipped: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]
    asked: NDArray[np.int64]
    reports: NDArray[np.int64]
    level: float
    simultaneous: bool = False
    channel_used: bool = False
    method: IntervalMethod = "score"
    pooled: bool = False
    weighted: bool = False
    totals: Totals = ""
    public_inputs: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    tests: tuple[GroupTest, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.share.size)

    def __iter__(self) -> Iterator[Share]:
        """Yield the rows: by task, then group, then label."""
        return self.rows()

    def __getitem__(self, place: tuple[Any, ...]) -> Share:
        """Return the row of (task, label) of everyone, or (task, label, column, group); label "" is no answer.

        Raises:
            KeyError: there is no such row.
        """
        task, label, by, group = (*place, "", "")[:4]
        tasks = list(map(str, np.asarray(self.tasks)))
        symbol = NULL if label == "" else label
        if str(task) not in tasks or Group(by, group) not in self.groups or symbol not in self.symbols:
            raise KeyError(place)
        return self._row(tasks.index(str(task)), self.groups.index(Group(by, group)), self.symbols.index(symbol))

    def rows(self, tasks: int | None = None) -> Iterator[Share]:
        """Yield the rows of the first (or all) tasks."""
        for task in range(len(self.tasks[:tasks])):
            yield from self.rows_of_task(task)

    def rows_of_task(self, task: int) -> Iterator[Share]:
        """Yield the rows of a task, by its place in `tasks`."""
        for group in range(len(self.groups)):
            for symbol in range(len(self.symbols)):
                yield self._row(task, group, symbol)

    def _of(self, group: int, symbol: int) -> str:
        """Return of whom a share is: "answers", "asked" or "everyone"."""
        if self.symbols[symbol] == NULL:
            return "asked"
        return "everyone" if self.totals == "everyone" and not self.groups[group].by else "answers"

    def _row(self, task: int, group: int, symbol: int) -> Share:
        name, name_of_task = self.symbols[symbol], self.tasks[task]
        numbers: dict[str, Any] = {value: float(getattr(self, value)[task, group, symbol]) for value in VALUES}
        return Share(
            task=name_of_task.item() if hasattr(name_of_task, "item") else name_of_task,
            by=self.groups[group].by,
            group=self.groups[group].name,
            label="" if name == NULL else name,
            of=self._of(group, symbol),
            asked=int(self.asked[task, group]),
            reports=int(self.reports[task, group]),
            **numbers,
        )

    def columns(self, tasks: int | None = None) -> dict[str, NDArray[Any]]:
        """Return the columns of a table with the rows of the first (or all) tasks; by and group only if there are any.

        `of` is as in `Share`; the label of no answer is empty.
        """
        names, groups, width = np.asarray(self.tasks[:tasks]), len(self.groups), len(self.symbols)
        labels = ["" if symbol == NULL else symbol for symbol in self.symbols]
        of = [self._of(group, symbol) for group in range(groups) for symbol in range(width)]
        found: dict[str, NDArray[Any]] = {"task": np.repeat(names, groups * width)}
        if groups > 1:
            for place, name in enumerate(Group._fields):
                each = np.repeat([group[place] for group in self.groups], width)
                found["group" if name == "name" else name] = np.tile(each, len(names))
        found |= {"label": np.tile(labels, len(names) * groups), "of": np.tile(of, len(names))}
        found |= {name: getattr(self, name)[:tasks].ravel() for name in VALUES}
        return found | {name: np.repeat(getattr(self, name)[:tasks].ravel(), width) for name in ("asked", "reports")}

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table, with the columns of `columns`."""
        return pa.table({name: identifiers_as_arrow(column) for name, column in self.columns().items()})

    def to_json(self, tasks: int | None = None) -> list[dict[str, Any]]:
        """Return the shares of each task and group as JSON values; nan is None."""
        return [
            {
                "task": str(name),
                "by": self.groups[group].by,
                "group": self.groups[group].name,
                "asked": int(self.asked[task, group]),
                "reports": int(self.reports[task, group]),
                "symbols": [
                    {key: _json_number(value) for key, value in self._row(task, group, symbol)._asdict().items()
                     if key in ("label", "of", *VALUES)}
                    for symbol in range(len(self.symbols))
                ],
            }
            for task, name in enumerate(np.asarray(self.tasks[:tasks]))
            for group in range(len(self.groups))
        ]  # fmt: skip

    def __repr__(self) -> str:
        """Return the numbers of tasks, groups and labels, and the level."""
        groups = "" if len(self.groups) == 1 else f", {number_of(len(self.groups) - 1, 'group')}"
        size = f"{number_of(len(self.tasks), 'task')}{groups}, {number_of(len(self.symbols), 'symbol')}"
        return f"<Shares: {size}; {self._level_text()}>"

    def __str__(self) -> str:
        """Return the first rows as lines of text."""
        shown = [share_text(row) for row in self.rows(SHOWN_ROWS)][:SHOWN_ROWS]
        more = [] if len(self) <= SHOWN_ROWS else [f"... {number_of(len(self) - SHOWN_ROWS, 'more row')}"]
        return "\n".join([f"Shares, with {self._level_text()}", *shown, *more])

    def _repr_html_(self) -> str:
        """Return the first rows for a notebook."""
        names = [name for name in Share._fields if len(self.groups) > 1 or name not in ("by", "group")]
        rows = [
            [_cell_text(value) for name, value in row._asdict().items() if name in names]
            for row in self.rows(SHOWN_ROWS)
        ][:SHOWN_ROWS]
        shown: Html = table(tuple(names), rows, total=len(self))
        return notebook_card("Shares", [self._level_text(), *self.notes, *public_note(self.public_inputs)], shown)

    def _level_text(self) -> str:
        return f"{'simultaneous ' if self.simultaneous else ''}{100 * self.level:g} % intervals"


def public_note(inputs: Sequence[str]) -> tuple[str, ...]:
    """Return the note that inputs of these names are taken to be public; none without inputs."""
    if not inputs:
        return ()
    named = join_words(inputs).capitalize()
    return (f"{named} of people are taken to be public: the statement of privacy does not cover them.",)


def share_text(row: Share) -> str:
    """Return a share with its interval as a sentence: "q1, sex f: yes 30.0 % (21.9 to 39.6)"."""
    where = f"{row.task}, {row.by} {row.group}" if row.by else str(row.task)
    value = "not determined" if np.isnan(row.share) else f"{100 * row.share:.1f} %"
    name = row.label or "no answer, of those asked,"
    name += ", of all people," if row.of == "everyone" else ""
    return f"{where}: {name} {value} ({100 * row.low:.1f} to {100 * row.high:.1f})"


def _cell_text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _json_number(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value


def first_rows(rows: Sequence[Any], most: int) -> list[dict[str, Any]]:
    """Return the first of several named tuples as JSON values; nan is None."""
    return [
        {name: str(value) if name == "task" else _json_number(value) for name, value in row._asdict().items()}
        for row in rows[:most]
    ]
