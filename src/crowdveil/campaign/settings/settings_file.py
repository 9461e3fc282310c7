"""Settings file of a campaign (TOML): reading, with a rule, the value found and a hint for everything refused."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from crowdveil.campaign.rules.address import normal_address
from crowdveil.campaign.rules.document import CampaignTerms, Relay, Task
from crowdveil.campaign.settings.compared_items import read_compared_pairs
from crowdveil.campaign.settings.privacy_request import PLAN, PrivacyRequest, read_privacy
from crowdveil.campaign.settings.public_lists import (
    ReadBytes,
    TaskRow,
    first_bytes,
    read_tasks,
    read_worker_names,
)
from crowdveil.campaign.settings.section import (
    Section,
    checked_and_normalized_text,
    question_sections,
)
from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.channels.compared_pairs import COMPARISON_ANSWERS, Pair, are_comparisons
from crowdveil.channels.guarantee import Participation
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import Designed, RandomizedResponse, SubsetSelection
from crowdveil.standalone.checks import (
    CAMPAIGN,
    MAX_CONSENT,
    MAX_NAME,
    MAX_PURGE_DAYS,
    MAX_QUESTION,
    MAX_SLOTS,
    MAX_TITLE,
    first_confusable_pair,
    fits,
)

MAX_BYTES = 1_000_000
DEFAULT_LANGUAGE = "en"
OF_COMPARISONS = (PLAN, Designed.name, RandomizedResponse.name)
"""Mechanisms of comparisons; the first two choose two symbols or three."""
SEE_INIT = "`crowdveil campaign init` writes such a file."


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCrowd:
    """Public expectation of the workers, for the expected error and designed tables; None is the default of a plan.

    Attributes:
        answered: share of the assigned tasks that a worker answers.
        ability: labels: probability of a right answer.
        sigmas: scale: standard deviations of equal shares of the workers.
        share: survey: guessed share of a label among the answers; None if truths are asked for.
        ties: comparisons: share of ties among the answers.
    """

    answered: float = 1.0
    ability: float | None = None
    sigmas: tuple[float, ...] = ()
    share: float | None = None
    ties: float | None = None


@dataclass(frozen=True, kw_only=True)
class CampaignSettings(CampaignTerms):
    """Checked content of a settings file.

    Attributes:
        alphabet: possible answers.
        rows: tasks with pictures and exclusions.
        per_worker: tasks of each worker; None for all.
        slots: number of workers.
        names: names of the workers by slot; empty if only their number is given.
        excluded: task indices that each slot must not get.
        privacy: requested privacy.
        expected: expectation for planning.
        relay: requested relay, whose public key is made with the campaign; None without one.
        others: of several questions the others, with the same texts, dates and workers.
        budget: largest privacy loss of all answers of one worker to all questions, or None.
        pairs: pairs of items that are compared, each of which has two tasks, one for each order; empty for others.
    """

    participation: Participation
    alphabet: Alphabet
    rows: tuple[TaskRow, ...]
    per_worker: int | None
    slots: int
    names: tuple[str, ...]
    excluded: tuple[frozenset[int], ...]
    privacy: PrivacyRequest
    expected: ExpectedCrowd
    relay: Relay | None = None
    others: "tuple[CampaignSettings, ...]" = ()
    budget: float | None = None
    pairs: tuple[Pair, ...] = ()

    @property
    def by_question(self) -> "tuple[CampaignSettings, ...]":
        """Settings of each question."""
        return (replace(self, others=()), *self.others)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Tasks, in the order of the file, of the first question."""
        return tuple(row.task for row in self.rows)

    @property
    def pictures_by_sha256(self) -> Mapping[str, bytes]:
        """Bytes of the pictures, by SHA-256 in hexadecimal."""
        return {
            row.task.picture.sha256: row.picture
            for one in self.by_question
            for row in one.rows
            if row.task.picture is not None and row.picture is not None
        }


