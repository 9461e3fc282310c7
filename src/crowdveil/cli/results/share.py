"""`crowdveil share`: share of each label among the answers to a task, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.display import truncate_items
from crowdveil.cli.options import FILE_PATH, WORDS, option_group
from crowdveil.cli.progress import progress_bar
from crowdveil.cli.results.reports_argument import REPORTS, asked_options, open_reports, reports_options
from crowdveil.cli.verb import Verb
from crowdveil.display.counts import number_of

if TYPE_CHECKING:
    from crowdveil.answers.evidence import Evidence
    from crowdveil.quality.shares.joint import JointShares
    from crowdveil.quality.shares.regression import ShareRegression
    from crowdveil.quality.shares.result import Shares
    from crowdveil.storage.recorded_reading_options import NamedReports

SHOWN_TASKS, SHOWN = 20, 20
"""Tasks, and differences or tests, that are shown."""


@dataclass(frozen=True, kw_only=True)
class ShareSettings:
    """Level, groups and design of the shares, as the options state them."""

    level: float
    simultaneous: bool
    pooled: bool
    by: Path | None
    min_group: int
    weights: Path | None
    totals: Path | None
    clusters: Path | None
    joint: tuple[str, ...] | None
    cells: tuple[str, ...] | None
    regress: Path | None
    outcome: str | None
    regress_task: str | None

    @property
    def files(self) -> list[Path | None]:
        """Files that are read beside the reports."""
        return [self.by, self.weights, self.totals, self.clusters, self.regress]

    def joint_table(self, evidence: Evidence) -> JointShares | None:
        """Return the joint table of two questions; None unless it was asked for."""
        from crowdveil.quality.shares.joint import joint_share

        return None if self.joint is None else joint_share(evidence, *self.joint, cells=self.cells, level=self.level)

    def regression(self, evidence: Evidence) -> ShareRegression | None:
        """Return the regression on covariates; None unless it was asked for."""
        from crowdveil.quality.shares.regression import share_regression
        from crowdveil.storage.given_files import read_worker_table

        if self.regress is None or self.outcome is None:
            return None
        return share_regression(
            evidence,
            read_worker_table(self.regress),
            self.outcome,
            question=self.regress_task,
            weights=None if self.weights is None else read_worker_table(self.weights),
            level=self.level,
        )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `crowdveil.share`."""
        from crowdveil.storage.given_files import read_totals, read_worker_table

        tables = {"by": self.by, "weights": self.weights, "clusters": self.clusters}
        return {
            **{name: None if path is None else read_worker_table(path) for name, path in tables.items()},
            "totals": None if self.totals is None else read_totals(self.totals),
            **{name: getattr(self, name) for name in ("level", "simultaneous", "pooled", "min_group")},
        }


def share_settings(
    level: float,
    simultaneous: bool,
    pooled: bool,
    by: Path | None,
    min_group: int,
    weights: Path | None,
    totals: Path | None,
    clusters: Path | None,
    joint: tuple[str, ...] | None,
    cells: tuple[str, ...] | None,
    regress: Path | None,
    outcome: str | None,
    regress_task: str | None,
) -> ShareSettings:
    """Return the settings of the options."""
    if joint is not None and len(joint) > 2:
        raise click.UsageError("--joint names two tasks, or one combined question.")
    if cells is not None and joint is None:
        raise click.UsageError("--cells goes with --joint.")
    if (regress is None) != (outcome is None):
        raise click.UsageError("--regress and --outcome go together.")
    for name, given, unused in (
        ("--joint", joint, {"--weights": weights, "--totals": totals, "--clusters": clusters, "--pooled": pooled}),
        ("--regress", regress, {"--totals": totals, "--clusters": clusters, "--pooled": pooled}),
    ):
        beside = next((option for option, value in unused.items() if value), None)
        if given is not None and beside is not None:
            raise click.UsageError(f"{name} does not use {beside}: leave one of them out.")
    return ShareSettings(
        level=level, simultaneous=simultaneous, pooled=pooled, by=by, min_group=min_group, weights=weights,
        totals=totals, clusters=clusters, joint=joint, cells=cells, regress=regress, outcome=outcome,
        regress_task=regress_task,
    )  # fmt: skip


SETTINGS: dict[str, Callable[..., Any]] = {"settings": share_settings}
design_options = option_group(
    click.option("--by", type=FILE_PATH, help="Table of public groups: worker, and a column for each grouping."),
    click.option(
        "--min-group",
        type=click.IntRange(min=1),
        default=10,
        show_default=True,
        metavar="N",
        help="Least number of workers in a group; smaller ones are joined, or not shown.",
    ),
    click.option("--weights", type=FILE_PATH, help="Table of public survey weights: worker, weight."),
    click.option("--totals", type=FILE_PATH, help="Table of known totals of the groups of --by: group, total."),
    click.option("--clusters", type=FILE_PATH, help="Table of sampled clusters: worker, cluster."),
    click.option("--pooled", is_flag=True, help="Read all tasks as one; the worker is then the unit of sampling."),
    click.option("--simultaneous", is_flag=True, help="Intervals of labels, and of differences, hold together."),
    heading="Groups and design",
)
relation_options = option_group(
    click.option("--joint", type=WORDS, help="Two tasks with two labels, or one with four and --cells: odds ratio."),
    click.option("--cells", type=WORDS, help="Labels of one task of --joint: both, first only, second only, neither."),
    click.option("--regress", type=FILE_PATH, help="Table of public covariates: worker, and a column for each."),
    click.option("--outcome", metavar="LABEL", help="Label whose log-odds --regress models."),
    click.option("--regress-task", metavar="TASK", help="Task of --regress, if there are several."),
    heading="Two questions, and covariates",
)


