"""Designed channels, and the objective of the design."""

import json
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.errors import CertificateError, SettingsError
from crowdveil.mechanisms import Designed, DesignObjective, QuantizedResponse, RandomizedResponse
from crowdveil.mechanisms.design_objective import COLUMNS_PER_BATCH

BLOCKS = QuantizedResponse(alphabet=Scale(0, 9), epsilon=1.0, cuts=(1,)).channel()


def test_it_sends_through_the_channel_it_was_given():
    """Table, symbols, alphabet, participation and epsilon are the channel's; only the name is its own."""
    mechanism = Designed.from_channel(BLOCKS)
    channel = mechanism.channel()

    assert (BLOCKS.rows, BLOCKS.outputs, BLOCKS.inputs) == (channel.rows, channel.outputs, channel.inputs)
    assert BLOCKS.epsilon == mechanism.epsilon == mechanism.guarantee.epsilon
    assert "designed" == channel.mechanism


def test_mechanisms_of_the_same_integers_are_equal():
    """A certificate that was written and read again makes an equal mechanism, and the text keeps out the integers."""
    mechanism = Designed.from_channel(BLOCKS)
    again = Designed.from_certificate(json.dumps(mechanism.channel().certificate()))

    assert mechanism == again
    assert str(BLOCKS.rows[0][0]) not in repr(mechanism)


def test_a_damaged_certificate_is_refused():
    """A device that is handed a changed table does not use it."""
    sealed: dict[str, Any] = Designed.from_channel(BLOCKS).channel().certificate()
    sealed["rows"][0][0] += 1

    with pytest.raises(CertificateError, match="hash"):
        Designed.from_certificate(json.dumps(sealed))


def test_a_table_of_another_denominator_is_refused():
    """Devices sample tables over 2^48 only; the hint names what rounds another one."""
    coin = Channel(Categories(("no", "yes")), "public", ("no", "yes"), ((3, 1), (1, 3)))

    with pytest.raises(SettingsError, match="from_probabilities"):
        Designed.from_channel(coin)


def test_a_channel_without_protection_is_refused():
    """A table with a zero, or with a huge ratio, has an epsilon that no mechanism accepts."""
    labels = Categories(("no", "yes"))
    half = 1 << 47
    skewed = ((2 * half - 1, 1), (half, half))

    with pytest.raises(SettingsError, match="epsilon must be in"):
        Designed.from_channel(Channel.identity(labels, "public"))
    with pytest.raises(SettingsError, match="epsilon must be in"):
        Designed(alphabet=labels, participation="public", outputs=("no", "yes"), rows=skewed)


def test_a_table_that_is_no_channel_is_refused():
    """Rows must fit inputs and outputs."""
    with pytest.raises(CertificateError, match="shape"):
        Designed(alphabet=Scale(0, 3), outputs=BLOCKS.outputs, rows=BLOCKS.rows)


YES_NO = Categories(("no", "yes"))


def random_question(seed, **settings):
    """Three truths, two labels, two kinds of workers; 30 % of cells are answered."""
    generator = np.random.default_rng(seed)
    return DesignObjective(
        alphabet=YES_NO,
        prior=generator.dirichlet(np.ones(3)),
        worker_model=generator.dirichlet(np.ones(2), size=(2, 3)),
        participation_rate=0.3,
        **settings,
    )


def reports_by_truth(objective, kind, table):
    """P(report | truth) of one kind of worker, by summing over answers, with NULL where protected."""
    rate = objective.participation_rate if objective.participation == "protected" else 1.0
    for truth in range(3):
        row = [0.0] * len(table[0])
        for report in range(len(row)):
            for answer in range(2):
                row[report] += rate * objective.worker_model[kind, truth, answer] * table[answer][report]
            if objective.participation == "protected":
                row[report] += (1 - rate) * table[2][report]
        yield row


