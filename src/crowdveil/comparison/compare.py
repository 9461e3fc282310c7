"""Comparison of mechanisms on one crowd by simulation: errors beside the best constant and the unprotected answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import pyarrow as pa

from crowdveil.answers.evidence import Evidence
from crowdveil.answers.frame_answers import ColumnKeywords, read_frame_answers
from crowdveil.answers.frames import ArrowRows
from crowdveil.answers.reports import Reports
from crowdveil.arguments import require_instance, require_list, require_whole_number
from crowdveil.channels.alphabet import Scale, abbreviate_names
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Participation
from crowdveil.channels.rounding import format_bound
from crowdveil.comparison.latex import latex_tables
from crowdveil.comparison.pictures import error_cards, error_plot
from crowdveil.comparison.trials import (
    GoldCrowd,
    NotRun,
    Row,
    Trial,
    compare_with_unprotected,
    pairs_not_run,
    run_trial,
    sampling_error_sentence,
    sentences_not_run,
)
from crowdveil.design.mechanism_from_settings import MechanismSettings, build_mechanism
from crowdveil.display.html import notebook_card, paragraph, table
from crowdveil.display.progress import ProgressDisplay
from crowdveil.em.estimator import Estimator
from crowdveil.em.gold import as_gold
from crowdveil.errors import SettingsError
from crowdveil.estimators.weighted_mean import WeightedMean
from crowdveil.hints import advising_own_arguments
from crowdveil.inference.methods import AnyEstimator, Method, choose_estimator
from crowdveil.inference.scores.metrics import ErrorName
from crowdveil.mechanisms import Mechanism

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEAN = WeightedMean(max_steps=100, tolerance=1e-3)
"""Beside the default method for numbers."""
EPSILONS = (1.0, 2.0, 4.0)
"""Default epsilons, in nats per cell."""
MAX_ROWS = 40
"""Rows in a table of a notebook."""
SIMULATION = (
    "Simulation only, no privacy: the reports follow from the seed. Epsilons are per cell: one answer of a worker to "
    "one task."
)
MechanismChoice = Mechanism | str | Callable[[float], Mechanism]


class CrowdWithGold(Protocol):
    """Answers with known truths: a simulated crowd, a data set, or any object with these attributes."""

    @property
    def answers(self) -> Reports:
        """Unprotected answers on labels or a scale."""
        ...

    @property
    def gold(self) -> Mapping[Any, Any]:
        """Known truth by task name."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(ArrowRows):
    """Errors of mechanisms and methods on one crowd.

    Attributes:
        rows: unprotected answers first, then every mechanism in the given order, each with every method.
        not_run: mechanisms and methods without a row, with the reasons.
    """

    rows: tuple[Row, ...]
    not_run: tuple[NotRun, ...] = ()

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table, with the columns of `Row` without the crowd.

        Its last column `not_run` is empty, or the reason why a pair was not run: such a row has no error.
        """
        names = [field.name for field in fields(Row) if field.name != "crowd"]
        rows = [{name: getattr(row, name) for name in names} | {"not_run": ""} for row in self.rows]
        for pair in self.not_run:
            given = {"mechanism": pair.mechanism, "requested": pair.requested, "method": pair.method}
            rows.append(dict.fromkeys(names) | given | {"not_run": pair.reason})
        return pa.Table.from_pylist(rows)

    def to_latex(self) -> str:
        """Return LaTeX tables that fit on a page, with captions; they need the package booktabs.

        Lines are methods, columns requested epsilons, and each mechanism has a part, with its exact epsilons. Further
        epsilons and mechanisms are in further tables.
        """
        return latex_tables(self.rows, self.not_run, _error_axis(self.rows[0]))

    def __repr__(self) -> str:
        """Return the number of rows, and the mechanisms."""
        mechanisms = dict.fromkeys(row.mechanism for row in self.rows)
        return f"<Comparison: {len(self.rows):,} rows; {abbreviate_names(mechanisms)}>"

    def __str__(self) -> str:
        """Return the facts and one line per row."""
        cells = [_HEADER, *map(_row_texts, self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        text = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
        notes = sentences_not_run(self.not_run, self.rows)
        return "\n".join([*self._facts(), "", *text, *(["", *notes] if notes else [])])

    def _repr_html_(self) -> str:
        """Return the rows for a notebook, and errors against epsilon."""
        shown = table(_HEADER, [_row_texts(row) for row in self.rows], most=MAX_ROWS)
        pictures = error_cards(self.rows, _error_axis(self.rows[0]))
        notes = map(paragraph, sentences_not_run(self.not_run, self.rows))
        return notebook_card("Comparison of mechanisms", self._facts(), shown, *notes, *pictures)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw errors with the constant and the unprotected answers, and return the axes.

        With several requested epsilons, the exact one is the horizontal axis; a new figure has a panel for each
        mechanism if several methods are compared, and the axes of the first one are returned. With a single epsilon,
        rows are mechanisms, or the methods of a single mechanism. The legend is below the axes.

        Args:
            ax: matplotlib axes to draw on; None for those of a new figure. A figure without other axes grows by the
                legend.

        Raises:
            SettingsError: matplotlib is not installed.
        """
        return error_plot(ax, self.rows, _error_axis(self.rows[0]))

    def _facts(self) -> list[str]:
        first = self.rows[0]
        constant = f"Best constant {first.constant}: error {first.constant_error:.3g} on {first.scored:,} gold tasks."
        return [SIMULATION, constant + sampling_error_sentence(first)]