@click.command(
    cls=Verb,
    values=REPORTS | SETTINGS,
    example="crowdveil share labels.csv --out shares.csv",
    main_options=("out", "page", "level", "by", "weights", "labels", "as_json"),
    short_help="Estimate the share of each label (what share said yes).",
)
@click.option("--out", type=FILE_PATH, help="CSV file: task, label, of, share, low, high and others.")
@click.option("--page", type=FILE_PATH, help="HTML file of a page: intervals by question and group, and privacy.")
@click.option("--title", metavar="TEXT", help="Heading of the page.")
@click.option(
    "--lead", metavar="LABEL", help="Label that the page reads first. [default: the second of two; else all in order]"
)
@click.option(
    "--level",
    type=float,
    default=0.95,
    show_default=True,
    metavar="P",
    help="Level of the intervals, such as .9.",
)
@design_options
@relation_options
@reports_options
@asked_options
def share(
    reports: NamedReports, out: Path | None, page: Path | None, title: str | None, lead: str | None,
    settings: ShareSettings,
) -> None:  # fmt: skip
    """Estimate the share of each label among the answers to each task: what share said yes.

    REPORTS is what infer reads, or the folder that it wrote. `crowdveil infer` finds the truth of a task, which has one
    right answer; for opinions and other answers that differ from person to person, use share.

    \f
    The share of a label is among the answers to the task; people without an answer are left out. Where participation is
    protected, the share of no answer is among all who were asked. The people are read as a random sample; for
    themselves alone the intervals are too wide. Each interval holds with the level alone.

    Shares are the maximum of the likelihood of the reports through the channel of the certificate, held in [0, 1]; the
    file has the unclipped estimate too, which is right on average with public participation only. Do not average small
    groups: ask for their share together. Intervals are clipped score intervals, with weights, totals, clusters or
    pooled tasks those of the effective number of reports; of several channels, Fieller's. P values of tests of groups
    are adjusted for all of them (Holm). File and JSON have no share where the reports do not determine it (labels of
    one block), only an interval. Reports without a certificate are read as answers; protected ones are refused.
    """
    from crowdveil.quality.shares.result import first_rows, public_note
    from crowdveil.quality.shares.share_function import share as shares_of
    from crowdveil.storage.estimate_files import page_outputs

    for name, given in (("--title", title), ("--lead", lead)):
        if given is not None and page is None:
            raise click.UsageError(f"{name} requires --page.")
    if out is not None and page is not None and out.resolve() == page.resolve():
        raise click.UsageError("--out and --page are two files: give them two names.")
    relation = "--joint" if settings.joint is not None else "--regress" if settings.regress is not None else ""
    if page is not None and relation:
        raise click.UsageError(f"The page has no {relation}: leave --page or {relation} out.")
    drawn = None if page is None else page_outputs(page)
    earlier = [] if drawn is None else drawn.check_replaced_files(inputs=settings.files)
    with open_reports(reports, out, "shares", settings.files) as read, progress_bar("estimating") as bar:
        found = shares_of(read.evidence, **settings.arguments(), progress=bar)
        joint, regression = settings.joint_table(read.evidence), settings.regression(read.evidence)
    data = {
        "warnings": [
            *found.notes,
            *(() if regression is None else regression.notes),
            *public_note((*found.public_inputs, *(() if regression is None else ("covariates",)))),
        ],
        "channel_used": found.channel_used,
        "level": found.level,
        "simultaneous": found.simultaneous,
        "method": found.method,
        "totals": found.totals or None,
        "shares": truncate_items(found.to_json(SHOWN_TASKS), len(found.tasks) * len(found.groups)),
        "differences": truncate_items(first_rows(found.differences, SHOWN), len(found.differences)),
        "tests": truncate_items(first_rows(found.tests, SHOWN), len(found.tests)),
        "joint": None if joint is None else joint.to_json(),
        "regression": None if regression is None else regression.to_json(),
    }
    text = "" if drawn is None else _page(found, read.evidence, title, lead, reports.sources)
    read.write_table_and_print(data, _rows_of_shares, found.columns, drawn, text, earlier)


