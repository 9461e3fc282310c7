"""What an adversary can learn from even odds: the bound holds for every report, and is reached."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import percent_rounded_up
from crowdveil.mechanisms import Laplace, RandomizedResponse
from crowdveil.privacy.largest_posterior import posterior_rows, posterior_sentences
from crowdveil.standalone import checks

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
    sentences = posterior_sentences(answer, answer.per_worker(100))

    assert "95.3 %" in sentences[1]
    assert "promises nothing for the whole person" in sentences[0]
    shown = [text for _, _, text in posterior_rows(answer, answer.per_worker(100))]
    assert ["50.0 %", "95.3 %", "more than 99.9 %"] == shown
    assert "Who was surer before can be surer after." in sentences[0]
    assert "50.1 %" in posterior_sentences(Guarantee(epsilon=1e-6, unit="cell", participation="public"), None)[0]


def test_shuffled_reports_name_delta() -> None:
    """The sentences of shuffled reports name the condition and delta."""
    shuffled = Guarantee(epsilon=0.5, delta=1e-6, unit="cell", participation="protected")

    assert "nobody colludes" in posterior_sentences(shuffled, None, shuffled=True)[0]
    assert "delta 1e-06" in posterior_sentences(shuffled, None, shuffled=True)[0]