@advising_own_arguments
def compare(
    mechanisms: Sequence[MechanismChoice],
    crowd: CrowdWithGold | Any,
    *,
    gold: Any = None,
    epsilons: Sequence[float] = EPSILONS,
    methods: Sequence[str | AnyEstimator] = (),
    participation: Participation = "protected",
    seed: int = 1,
    progress: bool = False,
    **options: Unpack[ColumnKeywords],
) -> Comparison:
    """Return the errors of truths inferred from simulated reports of each mechanism, and of unprotected answers.

    Simulation only: the reports follow from `seed` and carry no privacy. Differences within two standard errors of the
    number of gold tasks mean nothing; other seeds show the spread. A method that cannot read the reports of a mechanism
    is not run with it; the result names both and the reason.

    Args:
        mechanisms: mechanisms as they are; or names or functions of epsilon, which are built at every epsilon.
        crowd: answers and gold, such as a simulated `Crowd` or a data set; or a frame of answers, as in `aggregate`.
        gold: known truth by task, or a frame of them, for a frame of answers.
        epsilons: in nats per cell.
        methods: names or estimators; by default that of `crowdveil infer` for such reports, and for a scale the
            weighted mean.
        participation: of mechanisms that are given by name.
        seed: seed of the simulated devices.
        progress: show the number of finished simulations, in notebooks and on terminals.
        options: for a frame, names of columns and options of reading, as in `aggregate`.

    Raises:
        SettingsError: no mechanism, one that refuses the answers, an unknown name, a repeated method, or a crowd
            without gold.
        ReportsError: answers without labels or scale, or no gold task among the tasks.

    >>> import crowdveil as cv
    >>> votes = {"task": [1, 1, 2, 2], "worker": [*"vwvw"], "label": ["no", "no", "yes", "no"]}
    >>> found = cv.compare(["randomized-response"], votes, gold={1: "no", 2: "yes"}, epsilons=[1.0])
    >>> len(found.rows)
    2
    """
    require_whole_number("seed", seed, least=0)
    answers, known = _answers_and_gold(crowd, gold, options)
    error: ErrorName = "mae" if isinstance(answers.alphabet, Scale) else "error_rate"
    described = GoldCrowd(name="crowd", answers=answers, gold=known, error=error)
    chosen = _mechanisms_at_epsilons(mechanisms, answers, epsilons, participation)
    models = _estimators(methods, answers)
    readers = tuple(one for one in models if one.capabilities.reads_channel)
    plain = tuple(one for one in models if one not in readers)
    trials = [Trial(crowd=described, mechanism=one, seed=seed, plain=plain, models=readers) for one in (None, *chosen)]
    rows: list[Row] = []
    with ProgressDisplay("compare", len(trials)) as display:
        for number, trial in enumerate(trials, start=1):
            rows += run_trial(trial)
            if progress:
                display(number, 0.0)
    not_run = tuple(pair for trial in trials for pair in pairs_not_run(trial))
    return Comparison(rows=compare_with_unprotected(rows), not_run=not_run)


