"""Plan of a campaign by one call: expected errors, and what to ask with."""

from collections.abc import Mapping, Sequence
from typing import Any

from crowdveil.answers.facts.prior import Prior
from crowdveil.answers.reports import Reports
from crowdveil.arguments import (
    require_instance,
    require_list,
    require_number,
    require_whole_number,
    with_known_arguments,
)
from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.channels.guarantee import Participation, require_participation
from crowdveil.design.mechanism_from_settings import Expectation
from crowdveil.em.gold import as_gold
from crowdveil.errors import SettingsError
from crowdveil.hints import advising_own_arguments
from crowdveil.inference.given import as_prior
from crowdveil.planning import Pilot
from crowdveil.planning.expected_campaign import expected_campaign
from crowdveil.planning.plan import EPSILONS, WORTH_ASKING, Plan, Progress, plan_campaign


@with_known_arguments("plan(Categories(('no', 'yes')), workers=100, tasks=50, participation_rate=0.5, target=0.1)")
@advising_own_arguments
def plan(
    alphabet: Alphabet,
    *,
    workers: int,
    tasks: int,
    target: float | None = None,
    epsilons: Sequence[float] = EPSILONS,
    participation: Participation = "protected",
    participation_rate: float = 1.0,
    ability: float | None = None,
    sigmas: Sequence[float] = (),
    prior: Mapping[str, float] | Prior | None = None,
    assigned_per_task: int | None = None,
    method: str | None = None,
    pilot: Reports | None = None,
    gold: Any = None,
    progress: Progress | None = None,
) -> Plan:
    """Return the expected error of every mechanism at every epsilon, and the smallest epsilon that meets a target.

    Nothing is read from answers but those of a pilot: what is expected of them is stated here, and is public.

    Args:
        alphabet: labels or scale of the answers.
        workers, tasks: size of the crowd.
        target: error wanted: share of wrong labels, or mean absolute error; by default .9 of the best constant's.
        epsilons: in nats per cell, one answer of one worker to one task.
        participation: "protected" or "public".
        participation_rate: share of the cells that are answered; by default all.
        ability: probability that a worker's answer is right; by default .75.
        sigmas: instead, for a scale: standard deviations of equal shares of the workers.
        prior: probability of each label as truth, which inference is then given; by default uniform and not given.
        assigned_per_task: workers asked on each task; None for all.
        method: estimator; by default dawid-skene for labels, gaussian for numbers.
        pilot: unprotected answers to some random tasks, about 50, in place of `ability`: the crowd is then theirs.
        gold: truth by task of the pilot, or a frame of them, which show how often the crowd shares a mistake.
        progress: called after every simulation with the number done and expected.

    Raises:
        SettingsError: a number out of range, or a prior that does not name exactly the labels.

    >>> import crowdveil as cv
    >>> found = cv.plan(cv.Categories(("no", "yes")), workers=40, tasks=99, participation_rate=0.5, epsilons=[1.0])
    >>> found.best.prediction.error < found.constant_error
    True
    """
    _require_types(alphabet, participation, epsilons, sigmas, progress)
    _require_pilot(pilot, gold)
    truths = None if gold is None else {str(task): truth for task, truth in as_gold(gold).items()}
    sizes: Any = {"tasks": tasks, "workers": workers, "assigned_per_task": assigned_per_task}
    shares = {"target": target, "ability": ability, "participation_rate": participation_rate}
    _require_numbers(sizes, {name: value for name, value in shares.items() if value is not None})
    stated, deviations = as_prior(prior), tuple(map(float, sigmas))
    expected = Expectation(prior=stated, participation_rate=participation_rate, ability=ability, sigmas=deviations)
    estimates = None if pilot is None else Pilot.of(pilot, truths)
    campaign = expected_campaign(alphabet, expected, participation, method=method, pilot=estimates, **sizes)
    wanted = WORTH_ASKING * campaign.crowd.constant_error if target is None else target
    return plan_campaign(campaign, target=wanted, epsilons=epsilons, progress=progress)


def _require_types(
    alphabet: object,
    participation: object,
    epsilons: object,
    sigmas: Sequence[float],
    progress: object,
) -> None:
    """Refuse an alphabet, participation, lists and a function of other types."""
    if not (progress is None or callable(progress)):
        raise SettingsError("progress must be a function of two numbers", value=progress, hint="Such as print.")
    hint = "Labels are Categories(('no', 'yes')), numbers Scale(0, 10)."
    require_instance("alphabet", alphabet, (Categories, Scale), what="Categories or a Scale", hint=hint)
    require_participation(participation)
    require_list("epsilons", epsilons, example="[1.0, 2.0]")
    require_list("sigmas", sigmas, example="[0.5, 1.0]")
    for sigma in sigmas:
        require_number("a sigma", sigma)


def _require_pilot(pilot: object, gold: object) -> None:
    """Refuse a pilot that is no reports of the labels, and gold that has no pilot."""
    if pilot is not None:
        hint = "Such as Reports.from_csv('pilot.csv', alphabet=...)."
        require_instance("pilot", pilot, Reports, what="Reports", hint=hint)
    if gold is not None and pilot is None:
        hint = "Give the answers to these tasks as pilot."
        raise SettingsError("gold needs a pilot", value=type(gold).__name__, hint=hint)


def _require_numbers(sizes: Mapping[str, object], others: Mapping[str, object]) -> None:
    """Refuse sizes that are not at least 1, of which the last may be None, and others that are no numbers."""
    for name, size in sizes.items():
        if size is not None or name != "assigned_per_task":
            require_whole_number(name, size, least=1)
    for name, value in others.items():
        require_number(name, value)
