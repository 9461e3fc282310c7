"""Dask executor: blocks in a folder are processed by the workers of a Dask cluster, local or remote."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from typing import Any, ClassVar, TypeAlias, final
from uuid import uuid4

from crowdveil.em.engines.executor import ActiveExecutor, FitTask, Step
from crowdveil.em.engines.worker import (
    BlockStep,
    StoredFolder,
    block_posterior,
    block_statistics,
    drop_cache,
    dump,
    dump_context,
    shared_parts,
)
from crowdveil.em.kernels.dispatch import thread_count
from crowdveil.em.memory import MemoryPlan, PosteriorStore
from crowdveil.em.model import EStep, GoldBlock
from crowdveil.errors import EngineError, SettingsError

# Types of Dask, an optional dependency.
Client: TypeAlias = Any
Future: TypeAlias = Any
DASK_SETTINGS = {"distributed.admin.large-graph-warning-threshold": "1TB"}
"""Dask setting that turns off the warning about large parameters."""
POLL_SECONDS, WORKER_WAIT_SECONDS = 5.0, 60.0
"""Wait for a result before the cluster is checked, and for a worker if there is none."""
ADDRESS = re.compile(r"(?:tcp|tls|ws|wss|ucx)://[^\s/]+:\d{1,5}|inproc://\S+")
CONNECT_SECONDS = 10.0
"""Time limit for the scheduler to answer."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dask:
    """Engine of Dask workers for encoded blocks; those of a worker that dies are given to others.

    Attributes:
        address: of the scheduler, such as tcp://10.0.0.1:8786; None for a local cluster that lasts for one fit.
        workers: processes of a local cluster; None for `CROWDVEIL_THREADS`, or one per free core.

    Raises:
        SettingsError: fewer than one worker, `workers` together with `address`, or text that is no address.
    """

    name: ClassVar[str] = "dask"
    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and (self.workers < 1 or self.address is not None):
            raise SettingsError("workers must be at least 1, and is not used with an address", value=self.workers)
        if self.address is not None and ADDRESS.fullmatch(self.address) is None:
            hint = "Give what the scheduler prints at its start: protocol, host and port."
            raise SettingsError(
                "the address of a Dask scheduler must be one such as tcp://HOST:8786", value=self.address, hint=hint
            )

    @contextmanager
    def open(self, work: FitTask[Any, Any]) -> Iterator[ActiveExecutor[Any, Any]]:
        """Connect to the cluster for a fit."""
        distributed = require_extra("distributed")
        memory, cluster = work.memory, self.address
        with ExitStack() as stack:
            stack.enter_context(require_extra("dask").config.set(DASK_SETTINGS))
            if cluster is None:
                count = min(self.workers or thread_count(), len(work.blocks))
                memory = None if memory is None else memory // count
                cluster = stack.enter_context(_local_cluster(distributed, count))
            client = stack.enter_context(_connect_to_scheduler(distributed, cluster))
            with _dask_errors():
                check_versions(client.run(version, "crowdveil", on_error="return"))
            executor = DaskExecutor(client, work, memory)
            stack.callback(_drop_caches, client, executor.fit_id)
            yield executor


def require_extra(package: str) -> Any:
    """Return an optional package.

    Raises:
        EngineError: it is not installed.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise EngineError(
            f"The engine dask needs the package {package}, which is not installed",
            hint='Install it: pip install "crowdveil[dask]".',
        ) from error


def check_versions(found: Mapping[str, Any]) -> None:
    """Check that workers have this version of crowdveil.

    Args:
        found: version by worker; an exception if crowdveil is not installed there.

    Raises:
        EngineError: a version differs.
    """
    expected = version("crowdveil")
    wrong = {worker: other for worker, other in found.items() if other != expected}
    if wrong:
        worker, other = next(iter(wrong.items()))
        value = "none" if isinstance(other, Exception) else other
        raise EngineError(
            f"All workers must have crowdveil {expected}; {len(wrong)} of {len(found)} differ: {worker} has {value}",
            hint="Install the same version everywhere.",
        )


def _local_cluster(distributed: Any, count: int) -> Any:
    """Return a local cluster whose workers have started.

    Raises:
        EngineError: a worker died, or started too slowly.
    """
    try:
        return distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            memory_limit=None,
            # Any free port: another cluster may use the default one.
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
    except (RuntimeError, OSError) as error:
        raise EngineError(
            f"A Dask cluster of {count} workers did not start on this machine: {error}",
            hint="Workers that die may be short of memory: use fewer (CROWDVEIL_THREADS), or the engine threads.",
        ) from error


def _connect_to_scheduler(distributed: Any, cluster: Any) -> Any:
    try:
        return distributed.Client(cluster, set_as_default=False, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise EngineError(
            f"No Dask scheduler answers at {cluster!r}: {error}",
            hint="Start one (dask scheduler), or omit the address.",
            temporary=True,
        ) from error


def _drop_caches(client: Client, fit_id: str) -> None:
    """Remove the caches of a fit; an unreachable worker drops its own when newer fits come."""
    with suppress(Exception):
        client.run(drop_cache, fit_id)


@contextmanager
def _dask_errors() -> Iterator[None]:
    """Raise Dask's failures of scheduler or workers as `EngineError`."""
    distributed = require_extra("distributed")
    try:
        yield
    except (distributed.CancelledError, distributed.KilledWorker, OSError) as error:
        raise EngineError(
            f"The Dask cluster failed: {error}",
            hint="Check that the scheduler runs; workers that die may be short of memory: set a limit.",
            temporary=True,
        ) from error