def _answers_and_gold(crowd: Any, gold: Any, options: ColumnKeywords) -> tuple[Reports, Mapping[Any, Any]]:
    """Return the answers, on labels or a scale, and gold of a crowd, or of a frame with its gold."""
    truths = as_gold(gold)
    if hasattr(crowd, "answers") and hasattr(crowd, "gold"):
        answers, known = crowd.answers, crowd.gold if gold is None else truths
    elif gold is not None:
        answers = crowd if isinstance(crowd, Reports) else read_frame_answers(crowd, options)
        known = {str(task): truth for task, truth in truths.items()}
        if len(known) < len(truths):
            raise SettingsError(
                "gold names a task once", value=len(truths) - len(known), hint="1 and '1' are one task."
            )
    else:
        hint = "Give gold= with a frame; or give a simulated Crowd, or a data set (crowdveil.answers.datasets.load)."
        raise SettingsError("a crowd must have answers and gold", value=type(crowd).__name__, hint=hint)
    if answers.alphabet is None:
        hint = "Read them with alphabet=Scale(low, high, step)."
        raise SettingsError("mechanisms need labels or numbers on a scale", value="free numbers", hint=hint)
    return answers, known


def _mechanisms_at_epsilons(
    choices: Sequence[MechanismChoice], answers: Reports, epsilons: Sequence[float], participation: Participation
) -> list[Mechanism]:
    """Return the mechanisms; names and functions at every epsilon."""
    alphabet = answers.alphabet
    assert alphabet is not None
    choices = [choices] if isinstance(choices, str | Mechanism) else choices
    require_list("mechanisms", choices, example="['laplace']")
    require_list("epsilons", epsilons, example="[1.0, 2.0]")
    found: list[Mechanism] = []
    for choice in choices:
        if isinstance(choice, Mechanism):
            found.append(choice)
        elif isinstance(choice, str):
            asked = [MechanismSettings(name=choice, epsilon=one, participation=participation) for one in epsilons]
            found += [build_mechanism(one, alphabet, tasks=len(answers.tasks)) for one in asked]
        elif callable(choice) and not isinstance(choice, type):
            found += [choice(epsilon) for epsilon in epsilons]
        else:
            found.append(choice)  # type: ignore[arg-type]
    for one in found:
        hint = "Give names, mechanisms, or functions of epsilon that return one."
        require_instance("a mechanism", one, Mechanism, what="a name, a mechanism or a function of epsilon", hint=hint)
    if not found:
        name, given = ("epsilons", epsilons) if choices else ("mechanisms", choices)
        hint = "Such as compare(['laplace'], ..., epsilons=[1.0, 2.0])."
        raise SettingsError(f"a comparison needs a mechanism and an epsilon, {name} is empty", value=given, hint=hint)
    return found


def _estimators(methods: Sequence[str | AnyEstimator], answers: Reports) -> tuple[AnyEstimator, ...]:
    """Return the estimators; by default that of reports through a channel, and for a scale the weighted mean."""
    alphabet = answers.alphabet
    assert alphabet is not None
    evidence = Evidence(observed=answers, channel=Channel.identity(alphabet, "public"))
    methods = [methods] if isinstance(methods, str | Estimator) else methods or ()
    require_list("methods", methods, example="['dawid-skene']")
    for one in methods:
        hint = "Such as 'dawid-skene', or DawidSkene()."
        require_instance("a method", one, (str, Estimator), what="a name or an estimator", hint=hint)
    found = [one if not isinstance(one, str) else choose_estimator(Method(name=one), evidence) for one in methods]
    found = found or [choose_estimator(Method(), evidence)]
    repeated = [name for name, count in Counter(one.name for one in found).items() if count > 1]
    if repeated:
        hint = "Compare other settings of a method in a call of their own."
        raise SettingsError("each method is given once", value=", ".join(repeated), hint=hint)
    mean = [] if not isinstance(alphabet, Scale) or MEAN.name in {one.name for one in found} else [MEAN]
    return (*found, *mean)


_HEADER = ("mechanism", "epsilon", "exact epsilon", "participation", "method", "error", "unprotected")


def _row_texts(row: Row) -> tuple[str, ...]:
    """Return a row as text; epsilons are rounded up."""
    epsilons = ("" if value is None else format_bound(value, 4) for value in (row.requested, row.exact))
    ending = "" if row.converged else ", NOT CONVERGED"
    errors = f"{row.error:.3g}", f"{row.unprotected:.3g}"
    return row.mechanism, *epsilons, row.participation, row.method + ending, *errors


def _error_axis(row: Row) -> str:
    return "Share of wrong truths" if row.error_name == "error_rate" else "Mean absolute error"
