"""What a fit may use: how much memory, and whose processors."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from crowdveil.em.executor import Engine
from crowdveil.em.memory import TooLittleMemory
from crowdveil.em.threads import Threads
from crowdveil.errors import SettingsError
from crowdveil.workflow.private_memory import beside_fit, release_freed_memory


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a fit may use.

    Attributes:
        memory: most bytes of private memory; None for no limit. In threads it is that of the whole process; on other
            engines that of what fits hold, shared by the processes.
        engine: where blocks are worked on, by its name in `crowdveil.engines.ENGINES`.
        address: of a cluster that is there already, for engines that have one.
    """

    memory: int | None = None
    engine: str = "threads"
    address: str | None = None

    @contextmanager
    def for_fit(self, reports: int) -> Iterator[int | None]:
        """Give what a fit of so many reports may take, from what the process holds now on.

        Raises:
            SettingsError: that is too little for it.
        """
        if self.memory is None or self.engine != Threads.name:
            yield self.memory
            return
        release_freed_memory()
        beside = beside_fit(reports)
        try:
            yield self.memory - beside
        except TooLittleMemory as error:
            raise SettingsError(
                f"memory must be at least {error.least + beside:,} bytes: {beside:,} for the command and to write "
                f"results, {error.least:,} for one block of these reports and what is known of the crowd",
                value=self.memory,
                hint="Raise the limit.",
            ) from error

    def where(self) -> Engine:
        """Return the engine.

        Raises:
            SettingsError: there is none of that name, or it has no address.
        """
        if (self.engine, self.address) == (Threads.name, None):
            return Threads()
        from crowdveil.engines import ENGINES, Dask, Spark

        if self.engine not in ENGINES:
            raise SettingsError(f"the engine is one of {', '.join(ENGINES)}", value=self.engine)
        if self.address is None:
            made: Engine = ENGINES[self.engine]()
            return made
        if self.engine == Dask.name:
            return Dask(address=self.address)
        if self.engine == Spark.name:
            return Spark(address=self.address)
        raise SettingsError(
            f"{self.engine} work on this machine and have no address", value=self.address, hint="Leave it out."
        )
