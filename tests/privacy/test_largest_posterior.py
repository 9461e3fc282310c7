"""What an epsilon means: posteriors, statements in words, and expected answers."""

import math
import re
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.answers.facts.prior import Prior
from crowdveil.answers.ingest.column_readers import load_prior
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.statement.document import campaign_statement
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.certificate import simulation_mark
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import table_by_task
from crowdveil.channels.guarantee import Guarantee, Participation
from crowdveil.channels.rounding import percent_rounded_up
from crowdveil.design.channel_design import normal_worker_model, one_coin_confusion
from crowdveil.design.mechanism_from_settings import (
    Expectation,
    MechanismSettings,
    build_mechanism,
    mechanism_parameters_by_name,
)
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms import Designed, Laplace, QuantizedResponse, RandomizedResponse
from crowdveil.privacy.largest_posterior import largest_posterior_rows, sentences_on_adversary_certainty
from crowdveil.privacy.statement import MARKED, UNPROTECTED, channel_statement, statement_sentences, statement_text
from crowdveil.standalone import checks
from tests.campaign.builders import build_campaign, response

CHANNELS = [
    RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0).channel(),
    RandomizedResponse(alphabet=Categories(("a", "b", "c")), epsilon=2.0, participation="public").channel(),
    Laplace(alphabet=Scale(0, 3), epsilon=1.5, participation="public").channel(),
]


def exact_posterior(channel: Channel, cells: int) -> Fraction:
    """Return the largest posterior of one of two equally likely sets of answers, over all sets and all reports."""
    likelihood = {
        answers: [math.prod(channel.rows[a][y] for a, y in zip(answers, reports, strict=True)) for reports in outputs]
        for answers in product(range(len(channel.rows)), repeat=cells)
        for outputs in [list(product(range(len(channel.outputs)), repeat=cells))]
    }
    return max(
        Fraction(one, one + other)
        for first, second in permutations(likelihood, 2)
        for one, other in zip(likelihood[first], likelihood[second], strict=True)
    )


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("cells", [1, 2])
def test_no_report_is_more_telling_than_stated(channel: Channel, cells: int) -> None:
    """The bound is at least the posterior by enumeration of all answers and reports, and at most a millionth above."""
    exact = exact_posterior(channel, cells)
    stated = channel.guarantee.per_worker(cells).largest_guess_probability

    assert exact <= Fraction(stated)
    assert stated <= float(exact) + 1e-6


@given(epsilon=st.floats(0, 8), delta=st.floats(0, 0.5), cut=st.floats(0, 1))
def test_no_guess_is_more_often_right_than_stated(epsilon: float, delta: float, cut: float) -> None:
    """The guess from the pair of distributions that dominates (epsilon, delta) is right exactly as often as stated."""
    ratio = math.exp(epsilon)
    first = [delta, 0.0, (1 - delta) * ratio / (1 + ratio), (1 - delta) / (1 + ratio)]
    second = [0.0, delta, first[3], first[2]]
    right = sum(max(one, other) for one, other in zip(first, second, strict=True)) / 2
    stated = Guarantee(epsilon=epsilon, delta=delta, unit="cell", participation="protected").largest_guess_probability

    assert right <= stated
    assert stated <= right + 1e-9


@given(epsilon=st.floats(1e-6, 50))
def test_device_and_statement_say_the_same(epsilon: float) -> None:
    """The device's own arithmetic gives the same percentage, or one that is a tenth away by rounding of the float."""
    stated = percent_rounded_up(
        Guarantee(epsilon=epsilon, unit="cell", participation="protected").largest_guess_probability
    )
    own = checks.sure(Decimal(epsilon))

    assert abs(percent(stated) - percent(own)) <= Decimal("0.1")
    assert "100" not in stated + own


def percent(text: str) -> Decimal:
    """Return the number of a percentage; 100 for one that is said to be more than 99.9 %."""
    return Decimal(100) if text == "more than 99.9 %" else Decimal(text.removesuffix(" %"))


