"""`crowdveil infer`: truths of tasks and quality of workers from reports."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.data.sources import SOURCE_TEXT, column_options, layout_of, open_sources, sources_argument
from crowdveil.cli.display import (
    Bar,
    format_number,
    print_result,
    print_warning,
    print_written,
    progress_bar,
    replaced_rows,
    truncated_list,
    warning_rows,
)
from crowdveil.cli.options import (
    COUNT,
    PATH,
    Given,
    NameChoice,
    accept_edited_option,
    alphabet_options,
    duplicates_option,
    json_option,
    kind_option,
    merge_labels_option,
    numbers,
    options,
    resource_options,
    resources_of,
    stated_options,
)
from crowdveil.cli.results.reading import reading_of, truths_option
from crowdveil.cli.verb import Verb
from crowdveil.registry import METHOD_NAMES

if TYPE_CHECKING:
    from crowdveil.data.sources.answer_source import AnswerSource
    from crowdveil.data.sources.layout import Layout
    from crowdveil.em.estimate import Estimate
    from crowdveil.files.atomic_write import Outputs
    from crowdveil.folder.evidence import Evidence, Reading
    from crowdveil.inference.inference import Inference, Resources, SavedFits
    from crowdveil.inference.methods import Method

SHOWN_TASKS = 5
NORMAL_PRIOR_METHOD = "gaussian"
ENDS = {
    "tolerance": "converged",
    "settled": "more would change less than 1 truth in 10,000",
    "set": "the method's own number",
    "limit": "NOT CONVERGED",
}
"""Why a fit ended, by `Estimate.stopped`."""
FOR_ONE_QUESTION = ("truths", "gold", "score", "prior", "history", "costs", "start_from", "save_fit")
"""Options that do not go with several questions."""
NOT_OF_SUMS = (
    *("certificate", "no_certificate", "prior", "history", "gold", "truths", "costs", "abstain_below", "labels"),
    *("scale", "ordered", "kind", "merge_labels", "start_from", "save_fit", "memory", "engine", "address"),
)
"""Options that do not go with sums."""
OF_A_QUESTION = (
    *("question", "folder", "method", "reports", "tasks", "workers", "steps", "converged", "stopped"),
    *("baseline", "verdict"),
)
"""What is printed of each of several questions."""
SIMULATION_MARK = re.compile(r"SIMULATION from seed (\d+): no privacy")
"""Mark of a simulation in a certificate."""
HELP = """Infer the truth of every task and the quality of every worker.

REPORTS are files with the columns task, worker, and label (or value, for numbers), or exports of labelling tools; or
dataset:NAME. certificate.json (the channel) is read from the same folder; without one, reports are read as answers.
Writes truths.csv and workers.csv."""
EXAMPLE = "crowdveil infer labels.csv --out found"
DETAILS = f"""REPORTS: {SOURCE_TEXT}. They may also be gzipped, a folder of encoded blocks, or the sums.json of
matrix-factorization. Exports are recognised as by crowdveil import. A table with a column question is inferred question
by question, into DIR/QUESTION. certificate.json (the channel, with the epsilon of a cell, which is a single answer, and
participation) and crowd.json (all tasks and workers) are checked.

Methods: {", ".join(METHOD_NAMES)}. Default: hierarchical-dawid-skene for labels, ordered or not; for numbers
gaussian with a certificate and student-t without one; factorization-mean for sums.

truths.csv has task, truth, confidence and a probability for each label; workers.csv has worker, ability or weight, a
90 % interval where there is one, and reports.

