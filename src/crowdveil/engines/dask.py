"""The engine `dask`: blocks are worked on by a Dask cluster, of this machine or of others."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from itertools import zip_longest
from typing import Any, ClassVar, TypeAlias, final

from crowdveil.em.executor import ActiveExecutor, FitTask, Part, Step
from crowdveil.em.kernels import thread_count
from crowdveil.em.memory import Posterior
from crowdveil.em.model import GoldBlock
from crowdveil.engines.dependencies import check_versions, wanted
from crowdveil.engines.driver import Dispatch
from crowdveil.engines.serialization import Payload
from crowdveil.engines.worker import BlockTask, forget, report, work_on
from crowdveil.errors import EngineError, SettingsError

# Of Dask, which need not be installed: its types cannot be named.
Client: TypeAlias = Any
Future: TypeAlias = Any
QUIET = {"distributed.admin.large-graph-warning-threshold": "1TB"}
"""Parameters are as large as they are."""
LARGEST_BUNDLE = 8
"""Blocks in a task at most: their sums wait together for the driver."""
LOOK_AGAIN, LONGEST_WAIT = 5.0, 60.0
"""Seconds to wait for a result before workers are counted, and for a worker where there is none."""
PATIENCE = 10.0
"""Seconds that a scheduler may take to answer."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dask:
    """The workers of a Dask cluster; where one dies, others take over its blocks.

    Attributes:
        address: of the scheduler, such as tcp://10.0.0.1:8786; None for a cluster on this machine, for this fit only.
        workers: processes of such a cluster; None for `CROWDVEIL_THREADS`, or one per free core.

    Raises:
        SettingsError: no worker, or a number of them for a cluster that is there already.
    """

    name: ClassVar[str] = "dask"
    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and (self.workers < 1 or self.address is not None):
            raise SettingsError("workers must be at least 1, and go without an address", value=self.workers)

    @contextmanager
    def open(self, work: FitTask[Any, Any]) -> Iterator[ActiveExecutor[Any, Any]]:
        """Connect to the cluster."""
        distributed = wanted("distributed", "dask")
        memory, cluster = work.memory, self.address
        with ExitStack() as stack:
            stack.enter_context(wanted("dask", "dask").config.set(QUIET))
            if cluster is None:
                count = min(self.workers or thread_count(), len(work.blocks))
                memory = None if memory is None else memory // count
                cluster = stack.enter_context(_local(distributed, count))
            client = stack.enter_context(_client(distributed, cluster))
            with _told_clearly():
                check_versions(client.run(version, "crowdveil", on_error="return"))
            dispatch = Dispatch(work, Scheduler(client), memory)
            stack.callback(_dismiss, client, dispatch.fit)
            yield DaskCrew(client, dispatch)


def _local(distributed: Any, count: int) -> Any:
    """Return a cluster of this machine whose workers have started.

    Raises:
        EngineError: one of them died, or took too long.
    """
    try:
        return distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            memory_limit=None,
            # Any free port: another cluster may have the usual one.
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
    except (RuntimeError, OSError) as error:
        raise EngineError(
            f"A Dask cluster of {count} workers did not start on this machine: {error}",
            hint="Workers that die may be short of memory: use fewer (CROWDVEIL_THREADS), or the engine threads.",
        ) from error


