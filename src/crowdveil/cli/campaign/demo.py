"""`crowdveil campaign demo`: a whole campaign on this computer, with simulated answers."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path

import click

from crowdveil.channels.rounding import format_bound
from crowdveil.cli.campaign.serve import require_service_packages
from crowdveil.cli.display import print_result, row_of_replaced_files
from crowdveil.cli.options import FOLDER_PATH, SEED
from crowdveil.cli.progress import progress_bar
from crowdveil.cli.verb import Verb, wants_json

SIMULATED = "The answers are simulated; service, devices and inference are the real ones."


@click.command(
    cls=Verb,
    example="crowdveil campaign demo --out demo",
    main_options=("out", "seed"),
    short_help="Run a whole campaign on this computer, with simulated answers.",
)
@click.option("--out", type=FOLDER_PATH, default=Path("crowdveil-campaign-demo"), help="Folder of the results.")
@click.option("--seed", type=SEED, default=1, help="Seed of the simulated answers.")
def demo(out: Path, seed: int) -> None:
    """Run a whole campaign on this computer: 72 workers judge twelve statements.

    The command makes the campaign and serves it on the loopback address. 72 devices fetch it, check it, randomize their
    answers and report over HTTP. The command then closes the campaign, infers the truths, and writes the page of
    results with all files. The answers are simulated.
    """
    require_service_packages()
    from crowdveil.campaign.service.campaign_demo import STATEMENTS, WORKERS, demo_outputs, run_campaign_demo

    outputs = demo_outputs(out)
    replaced = [str(path) for part in outputs for path in part.check_replaced_files()]
    with progress_bar("collecting reports") as bar:
        shown = run_campaign_demo(out, seed=seed, progress=bar)
    inferred, unprotected, constant = shown.wrong
    campaign = shown.campaign
    data = {
        "simulated_answers": True,
        "campaign": campaign.name,
        "workers": WORKERS,
        "participation": campaign.participation,
        "epsilon_per_answer": campaign.epsilon,
        "epsilon_per_worker": campaign.worker_epsilon,
        "tasks": len(STATEMENTS),
        "wrong": {"inferred": inferred, "unprotected": unprotected, "constant": constant},
        "warnings": [SIMULATED, *shown.result.warnings],
        "files": [str(path) for part in outputs for path in part.paths],
        "replaced": replaced,
    }
    rows = [
        ("note", SIMULATED),
        ("campaign", campaign.name),
        ("reports", f"{WORKERS} devices over HTTP"),
        (
            "promise",
            f"epsilon {format_bound(campaign.epsilon, 4)} for a single answer (cell), "
            f"{format_bound(campaign.worker_epsilon, 4)} for all answers of one worker, participation "
            f"{campaign.participation}",
        ),
        ("wrong", f"{inferred} of {len(STATEMENTS)} truths; unprotected {unprotected}, best constant {constant}"),
        *row_of_replaced_files(replaced),
        ("written", f"{shown.page}, with the files of the result next to it"),
    ]
    print_result(data, rows)
    if sys.stdout.isatty() and not wants_json():
        webbrowser.open(shown.page.absolute().as_uri())
