"""Estimator.fit: validation of the input, restarts from several initial parameters, and the estimate."""

from abc import ABCMeta
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from inspect import isabstract
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.facts.prior import Prior
from crowdveil.answers.reports import Reports
from crowdveil.arguments import KnownArguments, require_instance, require_known, require_number, require_whole_number
from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.display.counts import repeated_pairs_text
from crowdveil.display.progress import ProgressDisplay
from crowdveil.em.engines.executor import Engine
from crowdveil.em.estimate import Estimate
from crowdveil.em.fit_state import FitState
from crowdveil.em.gold import align_gold
from crowdveil.em.kernels.dispatch import encoded_block_for_kernels, use_compiled
from crowdveil.em.loop import run_em
from crowdveil.em.model import Checkpoint, FitInput, FitResult, Model, P, Progress, S, Summary
from crowdveil.em.observation_model import observation_model
from crowdveil.em.saddle_points import restart_from_saddle
from crowdveil.em.worker_history import EarlierAnswers, as_history
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.hints import command_advice
from crowdveil.registry import ESTIMATOR_ENTRIES, estimators_with


def require_null_reports_countable(reports: Reports, channel: Channel, assignment: Assignment | None) -> None:
    """Refuse reports whose missing cells cannot count as NULL reports.

    Raises:
        SettingsError: participation is public.
        ReportsError: it is unknown which cells were asked, or a cell has two reports.
    """
    if channel.participation == "public":
        raise SettingsError(
            "a channel with NULL reports must protect participation: unassigned cells would count as NULL",
            value=channel.mechanism,
        )
    replace(reports.asked, assignment=assignment).require_cells()
    repeats = 0
    for part in reports.chunks():
        same_cell = (part.task[1:] == part.task[:-1]) & (part.worker[1:] == part.worker[:-1])
        repeats += int(same_cell.sum())
    if repeats:
        raise ReportsError(
            f"one cell sends one report, but {repeated_pairs_text(repeats, 'report')}",
            hint="Read the reports with duplicates='first' or 'last'.",
        )


def require_channel(channel: object) -> None:
    """Refuse what is no channel, such as a mechanism; None is accepted."""
    if channel is not None:
        hint = "Give mechanism.channel(), or Channel.from_certificate(...)."
        require_instance("channel", channel, (Channel, ChannelTable), what="a Channel or a ChannelTable", hint=hint)


def _require_types(
    channel: object, assignment: object, warm_start: object, progress: object, engine: object, memory: object
) -> None:
    """Refuse arguments of `Estimator.fit` of another type."""
    require_channel(channel)
    if assignment is not None:
        require_instance("assignment", assignment, Assignment, what="an Assignment", hint="See Assignment.balanced.")
    if warm_start is not None:
        require_instance("warm_start", warm_start, FitState, what="the state of a fit", hint="Give estimate.state.")
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise SettingsError("progress must be True, False or a function", value=progress, hint="True shows it.")
    if not (engine is None or hasattr(engine, "open")):
        raise SettingsError(
            "engine must be an engine of crowdveil.em.engines", value=engine, hint="Such as Threads(4) or Dask()."
        )
    if memory is not None:
        require_whole_number("memory", memory, least=0, example="2_000_000_000 (bytes, 2 GB)")


INTERVALS_IN_WORDS = {"[0, inf)": "finite and not negative", "(0, inf)": "positive and finite"}
"""Phrases for the most frequent intervals in messages."""


def _require_in_interval(name: str, value: Any, interval: str, default: object) -> None:
    """Refuse a number, and a tuple with a number, outside an interval such as "(0, 1]"; empty tuples, too."""
    low, high = map(float, interval[1:-1].split(","))
    numbers = value if isinstance(value, tuple) else (value,)
    for number in numbers:
        require_number(name, number)
    above = all(number > low or (number == low and interval[0] == "[") for number in numbers)
    below = all(number < high or (number == high and interval[-1] == "]") for number in numbers)
    if not (numbers and above and below):
        rule = f"{name} must be {INTERVALS_IN_WORDS.get(interval, f'in {interval}')}"
        raise SettingsError(rule, value=value, hint=f"The default is {default}.")


