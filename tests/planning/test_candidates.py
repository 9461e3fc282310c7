"""Candidates at one epsilon, and their costs."""

from math import ceil, log2

import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.mechanisms import QuantizedResponse, RandomizedResponse
from crowdveil.planning import CANDIDATE_NAMES, Campaign, candidates
from crowdveil.planning.candidates import (
    ORDINAL_SUFFIX,
    channel_key,
    worker_cost,
)
from tests.planning.campaigns import of_labels, of_numbers


@pytest.mark.parametrize("campaign", [of_labels(), of_labels(participation="public"), of_numbers()])
def test_candidates_keep_their_epsilon(campaign: Campaign) -> None:
    """All applicable types are present, keep the epsilon, and are no more informative than the designed channel."""
    made = candidates(campaign, 1.0)
    said = {one.name: campaign.information(one.mechanism.channel()) for one in made}

    assert [name for name in CANDIDATE_NAMES if name in said] == list(said)
    assert set(CANDIDATE_NAMES[:3]) <= said.keys()
    assert all(0.99 < one.mechanism.guarantee.epsilon <= 1.0 for one in made)
    assert max(said.values()) <= said["designed"] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("campaign", "ordinal"),
    [
        (of_labels(), False),
        (of_labels(ordered=True), True),
        (of_labels(ordered=True, labels=2), False),
        (of_labels(ordered=True, method="dawid-skene"), False),
        (of_numbers(), False),
        (of_numbers(workers=8), False),
        (of_numbers(assigned_per_task=15), False),
    ],
)
def test_types_apply_to_their_campaigns(campaign: Campaign, ordinal: bool) -> None:
    """Ordinal candidates need three ordered labels and no given method."""
    made = candidates(campaign, 2.0)

    assert ordinal == any(one.name.endswith(ORDINAL_SUFFIX) for one in made)
    assert all(
        ("ordinal-dawid-skene" == one.campaign.estimator.name) == one.name.endswith(ORDINAL_SUFFIX) for one in made
    )


def test_searches_try_fewer_types() -> None:
    """Searches try randomized and quantized response, with both estimators."""
    made = [one.name for one in candidates(of_labels(ordered=True), 2.0, search_only=True)]

    assert ["randomized-response", "quantized-response"] == made[:2]
    assert [line + ORDINAL_SUFFIX for line in made[:2]] == made[2:]


def test_channel_keys_ignore_names_of_symbols() -> None:
    """Blocks of single labels have the key of randomized response; another epsilon has another key."""
    alphabet = Categories(("no", "yes"))
    response = RandomizedResponse(alphabet=alphabet, epsilon=1.0)
    blocks = QuantizedResponse(alphabet=alphabet, epsilon=1.0, blocks=((1,), (0,)))

    assert channel_key(response.channel()) == channel_key(blocks.channel())
    assert channel_key(response.channel()) != channel_key(RandomizedResponse(alphabet=alphabet, epsilon=2.0).channel())


@pytest.mark.parametrize("participation", ["protected", "public"])
def test_cost_follows_the_stated_formula(participation) -> None:  # type: ignore[no-untyped-def]
    """Bytes are one fixed-width symbol per task; epsilon sums over the cells that cost privacy."""
    campaign = of_labels(labels=4, tasks=61, rate=0.25, participation=participation)
    mechanism = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=1.0, participation=participation)
    found = worker_cost(campaign, mechanism)

    assert found.bytes == ceil(61 * ceil(log2(5)) / 8)
    assert found.cells == (61 if participation == "protected" else 16)
    assert found.worker_epsilon == pytest.approx(found.cells * found.cell_epsilon)


def test_assigned_workers_report_their_own_cells_only() -> None:
    """With 10 of 40 workers per task a worker has 15 of 60 tasks, answers them twice as fully, and pays for 15."""
    campaign = of_labels(rate=0.2, assigned_per_task=10)
    mechanism = RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=1.0)

    assert (15, 0.8, 10) == (
        campaign.cells_per_worker,
        pytest.approx(campaign.answer_rate),
        campaign.reporters_per_task,
    )
    assert worker_cost(campaign, mechanism).cells == 15