def read_settings(path: Path, read: ReadBytes = first_bytes) -> CampaignSettings:
    """Return the content of a settings file; files that it names are relative to its folder.

    `read` returns the content of a file of tasks or workers; a worker's device reads no spreadsheets.

    Raises:
        SettingsError: the file is unreadable, a setting is missing, unknown or out of range.
        ReportsError: a file of tasks or workers is damaged.
    """
    root = Section("", _parse_toml(path))
    texts = {
        "title": root.text("title", MAX_TITLE, "One line that workers see first."),
        "consent": root.text("consent", MAX_CONSENT, "Say what happens to the answers, and whom to ask."),
        "language": _language(root),
    }
    if "\n" in texts["title"]:
        raise SettingsError("title must be one line", value=texts["title"])
    slots, names = _slots_and_names(
        root.section("workers", "Give workers = { count = 72 } or { names = 'staff.csv' }."), path, read
    )
    opens, closes = _first_and_last_day(root.section("open", "Give open = { from = 2027-01-10, until = 2027-01-17 }."))
    url, purge_after_days = _url_and_purge_days(root)
    shared = {
        **texts,
        "url": url,
        "purge_after_days": purge_after_days,
        "opens": opens,
        "closes": closes,
        "min_reports": root.integer("min_reports", 1, slots, "With fewer reports, nothing is released."),
        "participation": _participation(root),
        "slots": slots,
        "names": names,
        "relay": _relay(root, slots),
    }
    sections = question_sections(root)
    several = len(sections) > 1
    first, *others = (_settings_of_question(section, shared, path, read, several=several) for section in sections)
    root.close()
    _require_relay_hides_worker(first)
    _refuse_disallowed_levels(first)
    if not several:
        return first
    _require_compatible_questions((first, *others))
    return replace(first, others=tuple(others), budget=_worker_budget_of_settings(root))


def _settings_of_question(
    section: Section, shared: Mapping[str, Any], path: Path, read: ReadBytes, *, several: bool
) -> CampaignSettings:
    """Return the settings of one question, of a file or of a table of its own; `shared` has the other fields."""
    text = section.text("text" if several else "question", MAX_QUESTION, "The question of every task.")
    answers = section.section("answers", "Give answers = { labels = ['no', 'yes'] } or { scale = {...} }.")
    compared = _asks_for_comparisons(answers)
    tasks = section.section("tasks", "Give tasks = { file = 'tasks.csv' }.")
    pairs, rows, per_worker = _tasks_and_workload(tasks, path, read, shared["language"] if compared else None)
    alphabet = COMPARISON_ANSWERS if compared else _alphabet_of_answers(answers)
    privacy = section.section("privacy", "Give privacy = { mechanism = 'laplace', budget_per_worker = 5 }.")
    expected = _expected_crowd(section, compared=compared)
    request = read_privacy(privacy, alphabet, path.parent)
    source = CampaignSettings(
        question=text,
        rows=rows,
        per_worker=per_worker,
        alphabet=alphabet,
        excluded=_excluded_tasks_of_slots(rows, shared["slots"], shared["names"]),
        privacy=request if expected.share is None else _privacy_of_survey(request, alphabet),
        expected=expected,
        pairs=pairs,
        **shared,
    )
    if several:
        section.close()
    _refuse_uncomparable(source, several=several)
    if not compared and are_comparisons(alphabet, (row.task.id for row in rows)):
        raise SettingsError(
            "labels left, tie and right of tasks whose ids are pairs with | would be read as comparisons",
            value=rows[0].task.id,
            hint="Rename the labels or the tasks, or ask for answers = { comparisons = true } about a file of pairs.",
        )
    return source


def _asks_for_comparisons(section: Section) -> bool:
    """Return whether the answers are comparisons: left, tie or right."""
    if "comparisons" not in section:
        return False
    if section.take_required_value("comparisons") is not True:
        hint = "Workers answer left, tie or right."
        raise SettingsError("answers.comparisons must be true, or be left out", value=False, hint=hint)
    section.close()
    return True


def _refuse_uncomparable(source: CampaignSettings, *, several: bool) -> None:
    """Refuse what a campaign of comparisons cannot have: `rank` reads one channel, and workers whose pairs differ."""
    if not source.pairs:
        return
    found = {
        "several questions": several,
        "privacy.levels": source.privacy.levels,
        "a relay": source.relay,
        "privacy.prior": source.privacy.prior,
        "expected.ability": source.expected.ability is not None,
        "expected.sigmas": source.expected.sigmas,
        f"privacy.mechanism {source.privacy.mechanism!r}": source.privacy.mechanism not in OF_COMPARISONS,
    }
    wrong = next((name for name, there in found.items() if there), None)
    if wrong is not None:
        hint = f"Leave it out; the mechanism is one of {', '.join(OF_COMPARISONS)}."
        raise SettingsError("a campaign of comparisons asks one question through one table", value=wrong, hint=hint)


def _worker_budget_of_settings(root: Section) -> float | None:
    """Return the budget of a worker over all questions; None without one."""
    found: Any = root.section("privacy").all().get("budget_per_worker") if "privacy" in root else None
    return float(found) if type(found) in (int, float) else None