With --truths (scores of judges, grades) a fit of its own runs in memory: methods, priors, histories, saved fits,
--memory and --engine do not go with it."""

method_options = options(
    click.option(
        "--method",
        type=NameChoice(METHOD_NAMES),
        metavar="NAME",
        help="Estimator; --help-all lists them. [default: by type of reports and certificate]",
    ),
    click.option("--max-steps", type=COUNT, metavar="N", help="Largest number of steps."),
    click.option("--tolerance", type=float, metavar="T", help="Stop when no probability or truth changes by more."),
    click.option("--prior-mean", type=float, metavar="M", help="gaussian: mean of a public normal prior of truths."),
    click.option("--prior-deviation", type=float, metavar="D", help="Its standard deviation. [default: learned]"),
    click.option("--sigmas", metavar="S,S,...", help="gaussian: public standard deviations of workers."),
    heading="Method",
)
saved_fit_options = options(
    click.option("--start-from", type=PATH, metavar="FIT", help="Resume this saved fit."),
    click.option("--save-fit", type=PATH, metavar="FIT", help="Save the fit, to resume it with more reports."),
    heading="Saved fits",
)
channel_options = options(
    click.option("--certificate", type=PATH, metavar="FILE", help="Certificate in another folder than the reports."),
    click.option("--no-certificate", is_flag=True, help="Noise model: none. Read reports as answers in any case."),
    accept_edited_option,
    click.option("--verify", is_flag=True, help="Check all encoded blocks first, not each one on first use."),
    heading="Channel and checks",
)
truth_options = options(
    truths_option,
    click.option("--prior", type=PATH, metavar="FILE", help="Public prior: label,probability."),
    click.option(
        "--history", type=PATH, metavar="FILE", help="Workers of an earlier infer, or worker,correct,answers."
    ),
    click.option("--gold", metavar="FILE", help="Known truths that guide the fit: task,truth; or dataset:NAME."),
    click.option(
        "--score", metavar="FILE", help="Known truths that only score the result: task,truth; or dataset:NAME."
    ),
    heading="Known truths",
)
decision_options = options(
    click.option("--costs", type=PATH, metavar="FILE", help="Decide by expected cost: truth,decision,cost."),
    click.option(
        "--abstain-below",
        type=click.FloatRange(0, 1),
        metavar="P",
        help="Leave the truth empty where its probability is smaller.",
    ),
    heading="Decisions",
)
output_options = options(
    click.option(
        "--out",
        type=PATH,
        metavar="DIR",
        help="Output folder. [default: that of REPORTS; for a data set, the current one]",
    ),
    click.option(
        "--format",
        "form",
        type=click.Choice(["csv", "parquet", "json", "jsonl"]),
        default="csv",
        show_default=True,
        help="Format of the output files.",
    ),
    json_option,
    heading="Output",
)


@dataclass(frozen=True, kw_only=True)
class InferOptions:
    """What `infer` is asked for.

    Attributes:
        sources: names of the reports.
        layout, reading: how they are read.
        method, fits, resources: estimator, saved fits, and where the fit runs.
        gold, score: known truths that guide the fit, or score it.
        prior, history, costs: files.
        abstain_below: probability below which a truth stays empty.
        verify: whether all encoded blocks are checked first.
        out: folder of the results; None for the default.
        form: format of the files.
    """

    sources: tuple[str, ...]
    layout: Layout
    reading: Reading
    method: Method
    fits: SavedFits
    resources: Resources
    gold: str | None
    score: str | None
    prior: Path | None
    history: Path | None
    costs: Path | None
    abstain_below: float | None
    verify: bool
    out: Path | None
    form: Any

    @property
    def decides(self) -> bool:
        """Whether truths are decided by cost or probability."""
        return (self.costs, self.abstain_below) != (None, None)


def _options(sources: tuple[str, ...], given: Given) -> InferOptions:
    """Return the options; those that contradict one another end with wrong usage."""
    from crowdveil.inference.inference import SavedFits

    if given["certificate"] is not None and given["no_certificate"]:
        raise click.UsageError("Give --certificate or --no-certificate, not both.")
    names = ("gold", "score", "prior", "history", "costs", "abstain_below", "verify", "out", "form")
    return InferOptions(
        sources=sources,
        layout=layout_of(given),
        reading=reading_of(given),
        method=_method(given),
        fits=SavedFits(start_from=given["start_from"], save=given["save_fit"]),
        resources=resources_of(given),
        **{name: given[name] for name in names},
    )


def _method(given: Given) -> Method:
    from crowdveil.inference.methods import Method

    method, sigmas = given["method"], given["sigmas"]
    normal = (given["prior_mean"], given["prior_deviation"])
    if normal != (None, None) and (None in normal or method not in (None, NORMAL_PRIOR_METHOD)):
        raise click.UsageError(
            f"--prior-mean and --prior-deviation go together, and with --method {NORMAL_PRIOR_METHOD} only."
        )
    if sigmas is not None and method not in (None, NORMAL_PRIOR_METHOD):
        raise click.UsageError(f"--sigmas goes with --method {NORMAL_PRIOR_METHOD} only.")
    return Method(
        name=method,
        max_steps=given["max_steps"],
        tolerance=given["tolerance"],
        prior_mean=normal[0],
        prior_deviation=normal[1],
        sigmas=None if sigmas is None else numbers(sigmas, "--sigmas"),
    )


@click.command(
    cls=Verb,
    help=HELP,
    example=EXAMPLE,
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
def infer(reports: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Read, infer, write, print; see `HELP`."""
    from crowdveil.folder.crowd import is_sums

    asked = _options(reports, given)
    if len(reports) == 1 and is_sums(Path(reports[0])):
        _infer_from_sums(Path(reports[0]), asked, as_json)
        return
    with open_sources(reports, asked.layout) as source:
        with progress_bar("reading", unit="bytes") as bar:
            questions = source.by_question(progress=bar)
        if questions:
            _infer_questions(questions, asked, as_json)
            return
        evidence, outputs, files, announced, steps = _read(source, asked)
        with progress_bar("inferring") as bar:
            inference = _library_call(asked, bar, steps)(evidence)
        _finish(inference, outputs, files, announced, asked, as_json)


