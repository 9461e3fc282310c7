"""`crowdveil synthesize`: synthetic claims from a trusted curator who holds the real ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from crowdveil.channels.rounding import format_bound, format_delta
from crowdveil.cli.display import number, progress_bar, replaced_rows, show
from crowdveil.cli.options import CHECKED_COUNT, COUNT, PATH, as_one, duplicates_option, json_option

if TYPE_CHECKING:
    from crowdveil.channels.guarantee import Guarantee, Participation
    from crowdveil.data.ingest.validation import Duplicates
    from crowdveil.synthesis.claims import Outside
    from crowdveil.workflow.synthesis import Mechanism, Synthesis, SynthesisWanted

NO_PRIVACY = "this release follows from the seed: a simulation, which carries no privacy"
CURATOR_ONLY = "The pictures in the folder curator show RAW CLAIMS: do not publish that folder."
OWNERS = {
    "bins": ("histogram",),
    "zoom": ("histogram",),
    "learn_weights": ("histogram",),
    "expected_claims": ("histogram",),
    "most_claims": ("histogram", "shared"),
    "least_claims": ("histogram", "shared"),
    "k": ("substituted", "published"),
    "gamma": ("substituted", "published"),
    "epsilon0": ("substituted", "published"),
    "bandwidth": ("substituted", "published"),
}
"""Mechanisms that an option means something to."""

ASSUMED = {"any_truths": "truths anywhere within the bounds", "truths_of_records": "truths as in the records"}

HELP = """Release synthetic claims in place of the real ones in a file.

CLAIMS is a CSV (also gzipped) or Parquet file with the columns task, worker and value; or dataset:NAME. You are
trusted with them: unlike perturb, this protects a publication, not a report.