class EstimatorType(ABCMeta):
    """Type of estimators: `dir`, and so `help` and completion, list settings and `fit`, no step of the EM loop."""

    def __dir__(cls) -> Iterable[str]:
        """Return the names for users; those of an abstract class, which authors read, are complete."""
        if isabstract(cls):
            return super().__dir__()
        own = {name for name in super().__dir__() if name.startswith(("fit", "get_params", "set_params"))}
        return {"name", "capabilities", *own, *(one.name for one in fields(cls))}  # type: ignore[arg-type]


class Estimator(KnownArguments, Model[P, S], metaclass=EstimatorType):
    """Model with `fit`: infers truths and worker qualities from reports.

    An estimator is a frozen value of settings: `fit` returns what it learned and stores nothing.

    Attributes:
        ranges: interval of each setting that is a number, such as "(0, 1]"; None is always accepted.
    """

    ranges: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__dict__.get("name") in ESTIMATOR_ENTRIES:
            cls.capabilities = ESTIMATOR_ENTRIES[cls.name].capabilities

    def __post_init__(self) -> None:
        """Refuse settings of another type than their defaults, or out of range."""
        ranges = {"tolerance": "[0, inf)", **self.ranges}
        for name, default in ((one.name, one.default) for one in fields(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            if isinstance(default, bool):
                require_instance(name, value, bool, what="True or False", hint="Without quotes.")
            elif isinstance(default, int):
                require_whole_number(name, value, least=min(default, 1))
            elif isinstance(default, float):
                require_number(name, value)
            if name in ranges and value is not None:
                _require_in_interval(name, value, ranges[name], default)

    def __dir__(self) -> Iterable[str]:
        return dir(type(self))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Refuse a result of a fit, which an estimator does not hold."""
            owner = type(self).__name__
            rule = f"{owner!r} object has no attribute {name!r}"
            if not name.startswith("_") and (hasattr(Estimate, name) or name in Estimate.__dataclass_fields__):
                rule += f": results are those of a fit, estimate = {owner}().fit(answers), then estimate.{name}"
            raise AttributeError(rule, name=name, obj=self)

    def fit(
        self,
        reports: Reports | Any,
        *,
        channel: Channel | ChannelTable | None = None,
        assignment: Assignment | None = None,
        gold: Any = None,
        prior: Mapping[str, float] | Prior | None = None,
        history: Any = None,
        warm_start: FitState | None = None,
        progress: Progress | bool | None = None,
        engine: Engine | None = None,
        memory: int | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Estimate:
        """Return truths and workers by this model alone, without the copies, dependence and gold of `crowdveil.infer`.

        Args:
            reports: non-NULL reports; its `tasks` and `workers` must list everyone if participation was protected. Or
                a frame as in `Reports.from_frame`, with the usual names of columns.
            channel: channel of the reports, or of each cell; None reads reports as answers.
            assignment: the cells that report; None if every worker reports on every task.
            gold: known truths (label, or number) by task name, or a frame with the columns task and truth.
            prior: public prior probability of each label.
            history: earlier quality of workers, as prior: `WorkerHistory`, estimate, or frame as in its `from_frame`.
            warm_start: learned parameters of an earlier fit (`Estimate.state`); workers are matched by name.
            progress: called after every step; True shows the steps, in notebooks and on terminals.
            engine: executor of the E-step, see `crowdveil.em.engines`; None for threads of this process.
            memory: limit in bytes on the memory that the fit adds to the process; None for none. Data above it are
                computed again in each step, or stored in a temporary file. Results do not depend on it.
            checkpoint: called after every step with its learned parameters, the `warm_start` of a fit that goes on.

        Raises:
            SettingsError: the estimator cannot use an input, `max_steps` is 0, or a block does not fit into the memory.
            EngineError: the engine cannot be reached, or its workers failed repeatedly.
            ReportsError: the reports have the wrong type or do not match the channel, or a gold truth is no label.
        """
        _require_types(channel, assignment, warm_start, progress, engine, memory)
        if isinstance(progress, bool):
            with ProgressDisplay(self.name, self.known_steps if warm_start is None else None) as display:
                shown = display if progress else None
                given: Any = {"engine": engine, "memory": memory, "warm_start": warm_start, "progress": shown}
                given |= {"prior": prior, "history": history, "checkpoint": checkpoint}
                return self.fit(reports, channel=channel, assignment=assignment, gold=gold, **given)
        if not isinstance(reports, Reports):
            reports = Reports.from_frame(reports, kind=self.capabilities.kind)
        data = validated_input(self, reports, channel, assignment, gold, prior, history)
        model = self.simplify(data.summary)
        running: Any = {"progress": progress, "engine": engine, "memory": memory, "checkpoint": checkpoint}
        if warm_start is not None and warm_start.by_worker:
            _refuse_if_history_with_state(history)
            initial = _resumed_parameters(model, model.initialize(data.summary), warm_start, reports)
            # Gold may be new, which the counts of reports do not show.
            model = model if data.gold.number_of_known_truths else model.model_for_resumed_fit(data.summary, warm_start)
            result = run_em(model, initial, data, **running)
            return replace(to_estimate(result, data), original=reports.original)
        result = _likeliest_fit(model, data, **running)
        return replace(to_estimate(result, data), original=reports.original)

    def fit_predict(self, reports: Reports | Any, **inputs: Any) -> Any:
        """Return the columns task and truth, as the kind of frame of the answers (Arrow for `Reports`).

        Args:
            reports, inputs: as in `fit`; errors as there.
        """
        return self.fit(reports, **inputs).to_frame(reports, columns=["truth"])

    def fit_predict_proba(self, reports: Reports | Any, **inputs: Any) -> Any:
        """Return the columns task and `probability_<label>` for each label; else as `fit_predict`.

        Raises:
            SettingsError: the method has no probabilities.
        """
        if self.capabilities.kind == "numeric" or not self.capabilities.probabilistic:
            raise SettingsError(
                f"{self.name} has no probabilities of labels",
                value="fit_predict_proba",
                hint=f"Use {estimators_with_capabilities_text(kind='categorical', probabilistic=True)}.",
            )
        estimate = self.fit(reports, **inputs)
        assert estimate.alphabet is not None
        return estimate.to_frame(reports, columns=[f"probability_{name}" for name in estimate.alphabet.names])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; `deep` has no effect, since no setting is an estimator."""
        own: Any = self
        return {field.name: getattr(self, field.name) for field in fields(own)}

    def set_params(self, **settings: Any) -> Self:
        """Return a new estimator with other settings; this one is a frozen value and stays as it is.

        Raises:
            SettingsError: no such setting, or a value that it refuses.
        """
        require_known(type(self).__name__, settings, self.get_params())
        own: Any = self
        return replace(own, **settings)


def fit_without_intervals(
    estimator: Estimator[Any, Any],
    reports: Reports,
    *,
    channel: Channel | ChannelTable | None = None,
    assignment: Assignment | None = None,
    prior: Mapping[str, float] | Prior | None = None,
) -> Estimate:
    """Return the estimate of `Estimator.fit` without credible intervals of workers, which simulations do not need."""
    data = validated_input(estimator, reports, channel, assignment, prior=prior)
    return to_estimate(_likeliest_fit(estimator.simplify(data.summary), data, intervals=False), data)


def _likeliest_fit(model: Model[P, S], data: FitInput, **running: Any) -> FitResult[P, S]:
    """Return the fit with the highest likelihood of those from all initial parameters; `running` as in `run_em`."""
    starts = model.initializations(data)
    results = [restart_from_saddle(run_em(model, one, data, **running), one, data) for one in starts]
    return max(results, key=lambda result: result.log_likelihoods[-1:])


def to_estimate(result: FitResult[Any, Any], data: FitInput) -> Estimate:
    """Return the estimate from a result of the EM loop and its data."""
    model, tasks = result.model, result.tasks
    low, high = (None, None) if tasks.interval is None else tasks.interval.T
    own = (
        None
        if tasks.task_parameters is None
        else dict(zip(model.task_parameters, tasks.task_parameters.T, strict=True))
    )
    return Estimate(
        method=model.name,
        alphabet=data.summary.alphabet,
        tasks=data.reports.tasks,
        posterior=tasks.posterior,
        reports_per_task=data.summary.per_task,
        worker_names=data.reports.workers,
        workers=result.workers,
        reports_per_worker=data.summary.per_worker,
        log_likelihoods=result.log_likelihoods,
        steps=result.steps,
        stopped=result.stopped,
        channel_used=data.summary.channel is not None,
        gold_unknown=data.gold.unknown,
        gold=data.gold.mask(len(tasks.posterior)),
        low=low,
        high=high,
        probabilistic=model.capabilities.probabilistic,
        task_parameters=own,
        state=FitState.of_arrays(
            model.name, model.state_fields, data.reports.workers, model.to_state(result.parameters)
        ),
    )


def _resumed_parameters(model: Model[P, S], initial: P, state: FitState, reports: Reports) -> P:
    """Return initial parameters with the learned arrays of an earlier fit.

    Raises:
        SettingsError: the state is of another method, or of another number of labels.
    """
    try:
        if state.method == model.name:
            return model.from_state(initial, state.aligned_to_workers(reports.workers))
    except (LookupError, TypeError, ValueError):
        pass
    raise SettingsError(
        f"warm_start must be the state of a fit by {model.name} with the same labels, of this version",
        value=f"{state.method}: {', '.join(sorted({*state.by_worker, *state.shared}))}",
        hint="Fit without it.",
    )


def validated_input(
    estimator: "Estimator[Any, Any]",
    reports: Reports,
    channel: Channel | ChannelTable | None = None,
    assignment: Assignment | None = None,
    gold: Any = None,
    prior: Mapping[str, float] | Prior | None = None,
    history: Any = None,
) -> FitInput:
    """Return the validated input of a fit; errors as in `Estimator.fit`."""
    coded, summary = coded_and_summarized(estimator, reports, channel, assignment, prior)
    if history is not None:
        summary = replace(summary, history=_earlier_answers(estimator, history, reports, summary))
    numeric = estimator.capabilities.kind == "numeric"
    return estimator.prepare(FitInput(coded, summary, align_gold(reports, gold, summary.alphabet, numeric=numeric)))


def coded_and_summarized(
    estimator: Estimator[Any, Any],
    reports: Reports,
    channel: Channel | ChannelTable | None,
    assignment: Assignment | None,
    prior: Mapping[str, float] | Prior | None,
) -> tuple[Reports, Summary]:
    """Return the reports coded by symbol, and their counts; all inputs are checked for consistency."""
    if not len(reports.tasks):
        raise ReportsError("there must be at least one task", hint="List the tasks, or give at least one report.")
    if estimator.capabilities.kind == "categorical" and reports.alphabet is None:
        raise ReportsError(
            f"{estimator.name} needs labels, these are numbers", hint="Use a numeric method, or give labels."
        )
    if estimator.capabilities.needs_alphabet and reports.alphabet is None:
        raise ReportsError(
            f"{estimator.name} needs numbers on a scale, these have no scale",
            hint="Read them with alphabet=Scale(low, high, step).",
        )
    if channel is not None:
        _check_channel(estimator, reports, channel, assignment)
    if assignment is not None:
        cells = f"{len(assignment):,} assigned cells"
        _require_capability(estimator, "reads_channel_tables", "cannot use an assignment", cells)
    if prior is not None:
        _require_capability(estimator, "uses_prior", "uses no prior", "prior", ", or fit without it")
    alphabet = reports.alphabet if channel is None else channel.alphabet
    _require_label_order_if_needed(estimator, alphabet)
    coded, model = reports, None
    if estimator.capabilities.reads_channel and alphabet is not None:
        coded, model = observation_model(channel or Channel.identity(alphabet, "public"), reports, assignment)
    counts = _symbol_counts_of_each_worker(coded)
    return coded, Summary(
        alphabet=alphabet,
        symbols=coded.labels,
        tasks=len(reports.tasks),
        workers=len(reports.workers),
        per_task=reports.per_task,
        # Symbols include listed NULL reports; free numbers have no symbols.
        per_worker=counts.sum(axis=1).astype(np.int64) if coded is reports and coded.labels else reports.per_worker,
        symbol_counts=counts,
        channel=channel,
        known_model=model,
        prior=None if prior is None else Prior.of(prior).in_label_order(alphabet),
    )


def _refuse_if_history_with_state(history: Any) -> None:
    """Refuse a history beside the state of an earlier fit."""
    if history is not None:
        hint = "The state already holds the workers."
        raise SettingsError("a fit starts from a state or with a history", value="both", hint=hint)


def _earlier_answers(
    estimator: Estimator[Any, Any], history: Any, reports: Reports, summary: Summary
) -> EarlierAnswers | None:
    """Return the earlier answers of the workers; refuse a history that the method cannot use."""
    _require_capability(estimator, "uses_history", "cannot use a worker history", "history", ", or fit without it")
    known = as_history(history)
    known.require_compatible_history(estimator.capabilities.kind, summary.alphabet, estimator.name)
    return known.aligned_answers(reports.workers)


def _require_label_order_if_needed(estimator: Estimator[Any, Any], alphabet: Alphabet | None) -> None:
    """Refuse labels without an order for methods that need one: the position of a label is no number."""
    if alphabet is None or alphabet.ordered:
        return
    if estimator.capabilities.kind == "numeric":
        raise ReportsError(
            f"{estimator.name} needs numbers or ordered labels, these labels have no order",
            examples=", ".join(alphabet.names[:3]),
            hint="Read numbers with numeric=True or a Scale, or declare the labels ordered "
            "(Categories(..., ordered=True)).",
        )
    if estimator.capabilities.needs_ordered_labels:
        kind = estimator.capabilities.kind
        others = estimators_with_capabilities_text(kind=kind, needs_ordered_labels=False, reads_channel=True)
        how = command_advice("{labels}, {ordered}", "Categories(..., ordered=True)", ordered=True)
        raise ReportsError(
            f"{estimator.name} needs ordered labels, {alphabet.names} have no order",
            hint=f"Declare them ordered ({how}), or use {others}.",
        )


def estimators_with_capabilities_text(**required: object) -> str:
    """Return the names of the estimators with these capabilities as text for a hint: "a, b or c"."""
    *most, last = estimators_with(**required)
    return f"{', '.join(most)} or {last}" if most else last


def _require_capability(
    estimator: Estimator[Any, Any], capability: str, rule: str, value: object, otherwise: str = ""
) -> None:
    """Refuse an input that a method cannot use; the hint names those of its kind that can, or what to do otherwise."""
    if not getattr(estimator.capabilities, capability):
        others = estimators_with_capabilities_text(**{"kind": estimator.capabilities.kind, capability: True})
        raise SettingsError(f"{estimator.name} {rule}", value=value, hint=f"Use {others}{otherwise}.")


def _symbol_counts_of_each_worker(reports: Reports) -> NDArray[np.float64]:
    """Return each worker's reports by symbol, indexed [worker, symbol]; no symbol for free numbers."""
    shape, compiled = (len(reports.workers), reports.labels), use_compiled(len(reports))
    counts = np.zeros(shape)
    for block in reports.blocks() if reports.labels else ():
        counts += encoded_block_for_kernels(block, *shape, compiled=compiled).worker_symbol_counts.reshape(shape)
    return counts


def _check_channel(
    estimator: Estimator[Any, Any],
    reports: Reports,
    channel: Channel | ChannelTable,
    assignment: Assignment | None,
) -> None:
    mechanism = channel.mechanism
    _require_capability(estimator, "reads_channel", "cannot use a channel", mechanism, ", or fit without the channel")
    if isinstance(channel, ChannelTable):
        rule = "reads one channel, not a table of them"
        _require_capability(estimator, "reads_channel_tables", rule, mechanism)
    sent = channel.report_alphabet
    if reports.alphabet is None or reports.alphabet.names != sent.names:
        known = () if reports.alphabet is None else reports.alphabet.names
        raise ReportsError(
            f"the reports must have the labels of the certificate, {sent.names}",
            examples=str(known),
            hint="Give the certificate that was written with these reports.",
        )
    if sent.names != channel.alphabet.names:
        _require_capability(estimator, "reads_label_blocks", "needs reports in the answers' own labels", sent.names)
    for one in channel.channels if isinstance(channel, ChannelTable) else (channel,):
        if one.null_output is not None:
            require_null_reports_countable(reports, one, assignment)
