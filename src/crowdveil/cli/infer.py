"""`crowdveil infer`: truths of tasks and quality of workers from reports."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.data.sources import SOURCE_TEXT, column_options, open_sources, sources_argument
from crowdveil.cli.display import print_result, print_warning, print_written, row_of_replaced_files, warning_rows
from crowdveil.cli.infer_display import (
    decisions_data,
    inference_as_json_data,
    inference_rows,
    question_rows,
    questions_data,
    rows_of_next_report,
)
from crowdveil.cli.options import (
    COUNT,
    FILE_PATH,
    FOLDER_PATH,
    NameChoice,
    Resources,
    accept_edited_option,
    alphabet_options,
    duplicates_option,
    flag_of,
    kind_option,
    merge_labels_option,
    option_group,
    resource_options,
    resources_of,
    stated_options,
)
from crowdveil.cli.progress import Bar, progress_bar
from crowdveil.cli.results.reports_argument import REPORTS, asked_options, certificate_option, truths_option
from crowdveil.cli.verb import Verb
from crowdveil.errors import CrowdveilError
from crowdveil.registry import METHOD_NAMES

if TYPE_CHECKING:
    from crowdveil.answers.evidence import Evidence
    from crowdveil.answers.read_options import Kind
    from crowdveil.answers.sources.answer_source import AnswerSource
    from crowdveil.em.saved_fit import SavedFit
    from crowdveil.files.atomic_write import Outputs
    from crowdveil.inference.given import KnownTruths
    from crowdveil.inference.infer import Inference
    from crowdveil.inference.methods import AnyEstimator, Method
    from crowdveil.storage.evidence import EvidenceOptions
    from crowdveil.storage.given_files import Costs
    from crowdveil.storage.recorded_reading_options import NamedReports

FOR_ONE_QUESTION = ("truths", "gold", "score", "prior", "history", "costs", "start_from", "save_fit")
"""Options that do not go with several questions."""
NOT_OF_SUMS = (
    *("certificate", "no_certificate", "prior", "history", "gold", "truths", "costs", "abstain_below", "labels"),
    *("scale", "ordered", "kind", "merge_labels", "start_from", "save_fit", "memory", "engine", "address"),
    *("asked_tasks", "asked_workers", "public_gold", "weight"),
)
"""Options that do not go with sums."""
SECONDS_BETWEEN_SAVES = 60.0
"""Time between two writings of a fit that is saved."""
DETAILS = f"""REPORTS: {SOURCE_TEXT}. They may also be compressed, a folder of encoded blocks, or the sums.json of
matrix-factorization. Methods: {", ".join(METHOD_NAMES)}."""

method_options = option_group(
    click.option(
        "--method",
        type=NameChoice(METHOD_NAMES),
        help="Estimator; --help-all lists them. [default: by type of reports and certificate]",
    ),
    click.option("--max-steps", type=COUNT, help="Largest number of steps."),
    click.option(
        "--tolerance", type=float, metavar="T", help="Stop when no probability or truth changes by more than T."
    ),
    click.option(
        "--weight",
        metavar="NAME",
        help="Column of the confidence of answers; used if gold or held-out answers show that it helps.",
    ),
    heading="Method",
)
saved_fit_options = option_group(
    click.option("--start-from", type=FILE_PATH, help="Resume this saved fit."),
    click.option(
        "--save-fit", type=FILE_PATH, help="Save the fit, to resume it: with more reports, or if it is interrupted."
    ),
    heading="Saved fits",
)
channel_options = option_group(
    certificate_option,
    click.option("--no-certificate", is_flag=True, help="Use no noise model: read reports as answers in any case."),
    accept_edited_option,
    heading="Channel and checks",
)
truth_options = option_group(
    truths_option,
    click.option("--prior", type=FILE_PATH, help="Public prior: label,probability."),
    click.option(
        "--history", type=FILE_PATH, help="Earlier quality of workers: workers.csv of infer, or worker,correct,answers."
    ),
    click.option("--gold", metavar="FILE", help="Known truths that guide the fit: task,truth; or dataset:NAME."),
    click.option(
        "--public-gold",
        is_flag=True,
        help="State that gold was found without anyone's answers, and privacy guarantees stay valid.",
    ),
    click.option(
        "--score", metavar="FILE", help="Known truths that only score the result: task,truth; or dataset:NAME."
    ),
    heading="Known truths",
)
decision_options = option_group(
    click.option("--costs", type=FILE_PATH, help="Decide by expected cost: truth,decision,cost."),
    click.option(
        "--abstain-below",
        type=click.FloatRange(0, 1),
        metavar="P",
        help="Leave a truth empty if its probability is below P.",
    ),
    heading="Decisions",
)
output_options = option_group(
    click.option(
        "--out",
        type=FOLDER_PATH,
        help="Output folder. [default: that of REPORTS; for a data set, the current folder]",
    ),
    click.option(
        "--format",
        "form",
        type=click.Choice(["csv", "parquet", "json", "jsonl", "xlsx"]),
        default="csv",
        help="Format of the output files.",
    ),
    heading="Output",
)


@dataclass(frozen=True, kw_only=True)
class InferOptions:
    """Options of `infer`, by argument.

    Attributes:
        reports: names of the reports, and how they are read.
        method, resources: estimator, and where the fit runs.
        start_from, save_fit: files of saved fits, to resume and to write.
        gold, score: known truths that guide the fit, or score it.
        public_gold: whether gold is stated to be independent of all answers.
        prior, history, costs: files.
        abstain_below: probability below which a truth stays empty.
        out: folder of the results; None for the default.
        form: format of the files.
    """

    reports: NamedReports
    method: Method
    start_from: Path | None
    save_fit: Path | None
    resources: Resources
    gold: str | None
    public_gold: bool
    score: str | None
    prior: Path | None
    history: Path | None
    costs: Path | None
    abstain_below: float | None
    out: Path | None
    form: Any

    @property
    def decides_truths(self) -> bool:
        """Whether truths are decided by cost or probability."""
        return (self.costs, self.abstain_below) != (None, None)


def _method(method: str | None, max_steps: int | None, tolerance: float | None) -> Method:
    from crowdveil.inference.methods import Method

    return Method(name=method, max_steps=max_steps, tolerance=tolerance)


@click.command(
    cls=Verb,
    values={
        **REPORTS,
        "method": _method,
        "resources": resources_of,
        "asked": InferOptions,
    },
    example="crowdveil infer labels.csv --out found",
    details=DETAILS,
    main_options=("method", "labels", "scale", "truths", "gold", "score", "out", "memory", "as_json"),
    short_help="Infer the truth of each task and the quality of workers.",
)
@sources_argument("reports")
@method_options
@channel_options
@alphabet_options
@kind_option
@duplicates_option(None)
@merge_labels_option
@column_options
@asked_options
@truth_options
@decision_options
@output_options
@saved_fit_options
@resource_options
def infer(asked: InferOptions) -> None:
    """Infer the truth of every task and the quality of every worker.

    REPORTS are files with the columns task, worker, and label (or value, for numbers), exports of labelling tools, or
    dataset:NAME (see data list). The channel is read from certificate.json in the same folder; without one, reports are
    read as answers. The command writes truths.csv and workers.csv.

    \f
    Exports are recognised as in crowdveil import. In a table with a column question, each question is inferred by
    itself, into FOLDER/QUESTION. The same holds for the collected folder of a campaign with several questions.
    certificate.json (the channel, with the epsilon of a cell, which is a single answer, and participation) and
    crowd.json (all tasks and workers) are checked.

    Default methods: hierarchical-dawid-skene for labels, ordered or not; for numbers gaussian with a certificate and
    student-t without one; factorization-mean for sums.

    truths.csv has task, truth, confidence and a probability for each label; workers.csv has worker, ability or weight,
    a 90 % interval where there is one, and reports.

    With --truths (such as grades from the scores of judges), a separate fit runs in memory. It cannot be combined with
    methods, priors, histories, saved fits, --memory or --engine.
    """
    from crowdveil.campaign.files.campaign_reports import collections_of_questions
    from crowdveil.inference.infer import infer as infer_truths
    from crowdveil.storage.crowd import is_sums_file

    sources = asked.reports.sources
    if len(sources) == 1 and is_sums_file(Path(sources[0])):
        _infer_from_sums(Path(sources[0]), asked)
        return
    collected = collections_of_questions(Path(sources[0])) if len(sources) == 1 else {}
    if collected:
        _infer_collected_questions(collected, asked)
        return
    with _open_within_memory(asked) as source:
        with progress_bar("reading", unit="bytes") as bar:
            questions = source.by_question(progress=bar)
        if questions:
            _infer_questions(questions, asked)
            return
        ready = _read_evidence_and_check_files(source, asked)
        with progress_bar("inferring") as bar, _fit_saved_if_interrupted(asked.save_fit) as checkpoint:
            inference = infer_truths(ready.evidence, **ready.infer_arguments(bar), checkpoint=checkpoint)
        _score_write_and_print_inference(inference, ready.files, asked, ready.score, announced=ready.announced)


@contextmanager
def _open_within_memory(asked: InferOptions) -> Iterator[AnswerSource]:
    """Yield the source of reports, which is read within the limit of memory."""
    from crowdveil.answers.sources.reading_memory import read_within_memory

    reports, memory = asked.reports, asked.resources.memory
    with (
        open_sources(reports.sources, reports.layout) as opened,
        read_within_memory(opened, memory, reports.options.alphabet) as source,
    ):
        yield source


@dataclass(frozen=True, kw_only=True)
class _CheckedOutputs:
    """Outputs of an inference, with the paths that are written and those that are replaced."""

    outputs: Outputs
    paths: dict[str, list[Path]]


@dataclass(frozen=True, kw_only=True)
class _PreparedInference:
    """Reports that can be inferred, with the files of the result.

    Attributes:
        evidence: the reports.
        files: checked before the work begins.
        asked: options.
        estimator: of the method; with truths of their own, of the default.
        score: known truths that score the result; None without any.
        announced: warning that was printed; None for none.
    """

    evidence: Evidence
    files: _CheckedOutputs
    asked: InferOptions
    estimator: AnyEstimator
    score: KnownTruths | None
    announced: str | None

    def infer_arguments(self, bar: Bar) -> dict[str, Any]:
        """Return the keyword arguments of the library's `infer`, with steps counted on a bar."""
        from crowdveil.answers.ingest.column_readers import load_prior
        from crowdveil.storage.given_files import read_history, read_known_truths, read_saved_fit

        asked, kind = self.asked, _kind_of_truths(self.evidence, self.estimator)
        steps = None if asked.start_from else self.estimator.known_steps
        gold = None if asked.gold is None else read_known_truths(asked.gold, kind, public=asked.public_gold)
        resources = {} if self.evidence.truths else {"engine": asked.resources.engine, "memory": asked.resources.memory}
        return resources | {
            "method": asked.method,
            "gold": gold,
            "prior": None if asked.prior is None else load_prior(asked.prior),
            "history": None if asked.history is None else read_history(asked.history),
            "start_from": None if asked.start_from is None else read_saved_fit(asked.start_from),
            "progress": _progress_over_fits(bar, steps),
        }


