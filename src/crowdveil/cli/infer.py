"""`crowdveil infer`: truths of tasks and quality of workers from reports."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.data.sources import SOURCE_TEXT, column_options, open_sources, sources_argument
from crowdveil.cli.display import (
    Bar,
    print_result,
    print_warning,
    print_written,
    progress_bar,
    row_of_replaced_files,
    warning_rows,
)
from crowdveil.cli.infer_display import (
    decisions_data,
    inference_as_json_data,
    inference_rows,
    question_rows,
    questions_data,
)
from crowdveil.cli.options import (
    COUNT,
    FILE_PATH,
    FOLDER_PATH,
    NameChoice,
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
from crowdveil.cli.results.reports_argument import REPORTS, certificate_option, truths_option
from crowdveil.cli.verb import Verb
from crowdveil.registry import METHOD_NAMES

if TYPE_CHECKING:
    from crowdveil.data.sources.answer_source import AnswerSource
    from crowdveil.files.atomic_write import Outputs
    from crowdveil.folder.evidence import Evidence, EvidenceOptions
    from crowdveil.folder.recorded_reading_options import NamedReports
    from crowdveil.inference.inference import Inference, Resources, SavedFits
    from crowdveil.inference.methods import Method

FOR_ONE_QUESTION = ("truths", "gold", "score", "prior", "history", "costs", "start_from", "save_fit")
"""Options that do not go with several questions."""
NOT_OF_SUMS = (
    *("certificate", "no_certificate", "prior", "history", "gold", "truths", "costs", "abstain_below", "labels"),
    *("scale", "ordered", "kind", "merge_labels", "start_from", "save_fit", "memory", "engine", "address"),
)
"""Options that do not go with sums."""
DETAILS = f"""REPORTS: {SOURCE_TEXT}. They may also be gzipped, a folder of encoded blocks, or the sums.json of
matrix-factorization. Methods: {", ".join(METHOD_NAMES)}."""

method_options = option_group(
    click.option(
        "--method",
        type=NameChoice(METHOD_NAMES),
        help="Estimator; --help-all lists them. [default: by type of reports and certificate]",
    ),
    click.option("--max-steps", type=COUNT, help="Largest number of steps."),
    click.option("--tolerance", type=float, metavar="T", help="Stop when no probability or truth changes by more."),
    heading="Method",
)
saved_fit_options = option_group(
    click.option("--start-from", type=FILE_PATH, help="Resume this saved fit."),
    click.option("--save-fit", type=FILE_PATH, help="Save the fit, to resume it with more reports."),
    heading="Saved fits",
)
channel_options = option_group(
    certificate_option,
    click.option("--no-certificate", is_flag=True, help="Noise model: none. Read reports as answers in any case."),
    accept_edited_option,
    heading="Channel and checks",
)
truth_options = option_group(
    truths_option,
    click.option("--prior", type=FILE_PATH, help="Public prior: label,probability."),
    click.option("--history", type=FILE_PATH, help="Workers of an earlier infer, or worker,correct,answers."),
    click.option("--gold", metavar="FILE", help="Known truths that guide the fit: task,truth; or dataset:NAME."),
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
        help="Leave the truth empty where its probability is smaller.",
    ),
    heading="Decisions",
)
output_options = option_group(
    click.option(
        "--out",
        type=FOLDER_PATH,
        help="Output folder. [default: that of REPORTS; for a data set, the current one]",
    ),
    click.option(
        "--format",
        "form",
        type=click.Choice(["csv", "parquet", "json", "jsonl"]),
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
        method, fits, resources: estimator, saved fits, and where the fit runs.
        gold, score: known truths that guide the fit, or score it.
        prior, history, costs: files.
        abstain_below: probability below which a truth stays empty.
        out: folder of the results; None for the default.
        form: format of the files.
    """

    reports: NamedReports
    method: Method
    fits: SavedFits
    resources: Resources
    gold: str | None
    score: str | None
    prior: Path | None
    history: Path | None
    costs: Path | None
    abstain_below: float | None
    out: Path | None
    form: Any

    @property
    def decides_by_cost_or_confidence(self) -> bool:
        """Whether truths are decided by cost or probability."""
        return (self.costs, self.abstain_below) != (None, None)


def _saved_fits(start_from: Path | None, save_fit: Path | None) -> SavedFits:
    from crowdveil.inference.inference import SavedFits

    return SavedFits(start_from=start_from, save=save_fit)


def _method(method: str | None, max_steps: int | None, tolerance: float | None) -> Method:
    from crowdveil.inference.methods import Method

    return Method(name=method, max_steps=max_steps, tolerance=tolerance)