def _library_call(asked: InferOptions, bar: Bar | None, steps: int | None) -> Callable[..., Inference]:
    """Return the call that infers truths and workers from evidence."""
    from crowdveil.inference.inference import infer as infer_truths

    names = ("method", "gold", "prior", "history", "fits", "resources")
    settings = {name: getattr(asked, name) for name in names}
    return partial(infer_truths, **settings, progress=None if bar is None else _counted(bar, steps))


def _counted(bar: Bar, steps: int | None) -> Callable[[int, float], None]:
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


def _infer_questions(sources: dict[str, AnswerSource], asked: InferOptions, as_json: bool) -> None:
    """Read all questions, infer each by itself, write each to a folder of its own, print one table."""
    from crowdveil.folder.answers import default_folder, grade_notes
    from crowdveil.folder.question_folders import question_folders
    from crowdveil.folder.truths import kept_notes
    from crowdveil.release.conclusion import verdict

    if stated_options().intersection(FOR_ONE_QUESTION):
        options_named = ", ".join(f"--{name.replace('_', '-')}" for name in FOR_ONE_QUESTION)
        raise click.UsageError(f"{options_named} go with one question of several: choose it with --question.")
    folder = asked.out or default_folder(next(iter(sources.values())))
    sources = _with_labels(sources, asked)
    folders = {name: folder / safe for name, safe in question_folders(sources).items()}
    each = {
        name: replace(asked, out=path, layout=replace(asked.layout, question=name)) for name, path in folders.items()
    }
    read = {name: _read(source, each[name]) for name, source in sources.items()}
    inferred = {}
    for name, (evidence, *_, steps) in read.items():
        with progress_bar("inferring") as bar:
            inferred[name] = _library_call(asked, bar, steps)(evidence)
    found = []
    for name, (evidence, outputs, files, *_) in read.items():
        inference = _write(inferred[name], outputs, each[name])
        summary = _summary(inference, asked) | files | {"verdict": verdict(inference.estimate, evidence)}
        summary["warnings"] += grade_notes(evidence.reports)
        found.append({"question": name, "folder": str(folders[name])} | summary)
    data: dict[str, Any] = {
        "warnings": [
            *kept_notes(folder, folders.values()),
            *(f"{one['question']}: {text}" for one in found for text in one["warnings"]),
        ],
        "files": [path for one in found for path in one["files"]],
        "replaced": [path for one in found for path in one["replaced"]],
        "questions": [{name: one[name] for name in OF_A_QUESTION} for one in found],
    }
    rows = [*warning_rows(data), *(row for one in data["questions"] for row in _question_rows(one))]
    print_result(data, [*rows, *replaced_rows(data["replaced"])], as_json=as_json)


