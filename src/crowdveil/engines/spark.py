"""The engine `spark`: blocks are worked on by Spark's executors; letters are broadcast variables."""

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, final

from crowdveil.em.executor import ActiveExecutor, FitTask, Part, Step
from crowdveil.em.kernels import thread_count
from crowdveil.em.memory import Posterior
from crowdveil.em.model import GoldBlock
from crowdveil.engines.dependencies import check_versions, wanted
from crowdveil.engines.driver import Dispatch
from crowdveil.engines.serialization import PROTOCOL, Payload
from crowdveil.engines.worker import BlockTask, report, work_on
from crowdveil.errors import CrowdveilError

QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
ATTEMPTS = 4
"""How often a block is tried on this machine; a cluster has a setting of its own."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """The executors of Spark; where one dies, Spark gives its blocks to others.

    Spark promises no block to the same process again: whoever gets one that he did not have before works out its last
    posterior anew.

    Attributes:
        address: of the master, such as spark://10.0.0.1:7077; None for this machine, with `CROWDVEIL_THREADS` or one
            per free core. A session that is active already is used, whatever the address.
    """

    name: ClassVar[str] = "spark"
    address: str | None = None

    @contextmanager
    def open(self, work: FitTask[Any, Any]) -> Iterator[ActiveExecutor[Any, Any]]:
        """Connect to Spark; a session that was begun here ends here."""
        SparkSession = wanted("pyspark.sql", "spark").SparkSession
        before = SparkSession.getActiveSession()
        master = self.address or f"local[{min(thread_count(), len(work.blocks))},{ATTEMPTS}]"
        if self.address is None:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master(master).appName("crowdveil").config(map=QUIET)
        session = before or builder.getOrCreate()
        try:
            context = session.sparkContext
            check_versions({"an executor": _version_there(context)})
            yield _Crew(context, Dispatch(work, _Broadcasts(context), work.memory))
        finally:
            if before is None:
                session.stop()


def _version_there(context: Any) -> Any:
    """Return an executor's version of crowdveil, or the exception that came instead."""

    # Inside, so that it is sent as it is and not imported from where it may not be.
    def look(_: int) -> Any:
        try:
            return version("crowdveil")
        except PackageNotFoundError as error:
            return error

    return context.parallelize([0], 1).map(look).first()


class _Broadcasts:
    """A post that broadcasts letters."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def send(self, data: bytes, *, to_all: bool) -> Payload:
        letter: Payload = self._context.broadcast(data)
        return letter

    def discard(self, letter: Payload) -> None:
        broadcast: Any = letter
        broadcast.destroy()


@dataclass(frozen=True, slots=True)
class _Crew:
    context: Any
    dispatch: Dispatch

    def map(self, step: Step[Any, Any]) -> Iterator[Part[Any]]:
        self.dispatch.begin(step)
        return self._ask_all(work_on)

    def collect(self) -> Posterior:
        return self.dispatch.together(self._ask_all(report))

    def blocks(self) -> Iterator[GoldBlock]:
        return self.dispatch.blocks()

    def _ask_all(self, function: Callable[[BlockTask], Any]) -> Iterator[Any]:
        orders = [self.dispatch.order(index) for index in self.dispatch.indices]
        places = self.context.parallelize(self.dispatch.indices, len(orders))
        for told in places.map(lambda index: _told(function, orders[index])).collect():
            good, result = pickle.loads(told)
            if not good:
                raise result
            yield result


def _told(function: Callable[[BlockTask], Any], order: BlockTask) -> bytes:
    """Return (True, result) or (False, refusal): Spark would tell of an exception by its text only."""
    try:
        return pickle.dumps((True, function(order)), PROTOCOL)
    except CrowdveilError as error:
        return pickle.dumps((False, error), PROTOCOL)
