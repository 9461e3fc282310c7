"""Construction of a campaign from its settings: channel within the budget, drawn assignment, document and parts."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from hashlib import sha256
from itertools import pairwise, zip_longest

from crowdveil.campaign.rules.assemble import CampaignContent, assemble_campaign
from crowdveil.campaign.rules.assignment_part import AssignmentPart
from crowdveil.campaign.rules.document import Campaign, Groups, Relay
from crowdveil.campaign.settings.compared_items import draw_sides, pairs_of_tasks
from crowdveil.campaign.settings.draw_assignment import draw_assignment
from crowdveil.campaign.settings.privacy_request import PrivacyRequest
from crowdveil.campaign.settings.settings_file import CampaignSettings
from crowdveil.channels.alphabet import Alphabet
from crowdveil.channels.guarantee import Participation
from crowdveil.channels.rounding import format_bound
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import ChannelMechanism
from crowdveil.mechanisms.budget_per_cell import mechanism_within_budget
from crowdveil.randomness import Source, secure

BuildMechanism = Callable[[float], ChannelMechanism]
"""Mechanism with an epsilon of a single answer, in nats."""
Lists = Sequence[Sequence[int]]
"""Task indices of each slot."""


def build_campaign(
    source: CampaignSettings,
    randomness: Source | None = None,
    *,
    relay: Relay | None = None,
    build: BuildMechanism | None = None,
    others: Sequence[BuildMechanism] = (),
) -> tuple[Campaign, tuple[AssignmentPart, ...], tuple[ChannelMechanism, ...]]:
    """Return the campaign, its assignment parts and the mechanisms of its channels.

    Args:
        source: checked settings.
        randomness: of the assignment; `secure()` by default.
        relay: the requested relay, with the curator's public key.
        build: mechanism of an epsilon of a single answer; as `requested_mechanism`.
        others: the same for the other channels, of questions, of levels or of groups of cuts.

    Raises:
        SettingsError: the exclusions leave a worker too few tasks, some tasks would have no worker, the mechanism
            refuses epsilon or alphabet, or the questions together exceed the budget.
        CampaignError: the document is larger than a reader accepts.
        CertificateError: a label that no certificate can name.
    """
    asked, own = source.by_question, source.privacy
    drawn = _draw_tasks_of_questions(asked, randomness or secure())
    loads = [max(map(len, lists)) for lists in drawn]
    wanted = [
        (one, load, request)
        for one, load in zip(asked, loads, strict=True)
        for request in one.privacy.one_request_per_channel
    ]
    mechanisms = [
        requested_mechanism(request, one.alphabet, one.participation, cells=load, build=built)
        for (one, load, request), built in zip_longest(wanted, (build, *others))
    ]
    if own.levels:
        _require_ascending(mechanisms)
    content = CampaignContent(
        **source.terms(),
        channels=tuple(mechanism.channel() for mechanism in mechanisms),
        tasks=tuple(task for one in asked for task in one.tasks),
        relay=relay,
        groups=_channel_groups(asked),
        levels=len(own.levels) or None,
        prior=None if own.prior is None else sha256(own.prior.read_bytes()).hexdigest(),
        questions=tuple(one.question for one in asked) if len(asked) > 1 else (),
    )
    campaign, parts = assemble_campaign(content, _tasks_over_all_questions(asked, drawn))
    _require_budget_kept(source.budget, campaign)
    return campaign, parts, tuple(mechanisms)


def _require_budget_kept(budget: float | None, campaign: Campaign) -> None:
    """Refuse questions that promise more together than the budget of a worker."""
    if budget is not None and campaign.worker_epsilon > budget:
        raise SettingsError(
            f"all questions together must keep the budget of a worker, {budget:g}",
            value=format_bound(campaign.worker_epsilon, 4),
            hint="Lower the budgets or epsilons of the questions, or raise privacy.budget_per_worker.",
        )


def _draw_tasks_of_questions(asked: Sequence[CampaignSettings], randomness: Source) -> list[Lists]:
    """Return the drawn tasks of each question; questions with equal tasks, and as many, ask a worker the same ones."""
    drawn: list[Lists] = []
    for place, one in enumerate(asked):
        same = [k for k in range(place) if (asked[k].rows, asked[k].per_worker) == (one.rows, one.per_worker)]
        if same:
            drawn.append(drawn[same[0]])
            continue
        count = len(one.pairs or one.rows)
        if one.per_worker is not None and one.per_worker * one.slots < count:
            raise SettingsError(
                f"every task needs a worker: {one.slots} workers with {one.per_worker} tasks each cannot answer "
                f"{count} tasks",
                value=one.per_worker,
                hint="Raise tasks.per_worker.",
                value_in_rule=True,
            )
        draw = draw_sides if one.pairs else draw_assignment
        lists = draw(count, one.slots, one.per_worker, one.excluded, randomness)
        if one.pairs:
            _require_workers_of_tasks(pairs_of_tasks(lists), [pair.name for pair in one.pairs])
        else:
            _require_workers_of_tasks(lists, [task.id for task in one.tasks])
        drawn.append(lists)
    return drawn


def _tasks_over_all_questions(asked: Sequence[CampaignSettings], drawn: Sequence[Lists]) -> Lists:
    """Return the tasks of each slot over all questions, numbered one question after the other."""
    starts = [sum(len(one.rows) for one in asked[:place]) for place in range(len(asked))]
    own = list(zip(starts, drawn, strict=True))
    return [[start + task for start, lists in own for task in lists[slot]] for slot in range(asked[0].slots)]


def _require_ascending(mechanisms: Sequence[ChannelMechanism]) -> None:
    """Refuse levels of which one has no more epsilon than the one before."""
    epsilons = [mechanism.channel().epsilon for mechanism in mechanisms]
    if any(low >= high for low, high in pairwise(epsilons)):
        raise SettingsError(
            "each level must have more epsilon for an answer than the one before",
            value=[float(f"{epsilon:.4g}") for epsilon in epsilons],
            hint="A plan does not spend the whole of a large level: lower the levels, or name a mechanism.",
        )


def _channel_groups(asked: Sequence[CampaignSettings]) -> Groups | None:
    """Return the channel of each cell: by question, or by slots, to which groups of cuts are dealt in turn."""
    first, slots = asked[0], asked[0].slots
    if len(asked) > 1:
        of_task = tuple(number for number, one in enumerate(asked) for _ in one.tasks)
        return Groups((tuple(range(len(asked))),), of_task, (0,) * slots)
    channels = len(first.privacy.dealt_cuts)
    if not channels:
        return None
    choice = tuple((index,) for index in range(channels))
    return Groups(choice, (0,) * len(first.rows), tuple(slot % channels for slot in range(slots)))


def _require_workers_of_tasks(assignment: Sequence[Collection[int]], tasks: Sequence[str]) -> None:
    """Refuse a task that is assigned to no worker."""
    assigned = {task for own in assignment for task in own}
    left = [name for index, name in enumerate(tasks) if index not in assigned]
    if left:
        raise SettingsError(
            f"every task needs a worker, task {left[0]!r} has none",
            value=left[0],
            hint="Shorten not_for.",
            value_in_rule=True,
        )


def requested_mechanism(
    privacy: PrivacyRequest,
    alphabet: Alphabet,
    participation: Participation,
    *,
    cells: int,
    build: BuildMechanism | None = None,
) -> ChannelMechanism:
    """Return the mechanism with the requested epsilon of a single answer, or with an equal share of the budget.

    The certified loss of one answer times `cells`, rounded up, is at most the budget.

    Args:
        privacy: as requested.
        alphabet: possible answers.
        participation: whether participation is protected.
        cells: largest number of tasks of one worker.
        build: mechanism of an epsilon; that of the request by default, which must not be a designed one.

    Raises:
        SettingsError: epsilon or alphabet are refused.
    """
    build = build or partial(privacy.mechanism_of_answer_epsilon, alphabet, participation)
    if privacy.epsilon_per_answer is not None:
        return build(privacy.epsilon_per_answer)
    budget = privacy.budget_per_worker
    assert budget is not None
    return mechanism_within_budget(build, budget, cells)
