"""`crowdveil join` and `crowdveil next-thresholds`: campaigns in rounds."""

from __future__ import annotations

from pathlib import Path

import click

from crowdveil.cli.display import print_result, replaced_rows
from crowdveil.cli.options import COUNT, PATH, accept_edited_option, json_option, replace_option
from crowdveil.cli.verb import Verb

MAX_THRESHOLDS = 12
NEXT = """crowdveil next-thresholds found/truths.csv
          --certificate round1/certificate.json --out cuts.csv"""


@click.command(
    cls=Verb,
    example="crowdveil join monday/reports.csv tuesday/reports.csv --out both",
    main_options=("accept_edited", "replace"),
    short_help="Join the rounds of a campaign into one collection.",
)
@click.argument("reports", nargs=-1, required=True, type=PATH)
@click.option("--out", type=PATH, required=True, metavar="DIR", help="Output folder.")
@accept_edited_option
@replace_option
@json_option
def join(reports: tuple[Path, ...], out: Path, accept_edited: bool, replace: bool, as_json: bool) -> None:
    """Join the rounds of a campaign into one collection, which is an input of infer.

    REPORTS are the report files of all rounds, each with certificate.json and crowd.json in its folder. All rounds have
    the same tasks; each worker takes part in one round only.
    """
    from crowdveil.workflow.evidence import evidence_files, read_evidence
    from crowdveil.workflow.export import caveats, collection_outputs
    from crowdveil.workflow.rounds import JOINED_FILES, join_collections

    outputs = collection_outputs(out, JOINED_FILES, replace=replace)
    inputs = [file for path in reports for file in evidence_files(path)]
    replaced = list(map(str, outputs.check(inputs=inputs)))
    read = [read_evidence(path, accept_edited=accept_edited) for path in reports]
    joined = join_collections(read)
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
        "warnings": caveats(crowd),
        "files": list(map(str, outputs.paths)),
        "replaced": replaced,
    }
    rows = [
        ("rounds", str(data["rounds"])),
        ("reports", f"{len(sent):,} from {len(sent.workers):,} workers on {len(sent.tasks):,} tasks"),
        ("guarantee", crowd["guarantee"]),
        *[("warning", text) for text in caveats(crowd)],
        *replaced_rows(replaced),
        *[("written", str(path)) for path in outputs.paths],
    ]
    print_result(data, rows, as_json=as_json)


@click.command(
    "next-thresholds",
    cls=Verb,
    example=NEXT,
    main_options=("most",),
    short_help="Choose each task's threshold for the next round.",
)
@click.argument("truths", type=PATH)
@click.option(
    "--certificate",
    type=PATH,
    required=True,
    metavar="FILE",
    help="Certificate of the rounds so far; it contains the scale.",
)
@click.option(
    "--most",
    type=COUNT,
    default=MAX_THRESHOLDS,
    show_default=True,
    metavar="N",
    help="Distinct thresholds.",
)
@click.option("--out", type=PATH, required=True, metavar="FILE", help="CSV file to be written.")
@json_option
def next_thresholds(truths: Path, certificate: Path, most: int, out: Path, as_json: bool) -> None:
    """Choose the threshold (cut) of each task for the next round: near the truth estimated from the rounds so far.

    TRUTHS is the truths.csv of infer --method gaussian. The output file (columns task and cuts) is the input of perturb
    --mechanism quantized-response --channels. Thresholds depend on reports only, not on answers, so the guarantee of a
    single answer is that of a campaign of one round.
    """
    from crowdveil.files.atomic_write import Outputs, write_outputs
    from crowdveil.workflow.evidence import read_channel, read_crowd_for
    from crowdveil.workflow.rounds import cuts_csv, next_cuts

    outputs = Outputs(folder=out.parent, names=(out.name,), kind="cuts")
    replaced = list(map(str, outputs.check(inputs=[truths, certificate])))
    channel = read_channel(certificate, read_crowd_for(certificate))
    cuts = next_cuts(truths, channel.alphabet, most=most)
    write_outputs(outputs, {out.name: cuts_csv(cuts)})
    different = list(dict.fromkeys(cuts.values()))
    data = {"tasks": len(cuts), "cuts": different, "files": [str(out)], "replaced": replaced}
    rows = [("tasks", f"{len(cuts):,}"), ("cuts", ", ".join(different)), *replaced_rows(replaced)]
    print_result(data, [*rows, ("written", str(out))], as_json=as_json)
