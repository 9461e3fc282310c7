"""Compiled code against numpy and scipy: whole fits on random tables and on public data, and bits across threads."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil import DawidSkene, Estimate, MajorityVote, OneCoin, Reports, WeightedMean
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.em.kernels import dispatch
from crowdveil.em.kernels.dispatch import encoded_block_for_kernels
from crowdveil.estimators import Estimator, HierarchicalDawidSkene, WeightedVote
from crowdveil.published import PrivateDawidSkene
from tests.estimators.dense import LABELS, random_reports
from tests.strategies import small_numeric_reports, small_reports

CATEGORICAL: tuple[Estimator[Any, Any], ...] = (
    MajorityVote(),
    WeightedVote(max_steps=6),
    DawidSkene(max_steps=6, tolerance=0),
    OneCoin(max_steps=6, tolerance=0),
    HierarchicalDawidSkene(tolerance=0),
    PrivateDawidSkene(max_steps=6, tolerance=0),
)
MANY_LABELS = Categories(tuple(f"label {k}" for k in range(11)))
each_method = pytest.mark.parametrize("method", CATEGORICAL, ids=lambda one: one.name)


def both_ways(patch: pytest.MonkeyPatch, fit: Any) -> tuple[Estimate, Estimate]:
    """Return the estimates of plain and of compiled code."""
    patch.setenv(dispatch.KERNELS_VARIABLE, "plain")
    plain = fit()
    patch.setenv(dispatch.KERNELS_VARIABLE, "compiled")
    return plain, fit()


def assert_alike(plain: Estimate, compiled: Estimate, within: float = 1e-9) -> None:
    """The two estimates differ by rounding, which steps may blow up."""
    np.testing.assert_allclose(compiled.posterior, plain.posterior, rtol=0, atol=within)
    np.testing.assert_allclose(compiled.workers.quality, plain.workers.quality, rtol=within, atol=within)
    np.testing.assert_allclose(compiled.log_likelihoods, plain.log_likelihoods, rtol=within, atol=within)
    assert compiled.steps == plain.steps


@pytest.mark.slow
@each_method
@settings(max_examples=15)
@given(reports=small_reports(min_labels=3, max_labels=3), data=st.data())
def test_random_tables_give_the_same_estimates(method: Any, reports: Reports, data: st.DataObject) -> None:
    """On any small table, with gold or without, compiled code gives what numpy and scipy give."""
    gold = dict.fromkeys(data.draw(st.sets(st.sampled_from(list(reports.tasks)))), reports.alphabet.names[1])
    with pytest.MonkeyPatch.context() as patch:
        assert_alike(*both_ways(patch, lambda: method.fit(reports, gold=gold)))


@pytest.mark.slow
@settings(max_examples=25)
@given(reports=small_numeric_reports(), gold=st.booleans())
def test_random_numbers_have_the_same_means(reports: Reports, gold: bool) -> None:
    """On any small table of numbers compiled code gives the weighted means that numpy gives."""
    known = {reports.tasks[0]: 3.5} if gold else None
    with pytest.MonkeyPatch.context() as patch:
        assert_alike(*both_ways(patch, lambda: WeightedMean(max_steps=4).fit(reports, gold=known)))


@pytest.mark.slow
def test_tables_of_channels_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of tasks whose silence means something else start from scores of their own."""
    from crowdveil.mechanisms import RandomizedResponse

    parts: tuple[Channel, ...] = tuple(RandomizedResponse(alphabet=LABELS, epsilon=e).channel() for e in (1.0, 3.0))
    table = ChannelTable(
        channels=parts,
        choice=((0, 1), (1, 0)),
        tasks={str(t): t % 2 for t in range(40)},
        workers={str(w): w // 5 for w in range(9)},
    )
    reports = random_reports(np.random.default_rng(6), LABELS, tasks=40, workers=9, share=0.6)

    assert_alike(*both_ways(monkeypatch, lambda: DawidSkene(max_steps=5).fit(reports, channel=table)))


@pytest.mark.slow
@each_method
def test_many_labels_and_a_long_tail(monkeypatch: pytest.MonkeyPatch, method: Any) -> None:
    """Above eight labels, where loops are not unrolled, and with tasks and workers of very different sizes."""
    rng = np.random.default_rng(7)
    task = np.concatenate((np.repeat(0, 700), rng.integers(1, 300, 900), np.arange(1, 200)))
    worker = np.concatenate((np.arange(700), rng.integers(0, 700, 900), np.repeat(700, 199)))
    cells = np.unique(task * 1000 + worker)
    value = rng.integers(0, 11, len(cells))
    reports = Reports(cells // 1000, cells % 1000, value, np.arange(301), np.arange(702), MANY_LABELS)

    assert_alike(*both_ways(monkeypatch, lambda: method.fit(reports)), within=1e-7)


@pytest.mark.slow
@each_method
def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch, method: Any) -> None:
    """One thread and three give identical bits; so do the blocks they share."""
    monkeypatch.setenv(dispatch.KERNELS_VARIABLE, "compiled")
    monkeypatch.setattr(dispatch, "MIN_BLOCK_REPORTS", 300)
    reports = random_reports(np.random.default_rng(8), LABELS, tasks=400, workers=12, share=0.4)
    fits = []
    for threads in ("1", "3"):
        monkeypatch.setenv(dispatch.THREADS_VARIABLE, threads)
        fits.append(method.fit(reports))

    np.testing.assert_array_equal(fits[0].posterior, fits[1].posterior)
    np.testing.assert_array_equal(fits[0].workers.quality, fits[1].workers.quality)
    assert fits[0].log_likelihoods == fits[1].log_likelihoods


def test_codes_that_need_64_bits() -> None:
    """Workers and symbols beyond 2^32 pairs are distinct."""
    reports = Reports(np.array([0, 0]), np.array([0, 2**31 - 1]), np.array([0, 2]), np.arange(1), np.arange(2), LABELS)
    (block,) = reports.blocks()

    coded: Any = encoded_block_for_kernels(block, 2**31, 3, compiled=True)

    np.testing.assert_array_equal(coded.table_codes[:2], [0, 3 * (2**31 - 1) + 2])
    np.testing.assert_array_equal(coded.packed_report_codes[:2] >> np.uint64(coded.bits_per_symbol), [0, 2**31 - 1])
