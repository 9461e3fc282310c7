"""Plan of a ranking: the expected share of wrongly ordered pairs, by comparisons of each item and epsilon.

Expectation propagation over random pairs: before the last of m comparisons a score has the variance u = 1 / (1 / s^2 +
(m - 1) p(u)), where a comparison of two such scores adds the precision p(u) = I(u) / (1 - u I(u)), and I(u) is the
information of the best linear estimate of their difference. Scores with variance v, of items whose scores have the
variance s^2, order a pair wrongly with probability arccos(sqrt(1 - v / s^2)) / pi.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from crowdveil.answers.comparisons.values import ANSWERS
from crowdveil.answers.frames import ArrowRows
from crowdveil.arguments import require_list, require_number, require_whole_number
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Participation, require_participation
from crowdveil.channels.rounding import format_bound, sum_rounded_up
from crowdveil.design.comparison_channel import ANSWERED, SPREAD, TIES, ExpectedComparisons, best_comparison_channel
from crowdveil.display.html import Html, notebook_card
from crowdveil.display.html import table as html_table
from crowdveil.display.svg_pictures import line_chart
from crowdveil.errors import SettingsError
from crowdveil.hints import advising_own_arguments
from crowdveil.planning.share_plan import epsilon_text

COMPARISONS, EPSILONS = (5, 10, 20, 50, 100, 200), (0.5, 1.0, 2.0, 3.0, 4.0)
"""Comparisons of each item, and epsilons, that are compared by default."""
GUESSING = 0.2
"""Share of workers who guess, by default."""
CONSTANT = 0.5
"""Share of wrongly ordered pairs of an order that is drawn."""
MAX_COMPARISONS = 1_000_000
LEAST = 1e-9
"""Smallest share of the variance of the scores that is left."""
MAX_LINES = 4
"""Largest number of lines in the picture."""


class ExpectedRanking(NamedTuple):
    """Expected share of wrongly ordered pairs.

    Attributes:
        epsilon: of one comparison, in nats; infinite for unprotected answers.
        comparisons: in which each item is asked about.
        low, high: share of wrongly ordered pairs if workers who guess are found out, and if none is.
    """

    epsilon: float
    comparisons: int
    low: float
    high: float


class RankingReport(NamedTuple):
    """Reports of an epsilon, and what a wanted share of wrongly ordered pairs needs.

    Attributes:
        epsilon: of one comparison, in nats; infinite for unprotected answers.
        symbols: possible reports.
        information: of one comparison asked, relative to unprotected answers.
        comparisons: of each item for the wanted share, if no guessing worker is found out; None if none was wanted, or
            more than `MAX_COMPARISONS`.
        worker_epsilon: of all comparisons of one worker at that number; None without numbers of items and workers.
    """

    epsilon: float
    symbols: tuple[str, ...]
    information: float
    comparisons: int | None
    worker_epsilon: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class RankingPlan(ArrowRows):
    """Expected shares of wrongly ordered pairs, by comparisons of each item and epsilon.

    Attributes:
        expected: ties, spread and participation rate that were stated.
        guessing: share of workers who guess.
        participation: whether epsilon also hides who answered.
        wrong_pairs: wanted share of wrongly ordered pairs; None if none is.
        items, workers: their numbers; None if they were not given.
        rows: expected shares, by comparisons, then epsilon; unprotected answers last.
        reports: reports of each epsilon; unprotected answers last.
    """

    expected: ExpectedComparisons
    guessing: float
    participation: Participation
    wrong_pairs: float | None
    items: int | None
    workers: int | None
    rows: tuple[ExpectedRanking, ...]
    reports: tuple[RankingReport, ...]

    def __iter__(self) -> Iterator[ExpectedRanking]:
        """Yield the expected shares."""
        return iter(self.rows)

    def to_arrow(self) -> pa.Table:
        """Return the expected shares as an Arrow table."""
        return pa.Table.from_pylist([one._asdict() for one in self.rows])

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values; the epsilon of unprotected answers is None."""
        stated = {name: getattr(self.expected, name) for name in ("ties", "spread", "answered")}
        settings = ("guessing", "participation", "wrong_pairs", "items", "workers")
        return {
            **stated,
            **{name: getattr(self, name) for name in settings},
            "constant": CONSTANT,
            "verdict": self.sentences(),
            "expected": [one._asdict() | {"epsilon": _finite(one.epsilon)} for one in self.rows],
            "reports": [
                one._asdict() | {"epsilon": _finite(one.epsilon), "symbols": list(one.symbols)} for one in self.reports
            ],
        }

    def sentences(self) -> list[str]:
        """Return what to expect: comparisons for the wanted share, what they cost a worker, and the reports."""
        *protected, plain = self.reports
        found = []
        if self.wrong_pairs is not None:
            texts = [f"{_number_text(one)} at epsilon {format_bound(one.epsilon)}" for one in protected]
            asked = ", ".join([*texts, f"{_number_text(plain)} without protection"])
            found.append(f"For {100 * self.wrong_pairs:g} % wrongly ordered pairs compare each item {asked}.")
            spent = [
                f"{format_bound(one.worker_epsilon)} at epsilon {format_bound(one.epsilon)}"
                for one in protected
                if one.worker_epsilon is not None
            ]
            found += [f"All comparisons of one worker then spend {', '.join(spent)}."] if spent else []
        two = [format_bound(one.epsilon) for one in protected if len(one.symbols) == 2]
        if two:
            found.append(f"Two symbols, ties tossed, tell more than three at epsilon {', '.join(two)}.")
        told = [f"{100 * one.information:.0f} % at epsilon {format_bound(one.epsilon)}" for one in protected]
        return [*found, f"A report has this share of the information of an answer: {', '.join(told)}."]

    def picture(self) -> Html:
        """Return the larger share of wrong pairs by epsilon, a line for each of at most `MAX_LINES` numbers."""
        sizes = sorted({one.comparisons for one in self.rows})
        sizes = sizes[:: math.ceil(len(sizes) / MAX_LINES) or 1]
        lines = [
            (
                f"{size:,} an item",
                [(one.epsilon, one.high) for one in self.rows if one.comparisons == size and one.epsilon < math.inf],
            )
            for size in sizes
        ]
        limits = [("drawn order", CONSTANT)]
        limits += [] if self.wrong_pairs is None else [("wanted", self.wrong_pairs)]
        return line_chart("Share of wrongly ordered pairs by epsilon", "epsilon", lines, limits)

    def __str__(self) -> str:
        """Return the sentences, and the expected shares."""
        rows = [f"{one.comparisons:,} an item, {epsilon_text(one.epsilon)}: {wrong_text(one)}" for one in self.rows]
        return "\n".join([*self.sentences(), *rows])

    def _repr_html_(self) -> str:
        """Return the plan for a notebook."""
        rows = [(f"{one.comparisons:,}", epsilon_text(one.epsilon), wrong_text(one)) for one in self.rows]
        shown = html_table(("comparisons of an item", "asked", "wrongly ordered pairs"), rows, total=len(rows))
        return notebook_card("Plan of a ranking", self.sentences(), shown)


