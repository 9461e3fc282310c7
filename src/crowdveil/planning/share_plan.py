"""Plan of a survey: how wide the interval of a share is expected to be, by number of people and epsilon.

A survey is simulated by draws of its counts of reports. The interval of each draw is the clipped score interval of
`quality.shares.score`, with the variance at the response rate that was stated instead of the fitted one: then the
intervals of all draws follow from one table of variances. The number of people for a half-width w is v z^2 / w^2, where
v / n is the variance of the estimate; near 0 and 1, where intervals are cut, it is searched in the same draws.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.answers.frames import ArrowRows
from crowdveil.arguments import require_choice, require_list, require_number, require_whole_number
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.guarantee import Guarantee, Participation, require_participation
from crowdveil.channels.rounding import format_bound, percent_rounded_up
from crowdveil.display.html import Html, notebook_card
from crowdveil.display.html import table as html_table
from crowdveil.display.svg_pictures import line_chart
from crowdveil.errors import SettingsError
from crowdveil.hints import advice, advising_own_arguments
from crowdveil.mechanisms import RandomizedResponse, SubsetSelection
from crowdveil.quality.shares.score import normal_quantile, right_inverse
from crowdveil.quality.shares.share_function import LEVEL, require_level
from crowdveil.quality.shares.variance import unit_variance

SurveyMechanism = Literal["randomized-response", "subset-selection"]
"""Name of a mechanism for shares."""
PEOPLE, EPSILONS = (100, 200, 400, 1_000, 2_000, 5_000), (0.5, 1.0, 2.0, 3.0, 4.0)
"""Numbers of people and epsilons that are compared by default."""
MAX_PEOPLE = 100_000_000
"""Largest number of people."""
LARGEST_FACTOR = 1_000_000
"""Largest number of times as many people that is printed."""
MAX_LINES = 4
"""Largest number of lines in the picture."""
DRAWS, GRID, REACH = 1_000, 1_001, 12.0
"""Simulated surveys, tested shares of each, and their distance from the true share in standard errors at most."""
FORMULA_IS_OFF, STEPS = 0.02, 6
"""Relative error of the half-width from which the formula is replaced by a search, and the steps of the search."""


class ExpectedShare(NamedTuple):
    """Expected interval of a share.

    Attributes:
        epsilon: of one answer, in nats; infinite for unprotected answers.
        people: number of people asked.
        low, high: means of the ends of the interval.
        half_width: half of the mean width.
    """

    epsilon: float
    people: int
    low: float
    high: float
    half_width: float


class NeededPeople(NamedTuple):
    """Cost of privacy, and the number of people for a half-width.

    Attributes:
        epsilon: of one answer, in nats; infinite for unprotected answers.
        mechanism: name of the mechanism; empty for unprotected answers.
        design_effect: how many times as many people as without protection give the same variance.
        people: number of people asked for the wanted half-width; None if none was wanted, or more than `MAX_PEOPLE`.
    """

    epsilon: float
    mechanism: str
    design_effect: float
    people: int | None


@dataclass(frozen=True, kw_only=True, eq=False)
class SharePlan(ArrowRows):
    """Expected intervals of a share, by number of people and epsilon.

    Attributes:
        share, response: guessed share among the answers, and guessed share of those asked who answer.
        labels: number of labels; the others are taken to be equally frequent.
        participation: whether epsilon also hides who answered.
        level: level of the intervals.
        half_width: wanted half-width; None if none is.
        mechanism: name of the planned mechanism; None for the better one at each epsilon.
        rows: expected intervals, by people, then epsilon; unprotected answers last.
        needed: cost of each epsilon; unprotected answers last.
    """

    share: float
    response: float
    labels: int
    participation: Participation
    level: float
    half_width: float | None
    mechanism: SurveyMechanism | None
    rows: tuple[ExpectedShare, ...]
    needed: tuple[NeededPeople, ...]

    def __iter__(self) -> Iterator[ExpectedShare]:
        """Yield the expected intervals."""
        return iter(self.rows)

    def to_arrow(self) -> pa.Table:
        """Return the expected intervals as an Arrow table."""
        return pa.Table.from_pylist([one._asdict() for one in self.rows])

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values; the epsilon of unprotected answers is None."""
        settings = ("share", "response", "labels", "participation", "level", "half_width")
        lists: dict[str, Sequence[ExpectedShare | NeededPeople]] = {"expected": self.rows, "needed": self.needed}
        return {
            **{name: getattr(self, name) for name in settings},
            "verdict": self.sentences(),
            **{
                name: [one._asdict() | {"epsilon": None if math.isinf(one.epsilon) else one.epsilon} for one in rows]
                for name, rows in lists.items()
            },
        }

    def sentences(self) -> list[str]:
        """Return what to expect: the number of people for the wanted half-width, and the cost of privacy."""
        *protected, plain = self.needed
        found = []
        if self.half_width is not None:
            wide = f"± {100 * self.half_width:g} percentage points at level {100 * self.level:g} %"
            texts = [f"{people_text(one.people)} at epsilon {format_bound(one.epsilon)}" for one in protected]
            found.append(f"For {wide} ask {', '.join(texts)}, or {people_text(plain.people)} without protection.")
        costs = [f"{factor_text(one.design_effect)} at epsilon {format_bound(one.epsilon)}" for one in protected]
        sure = [f"{certainty_text(one.epsilon)} at epsilon {format_bound(one.epsilon)}" for one in protected]
        sets = [format_bound(one.epsilon) for one in protected if one.mechanism == SubsetSelection.name]
        if sets:
            found.append(f"At epsilon {', '.join(sets)} a report is a set of labels ({SubsetSelection.name}).")
        return [
            *found,
            f"Protection needs more people by these factors: {', '.join(costs)}.",
            f"Someone who thought two answers equally likely (50 %) becomes sure of one at most: {', '.join(sure)}.",
        ]

    def picture(self) -> Html:
        """Return the half-widths by epsilon, a line for each of at most `MAX_LINES` numbers of people.

        Of a plan of one epsilon the picture has the usual ones too, and a dashed line at the planned half-width.

        Raises:
            SettingsError: a plan without numbers of people.
        """
        sizes = sorted({one.people for one in self.rows})
        if not sizes:
            hint = "Plan it for some, such as people=[100, 400]."
            raise SettingsError("a picture needs numbers of people", value=[], hint=hint)
        sizes = sizes[:: math.ceil(len(sizes) / MAX_LINES) or 1]
        own = sorted({one.epsilon for one in self.rows if one.epsilon < math.inf})
        rows = self.rows if len(own) > 1 else self._rows_of_epsilons(sizes, sorted({*EPSILONS, *own}))
        lines = [
            (
                f"{size:,} people",
                [(one.epsilon, 100 * one.half_width) for one in rows if one.people == size and one.epsilon < math.inf],
            )
            for size in sizes
        ]
        limits = [] if self.half_width is None else [(f"wanted: ± {100 * self.half_width:g}", 100 * self.half_width)]
        if len(own) == len(sizes) == 1:
            limits.append(
                (
                    f"epsilon {format_bound(own[0])}: ± {100 * self.rows[0].half_width:.1f}",
                    100 * self.rows[0].half_width,
                )
            )
        return line_chart(
            "Half-width of the interval of a share in percentage points, by epsilon", "epsilon; ± points", lines, limits
        )

    def _rows_of_epsilons(self, people: Sequence[int], epsilons: Sequence[float]) -> tuple[ExpectedShare, ...]:
        """Return the expected intervals of this survey for other epsilons."""
        names = ("response", "labels", "participation", "level", "mechanism")
        settings: dict[str, Any] = {name: getattr(self, name) for name in names}
        return plan_share(self.share, people=people, epsilons=epsilons, **settings).rows

    def __str__(self) -> str:
        """Return the sentences, and the expected intervals."""
        rows = [f"{one.people:,} people, {epsilon_text(one.epsilon)}: {interval_text(one)}" for one in self.rows]
        return "\n".join([*self.sentences(), *rows])

    def _repr_html_(self) -> str:
        """Return the plan for a notebook."""
        rows = [(f"{one.people:,}", epsilon_text(one.epsilon), interval_text(one)) for one in self.rows]
        shown = html_table(("people", "asked", "interval"), rows, total=len(rows))
        return notebook_card("Plan of a share", self.sentences(), shown)


