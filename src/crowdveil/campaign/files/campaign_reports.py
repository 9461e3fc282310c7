"""Reports of a campaign as the folder that `crowdveil infer` reads.

`infer` counts an assigned cell without a row as a NULL report. Therefore only workers whose report arrived are listed
in `crowd.json` and in `assignment.csv`. Workers are named by their slot, w0017, and are in the order of slots.
"""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.evidence import Evidence
from crowdveil.answers.facts.asked import STATED
from crowdveil.answers.reports import Reports
from crowdveil.answers.write_reports import formula_names_warning
from crowdveil.campaign.files.folder import CAMPAIGN_FILE, read_campaign
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.rules.report import decode_body, level_in_body
from crowdveil.channels.alphabet import NULL
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.compared_pairs import are_comparisons
from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import write_outputs
from crowdveil.storage.crowd import (
    ASSIGNMENT_FILE,
    CERTIFICATE_FILE,
    CROWD_FILE,
    REPORTS_FILE,
    crowd_of_reports,
    json_bytes,
    sha256_hex,
)
from crowdveil.storage.evidence import public_inputs
from crowdveil.storage.write_collection import collection_outputs, report_files_in_memory

FIRST_QUESTION = "question-1"
EXPORT_FILES = (CERTIFICATE_FILE, ASSIGNMENT_FILE, CAMPAIGN_FILE, CROWD_FILE, REPORTS_FILE)
"""Files of a question."""


class AcceptedReport(NamedTuple):
    """One worker's report: slot, task indices, the code of the report symbol of each task, and the chosen level.

    A code that is no output of the cell's channel, such as `campaign.report.NOT_ANSWERED`, is no answer. The level is
    None in a campaign without levels.
    """

    slot: int
    tasks: Sequence[int]
    codes: Sequence[int]
    level: int | None = None


def read_accepted_report(campaign: Campaign, slot: int, tasks: Sequence[int], body: bytes) -> AcceptedReport:
    """Return the report in a body.

    Raises:
        CampaignError: length, symbol, level.
    """
    return AcceptedReport(slot, tasks, decode_body(body, campaign, slot, tasks), level_in_body(body, campaign))


class CollectedQuestion(NamedTuple):
    """Collection of a question in memory: the campaign as this question, its evidence, and its files by name."""

    campaign: Campaign
    evidence: Evidence
    files: dict[str, bytes]


class ExportedQuestion(NamedTuple):
    """Collection of one question: its folder, the campaign as that question alone, and the non-NULL reports."""

    folder: Path
    campaign: Campaign
    reports: Reports


def exported_name_of_slot(slot: int) -> str:
    """Return the name of a worker in exported files."""
    return f"w{slot:04}"


def export_folder_per_question(directory: Path, campaign: Campaign) -> list[Path]:
    """Return the folder of each question: the directory itself, with several `question-1` and so on inside."""
    if not campaign.questions:
        return [directory]
    return [directory / f"question-{number}" for number in range(1, len(campaign.questions) + 1)]


def existing_question_folders(directory: Path, campaign: Campaign) -> list[Path]:
    """Return the folders of several questions that a folder holds; errors as `refuse_other_collections`."""
    found = [
        folder for folder in export_folder_per_question(directory, campaign) if campaign.questions and folder.is_dir()
    ]
    if found:
        refuse_other_collections(directory, campaign)
    return found


def collections_of_questions(directory: Path) -> dict[str, Path]:
    """Return the folder of each of several questions by its text, of a folder that was exported; empty for others.

    Raises:
        SettingsError: a question is absent, or as `refuse_other_collections`.
    """
    document = directory / FIRST_QUESTION / CAMPAIGN_FILE
    if not (document.is_file() and (document.parent / CROWD_FILE).is_file()):
        return {}
    campaign = read_campaign(document)
    wanted, found = export_folder_per_question(directory, campaign), existing_question_folders(directory, campaign)
    absent = [folder for folder in wanted if folder not in found]
    if absent or not campaign.questions:
        raise SettingsError(
            "a folder of several questions has the reports to each",
            value=", ".join(map(str, absent)),
            hint="Export them again, or give the folder of one question.",
        )
    return dict(zip((question.text for question in campaign.questions), wanted, strict=True))


