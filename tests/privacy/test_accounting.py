"""Accounts of a campaign's losses: composition, ledgers, levels, and settings of mechanisms."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.answers.reports import Reports
from crowdveil.campaign.statement.document import campaign_statement
from crowdveil.campaign.statement.sentences import level_guarantees, level_sentences
from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.rounding import lower_exact_value
from crowdveil.design.mechanism_from_settings import MechanismSettings, build_mechanism, description_with_parameters
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms import MECHANISMS, RandomizedResponse, TwoLayer
from crowdveil.privacy.accounting import Account, account, account_channel_table
from crowdveil.privacy.composition import composed_losses, ledger_losses, profile_of_pure_epsilon
from crowdveil.privacy.loss_distribution import channel_profile, composed_epsilon
from crowdveil.privacy.statement import statement_sentences
from crowdveil.published import MatrixFactorizationPublished, SunTwoLayer
from crowdveil.simulate.channel_assignment import ChannelAssignment
from crowdveil.simulate.perturbed_collection import expected_report_rows, perturb_collection
from crowdveil.standalone.checks import Refused, canonical, epsilon
from crowdveil.standalone.device import read_ledger
from tests.campaign.builders import build_campaign, response
from tests.mechanisms.examples import EXAMPLES, FACTORS

YES_NO = Categories(("no", "yes"))


def test_one_campaign_has_a_row_per_unit():
    """Randomized response: the cell's exact epsilon, and the worker's as the sum over all cells, NULL included."""
    mechanism = RandomizedResponse(alphabet=YES_NO, epsilon=1.0)
    exact = mechanism.guarantee.epsilon
    common: dict[str, Any] = {
        "mechanism": "randomized-response",
        "participation": "protected",
        "cells": 30,
        "rounds": 1,
        "delta": 0.0,
    }

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
    exact = max(sum(lower_exact_value(table.channels[index].epsilon) for index in row) for row in table.choice)

    worker = account_channel_table(table, tasks=list(table.tasks), workers=list(table.workers))[1]

    assert exact <= lower_exact_value(worker.exact) <= exact * (1 + Fraction(1, 10**15))


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


@pytest.mark.slow
def test_rows_are_cell_and_worker_over_all_rounds():
    """The sum is cells times rounds times epsilon; the exact figure of the worker is the smallest of the three."""
    mechanism = RandomizedResponse(alphabet=YES_NO, epsilon=0.5)
    cell, worker = composed_losses(mechanism, tasks=50, rounds=4, delta=1e-6)

    assert [("cell", 1, 4), ("worker", 50, 4)] == [(row.unit, row.cells, row.rounds) for row in (cell, worker)]
    assert (2.0, 100.0) == pytest.approx((cell.pure, worker.pure))
    assert worker.exact < worker.advanced < worker.pure
    assert composed_epsilon([(channel_profile(mechanism.channel()), 200)], 1e-6) == worker.exact


def test_a_pure_epsilon_alone_composes_over_rounds():
    """Of a mechanism without a channel, the pure loss per campaign composes as randomized response with that loss."""
    mechanism = TwoLayer(alphabet=YES_NO, low=0.2, high=0.7, answers=200)
    worker = composed_losses(mechanism, tasks=150, rounds=3, delta=1e-6)[1]
    epsilon = mechanism.guarantees(150)[1].epsilon

    assert composed_epsilon([(profile_of_pure_epsilon(epsilon), 3)], 1e-6) == worker.exact
    assert 3 * epsilon == pytest.approx(worker.pure)


def test_no_guarantee_stays_none():
    """What has infinite epsilon has no (epsilon, delta) either."""
    mechanism = MatrixFactorizationPublished(alphabet=Scale(0, 9), epsilon=1.0, tasks=4, dimensions=2)

    assert {math.inf} == {row.exact for row in composed_losses(mechanism, tasks=4, delta=1e-6)}


def line(channel, cells, host="a.example.org"):
    """Line of a ledger for cells of one table."""
    return {
        "campaign": "c", "report": "r", "title": "t", "day": "2026-01-01", "participation": "public", "host": host,
        "cells": cells, "numerator": channel.ratio.numerator, "denominator": channel.ratio.denominator,
    }  # fmt: skip


def test_losses_bound_the_enumeration_of_all_reports():
    """Two campaigns, five binary cells: no delta of any two answer vectors is above the stated one, and nearly met."""
    tables = [RandomizedResponse(alphabet=YES_NO, epsilon=e, participation="public").channel() for e in (1.0, 0.5)]
    cells = [tables[0]] * 3 + [tables[1]] * 2
    rows = [
        np.prod(
            np.meshgrid(*(one.probabilities[x] for one, x in zip(cells, answers, strict=True)), indexing="ij"), axis=0
        )
        for answers in product((0, 1), repeat=5)
    ]

    loss = ledger_losses([line(tables[0], 3), line(tables[1], 2, "b.example.org")], 0.01)[-1]
    delta = max(float(np.maximum(a - np.exp(loss.exact) * b, 0).sum()) for a in rows for b in rows)
    less = max(float(np.maximum(a - np.exp(loss.exact - 0.01) * b, 0).sum()) for a in rows for b in rows)

    assert delta <= 0.01 < less
    assert loss.pure == pytest.approx(4.0, abs=1e-9)
    assert (None, 5) == (loss.host, loss.cells)


@pytest.mark.slow
def test_each_host_has_its_own_loss_and_all_have_less_than_the_sum():
    """Lines are composed by host; the loss to all is at least that to each, and below the sum."""
    table = RandomizedResponse(alphabet=YES_NO, epsilon=0.3).channel()
    one, two, both = ledger_losses([line(table, 40), line(table, 60, "b.example.org"), line(table, 10)], 1e-6)

    assert ("a.example.org", 50) == (one.host, one.cells)
    assert max(one.exact, two.exact) < both.exact < both.pure
    assert both.exact <= both.advanced
    assert both.pure == pytest.approx(33.0, rel=1e-9)


def test_a_line_with_a_ratio_below_1_is_refused(tmp_path):
    """A numerator below its denominator would lower the sum: -169 instead of 1; no reader of the ledger takes it."""
    sound = line(RandomizedResponse(alphabet=YES_NO, epsilon=1.0).channel(), 1)
    forged = {**sound, "report": "s", "cells": 170, "numerator": 10**6, "denominator": 2718282}
    (tmp_path / "ledger.json").write_bytes(canonical({"format": "crowdveil-ledger/1", "lines": [sound, forged]}))

    for read in (epsilon, lambda lines: ledger_losses(lines, 1e-6)):
        with pytest.raises(Refused, match="ledger"):
            read([sound, forged])
    with pytest.raises(Refused, match="is damaged"):
        read_ledger(tmp_path)


def test_an_empty_ledger_has_no_loss_and_a_wrong_delta_is_refused():
    """Nothing was promised; delta must be in its interval."""
    assert () == ledger_losses([], 1e-6)
    with pytest.raises(SettingsError, match="delta"):
        ledger_losses([], 0.0)


CHANNELS = [response(epsilon=one) for one in (0.25, 0.5)]
CAMPAIGN = build_campaign(channels=CHANNELS, slots=20, content={"levels": 2, "min_reports": 5}).campaign


def test_each_level_is_stated_with_its_own_epsilon():
    """For four tasks the levels have epsilon 1 and 2, each with how sure anyone can be, and the level is visible."""
    first, visible = level_sentences(CAMPAIGN)

    assert "level 1: epsilon 1, at most 73.2 % sure" in first
    assert "level 2: epsilon 2, at most 88.1 % sure" in first
    assert "The level that a worker chose is visible." == visible
    assert {("worker", "protected")} == {(one.unit, one.participation) for one in level_guarantees(CAMPAIGN)}


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ((9, 5), "Chosen: 9 level 1, 5 level 2."),
        ((16, 4), "How many chose which level is not stated: fewer than 5 chose one of them."),
        ((20, 0), "How many chose which level is not stated: fewer than 5 chose one of them."),
    ],
)
def test_numbers_are_stated_only_if_each_level_has_enough(chosen, said):
    """Of all numbers but one the last would follow, so all or none are stated; 0 is not told from 4."""
    assert said == level_sentences(CAMPAIGN, chosen)[-1]


def test_a_statement_promises_the_last_level_and_names_the_choice_as_not_covered():
    """The figures for everybody are those of the last level; the choice itself is listed as not covered."""
    statement = campaign_statement(CAMPAIGN)

    assert statement.per_worker is not None
    assert CAMPAIGN.worker_epsilon == statement.per_worker.epsilon
    assert set(statement.levels) <= set(statement_sentences(statement))
    assert "The level of privacy that a worker chose: it is sent as it is." in statement.not_covered


def test_a_campaign_without_levels_says_nothing_of_them():
    """Without levels there are no sentences, no guarantees and nothing more that is not covered."""
    statement = campaign_statement(build_campaign().campaign)

    assert ((), ()) == (statement.levels, level_sentences(build_campaign().campaign))
    assert not any("level" in sentence for sentence in statement.not_covered)
    assert replace(statement, levels=()).levels == ()


LABELS, GRID = Categories(("no", "yes")), Scale(0, 9)


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_registered_mechanism_is_built_by_name(name: str) -> None:
    """A name, an epsilon and, where needed, dimensions give an instance of the class registered under that name."""
    dimensions = 2 if name == "matrix-factorization-published" else None
    built = build_mechanism(MechanismSettings(name=name, epsilon=1.5, dimensions=dimensions), GRID, tasks=7)

    assert MECHANISMS[name] is type(built)
    assert 1.5 == pytest.approx(built.epsilon, rel=1e-12)
    assert description_with_parameters(built).startswith(f"{name} (")


def test_two_layer_takes_epsilon_or_both_ends() -> None:
    """Epsilon, epsilon with low, or low and high; the number of answers is that of the tasks unless given."""
    by_epsilon = build_mechanism(MechanismSettings(name="two-layer", epsilon=1.0, low=0.2), LABELS, tasks=12)
    by_ends = build_mechanism(MechanismSettings(name="two-layer", low=0.2, high=0.5, answers=3), LABELS, tasks=12)

    assert isinstance(by_epsilon, TwoLayer)
    assert isinstance(by_ends, TwoLayer)
    assert (0.2, 12) == (by_epsilon.low, by_epsilon.answers)
    assert (0.2, 0.5, 3) == (by_ends.low, by_ends.high, by_ends.answers)


def test_suns_two_layer_takes_a_smallest_budget_and_counts_all_tasks() -> None:
    """The smallest budget is 0 and the number of cells that of the tasks, unless given."""
    usual = build_mechanism(MechanismSettings(name="sun-two-layer", epsilon=1.0), LABELS, tasks=12)
    given = build_mechanism(MechanismSettings(name="sun-two-layer", epsilon=1.0, low=0.4, answers=30), LABELS, tasks=12)

    assert SunTwoLayer(alphabet=LABELS, epsilon=1.0, answers=12) == usual
    assert SunTwoLayer(alphabet=LABELS, epsilon=1.0, low=0.4, answers=30) == given


@pytest.mark.parametrize(
    ("alphabet", "wanted"),
    [
        (LABELS, {"name": "nonsense", "epsilon": 1.0}),
        (LABELS, {"name": "one-layer"}),
        (LABELS, {"name": "two-layer"}),
        (LABELS, {"name": "two-layer", "high": 0.5}),
        (LABELS, {"name": "two-layer", "epsilon": 1.0, "low": 0.1, "high": 0.5}),
        (LABELS, {"name": "sun-two-layer", "epsilon": 1.0, "low": 1.0}),
        (LABELS, {"name": "laplace", "epsilon": 1.0}),
        (LABELS, {"name": "matrix-factorization", "epsilon": 1.0}),
        (GRID, {"name": "matrix-factorization", "epsilon": 1.0, "participation": "public"}),
        (GRID, {"name": "matrix-factorization-published", "epsilon": 1.0}),
        (GRID, {"name": "laplace", "epsilon": 1.0, "null_value": "middle"}),
    ],
    ids=str,
)
def test_invalid_settings_are_refused(alphabet: Alphabet, wanted: dict[str, Any]) -> None:
    """Unknown names, missing or contradictory settings, and unfit alphabets raise SettingsError."""
    with pytest.raises(SettingsError):
        build_mechanism(MechanismSettings(**wanted), alphabet, tasks=5)


def test_one_cell_sends_one_report() -> None:
    """Answers that repeat a pair are refused for every mechanism, matrix factorization included."""
    answers = Reports.from_arrays(["a", "a"], ["u", "u"], [1, 2], alphabet=None, numeric=True, duplicates="all")
    coded = Reports(answers.task, answers.worker, GRID.encode(answers.value), answers.tasks, answers.workers, GRID)
    for name in ("matrix-factorization", "randomized-response"):
        mechanism = build_mechanism(MechanismSettings(name=name, epsilon=1.0), GRID, tasks=1)
        with pytest.raises(ReportsError, match="one cell sends one report"):
            perturb_collection(coded, ChannelAssignment(mechanism=mechanism), seed=1)


def test_foreseen_rows_follow_from_the_lists_where_participation_is_protected() -> None:
    """Answers change what is foreseen where everyone sees who answered, and nowhere else."""
    one, four = (
        Reports.from_arrays(
            list("abcd")[:rows],
            list("uvwx")[:rows],
            ["no"] * rows,
            alphabet=LABELS,
            tasks=list("abcd"),
            workers=list("uvwx"),
        )
        for rows in (1, 4)
    )
    foreseen = {}
    for participation in ("protected", "public"):
        wanted = MechanismSettings(name="randomized-response", epsilon=1.0, participation=participation)
        setup = ChannelAssignment(mechanism=build_mechanism(wanted, LABELS, tasks=4))
        foreseen[participation] = [expected_report_rows(answers, setup) for answers in (one, four)]

    assert foreseen["protected"][0] == foreseen["protected"][1] > 4
    assert [1, 4] == foreseen["public"]


def test_too_many_reports_are_refused_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every mechanism that makes rows is held to the same limit (here: 3 reports)."""
    monkeypatch.setattr("crowdveil.simulate.perturbed_collection.MAX_REPORTS", 3)
    answers = Reports.from_arrays(list("abcd"), list("uvwx"), ["no", "yes", "no", "yes"], alphabet=LABELS)
    for name in ("two-layer", "randomized-response"):
        mechanism = build_mechanism(MechanismSettings(name=name, epsilon=1.0), LABELS, tasks=4)
        with pytest.raises(SettingsError, match="at most 3 reports"):
            perturb_collection(answers, ChannelAssignment(mechanism=mechanism), seed=1)