def test_a_lost_person_is_named() -> None:
    """A worker's loss that promises nothing is said to promise nothing; even odds stay even at epsilon near 0."""
    answer = Guarantee(epsilon=3.0, unit="cell", participation="protected")
    sentences = sentences_on_adversary_certainty(answer, answer.per_worker(100))

    assert "95.3 %" in sentences[1]
    assert "promises nothing for the whole person" in sentences[0]
    shown = [text for _, _, text in largest_posterior_rows(answer, answer.per_worker(100))]
    assert ["50.0 %", "95.3 %", "more than 99.9 %"] == shown
    assert "Someone who was surer before can be surer after." in sentences[0]
    assert (
        "50.1 %"
        in sentences_on_adversary_certainty(Guarantee(epsilon=1e-6, unit="cell", participation="public"), None)[0]
    )


def test_shuffled_reports_name_delta() -> None:
    """The sentences of shuffled reports name the condition and delta."""
    shuffled = Guarantee(epsilon=0.5, delta=1e-6, unit="cell", participation="protected")

    assert "nobody colludes" in sentences_on_adversary_certainty(shuffled, None, shuffled=True)[0]
    assert "delta 1e-06" in sentences_on_adversary_certainty(shuffled, None, shuffled=True)[0]


LABELS = Categories(("no", "yes"))


def channel(participation: Participation = "protected") -> Channel:
    """Return a channel of randomized response with epsilon 1."""
    return RandomizedResponse(alphabet=LABELS, epsilon=1.0, participation=participation).channel()


def test_a_certificate_has_no_epsilon_per_worker_without_their_number() -> None:
    """Epsilon per worker needs the number of answers; the text says so."""
    alone, counted = channel_statement(channel()), channel_statement(channel(), answers=7)

    assert None is alone.per_worker
    assert "times the number of asked tasks" in " ".join(statement_sentences(alone))
    assert counted.per_worker is not None
    assert pytest.approx(7.0) == counted.per_worker.epsilon
    assert "7 for all answers of one worker (at most 7)" in " ".join(statement_sentences(counted))


@pytest.mark.parametrize(
    ("participation", "kept", "answers"),
    [("protected", "57.6 %", 'besides "no answer"'), ("public", "73.1 %", "2 possible answers, and 2")],
)
def test_parameters_follow_from_the_table(participation: Participation, kept: str, answers: str) -> None:
    """The probability of the unchanged answer, rounded down, and the sizes stand in the paragraph."""
    text = " ".join(statement_sentences(channel_statement(channel(participation))))

    assert f"reported unchanged with a probability of at least {kept}" in text
    assert answers in text
    assert f"(participation {participation})" in text


def test_a_channel_without_a_guarantee_has_its_reason() -> None:
    """A simulation, and a table with unprotected answers, name no epsilon."""
    marked = Channel(LABELS, "protected", channel().outputs, channel().rows, "laplace" + simulation_mark(3))
    bare = table_by_task((channel("public"), Channel.identity(LABELS, "public")), {"a": 0, "b": 1})

    for one, reason in ((marked, MARKED), (bare, UNPROTECTED)):
        statement = channel_statement(one)
        assert ("none", reason) == (statement.status, statement.reason)
        assert None is re.search(r"epsilon\s+[0-9]", statement_text(statement))


def test_a_campaign_has_its_own_guarantee() -> None:
    """Epsilon per worker is that of the campaign, for its number of answers; name and certificate are given."""
    campaign: Campaign = build_campaign(channels=[response(LABELS, 0.5)], tasks=6).campaign
    statement = campaign_statement(campaign)

    assert statement.per_answer is not None
    assert statement.per_worker is not None
    assert (campaign.epsilon, campaign.worker_epsilon) == (statement.per_answer.epsilon, statement.per_worker.epsilon)
    assert (campaign.name, campaign.cells) == (statement.campaign, statement.cells)
    assert "which tasks were assigned" in " ".join(statement.not_covered)
    assert "The same question in another campaign costs the sum" in " ".join(statement.not_covered)


