"""Guarantee of a relay: the shuffled figure of the least batch, the local one, and the assumption of each."""

import pytest

from crowdveil.campaign.rules.document import Campaign, Relay
from crowdveil.campaign.statement.document import campaign_statement
from crowdveil.campaign.statement.facts import campaign_facts
from crowdveil.campaign.statement.sentences import DELTA, relay_sentences, relayed_guarantees
from crowdveil.privacy.shuffling import shuffled_cell_guarantee, shuffled_worker_guarantee
from crowdveil.privacy.statement import statement_sentences, statement_text
from tests.campaign.builders import PUBLIC_KEY, build_campaign

pytestmark = pytest.mark.slow


def relayed(unit: str, *, tasks: int, least_batch: int = 100) -> Campaign:
    """Return a campaign of 200 workers with a relay."""
    relay = Relay("The library", PUBLIC_KEY, least_batch, unit)  # type: ignore[arg-type]
    return build_campaign(slots=200, tasks=tasks, content={"relay": relay}).campaign


@pytest.mark.parametrize(("unit", "linked"), [("cell", 1), ("report", 2)])
def test_the_guarantee_is_that_of_the_least_batch(unit: str, linked: int) -> None:
    """Cell and worker have the shuffled guarantee of the least batch, with the cells that stay together as linked."""
    campaign = relayed(unit, tasks=2)
    found = relayed_guarantees(campaign)
    channel = campaign.channels[0]

    assert found is not None
    assert (
        shuffled_cell_guarantee(channel, reports=100, delta=DELTA, linked=linked).epsilon
        == found[0].epsilon
        < campaign.epsilon
    )
    worker = shuffled_worker_guarantee(channel, reports=100, cells=2, delta=DELTA, linked=linked)
    assert worker.epsilon == found[1].epsilon < campaign.worker_epsilon


def test_the_statement_names_both_figures_and_their_assumptions() -> None:
    """The local epsilon comes first; the shuffled one has its delta, and holds if relay and curator are apart."""
    text = " ".join(statement_sentences(campaign_statement(relayed("cell", tasks=2))))

    assert text.index("epsilon 1 per single answer") < text.index("As long as relay and curator do not work together")
    assert "at least 100 workers of a batch are honest" in text
    assert "at delta 1e-06 (shuffled)" in text or "at delta 1e-6 (shuffled)" in text
    assert "which is below 1 / 200, the number of workers" in text
    assert "If they work together, the epsilon above holds" in text


def test_the_operator_stands_apart_from_the_statement() -> None:
    """The curator's name of the relay is quoted in a line of its own; no sentence of the statement holds it."""
    campaign = relayed("cell", tasks=2)
    text = statement_text(campaign_statement(campaign), campaign_facts(campaign))

    assert "Relay, as the curator names it: 'The library'" in text.splitlines()
    assert 1 == text.count("The library")


def test_a_delta_of_one_by_the_number_of_workers_states_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 1 / delta workers on, the statement of a relay names no smaller epsilon."""
    monkeypatch.setattr("crowdveil.campaign.statement.sentences.DELTA", 1 / 200)
    campaign = relayed("cell", tasks=2)
    text = " ".join(relay_sentences(campaign))

    assert "No smaller epsilon is stated for it: delta 0.005 is not below 1 / 200 (1 / number of workers)." in text
    assert relayed_guarantees(campaign) is None


def test_long_reports_that_stay_together_have_the_local_guarantee_alone() -> None:
    """Beyond five linked cells no smaller epsilon is stated; without a relay nothing is said."""
    text = " ".join(relay_sentences(relayed("report", tasks=6)))

    assert "No smaller epsilon is stated" in text
    assert "delta" not in text
    assert () == relay_sentences(build_campaign().campaign)


@pytest.mark.parametrize("unit", ["cell", "report"])
def test_a_batch_that_hides_nothing_promises_nothing(unit: str) -> None:
    """Of two reports no figure is below the local one, and the statement does not say that the curator learns less."""
    text = " ".join(relay_sentences(relayed(unit, tasks=2, least_batch=2)))

    assert "No smaller epsilon is stated" in text
    assert "learns less" not in text