class DaskExecutor:
    """Executor of one fit on a cluster; a block stays with one worker as long as that worker lives."""

    def __init__(self, client: Client, work: FitTask[Any, Any], memory: int | None) -> None:
        """Send the constants of the fit.

        Args:
            client: of the cluster.
            work: the fit.
            memory: limit of each worker, in bytes; None for no limit.

        Raises:
            SettingsError: the limit is too small for one block.
            EngineError: the reports are in memory, and not in a folder.
        """
        self._client, self._work, self.fit_id = client, work, uuid4().hex
        folder: Any = StoredFolder.of(work.blocks.rows)
        prepared = work.needs._replace(extra=work.needs.extra._replace(preparation=0))
        plan = MemoryPlan.for_limit(memory, 1, prepared)
        self._posteriors = PosteriorStore(work.needs.all_tasks, scratch=plan.scratch)
        self._context = self._send(dump_context(replace(work, blocks=replace(work.blocks, rows=folder)), plan))
        self._step, self._parameters = 0, list[Future]()
        self._worker_of: dict[int, str] = {}

    def map(self, step: Step[Any, Any]) -> Iterator[tuple[Any, float]]:
        """Yield the statistics of each block, in order."""
        with _dask_errors():
            self._send_parameters_of_step(step)
            yield from self._run_on_each_block(block_statistics)

    def collect_last_step(self) -> EStep[Any]:
        """Return the posterior of all tasks after the last step."""
        with _dask_errors():
            for (first, _), part in zip(
                self._work.blocks.ranges, self._run_on_each_block(block_posterior), strict=True
            ):
                self._posteriors.store(first, self._step, part)
            return self._posteriors.assemble_all_blocks()

    def blocks(self) -> Iterator[GoldBlock]:
        """Yield every block, in this process."""
        return iter(self._work.blocks)

    def _send(self, data: bytes) -> Future:
        """Return bytes held by the cluster; the scheduler makes them again if their worker dies."""
        return self._client.submit(bytes, data, pure=False)

    def _send_parameters_of_step(self, step: Step[Any, Any]) -> None:
        """Send the parameters of a step; those of the step before stay available."""
        self._step = step.number
        self._parameters.append(self._send(dump(step.parameters, shared_parts(self._work.initial))))
        if len(self._parameters) > 2:
            self._parameters.pop(0).release()

    def _run_on_each_block(self, function: Callable[..., Any]) -> Iterator[Any]:
        self._assign_orphaned_blocks_evenly()
        for future in [self._submit(function, index) for index in range(len(self._work.blocks))]:
            yield self._result_while_workers_live(future)
            future.release()

    def _assign_orphaned_blocks_evenly(self) -> None:
        """Assign blocks without a living worker evenly over threads."""
        threads = self._worker_threads()
        load = dict.fromkeys(threads, 0)
        self._worker_of = {index: worker for index, worker in self._worker_of.items() if worker in load}
        for worker in self._worker_of.values():
            load[worker] += 1
        for index in range(len(self._work.blocks)):
            if index not in self._worker_of:
                self._worker_of[index] = min(load, key=lambda worker: load[worker] / threads[worker])
                load[self._worker_of[index]] += 1

    def _submit(self, function: Callable[..., Any], index: int) -> Future:
        return self._client.submit(
            function,
            BlockStep(self.fit_id, self._step, index),
            self._context,
            self._parameters[-1],
            self._parameters[0] if len(self._parameters) > 1 else None,
            workers=[self._worker_of[index]],
            allow_other_workers=True,
            pure=False,
        )

    def _result_while_workers_live(self, future: Future) -> Any:
        """Return a result; check for living workers while it is awaited."""
        while True:
            try:
                return future.result(timeout=POLL_SECONDS)
            except TimeoutError:
                self._worker_threads()

    def _worker_threads(self) -> dict[str, int]:
        """Return the threads of each worker, at least one worker.

        Clusters start new workers for dead ones. A worker may die between the wait and the query, so only the query
        counts.
        """
        threads: dict[str, int] = self._client.nthreads()
        while not threads:
            self._client.wait_for_workers(1, timeout=WORKER_WAIT_SECONDS)
            threads = self._client.nthreads()
        return threads
