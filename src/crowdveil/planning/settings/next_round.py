"""Next round of a campaign: for the same workers, with channels that are designed for the truths inferred so far.

Channels, and which tasks are asked, follow from the reports of the rounds before, so the guarantee of each answer holds
given them, and the epsilons of a worker's rounds add up. A worker is asked tasks that are new to this worker: one
answer is reported once.
"""

from collections.abc import Sequence
from csv import DictReader
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crowdveil.campaign.assemble import CampaignContent, assemble_campaign
from crowdveil.campaign.document import Campaign, EarlierRound, Groups
from crowdveil.campaign.folder import CAMPAIGN_FILE, NOT_FOR_FILE, WORKERS_FILE, CampaignFolder
from crowdveil.campaign.settings.draw_assignment import draw_assignment
from crowdveil.channel_design import design_channel
from crowdveil.channels.alphabet import MAX_LABELS, Alphabet, Scale
from crowdveil.channels.channel import Channel
from crowdveil.em.estimate import NORMAL_QUANTILE, Estimate
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.output_record import RECORD_FILE, OutputEntry, record_text
from crowdveil.folder.campaign.collection_of_all_rounds import (
    EARLIER_FOLDER,
    CollectedReports,
    read_collection,
    refuse_if_table_too_large,
)
from crowdveil.folder.campaign.report_files import Closing, require_closed_reports
from crowdveil.folder.crowd import ASSIGNMENT_FILE, CERTIFICATE_FILE, CROWD_FILE, REPORTS_FILE
from crowdveil.folder.write_collection import COLLECTION
from crowdveil.mechanisms import DesignObjective
from crowdveil.planning.expected_campaign import expected_objective
from crowdveil.planning.posterior_groups import MOST_GROUPS, posterior_groups
from crowdveil.planning.settings.creation import (
    excluded_tasks_csv_bytes,
    require_absent_or_empty_folder,
    write_new_campaign_folder,
)
from crowdveil.privacy.mechanism_from_settings import Expectation
from crowdveil.randomness import secure
from crowdveil.standalone.checks import MAX_CHANNELS

COPIED = (CAMPAIGN_FILE, REPORTS_FILE, CERTIFICATE_FILE, CROWD_FILE, ASSIGNMENT_FILE)
"""Files of the collection of the rounds before, which a later one holds."""


@dataclass(frozen=True, kw_only=True)
class NextRound:
    """Round that was written.

    Attributes:
        campaign: the campaign.
        folder, files: its folder, and the paths in it.
        sizes: number of tasks in each group.
        asked: number of tasks that workers are asked.
        loads: numbers of tasks of the workers with fewest and with most.
        gain: mean over tasks of the information of a report, over that through the strongest channel before.
    """

    campaign: Campaign
    folder: Path
    files: tuple[Path, ...]
    sizes: tuple[int, ...]
    asked: int
    loads: tuple[int, int]
    gain: float


