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
from crowdveil.cli.display import print_written, warning_rows
from crowdveil.cli.options import (
    CHECKED_COUNT,
    COUNT,
    EPSILON,
    FILE_PATH,
    FOLDER_PATH,
    SEED,
    Parsed,
    duplicates_option,
    option_group,
    replace_option,
)
from crowdveil.cli.progress import progress_bar
from crowdveil.cli.verb import Verb
from crowdveil.display.counts import number_of

if TYPE_CHECKING:
    from crowdveil.answers.ingest.column_checks import Duplicates
    from crowdveil.answers.sources.location import Layout
    from crowdveil.channels.guarantee import Guarantee, Participation
    from crowdveil.storage.synthesis import MethodName, SynthesisResult, SynthesisSettings
    from crowdveil.synthesis.original_claims import Outside

NO_PRIVACY = "the release follows from the seed: a simulation carries no privacy"
METHODS = ("histogram", "pooled-shape")

ASSUMPTIONS = {"any_truths": "truths anywhere within the bounds", "truths_of_records": "truths as in the records"}

EXAMPLE = """crowdveil data synthesize claims.csv --epsilon 1
          --bounds 0:100 --out released"""


def _synthesis_settings(
    *,
    method: MethodName | None,
    epsilon: float,
    records: int,
    unit: str,
    participation: Participation,
    expected_claims: float | None,
    most_claims: int | None,
) -> SynthesisSettings:
    from crowdveil.storage.synthesis import SynthesisSettings

    of_histogram = {
        "--expected-claims": expected_claims is not None,
        "--participation protected": participation == "protected",
    }
    named = next((flag for flag, given in of_histogram.items() if given), None)
    if method == "pooled-shape" and named is not None:
        raise click.UsageError(f"{named} is an option of histogram, not of {method}.")
    return SynthesisSettings(
        method=method,
        epsilon=epsilon,
        records=records,
        unit="worker" if unit == "worker" else "cell",
        participation=participation,
        expected_claims=expected_claims,
        most_claims=most_claims,
    )


def _parse_range(text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        raise ValueError(f"{text!r} is not LOW:HIGH.") from None
    return low, high


settings_options = option_group(
    click.option(
        "--method",
        type=click.Choice(METHODS),
        help="Release method, see above. [default: histogram or pooled-shape, by expected error]",
    ),
    click.option("--epsilon", type=EPSILON, required=True, help="Privacy loss of one unit, in nats."),
    click.option("--records", type=COUNT, default=30, help="Synthetic claims per task; their number costs no privacy."),
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
        "--expected-claims",
        type=float,
        metavar="N",
        help="histogram, protected: expected claims per task, from public knowledge.",
    ),
    click.option("--most-claims", type=CHECKED_COUNT, help="Largest number of claims used per worker."),
    heading="Settings",
)


@click.command(
    cls=Verb,
    values={"layout": layout_of, "settings": _synthesis_settings},
    example=EXAMPLE,
    details=f"CLAIMS: {SOURCE_TEXT}. With --tasks only plain columns are read, and no JSON.",
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
    type=Parsed("LOW:HIGH", _parse_range),
    required=True,
    help="Range of possible claims; must be public.",
)
@click.option(
    "--outside",
    type=click.Choice(["error", "clip"]),
    default="error",
    help="Claims outside the bounds: refuse, or move to the nearer bound.",
)
@duplicates_option(None)
@column_options
@click.option("--tasks", type=FILE_PATH, help="CSV file of all tasks (column task), independent of the claims.")
@click.option("--seed", type=SEED, help="Seed. Simulation only: no privacy.")
@click.option("--out", type=FOLDER_PATH, required=True, help="Output folder.")
@replace_option
def synthesize(
    claims: tuple[str, ...],
    layout: Layout,
    duplicates: Duplicates | None,
    outside: Outside,
    bounds: tuple[float, float],
    tasks: Path | None,
    settings: SynthesisSettings,
    seed: int | None,
    out: Path,
    replace: bool,
) -> None:
    """Release synthetic claims instead of the real ones in a file.

    A claim is one worker's number for one task. CLAIMS are files with the columns task, worker and value, or exports of
    labelling tools; or dataset:NAME. You hold all claims: the command protects what you publish, not what workers send
    you. Epsilon is the privacy loss of one claim (unit cell) or worker; participation is public by default. Writes
    synthetic.csv and guarantee.json.

    \f
    \b
    Methods:
      histogram       one private density per task
      pooled-shape    for few claims per task: a private location per
                      task, and one distribution around it for all tasks

    Without --method, the command uses the method with the smaller expected error, computed from public numbers. It
    prints the expected error next to that of one number for all tasks.

    Epsilon is the privacy loss of one claim (unit cell), or of all claims of one worker, over the whole release. With
    public participation the pairs of worker and task are public, and a row without an answer is refused. With
    protected participation the presence of a claim is hidden too; the list of tasks is public and must be given
    (--tasks).

    The guarantee holds for one run. The epsilons of all runs on the same claims add up, also of runs that are not
    published. A folder with a release is therefore refused without --replace.

    Writes synthetic.csv (task, worker, value; the workers are synthetic) and guarantee.json.
    """
    from crowdveil.storage import synthesis as publication

    outputs = publication.synthesis_outputs(out, replace=replace)
    with open_sources(claims, layout) as source:
        replaced = outputs.check_replaced_files(inputs=[*source.inputs, tasks])
        originals, notes = publication.read_claims(
            source,
            bounds=bounds,
            outside=outside,
            duplicates=duplicates,
            tasks=tasks,
            participation=settings.participation,
            simulation=seed is not None,
        )
    with progress_bar("releasing") as bar:
        result = publication.synthesize(originals, settings, bounds=bounds, seed=seed, progress=bar)
    publication.write_synthesis(out, result, replace=replace)
    data = {name: value for name, value in result.to_json().items() if name != "format"}
    data["warnings"] = [*result.warnings, *(f"For the curator only, not protected: {note}" for note in notes)]
    print_written(data, _rows(data, result), outputs.paths, replaced)


def _rows(data: dict[str, Any], result: SynthesisResult) -> list[tuple[str, str]]:
    simulation = [("simulation only: no privacy", NO_PRIVACY)] if data["simulation"] else []
    withheld = [(f"withheld: {note.reason}", f"{number_of(note.tasks, 'task')}") for note in result.release.withheld]
    return [
        *simulation,
        ("method", f"{data['method']} (private method)"),
        *[_guarantee_row(guarantee) for guarantee in result.guarantees_infinite_if_simulated],
        *[
            ("because", reason)
            for reason in dict.fromkeys(g.reason for g in result.guarantees_infinite_if_simulated if g.reason)
        ],
        *([("holds for", data["holds_for"])] if data["holds_for"] else []),
        ("public", data["public"]),
        ("records", f"{data['records']:,} on {number_of(data['tasks'], 'task')}"),
        *withheld,
        *_expected_rows(data["expected"]),
        *warning_rows(data),
    ]


def _expected_rows(expected: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (
            "expected error",
            f"{errors['error']:.3g} of a task's mean; one number for all tasks {errors['constant']:.3g} ({assumed})",
        )
        for name, assumed in ASSUMPTIONS.items()
        if (errors := expected.get(name)) is not None
    ]


def _guarantee_row(guarantee: Guarantee) -> tuple[str, str]:
    unit = "claim" if guarantee.unit == "cell" else "worker"
    return (
        "epsilon",
        f"at most {format_bound(guarantee.epsilon)} (per {unit}, participation {guarantee.participation})",
    )