@contextmanager
def _fit_saved_if_interrupted(path: Path | None) -> Iterator[Callable[[SavedFit], None] | None]:
    """Yield a function that keeps the fit after a step, and saves it every minute; None without a file.

    If the fit is interrupted, or fails, that of the last whole step is saved.
    """
    if path is None:
        yield None
        return
    kept: list[SavedFit] = []
    saved = monotonic()

    def keep(fit: SavedFit) -> None:
        nonlocal saved
        kept[:] = [fit]
        if monotonic() - saved >= SECONDS_BETWEEN_SAVES:
            _save_fit(path, fit)
            saved = monotonic()

    try:
        yield keep
    except BaseException:
        if kept:
            with suppress(OSError, CrowdveilError):  # the cause of the end is the error to print
                _save_fit(path, kept[0])
                print_warning(f"{path} has the fit so far: go on with --start-from {shlex.quote(str(path))}.")
        raise


def _save_fit(path: Path, fit: SavedFit) -> None:
    from crowdveil.files.atomic_write import write_outputs
    from crowdveil.storage.given_files import saved_fit_outputs

    write_outputs(saved_fit_outputs(path), {path.name: fit.to_bytes()})


def _kind_of_truths(evidence: Evidence, estimator: AnyEstimator) -> Kind:
    """Return whether the truths are labels or numbers."""
    from crowdveil.channels.alphabet import Categories
    from crowdveil.inference.methods import alphabet_of_inferred_truths

    labels = evidence.truths or isinstance(alphabet_of_inferred_truths(evidence, type(estimator)), Categories)
    return "categorical" if labels else "numeric"


