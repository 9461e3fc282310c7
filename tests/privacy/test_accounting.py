"""What an epsilon adds up to over cells and rounds."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.rounding import lower_of_binary_and_decimal
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import RandomizedResponse, TwoLayer
from crowdveil.privacy.accounting import Account, account, account_channel_table
from tests.mechanisms.examples import EXAMPLES, FACTORS

YES_NO = Categories(("no", "yes"))


def test_one_campaign_has_a_row_per_unit():
    """Randomized response: the cell's exact epsilon, and the worker's as the sum over all cells, NULL included."""
    mechanism = RandomizedResponse(alphabet=YES_NO, epsilon=1.0)
    exact = mechanism.guarantee.epsilon
    common = {"mechanism": "randomized-response", "participation": "protected", "cells": 30, "rounds": 1, "delta": 0.0}

    expected = (
        Account(unit="cell", claimed=1.0, exact=exact, reason="", **common),
        Account(unit="worker", claimed=30.0, exact=30 * exact, reason="", **common),
    )

    assert expected == account(mechanism, tasks=30)


def test_repeated_campaigns_add_rows_with_sums():
    """Over five rounds every figure is five times that of one; the single round stays visible."""
    mechanism = RandomizedResponse(alphabet=YES_NO, epsilon=0.5, participation="public")
    rows = account(mechanism, tasks=10, rounds=5)

    assert [("cell", 1), ("worker", 1), ("cell", 5), ("worker", 5)] == [(row.unit, row.rounds) for row in rows]
    assert [0.5, 5.0, 2.5, 25.0] == pytest.approx([row.exact for row in rows], abs=1e-9)
    assert [0.5, 5.0, 2.5, 25.0] == [row.claimed for row in rows]
    assert {"public"} == {row.participation for row in rows}


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=5), st.integers(0, 10**6))
def test_the_worst_worker_of_a_table_is_found_exactly(choice, seed):
    """Of assigned channels, the largest sum over a worker's cells, in exact arithmetic, is what the account states."""
    epsilons = np.random.default_rng(seed).uniform(0.1, 2.0, 4)
    used = sorted({index for row in choice for index in row})
    channels = [RandomizedResponse(alphabet=YES_NO, epsilon=float(epsilons[index])).channel() for index in used]
    table = ChannelTable(
        channels=tuple(channels),
        choice=tuple(tuple(used.index(index) for index in row) for row in choice),
        workers={f"w{k}": k for k in range(len(choice))},
        tasks={f"t{k}": k for k in range(4)},
    )
    exact = max(
        sum(lower_of_binary_and_decimal(table.channels[index].epsilon) for index in row) for row in table.choice
    )

    worker = account_channel_table(table, tasks=list(table.tasks), workers=list(table.workers))[1]

    assert exact <= lower_of_binary_and_decimal(worker.exact) <= exact * (1 + Fraction(1, 10**15))


def test_shared_flip_probability_is_counted_by_the_mechanism():
    """Two-layer: a cell loses more than claimed, all cells together less than the sum of the exact losses."""
    mechanism = TwoLayer.as_published(alphabet=YES_NO, epsilon=1.0, participation="public")
    cell, worker = account(mechanism, tasks=20)

    assert (1.0, 20.0) == pytest.approx((cell.claimed, worker.claimed))
    assert ("2.9957", "13.1468") == (f"{cell.exact:.4f}", f"{worker.exact:.4f}")
    assert "20 answers" in cell.reason
    assert worker.exact < 20 * cell.exact


def test_a_broken_claim_stays_infinite():
    """What promises nothing for a cell promises nothing for a worker or for many rounds, and says why."""
    rows = account(FACTORS, tasks=FACTORS.tasks, rounds=2)

    assert all(math.isinf(row.exact) and row.reason for row in rows)
    assert [1.0, 6.0, 2.0, 12.0] == [row.claimed for row in rows]


@pytest.mark.parametrize("mechanism", EXAMPLES, ids=repr)
def test_every_mechanism_has_an_account(mechanism):
    """Exact figures are at most the claimed ones wherever no reason is given; participation is the mechanism's own."""
    for row in account(mechanism, tasks=7, rounds=3):
        assert row.exact <= row.claimed * (1 + 1e-12) or row.reason
        assert (mechanism.name, mechanism.participation, 7) == (row.mechanism, row.participation, row.cells)


@pytest.mark.parametrize(
    "counts", [{"tasks": 10**12 + 1}, {"tasks": 0}, {"tasks": 1, "rounds": 0}, {"tasks": 1, "rounds": 10**400}]
)
def test_counts_have_a_range(counts):
    """Tasks and rounds below 1 or above 10**12 are refused by name, with the number found."""
    name, found = list(counts.items())[-1]
    mechanism = RandomizedResponse(alphabet=YES_NO, epsilon=1.0)

    with pytest.raises(SettingsError, match=f"{name} must be from 1 to 1,000,000,000,000") as refused:
        account(mechanism, **counts)
    assert found == refused.value.value
    assert math.isfinite(account(mechanism, tasks=10**12, rounds=10**12)[-1].exact)
