"""Engine `dask` on a local cluster: the same bits as threads, also after workers die."""

import dataclasses
import os
import signal
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdveil import DawidSkene, Gaussian, HierarchicalDawidSkene, OneCoin, Reports, infer
from crowdveil.em.engines import Dask, dask
from crowdveil.errors import EngineError, SettingsError
from crowdveil.estimators import ESTIMATORS
from crowdveil.registry import ESTIMATOR_ENTRIES
from tests.em.engines.crowds import GOLD, REPORTS, assert_damage_is_refused, assert_same, crowd, in_blocks, stored
from tests.estimators.test_bad_minorities import near_copies, repeaters

distributed = pytest.importorskip("distributed", reason="Dask is not installed (crowdveil[dask])")
distributed_config = import_module("dask").config.set
KILLED = ("hierarchical-dawid-skene", "ebcc", "gaussian", "student-t")
"""Methods of which a worker of the cluster dies; of all others a process loses what it kept, see `test_worker`."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers with nannies, which restart them when they die."""
    with dask._local_cluster(distributed, 2) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [DawidSkene(max_steps=4), OneCoin(max_steps=4), Gaussian(max_steps=3)], ids=lambda e: e.name
)
def test_dask_gives_the_same_bits(estimator: Any, cluster: Any) -> None:
    """Estimates have the same bits as in one thread."""
    with in_blocks():
        actual = estimator.fit(stored(), gold=GOLD, engine=Dask(address=cluster.scheduler_address))
        assert_same(actual, estimator.fit(REPORTS, gold=GOLD))


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reports]:
    """Return answers of each kind as opened from a folder of encoded blocks."""
    found = {}
    for kind in ("categorical", "numeric"):
        folder = tmp_path_factory.mktemp(kind)
        crowd(kind).save(folder)
        found[kind] = Reports.open(folder)
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", ESTIMATOR_ENTRIES)
def test_every_method_has_the_same_bits_on_dask(
    method: str, cluster: Any, blocks: dict[str, Reports], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every method, `infer` gives the bits on Dask that it gives in this process; a worker of some is killed."""
    monkeypatch.setenv("CROWDVEIL_KERNELS", "compiled")
    reports = blocks[ESTIMATOR_ENTRIES[method].capabilities.kind]
    cls: Any = ESTIMATORS[method]
    estimator = cls() if cls is HierarchicalDawidSkene else cls(max_steps=4)
    doomed = [nanny.pid for nanny in cluster.workers.values() if nanny.pid and method in KILLED][:1]

    def kill(step: int, _: float) -> None:
        if step == 2 and doomed:
            os.kill(doomed.pop(), signal.SIGKILL)

    with in_blocks(500):
        here = infer(reports, estimator)
        there = infer(
            reports, estimator, engine=Dask(address=cluster.scheduler_address), progress=kill if doomed else None
        )

    assert not doomed
    assert here.estimate.truth.tolist() == there.estimate.truth.tolist()
    assert here.notes == there.notes
    np.testing.assert_array_equal(here.estimate.posterior, there.estimate.posterior)
    for field in dataclasses.fields(here.estimate.workers):
        name = field.name
        np.testing.assert_array_equal(getattr(here.estimate.workers, name), getattr(there.estimate.workers, name))


@pytest.mark.slow
@pytest.mark.parametrize("reports", [repeaters(), near_copies()], ids=["repeaters", "copies"])
def test_weights_of_workers_have_the_same_bits(reports: Reports, tmp_path: Path, cluster: Any) -> None:
    """The default weighs workers and near-copies on the cluster as in one thread, also in what it reports."""
    reports.save(tmp_path / "answers")
    kept = Reports.open(tmp_path / "answers")

    found = HierarchicalDawidSkene().fit(kept, engine=Dask(address=cluster.scheduler_address))

    np.testing.assert_array_equal(found.posterior, HierarchicalDawidSkene().fit(kept).posterior)


@pytest.mark.slow
@pytest.mark.parametrize("given", ["gold", "history"])
def test_what_is_known_has_the_same_bits(given: str, cluster: Any) -> None:
    """Gold that combines methods, and the history of workers, lead to the same bits on the cluster."""
    truth = OneCoin().fit(REPORTS).truth.tolist()
    known: Any = {"gold": dict(zip(REPORTS.tasks.tolist()[:30], truth[:30], strict=True)), "history": infer(REPORTS)}
    with in_blocks():
        here = infer(stored(), **{given: known[given]})
        there = infer(stored(), **{given: known[given]}, engine=Dask(address=cluster.scheduler_address))

    assert (here.gold_line, here.history_note) == (there.gold_line, there.history_note)
    assert (here.gold_line is None) == (given == "history")
    np.testing.assert_array_equal(here.estimate.posterior, there.estimate.posterior)


@pytest.mark.slow
def test_copies_have_the_same_bits(cluster: Any, tmp_path: Path) -> None:
    """`infer` counts near-copies on the cluster as in this process: notes, effective workers and confidences."""
    near_copies().save(tmp_path / "answers")
    kept = Reports.open(tmp_path / "answers")

    here = infer(kept)
    there = infer(kept, engine=Dask(address=cluster.scheduler_address))

    assert here.notes == there.notes
    assert here.confidence_note == there.confidence_note
    np.testing.assert_array_equal(here.estimate.posterior, there.estimate.posterior)
    np.testing.assert_array_equal(here.estimate.confidence, there.estimate.confidence)


def test_panels_are_refused_on_dask_by_name() -> None:
    """Truths with labels of their own are fitted in this process, and another engine is refused."""
    with pytest.raises(SettingsError, match=r"engine .*cannot be combined with truths"):
        infer(REPORTS, truths=["no", "yes"], engine=Dask(address="tcp://127.0.0.1:9"))


@pytest.mark.slow
def test_a_worker_that_dies_while_the_cluster_starts_is_an_engine_error() -> None:
    """Worker processes that die at the start end the fit with the reason and a remedy."""
    with (
        distributed_config({"distributed.worker.preload": ["import os; os._exit(1)"]}),
        pytest.raises(EngineError, match=r"cluster of 1 workers did not start .*failed to start\..*use fewer"),
    ):
        OneCoin().fit(stored(), engine=Dask(workers=1))


@pytest.mark.slow
def test_threads_of_a_worker_share_its_cache() -> None:
    """A worker with several threads uses one cache, and gives the same bits."""
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=3, processes=False, dashboard_address="127.0.0.1:0"
        ) as threaded,
        in_blocks(10),
    ):
        actual = Gaussian(max_steps=4).fit(stored(), gold=GOLD, engine=Dask(address=threaded.scheduler_address))
        assert_same(actual, Gaussian(max_steps=4).fit(REPORTS, gold=GOLD))


@pytest.mark.slow
def test_a_killed_worker_changes_no_number(cluster: Any) -> None:
    """Two workers are killed (signal 9) in two steps of a fit, which ends with the same bits."""
    doomed = [nanny.pid for nanny in cluster.workers.values()]
    estimator = DawidSkene(max_steps=8)

    def kill(step: int, _: float) -> None:
        if step in (2, 4):
            os.kill(doomed.pop(), signal.SIGKILL)

    with in_blocks():
        actual = estimator.fit(stored(), gold=GOLD, engine=Dask(address=cluster.scheduler_address), progress=kill)
        assert_same(actual, estimator.fit(REPORTS, gold=GOLD))
    assert not doomed


@pytest.mark.slow
def test_errors_arrive_as_they_are(cluster: Any, tmp_path: Path) -> None:
    """Damaged blocks raise the same error class and message as in one thread."""
    assert_damage_is_refused(Dask(address=cluster.scheduler_address), tmp_path)


def test_a_cluster_without_workers_ends_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that has lost its last worker ends the fit with an error, not with a hang."""
    monkeypatch.setattr(dask, "POLL_SECONDS", 0.2)
    monkeypatch.setattr(dask, "WORKER_WAIT_SECONDS", 0.5)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    ) as lonely:

        def retire(step: int, _: float) -> None:
            lonely.scale(0)
            while lonely.scheduler.workers:
                time.sleep(0.01)

        with pytest.raises(EngineError, match="The Dask cluster failed"):
            DawidSkene().fit(stored(), engine=Dask(address=lonely.scheduler_address), progress=retire)


