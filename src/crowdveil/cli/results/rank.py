"""`crowdveil rank`: ranks of items that workers compared in pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.data.sources import open_sources, sources_argument
from crowdveil.cli.display import print_written, truncated_json_rows, warning_rows
from crowdveil.cli.options import FILE_PATH, FOLDER_PATH, NameChoice, option_group
from crowdveil.cli.progress import progress_bar
from crowdveil.cli.results.reports_argument import certificate_option
from crowdveil.cli.verb import Verb
from crowdveil.display.counts import number_of
from crowdveil.registry import RANKING_NAMES

if TYPE_CHECKING:
    from crowdveil.answers.comparisons.columns import ComparisonNames
    from crowdveil.answers.facts.inputs import Input
    from crowdveil.answers.ingest.column_checks import Duplicates
    from crowdveil.answers.sources.location import Layout
    from crowdveil.inference.ranking.ranking import Ranking
    from crowdveil.storage.ranking.comparisons import ReadComparisons

SHOWN_ITEMS, SHOWN_WORKERS, SHOWN_TRIPLES = 20, 5, 3

comparison_options = option_group(
    click.option("--left-column", metavar="NAME", help="Column of the left item, if its name does not say so."),
    click.option("--right-column", metavar="NAME", help="Column of the right item."),
    click.option("--worker-column", metavar="NAME", help="Column of workers."),
    click.option("--label-column", metavar="NAME", help="Column of answers: left, right, tie, or the winner's name."),
    click.option("--list-column", metavar="NAME", help="Column of lists; items of two lists are never compared."),
    click.option("--delimiter", metavar="C", help="Character between cells; '\\t' is a tab. [default: by the header]"),
    click.option("--encoding", metavar="NAME", help="Encoding of text, as of infer. [default: UTF-8]"),
    click.option("--sheet", metavar="NAME", help="Sheet of a workbook."),
    click.option("--question", metavar="NAME", help="Question of an export with several."),
    heading="Columns and exports",
)


def comparison_names(
    *, left_column: str | None, right_column: str | None, worker_column: str | None, label_column: str | None,
    list_column: str | None,
) -> ComparisonNames:  # fmt: skip
    """Return the columns that the options state."""
    from crowdveil.answers.comparisons.columns import ComparisonNames

    return ComparisonNames(
        left=left_column, right=right_column, worker=worker_column, label=label_column, list=list_column
    )


def comparison_layout(
    *, delimiter: str | None, encoding: str | None, sheet: str | None, question: str | None
) -> Layout:
    """Return the layout that the options state."""
    from crowdveil.answers.sources.location import Layout

    character = "\t" if delimiter in ("\\t", "tab") else delimiter
    return Layout(delimiter=character, encoding=encoding, sheet=sheet, question=question)


@click.command(
    cls=Verb,
    values={"names": comparison_names, "layout": comparison_layout},
    example="crowdveil rank comparisons.csv --out ranked",
    main_options=("out", "page", "method", "gold", "as_json"),
    short_help="Rank items that workers compared in pairs.",
)
@sources_argument("comparisons")
@click.option("--out", type=FOLDER_PATH, help="Folder of ranks.csv, workers.csv and pairs.csv.")
@click.option("--page", type=FILE_PATH, help="HTML file of a page: items by rank with intervals, and privacy.")
@click.option("--title", metavar="TEXT", help="Heading of the page.")
@click.option("--method", type=NameChoice(RANKING_NAMES), default=RANKING_NAMES[0], help="How items are ranked.")
@click.option("--gold", type=FILE_PATH, help="Pairs whose order is known: left, right, label.")
@click.option(
    "--public-gold",
    is_flag=True,
    help="State that gold was found without anyone's answers, and privacy guarantees stay valid.",
)
@certificate_option
@click.option(
    "--participation-rate", type=click.FloatRange(0, 1, min_open=True), metavar="S",
    help="Share of the asked comparisons that are answered, where the channel hides it.",
)  # fmt: skip
@click.option(
    "--duplicates",
    type=click.Choice(["all", "first", "last", "error"]),
    default="all",
    help="If a worker compares a pair again: keep all, the first or the last in file order, or refuse. [default: all]",
)
@comparison_options
def rank(
    comparisons: tuple[str, ...],
    names: ComparisonNames,
    layout: Layout,
    out: Path | None,
    page: Path | None,
    title: str | None,
    method: str,
    gold: Path | None,
    public_gold: bool,
    certificate: Path | None,
    participation_rate: float | None,
    duplicates: Duplicates,
) -> None:
    """Rank items that workers compared in pairs, with the range of each rank.

    COMPARISONS is a table with the columns left, right, worker and label, in any form that infer reads, or an export of
    Label Studio or Mechanical Turk whose tasks have the two items. A label is left, right, tie, or the winner's name.

    \f
    The default reads how much each worker can be trusted, whether they prefer a side, and how often they say tie; a
    worker who guesses counts nothing, and one who reverses the order counts reversed. Ranks have a range of 90 %;
    scores are standardised, with intervals of 90 %. Two items are told apart if their order has a probability of 95 %.
    Items that no comparison connects are ranked apart, and nothing is said of their order.

    With a column list, the items of each list are ranked alone, and the workers of all lists are judged together.

    Most workers decide which end is the best. If most may reverse the order, known orders (--gold) decide.

    Reports with a certificate are read through its channel, whose answers are left, right, and maybe tie. The record of
    the folder names all inputs by their digest; `crowdveil statement` reads it.
    """
    from crowdveil.files.atomic_write import write_outputs
    from crowdveil.inference.ranking.rank import rank_comparisons
    from crowdveil.storage.estimate_files import page_outputs
    from crowdveil.storage.evidence import evidence_files
    from crowdveil.storage.ranking.comparisons import certificate_of, read_comparisons, read_known_orders
    from crowdveil.storage.ranking.files import ranking_outputs, write_ranking

    if title is not None and page is None:
        raise click.UsageError("--title requires --page.")
    if public_gold and gold is None:
        raise click.UsageError("--public-gold requires --gold.")
    with open_sources(comparisons, layout) as source:
        outputs, drawn = None if out is None else ranking_outputs(out), None if page is None else page_outputs(page)
        inputs = [*evidence_files(source), *source.inputs, certificate_of(source, certificate), gold]
        replaced = [path for one in (outputs, drawn) if one for path in one.check_replaced_files(inputs=inputs)]
        with progress_bar("reading", unit="bytes"):
            read = read_comparisons(source, names, certificate, participation_rate, duplicates)
        known = None if gold is None else read_known_orders(gold)
    found, files = rank_comparisons(read.rows, method, sent=read.sent, gold=known, notes=read.notes), list[Path]()
    if outputs is not None:
        reading = _portable_reading(read, comparisons, layout, certificate, outputs.folder)
        files += write_ranking(outputs, found, read, gold, public_gold=public_gold, reading=reading)
    if drawn is not None:
        text = _page_text(found, read, read.inputs(gold, public_gold=public_gold), title)
        write_outputs(drawn, {drawn.names[0]: text})
        files += drawn.paths
    data = _data(found)
    print_written(data, [*warning_rows(data), *_rows(data)], files, replaced)


def _portable_reading(
    read: ReadComparisons, sources: tuple[str, ...], layout: Layout, certificate: Path | None, folder: Path
) -> str:
    """Return how checked reports were read, for the record of a folder; empty for others."""
    from crowdveil.storage.evidence import EvidenceOptions
    from crowdveil.storage.recorded_reading_options import NamedReports

    if read.evidence is None:
        return ""
    named = NamedReports(sources=sources, layout=layout, options=EvidenceOptions(certificate=certificate))
    return named.portable_json(folder)


def _page_text(found: Ranking, read: ReadComparisons, inputs: tuple[Input, ...], title: str | None) -> str:
    """Return the page of a ranking, with the statement of privacy of what it depends on."""
    from crowdveil.campaign.statement.collection import statement_of_evidence
    from crowdveil.pages.ranking_page import NO_TITLE, ranking_page
    from crowdveil.privacy.statement_of_inputs import statement_of_inputs

    statement = statement_of_inputs(statement_of_evidence(read.evidence, None), inputs)
    return ranking_page(found, statement, title=title or NO_TITLE)


def _data(found: Ranking) -> dict[str, Any]:
    apart, pairs = found.told_apart if found.has_pairs else (None, None)
    rows, triples = found.comparisons, found.triples
    return {
        "warnings": list(found.notes),
        "method": found.method.name,
        "channel_used": found.table is not None,
        "comparisons": len(rows),
        "lists": len(rows.lists),
        "groups": rows.groups,
        "known_orders": found.known,
        "converged": found.converged,
        "ranks": truncated_json_rows(found.items(), SHOWN_ITEMS),
        "told_apart": apart,
        "pairs": pairs,
        "triples": None if triples is None else triples.closed,
        "intransitive": None if triples is None else triples.intransitive,
        "circles": [] if triples is None else [
            [rows.name_of_item(item) for item in circle] for circle in triples.examples[:SHOWN_TRIPLES].tolist()
        ],
        "workers": truncated_json_rows(found.workers(), SHOWN_WORKERS),
    }  # fmt: skip


def _rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    ranks, workers = data["ranks"], data["workers"]
    known = f", {number_of(data['known_orders'], 'known order')}" if data["known_orders"] else ""
    reports = "corrected for the noise of the channel" if data["channel_used"] else "read as answers"
    rows = [
        ("method", f"{data['method']}{known}"),
        ("comparisons", f"{data['comparisons']:,}, {reports}"),
        ("ranks", f"first {ranks['shown']:,} of {number_of(ranks['of'], 'item')}; range and interval hold 90 %"),
        *[("", _item_line(one)) for one in ranks["items"]],
    ]
    if data["pairs"] is not None:
        rows.append(("told apart", f"{data['told_apart']:,} of {number_of(data['pairs'], 'pair')}, at 95 %"))
    if data["triples"]:
        circles = "; ".join(" > ".join([*circle, circle[0]]) for circle in data["circles"])
        such = f", such as {circles}" if circles else ""
        rows.append(("circles", f"{data['intransitive']:,} of {data['triples']:,} triples of majorities{such}"))
    if workers["items"] and "slope" in workers["items"][0]:
        rows.append(("workers", f"least reliable, {workers['shown']:,} of {workers['of']:,}"))
        rows += [("", _worker_line(one)) for one in workers["items"]]
    elif workers["items"] and "side" in workers["items"][0]:
        rows.append(("workers", "all count alike: reports of each are too few to say who is reliable"))
    return rows


def _item_line(one: dict[str, Any]) -> str:
    place = "".join(f"{one[name]}, " for name in ("list",) if name in one)
    group = f" (group {one['group']})" if "group" in one else ""
    ranks = f"{one['rank']}. ({one['rank_low']} to {one['rank_high']})"
    return f"{ranks} {place}{one['item']}{group}: {one['score']:.2f} ({one['low']:.2f} to {one['high']:.2f})"


def _worker_line(one: dict[str, Any]) -> str:
    ties = f", tie {one['tie_rate']:.0%}" if "tie_rate" in one else ""
    slope = f"slope {one['slope']:.2f} ({one['slope_low']:.2f} to {one['slope_high']:.2f})"
    return (
        f"{one['worker']}: {slope}, right direction {one['right_direction']:.0%}{ties}, {one['comparisons']:,} answers"
    )
