"""Methods of ranking: contract of all, and what sets each apart."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from crowdveil.answers.comparisons.values import Comparisons
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.channel import Channel
from crowdveil.errors import SettingsError
from crowdveil.estimators.ranking.channels import report_table
from crowdveil.estimators.ranking.fit import Known
from crowdveil.estimators.ranking.methods import RANKING_METHODS, Davidson, HierarchicalDavidson
from crowdveil.estimators.ranking.posterior import covariance_of, posterior_of, predict_answers
from crowdveil.estimators.ranking.unseen import CONCENTRATIONS, PairAnswers, concentration_of
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.registry import RANKING_NAMES
from tests.estimators.ranking.test_fit import RESPONSE, drawn

NAMES = tuple(RANKING_METHODS)
THROUGH_CHANNELS = tuple(name for name, method in RANKING_METHODS.items() if method.reads_channel)


def relabelled(rows: Comparisons, order: NDArray[Any]) -> Comparisons:
    """Return the comparisons with item `order[code]` in place of each item."""
    codes = order.astype(np.int32)
    return Comparisons(
        left=codes[rows.left], right=codes[rows.right], worker=rows.worker, answer=rows.answer, items=rows.items,
        workers=rows.workers, list_of_item=rows.list_of_item,
    )  # fmt: skip


def scores(name: str, rows: Comparisons, **given: Any) -> NDArray[np.float64]:
    """Return the scores of a method."""
    return RANKING_METHODS[name]().fit(rows, **given).scores


def test_registry_names_the_methods() -> None:
    """The names on the command line are those of the methods, the default first."""
    assert RANKING_NAMES == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_order_of_rows(name: str) -> None:
    """The order of rows does not matter."""
    rows = drawn(1)
    shuffled = rows.only_rows(np.random.default_rng(2).permutation(len(rows)))

    np.testing.assert_allclose(scores(name, shuffled), scores(name, rows), atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_items(name: str) -> None:
    """Scores follow the items, whatever their codes."""
    rows, order = drawn(3), np.random.default_rng(4).permutation(8)

    np.testing.assert_allclose(scores(name, relabelled(rows, order))[order], scores(name, rows), atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_repeated(name: str) -> None:
    """The same comparisons give the same bits."""
    one, other = (RANKING_METHODS[name]().fit(drawn(5)).posterior for _ in range(2))

    assert (one.scores == other.scores).all()
    assert (one.draws == other.draws).all()


@pytest.mark.parametrize("name", NAMES)
def test_better_items_come_first(name: str) -> None:
    """Every method finds the order of items that most comparisons agree on."""
    found = scores(name, drawn(6, rows=2000))

    assert (np.diff(found) < 0).sum() >= 6
    assert found.argmax() in (0, 1)


@pytest.mark.parametrize("name", NAMES)
def test_more_comparisons_are_surer(name: str) -> None:
    """The variance of scores falls with the number of comparisons."""
    few, many = (RANKING_METHODS[name]().fit(drawn(7, rows=rows)).posterior.variances.mean() for rows in (100, 4000))

    assert many < few


@pytest.mark.parametrize("name", THROUGH_CHANNELS)
def test_identity_table(name: str) -> None:
    """A channel that changes nothing gives the scores of no channel, up to the start of the learned priors."""
    np.testing.assert_allclose(scores(name, drawn(8), table=np.eye(3)), scores(name, drawn(8)), atol=2e-3)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(THROUGH_CHANNELS)))
def test_methods_without_channel_refuse_one(name: str) -> None:
    """Bradley-Terry and counting refuse a channel and known orders."""
    known = Known(better=np.array([0], dtype=np.int32), worse=np.array([1], dtype=np.int32))
    with pytest.raises(SettingsError, match="does not use a channel"):
        scores(name, drawn(9), table=RESPONSE)
    with pytest.raises(SettingsError, match="does not use known orders"):
        scores(name, drawn(9), known=known)


def test_max_sweeps() -> None:
    """The number of sweeps is limited, and must be positive."""
    fitted = HierarchicalDavidson(max_sweeps=2).fit(drawn(10)).fitted

    assert fitted is not None
    assert (fitted.sweeps, fitted.converged) == (2, False)
    with pytest.raises(SettingsError, match="max_sweeps must be at least 1"):
        HierarchicalDavidson(max_sweeps=0)


def spammed(seed: int) -> tuple[Comparisons, NDArray[np.int32]]:
    """Return comparisons by 20 workers of whom 8 guess, and the codes of those 8."""
    random = np.random.default_rng(seed)
    rows = drawn(seed, items=15, workers=20, rows=1000)
    margin = np.where(rows.worker < 8, 0.0, (rows.right - rows.left) / 2.0)
    answer = np.where(random.random(1000) < 1 / (1 + np.exp(-margin)), 0, 2)
    return rows.with_answers(answer), np.arange(8, dtype=np.int32)


def test_slopes_find_workers_who_guess() -> None:
    """Workers who guess have smaller slopes than the others, and the ranking is better than with equal workers."""
    rows, guessing = spammed(11)
    scored = HierarchicalDavidson().fit(rows)
    assert scored.fitted is not None
    slope, truth = scored.fitted.point.workers[:, 0], -np.arange(15)

    assert slope[guessing].max() < np.median(np.delete(slope, guessing))
    assert np.corrcoef(scored.posterior.scores, truth)[0, 1] > np.corrcoef(scores("davidson", rows), truth)[0, 1]


def test_workers_without_ties_in_the_alphabet() -> None:
    """If nobody can say tie, its probability is 0."""
    rows, _ = spammed(12)
    from dataclasses import replace

    scored = Davidson().fit(replace(rows, answer_names=("left", "right")))
    assert scored.fitted is not None
    predicted = predict_answers(scored.fitted, scored.posterior, rows.left[:5], rows.right[:5], rows.worker[:5])

    assert predicted[:, 1].max() < 1e-9
    np.testing.assert_allclose(predicted.sum(axis=1), 1)


def test_draws_have_the_covariance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws by conjugate gradients have the inverse of Q as covariance, with workers held fixed."""
    fitted = Davidson().fit(drawn(13, rows=400)).fitted
    assert fitted is not None
    exact = np.linalg.inv(fitted.system.dense)
    monkeypatch.setattr("crowdveil.estimators.ranking.posterior.EXACT", 0)
    monkeypatch.setattr("crowdveil.estimators.ranking.posterior.DRAWS_OF_MANY", 20_000)
    found = posterior_of(fitted)

    assert found.covariance is None
    # 20,000 draws: a variance errs by 1 % (one standard error).
    np.testing.assert_allclose(found.variances, np.diagonal(exact), rtol=0.05)
    assert (np.diagonal(covariance_of(fitted)) >= np.diagonal(exact) - 1e-12).all()