@pytest.mark.slow
def test_a_lost_scheduler_ends_the_fit(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that no longer answers ends the fit with an engine error."""
    calls: list[object] = []

    def lost(self: object) -> dict[str, int]:
        calls.append(self)
        if len(calls) > 4:
            raise distributed.comm.CommClosedError("stream is closed")
        return dict.fromkeys(cluster.scheduler.workers, 1)

    monkeypatch.setattr(distributed.Client, "nthreads", lost)
    with in_blocks(), pytest.raises(EngineError, match=r"The Dask cluster failed: stream is closed\. Check that"):
        DawidSkene().fit(stored(), engine=Dask(address=cluster.scheduler_address))


@pytest.mark.slow
def test_an_unreachable_scheduler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address without a scheduler is refused with a remedy; there may be one later."""
    monkeypatch.setattr("crowdveil.em.engines.dask.CONNECT_SECONDS", 1.0)

    with pytest.raises(EngineError, match=r"No Dask scheduler answers at .*Start one") as refused:
        OneCoin().fit(stored(), engine=Dask(address="tcp://127.0.0.1:9"))
    assert refused.value.temporary


@pytest.mark.parametrize("address", ["", "nonsense://", "127.0.0.1:8786", "http://h:8786", "tcp://h", "tcp://h:x"])
def test_what_is_no_address_is_refused_at_once(address: str) -> None:
    """The form of an address is checked before anything is read or awaited."""
    with pytest.raises(SettingsError, match="must be one such as tcp://HOST:8786"):
        Dask(address=address)


def test_workers_are_counted() -> None:
    """`workers` is at least one, and is refused together with an address."""
    for wrong in ({"workers": 0}, {"workers": 2, "address": "tcp://127.0.0.1:8786"}):
        with pytest.raises(SettingsError, match="workers must be at least 1, and is not used with an address"):
            Dask(**wrong)