@given(st.integers(0, 10**6), st.sampled_from(["protected", "public"]))
def test_information_is_the_double_sum_of_its_definition(seed, participation):
    """Mean over kinds of sum P(t) P(y|t) ln(P(y|t) / P(y)), over truths and reports, times the share of cells sent."""
    objective = random_question(seed, participation=participation)
    table = np.random.default_rng(seed + 1).dirichlet(np.ones(4), size=objective.input_count)
    expected = 0.0
    for kind in (0, 1):
        rows = list(reports_by_truth(objective, kind, table))
        for report in range(4):
            marginal = sum(p * row[report] for p, row in zip(objective.prior, rows, strict=True))
            for p, row in zip(objective.prior, rows, strict=True):
                expected += 0.5 * p * row[report] * math.log(row[report] / marginal)
    expected *= 0.3 if participation == "public" else 1.0

    assert expected == pytest.approx(objective.objective_of_channel(table), abs=1e-12)


def test_tiny_information_does_not_drown_in_rounding():
    """At epsilon = 1e-5 two even labels through randomized response: equal to 40 digits to one part in 10^6."""
    response = RandomizedResponse(alphabet=YES_NO, epsilon=1e-5, participation="public").channel()
    objective = DesignObjective(
        alphabet=YES_NO, prior=np.array([0.5, 0.5]), worker_model=np.eye(2), participation="public"
    )
    with localcontext(prec=40):
        keep, flip = (Decimal(entry) / response.denominator for entry in response.rows[0])
        exact = keep * (2 * keep).ln() + flip * (2 * flip).ln()

    assert float(exact) == pytest.approx(objective.objective_of_channel(response.probabilities), rel=1e-6)


def test_a_channel_without_noise_gives_all_there_is():
    """Zeros in table, prior and model are allowed: the identity has ln 2 nats for two labels."""
    labels = Categories(("a", "b", "c"))
    objective = DesignObjective(
        alphabet=labels,
        prior=np.array([0.5, 0.5, 0.0]),
        worker_model=np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0]]),
        participation="public",
    )

    assert math.log(2) == pytest.approx(objective.objective_of_channel(np.eye(3)))


def test_gains_do_not_depend_on_batches():
    """Columns beyond the first batch have the gain of the single column."""
    objective = random_question(0)
    columns = np.random.default_rng(1).uniform(size=(3, COLUMNS_PER_BATCH + 7))

    assert objective.column_objective_terms(columns)[-1] == objective.column_objective_terms(columns[:, -1:])[0]


def test_one_table_is_one_worker_type():
    """A model of two axes is one worker type; P(answer) sums to 1."""
    one = DesignObjective(alphabet=YES_NO, prior=np.array([0.2, 0.8]), worker_model=np.array([[0.9, 0.1], [0.3, 0.7]]))
    twice = DesignObjective(
        alphabet=YES_NO, prior=np.array([0.2, 0.8]), worker_model=np.stack([one.worker_model[0]] * 2)
    )
    table = np.eye(3)

    assert one.objective_of_channel(table) == pytest.approx(twice.objective_of_channel(table))
    assert [0.42, 0.58] == pytest.approx(one.marginal_answer_distribution)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"prior": [0.5, 0.6]}, "prior"),
        ({"prior": [1.5, -0.5]}, "prior"),
        ({"prior": [math.nan, 1.0]}, "prior"),
        ({"prior": []}, "prior"),
        ({"worker_model": np.full((2, 3), 1 / 3)}, "shape"),
        ({"worker_model": np.ones((2, 2))}, "worker model"),
        ({"participation_rate": 0.0}, "rate"),
        ({"participation_rate": math.nan}, "rate"),
    ],
)
def test_invalid_objective_is_refused(wrong, message):
    """An invalid distribution, shape or rate raises SettingsError."""
    objective = DesignObjective(alphabet=YES_NO, prior=np.array([0.5, 0.5]), worker_model=np.eye(2))

    with pytest.raises(SettingsError, match=message):
        replace(objective, **wrong)


def test_what_was_given_is_kept_from_later_changes():
    """The arrays are copies that cannot be written to."""
    prior = np.array([0.5, 0.5])
    objective = DesignObjective(alphabet=YES_NO, prior=prior, worker_model=np.eye(2))
    prior[0] = 7.0

    assert [0.5, 0.5] == objective.prior.tolist()
    assert not objective.prior.flags.writeable
    assert not objective.worker_model.flags.writeable