def create_next_round(
    before: CampaignFolder,
    collected: Path,
    estimate: Estimate,
    out: Path,
    *,
    inferred_from: str,
    closes: date,
    opens: date | None = None,
    ask: int | None = None,
    per_worker: int | None = None,
    epsilon: float | None = None,
) -> NextRound:
    """Write the next round of a closed campaign into a new folder; nothing else is changed.

    Args:
        before: folder of the campaign of the last round.
        collected: its collection.
        estimate: truths with probabilities, or with intervals.
        out: absent, or an empty folder.
        inferred_from: digest of the reports of the estimate.
        closes, opens: last and first day; the first is today by default.
        ask: number of tasks to ask, those with the largest expected error; None for half of them. A worker who has
            had all of them gets the next ones.
        per_worker: tasks of each worker; as before by default.
        epsilon: of a single answer, in nats; as before by default.

    Raises:
        SettingsError: a campaign that has no later round or is open, truths without probabilities, a worker without
            new tasks, a last day on which the reports before are deleted, too large a table, or an old folder.
        ReportsError: reports or truths that are not those of the campaign.
        CampaignError, CertificateError: as `assemble_campaign`.
    """
    campaign, today = before.campaign, datetime.now(UTC).date()
    _refuse_if_reports_are_missing(collected)
    require_absent_or_empty_folder(out)
    _require_next_round_possible(before, collected, today)
    refuse_if_table_too_large(campaign.slots, len(campaign.tasks))
    found = read_collection(collected, campaign.name, inferred_from)
    posterior, errors = _posterior_and_expected_error(estimate, campaign)
    group, priors = posterior_groups(posterior, _most_further_channels(found, campaign))
    objectives = [_design_objective_of_group(campaign, prior, estimate) for prior in priors]
    spent = campaign.epsilon if epsilon is None else epsilon
    channels = [design_channel(one, spent, null_apart=True) for one in objectives]
    excluded, count = _tasks_excluded_for_each_slot(before), min(ask or -(-len(group) // 2), len(group))
    order = np.argsort(-errors, kind="stable").tolist()
    load = _tasks_per_worker(excluded, campaign, per_worker)
    lists = _draw_tasks_preferring_first(excluded, order, count, load)
    made, parts = assemble_campaign(_round_content(campaign, channels, group.tolist(), (opens or today, closes)), lists)
    pictures = {task.picture.sha256: before.picture(task.picture.sha256) for task in campaign.tasks if task.picture}
    records = _files_of_later_round(before, collected, excluded)
    return NextRound(
        campaign=made,
        folder=out,
        files=write_new_campaign_folder(out, made, parts, pictures=pictures, records=records),
        sizes=tuple(np.bincount(group).tolist()),
        asked=count,
        loads=(min(map(len, lists)), max(map(len, lists))),
        gain=_information_ratio(objectives, channels, np.bincount(group), campaign.channels),
    )


def _round_content(
    campaign: Campaign, channels: Sequence[Channel], group: Sequence[int], days: tuple[date, date]
) -> CampaignContent:
    """Return the content of the round after a campaign: its texts and tasks, with a channel for each group of tasks."""
    changed = {"opens": days[0], "closes": days[1], "purge_after_days": _days_from_close_to_deletion(campaign, days[1])}
    worst = max(channel.ratio or Fraction(1) for channel in campaign.channels)
    several = Groups((tuple(range(len(channels))),), tuple(group), (0,) * campaign.slots)
    return CampaignContent(
        **campaign.terms() | changed,
        tasks=campaign.tasks,
        channels=tuple(channels),
        groups=several if len(channels) > 1 else None,
        earlier=(*campaign.earlier, EarlierRound(campaign.name, campaign.cells, *worst.as_integer_ratio())),
    )


def _days_from_close_to_deletion(campaign: Campaign, closes: date) -> int | None:
    """Return the days from the last day of a round until its reports are deleted, and with them those before it."""
    promised, usual = campaign.purge_day, campaign.purge_after_days
    if promised is None or usual is None:
        return None
    if closes >= promised:
        raise SettingsError(
            "a later round ends before the day on which the reports of the round before are deleted",
            value=f"it ends on {closes.isoformat()}, and they are deleted from {promised.isoformat()} on",
            hint="Give an earlier --until.",
        )
    return min(usual, (promised - closes).days)


def _files_of_later_round(before: CampaignFolder, collected: Path, excluded: Sequence[set[int]]) -> dict[str, bytes]:
    """Return the files of a later round besides its document: the reports so far, exclusions, and names of workers."""
    kept = {f"{EARLIER_FOLDER}/{name}": collected / name for name in COPIED}
    copies = record_text(OutputEntry.of(collected / name, COLLECTION) for name in COPIED if name != CAMPAIGN_FILE)
    names = before.path / WORKERS_FILE
    kept |= {WORKERS_FILE: names} if names.is_file() else {}
    made = {NOT_FOR_FILE: excluded_tasks_csv_bytes(excluded), f"{EARLIER_FOLDER}/{RECORD_FILE}": copies.encode("utf-8")}
    return made | {name: path.read_bytes() for name, path in kept.items()}


def _refuse_if_reports_are_missing(collected: Path) -> None:
    """Refuse a folder without reports: results name theirs by a relative path, which is another one after a move."""
    if not (collected / REPORTS_FILE).is_file():
        raise ReportsError(
            "the reports from which the truths were inferred must be where the results name them",
            source=str(collected / REPORTS_FILE),
            examples="there is no such file",
            hint="Move results and reports together, or run `crowdveil infer` again on the reports.",
        )


def _require_next_round_possible(before: CampaignFolder, collected: Path, today: date) -> None:
    """Refuse a campaign that is open, or that no round can follow, and reports that did not count at its end."""
    campaign, closing = before.campaign, Closing.read(before)
    if campaign.relay is not None or campaign.levels is not None or campaign.questions:
        raise SettingsError(
            "a later round follows a campaign with one question, without levels and relay",
            value=campaign.name,
            hint="Make a campaign of its own for the doubtful tasks.",
        )
    if closing is None and campaign.state_on(today) != "closed" and campaign.url is None:
        raise SettingsError(
            "a round is closed before the next one",
            value=f"open until {campaign.closes.isoformat()}",
            hint="End it: crowdveil campaign close FOLDER/campaign.json --reports RECEIVED.",
        )
    require_closed_reports(collected, closing)


def _most_further_channels(found: CollectedReports, campaign: Campaign) -> int:
    """Return how many channels can be added to those of earlier rounds."""
    used = found.channels_as_table.channels
    symbols = sum(len(channel.outputs) for channel in used)
    most = min(MOST_GROUPS, MAX_CHANNELS - len(used), (MAX_LABELS - symbols) // (len(campaign.labels) + 1))
    if most < 1:
        raise SettingsError(
            f"all rounds together have at most {MAX_CHANNELS} channels and {MAX_LABELS} report symbols",
            value=f"{len(used)} channels with {symbols} symbols before this round",
            hint="Ask the doubtful tasks in a campaign of its own.",
        )
    return most


def _posterior_and_expected_error(
    estimate: Estimate, campaign: Campaign
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the posterior of each task of a campaign, shape (tasks, labels), and its expected error.

    A number with a 90 % interval counts as a normal distribution as wide; one without as the mean of the others.
    """
    if set(map(str, estimate.tasks)) != {task.id for task in campaign.tasks}:
        raise ReportsError("the truths must be those of the tasks of the campaign", source="truths")
    place = {str(name): code for code, name in enumerate(estimate.tasks)}
    order = np.array([place[task.id] for task in campaign.tasks])
    if estimate.categorical and estimate.alphabet is not None and estimate.probabilistic:
        column = {name: code for code, name in enumerate(estimate.alphabet.names)}
        table = estimate.posterior[order][:, [column[name] for name in campaign.labels]]
        return table, 1 - table.max(axis=1)
    if estimate.low is None or estimate.high is None or not isinstance(campaign.alphabet, Scale):
        raise SettingsError(
            "the next round needs truths with probabilities, or numbers with intervals",
            value=estimate.method,
            hint="Infer with the default method.",
        )
    centre, width = estimate.posterior[order], (estimate.high - estimate.low)[order]
    table = _normal_tables(campaign.alphabet, centre, width / (2 * NORMAL_QUANTILE))
    known = np.isfinite(table).all(axis=1)
    table[~known] = table[known].mean(axis=0) if known.any() else 1 / table.shape[1]
    distance = np.abs(campaign.alphabet.values[:, None] - campaign.alphabet.values)
    return table, (table @ distance).min(axis=1)


def _normal_tables(scale: Scale, centre: NDArray[np.float64], deviation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return normal distributions on the points of a scale, ends included, shape (tasks, labels)."""
    edges = scale.values[:-1] + scale.step / 2
    below = ndtr((edges - centre[:, None]) / np.maximum(deviation, scale.step / 10)[:, None])
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


def _design_objective_of_group(campaign: Campaign, prior: NDArray[np.float64], estimate: Estimate) -> DesignObjective:
    """Return the design objective of a group, with the mean ability that was inferred, or usual errors on a scale."""
    alphabet: Alphabet = campaign.alphabet
    ability = None
    if not isinstance(alphabet, Scale) and estimate.workers.quality_name == "ability":
        ability = float(np.clip(np.nanmean(estimate.workers.quality), 2 / (alphabet.size + 1), 0.95))
    objective = expected_objective(alphabet, Expectation(ability=ability), campaign.participation)
    return replace(objective, prior=prior)


def _draw_tasks_preferring_first(
    excluded: Sequence[set[int]], order: Sequence[int], count: int, per_worker: int
) -> tuple[tuple[int, ...], ...]:
    """Return the tasks of each slot, none excluded: of the first `count` in the order, where these are enough."""
    first, forbidden = set(order[:count]), []
    for own in excluded:
        new = [task for task in order if task not in own]
        forbidden.append(set(order) - first.intersection(new) - set(new[:per_worker]))
    return draw_assignment(len(order), len(excluded), per_worker, forbidden, secure())


def _tasks_per_worker(excluded: Sequence[set[int]], campaign: Campaign, asked: int | None) -> int:
    """Return the number of tasks of each worker: as asked, or as before if there are so many new ones for each."""
    fewest = len(campaign.tasks) - max(map(len, excluded))
    if fewest < (asked or 1):
        raise SettingsError(
            f"every worker is asked {asked or 1} or more tasks that are new to this worker",
            value=f"{fewest} of {len(campaign.tasks)} for one of them",
            hint="A worker's answer to a task is reported in one round only: give workers fewer tasks in each.",
        )
    return asked or min(fewest, campaign.cells)


def _tasks_excluded_for_each_slot(before: CampaignFolder) -> list[set[int]]:
    """Return the tasks that each slot had in an earlier round, or must not get."""
    found = [set(before.tasks(slot)) for slot in range(before.campaign.slots)]
    path = before.path / NOT_FOR_FILE
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as stream:
            for row in DictReader(stream):
                found[int(row["slot"])].add(int(row["task"]))
    return found


def _information_ratio(
    objectives: Sequence[DesignObjective],
    channels: Sequence[Channel],
    sizes: NDArray[np.int64],
    before: Sequence[Channel],
) -> float:
    """Return the mean information of a report through the channel of its group, over that through the best before."""
    own = [one.objective_of_channel(channel.probabilities) for one, channel in zip(objectives, channels, strict=True)]
    usual = [max(one.objective_of_channel(channel.probabilities) for channel in before) for one in objectives]
    return float(sizes @ own / (sizes @ usual))
