"""`crowdveil report`: one HTML page with truths, doubtful tasks and the statement of privacy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.data.sources import SOURCE, open_sources
from crowdveil.cli.display import print_written
from crowdveil.cli.options import CAMPAIGN_FILE, FILE_PATH, FOLDER, stated_options
from crowdveil.cli.results.reports_argument import (
    READING_OPTIONS,
    REPORTS,
    release_options,
    source_reports,
)
from crowdveil.cli.verb import Verb

if TYPE_CHECKING:
    from crowdveil.answers.sources.answer_source import AnswerSource
    from crowdveil.campaign.rules.document import Campaign
    from crowdveil.files.atomic_write import Outputs
    from crowdveil.pages.conclusion import Conclusion
    from crowdveil.pages.results_page import PageText, QuestionResults
    from crowdveil.privacy.statement import PrivacyStatement
    from crowdveil.storage.evidence import EvidenceOptions
    from crowdveil.storage.recorded_reading_options import NamedReports

WORSE = ("use", "care", "unknown", "not enough")
"""Verdicts, the best first."""
HINT = "If the reports were protected, name them: --reports collected/reports.csv."


@click.command(
    cls=Verb,
    values=REPORTS,
    example='crowdveil report found --title "Cats and dogs" --out cats.html',
    main_options=("out", "grades", "reports", "campaign", "title", "shown_question", "workers"),
    short_help="Write the results as one HTML page.",
)
@click.argument("folder", type=FOLDER)
@click.option("--out", type=FILE_PATH, help="HTML file of the page. [default: report.html in FOLDER]")
@click.option(
    "--reports",
    multiple=True,
    type=SOURCE,
    help="Reports that infer read; repeat it for several. [default: those recorded in FOLDER]",
)
@click.option(
    "--campaign",
    type=CAMPAIGN_FILE,
    help="campaign.json of the campaign that collected the reports. [default: that in FOLDER, or next to its reports]",
)
@click.option("--title", metavar="TEXT", help="Heading of the page.")
@click.option("--question", "shown_question", metavar="TEXT", help="Question that the workers were asked.")
@click.option("--grades", type=FILE_PATH, help="CSV file: task, name, grade on the scale, low, high, reports.")
@click.option("--names", type=FILE_PATH, help="With --grades: file with the columns task (or id) and name.")
@click.option("--workers", is_flag=True, help="Show names and quality of workers; only if they agreed to it.")
@release_options
def report(
    folder: Path,
    out: Path | None,
    reports: NamedReports,
    campaign: Path | None,
    title: str | None,
    shown_question: str | None,
    workers: bool,
    grades: Path | None,
    names: Path | None,
) -> None:
    """Write the results that infer wrote to FOLDER as one HTML page, to mail or to file.

    The page has the truths with their confidence, the doubtful tasks, the expected error next to that of the best
    constant, the statement of privacy, and a conclusion in words. It states epsilon of a single answer (cell) and of a
    worker, and participation, only with a certificate that was checked against the reports. It shows no worker's
    reports, and no worker's name unless requested. REPORTS must be those that infer read, with the same options.

    \f
    --grades also writes a table of numbers rounded to the scale, with 90 % intervals rounded outwards. It has all
    questions of a task together, and the name that --names gives the task.
    """
    from crowdveil.campaign.statement.collection import joint_statement_of_questions
    from crowdveil.campaign.statement.source import find_campaign_file
    from crowdveil.files.atomic_write import write_outputs
    from crowdveil.pages.grades import grade_columns, warnings_of_names
    from crowdveil.pages.results_page import results_page
    from crowdveil.privacy.statement import statement_sentences
    from crowdveil.storage.estimate_files import page_outputs
    from crowdveil.storage.results.task_names import read_names_of_tasks
    from crowdveil.storage.tables import write_columns

    path = out or folder / "report.html"
    outputs = page_outputs(path)
    replaced = outputs.check_replaced_files()
    table = _outputs_of_grades(grades, names)
    replaced += [] if table is None else table.check_replaced_files(inputs=[names])
    named = None if names is None else read_names_of_tasks(names)
    campaign = campaign or find_campaign_file(folder)
    if campaign is not None and (title, shown_question) != (None, None):
        raise click.UsageError("The campaign states title and question: leave out --title and --question.")
    asked, text = _campaign_and_text(campaign, title, shown_question, with_workers=workers)
    answered = _results_of_each_question(folder, reports, asked, text)
    statement = joint_statement_of_questions([one.statement for one in answered])
    page = results_page(answered, statement, text=text if len(answered) > 1 else answered[0].text)
    columns = None if table is None else grade_columns(answered, named)
    write_outputs(outputs, {path.name: page.html})
    warnings = [] if named is None else warnings_of_names(answered, named)
    if table is not None and columns is not None:
        warnings += write_columns(table, columns)
    rows = [
        *[("warning", text) for text in warnings],
        *[("privacy", sentence) for sentence in statement_sentences(statement)],
        *[("conclusion", sentence) for one in page.conclusions for sentence in one.sentences],
        *([("hint", HINT)] if statement.without_reports else []),
    ]
    data = _report_json_members(statement, page.conclusions) | {"warnings": warnings}
    print_written(data, rows, [path, *([] if table is None else table.paths)], replaced)


def _outputs_of_grades(grades: Path | None, names: Path | None) -> Outputs | None:
    """Return the table of grades that will be written; None for none."""
    from crowdveil.files.atomic_write import Outputs

    if grades is None and names is not None:
        raise click.UsageError("--names requires --grades.")
    return None if grades is None else Outputs(folder=grades.parent, names=(grades.name,), kind="grades")


def _campaign_and_text(
    campaign: Path | None, title: str | None, question: str | None, *, with_workers: bool
) -> tuple[Campaign | None, PageText]:
    """Return the campaign, if there is one, and the text of the page."""
    from crowdveil.campaign.files.folder import read_campaign
    from crowdveil.campaign.statement.facts import campaign_text
    from crowdveil.pages.results_page import NO_TITLE, PageText

    if campaign is None:
        return None, PageText(title=title or NO_TITLE, question=question or "", with_workers=with_workers)
    asked = read_campaign(campaign)
    return asked, campaign_text(asked, with_workers=with_workers)


def _results_of_each_question(
    folder: Path, reports: NamedReports, asked: Campaign | None, text: PageText
) -> list[QuestionResults]:
    """Return the results of each question with the statement of its reports; `text` is that of the whole page."""
    from crowdveil.campaign.files.campaign_reports import existing_question_folders, export_folder_per_question
    from crowdveil.campaign.statement.collection import require_every_question

    folders = [] if asked is None else existing_question_folders(folder, asked)
    if asked is None or not folders:
        return [_results_with_statement(folder, reports, asked, text)]
    answered = [_results_with_statement(one, _reports_of_question(reports, one), asked, text) for one in folders]
    behind = {one: got.evidence for one, got in zip(folders, answered, strict=True)}
    wanted = export_folder_per_question(folder, asked)
    require_every_question(asked, {str(one): behind.get(one) for one in wanted})
    return answered


def _reports_of_question(reports: NamedReports, results: Path) -> NamedReports:
    """Return the reports of a question, of a named folder those in the folder of the same name as that of results."""
    return replace(
        reports,
        sources=tuple(
            str(Path(source) / results.name) if (Path(source) / results.name).is_dir() else source
            for source in reports.sources
        ),
    )


def _results_with_statement(
    folder: Path, reports: NamedReports, campaign: Campaign | None, text: PageText
) -> QuestionResults:
    """Return the results in a folder, with the statement of their reports; `text` is that of the whole page."""
    from crowdveil.campaign.statement.collection import question_that_reports_answer, statement_of_results
    from crowdveil.campaign.statement.facts import campaign_text
    from crowdveil.campaign.statement.source import find_recorded_reports, read_stated_reports
    from crowdveil.pages.results_page import QuestionResults
    from crowdveil.storage.results.result_files import read_results

    results = read_results(folder)
    with _opened_reports(folder, reports) as (source, reading):
        found = source or find_recorded_reports(folder)
        behind = read_stated_reports(results.reports_sha256, found, reading, text.question)
        stated, evidence = statement_of_results(behind, campaign, inputs=results.inputs), behind.evidence
        one = None if campaign is None or evidence is None else question_that_reports_answer(evidence, campaign)
        text = text if one is None else campaign_text(one, with_workers=text.with_workers)
        return QuestionResults(results, stated, evidence, text)


@contextmanager
def _opened_reports(
    folder: Path, reports: NamedReports
) -> Iterator[tuple[AnswerSource | Path | None, EvidenceOptions]]:
    """Yield the source of reports, or the file of sums, None without any; and the options with which it is read."""
    from crowdveil.storage.crowd import is_sums_file

    used = reports
    if not reports.sources and not stated_options().intersection(READING_OPTIONS):
        recorded = source_reports([str(folder)])
        if recorded is not None and recorded.source_files_exist:
            # The question is found by its digest, so that a page cannot name another one.
            used = replace(recorded, layout=replace(recorded.layout, question=None))
    names = used.sources
    if not names or (len(names) == 1 and is_sums_file(Path(names[0]))):
        yield Path(names[0]) if names else None, reports.options
    else:
        with open_sources(names, used.layout) as source:
            yield source, used.options


def _report_json_members(statement: PrivacyStatement, conclusions: Sequence[Conclusion]) -> dict[str, Any]:
    """Return the members of the JSON document but the files."""
    from crowdveil.privacy.statement import statement_sentences

    return {
        "privacy": statement.status,
        "statement": list(statement_sentences(statement)),
        "verdict": max((one.verdict for one in conclusions), key=WORSE.index),
        "conclusion": [sentence for one in conclusions for sentence in one.sentences],
        "questions": [one.verdict for one in conclusions] if len(conclusions) > 1 else [],
        "epsilon_per_answer": None if statement.per_answer is None else statement.per_answer.epsilon,
        "epsilon_per_worker": None if statement.per_worker is None else statement.per_worker.epsilon,
        "certificate_sha256": statement.certificate_sha256,
    }
