"""Creation of a campaign folder from a settings file."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from crowdveil.answers.spreadsheets.sheets import sheet_or_file_text
from crowdveil.answers.write_reports import formula_names_warning
from crowdveil.campaign.files.curator_key import key_path, new_curator_key
from crowdveil.campaign.files.folder import (
    CAMPAIGN_FILE,
    PARTS_FOLDER,
    PICTURES_FOLDER,
    PLAN_FILE,
    PRIOR_FILE,
    WORKERS_FILE,
)
from crowdveil.campaign.planning.alternatives import require_worth_asking
from crowdveil.campaign.planning.chosen_mechanism import ChosenMechanism, mechanism_of_campaign_settings
from crowdveil.campaign.planning.expected_error import (
    ExpectedError,
    OnSimulation,
    predict_errors,
)
from crowdveil.campaign.planning.expected_ranking import ExpectedOrder, expected_order, require_order_worth_asking
from crowdveil.campaign.planning.expected_share import ExpectedSurvey, expected_survey
from crowdveil.campaign.rules.assignment_part import AssignmentPart
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.settings.build import build_campaign
from crowdveil.campaign.settings.settings_file import CampaignSettings, read_settings
from crowdveil.campaign.statement.sentences import level_guarantees
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import CERTAIN, percent_rounded_up
from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import PRIVATE_FILE, PRIVATE_FOLDER, folder_errors
from crowdveil.files.csv_rows import csv_text
from crowdveil.files.filesystem import temporary_folder, write_new_file
from crowdveil.mechanisms import ChannelMechanism, Designed
from crowdveil.planning.plan import WORTH_ASKING
from crowdveil.privacy.largest_posterior import sentences_on_adversary_certainty

PAGE_LANGUAGES = ("de", "en")
"""Languages of the messages on the answering page."""
"""What a plan chose for the campaign, and its expected error."""
TEMPLATE_DAYS = (7, 21)
"""Days from now to the first and the last day in a template."""


@dataclass(frozen=True, kw_only=True)
class CreatedQuestion:
    """One question of a campaign that was written.

    Attributes:
        source: settings it was made from; with "plan", with the planned number of tasks of each worker.
        campaign: the campaign as this question.
        mechanism: mechanism of its channel.
        planned: whether a plan chose it.
        expected: expected error; with levels if every worker keeps the first, which is the most private, and with
            groups of cuts that of the group with the largest, if all workers were in it. None for comparisons.
        survey: expected intervals of shares, which a survey has in place of an error; None for other campaigns.
        order: expected share of wrongly ordered pairs, which comparisons have in place of an error; None for others.
    """

    source: CampaignSettings
    campaign: Campaign
    mechanism: ChannelMechanism
    planned: bool
    expected: ExpectedError | None
    survey: ExpectedSurvey | None = None
    order: ExpectedOrder | None = None


@dataclass(frozen=True, kw_only=True)
class CreatedCampaign:
    """Campaign that was written.

    Attributes:
        campaign: the campaign.
        questions: its questions; one, or several.
        folder: folder of the files.
        files: paths of the files.
        loads: numbers of tasks of the workers with fewest and with most.
        warnings: sentences on what a person may have overlooked.
        key: file of the curator's private key; None without a relay.
    """

    campaign: Campaign
    questions: tuple[CreatedQuestion, ...]
    folder: Path
    files: tuple[Path, ...]
    loads: tuple[int, int]
    warnings: tuple[str, ...]
    key: Path | None = None


def create_campaign(
    settings: Path, folder: Path, *, anyway: bool = False, on_simulation: OnSimulation | None = None
) -> CreatedCampaign:
    """Check a settings file, draw the assignment, predict the error, and write the campaign into a new folder.

    Args:
        settings: the settings file.
        folder: absent, or an empty folder.
        anyway: whether a campaign is made even if it is not worth asking.
        on_simulation: called with the finished and the expected number of simulations.

    Raises:
        SettingsError: a setting is refused, the expected error is hardly below that of the best public constant, or the
            folder is not new.
        ReportsError: a file of tasks, workers or a prior is damaged.
        CampaignError, CertificateError: the campaign is too large, or a label cannot be named in a certificate.
    """
    require_empty_folder(folder)
    source = read_settings(settings, sheet_or_file_text)
    _require_day_left(source.closes, datetime.now(UTC).date())
    prior = _prior_bytes(source)
    chosen = [mechanism_of_campaign_settings(one) for one in source.by_question]
    first, *others = chosen
    source = replace(first.source, others=tuple(one.source for one in others), budget=source.budget)
    with new_curator_key(source, folder) as relay:
        builds = (*first.others, *(one.build for one in others))
        campaign, parts, mechanisms = build_campaign(source, relay=relay, build=first.build, others=builds)
        asked = _questions_with_expected_errors(chosen, campaign, mechanisms, on_simulation)
        if not anyway:
            _require_worth_asking(asked)
        planned = any(one.planned for one in asked)
        records = {PLAN_FILE: _plan_json_bytes_of_questions(campaign, asked)} if planned else {}
        if campaign.prior is not None:
            if sha256(prior).hexdigest() != campaign.prior:
                raise SettingsError("the prior must not change while the campaign is made", value=source.privacy.prior)
            records[PRIOR_FILE] = prior
        files = write_new_campaign_folder(
            folder, campaign, parts, pictures=source.pictures_by_sha256, names=source.names, records=records
        )
    loads = [len(tasks) for part in parts for tasks in part.lists]
    return CreatedCampaign(
        campaign=campaign,
        questions=asked,
        folder=folder,
        files=files,
        loads=(min(loads), max(loads)),
        warnings=_warnings(campaign, asked),
        key=None if relay is None else key_path(folder),
    )


def _require_worth_asking(asked: Sequence[CreatedQuestion]) -> None:
    """Refuse questions whose expected error is hardly below that of the best public constant."""
    for one in asked:
        if one.order is not None:
            require_order_worth_asking(one.order)
        elif one.survey is None and one.expected is not None:
            require_worth_asking(one.source, one.expected, question=one.source.question if len(asked) > 1 else "")


def _questions_with_expected_errors(
    chosen: Sequence[ChosenMechanism],
    campaign: Campaign,
    mechanisms: Sequence[ChannelMechanism],
    on_simulation: OnSimulation | None,
) -> tuple[CreatedQuestion, ...]:
    """Return the questions of a campaign with their expected errors."""
    found = []
    for number, (one, part) in enumerate(zip(chosen, campaign.by_question, strict=True)):
        mechanism, order = mechanisms[number], expected_order(one.source, mechanisms[number])
        sent = [mechanism] if part.groups is None else list(map(Designed.from_channel, part.channels))
        predicted = (predict_errors(one.source, each, method=one.method, on_simulation=on_simulation) for each in sent)
        expected = max(predicted, key=lambda error: error.protected.error) if order is None else None
        found.append(
            CreatedQuestion(
                source=one.source,
                campaign=part,
                mechanism=mechanism,
                planned=one.planned,
                expected=expected,
                survey=expected_survey(one.source, mechanism),
                order=order,
            )
        )
    return tuple(found)


def write_new_campaign_folder(
    folder: Path,
    campaign: Campaign,
    parts: Sequence[AssignmentPart],
    *,
    pictures: Mapping[str, bytes] | None = None,
    names: Sequence[str] = (),
    records: Mapping[str, bytes] | None = None,
) -> tuple[Path, ...]:
    """Write the files of a campaign into a new folder that only its owner may enter; return their paths.

    The folder appears with all files or not at all.

    Args:
        folder: absent, or an empty folder.
        campaign: the document.
        parts: its assignment parts.
        pictures: bytes by SHA-256 in hexadecimal.
        names: names of the workers by slot; empty without names.
        records: bytes of other files by name.

    Raises:
        SettingsError: the folder is not new, or cannot be written.
    """
    require_empty_folder(folder)
    contents = {CAMPAIGN_FILE: campaign.to_bytes()}
    contents |= {f"{PARTS_FOLDER}/{number:04}.json": part.to_bytes() for number, part in enumerate(parts)}
    contents |= {f"{PICTURES_FOLDER}/{digest}": data for digest, data in (pictures or {}).items()}
    contents |= records or {}
    if names:
        contents[WORKERS_FILE] = csv_text(("slot", "name"), enumerate(names)).encode("utf-8")
    with folder_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(folder.parent) as temporary:
            staged = temporary / "campaign"
            staged.mkdir(mode=PRIVATE_FOLDER)
            for name, data in contents.items():
                (staged / name).parent.mkdir(exist_ok=True)
                (staged / name).write_bytes(data)
            if names:
                (staged / WORKERS_FILE).chmod(PRIVATE_FILE)
            if folder.is_dir():
                folder.rmdir()
            os.rename(staged, folder)
    return tuple(folder / name for name in contents)


def write_template(path: Path) -> None:
    """Write a commented settings file, which is to be changed; an existing file stays.

    Raises:
        SettingsError: the file exists, or cannot be written.
    """
    template = files("crowdveil.campaign.planning").joinpath("templates", "campaign.toml").read_text("utf-8")
    today = datetime.now(UTC).date()
    opens, closes = (today + timedelta(days=days) for days in TEMPLATE_DAYS)
    with folder_errors(path.parent):
        try:
            write_new_file(path, Template(template).substitute(opens=opens, closes=closes).encode("utf-8"))
        except FileExistsError:
            hint = "Choose another name."
            raise SettingsError("settings are written into a new file", value=str(path), hint=hint) from None


def require_empty_folder(folder: Path) -> None:
    """Raise SettingsError unless a folder is absent or empty."""
    if os.path.lexists(folder) and not (folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())):
        raise SettingsError(
            "a campaign is written into a new folder",
            value=str(folder),
            hint="Choose another name. A changed campaign is another campaign, with other links.",
        )


def _prior_bytes(source: CampaignSettings) -> bytes:
    """Return the file of the prior before it is used; empty without one, or if its reader will refuse it."""
    try:
        return b"" if source.privacy.prior is None else source.privacy.prior.read_bytes()
    except OSError:
        return b""


def _plan_json_bytes_of_questions(campaign: Campaign, asked: Sequence[CreatedQuestion]) -> bytes:
    """Return the content of `plan.json`, which depends on the settings alone: the choice, and its expected error."""
    chosen = [_chosen_mechanism_data(one.campaign, one.expected) for one in asked if one.expected is not None]
    several = {"epsilon_per_worker": campaign.worker_epsilon, "questions": chosen}
    return (json.dumps(several if len(chosen) > 1 else chosen[0], indent=1, ensure_ascii=False) + "\n").encode("utf-8")


def _chosen_mechanism_data(campaign: Campaign, expected: ExpectedError) -> dict[str, Any]:
    """Return what a plan chose for a question, and its expected error."""
    channel = campaign.channels[0]
    return {
        "mechanism": channel.mechanism,
        "reports": list(channel.outputs),
        "tasks_per_worker": campaign.cells,
        "epsilon_per_answer": campaign.epsilon,
        "epsilon_per_worker": campaign.worker_epsilon,
        **({"levels": [one.epsilon for one in level_guarantees(campaign)]} if campaign.levels else {}),
        "participation": campaign.participation,
        "expected": expected.to_json(),
    }


def _require_day_left(closes: date, today: date) -> None:
    """Refuse a campaign whose last day is past: no report would be accepted."""
    if closes < today:
        raise SettingsError(
            f"open.until must not be before today, {today.isoformat()} in UTC",
            value=closes.isoformat(),
            hint="The last day is past, so no report would be accepted. Set the clock if today is another day.",
        )


def _warnings(campaign: Campaign, asked: Sequence[CreatedQuestion]) -> tuple[str, ...]:
    """Return what a person may have overlooked: too much noise, a language, few reports."""
    found = []
    answer, worker = Guarantee(epsilon=campaign.epsilon), Guarantee(epsilon=campaign.worker_epsilon)
    if percent_rounded_up(worker.largest_guess_probability) == CERTAIN:
        hint = "Lower the budget or epsilon, or give each worker fewer tasks."
        found.append(f"{sentences_on_adversary_certainty(answer, worker)[0]} {hint}")
    for number, one in enumerate(asked, start=1):
        plain = "" if one.expected is None else _error_warning(one.expected)
        error = plain if one.survey is None else one.survey.warning
        found += [f"Question {number}: {error}" if len(asked) > 1 else error] * bool(error)
    if campaign.language.partition("-")[0] not in PAGE_LANGUAGES:
        found.append(f"The page has no messages in {campaign.language!r}: they are shown in English.")
    found += formula_names_warning("csv", asked[0].source.names)
    if campaign.min_reports == 1:
        found.append("With min_reports = 1 results of a single worker are released.")
    if campaign.participation == "public":
        found.append("Participation is public: who skips which task is visible to the curator.")
    return tuple(found)


def _error_warning(expected: ExpectedError) -> str:
    """Return a warning of an error near that of the best public constant; empty without one."""
    error, constant, high = expected.protected.error, expected.constant, expected.protected.real_high
    if error < WORTH_ASKING * constant and high < constant:
        return ""
    real = f" In a real crowd like the worst of the public sets it is {high:.2g}."
    return (
        f"The expected error is {error:.2g}; the same answer for every task has an error of {constant:.2g}."
        f"{real if high >= constant else ''} Raise epsilon, ask more workers, or ask about fewer tasks."
    )