def _progress_over_fits(bar: Bar, steps: int | None) -> Callable[[int, float], None]:
    """Return a progress function that counts the steps of all fits of an inference on one bar.

    Args:
        bar: is shown.
        steps: number of steps of each fit; None if it is unknown.
    """
    before = last = 0

    def show(number: int, change: float) -> None:
        nonlocal before, last
        before, last = before + (last if number <= last else 0), number
        bar(before + number, None if steps is None else before + steps, change)

    return show


def _infer_questions(sources: dict[str, AnswerSource], asked: InferOptions) -> None:
    """Infer all questions of a source, as `_infer_each`."""
    from crowdveil.storage.answers import default_output_folder
    from crowdveil.storage.estimate_files import question_folder_names

    _refuse_single_question_options("choose it with --question")
    folder = asked.out or default_output_folder(next(iter(sources.values())))
    sources = _questions_with_labels(sources, asked.reports.options)
    names = question_folder_names(sources)
    options = {name: _options_of_question(asked, name, folder / names[name]) for name in sources}
    _infer_each(sources, options, folder)


def _infer_collected_questions(collected: dict[str, Path], asked: InferOptions) -> None:
    """Infer the collection of each question of a campaign, as `_infer_each`."""
    _refuse_single_question_options("give the folder of that question")
    folder = asked.out or Path(asked.reports.sources[0])
    with ExitStack() as stack:
        sources: dict[str, AnswerSource] = {}
        options: dict[str, InferOptions] = {}
        for question, path in collected.items():
            reports = replace(asked.reports, sources=(str(path),))
            options[question] = replace(asked, reports=reports, out=folder / path.name)
            sources[question] = stack.enter_context(_open_within_memory(options[question]))
        _infer_each(sources, options, folder)


