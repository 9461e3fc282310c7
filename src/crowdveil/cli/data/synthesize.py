"""`crowdveil data synthesize`: synthetic claims from a trusted curator who holds the original ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.channels.rounding import format_bound
from crowdveil.cli.data.sources import (
    SOURCE_TEXT,
    column_options,
    layout_of,
    open_sources,
    sources_argument,
)
from crowdveil.cli.display import print_written, progress_bar, warning_rows
from crowdveil.cli.options import (
    CHECKED_COUNT,
    COUNT,
    EPSILON,
    FILE_PATH,
    FOLDER_PATH,
    SEED,
    duplicates_option,
    option_group,
)
from crowdveil.cli.verb import Verb
from crowdveil.presentation.counts import number_of

if TYPE_CHECKING:
    from crowdveil.channels.guarantee import Guarantee, Participation
    from crowdveil.data.ingest.coded_columns import Duplicates
    from crowdveil.data.sources.layout import Layout
    from crowdveil.folder.synthesis import MethodName, SynthesisResult, SynthesisSettings
    from crowdveil.synthesis.claims import Outside

NO_PRIVACY = "the release follows from the seed: a simulation carries no privacy"
METHODS = ("histogram", "pooled-shape")
OF_HISTOGRAM = ("bins", "select_range", "expected_claims")
"""Settings that pooled-shape does not have."""

ASSUMPTIONS = {"any_truths": "truths anywhere within the bounds", "truths_of_records": "truths as in the records"}

HELP = """Release synthetic claims in place of the real ones in a file.

A claim is one worker's number for one task. CLAIMS are files with the columns task, worker and value, or exports of
labelling tools; or dataset:NAME. You hold all claims: this protects a publication, not a report. Epsilon is the loss of
one claim (unit cell) or worker; participation is public by default. Writes synthetic.csv and guarantee.json."""
EXAMPLE = """crowdveil data synthesize claims.csv --epsilon 1
          --bounds 0:100 --out released"""
DETAILS = f"""CLAIMS: {SOURCE_TEXT}. With --tasks only plain columns are read, and no JSON.

\b
Methods:
  histogram       one private density per task
  pooled-shape    for few claims per task: a private location per
                  task, and one distribution around it for all tasks

Without --method, histogram or pooled-shape is used, whichever has the smaller expected error, from public numbers. The
expected error is printed next to that of one number for all tasks.

Epsilon is the privacy loss of one claim (unit cell), or of all claims of one worker, over the whole release. With
public participation the pairs of worker and task are public. With protected participation the presence of a claim is
hidden too; the list of tasks is public and must be given (--tasks).