def _page(found: Shares, evidence: Evidence, title: str | None, lead: str | None, sources: tuple[str, ...]) -> str:
    """Return the page of shares, with the statement of privacy of their reports and the texts of their campaign."""
    from crowdveil.campaign.files.folder import read_campaign
    from crowdveil.campaign.statement.collection import statement_of_evidence
    from crowdveil.campaign.statement.facts import campaign_text
    from crowdveil.campaign.statement.source import find_campaign_file
    from crowdveil.pages.share_page import NO_TITLE, share_page
    from crowdveil.storage.crowd import report_directory

    named = None if evidence.collection is None else evidence.collection.campaign
    beside = find_campaign_file(report_directory(sources[0])) if named is not None and len(sources) == 1 else None
    campaign = None if beside is None else read_campaign(beside)
    if campaign is not None and campaign.name != named:
        campaign = None
    text = None if campaign is None else campaign_text(campaign)
    heading = title or (NO_TITLE if text is None else text.title)
    return share_page(
        found,
        statement_of_evidence(evidence, campaign),
        title=heading,
        lead=lead,
        questions={} if text is None else text.task_texts,
        sent_of=None if campaign is None else (len(evidence.reports.workers), campaign.slots),
    )


def _rows_of_shares(data: dict[str, Any]) -> list[tuple[str, str]]:
    shares = data["shares"]
    together = "simultaneous " if data["simultaneous"] else ""
    noun = "row" if any(one["by"] for one in shares["items"]) else "task"
    count = f"{shares['shown']:,} of {number_of(shares['of'], noun)}"
    return [
        ("reports", "corrected for the noise of the channel" if data["channel_used"] else "read as answers"),
        ("shares", f"{count}, with {together}{100 * data['level']:g} % intervals"),
        *[("", f"{_place(one)}: {', '.join(map(_share_with_interval, one['symbols']))}") for one in shares["items"]],
        *_titled("tests", (_test_text(one, data["tests"]["of"]) for one in data["tests"]["items"])),
        *_titled("differences", map(_difference_text, data["differences"]["items"])),
        *_titled("joint", _joint_texts(data["joint"])),
        *_titled("log-odds", map(_coefficient_text, (data["regression"] or {"coefficients": []})["coefficients"])),
    ]


def _titled(title: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return rows of which the first has the title."""
    return [("" if number else title, text) for number, text in enumerate(texts)]


def _place(one: dict[str, Any]) -> str:
    return f"{one['task']}, {one['by']} {one['group']}" if one["by"] else str(one["task"])


def _share_with_interval(one: dict[str, Any]) -> str:
    """Return a share with its interval as text."""
    value = "not determined" if one["share"] is None else f"{one['share']:.1%}"
    name = "no answer, of those asked" if one["of"] == "asked" else one["label"]
    name += ", of all people," if one["of"] == "everyone" else ""
    return f"{name} {value} ({one['low']:.1%} to {one['high']:.1%})"


def _test_text(one: dict[str, Any], tests: int) -> str:
    """Return a test of no difference as a sentence; of several the p value is adjusted, too."""
    freedom = f"{number_of(one['degrees'], 'degree')} of freedom"
    if one["p_value"] is None:
        return f"{one['task']}, {one['label']}: no difference by {one['by']}: not determined"
    numbers = f"chi-squared {one['statistic']:.2f}, {freedom}, p = {one['p_value']:.3f}"
    adjusted = f", adjusted {one['adjusted']:.3f}" if tests > 1 else ""
    return f"{one['task']}, {one['label']}: no difference by {one['by']}: {numbers}{adjusted}"


def _difference_text(one: dict[str, Any]) -> str:
    """Return the difference of two groups with its interval as text."""
    value = "not determined" if one["difference"] is None else f"{100 * one['difference']:+.1f}"
    ends = f"({100 * one['low']:+.1f} to {100 * one['high']:+.1f} percentage points)"
    return f"{one['task']}, {one['label']}: {one['by']} {one['first']} minus {one['second']} {value} {ends}"


def _joint_texts(joint: dict[str, Any] | None) -> list[str]:
    """Return the cells of a joint table and its odds ratio as text; nothing without one."""
    if joint is None:
        return []
    cells = [
        f"{one['first']}, {one['second']}{_label_of_cell(one)}: {_share_with_interval(one | AMONG_ANSWERS)}"
        for one in joint["cells"]
    ]
    ratio = "not determined" if joint["odds_ratio"] is None else f"{joint['odds_ratio']:.3g}"
    high = "no end" if joint["odds_high"] is None else f"{joint['odds_high']:.3g}"
    return [*cells, f"odds ratio {ratio} ({joint['odds_low']:.3g} to {high}), p = {joint['p_value']:.3f}"]


def _label_of_cell(one: dict[str, Any]) -> str:
    """Return the label of a combined question that stands for a cell; empty for two questions."""
    return f" ({one['label']})" if one["label"] else ""


AMONG_ANSWERS = {"label": "", "of": "answers"}
"""Members of a cell of a joint table as of a share."""


def _coefficient_text(one: dict[str, Any]) -> str:
    """Return a coefficient with its interval as text."""
    tested = "" if one["p_value"] is None else f", p = {one['p_value']:.3f}"
    return f"{one['model']}, {one['name']}: {one['estimate']:+.3f} ({one['low']:+.3f} to {one['high']:+.3f}){tested}"