def _client(distributed: Any, cluster: Any) -> Any:
    try:
        return distributed.Client(cluster, set_as_default=False, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise EngineError(
            f"No Dask scheduler answers at {cluster!r}: {error}", hint="Start one (dask scheduler), or leave it out."
        ) from error


def _dismiss(client: Client, fit: str) -> None:
    """Let the workers forget the fit; whoever cannot be reached will forget it for newer ones."""
    with suppress(Exception):
        client.run(forget, fit)


@dataclass(frozen=True, slots=True)
class DaskPayload:
    """A letter that the scheduler has: it gives it to a worker, and to another one if that one dies."""

    future: Future

    @property
    def value(self) -> bytes:
        """The bytes."""
        data: bytes = self.future.result()
        return data


class Scheduler:
    """A post that leaves letters with the scheduler."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def send(self, data: bytes, *, to_all: bool) -> DaskPayload:
        """Return a letter that workers fetch from one another."""
        return DaskPayload(self._client.submit(bytes, data, pure=False))

    def discard(self, letter: Payload) -> None:
        """Let go of a letter."""
        _future(letter).release()


def _future(letter: Payload) -> Future:
    assert isinstance(letter, DaskPayload)
    return letter.future


@contextmanager
def _told_clearly() -> Iterator[None]:
    """Say what a cluster means that cannot go on: scheduler or workers are gone, or a block is too much for any."""
    distributed = wanted("distributed", "dask")
    try:
        yield
    except (distributed.CancelledError, distributed.KilledWorker, OSError) as error:
        raise EngineError(
            f"Dask could not go on: {error}",
            hint="See whether the scheduler runs; workers that die may be short of memory: set a limit.",
        ) from error


@dataclass(frozen=True, slots=True)
class Opened:
    """A letter that has arrived."""

    value: bytes


def answer(
    function: Callable[[BlockTask], Any],
    names: tuple[str, int, list[int]],
    letters: tuple[bytes, bytes, bytes | None],
    blocks: list[bytes],
) -> list[Any]:
    """Call a function, on a worker, with orders whose letters have arrived.

    Args:
        function: what is to be done.
        names: the fit, the number of the step, and which blocks.
        letters: parcel, parameters, and parameters before.
        blocks: the blocks themselves; none where they are in a folder.
    """
    fit, number, indices = names
    parcel, now, before = (None if data is None else Opened(data) for data in letters)
    assert parcel is not None
    assert now is not None
    held: list[Opened | None] = [Opened(data) for data in blocks]
    return [
        function(BlockTask(fit=fit, index=index, number=number, parcel=parcel, now=now, before=before, block=block))
        for index, block in zip_longest(indices, held)
    ]


class DaskCrew:
    """The workers for one fit; every block has one that it is given to, as long as that one lives."""

    def __init__(self, client: Client, dispatch: Dispatch) -> None:
        self._client, self._dispatch = client, dispatch
        self._homes: dict[int, str] = {}

    def map(self, step: Step[Any, Any]) -> Iterator[Part[Any]]:
        """Yield what a step makes of each block, in order."""
        with _told_clearly():
            self._dispatch.begin(step)
            yield from self._ask_all(work_on)

    def collect(self) -> Posterior:
        """Return the posteriors of the last step."""
        with _told_clearly():
            return self._dispatch.together(self._ask_all(report))

    def blocks(self) -> Iterator[GoldBlock]:
        """Yield every block, in this process."""
        return self._dispatch.blocks()

    def _ask_all(self, function: Callable[[BlockTask], Any]) -> Iterator[Any]:
        bundles = self._bundles(self._house())
        futures = [self._ask(function, bundle) for bundle in bundles]
        waiting = {index: place for place, bundle in enumerate(bundles) for index in bundle}
        arrived: dict[int, Any] = {}
        for index in self._dispatch.indices:
            if index not in arrived:
                place = waiting[index]
                arrived |= zip(bundles[place], self._result(futures[place]), strict=True)
                futures[place].release()
            yield arrived.pop(index)

    def _house(self) -> dict[str, int]:
        """Give blocks whose worker is gone to others, evenly; return the threads of each worker."""
        threads = self._present()
        load = dict.fromkeys(threads, 0)
        self._homes = {index: home for index, home in self._homes.items() if home in load}
        for home in self._homes.values():
            load[home] += 1
        for index in self._dispatch.indices:
            if index not in self._homes:
                self._homes[index] = min(load, key=lambda home: load[home] / threads[home])
                load[self._homes[index]] += 1
        return threads

    def _bundles(self, threads: dict[str, int]) -> list[list[int]]:
        """Return the blocks that go to a worker together: one bundle for each of its threads, unless it is too large.

        A task of Dask costs milliseconds, a small block less.
        """
        bundles = []
        for home, count in threads.items():
            own = [index for index in self._dispatch.indices if self._homes[index] == home]
            size = max(1, min(-(-len(own) // count), LARGEST_BUNDLE))
            bundles += [own[first : first + size] for first in range(0, len(own), size)]
        return bundles

    def _ask(self, function: Callable[[BlockTask], Any], bundle: list[int]) -> Future:
        orders = [self._dispatch.order(index) for index in bundle]
        one = orders[0]
        letters = tuple(None if letter is None else _future(letter) for letter in (one.parcel, one.now, one.before))
        blocks = [_future(order.block) for order in orders if order.block is not None]
        names = (one.fit, one.number, bundle)
        home = self._homes[bundle[0]]
        return self._client.submit(
            answer, function, names, letters, blocks, workers=[home], allow_other_workers=True, pure=False
        )

    def _result(self, future: Future) -> Any:
        """Return a result; where it is long in coming, see whether anyone is there to give it."""
        while True:
            try:
                return future.result(timeout=LOOK_AGAIN)
            except TimeoutError:
                self._present()

    def _present(self) -> dict[str, int]:
        """Return the threads of each worker, of one at least: nannies and schedulers of clusters start new ones.

        Who was waited for may be gone again when asked, so it is the answer that counts.
        """
        threads: dict[str, int] = self._client.nthreads()
        while not threads:
            self._client.wait_for_workers(1, timeout=LONGEST_WAIT)
            threads = self._client.nthreads()
        return threads