@click.command(
    cls=Verb,
    values={
        **REPORTS,
        "method": _method,
        "fits": _saved_fits,
        "resources": resources_of,
        "asked": InferOptions,
    },
    example="crowdveil infer labels.csv --out found",
    details=DETAILS,
    main_options=("method", "labels", "scale", "truths", "gold", "score", "out", "memory", "as_json"),
    short_help="Infer the truth of each task, the quality of each worker.",
)
@sources_argument("reports")
@method_options
@channel_options
@alphabet_options
@kind_option
@duplicates_option(None)
@merge_labels_option
@column_options
@truth_options
@decision_options
@output_options
@saved_fit_options
@resource_options
def infer(asked: InferOptions) -> None:
    """Infer the truth of every task and the quality of every worker.

    REPORTS are files with the columns task, worker, and label (or value, for numbers), or exports of labelling tools;
    or dataset:NAME. certificate.json (the channel) is read from the same folder; without one, reports are read as
    answers. Writes truths.csv and workers.csv.

    \f
    Exports are recognised as by crowdveil import. A table with a column question is inferred question by question, into
    FOLDER/QUESTION. certificate.json (the channel, with the epsilon of a cell, which is a single answer, and
    participation) and crowd.json (all tasks and workers) are checked.

    Default methods: hierarchical-dawid-skene for labels, ordered or not; for numbers gaussian with a certificate and
    student-t without one; factorization-mean for sums.

    truths.csv has task, truth, confidence and a probability for each label; workers.csv has worker, ability or weight,
    a 90 % interval where there is one, and reports.

    With --truths (scores of judges, grades) a fit of its own runs in memory: methods, priors, histories, saved fits,
    --memory and --engine do not go with it.
    """
    from crowdveil.folder.crowd import is_sums_file
    from crowdveil.inference.inference import infer as infer_truths

    sources = asked.reports.sources
    if len(sources) == 1 and is_sums_file(Path(sources[0])):
        _infer_from_sums(Path(sources[0]), asked)
        return
    with open_sources(sources, asked.reports.layout) as source:
        with progress_bar("reading", unit="bytes") as bar:
            questions = source.by_question(progress=bar)
        if questions:
            _infer_questions(questions, asked)
            return
        ready = _read_evidence_and_check_files(source, asked)
        with progress_bar("inferring") as bar:
            inference = infer_truths(ready.evidence, **ready.infer_arguments(bar))
        _score_write_and_print_inference(inference, ready.files, asked, announced=ready.announced)


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
        announced: warning that was printed; None for none.
        steps: number of steps of each fit; None if it is unknown.
    """

    evidence: Evidence
    files: _CheckedOutputs
    asked: InferOptions
    announced: str | None
    steps: int | None

    def infer_arguments(self, bar: Bar | None) -> dict[str, Any]:
        """Return the keyword arguments of the library's `infer`, with steps counted on a bar if it is shown."""
        names = ("method", "gold", "prior", "history", "fits", "resources")
        progress = None if bar is None else _progress_over_fits(bar, self.steps)
        return {name: getattr(self.asked, name) for name in names} | {"progress": progress}


def _progress_over_fits(bar: Bar, steps: int | None) -> Callable[[int, float], None]:
    """Return a progress function that counts the steps of all fits of an inference on one bar.

    Args:
        bar: is shown.
        steps: number of steps of each fit; None if it is unknown.
    """
    before = last = 0

    def show(number: int, _: float) -> None:
        nonlocal before, last
        before, last = before + (last if number <= last else 0), number
        bar(before + number, None if steps is None else before + steps)

    return show


def _infer_questions(sources: dict[str, AnswerSource], asked: InferOptions) -> None:
    """Read all questions, infer each by itself, write each to a folder of its own, print one table."""
    from crowdveil.folder.answers import default_output_folder, hint_if_labels_look_like_grades
    from crowdveil.folder.estimate_files import folder_name_of_each_question, warning_of_earlier_truths_kept
    from crowdveil.inference.inference import infer as infer_truths
    from crowdveil.release.conclusion import verdict

    if stated_options().intersection(FOR_ONE_QUESTION):
        raise click.UsageError(
            f"{', '.join(map(flag_of, FOR_ONE_QUESTION))} go with one question of several: choose it with --question."
        )
    folder = asked.out or default_output_folder(next(iter(sources.values())))
    sources = _questions_with_labels(sources, asked.reports.options)
    folders = {name: folder / safe for name, safe in folder_name_of_each_question(sources).items()}
    ready = {
        name: _read_evidence_and_check_files(source, _options_of_question(asked, name, folders[name]))
        for name, source in sources.items()
    }
    inferred = {}
    for name, one in ready.items():
        with progress_bar("inferring") as bar:
            inferred[name] = infer_truths(one.evidence, **one.infer_arguments(bar))
    summaries = []
    for name, one in ready.items():
        inference = _score_decide_and_write(inferred[name], one.files.outputs, one.asked)
        summary = inference_as_json_data(inference, form=asked.form) | one.files.paths
        summary["warnings"] += hint_if_labels_look_like_grades(one.evidence.reports)
        named = {"question": name, "folder": str(folders[name])}
        summaries.append(named | summary | {"verdict": verdict(inference.estimate, one.evidence)})
    data = questions_data(summaries, warning_of_earlier_truths_kept(folder, folders.values()))
    rows = [*warning_rows(data), *(row for one in data["questions"] for row in question_rows(one))]
    print_result(data, [*rows, *row_of_replaced_files(data["replaced"])])