def _with_labels(sources: dict[str, AnswerSource], asked: InferOptions) -> dict[str, AnswerSource]:
    """Return the questions that have labels, and warn of the others; all if labels are stated or none has any."""
    doubts = {name: source.doubt for name, source in sources.items()}
    if all(doubts.values()) or asked.reading.kind is not None or asked.reading.alphabet is not None:
        return sources
    for name, doubt in doubts.items():
        if doubt:
            print_warning(
                f"Question {name!r} is left out: {doubt}. To infer it, state its labels or kind: --question "
                f"{shlex.quote(name)} with --labels or --kind numeric."
            )
    return {name: source for name, source in sources.items() if not doubts[name]}


def _question_rows(one: dict[str, Any]) -> list[tuple[str, str]]:
    crowd = f"{one['reports']:,} reports from {one['workers']:,} workers on {one['tasks']:,} tasks"
    fit = f"{one['method']}; {one['steps']:,} steps, {ENDS[one['stopped']]}; written to {one['folder']}"
    return [(one["question"], f"{crowd}; {fit}"), ("", f"{one['baseline']['sentence']} Verdict: {one['verdict']}")]


def _infer_from_sums(sums: Path, asked: InferOptions, as_json: bool) -> None:
    """Infer from sums, write, print."""
    from crowdveil.folder.evidence import evidence_files
    from crowdveil.folder.truths import estimate_outputs
    from crowdveil.inference.inference import infer_from_sums

    if stated_options().intersection(NOT_OF_SUMS):
        raise click.UsageError("Sums go with --method, --score, --accept-edited, --out and --json only.")
    inference = infer_from_sums(sums, asked.method, accept_edited=asked.reading.accept_edited)
    outputs = estimate_outputs(asked.out or sums.parent, asked.form)
    files = _checked(outputs, asked.fits, [*evidence_files(sums), asked.score])
    _finish(inference, outputs, files, None, asked, as_json)


def _read(
    source: AnswerSource, asked: InferOptions
) -> tuple[Evidence, Outputs, dict[str, list[str]], str | None, int | None]:
    """Return the evidence, the outputs with their paths, the printed warning and the number of steps, or refuse."""
    from crowdveil.folder.answers import default_folder
    from crowdveil.folder.evidence import evidence_files, read_evidence
    from crowdveil.folder.truths import estimate_outputs
    from crowdveil.inference.inference import check_score
    from crowdveil.inference.methods import build_estimator, slow_fit, unread_channel

    outputs = estimate_outputs(asked.out or default_folder(source), asked.form)
    with progress_bar("reading", unit="bytes") as bar:
        evidence = read_evidence(source, asked.reading, verify=asked.verify, progress=bar)
    if asked.score is not None:
        check_score(evidence, asked.score)
    named = (asked.reading.certificate, asked.prior, asked.history, asked.gold, asked.score, asked.costs)
    files = _checked(outputs, asked.fits, [*evidence_files(source), *named])
    built = build_estimator(asked.method, evidence)
    estimator = type(built)
    announced = unread_channel(evidence, estimator)
    for warning in (announced, slow_fit(evidence.reports, estimator.name)):
        if warning is not None:
            print_warning(warning)
    return evidence, outputs, files, announced, None if asked.fits.start_from else built.known_steps


def _finish(
    inference: Inference,
    outputs: Outputs,
    files: dict[str, list[str]],
    announced: str | None,
    asked: InferOptions,
    as_json: bool,
) -> None:
    """Score, write, print."""
    from crowdveil.folder.truths import kept_notes

    inference = _write(inference, outputs, asked)
    data = _summary(inference, asked) | _decisions(inference.estimate, asked) | files
    data["warnings"] += kept_notes(outputs.folder)
    print_written(data, _rows(data, announced), as_json=as_json)


