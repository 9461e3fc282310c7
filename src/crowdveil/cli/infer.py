"""`crowdveil infer`: what reports say about tasks and workers."""

from __future__ import annotations

from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.display import number, progress_bar, replaced_rows, show, warn
from crowdveil.cli.json_output import shortened
from crowdveil.cli.options import (
    COUNT,
    PATH,
    accept_edited_option,
    alphabet_options,
    as_one,
    duplicates_option,
    json_option,
    merge_labels_option,
    numbers,
    resource_options,
)
from crowdveil.registry import METHOD_NAMES

if TYPE_CHECKING:
    from crowdveil.channels.alphabet import Alphabet
    from crowdveil.data.ingest.validation import Duplicates
    from crowdveil.data.read_options import Kind
    from crowdveil.em.estimate import Estimate
    from crowdveil.workflow import Evidence, Inference, KeptFits, Method, Outputs, Resources
    from crowdveil.workflow.export import TableForm

SHOWN = 5
FOR_NORMAL = "gaussian"
HELP = """Infer the truth of every task and the quality of every worker.

REPORTS is a CSV (also gzipped) or Parquet file with the columns task, worker, and label (or value, for numbers), a
folder of encoded blocks, the sums.json of matrix-factorization, or dataset:NAME (public answers). Beside it (or in the
folder), certificate.json (the channel that reports went through, with its epsilon per cell and its participation) and
crowd.json (all tasks and workers) are found and checked. With a certificate the default method reads the channel; a
method that cannot is announced before it starts. Without a certificate, reports are read as if they were answers.

Writes truths.csv (task, truth, confidence, and a probability for each label) and workers.csv (worker, ability or
weight, with the ends of a 90 % interval where there is one, reports)."""


def _method(
    *,
    method: str | None,
    max_steps: int | None,
    tolerance: float | None,
    prior_mean: float | None,
    prior_deviation: float | None,
    sigmas: str | None,
) -> Method:
    from crowdveil.workflow import Method

    normal = (prior_mean, prior_deviation)
    if normal != (None, None) and (None in normal or method not in (None, FOR_NORMAL)):
        raise click.UsageError(f"--prior-mean and --prior-deviation go together, and with --method {FOR_NORMAL} only.")
    if sigmas is not None and method not in (None, FOR_NORMAL):
        raise click.UsageError(f"--sigmas goes with --method {FOR_NORMAL} only.")
    return Method(
        name=method,
        max_steps=max_steps,
        tolerance=tolerance,
        prior_mean=prior_mean,
        prior_deviation=prior_deviation,
        sigmas=None if sigmas is None else numbers(sigmas, "--sigmas"),
    )


method_options = as_one(
    "method",
    _method,
    click.option(
        "--method",
        type=click.Choice(METHOD_NAMES),
        metavar="NAME",
        help=f"How to infer: {', '.join(METHOD_NAMES)}. "
        "[default: with a certificate gaussian for a scale, ordinal-dawid-skene for three ordered labels or more, "
        "dawid-skene for other labels; without one dawid-skene for labels, weighted-mean for numbers; profile-sum for "
        "sums]",
    ),
    click.option("--max-steps", type=COUNT, metavar="N", help="Largest number of steps."),
    click.option("--tolerance", type=float, metavar="T", help="Stop when no probability or truth moves by more."),
    click.option("--prior-mean", type=float, metavar="M", help="gaussian: public normal prior of the truths, its mean"),
    click.option("--prior-deviation", type=float, metavar="D", help="and its standard deviation. [default: learned]"),
    click.option("--sigmas", metavar="S,S,...", help="gaussian: public deviations that workers may have."),
)


def _kept(*, start_from: Path | None, save_fit: Path | None) -> KeptFits:
    from crowdveil.workflow import KeptFits

    return KeptFits(start_from=start_from, save=save_fit)


kept_options = as_one(
    "kept",
    _kept,
    click.option("--start-from", type=PATH, metavar="FIT", help="Go on from this saved fit."),
    click.option(
        "--save-fit",
        type=PATH,
        metavar="FIT",
        help="Save the fit, to go on from with more reports.",
    ),
)


