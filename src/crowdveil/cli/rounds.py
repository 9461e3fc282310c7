"""`crowdveil join` and `crowdveil next-cuts`: a campaign in rounds."""

from __future__ import annotations

from pathlib import Path

import click

from crowdveil.cli.display import replaced_rows, show
from crowdveil.cli.options import COUNT, PATH, accept_edited_option, json_option, replace_option

MAX_THRESHOLDS = 12


@click.command(short_help="Join the rounds of a campaign to one collection.")
@click.argument("reports", nargs=-1, required=True, type=PATH)
@click.option("--out", type=PATH, required=True, metavar="DIR", help="Where files are written.")
@accept_edited_option
@replace_option
@json_option
def join(reports: tuple[Path, ...], out: Path, accept_edited: bool, replace: bool, as_json: bool) -> None:
    """Join the rounds of a campaign to one collection, which infer reads like any other.

    REPORTS are the reports of all rounds so far, each with its certificate.json and crowd.json beside it. Rounds are on
    the same tasks, and a worker takes part in one of them only.
    """
    from crowdveil import workflow

    outputs = workflow.collection_outputs(out, workflow.JOINED_FILES, replace=replace)
    inputs = [file for path in reports for file in workflow.evidence_files(path)]
    replaced = list(map(str, outputs.check(inputs=inputs)))
    read = [workflow.read_evidence(path, accept_edited=accept_edited) for path in reports]
    joined = workflow.join_collections(read)
    joined.write(out, replace=replace)
    crowd, sent = joined.crowd, joined.round.reports
    data = {
        "rounds": len(reports),
        "tasks": len(sent.tasks),
        "workers": len(sent.workers),
        "reports": len(sent),
        "guarantee": crowd["guarantee"],
        "simulation": crowd["simulation"],
        "certificate_sha256": crowd["certificate_sha256"],
        "warnings": workflow.caveats(crowd),
        "files": list(map(str, outputs.paths)),
        "replaced": replaced,
    }
    rows = [
        ("rounds", str(data["rounds"])),
        ("reports", f"{len(sent):,} from {len(sent.workers):,} workers on {len(sent.tasks):,} tasks"),
        ("guarantee", crowd["guarantee"]),
        *[("warning", text) for text in workflow.caveats(crowd)],
        *replaced_rows(replaced),
        *[("written", str(path)) for path in outputs.paths],
    ]
    show(data, rows, as_json=as_json)


@click.command("next-cuts", short_help="Say where the next round of a campaign cuts every task.")
@click.argument("truths", type=PATH)
@click.option(
    "--certificate",
    type=PATH,
    required=True,
    metavar="FILE",
    help="Of the rounds so far: it says what an answer can be.",
)
@click.option("--most", type=COUNT, default=MAX_THRESHOLDS, show_default=True, metavar="N", help="Different cuts.")
@click.option("--out", type=PATH, required=True, metavar="FILE", help="CSV file to be written.")
@json_option
def next_thresholds(truths: Path, certificate: Path, most: int, out: Path, as_json: bool) -> None:
    """Say where the next round of a campaign cuts every task: next to the truth that the rounds so far suggest.

    TRUTHS is the truths.csv that infer --method gaussian wrote. The file that is written (columns task and cuts) goes
    into perturb --mechanism quantized-response --channels. Cuts follow from reports, which were sent already, and from
    no answer: a cell is promised what it would be promised in a campaign of one round.
    """
    from crowdveil import workflow

    outputs = workflow.Outputs(folder=out.parent, names=(out.name,), kind="cuts")
    replaced = list(map(str, outputs.check(inputs=[truths, certificate])))
    channel = workflow.read_channel(certificate, workflow.crowd_beside(certificate))
    cuts = workflow.cuts_from(truths, channel.alphabet, most=most)
    workflow.write_outputs(outputs, {out.name: workflow.cuts_text(cuts)})
    different = list(dict.fromkeys(cuts.values()))
    data = {"tasks": len(cuts), "cuts": different, "files": [str(out)], "replaced": replaced}
    rows = [("tasks", f"{len(cuts):,}"), ("cuts", ", ".join(different)), *replaced_rows(replaced)]
    show(data, [*rows, ("written", str(out))], as_json=as_json)