def _write(inference: Inference, outputs: Outputs, asked: InferOptions) -> Inference:
    """Write and return the inference with its score and decisions; the record says how the reports were read."""
    from crowdveil.folder.recorded_reading import RecordedReading
    from crowdveil.folder.truths import outdated_notes, write_estimate

    judged = _judged(inference, asked)
    judged = replace(judged, notes=(*judged.notes, *outdated_notes(outputs.folder, inference.reports_sha256)))
    recorded = RecordedReading(sources=asked.sources, layout=asked.layout, options=asked.reading)
    record = {"reports_sha256": inference.reports_sha256, "reading": recorded.to_json(outputs.folder)}
    with progress_bar("writing") as bar:
        write_estimate(outputs.folder, judged.estimate, form=asked.form, progress=bar, **record)
    return judged


def _checked(outputs: Outputs, fits: SavedFits, inputs: list[Any]) -> dict[str, list[str]]:
    """Return the paths to be written and replaced, or refuse before the work begins."""
    from crowdveil.em.saved_fit import fit_outputs

    written, replaced = outputs.paths, outputs.check(inputs=[*inputs, fits.start_from, fits.save])
    if fits.save is not None:
        written.append(fits.save)
        replaced += fit_outputs(fits.save).check(inputs=inputs)
    return {"files": list(map(str, written)), "replaced": list(map(str, replaced))}


def _summary(inference: Inference, asked: InferOptions) -> dict[str, Any]:
    estimate, panel, check = inference.estimate, inference.panel, inference.estimate.cross_validation
    return {
        "method": estimate.method,
        "channel_used": estimate.channel_used,
        "noise_model": inference.noise_model,
        "simulation": inference.simulation,
        "reports": int(estimate.reports_per_worker.sum()),
        "tasks": len(estimate.tasks),
        "workers": len(estimate.worker_names),
        "steps": estimate.steps,
        "steps_before": inference.steps_before,
        "converged": estimate.converged,
        "stopped": estimate.stopped,
        "log_likelihood": estimate.log_likelihoods[-1] if estimate.log_likelihoods else None,
        "gold_used": estimate.gold_used,
        "gold_unknown": estimate.gold_unknown,
        "gold": inference.gold_line,
        "cross_validation": None if check is None else asdict(check) | {"sentence": str(check)},
        "baseline": asdict(estimate.baseline) | {"sentence": str(estimate.baseline)},
        "score": None if inference.score is None else asdict(inference.score) | {"sentence": str(inference.score)},
        "truths": truncated_list(_first_truths(estimate), len(estimate.tasks)),
        "quality": _quality(estimate),
        "confidence": inference.confidence_note,
        "history": inference.history_note,
        "panel": None if panel is None else asdict(panel) | {"sentences": panel.sentences},
        "warnings": [*inference.notes, *_formulas(estimate, asked)],
    }


def _formulas(estimate: Estimate, asked: InferOptions) -> tuple[str, ...]:
    """Return the warning of names that a spreadsheet reads as formulas, for CSV."""
    from crowdveil.data.report_tables import formula_notes

    if asked.form != "csv":
        return ()
    return formula_notes(estimate.alphabet.names if estimate.alphabet else (), estimate.tasks, estimate.worker_names)


def _judged(inference: Inference, asked: InferOptions) -> Inference:
    """Return the inference with its score and decisions, if requested."""
    from crowdveil.inference.inference import decided, scored

    inference = inference if asked.score is None else scored(inference, asked.score)
    if not asked.decides:
        return inference
    return decided(inference, costs=asked.costs, abstain_below=asked.abstain_below, gold=asked.score)


def _decisions(estimate: Estimate, asked: InferOptions) -> dict[str, Any]:
    """Return the settings of decisions, the number of undecided tasks, and the mean expected cost; None by default."""
    if not asked.decides:
        return {"decisions": None}
    undecided, expected = estimate.undecided, estimate.without_gold.expected_cost
    return {
        "decisions": {
            "costs": None if asked.costs is None else str(asked.costs),
            "abstain_below": asked.abstain_below,
            "undecided": 0 if undecided is None else int(undecided.sum()),
            "expected_cost": float(expected.mean()) if expected is not None and len(expected) else None,
        }
    }