@click.command(help=HELP, short_help="Infer the truth of every task and the quality of every worker.")
@click.argument("reports", type=PATH)
@method_options
@click.option("--certificate", type=PATH, metavar="FILE", help="If it is not beside the reports.")
@click.option("--no-certificate", is_flag=True, help="Read reports as if they were answers, whatever there is.")
@alphabet_options
@click.option(
    "--kind", type=click.Choice(["categorical", "numeric"]), help="What reports are, if the column does not say it."
)
@duplicates_option(None)
@merge_labels_option
@click.option("--prior", type=PATH, metavar="FILE", help="Public prior: label,probability.")
@click.option("--gold", metavar="FILE", help="Known truths that guide the fit: task,truth; or dataset:NAME.")
@click.option("--score", metavar="FILE", help="Known truths that only score the result: task,truth; or dataset:NAME.")
@click.option(
    "--out",
    type=PATH,
    metavar="DIR",
    help="Where files are written. [default: beside REPORTS; of a data set, here]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet"]),
    default="csv",
    show_default=True,
    help="Of the files that are written.",
)
@kept_options
@click.option("--verify", is_flag=True, help="Check all of the encoded blocks first, not each when it is first used.")
@accept_edited_option
@resource_options
@json_option
def infer(
    reports: Path,
    method: Method,
    certificate: Path | None,
    no_certificate: bool,
    alphabet: Alphabet | None,
    kind: Kind | None,
    duplicates: Duplicates | None,
    merge_labels: bool,
    prior: Path | None,
    gold: str | None,
    score: str | None,
    out: Path | None,
    form: TableForm,
    kept: KeptFits,
    verify: bool,
    accept_edited: bool,
    resources: Resources,
    as_json: bool,
) -> None:
    """Read, infer, write, print; see `HELP`."""
    from crowdveil import workflow

    if certificate is not None and no_certificate:
        raise click.UsageError("Give --certificate or --no-certificate, not both.")
    outputs = workflow.estimate_outputs(out or workflow.default_folder(reports), form)
    inputs = [*workflow.evidence_files(reports), certificate, prior, gold, score]
    files = _checked(outputs, kept, inputs)
    if reports.suffix == ".json":
        read = (certificate, no_certificate, alphabet, kind, merge_labels, prior, gold)
        _refuse_for_sums(*read, *astuple(kept), *_set(resources))
        inference = workflow.infer_from_sums(reports, method, accept_edited=accept_edited)
    else:
        evidence = workflow.read_evidence(
            reports,
            certificate=certificate,
            use_certificate=not no_certificate,
            alphabet=alphabet,
            kind=kind,
            duplicates=duplicates,
            merge_labels=merge_labels,
            verify=verify,
            accept_edited=accept_edited,
        )
        if score is not None:
            workflow.check_score(evidence, score)
        inference = _fitted(evidence, method, gold, prior, kept, resources)
    inference = inference if score is None else workflow.scored(inference, score)
    workflow.write_estimate(outputs.folder, inference.estimate, form=form)
    data = _summary(inference) | files
    show(data, _rows(data), as_json=as_json)


def _fitted(
    evidence: Evidence, method: Method, gold: str | None, prior: Path | None, kept: KeptFits, resources: Resources
) -> Inference:
    """Return what a fit finds, with a progress bar; a channel that the method does not read is announced before it."""
    from crowdveil import workflow

    unread = workflow.unread_channel(evidence, type(workflow.build_estimator(method, evidence)))
    if unread is not None:
        warn(unread)
    with progress_bar("inferring") as bar:
        step = None if bar is None else lambda number, _: bar(number, None)
        return workflow.infer(evidence, method, gold=gold, prior=prior, kept=kept, resources=resources, progress=step)


def _checked(outputs: Outputs, kept: KeptFits, inputs: list[Any]) -> dict[str, list[str]]:
    """Return the paths that are written and those that are replaced, or refuse before the work begins."""
    from crowdveil.workflow import fit_outputs

    written, replaced = outputs.paths, outputs.check(inputs=[*inputs, kept.start_from, kept.save])
    if kept.save is not None:
        written.append(kept.save)
        replaced += fit_outputs(kept.save).check(inputs=inputs)
    return {"files": list(map(str, written)), "replaced": list(map(str, replaced))}


def _set(resources: Resources) -> tuple[object, ...]:
    """Return what is not as it is by default."""
    return tuple(
        value for value, usual in zip(astuple(resources), astuple(type(resources)()), strict=True) if value != usual
    )