def _refuse_single_question_options(hint: str) -> None:
    if stated_options().intersection(FOR_ONE_QUESTION):
        raise click.UsageError(
            f"{', '.join(map(flag_of, FOR_ONE_QUESTION))} need one question, and there are several: {hint}."
        )


def _infer_each(sources: dict[str, AnswerSource], options: dict[str, InferOptions], folder: Path) -> None:
    """Read all questions, infer each by itself, write each to a folder of its own, print one table."""
    from crowdveil.answers.facts.label_notes import grades_hint
    from crowdveil.inference.infer import infer as infer_truths
    from crowdveil.pages.conclusion import verdict
    from crowdveil.storage.answers import default_output_folder
    from crowdveil.storage.estimate_files import earlier_truths_warning

    ready = {name: _read_evidence_and_check_files(source, options[name]) for name, source in sources.items()}
    folders = {name: one.out or default_output_folder(sources[name]) for name, one in options.items()}
    inferred = {}
    for name, one in ready.items():
        with progress_bar("inferring") as bar:
            inferred[name] = infer_truths(one.evidence, **one.infer_arguments(bar))
    summaries = []
    for name, one in ready.items():
        inference = _score_decide_and_write(inferred[name], one.files.outputs, one.asked, one.score)
        summary = inference_as_json_data(inference, form=one.asked.form) | one.files.paths
        summary["warnings"] += grades_hint(one.evidence.reports)
        summary["warnings"][:0] = _warnings_of_unclear_workers(inference)
        named = {"question": name, "folder": str(folders[name])}
        summaries.append(named | summary | {"verdict": verdict(inference.estimate, one.evidence)})
    data = questions_data(summaries, earlier_truths_warning(folder, folders.values()))
    rows = [*warning_rows(data), *(row for one in data["questions"] for row in question_rows(one))]
    following = rows_of_next_report([one.evidence for one in ready.values()], folder)
    print_result(data, [*rows, *row_of_replaced_files(data["replaced"]), *following])


