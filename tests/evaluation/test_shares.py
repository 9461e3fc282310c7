"""Shares of labels: the grid search over the simplex, groups of channels, blocks, and what is refused."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError
from crowdveil.evaluation.shares import label_shares, shares_of_counts
from crowdveil.mechanisms import QuantizedResponse, RandomizedResponse
from crowdveil.randomness import seeded
from crowdveil.simulate.perturbation import perturb

YES_NO = Categories(("no", "yes"))
ONE_REPORT = np.eye(3)


def table(epsilon: float, participation: Any = "protected") -> NDArray[np.float64]:
    """Return P(report | answer) of randomized response."""
    return RandomizedResponse(alphabet=YES_NO, epsilon=epsilon, participation=participation).channel().probabilities


def on_a_grid(likelihood: Any) -> tuple[float, NDArray[np.float64]]:
    """Return the best share of yes among answers, and all shares within the 90 % loss, of a grid over the simplex.

    Args:
        likelihood: function of an array of shares (no, yes, no answer).
    """
    share, none = np.meshgrid(np.linspace(0.001, 0.999, 999), np.linspace(0, 0.999, 500), indexing="ij")
    found = likelihood(np.stack(((1 - share) * (1 - none), share * (1 - none), none), axis=-1)).max(axis=1)
    return float(share[found.argmax(), 0]), share[:, 0][found >= found.max() - 2.705543 / 2]


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(30, 12, 18), (4, 1, 9), (3, 40, 3)])
def test_share_and_interval_are_those_of_a_grid_search(counts: tuple[int, ...]) -> None:
    """Maximum and both ends, each with one more report against it, equal a grid search over the simplex."""
    channel, y = table(2.0), np.array(counts, dtype=float)
    share, low, high = shares_of_counts(y[None], channel, 2)[:, 0, 1]
    no, yes = (on_a_grid(lambda f, more=more: np.log(f @ channel) @ (y + more)) for more in ONE_REPORT[:2])

    assert on_a_grid(lambda f: np.log(f @ channel) @ y)[0] == pytest.approx(share, abs=0.002)
    assert (no[1].min(), yes[1].max()) == pytest.approx((low, high), abs=0.002)


def test_groups_of_workers_are_combined_by_likelihood() -> None:
    """Two channels give the grid search over the product of their likelihoods."""
    rng = np.random.default_rng(5)
    answers = rng.choice(3, p=(0.6, 0.2, 0.2), size=200)
    workers = np.array([f"w{k}" for k in range(200)])
    channels = [RandomizedResponse(alphabet=YES_NO, epsilon=e).channel() for e in (1.0, 3.0)]
    sent = np.concatenate([one.sample(answers[k::2], seeded(k)) for k, one in enumerate(channels)])
    names = np.concatenate((workers[::2], workers[1::2]))
    kept = sent < 2
    reports = Reports.from_arrays(
        np.zeros(kept.sum(), dtype=int), names[kept], np.array(YES_NO.names)[sent[kept]],
        alphabet=YES_NO, tasks=[0], workers=workers.tolist(),
    )  # fmt: skip
    combined = ChannelTable.by_worker(channels, {name: k % 2 for k, name in enumerate(workers)})
    counts = [np.bincount(part, minlength=3) for part in (sent[:100], sent[100:])]

    found = label_shares(reports, combined)
    best, _ = on_a_grid(
        lambda f: sum(np.log(f @ one.probabilities) @ y for one, y in zip(channels, counts, strict=True))
    )

    assert best == pytest.approx(found.share[0, 1], abs=0.002)
    assert ("no", "yes", "NULL", 200) == (*found.symbols, found.reports[0])


def test_answers_have_plain_proportions() -> None:
    """Without a channel shares are those of the answers; a task without an answer has none, and all of [0, 1]."""
    reports = Reports.from_arrays(["a"] * 4, [1, 2, 3, 4], ["no", "yes", "yes", "yes"], tasks=["a", "b"])
    found = label_shares(reports)

    np.testing.assert_allclose(found.share, [[0.25, 0.75], [np.nan, np.nan]], atol=1e-6)
    assert ((0.0, 0.0), (1.0, 1.0)) == (tuple(found.low[1]), tuple(found.high[1]))
    assert found.high[0, 0] == pytest.approx(1 - found.low[0, 1], abs=1e-5)


@pytest.mark.slow
def test_labels_of_one_block_have_intervals_only() -> None:
    """Reports name a block: its labels have no share, an interval from 0, and the label on its own has a share."""
    mechanism = QuantizedResponse(alphabet=Scale(0, 3), epsilon=3.0, cuts=(1,))
    answers = Reports.from_arrays(["t"] * 300, range(300), [0] * 150 + [2] * 150, alphabet=Scale(0, 3))
    found = label_shares(perturb(answers, mechanism, seeded(1)), mechanism.channel())

    assert [False, True, True, True, False] == np.isnan(found.share[0]).tolist()
    assert found.low[0, 0] < 0.5 < found.high[0, 0]
    assert [0.0] * 3 == found.low[0, 1:4].tolist()
    assert (found.high[0, 1:4] > 0.5).all()


def test_numbers_and_repeated_answers_are_refused() -> None:
    """A share needs labels, and counts a worker once."""
    with pytest.raises(ReportsError, match="--scale LOW:HIGH"):
        label_shares(Reports.from_arrays(["a"], [1], [0.5], numeric=True))
    with pytest.raises(ReportsError, match="a worker answers a task once"):
        label_shares(Reports.from_arrays(["a", "a"], [1, 1], ["x", "y"], duplicates="all"))