def _refuse_for_sums(*options: object) -> None:
    if any(option not in (None, False) for option in options):
        raise click.UsageError(
            "Sums are read as they are: only --method, --score, --accept-edited, --out and --json go with them."
        )


def _summary(inference: Inference) -> dict[str, Any]:
    estimate = inference.estimate
    return {
        "method": estimate.method,
        "channel_used": estimate.channel_used,
        "reading": inference.reading,
        "simulation": inference.simulation,
        "reports": int(estimate.reports_per_worker.sum()),
        "tasks": len(estimate.tasks),
        "workers": len(estimate.worker_names),
        "steps": estimate.steps,
        "converged": estimate.converged,
        "continued": _continued(inference),
        "log_likelihood": estimate.log_likelihoods[-1] if estimate.log_likelihoods else None,
        "gold_used": estimate.gold_used,
        "gold_unknown": estimate.gold_unknown,
        "baseline": asdict(estimate.baseline) | {"sentence": str(estimate.baseline)},
        "score": None if inference.score is None else asdict(inference.score) | {"sentence": str(inference.score)},
        "truths": shortened(_first_truths(estimate), len(estimate.tasks)),
        "quality": _quality(estimate),
        "warnings": list(inference.notes),
    }


def _continued(inference: Inference) -> dict[str, Any] | None:
    fit = inference.fit
    return None if fit is None else {"passes": fit.passes}


def _first_truths(estimate: Estimate) -> list[dict[str, Any]]:
    shown = estimate.part(0, SHOWN)
    columns = [column.tolist() for column in (shown.tasks, shown.truth, shown.reports_per_task)]
    certain = [None] * len(columns[0]) if shown.confidence is None else shown.confidence.tolist()
    return [
        {"task": str(task), "truth": truth, "confidence": confidence, "reports": reports}
        for task, truth, reports, confidence in zip(*columns, certain, strict=True)
    ]


def _quality(estimate: Estimate) -> dict[str, Any]:
    """Return name, lowest, median and highest worker quality, None where nothing was learned about anyone; and the
    median width of the 90 % intervals, None where there are none."""
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


def _rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    end = "converged" if data["converged"] else "NOT CONVERGED"
    crowd = f"{data['reports']:,} from {data['workers']:,} workers on {data['tasks']:,} tasks"
    gold = f"{data['gold_used']:,} tasks guided the fit, {data['gold_unknown']:,} unknown ones were left out"
    rows = [
        *[("warning", text) for text in data["warnings"]],
        ("method", data["method"]),
        ("read", data["reading"]),
        ("reports", crowd),
        ("steps", f"{data['steps']:,}, {end}"),
        *([] if data["continued"] is None else [("passes", _passes_line(data["continued"]))]),
        *([("gold", gold)] if data["gold_used"] or data["gold_unknown"] else []),
        ("baseline", data["baseline"]["sentence"]),
        *([] if data["score"] is None else [("score", data["score"]["sentence"])]),
        ("truths", f"first {data['truths']['shown']:,} of {data['truths']['of']:,}"),
        *[("", _truth_line(truth)) for truth in data["truths"]["items"]],
        ("workers", _quality_line(data["quality"])),
    ]
    return [*rows, *replaced_rows(data["replaced"]), *[("written", path) for path in data["files"]]]


def _passes_line(continued: dict[str, Any]) -> str:
    return f"{continued['passes']:,} over all reports"


def _truth_line(truth: dict[str, Any]) -> str:
    told = truth["truth"] if isinstance(truth["truth"], str) else number(truth["truth"])
    sure = "" if truth["confidence"] is None else f", confidence {truth['confidence']:.4f}"
    return f"{truth['task']}: {told} ({truth['reports']:,} reports{sure})"


def _quality_line(quality: dict[str, Any]) -> str:
    if quality["median"] is None:
        return f"{quality['name']}: unknown, these reports do not tell workers apart"
    spread = ", ".join(f"{name} {number(quality[name])}" for name in ("lowest", "median", "highest"))
    sure = quality["interval_width"]
    intervals = "" if sure is None else f"; 90 % intervals are {number(sure)} wide (median)"
    return f"{quality['name']}: {spread}; {quality['unknown']:,} unknown{intervals}"