def factor_text(factor: float) -> str:
    """Return a factor with two digits, or a whole number from 10 on; a very large one has no digits."""
    if factor > LARGEST_FACTOR:
        return f"more than {LARGEST_FACTOR:,}"
    return f"{factor:,.0f}" if factor >= 10 else f"{factor:.2g}"


def certainty_text(epsilon: float) -> str:
    """Return how sure anyone can be of one of two answers, starting from 50 %."""
    return percent_rounded_up(Guarantee(epsilon=epsilon).largest_guess_probability)


def epsilon_text(epsilon: float) -> str:
    """Return an epsilon as text."""
    return "unprotected" if math.isinf(epsilon) else f"epsilon {format_bound(epsilon)}"


def interval_text(one: ExpectedShare) -> str:
    """Return an expected interval as text, in per cent."""
    return f"{100 * one.low:.1f} to {100 * one.high:.1f} % (± {100 * one.half_width:.1f})"


def people_text(people: int | None) -> str:
    """Return a number of people as text."""
    return f"more than {MAX_PEOPLE:,} people" if people is None else f"{people:,} people"


@advising_own_arguments
def plan_share(
    share: float,
    *,
    people: Sequence[int] = PEOPLE,
    epsilons: Sequence[float] = EPSILONS,
    response: float = 1.0,
    labels: int = 2,
    participation: Participation = "protected",
    level: float = LEVEL,
    half_width: float | None = None,
    mechanism: SurveyMechanism | None = None,
) -> SharePlan:
    """Return how wide the interval of a share is expected to be behind randomized response, or sets of labels.

    With many labels and a small epsilon a report is a set of labels (`subset-selection`): this needs fewer people.
    Nothing is read from answers: share and response rate are guesses, and public.

    Args:
        share: guessed share of a label among the answers; for a share that nobody knows, .5 is the widest.
        people: numbers of people asked, one answer each; may be empty if only `needed` is wanted.
        epsilons: in nats, of one answer.
        response: guessed share of those asked who answer.
        labels: number of labels; those beside the planned one are taken to be equally frequent.
        participation: "protected" or "public".
        level: level of the intervals.
        half_width: wanted; half of the width of the interval, such as .05 for ± 5 percentage points.
        mechanism: "randomized-response" (single labels) or "subset-selection" (sets); by default at each epsilon
            the one that needs fewer people.

    Raises:
        SettingsError: a number out of range.

    >>> import crowdveil as cv
    >>> planned = cv.plan_share(0.1, response=0.8, epsilons=[1, 2], half_width=0.05)
    >>> [one.people for one in planned.needed]
    [3101, 670, 173]
    """
    _require_open_unit("the guessed share", share, advice("Such as {share}.", share=0.3))
    _require_open_unit("the response rate", response, advice("Such as {response}.", response=0.8), closed=True)
    require_level(level)
    require_participation(participation)
    require_choice("mechanism", mechanism, (RandomizedResponse.name, SubsetSelection.name, None))
    require_whole_number("labels", labels, least=2)
    if half_width is not None:
        _require_open_unit("the half-width", half_width, advice("Such as {half_width}.", half_width=0.05))
    _require_compared_values(people, epsilons)
    alphabet = Categories(tuple(f"label {place}" for place in range(labels)))
    single = [RandomizedResponse(alphabet=alphabet, epsilon=one, participation=participation) for one in epsilons]
    mechanisms = [_survey_mechanism(one, response, mechanism) for one in single]
    surveys = _surveys(share, response, mechanisms, normal_quantile(level))
    unprotected = share * (1 - share) / response
    return SharePlan(
        share=share, response=response, labels=labels, participation=participation, level=level, half_width=half_width,
        mechanism=mechanism,
        rows=tuple(one.expected(number) for number in people for one in surveys),
        needed=tuple(
            NeededPeople(one.epsilon, one.mechanism, one.variance / unprotected, one.needed(half_width))
            for one in surveys
        ),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Survey:
    """Survey behind a table of reports; the share is that of input 0.

    Attributes:
        epsilon: of one answer.
        mechanism: its name.
        table: P(report | input), indexed [input, report].
        cells: shares of the inputs among the reports.
        labels: number of labels, the first inputs.
        sent: reports of one person asked.
        quantile: half-width of an interval in standard errors.
    """

    epsilon: float
    mechanism: str
    table: NDArray[np.float64]
    cells: NDArray[np.float64]
    labels: int
    sent: float
    quantile: float

    @property
    def variance(self) -> float:
        """Variance of the estimated share times the number of people asked."""
        return unit_variance(self.table, self.cells, self.labels, 0) / self.sent

    def expected(self, people: int) -> ExpectedShare:
        """Return the means of the ends of the interval."""
        reports = max(round(people * self.sent), 1)
        inverse, tested = right_inverse(self.table, (self.cells @ self.table)[None])[0], self._tested(people)
        variance = np.sqrt(self._variances(tested, inverse) / reports)
        draws = np.random.default_rng(0).multinomial(reports, self.cells @ self.table, size=DRAWS) @ inverse / reports
        answered = draws[:, : self.labels].sum(axis=1)
        number = np.clip(draws[:, 0], 0, np.maximum(answered, 0))
        held = np.abs(number[:, None] - answered[:, None] * tested) <= self.quantile * variance
        low = np.where(answered > 0, tested[held.argmax(axis=1)], 0.0)
        high = np.where(answered > 0, tested[len(tested) - 1 - held[:, ::-1].argmax(axis=1)], 1.0)
        ends = float(low.mean()), float(high.mean())
        return ExpectedShare(self.epsilon, people, *ends, (ends[1] - ends[0]) / 2)

    def needed(self, half_width: float | None) -> int | None:
        """Return the number of people asked for a half-width; None without one, or for more than `MAX_PEOPLE`."""
        if half_width is None:
            return None
        people = max(math.ceil(self.variance * (self.quantile / half_width) ** 2), 2)
        for _ in range(STEPS):
            if people > MAX_PEOPLE:
                return None
            ratio = self.expected(people).half_width / half_width
            if abs(ratio - 1) <= FORMULA_IS_OFF:
                break
            people = max(math.ceil(people * ratio**2), 2)
        return people

    def _tested(self, people: int) -> NDArray[np.float64]:
        """Return the shares that are tested, around the true one."""
        share = self.cells[0] / self.cells[: self.labels].sum()
        reach = REACH * math.sqrt(self.variance / people)
        return np.linspace(max(float(share) - reach, 0.0), min(float(share) + reach, 1.0), GRID)

    def _variances(self, tested: NDArray[np.float64], inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variance of the test of each share from one report, at the true response rate."""
        answered = self.cells[: self.labels].sum()
        among = np.arange(len(self.cells)) < self.labels
        target = np.arange(len(self.cells)) == 0
        scores = (target - tested[:, None] * among) @ inverse.T
        cells = np.where(among, answered * (1 - tested[:, None]) / (self.labels - 1), 1 - answered)
        cells[:, 0] = answered * tested
        return np.asarray(((cells @ self.table) * scores**2).sum(axis=1))


def expected_share(
    mechanism: RandomizedResponse | SubsetSelection, *, share: float, response: float, people: int
) -> tuple[ExpectedShare, ExpectedShare]:
    """Return the expected interval of the usual level behind a mechanism, and without protection."""
    protected, plain = _surveys(share, response, [mechanism], normal_quantile(LEVEL))
    return protected.expected(people), plain.expected(people)


def _survey_mechanism(
    single: RandomizedResponse, response: float, name: SurveyMechanism | None
) -> RandomizedResponse | SubsetSelection:
    """Return the mechanism of this name, or the better one for shares; `single` is randomized response."""
    if name is None:
        return mechanism_for_shares(single, response)
    return single if name == RandomizedResponse.name else _sets_of_labels(single)


def _sets_of_labels(single: RandomizedResponse) -> SubsetSelection:
    """Return subset selection with alphabet, epsilon and participation of randomized response."""
    return SubsetSelection(alphabet=single.alphabet, epsilon=single.epsilon, participation=single.participation)


def mechanism_for_shares(single: RandomizedResponse, response: float) -> RandomizedResponse | SubsetSelection:
    """Return subset selection where it estimates shares better than randomized response, which is given.

    The size of sets is that of Ye and Barg, and compared are the variances for equally frequent labels.
    """
    labels = single.alphabet.size
    sets = _sets_of_labels(single)
    if sets.labels_per_report == 1:
        return single
    cells = _shares_of_cells(1 / labels, response, single)
    variances = [unit_variance(one.channel().probabilities, cells, labels, 0) for one in (single, sets)]
    return sets if variances[1] < variances[0] else single


def _shares_of_cells(share: float, response: float, mechanism: RandomizedResponse | SubsetSelection) -> NDArray[Any]:
    """Return the shares of the inputs among the reports, if the other labels are equally frequent."""
    others = mechanism.alphabet.size - 1
    answers = np.array([share, *[(1 - share) / others] * others])
    return np.append(response * answers, 1 - response) if mechanism.participation == "protected" else answers


def _surveys(
    share: float, response: float, mechanisms: Sequence[RandomizedResponse | SubsetSelection], quantile: float
) -> list[_Survey]:
    """Return the survey of each mechanism, and at last the unprotected one."""
    labels, hidden = mechanisms[0].alphabet.size, mechanisms[0].participation == "protected"
    cells = _shares_of_cells(share, response, mechanisms[0])
    tables = [(float(one.epsilon), one.name, one.channel().probabilities) for one in mechanisms]
    return [
        _Survey(epsilon, name, table, cells, labels, 1.0 if hidden else response, quantile)
        for epsilon, name, table in [*tables, (math.inf, "", np.eye(len(cells)))]
    ]


def _require_open_unit(what: str, value: Any, hint: str, *, closed: bool = False) -> None:
    """Refuse what is no number between 0 and 1; 1 is allowed if `closed`."""
    require_number(what, value)
    if not (0 < value < 1 or (closed and value == 1)):
        raise SettingsError(f"{what} must be above 0 and {'at most' if closed else 'below'} 1", value=value, hint=hint)


def _require_compared_values(people: Sequence[int], epsilons: Sequence[float]) -> None:
    """Refuse what is no list of numbers of people, or no list of at least one epsilon."""
    for name, values, example in (("people", people, "[100, 400]"), ("epsilons", epsilons, "[1, 2]")):
        require_list(name, values, example=example)
    if not len(epsilons):
        raise SettingsError("epsilons must not be empty", value=epsilons, hint="Such as epsilons=[1, 2].")
    for number in people:
        _require_people(number)


def _require_people(number: Any) -> None:
    """Refuse what is no number of people from 2 to `MAX_PEOPLE`."""
    whole = isinstance(number, Integral) and not isinstance(number, bool)
    if not whole or not 2 <= int(number) <= MAX_PEOPLE:
        rule = f"people must be a whole number from 2 to {MAX_PEOPLE:,}"
        raise SettingsError(rule, value=number, hint=advice("Such as {people}.", people=[400]))
