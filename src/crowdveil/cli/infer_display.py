"""Inferred truths and workers as the JSON data and the table of `crowdveil infer`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdveil.cli.display import next_row, number_with_six_digits, truncate_items
from crowdveil.display.counts import crowd_text, number_of, verb_of

if TYPE_CHECKING:
    from crowdveil.answers.evidence import Evidence
    from crowdveil.em.estimate import Estimate
    from crowdveil.inference.infer import Inference

SHOWN_TASKS = 5
ENDS = {
    "tolerance": "converged",
    "settled": "more steps would change less than 1 truth in 10,000",
    "set": "fixed by the method",
    "limit": "NOT CONVERGED",
}
"""Why a fit ended, by `Estimate.stopped`."""
OF_A_QUESTION = (
    *("question", "folder", "method", "reports", "tasks", "workers", "steps", "converged", "stopped"),
    *("baseline", "verdict"),
)
"""What is printed of each of several questions."""
SIMULATION_MARK = re.compile(r"SIMULATION from seed (\d+): no privacy")
"""Mark of a simulation in a certificate."""


def inference_as_json_data(inference: Inference, *, form: str) -> dict[str, Any]:
    """Return the inference as JSON data but its decisions and files, which have this form."""
    from crowdveil.answers.write_reports import formula_names_warning

    estimate, panel, check = inference.estimate, inference.dependence, inference.estimate.cross_validation
    labels = estimate.alphabet.names if estimate.alphabet else ()
    formulas = formula_names_warning(form, labels, estimate.tasks, estimate.worker_names)
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
        "truths": truncate_items(_first_truths(estimate), len(estimate.tasks)),
        "quality": _worker_quality_quantiles(estimate),
        "confidence": inference.confidence_note,
        "history": inference.history_note,
        "panel": None if panel is None else asdict(panel) | {"sentences": panel.sentences},
        "warnings": [*inference.notes, *formulas],
    }


def decisions_data(estimate: Estimate, costs: Path | None, abstain_below: float | None) -> dict[str, Any]:
    """Return the settings of decisions, the number of undecided tasks, and the mean expected cost."""
    undecided, expected = estimate.undecided, estimate.without_gold.expected_cost
    return {
        "costs": None if costs is None else str(costs),
        "abstain_below": abstain_below,
        "undecided": 0 if undecided is None else int(undecided.sum()),
        "expected_cost": float(expected.mean()) if expected is not None and len(expected) else None,
    }


def _first_truths(estimate: Estimate) -> list[dict[str, Any]]:
    shown = estimate.part(0, SHOWN_TASKS)
    nothing = [None] * len(shown.tasks)
    columns = {
        "task": map(str, shown.tasks.tolist()),
        "truth": (None if truth == "" else truth for truth in shown.truth.tolist()),
        "confidence": nothing if shown.confidence is None else shown.confidence.tolist(),
        "reports": shown.reports_per_task.tolist(),
        "gold": map(bool, nothing if shown.gold is None else shown.gold.tolist()),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _worker_quality_quantiles(estimate: Estimate) -> dict[str, Any]:
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


def questions_data(summaries: Sequence[dict[str, Any]], kept: Sequence[str]) -> dict[str, Any]:
    """Return the JSON data of several questions; `kept` are warnings of earlier truths."""
    return {
        "warnings": [*kept, *(f"{one['question']}: {text}" for one in summaries for text in one["warnings"])],
        "files": [path for one in summaries for path in one["files"]],
        "replaced": [path for one in summaries for path in one["replaced"]],
        "questions": [{name: one[name] for name in OF_A_QUESTION} for one in summaries],
    }


def question_rows(one: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the table rows of one of several questions."""
    crowd = f"{number_of(one['reports'], 'report')} from {crowd_text(one['workers'], one['tasks'])}"
    fit = f"{one['method']}; {number_of(one['steps'], 'step')}, {ENDS[one['stopped']]}; written to {one['folder']}"
    return [(one["question"], f"{crowd}; {fit}"), ("", f"{one['baseline']['sentence']} Verdict: {one['verdict']}")]


def rows_of_next_report(reports: Sequence[Evidence], folder: Path) -> list[tuple[str, str]]:
    """Return the command that shows the results of a campaign; no row for reports of none."""
    collections = (one.collection for one in reports)
    asked = any(one is not None and one.campaign is not None for one in collections)
    return [next_row("report", folder)] if asked else []


def inference_rows(data: dict[str, Any], announced: str | None) -> list[tuple[str, str]]:
    """Return the table of an inference, without the warning that was announced."""
    crowd = f"{data['reports']:,} from {crowd_text(data['workers'], data['tasks'])}"
    guided = number_of(data["gold_used"], "task")
    skipped = (
        f"{number_of(data['gold_unknown'], 'unknown task')} {verb_of(data['gold_unknown'], 'was', 'were')} skipped"
    )
    gold = f"{guided} guided the fit, {skipped}"
    return [
        *[("warning", text) for text in data["warnings"] if text != announced],
        ("method", data["method"]),
        ("noise model", SIMULATION_MARK.sub(r"simulation only: no privacy (seed \1)", data["noise_model"])),
        ("reports", crowd),
        ("steps", _steps_and_stop_text(data)),
        *([] if data["history"] is None else [("history", data["history"])]),
        *([("gold", gold)] if data["gold_used"] or data["gold_unknown"] else []),
        *([] if data["gold"] is None else [("", data["gold"])]),
        *([] if data["cross_validation"] is None else [("", data["cross_validation"]["sentence"])]),
        ("baseline", data["baseline"]["sentence"]),
        *([] if data["score"] is None else [("score", data["score"]["sentence"])]),
        ("truths", f"first {data['truths']['shown']:,} of {data['truths']['of']:,}"),
        *[("", _truth_line(truth)) for truth in data["truths"]["items"]],
        *([] if data["confidence"] is None else [("confidence", data["confidence"])]),
        ("workers", _worker_quality_line(data["quality"])),
        *[("panel", text) for text in (data["panel"] or {"sentences": ()})["sentences"]],
    ]


def _steps_and_stop_text(data: dict[str, Any]) -> str:
    before = f"; {data['steps_before']:,} in other fits, for the dependence of errors or combined by gold"
    return f"{data['steps']:,}, {ENDS[data['stopped']]}" + (before if data["steps_before"] else "")


def _truth_line(truth: dict[str, Any]) -> str:
    value = truth["truth"]
    text = "undecided" if value is None else value if isinstance(value, str) else number_with_six_digits(value)
    confidence = "" if truth["confidence"] is None else f", confidence {truth['confidence']:.4f}"
    reports = number_of(truth["reports"], "report")
    return f"{truth['task']}: {text} ({reports}{', gold' if truth['gold'] else confidence})"


def _worker_quality_line(quality: dict[str, Any]) -> str:
    if quality["median"] is None:
        return f"{quality['name']}: unknown, since these reports do not distinguish workers"
    quantiles = ", ".join(f"{name} {quality[name]:.3g}" for name in ("lowest", "median", "highest"))
    unknown = f"; {quality['unknown']:,} unknown" if quality["unknown"] else ""
    width = quality["interval_width"]
    intervals = "" if width is None else f"; median width of the 90 % intervals {width:.3g}"
    return f"{quality['name']}: {quantiles}{unknown}{intervals}"