def wrong_text(one: ExpectedRanking) -> str:
    """Return an expected share of wrong pairs as text, in per cent."""
    low, high = f"{100 * one.low:.0f}", f"{100 * one.high:.0f}"
    return f"{high} %" if low == high else f"{low} to {high} %"


def _finite(epsilon: float) -> float | None:
    return None if math.isinf(epsilon) else epsilon


def _number_text(one: RankingReport) -> str:
    return (
        f"more than {MAX_COMPARISONS:,} times"
        if one.comparisons is None
        else f"{one.comparisons:,} {'time' if one.comparisons == 1 else 'times'}"
    )


@advising_own_arguments
def plan_ranking(
    comparisons: Sequence[int] = COMPARISONS,
    *,
    epsilons: Sequence[float] = EPSILONS,
    ties: float = TIES,
    spread: float = SPREAD,
    answered: float = ANSWERED,
    guessing: float = GUESSING,
    participation: Participation = "protected",
    wrong_pairs: float | None = None,
    items: int | None = None,
    workers: int | None = None,
    null_apart: bool = False,
) -> RankingPlan:
    """Return the expected share of wrongly ordered pairs of a ranking from comparisons of random pairs.

    Each epsilon has the reports of larger information: left and right with ties tossed, or also tie. Nothing is read
    from answers: what is expected of them is stated here, and is public.

    Args:
        comparisons: numbers of comparisons asked in which each item is; each is of two items.
        epsilons: in nats, of one comparison.
        ties: expected share of ties among the answers.
        spread: expected standard deviation of the scores, in units of the logit of the answers.
        answered: expected share of the comparisons asked that are answered.
        guessing: expected share of workers who guess.
        participation: "protected" or "public".
        wrong_pairs: wanted share of wrongly ordered pairs, such as .2.
        items, workers: their numbers, for the epsilon of all comparisons of one worker.
        null_apart: whether reports must show how many comparisons are answered, as those of a campaign do.

    Raises:
        SettingsError: a number out of range.

    >>> import crowdveil as cv
    >>> [round(one.high, 2) for one in cv.plan_ranking([20, 100], epsilons=[1], guessing=0)]
    [0.28, 0.13, 0.15, 0.06]
    """
    require_participation(participation)
    _require_numbers(comparisons, epsilons, guessing, wrong_pairs)
    _require_sizes(items, workers)
    expected = ExpectedComparisons(ties=ties, spread=spread, answered=answered)
    best = partial(best_comparison_channel, expected, participation=participation, null_apart=null_apart)
    channels = [*map(best, epsilons), None]
    rows, reports = list[ExpectedRanking](), list[RankingReport]()
    plain = expected.information(None)
    for epsilon, channel in zip([*map(float, epsilons), math.inf], channels, strict=True):
        ends = [_Reported(expected, channel, guessing, found_out) for found_out in (True, False)]
        rows += [ExpectedRanking(epsilon, number, *(end.wrong_pairs(number) for end in ends)) for number in comparisons]
        needed = ends[1].needed(wrong_pairs)
        spent = None if None in (items, workers) else _spent(channel, needed, items, workers)
        symbols, share = ANSWERS if channel is None else channel.outputs, expected.information(channel) / plain
        reports.append(RankingReport(epsilon, symbols, share, needed, spent))
    return RankingPlan(
        expected=expected, guessing=guessing, participation=participation, wrong_pairs=wrong_pairs, items=items,
        workers=workers, rows=tuple(sorted(rows, key=lambda one: one.comparisons)), reports=tuple(reports),
    )  # fmt: skip