Mode sound promises what it prints. Its mechanism is histogram (one private density per task), shared (tasks with few
claims: a private place each, one shape for all) or substituted (the paper's own candidates and test, failures hidden);
by default histogram or shared, whichever is expected to be nearer to the claims, from public numbers. The error to
expect is printed beside that of one number for all tasks.
Mode published is the method of Huai et al. as printed; it promises nothing, and no finite epsilon is printed for it.

Epsilon is the privacy loss of one claim (the unit cell), or of all claims of one worker, over the whole release. With
public participation who claimed what is known; with protected participation a claim's presence is hidden too, and
only the list of tasks, which must then be given (--tasks), is known.

Writes synthetic.csv (task, worker, value; workers are made up) and guarantee.json."""


def _wanted(
    *,
    mode: str,
    mechanism: str | None,
    epsilon: float | None,
    records: int,
    unit: str,
    participation: Participation,
    bins: int | None,
    zoom: bool,
    learn_weights: bool,
    expected_claims: float | None,
    most_claims: int | None,
    least_claims: int | None,
    k: int | None,
    gamma: float | None,
    epsilon0: float | None,
    bandwidth: float | None,
) -> SynthesisWanted:
    from crowdveil.workflow.synthesis import SynthesisWanted

    if mode == "published" and (mechanism is not None or epsilon is not None):
        raise click.UsageError("--mechanism and --epsilon are options of --mode sound: published promises nothing.")
    name = "published" if mode == "published" else mechanism
    if mode == "sound" and epsilon is None:
        raise click.UsageError("Missing option '--epsilon'.")
    if participation == "protected" and name not in (None, "histogram"):
        raise click.UsageError(f"--participation protected is an option of histogram, not of {name}.")
    wanted = SynthesisWanted(
        mechanism=cast("Mechanism | None", name),
        epsilon=epsilon,
        records=records,
        unit="worker" if unit == "worker" else "cell",
        participation=participation,
        bins=bins,
        zoom=zoom,
        learn_weights=learn_weights,
        expected_claims=expected_claims,
        most_claims=most_claims,
        least_claims=least_claims,
        k=k,
        gamma=gamma,
        epsilon0=epsilon0,
        bandwidth=bandwidth,
    )
    for option, owners in OWNERS.items():
        if getattr(wanted, option) not in (None, False) and (name or "histogram") not in owners:
            raise click.UsageError(f"--{option.replace('_', '-')} is an option of {' and '.join(owners)}.")
    return wanted


def _bounds(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not LOW:HIGH.", param_hint="'--bounds'") from None
    return low, high


wanted_options = as_one(
    "wanted",
    _wanted,
    click.option(
        "--mode", type=click.Choice(["sound", "published"]), default="sound", show_default=True, help="See above."
    ),
    click.option(
        "--mechanism",
        type=click.Choice(["histogram", "shared", "substituted"]),
        help="Of mode sound. [default: histogram or shared, whichever is expected to be nearer, from public numbers]",
    ),
    click.option("--epsilon", type=float, metavar="E", help="Privacy loss of one unit, in nats; substituted: at most."),
    click.option(
        "--records",
        type=COUNT,
        default=30,
        show_default=True,
        metavar="M",
        help="Synthetic claims per task; they cost nothing with histogram and shared.",
    ),
    click.option(
        "--unit",
        type=click.Choice(["claim", "worker"]),
        default="claim",
        show_default=True,
        help="Whose loss epsilon bounds: one claim's (a cell's), or that of all claims of one worker.",
    ),
    click.option(
        "--participation",
        type=click.Choice(["public", "protected"]),
        default="public",
        show_default=True,
        help="histogram, protected: epsilon hides also whether a claim was made; needs --tasks.",
    ),
    click.option(
        "--bins",
        type=CHECKED_COUNT,
        metavar="B",
        help="histogram: 8, 12, 16, 24, 32 or 48. [default: by public rule]",
    ),
    click.option("--zoom", is_flag=True, help="histogram: find each task's part of bounds that are far too wide."),
    click.option("--learn-weights", is_flag=True, help="histogram: weight workers by agreement, for 1/4 of epsilon."),
    click.option(
        "--expected-claims", type=float, metavar="N", help="Public guess of the claims per task, if protected."
    ),
    click.option(
        "--most-claims",
        type=CHECKED_COUNT,
        metavar="N",
        help="histogram, shared: claims of one worker that are used.",
    ),
    click.option(
        "--least-claims",
        type=CHECKED_COUNT,
        metavar="N",
        help="The same: tasks with fewer release nothing. [default: 1]",
    ),
    click.option(
        "--k",
        type=CHECKED_COUNT,
        metavar="K",
        help="substituted, published: claims wanted in a candidate's bin.",
    ),
    click.option("--gamma", type=float, metavar="G", help="The same: width of a bin, a ratio of densities."),
    click.option("--epsilon0", type=float, metavar="E", help="The same: privacy loss of one count."),
    click.option(
        "--bandwidth", type=float, metavar="SHARE", help="The same: width of a kernel, as a share of the bounds."
    ),
)


@click.command(help=HELP, short_help="Release synthetic claims, as a trusted curator.")
@click.argument("claims")
@wanted_options
@click.option(
    "--bounds", "--scale", "bounds", required=True, metavar="LOW:HIGH", help="What a claim can be; public knowledge."
)
@click.option("--log", "logarithmic", is_flag=True, help="Treat claims by their logarithms; bounds must be positive.")
@click.option(
    "--outside",
    type=click.Choice(["error", "clip", "drop"]),
    default="error",
    show_default=True,
    help="Claims outside the bounds: refuse, move to the nearer bound, or leave out.",
)
@duplicates_option(None)
@click.option(
    "--tasks",
    type=PATH,
    metavar="FILE",
    help="CSV file of all tasks (column task), made without looking at the claims.",
)
@click.option(
    "--pictures",
    multiple=True,
    metavar="TASK",
    help="Draw this task's RAW CLAIMS and densities into DIR/curator, for the curator only.",
)
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Reproducible simulation, WITHOUT ANY PRIVACY.")
@click.option("--out", type=PATH, required=True, metavar="DIR", help="Where files are written.")
@json_option
def synthesize(
    claims: str,
    wanted: SynthesisWanted,
    bounds: str,
    logarithmic: bool,
    outside: Outside,
    duplicates: Duplicates | None,
    tasks: Path | None,
    pictures: tuple[str, ...],
    seed: int | None,
    out: Path,
    as_json: bool,
) -> None:
    """Read, release, draw, write, print; see `HELP`."""
    from crowdveil.workflow import Outputs
    from crowdveil.workflow import synthesis as work
    from crowdveil.workflow.synthesis import read_claims

    limits = _bounds(bounds)
    outputs = Outputs(folder=out, names=(work.GUARANTEE_FILE, work.SYNTHETIC_FILE), kind="synthesis")
    replaced = [place for kind in (outputs, work.curator_outputs(out)) for place in kind.check(inputs=[claims, tasks])]
    read = read_claims(
        claims, bounds=limits, outside=outside, logarithmic=logarithmic, duplicates=duplicates, tasks=tasks
    )
    with progress_bar("releasing") as bar:
        made = work.synthesize(read.claims, wanted, bounds=limits, logarithmic=logarithmic, seed=seed, progress=bar)
    drawn = {}
    if pictures:
        from crowdveil.workflow.synthesis_plots import draw_pictures

        drawn = draw_pictures(read.claims, made.release, pictures, logarithmic=logarithmic)
    names = work.write_synthesis(out, made, drawn)
    notes = [f"For the curator only, not protected: {note}" for note in read.notes]
    warnings = [*made.warnings, *notes, *([CURATOR_ONLY] if drawn else [])]
    told = {name: value for name, value in made.to_json().items() if name != "format"}
    data = told | {"files": [str(out / name) for name in names], "warnings": warnings}
    data["replaced"] = list(map(str, replaced))
    show(data, _rows(data, made), as_json=as_json)


def _rows(data: dict[str, Any], made: Synthesis) -> list[tuple[str, str]]:
    simulation = [("SIMULATION", NO_PRIVACY)] if data["simulation"] else []
    withheld = [(f"withheld: {note.reason}", f"{note.tasks:,} tasks") for note in made.release.withheld]
    return [
        *simulation,
        ("mode", data["mode"]),
        *[_guarantee_row(guarantee) for guarantee in made.guarantees],
        *[("because", reason) for reason in dict.fromkeys(g.reason for g in made.guarantees if g.reason)],
        ("public", data["public"]),
        ("records", f"{data['records']:,} on {data['tasks']:,} tasks"),
        *withheld,
        *_expected_rows(data["expected"] or {}, made.logarithmic),
        *[("warning", text) for text in data["warnings"]],
        *replaced_rows(data["replaced"]),
        *[("written", path) for path in data["files"]],
    ]


def _expected_rows(expected: dict[str, Any], logarithmic: bool) -> list[tuple[str, str]]:
    of = "a task's mean logarithm" if logarithmic else "a task's mean"
    return [
        (
            "expected error",
            f"{found['error']:.3g} of {of}; one number for all tasks {found['constant']:.3g} ({assumed})",
        )
        for name, assumed in ASSUMED.items()
        if (found := expected.get(name)) is not None
    ]


def _guarantee_row(guarantee: Guarantee) -> tuple[str, str]:
    claimed = "" if guarantee.claimed is None else f", claimed {number(guarantee.claimed)}"
    slack = f", delta {format_delta(guarantee.delta)}" if guarantee.delta else ""
    unit = "claim" if guarantee.unit == "cell" else "worker"
    exact = f"exact {format_bound(guarantee.epsilon)}{claimed}{slack}"
    return ("epsilon", f"{exact} (per {unit}, participation {guarantee.participation})")