def _options_of_question(asked: InferOptions, question: str, out: Path) -> InferOptions:
    """Return the options of one question of several, with its own folder."""
    reports = replace(asked.reports, layout=replace(asked.reports.layout, question=question))
    return replace(asked, reports=reports, out=out)


def _questions_with_labels(sources: dict[str, AnswerSource], reading: EvidenceOptions) -> dict[str, AnswerSource]:
    """Return the questions that have labels, and warn of the others; all if labels are stated or none has any."""
    doubts = {name: source.unlikely_labels_reason for name, source in sources.items()}
    if all(doubts.values()) or reading.kind is not None or reading.alphabet is not None:
        return sources
    for name, doubt in doubts.items():
        if doubt:
            print_warning(
                f"Question {name!r} is left out: {doubt}. To infer it, state its labels or kind: --question "
                f"{shlex.quote(name)} with --labels or --kind numeric."
            )
    return {name: source for name, source in sources.items() if not doubts[name]}


def _infer_from_sums(sums: Path, asked: InferOptions) -> None:
    """Infer from sums, write, print."""
    from crowdveil.inference.infer import infer as infer_truths
    from crowdveil.storage.evidence import evidence_files
    from crowdveil.storage.given_files import read_known_truths
    from crowdveil.storage.sums import evidence_of_sums

    if stated_options().intersection(NOT_OF_SUMS):
        raise click.UsageError("Sums accept only --method, --score, --accept-edited, --out and --json.")
    evidence = evidence_of_sums(sums, accept_edited=asked.reports.options.accept_edited)
    inference = infer_truths(evidence, asked.method)
    files = _checked_output_files(asked, sums.parent, [*evidence_files(sums), asked.score])
    score = None if asked.score is None else read_known_truths(asked.score, "numeric")
    _score_write_and_print_inference(inference, files, asked, score)


def _read_evidence_and_check_files(source: AnswerSource, asked: InferOptions) -> _PreparedInference:
    """Read the reports of a source and check the files of the result, or refuse."""
    from crowdveil.errors import SettingsError
    from crowdveil.inference.answer_confidence import refuse_saved_confidences
    from crowdveil.inference.infer import HISTORY_OR_FIT, ONE_OF_BOTH
    from crowdveil.inference.methods import (
        choose_estimator,
        slow_fit_warning,
        warning_if_channel_unread,
    )
    from crowdveil.inference.scores.score import refuse_unless_scorable
    from crowdveil.storage.answers import default_output_folder
    from crowdveil.storage.evidence import evidence_files, read_evidence
    from crowdveil.storage.given_files import read_known_truths

    folder, reading = default_output_folder(source) if asked.out is None else asked.out, asked.reports.options
    with progress_bar("reading", unit="bytes") as bar:
        evidence = read_evidence(source, reading, progress=bar)
    if asked.history is not None and asked.save_fit is not None:
        raise SettingsError(HISTORY_OR_FIT, value=str(asked.history), hint=ONE_OF_BOTH)
    if asked.save_fit is not None:
        refuse_saved_confidences(evidence)
    built = choose_estimator(asked.method, evidence)
    score = None if asked.score is None else read_known_truths(asked.score, _kind_of_truths(evidence, built))
    if score is not None:
        refuse_unless_scorable(evidence, score)
    named = (reading.certificate, reading.tasks, reading.workers, asked.prior, asked.history, asked.gold)
    files = _checked_output_files(asked, folder, [*evidence_files(source), *named, asked.score, asked.costs])
    announced = warning_if_channel_unread(evidence, type(built))
    for warning in (announced, slow_fit_warning(evidence.reports, built.name)):
        if warning is not None:
            print_warning(warning)
    return _PreparedInference(
        evidence=evidence, files=files, asked=asked, estimator=built, score=score, announced=announced
    )