class _Reported(NamedTuple):
    """Comparisons through a channel (None for answers), and whether workers who guess are found out."""

    expected: ExpectedComparisons
    channel: Channel | None
    guessing: float
    found_out: bool

    def precision(self, unknown: float) -> float:
        """Return the precision that one comparison adds to a score, if both scores have the variance `unknown`."""
        if self.found_out:
            information = (1 - self.guessing) * self.expected.information(self.channel, unknown=unknown)
        else:
            information = self.expected.information(self.channel, self.guessing, unknown)
        return information / (1 - unknown * information)

    def wrong_pairs(self, comparisons: int) -> float:
        """Return the expected share of wrongly ordered pairs."""
        from scipy.optimize import brentq

        variance = self.expected.spread**2

        def excess(unknown: float) -> float:
            return (1 / unknown - 1 / variance) / self.precision(unknown) - (comparisons - 1)

        before = float(variance if comparisons == 1 else brentq(excess, LEAST * variance, variance))
        return self._wrong_after(before)

    def _wrong_after(self, before: float) -> float:
        """Return the share of wrong pairs after the last comparison, before which the variance was `before`."""
        left = 1 / (1 / before + self.precision(before))
        return math.acos(math.sqrt(1 - left / self.expected.spread**2)) / math.pi

    def needed(self, wrong_pairs: float | None) -> int | None:
        """Return the comparisons of each item for a share of wrong pairs; None without one, or for too many."""
        if wrong_pairs is None:
            return None
        low, high = 0, 1
        while self.wrong_pairs(high) > wrong_pairs:
            low, high = high, 2 * high
            if low > MAX_COMPARISONS:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.wrong_pairs(middle) > wrong_pairs else (low, middle)
        return high if high <= MAX_COMPARISONS else None


def expected_wrong_pairs(
    expected: ExpectedComparisons, channel: Channel | None, comparisons: int, guessing: float = GUESSING
) -> tuple[float, float]:
    """Return the expected share of wrongly ordered pairs if workers who guess are found out, and if none is.

    Args:
        expected: ties, spread and participation.
        channel: through which comparisons are reported; None for answers.
        comparisons: asked of each item.
        guessing: share of workers who guess.
    """
    low, high = (_Reported(expected, channel, guessing, one).wrong_pairs(comparisons) for one in (True, False))
    return low, high


def _spent(channel: Channel | None, needed: int | None, items: Any, workers: Any) -> float | None:
    """Return the epsilon of all comparisons of one worker, of which each is of two items; None without a channel."""
    if channel is None or needed is None:
        return None
    return sum_rounded_up([(channel.epsilon, math.ceil(items * needed / (2 * workers)))])


def _require_sizes(items: Any, workers: Any) -> None:
    """Refuse numbers of items and workers of other types or out of range; None is not stated."""
    for name, size, least in (("items", items, 2), ("workers", workers, 1)):
        if size is not None:
            require_whole_number(name, size, least=least)


def _require_numbers(comparisons: Any, epsilons: Any, guessing: Any, wrong_pairs: Any) -> None:
    """Refuse lists, numbers of comparisons and shares of other types or out of range."""
    for name, values, example in (("comparisons", comparisons, "[20, 100]"), ("epsilons", epsilons, "[1, 2]")):
        require_list(name, values, example=example)
    for number in comparisons:
        require_whole_number("comparisons", number, least=1, example="[20, 100]")
    _require_share("guessing", guessing, least=True)
    if wrong_pairs is not None:
        _require_share("wrong_pairs", wrong_pairs)


def _require_share(name: str, value: Any, *, least: bool = False) -> None:
    """Refuse what is no number above 0, or at least 0, and below one half, or below 1."""
    require_number(name, value)
    most = 1.0 if least else CONSTANT
    if not 0 <= value < most or (value == 0 and not least):
        start = "at least 0" if least else "above 0"
        raise SettingsError(f"{name} must be {start} and below {most:g}", value=value, hint=f"Such as {name}=0.2.")