Writes synthetic.csv (task, worker, value; the workers are synthetic) and guarantee.json."""


def _settings(
    *, method: MethodName | None, unit: str, participation: Participation, **others: Any
) -> SynthesisSettings:
    from crowdveil.folder.synthesis import SynthesisSettings

    named = [f"--{name.replace('_', '-')}" for name in OF_HISTOGRAM if others[name]]
    named += ["--participation protected"] if participation == "protected" else []
    if method == "pooled-shape" and named:
        raise click.UsageError(f"{named[0]} is an option of histogram, not of {method}.")
    return SynthesisSettings(
        method=method, unit="worker" if unit == "worker" else "cell", participation=participation, **others
    )


def _bounds(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not LOW:HIGH.", param_hint="'--bounds'") from None
    return low, high


settings_options = option_group(
    click.option(
        "--method",
        type=click.Choice(METHODS),
        help="Release method, see above. [default: histogram or pooled-shape, by expected error]",
    ),
    click.option("--epsilon", type=EPSILON, required=True, help="Privacy loss of one unit, in nats."),
    click.option("--records", type=COUNT, default=30, help="Synthetic claims per task, without privacy loss."),
    click.option(
        "--unit",
        type=click.Choice(["claim", "worker"]),
        default="claim",
        help="Unit of epsilon: one claim (a cell), or all claims of one worker.",
    ),
    click.option(
        "--participation",
        type=click.Choice(["public", "protected"]),
        default="public",
        help="protected (histogram): epsilon also hides whether a claim was made; needs --tasks.",
    ),
    heading="Release",
)
tuning_options = option_group(
    click.option(
        "--bins",
        type=CHECKED_COUNT,
        help="histogram: 8, 12, 16, 24, 32 or 48. [default: from public numbers]",
    ),
    click.option(
        "--select-range", is_flag=True, help="histogram: select the range of each task's claims, for wide bounds."
    ),
    click.option(
        "--expected-claims",
        type=float,
        metavar="N",
        help="histogram, protected: publicly expected number of claims of a task.",
    ),
    click.option("--most-claims", type=CHECKED_COUNT, help="Number of claims of one worker that are used."),
    click.option("--least-claims", type=CHECKED_COUNT, help="Tasks with fewer claims release nothing. [default: 1]"),
    heading="Settings",
)


@click.command(
    help=HELP,
    cls=Verb,
    values={"layout": layout_of},
    example=EXAMPLE,
    details=DETAILS,
    main_options=("epsilon", "unit", "records", "tasks", "seed", "as_json"),
    short_help="Release synthetic claims, as a trusted curator.",
)
@sources_argument("claims")
@settings_options
@tuning_options
@click.option(
    "--bounds",
    "--scale",
    "bounds",
    required=True,
    metavar="LOW:HIGH",
    help="Range of possible claims; must be public.",
)
@click.option("--log", "logarithmic", is_flag=True, help="Use the logarithms of the claims; bounds must be positive.")
@click.option(
    "--outside",
    type=click.Choice(["error", "clip", "drop"]),
    default="error",
    help="Claims outside the bounds: refuse, move to the nearer bound, or leave out.",
)
@duplicates_option(None)
@column_options
@click.option("--tasks", type=FILE_PATH, help="CSV file of all tasks (column task), independent of the claims.")
@click.option("--seed", type=SEED, help="Seed. Simulation only: no privacy.")
@click.option("--out", type=FOLDER_PATH, required=True, help="Output folder.")
def synthesize(
    claims: tuple[str, ...],
    layout: Layout,
    bounds: str,
    logarithmic: bool,
    outside: Outside,
    duplicates: Duplicates | None,
    tasks: Path | None,
    seed: int | None,
    out: Path,
    **given: Any,
) -> None:
    """Read the claims, release, write the files and print the result; see `HELP`."""
    settings = _settings(**given)
    from crowdveil.files.atomic_write import Outputs
    from crowdveil.folder import synthesis as publication

    if outside == "drop" and settings.participation == "public":
        # Refused for any claims: a refusal only where a claim is dropped would show that there is one.
        raise click.UsageError(
            "--outside drop makes the number of claims depend on their values, and participation is public: "
            "use --outside clip, or histogram with --participation protected."
        )
    limits = _bounds(bounds)
    outputs = Outputs(folder=out, names=(publication.GUARANTEE_FILE, publication.SYNTHETIC_FILE), kind="synthesis")
    with open_sources(claims, layout) as source:
        inputs = [*source.inputs, tasks]
        replaced = outputs.check(inputs=inputs)
        read = publication.read_claims(
            source,
            bounds=limits,
            outside=outside,
            logarithmic=logarithmic,
            duplicates=duplicates,
            tasks=tasks,
            simulation=seed is not None,
        )
    with progress_bar("releasing") as bar:
        result = publication.synthesize(
            read.claims, settings, bounds=limits, logarithmic=logarithmic, seed=seed, progress=bar
        )
    names = publication.write_synthesis(out, result)
    notes = [f"For the curator only, not protected: {note}" for note in read.notes]
    warnings = [*result.warnings, *notes]
    data = {name: value for name, value in result.to_json().items() if name != "format"}
    data["warnings"] = warnings
    print_written(data, _rows(data, result), [out / name for name in names], replaced)


def _rows(data: dict[str, Any], result: SynthesisResult) -> list[tuple[str, str]]:
    simulation = [("simulation only: no privacy", NO_PRIVACY)] if data["simulation"] else []
    withheld = [(f"withheld: {note.reason}", f"{number_of(note.tasks, 'task')}") for note in result.release.withheld]
    return [
        *simulation,
        ("method", f"{data['method']} (private method)"),
        *[_guarantee_row(guarantee) for guarantee in result.guarantees],
        *[("because", reason) for reason in dict.fromkeys(g.reason for g in result.guarantees if g.reason)],
        ("public", data["public"]),
        ("records", f"{data['records']:,} on {number_of(data['tasks'], 'task')}"),
        *withheld,
        *_expected_rows(data["expected"], result.logarithmic),
        *warning_rows(data),
    ]


def _expected_rows(expected: dict[str, Any], logarithmic: bool) -> list[tuple[str, str]]:
    unit = "of a task's mean logarithm" if logarithmic else "of a task's mean"
    return [
        (
            "expected error",
            f"{errors['error']:.3g} {unit}; one number for all tasks {errors['constant']:.3g} ({assumed})",
        )
        for name, assumed in ASSUMPTIONS.items()
        if (errors := expected.get(name)) is not None
    ]


def _guarantee_row(guarantee: Guarantee) -> tuple[str, str]:
    unit = "claim" if guarantee.unit == "cell" else "worker"
    return ("epsilon", f"exact {format_bound(guarantee.epsilon)} (per {unit}, participation {guarantee.participation})")