def refuse_other_collections(directory: Path, campaign: Campaign) -> None:
    """Refuse a folder in which what was left of another collection could pass for a part of this campaign's.

    Raises:
        SettingsError: the folder of a question that the campaign does not have, or reports beside those of several.
    """
    own = export_folder_per_question(directory, campaign)
    others = [path for path in directory.glob("question-*") if re.fullmatch("question-[0-9]+", path.name)]
    # The document itself may stand at the root: it is of all questions.
    beside = [directory / name for name in EXPORT_FILES if name != CAMPAIGN_FILE] if campaign.questions else []
    found = [path for path in sorted(others) if path not in own] + [path for path in beside if path.exists()]
    if found:
        raise SettingsError(
            "the folder must hold only the questions and reports of the campaign",
            value=", ".join(map(str, found)),
            hint="They are of another collection, and nothing was deleted: move them away, or give another folder.",
        )


def write_questions(
    directory: str | PathLike[str], campaign: Campaign, accepted: Iterable[AcceptedReport], *, replace: bool = False
) -> list[ExportedQuestion]:
    """Write `EXPORT_FILES` for each question, through a relay without the assignment, with the workers asked it.

    The files depend on the set of reports only.

    Args:
        directory: folder to be written, see `export_folder_per_question`.
        campaign: campaign of the reports.
        accepted: at most one report per slot, in any order.
        replace: whether an earlier collection in the folder is removed.

    Raises:
        SettingsError: as `collected_questions` and `refuse_other_collections`, before anything is written if a
            question has too few reports.
    """
    refuse_other_collections(Path(directory), campaign)
    found = []
    for folder, one in zip(
        export_folder_per_question(Path(directory), campaign), collected_questions(campaign, accepted), strict=True
    ):
        write_outputs(collection_outputs(folder, tuple(one.files), replace=replace), one.files)
        found.append(ExportedQuestion(folder, one.campaign, one.evidence.reports))
    return found


def collected_questions(campaign: Campaign, accepted: Iterable[AcceptedReport]) -> list[CollectedQuestion]:
    """Return the collection of each question in memory, with the workers that were asked it.

    Raises:
        SettingsError: a question has fewer reports than `campaign.min_reports`, or two of a slot.
    """
    parts, reports = campaign.by_question, list(accepted)
    starts = [sum(len(part.tasks) for part in parts[:index]) for index in range(len(parts))]
    own = [
        _reports_on_tasks(reports, range(start, start + len(part.tasks)))
        for start, part in zip(starts, parts, strict=True)
    ]
    for one in own:
        _require_min_reports(len(one), campaign)
    linked = campaign.relay is None or campaign.relay.unit != "cell"
    return [
        collected_question(part, sent, question=(number, len(parts)) if len(parts) > 1 else None, linked=linked)
        for number, (part, sent) in enumerate(zip(parts, own, strict=True), start=1)
    ]


def _reports_on_tasks(reports: Iterable[AcceptedReport], tasks: range) -> list[AcceptedReport]:
    """Return the cells of some tasks, which are numbered from 0, of the workers that have any."""
    kept = [(one, [cell for cell, task in enumerate(one.tasks) if task in tasks]) for one in reports]
    return [
        one._replace(tasks=[one.tasks[cell] - tasks.start for cell in cells], codes=[one.codes[cell] for cell in cells])
        for one, cells in kept
        if cells
    ]


def collected_question(
    campaign: Campaign,
    accepted: Iterable[AcceptedReport],
    *,
    question: tuple[int, int] | None = None,
    linked: bool = True,
) -> CollectedQuestion:
    """Return the collection of one question in memory; arguments as `write_questions` and `Collection`.

    Raises:
        SettingsError: fewer reports than `campaign.min_reports`, or two reports of a slot.
    """
    assert not campaign.questions
    ordered = sorted(accepted, key=lambda report: report.slot)
    _require_min_reports(len(ordered), campaign)
    slots = [report.slot for report in ordered]
    if len(set(slots)) != len(slots):
        raise SettingsError("a campaign has one report per slot", value=f"{len(slots) - len(set(slots))} more")
    channel = campaign_channel(campaign, ordered)
    reports, assignment = _reports_and_assignment(campaign, channel, ordered)
    # Through a relay every worker has every task.
    assigned = assignment if campaign.relay is None else None
    text, certificate = None if assigned is None else assigned.to_csv(), channel.certificate()
    crowd = crowd_of_reports(
        reports,
        mechanism=channel.mechanism,
        description=channel.mechanism,
        guarantee=channel.guarantee,
        participation=campaign.participation,
        certificate=certificate,
        assignment=text,
        campaign=campaign.name,
        question=question,
        linked=linked,
    )
    evidence = Evidence(
        observed=reports,
        channel=channel,
        asked=dataclasses.replace(crowd.asked, assignment=assigned),
        collection=crowd.collection.with_channel(channel),
        inputs=public_inputs(sha256_hex(json_bytes(certificate)), crowd),
    )
    files = report_files_in_memory(
        reports, certificate, crowd, assignment=text, beside={CAMPAIGN_FILE: campaign.to_bytes()}
    )
    return CollectedQuestion(campaign, evidence, files)