@pytest.mark.parametrize("labels", [("left", "tie", "right"), ("left", "right"), ("right", "tie", "left")])
def test_report_table(labels: tuple[str, ...]) -> None:
    """The table has rows left, tie and right whatever the order of the labels; without ties they are tossed."""
    channel = RandomizedResponse(alphabet=Categories(labels), epsilon=1.0, participation="public").channel()
    found = report_table(channel)

    assert found.table.shape == (3, len(labels))
    np.testing.assert_allclose(found.table.sum(axis=1), 1)
    assert found.table[0, found.outputs.index("left")] > found.table[2, found.outputs.index("left")]
    if "tie" not in labels:
        np.testing.assert_allclose(found.table[1], 0.5)


def test_report_table_with_participation() -> None:
    """Where participation is protected, each row is mixed with that of no answer at the stated rate."""
    channel = RandomizedResponse(alphabet=Categories(("left", "right")), epsilon=1.0).channel()
    rows = channel.probabilities
    found = report_table(channel, 0.8)

    np.testing.assert_allclose(found.table[0], 0.8 * rows[0] + 0.2 * rows[2])
    with pytest.raises(SettingsError, match="needs participation_rate"):
        report_table(channel)


def test_other_channels_are_refused() -> None:
    """A channel of other answers is refused."""
    channel = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0).channel()
    with pytest.raises(SettingsError, match="must have the answers left, right"):
        report_table(channel)
    not_one: Any = "randomized-response"
    with pytest.raises(SettingsError, match="channel must be a Channel"):
        report_table(not_one)
    assert isinstance(channel, Channel)


def test_answers_of_pairs() -> None:
    """Answers to a pair are counted from either side."""
    rows = drawn(14)
    counted = PairAnswers.of(rows)
    left, right = np.array([2, 5]), np.array([5, 2])
    expected = np.zeros(3)
    for one, other, answer in zip(rows.left, rows.right, rows.answer, strict=True):
        if {int(one), int(other)} == {2, 5}:
            expected[answer if one == 2 else 2 - answer] += 1

    np.testing.assert_array_equal(counted.of_pairs(left, right), [expected, expected[::-1]])
    assert PairAnswers.of(rows.only_rows(rows.left != 0)).of_pairs(np.array([0]), np.array([1])).shape == (1, 3)


def test_concentration_follows_the_pairs() -> None:
    """Where answers follow the pair and not the model, the concentration is small; where the model is right, large."""
    random = np.random.default_rng(15)
    rows = drawn(16, items=5, workers=30, rows=1500)
    uniform = rows.with_answers(random.integers(0, 3, 1500))
    of_pair = rows.with_answers((np.minimum(rows.left, rows.right) * 7 + np.maximum(rows.left, rows.right) * 3) % 3)

    def predict(_: Comparisons, left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
        return np.full((len(left), 3), 1 / 3)

    assert concentration_of(uniform, predict) > 50
    assert concentration_of(of_pair, predict) < 2
    assert concentration_of(rows.only_rows(rows.worker == 0), predict) <= CONCENTRATIONS[-1]
