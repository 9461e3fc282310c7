"""The engine `dask` on a cluster of this machine: the bits of one thread, whoever dies."""

import os
import signal
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crowdveil import DawidSkene, Gaussian, OneCoin, Reports
from crowdveil.engines import Dask, dask
from crowdveil.errors import EngineError, SettingsError
from tests.engines.crowds import GOLD, REPORTS, assert_damage_is_refused, assert_same, in_blocks

distributed = pytest.importorskip("distributed", reason="Dask is not installed (crowdveil[dask])")
distributed_config = import_module("dask").config.set


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers with their nannies, which start them again when they die."""
    with dask._local(distributed, 2) as made:
        yield made


@pytest.mark.parametrize(
    "estimator", [DawidSkene(max_steps=4), OneCoin(max_steps=4), Gaussian(max_steps=3)], ids=lambda e: e.name
)
@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "in a folder"])
def test_dask_gives_the_same_bits(estimator: Any, stored: bool, cluster: Any, tmp_path: Path) -> None:
    """Estimates are those of one thread, whether blocks are sent to workers or read by them."""
    reports = REPORTS
    if stored:
        REPORTS.save(tmp_path)
        reports = Reports.open(tmp_path)
    with in_blocks():
        actual = estimator.fit(reports, gold=GOLD, engine=Dask(address=cluster.scheduler_address))
        assert_same(actual, estimator.fit(REPORTS, gold=GOLD))


def test_a_worker_that_dies_while_the_cluster_starts_is_an_engine_error() -> None:
    """Where worker processes end as soon as they have begun, the fit ends with the reason and the way out."""
    with (
        distributed_config({"distributed.worker.preload": ["import os; os._exit(1)"]}),
        pytest.raises(EngineError, match=r"cluster of 1 workers did not start .*failed to start\..*use fewer"),
    ):
        OneCoin().fit(REPORTS, engine=Dask(workers=1))


def test_threads_of_a_worker_share_its_desk() -> None:
    """A worker of several threads has one desk for all of them, and gives the same bits."""
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=3, processes=False, dashboard_address="127.0.0.1:0"
        ) as threaded,
        in_blocks(10),
    ):
        actual = Gaussian(max_steps=4).fit(REPORTS, gold=GOLD, engine=Dask(address=threaded.scheduler_address))
        assert_same(actual, Gaussian(max_steps=4).fit(REPORTS, gold=GOLD))


def test_a_killed_worker_changes_no_number(cluster: Any) -> None:
    """Two workers are killed (signal 9) in two steps of a fit, which ends with the same bits."""
    doomed = [nanny.pid for nanny in cluster.workers.values()]
    estimator = DawidSkene(max_steps=8)

    def kill(step: int, _: float) -> None:
        if step in (2, 4):
            os.kill(doomed.pop(), signal.SIGKILL)

    with in_blocks():
        actual = estimator.fit(REPORTS, gold=GOLD, engine=Dask(address=cluster.scheduler_address), progress=kill)
        assert_same(actual, estimator.fit(REPORTS, gold=GOLD))
    assert not doomed


def test_a_worker_that_is_gone_again_is_waited_for_once_more() -> None:
    """Where the worker that was waited for dies before it is given anything, blocks wait for the next one."""
    answers: list[dict[str, int]] = [{}, {}, {"tcp://next": 2}]
    client: Any = SimpleNamespace(nthreads=lambda: answers.pop(0), wait_for_workers=lambda number, timeout: None)
    dispatch: Any = SimpleNamespace(indices=range(3))

    assert {"tcp://next": 2} == dask.DaskCrew(client, dispatch)._house()
    assert not answers


def test_refusals_arrive_as_they_are(cluster: Any, tmp_path: Path) -> None:
    """What a worker refuses is refused with the same class and message as in one thread."""
    assert_damage_is_refused(Dask(address=cluster.scheduler_address), tmp_path)


def test_a_cluster_without_workers_ends_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the last worker is gone and none comes in its place, the fit ends with an error and does not hang."""
    monkeypatch.setattr(dask, "LOOK_AGAIN", 0.2)
    monkeypatch.setattr(dask, "LONGEST_WAIT", 0.5)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    ) as lonely:

        def retire(step: int, _: float) -> None:
            lonely.scale(0)
            while lonely.scheduler.workers:
                time.sleep(0.01)

        with pytest.raises(EngineError, match="Dask could not go on"):
            DawidSkene().fit(REPORTS, engine=Dask(address=lonely.scheduler_address), progress=retire)


def test_a_cluster_that_goes_away_ends_the_fit(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the scheduler cannot be asked any more the error says so, in place of one of the network's."""
    calls: list[object] = []

    def lost(self: object) -> dict[str, int]:
        calls.append(self)
        if len(calls) > 4:
            raise distributed.comm.CommClosedError("stream is closed")
        return dict.fromkeys(cluster.scheduler.workers, 1)

    monkeypatch.setattr(distributed.Client, "nthreads", lost)
    with in_blocks(), pytest.raises(EngineError, match=r"Dask could not go on: stream is closed\. See whether"):
        DawidSkene().fit(REPORTS, engine=Dask(address=cluster.scheduler_address))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://"])
def test_a_cluster_that_is_not_there_is_named(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address where nobody answers is refused with a way out."""
    monkeypatch.setattr("crowdveil.engines.dask.PATIENCE", 1.0)

    with pytest.raises(EngineError, match=r"No Dask scheduler answers at .*Start one"):
        OneCoin().fit(REPORTS, engine=Dask(address=address))


def test_workers_are_counted() -> None:
    """A cluster of its own has at least one worker; one that is there already has the workers that it has."""
    for wrong in ({"workers": 0}, {"workers": 2, "address": "tcp://127.0.0.1:8786"}):
        with pytest.raises(SettingsError, match="workers must be at least 1, and go without an address"):
            Dask(**wrong)