def test_the_paragraph_is_one() -> None:
    """The text has the sentences as one paragraph, then facts, the digest and exclusions."""
    statement = channel_statement(channel(), sha256="ab" * 32)
    parts = statement_text(statement, (("Days (UTC)", "today"),)).split("\n\n")

    assert " ".join(statement_sentences(statement)) == " ".join(parts[1].split())
    assert f"Days (UTC): today\nCertificate, SHA-256: {'ab' * 32}" == parts[2]
    assert parts[3].startswith("Not covered:\n- ")


RATINGS, GRID = Categories(("low", "middle", "high"), ordered=True), Scale(0, 9)


def prior_in_file(folder: Path, rows: str) -> Prior:
    """Return the prior in a file with these rows."""
    path = folder / "prior.csv"
    path.write_text("label,probability\n" + rows, "utf-8")
    return load_prior(path)


def test_a_prior_is_read_in_the_order_of_the_labels(tmp_path: Path) -> None:
    """Rows may stand in any order; rate and ability are passed on."""
    prior = prior_in_file(tmp_path, "high,0.25\nlow,0.5\nmiddle,0.25\n")
    objective = Expectation(prior=prior, participation_rate=0.2, ability=0.9).objective(RATINGS, "protected")

    assert [0.5, 0.25, 0.25] == objective.prior.tolist()
    assert (0.2, "protected") == (objective.participation_rate, objective.participation)
    np.testing.assert_allclose(one_coin_confusion(3, 0.9)[None], objective.worker_model)


def test_the_default_prior_is_uniform() -> None:
    """By default labels are equally likely, everyone answers and is right with 0.75; sigmas describe a scale."""
    labels = Expectation().objective(RATINGS, "public")
    numbers = Expectation(sigmas=(1.0, 5.0)).objective(GRID, "public")

    assert [1 / 3] * 3 == pytest.approx(labels.prior)
    assert (1.0, 0.75) == (labels.participation_rate, pytest.approx(labels.worker_model[0, 0, 0]))
    np.testing.assert_allclose(normal_worker_model(GRID, (1.0, 5.0)), numbers.worker_model)


def test_expectations_of_another_alphabet_are_refused(tmp_path: Path) -> None:
    """Sigmas for labels, sigmas with an ability, a prior about something else or of some labels only."""
    with pytest.raises(SettingsError, match="sigmas"):
        Expectation(sigmas=(1.0,)).objective(RATINGS, "public")
    with pytest.raises(SettingsError, match="sigmas"):
        Expectation(sigmas=(1.0,), ability=0.5).objective(GRID, "public")
    with pytest.raises(ReportsError, match="huge"):
        Expectation(prior=prior_in_file(tmp_path, "huge,0.25\nlow,0.5\nmiddle,0.25\n")).objective(RATINGS, "public")
    with pytest.raises(ReportsError, match="high"):
        Expectation(prior=prior_in_file(tmp_path, "low,0.5\nmiddle,0.5\n")).objective(RATINGS, "public")


def test_cuts_are_named_by_labels() -> None:
    """A cut is the first label of a block; without cuts they are chosen; a word that is no label is refused."""
    given = build_mechanism(
        MechanismSettings(name="quantized-response", epsilon=1.0, cuts=("middle",)), RATINGS, tasks=1
    )

    assert isinstance(given, QuantizedResponse)
    assert (1,) == given.cuts
    with pytest.raises(SettingsError, match="first label of a block"):
        build_mechanism(MechanismSettings(name="quantized-response", epsilon=1.0, cuts=("x",)), RATINGS, tasks=1)


def test_the_design_depends_on_the_expected_answers(tmp_path: Path) -> None:
    """Most truths 0, few answers: the designed channel asks whether it is 0; its integers are no parameter."""
    prior = prior_in_file(tmp_path, "0,0.693\n1,0.24\n2,0.06\n" + "".join(f"{k},0.001\n" for k in range(3, 10)))
    expected = Expectation(prior=prior, participation_rate=0.1, sigmas=(1.0, 5.0))
    built = build_mechanism(MechanismSettings(name="designed", epsilon=1.0, expected=expected), GRID, tasks=1)

    assert isinstance(built, Designed)
    assert ("0", "1..9", "NULL") == built.outputs
    assert {"epsilon", "outputs"} == mechanism_parameters_by_name(built).keys()