def _checked_output_files(asked: InferOptions, folder: Path, inputs: list[Any]) -> _CheckedOutputs:
    """Return the outputs in a folder and the saved fit, or refuse before the work begins."""
    from crowdveil.storage.estimate_files import estimate_outputs
    from crowdveil.storage.given_files import saved_fit_outputs

    outputs, saved = estimate_outputs(asked.out or folder, asked.form), asked.save_fit
    written = outputs.paths
    replaced = outputs.check_replaced_files(inputs=[*inputs, asked.start_from, saved])
    if saved is not None:
        written.append(saved)
        replaced += saved_fit_outputs(saved).check_replaced_files(inputs=inputs)
    return _CheckedOutputs(outputs=outputs, paths={"files": written, "replaced": replaced})


def _score_write_and_print_inference(
    inference: Inference,
    files: _CheckedOutputs,
    asked: InferOptions,
    score: KnownTruths | None,
    *,
    announced: str | None = None,
) -> None:
    """Score, write, print; a warning that was announced is not printed again."""
    from crowdveil.storage.estimate_files import earlier_truths_warning

    inference = _score_decide_and_write(inference, files.outputs, asked, score)
    decisions = decisions_data(inference.estimate, asked.costs, asked.abstain_below) if asked.decides_truths else None
    data = inference_as_json_data(inference, form=asked.form) | {"decisions": decisions}
    data["warnings"] += earlier_truths_warning(files.outputs.folder)
    data["warnings"][:0] = _warnings_of_unclear_workers(inference)
    following = rows_of_next_report([inference.evidence], files.outputs.folder)
    print_written(data, inference_rows(data, announced), **files.paths, following=following)


def _warnings_of_unclear_workers(inference: Inference) -> list[str]:
    """Return the warning of workers who may have decided the truths, though they may answer without looking."""
    from crowdveil.quality.review.unclear_workers import sentence_on_unclear_workers

    sentence = sentence_on_unclear_workers(inference.estimate, inference.evidence)
    return [] if sentence is None else [sentence]


def _score_decide_and_write(
    inference: Inference, outputs: Outputs, asked: InferOptions, score: KnownTruths | None
) -> Inference:
    """Write the truths, and return the inference with its score; what is written does not depend on the score."""
    from crowdveil.inference.scores.score import with_decisions, with_gold_score
    from crowdveil.storage.estimate_files import outdated_output_notes, write_estimate

    costs = _costs(inference, asked)
    decide: dict[str, Any] = {"abstain_below": asked.abstain_below}
    if costs is not None:
        decide |= {"costs": costs.table, "inputs": costs.inputs}
    written, shown = inference, inference if score is None else with_gold_score(inference, score)
    if asked.decides_truths:
        written, shown = with_decisions(inference, **decide), with_decisions(shown, **decide, known=score)
    if asked.save_fit is not None:
        _save_fit(asked.save_fit, replace(inference.saved_fit(), inputs=inference.inputs))
    digest = inference.evidence.sha256
    outdated = outdated_output_notes(outputs.folder, digest)
    with progress_bar("writing") as bar:
        write_estimate(
            outputs.folder,
            written.estimate,
            form=asked.form,
            progress=bar,
            notes=written.notes,
            reports_sha256=digest,
            reading=asked.reports.portable_json(outputs.folder),
            inputs=written.inputs,
        )
    return replace(shown, notes=(*shown.notes, *outdated))


def _costs(inference: Inference, asked: InferOptions) -> Costs | None:
    """Return the costs of decisions; None without any, or where the truths are no labels."""
    from crowdveil.storage.given_files import read_costs

    alphabet = inference.estimate.alphabet
    return None if asked.costs is None or alphabet is None else read_costs(asked.costs, alphabet)