def _options_of_question(asked: InferOptions, question: str, out: Path) -> InferOptions:
    """Return the options of one question of several, with its own folder."""
    reports = replace(asked.reports, layout=replace(asked.reports.layout, question=question))
    return replace(asked, reports=reports, out=out)


def _questions_with_labels(sources: dict[str, AnswerSource], reading: EvidenceOptions) -> dict[str, AnswerSource]:
    """Return the questions that have labels, and warn of the others; all if labels are stated or none has any."""
    doubts = {name: source.why_answers_are_hardly_labels for name, source in sources.items()}
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
    from crowdveil.folder.evidence import evidence_files
    from crowdveil.inference.inference import infer_from_sums

    if stated_options().intersection(NOT_OF_SUMS):
        raise click.UsageError("Sums go with --method, --score, --accept-edited, --out and --json only.")
    inference = infer_from_sums(sums, asked.method, accept_edited=asked.reports.options.accept_edited)
    _score_write_and_print_inference(
        inference, _checked_output_files(asked, sums.parent, [*evidence_files(sums), asked.score]), asked
    )


def _read_evidence_and_check_files(source: AnswerSource, asked: InferOptions) -> _PreparedInference:
    """Read the reports of a source and check the files of the result, or refuse."""
    from crowdveil.folder.answers import default_output_folder
    from crowdveil.folder.evidence import evidence_files, read_evidence
    from crowdveil.inference.inference import refuse_if_no_scored_task
    from crowdveil.inference.methods import (
        estimator_of_method_or_default,
        warning_if_channel_unread,
        warning_if_fit_is_slow,
    )

    folder, reading = default_output_folder(source) if asked.out is None else asked.out, asked.reports.options
    with progress_bar("reading", unit="bytes") as bar:
        evidence = read_evidence(source, reading, progress=bar)
    if asked.score is not None:
        refuse_if_no_scored_task(evidence, asked.score)
    named = (reading.certificate, asked.prior, asked.history, asked.gold, asked.score, asked.costs)
    files = _checked_output_files(asked, folder, [*evidence_files(source), *named])
    built = estimator_of_method_or_default(asked.method, evidence)
    announced = warning_if_channel_unread(evidence, type(built))
    for warning in (announced, warning_if_fit_is_slow(evidence.reports, built.name)):
        if warning is not None:
            print_warning(warning)
    steps = None if asked.fits.start_from else built.known_steps
    return _PreparedInference(evidence=evidence, files=files, asked=asked, announced=announced, steps=steps)


def _checked_output_files(asked: InferOptions, folder: Path, inputs: list[Any]) -> _CheckedOutputs:
    """Return the outputs in a folder and the saved fit, or refuse before the work begins."""
    from crowdveil.em.saved_fit import fit_outputs
    from crowdveil.folder.estimate_files import estimate_outputs

    fits, outputs = asked.fits, estimate_outputs(asked.out or folder, asked.form)
    written, replaced = (
        outputs.paths,
        outputs.check_and_list_replaced_files(inputs=[*inputs, fits.start_from, fits.save]),
    )
    if fits.save is not None:
        written.append(fits.save)
        replaced += fit_outputs(fits.save).check_and_list_replaced_files(inputs=inputs)
    return _CheckedOutputs(outputs=outputs, paths={"files": written, "replaced": replaced})


def _score_write_and_print_inference(
    inference: Inference, files: _CheckedOutputs, asked: InferOptions, *, announced: str | None = None
) -> None:
    """Score, write, print; a warning that was announced is not printed again."""
    from crowdveil.folder.estimate_files import warning_of_earlier_truths_kept

    inference = _score_decide_and_write(inference, files.outputs, asked)
    decisions = (
        decisions_data(inference.estimate, asked.costs, asked.abstain_below)
        if asked.decides_by_cost_or_confidence
        else None
    )
    data = inference_as_json_data(inference, form=asked.form) | {"decisions": decisions}
    data["warnings"] += warning_of_earlier_truths_kept(files.outputs.folder)
    print_written(data, inference_rows(data, announced), **files.paths)


def _score_decide_and_write(inference: Inference, outputs: Outputs, asked: InferOptions) -> Inference:
    """Write and return the inference with its score and decisions; the record says how the reports were read."""
    from crowdveil.folder.estimate_files import outdated_output_notes, write_estimate
    from crowdveil.inference.inference import with_decisions, with_gold_score

    inference = inference if asked.score is None else with_gold_score(inference, asked.score)
    if asked.decides_by_cost_or_confidence:
        inference = with_decisions(inference, costs=asked.costs, abstain_below=asked.abstain_below, gold=asked.score)
    digest, outdated = inference.reports_sha256, outdated_output_notes(outputs.folder, inference.reports_sha256)
    record = {"reports_sha256": digest, "reading": asked.reports.json_with_relative_paths_or_empty(outputs.folder)}
    with progress_bar("writing") as bar:
        write_estimate(
            outputs.folder, inference.estimate, form=asked.form, progress=bar, notes=inference.notes, **record
        )
    return replace(inference, notes=(*inference.notes, *outdated))
