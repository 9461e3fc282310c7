"""Resources of a fit: memory limit and engine."""

from dataclasses import dataclass

from crowdveil.em.executor import Engine
from crowdveil.em.threads import Threads
from crowdveil.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Memory limit and engine of a fit.

    Attributes:
        memory: limit of the fit in bytes; None for no limit.
        engine: name of the engine, from `crowdveil.engines.ENGINES`.
        address: address of a running cluster, for engines that connect to one.
    """

    memory: int | None = None
    engine: str = "threads"
    address: str | None = None

    def build_engine(self) -> Engine:
        """Return the engine.

        Raises:
            SettingsError: unknown engine, or an address for an engine without one.
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
