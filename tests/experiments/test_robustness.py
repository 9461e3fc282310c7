"""Gains of false reports against closed forms, the bound on log-odds in integers, and crowds with fakes."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from experiments.robustness import gains, poisoning
from experiments.rows import four_digits, read_rows

from crowdveil import Categories, Channel, RandomizedResponse, Scale
from crowdveil.channels.channel import exp_rounded_down
from crowdveil.mechanisms import OptimizedUnaryEncoding
from tests.real_data import load_or_skip

POISONED = read_rows(poisoning.RESULTS, poisoning.Row)


def labels(number: int) -> Categories:
    """Return labels."""
    return Categories(tuple(map(str, range(number))))


def subset_selection(size: int, epsilon: float) -> Channel:
    """Return subset selection over labels: sets that hold the answer are e^epsilon times as likely as others."""
    chosen = max(1, round(size / (math.exp(epsilon) + 1)))
    sets = list(combinations(range(size), chosen))
    table = np.array([[math.exp(epsilon) if one in part else 1.0 for part in sets] for one in range(size)])
    names = tuple("|".join(map(str, part)) for part in sets)
    table /= table.sum(axis=1, keepdims=True)
    return Channel.from_probabilities(labels(size), "public", names, table, exp_rounded_down(epsilon))


def test_committed_gains_are_computed_again() -> None:
    """Every committed gain of a mechanism is the one that its integer table has now."""
    committed = {
        (row.estimated, row.answers, row.mechanism, row.epsilon): row.gain
        for row in read_rows(gains.RESULTS, gains.Row)
    }
    found = {(row.estimated, row.answers, row.mechanism, row.epsilon): row.gain for row in gains.rows()}

    assert committed
    for key, gain in committed.items():
        assert str(four_digits(found[key])) == str(four_digits(gain)), key


@pytest.mark.parametrize("epsilon", gains.EPSILONS)
@pytest.mark.parametrize("size", gains.LABELS)
def test_randomized_response_has_the_known_gain(size: int, epsilon: float) -> None:
    """With K labels a fake gains (e^epsilon + K - 2) / (e^epsilon - 1)."""
    channel = RandomizedResponse(alphabet=labels(size), epsilon=epsilon, participation="public").channel()
    ratio = math.exp(epsilon)

    assert gains.share_gain(channel) == pytest.approx((ratio + size - 2) / (ratio - 1), rel=1e-6)


@pytest.mark.parametrize(("epsilon", "gain"), [(0.5, 4.47), (1, 2.75), (2, 2.41), (4, 1.17)])
def test_subset_selection_has_the_known_gain(epsilon: float, gain: float) -> None:
    """Among ten labels a fake gains (1 - q) / (p - q) of the probabilities that a set holds the answer or another."""
    assert gains.share_gain(subset_selection(10, epsilon)) == pytest.approx(gain, abs=0.005)


@pytest.mark.parametrize("size", [3, 8])
@pytest.mark.parametrize("epsilon", gains.EPSILONS)
def test_published_weights_of_unary_encoding_gain_the_same_for_any_number_of_labels(size: int, epsilon: float) -> None:
    """They are right on average, and a fake gains 2 e^epsilon / (e^epsilon - 1) with a set that holds the label."""
    channel = OptimizedUnaryEncoding(alphabet=labels(size), epsilon=epsilon, participation="public").channel()
    flip, ratio = 1 / (math.exp(epsilon) + 1), math.exp(epsilon)
    every, none = flip ** (size - 1) / 2, (1 - flip) ** (size - 1) / 2
    held = np.array([float("0" in name.split("|")) for name in channel.outputs[:-1]] + [every / (every + none)])
    weight = (held - flip) / (0.5 - flip)

    assert channel.probabilities @ weight == pytest.approx(np.eye(size)[0], abs=1e-6)
    assert weight.max() == pytest.approx(2 * ratio / (ratio - 1))


@pytest.mark.parametrize(("epsilon", "gain"), [(0.5, 2.54), (1, 1.58), (2, 1.16), (4, 1.02)])
def test_two_reports_of_a_mean_have_the_known_gain(epsilon: float, gain: float) -> None:
    """Through two symbols whose probability is linear in the number, a fake gains e^epsilon / (e^epsilon - 1)."""
    high = np.linspace(1, math.exp(epsilon), 11) / (math.exp(epsilon) + 1)
    channel = Channel.from_probabilities(
        Scale(0, 10), "public", ("low", "high"), np.stack((1 - high, high), axis=1), exp_rounded_down(epsilon)
    )

    assert gains.mean_gain(channel) == pytest.approx(gain, abs=0.005)


def test_fakes_raise_a_share_by_their_number_times_the_gain() -> None:
    """Three fakes in place of honest 0s among seven people raise the expected share by 3 / 7 of the gain."""
    channel = RandomizedResponse(alphabet=labels(3), epsilon=1, participation="public").channel()
    weight = gains.weights(channel, np.eye(3)[0])
    honest = channel.probabilities @ weight
    before = honest[[0, 0, 1, 1, 2, 2, 2]].mean()
    after = np.append(honest[[0, 0, 1, 1]], [weight.max()] * 3).mean()

    assert after - before == pytest.approx(3 / 7 * gains.share_gain(channel), abs=1e-9)


def test_no_weights_are_found_where_the_channel_merges_answers() -> None:
    """A channel that reports whether a number is above 0 has no estimate of a mean that is right on average."""
    low = [RandomizedResponse(alphabet=labels(2), epsilon=1, participation="public").channel().probabilities[0]]
    merged = np.concatenate((low, [low[0][::-1]] * 4))
    channel = Channel.from_probabilities(Scale(0, 4), "public", ("0", "1..4"), merged, exp_rounded_down(1))

    assert gains.mean_gain(channel) is None


@pytest.mark.parametrize("alphabet", [labels(3), Scale(0, 4)], ids=["labels", "numbers"])
def test_a_report_moves_log_odds_by_at_most_epsilon(alphabet: Categories | Scale) -> None:
    """For every mechanism, report, and two of all workers on a grid, P(report) differs by at most the exact ratio."""
    parts = [np.array(one) for one in product(range(3), repeat=alphabet.size) if sum(one) == 2]
    workers = [[Fraction(int(share), 2) for share in one] for one in parts]
    names = []
    for name, channel in gains.channels(alphabet, 1.0):
        names.append(name)
        columns = [
            [sum(s * e for s, e in zip(worker, column, strict=True)) for worker in workers]
            for column in zip(*channel.rows, strict=True)
        ]

        assert max(max(column) / min(column) for column in columns) <= channel.ratio <= exp_rounded_down(1.0)

    assert "randomized-response" in names


@pytest.mark.parametrize("names", ["few", "many"])
@pytest.mark.parametrize("fakes", [0, 1, 3])
def test_every_task_has_as_many_false_reports(names: poisoning.Names, fakes: int) -> None:
    """The false reports of a task are `fakes`, by different names; many names report as often as the median worker."""
    answers = load_or_skip("bluebird").answers
    label, honest = np.zeros(len(answers.tasks), dtype=int), len(answers.workers)
    found = poisoning.with_fakes(answers, label, fakes, names, np.random.default_rng(0))
    false = found.worker >= honest

    assert np.bincount(found.task[false], minlength=len(answers.tasks)).tolist() == [fakes] * len(answers.tasks)
    assert len(set(zip(found.task[false].tolist(), found.worker[false].tolist(), strict=True))) == false.sum()
    assert found.per_worker[honest:].max(initial=0) <= (
        len(answers.tasks) if names == "few" else np.median(answers.per_worker)
    )


def test_a_committed_row_is_measured_again() -> None:
    """The vote beside four fakes on dog at epsilon 1 is as often right as the committed rows say."""
    load_or_skip("dog")
    settings = {"attack": "wrong", "names": "few", "fakes": 4, "known": 0}
    (found,) = poisoning.measured("dog", 1.0, settings, poisoning.SEED_SETS[0], (poisoning.VOTE,))
    committed = [
        row
        for row in POISONED
        if (row.data, row.epsilon, row.method, row.fakes, row.attack, row.names, row.seeds)
        == ("dog", 1.0, poisoning.VOTE, 4, "wrong", "few", 0)
    ]

    assert [four_digits(row.accuracy) for row in committed] == [four_digits(found.accuracy)]


def test_the_page_has_the_committed_tables() -> None:
    """The tables of the threat model are those of the committed results."""
    page = poisoning.PAGE.read_text("utf-8")

    assert poisoning.table_of_page(POISONED) in page
    assert gains.table_of_page(read_rows(gains.RESULTS, gains.Row)) in page


def test_two_sets_of_seeds_agree_away_from_the_turn() -> None:
    """Accuracies of two sets of draws differ by at most .03, except where some draws have turned over and some not."""
    pairs: dict[tuple, list[float]] = {}
    for row in POISONED:
        key = row.data, row.epsilon, row.method, row.attack, row.names, row.fakes, row.known
        pairs.setdefault(key, []).append(row.accuracy)
    apart = {key for key, (one, other) in pairs.items() if abs(one - other) > 0.03}

    assert {(key[0], key[1], key[5]) for key in apart} <= {("dog", 1.0, 2), ("dog", 2.0, 4), ("web_zhou", None, 2)}
