"""Texts and warnings of the facts of a collection: a guarantee with its conditions, or why there is none."""

from dataclasses import replace
from typing import Any

import pytest

from crowdveil.answers.facts.collection import ASSIGNED, EDITED, GUARANTEE_SCOPE, SIMULATED_REPORTS, Collection
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.certificate import LISTS_MARK, simulation_mark
from crowdveil.errors import ReportsError
from crowdveil.mechanisms import RandomizedResponse

RESPONSE = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=2.0)
GUARANTEE = RESPONSE.channel().guarantee
PROMISE = str(GUARANTEE)
HELD = Collection(
    mechanism="randomized-response",
    description="randomized-response (epsilon=2.0)",
    guarantee=GUARANTEE,
    participation="protected",
)
"""Facts of reports that were made from a file of answers."""
SENT = replace(HELD, campaign="A" * 43)
"""Facts of reports that devices sent."""
LISTS = "tasks and workers were taken from the answers, and show who answered and what: no privacy"
WOULD = "none: a simulation carries no privacy; devices would have"
TEXTS = {
    "held answers": (HELD, f"{PROMISE}; {GUARANTEE_SCOPE}"),
    "devices": (SENT, PROMISE),
    "assigned": (replace(SENT, assigned=True), f"{PROMISE}; {ASSIGNED}"),
    "assigned and held": (replace(HELD, assigned=True), f"{PROMISE}; {ASSIGNED}; {GUARANTEE_SCOPE}"),
    "assigned and public": (replace(SENT, assigned=True, participation="public"), PROMISE),
    "simulation": (replace(HELD, simulation=True, seed=3), f"{WOULD}: {PROMISE}"),
    "simulation without lists": (
        replace(HELD, simulation=True, lists_from_answers=("tasks",)),
        f"{WOULD}, with public lists: {PROMISE}",
    ),
    "lists": (replace(HELD, guarantee=None, lists_from_answers=("tasks", "workers")), f"none: {LISTS}"),
    "edited": (
        SENT.as_edited,
        f"unknown: the reports were edited after they were sent; stated before: {PROMISE}",
    ),
    "lists, edited": (
        replace(HELD, guarantee=None, lists_from_answers=("tasks", "workers")).as_edited,
        f"none: {LISTS}",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_guarantee_is_said_with_its_conditions_or_why_there_is_none(name: str) -> None:
    """A text begins with epsilon only if a guarantee holds; else with "none: " or "unknown: " and the reason."""
    facts, text = TEXTS[name]

    assert text == facts.guarantee_text
    assert facts.voided == text.startswith(("none: ", "unknown: "))
    assert facts.voided != text.startswith("epsilon")


def test_what_voids_a_guarantee_is_warned_of() -> None:
    """Simulations, lists from answers and edited reports have a warning each; reports with a guarantee have none."""
    lists = replace(HELD, guarantee=None, lists_from_answers=("tasks", "workers"))

    assert () == HELD.warnings == SENT.warnings
    assert (SIMULATED_REPORTS,) == replace(HELD, simulation=True).warnings
    assert (f"{LISTS.capitalize()}.",) == lists.warnings
    assert (EDITED,) == HELD.as_edited.warnings == HELD.as_edited.as_edited.warnings
    assert (SIMULATED_REPORTS, EDITED) == replace(HELD, simulation=True).as_edited.warnings
    assert (f"{LISTS.capitalize()}.", EDITED) == lists.as_edited.warnings


def test_the_certificate_confirms_what_is_promised() -> None:
    """The guarantee and the participation of the channel are stated; voided facts stay voided."""
    channel = RESPONSE.channel()
    text = str(replace(channel.guarantee, claimed=2.5))
    for facts in (HELD, replace(HELD, guarantee=None, stated_guarantee=f"{text}; {GUARANTEE_SCOPE}")):
        read = facts.with_channel(channel)
        assert (channel.guarantee, "protected") == (read.guarantee, read.participation)
        assert read.guarantee_text.startswith(str(channel.guarantee))
    assert HELD == HELD.with_channel(None)
    for voided in (replace(HELD, simulation=True), HELD.as_edited, replace(HELD, lists_from_answers=("tasks",))):
        assert voided == voided.with_channel(channel)


@pytest.mark.parametrize(
    "stated",
    [
        {"guarantee": replace(GUARANTEE, epsilon=0.01)},
        {"guarantee": replace(GUARANTEE, delta=0.5)},
        {"guarantee": replace(GUARANTEE, unit="worker")},
        {"guarantee": replace(GUARANTEE, participation="public")},
        {"participation": "public"},
        {"mechanism": "laplace"},
        {"mechanism": "randomized-response+laplace"},
        {"guarantee": None, "stated_guarantee": "epsilon = 0.01 per cell, participation protected"},
        {"guarantee": None, "stated_guarantee": "epsilon = 2 per cell, participation public"},
    ],
)
def test_what_contradicts_the_certificate_is_refused(stated: dict[str, Any]) -> None:
    """Facts that state another mechanism, bound, unit or participation than the certificate are refused."""
    with pytest.raises(ReportsError, match="must state the mechanism and the guarantee of its certificate"):
        replace(HELD, **stated).with_channel(RESPONSE.channel())


@pytest.mark.parametrize("mark", [LISTS_MARK, simulation_mark(3)])
def test_a_marked_certificate_is_no_guarantee(mark: str) -> None:
    """Facts that state a guarantee are refused beside a certificate that is marked as without privacy."""
    channel = RESPONSE.channel()
    marked = replace(channel, mechanism=channel.mechanism + mark)

    with pytest.raises(ReportsError, match="must not state a guarantee"):
        HELD.with_channel(marked)
    assert replace(HELD, simulation=True).with_channel(marked).voided