def _first_truths(estimate: Estimate) -> list[dict[str, Any]]:
    shown = estimate.part(0, SHOWN_TASKS)
    columns = [column.tolist() for column in (shown.tasks, shown.truth, shown.reports_per_task)]
    marks = [False] * len(columns[0]) if shown.gold is None else shown.gold.tolist()
    certain = [None] * len(columns[0]) if shown.confidence is None else shown.confidence.tolist()
    rows = zip(*columns, certain, marks, strict=True)
    return [
        {
            "task": str(task),
            "truth": None if truth == "" else truth,
            "confidence": sure,
            "reports": reports,
            "gold": gold,
        }
        for task, truth, reports, sure, gold in rows
    ]


def _quality(estimate: Estimate) -> dict[str, Any]:
    """Return name and quantiles of worker quality, and the median width of the 90 % intervals; None if unknown."""
    import numpy as np

    quality = estimate.workers.quality
    known = quality[np.isfinite(quality)]
    lowest, median, highest = np.quantile(known, (0, 0.5, 1)).tolist() if known.size else (None, None, None)
    low, high = estimate.workers.ability_low, estimate.workers.ability_high
    width = None if low is None or high is None or not len(low) else float(np.median(high - low))
    return {
        "name": estimate.workers.quality_name,
        "lowest": lowest,
        "median": median,
        "highest": highest,
        "interval_width": width,
        "unknown": int(quality.size - known.size),
    }


def _rows(data: dict[str, Any], announced: str | None) -> list[tuple[str, str]]:
    crowd = f"{data['reports']:,} from {data['workers']:,} workers on {data['tasks']:,} tasks"
    gold = f"{data['gold_used']:,} tasks guided the fit, {data['gold_unknown']:,} of unknown tasks were skipped"
    return [
        *[("warning", text) for text in data["warnings"] if text != announced],
        ("method", data["method"]),
        ("noise model", SIMULATION_MARK.sub(r"simulation only: no privacy (seed \1)", data["noise_model"])),
        ("reports", crowd),
        ("steps", _steps(data)),
        *([] if data["history"] is None else [("history", data["history"])]),
        *([("gold", gold)] if data["gold_used"] or data["gold_unknown"] else []),
        *([] if data["gold"] is None else [("", data["gold"])]),
        *([] if data["cross_validation"] is None else [("", data["cross_validation"]["sentence"])]),
        ("baseline", data["baseline"]["sentence"]),
        *([] if data["score"] is None else [("score", data["score"]["sentence"])]),
        ("truths", f"first {data['truths']['shown']:,} of {data['truths']['of']:,}"),
        *[("", _truth_line(truth)) for truth in data["truths"]["items"]],
        *([] if data["confidence"] is None else [("confidence", data["confidence"])]),
        ("workers", _quality_line(data["quality"])),
        *[("panel", text) for text in (data["panel"] or {"sentences": ()})["sentences"]],
    ]


def _steps(data: dict[str, Any]) -> str:
    before = f"; {data['steps_before']:,} in other fits, for the dependence of errors or combined by gold"
    return f"{data['steps']:,}, {ENDS[data['stopped']]}" + (before if data["steps_before"] else "")


def _truth_line(truth: dict[str, Any]) -> str:
    value = truth["truth"]
    text = "undecided" if value is None else value if isinstance(value, str) else format_number(value)
    confidence = "" if truth["confidence"] is None else f", confidence {truth['confidence']:.4f}"
    return f"{truth['task']}: {text} ({truth['reports']:,} reports{', gold' if truth['gold'] else confidence})"


def _quality_line(quality: dict[str, Any]) -> str:
    if quality["median"] is None:
        return f"{quality['name']}: unknown, since these reports do not distinguish workers"
    quantiles = ", ".join(f"{name} {format_number(quality[name])}" for name in ("lowest", "median", "highest"))
    width = quality["interval_width"]
    intervals = "" if width is None else f"; median width of the 90 % intervals {format_number(width)}"
    return f"{quality['name']}: {quantiles}; {quality['unknown']:,} unknown{intervals}"