def campaign_channel(campaign: Campaign, accepted: Iterable[AcceptedReport]) -> Channel | ChannelTable:
    """Return the channel of a campaign; with several, the table over its task ids and the names of these workers.

    In a campaign with levels the group of a worker is the level that the worker chose.
    """
    groups = campaign.groups
    if campaign.levels is not None:
        chosen = {exported_name_of_slot(report.slot): report.level for report in accepted}
        return ChannelTable.by_worker(campaign.channels, chosen)  # type: ignore[arg-type]
    if groups is None:
        return campaign.channels[0]
    return ChannelTable(
        channels=campaign.channels,
        choice=groups.choice,
        workers={exported_name_of_slot(report.slot): groups.slot_group[report.slot] for report in accepted},
        tasks={task.id: group for task, group in zip(campaign.tasks, groups.task_group, strict=True)},
    )


def verb_of_results(campaign: Campaign) -> str:
    """Return the verb that reads the reports: `rank` of comparisons, else `infer`."""
    return "rank" if are_comparisons(campaign.alphabet, (task.id for task in campaign.tasks)) else "infer"


def warning_of_formulas(campaign: Campaign) -> tuple[str, ...]:
    """Return a warning of a task or label that a spreadsheet reads as a formula; empty without any."""
    labels = (label for one in campaign.by_question for label in one.labels)
    return formula_names_warning("csv", labels, (task.id for task in campaign.tasks))


def _require_min_reports(found: int, campaign: Campaign) -> None:
    """Refuse a release below the least number of reports; the message holds no count."""
    if found < campaign.min_reports:
        raise SettingsError(
            f"nothing is released below {campaign.min_reports} reports, the least number of this campaign",
            value=f"fewer than {campaign.min_reports}",
            hint="While the campaign is open, wait for more reports. Once it is closed, ask again in a new campaign.",
        )


def _reports_and_assignment(
    campaign: Campaign, channel: Channel | ChannelTable, ordered: Sequence[AcceptedReport]
) -> tuple[Reports, Assignment]:
    """Return the non-NULL reports, and the assignment of the workers that reported."""
    code_of = {name: code for code, name in enumerate(channel.report_alphabet.names)}
    task = np.array([index for report in ordered for index in report.tasks], dtype=np.int32)
    worker = np.repeat(np.arange(len(ordered), dtype=np.int32), [len(report.tasks) for report in ordered])
    code = np.array(
        [code_of.get(name, -1) for report in ordered for name in _symbol_name_of_each_cell(campaign, report)]
    )
    tasks, workers = (
        _object_array(one.id for one in campaign.tasks),
        _object_array(exported_name_of_slot(one.slot) for one in ordered),
    )
    sent = code >= 0
    reports = Reports(task[sent], worker[sent], code[sent], tasks, workers, channel.report_alphabet, STATED)
    return reports, Assignment(tasks, workers, task.astype(np.int64), worker.astype(np.int64))


def _symbol_name_of_each_cell(campaign: Campaign, report: AcceptedReport) -> Iterable[str]:
    """Yield the name of the report symbol of each cell; NULL for a cell without an answer."""
    for task, code in zip(report.tasks, report.codes, strict=True):
        outputs = campaign.channel_of(report.slot, task, report.level).outputs
        yield outputs[code] if 0 <= code < len(outputs) else NULL


def _object_array(names: Iterable[str]) -> NDArray[np.object_]:
    return np.array(list(names), dtype=object)