def _require_compatible_questions(sources: Sequence[CampaignSettings]) -> None:
    """Refuse several questions that look alike, with a relay, or with groups of cuts."""
    texts = [source.question for source in sources]
    pair = first_confusable_pair(texts)
    if pair or len(set(texts)) < len(texts):
        raise SettingsError("no two questions may look alike", value=pair[0] if pair else texts)
    if sources[0].relay is not None:
        raise SettingsError(
            "a campaign with a relay can have only one question",
            value="relay",
            hint="Make a campaign of each question.",
        )
    for source in sources:
        if source.privacy.dealt_cuts:
            raise SettingsError(
                "a campaign with groups of cuts can have only one question", value=source.privacy.dealt_cuts
            )


def _parse_toml(path: Path) -> Mapping[str, object]:
    try:
        with open(path, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise SettingsError(f"a settings file has at most {MAX_BYTES:,} bytes", value=str(path))
        return tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise SettingsError(
            "the settings file must be readable", value=str(path), hint=f"{error.strerror or error}. {SEE_INIT}"
        ) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(
            "the settings file must be TOML in UTF-8", value=str(path), hint=f"{str(error)[:200]}. {SEE_INIT}"
        ) from error


def _language(root: Section) -> str:
    language = root.take_required_value("language") if "language" in root else DEFAULT_LANGUAGE
    if not (fits(language, CAMPAIGN["language"])):
        raise SettingsError(
            "language must be a code such as en, de or pt-BR",
            value=language,
            hint="It is the language of title, question and tasks.",
        )
    return language


def _participation(root: Section) -> Participation:
    hint = ("protected", "public")
    return "public" if root.choice("participation", hint) == "public" else "protected"


def _first_and_last_day(section: Section) -> tuple[date, date]:
    opens, closes = section.day("from"), section.day("until")
    section.close()
    if opens > closes:
        raise SettingsError("open.until must not be before open.from", value=closes.isoformat())
    return opens, closes


def _url_and_purge_days(root: Section) -> tuple[str | None, int | None]:
    """Return the address of the service and the days until the reports are deleted; both may be None."""
    if "service" not in root:
        return None, None
    section = root.section("service")
    url = section.take_required_value("url", "Leave service out for a campaign without a server.")
    address = normal_address(url) if isinstance(url, str) else None
    if address is None:
        raise SettingsError(
            "service.url must be an https address in the form that every browser writes, without user, ? and #",
            value=url,
            hint="http is accepted for 127.0.0.1 and localhost only. Paths have letters, digits and . _ ~ -.",
        )
    days = section.integer("purge_after_days", 0, MAX_PURGE_DAYS) if "purge_after_days" in section else None
    section.close()
    return address, days


def _alphabet_of_answers(section: Section) -> Alphabet:
    if section.which_of_two_keys("scale", "labels") == "scale":
        scale = section.section("scale")
        found: Alphabet = Scale(scale.number("low"), scale.number("high"), scale.number("step"))
        scale.close()
    else:
        labels = section.take_required_value("labels")
        if not isinstance(labels, list):
            raise SettingsError("answers.labels must be a list of texts", value=labels, hint='Such as ["yes", "no"].')
        ordered = section.take_required_value("ordered") if "ordered" in section else False
        if not isinstance(ordered, bool):
            raise SettingsError("answers.ordered must be true or false", value=ordered)
        found = Categories(tuple(checked_and_normalized_text("a label", label, 200) for label in labels), ordered)
    section.close()
    return found


def _tasks_and_workload(
    section: Section, path: Path, read: ReadBytes, language: str | None
) -> tuple[tuple[Pair, ...], tuple[TaskRow, ...], int | None]:
    """Return pairs, tasks, and tasks of a worker; without a language there are no pairs."""
    file, pairs = path.parent / section.text("file", 1_000), tuple[Pair, ...]()
    if language is None:
        rows = read_tasks(file, read)
    else:
        pairs, rows = read_compared_pairs(file, language, read)
    most = len(pairs or rows)
    per_worker = section.integer("per_worker", 1, most) if "per_worker" in section else None
    section.close()
    return pairs, rows, per_worker


def _slots_and_names(section: Section, path: Path, read: ReadBytes) -> tuple[int, tuple[str, ...]]:
    names: tuple[str, ...] = ()
    if section.which_of_two_keys("count", "names") == "count":
        slots = section.integer("count", 1, MAX_SLOTS)
    else:
        names = read_worker_names(path.parent / section.text("names", 1_000), read)
        slots = len(names)
    section.close()
    return slots, names


def _excluded_tasks_of_slots(
    rows: tuple[TaskRow, ...], slots: int, names: tuple[str, ...]
) -> tuple[frozenset[int], ...]:
    """Return the tasks that each slot must not get; `not_for` holds names, or slots where there are no names."""
    slot_of = {name: slot for slot, name in enumerate(names or map(str, range(slots)))}
    excluded: list[set[int]] = [set() for _ in range(slots)]
    for task, row in enumerate(rows):
        for name in row.not_for:
            if name not in slot_of:
                known = "the names of the workers" if names else f"the workers 0 to {slots - 1}"
                raise SettingsError(
                    f"not_for of task {row.task.id!r} must name one of {known}",
                    value=name,
                    hint="Separate several by a semicolon.",
                )
            excluded[slot_of[name]].add(task)
    return tuple(map(frozenset, excluded))


def _expected_crowd(root: Section, *, compared: bool) -> ExpectedCrowd:
    if "expected" not in root:
        return ExpectedCrowd()
    section = root.section("expected")
    answered = section.number("answered") if "answered" in section else 1.0
    if not 0 < answered <= 1:
        raise SettingsError(
            "expected.answered must be above 0 and at most 1",
            value=answered,
            hint="Such as 0.8: a fifth of the cells stay empty.",
        )
    ability = section.number("ability") if "ability" in section else None
    sigmas = section.take_required_value("sigmas") if "sigmas" in section else []
    if not (isinstance(sigmas, list) and all(type(sigma) in (int, float) for sigma in sigmas)):
        raise SettingsError("expected.sigmas must be a list of numbers", value=sigmas)
    ties = section.number("ties") if compared and "ties" in section else None
    share = section.number("share") if "share" in section else None
    if share is not None and not 0 < share < 1:
        hint = "Guess the share of a label, such as 0.2; 0.5 has the widest interval."
        raise SettingsError("expected.share must be above 0 and below 1", value=share, hint=hint)
    section.close()
    return ExpectedCrowd(answered=answered, ability=ability, sigmas=tuple(map(float, sigmas)), share=share, ties=ties)


def _privacy_of_survey(request: PrivacyRequest, alphabet: Alphabet) -> PrivacyRequest:
    """Return the requested privacy of a survey, without a prior: a plan chooses a mechanism for shares."""
    if not isinstance(alphabet, Categories):
        hint = "Leave expected.share out, or ask for labels."
        raise SettingsError("expected.share is of labels", value="answers.scale", hint=hint)
    names = (RandomizedResponse.name, SubsetSelection.name, PLAN)
    if request.mechanism not in names:
        hint = "Leave expected.share out if each task has one right answer."
        rule = 'with expected.share the mechanism must be "{}", "{}" or "{}"'.format(*names)
        raise SettingsError(rule, value=request.mechanism, hint=hint)
    return replace(request, prior=None)


def _relay(root: Section, slots: int) -> Relay | None:
    if "relay" not in root:
        return None
    section = root.section("relay")
    hint = "Reports are forwarded together with those of this many workers, or not at all."
    relay = Relay(
        operator=section.text("operator", MAX_NAME, "Say who runs the relay; workers read it."),
        public_key="",
        least_batch=section.integer("least_batch", 2, slots, hint),
        unit="report" if section.choice("unit", ("report", "cell")) == "report" else "cell",
    )
    section.close()
    return relay


def _refuse_disallowed_levels(source: CampaignSettings) -> None:
    """Refuse levels, or groups of cuts, of a campaign that cannot have them."""
    privacy, relay = source.privacy, source.relay is not None
    if relay and len(privacy.one_request_per_channel) > 1:
        raise SettingsError(
            "with a relay every worker has the same channel",
            value=privacy.levels or privacy.dealt_cuts,
            hint="Give budget_per_worker, and one group of cuts: the guarantee of a relay counts equal channels.",
        )
    if privacy.levels and source.participation != "protected":
        raise SettingsError('with levels participation must be "protected"', value=source.participation)
    if len(privacy.dealt_cuts) > source.slots:
        raise SettingsError("each group of cuts needs a worker", value=source.slots)


def _require_relay_hides_worker(source: CampaignSettings) -> None:
    """Refuse settings under which a report through the relay names its worker."""
    if source.relay is None:
        return
    if source.url is None or source.purge_after_days is None:
        raise SettingsError(
            "a relay needs service.url, its address, and service.purge_after_days",
            value=None,
            hint="The relay knows who sent which report until it deletes its data.",
            value_in_rule=True,
        )
    if source.participation != "protected":
        raise SettingsError(
            'with a relay participation must be "protected"',
            value=source.participation,
            hint="The tasks that a worker leaves out would show whose report it is.",
        )
    if source.per_worker not in (None, len(source.rows)) or any(source.excluded):
        raise SettingsError(
            "with a relay every worker is asked every task",
            value=source.per_worker if source.per_worker is not None else "not_for",
            hint="Leave out tasks.per_worker and not_for: the assignment would show whose report it is.",
        )
