"""What a fit may use: how much memory, and whose processors."""

from dataclasses import dataclass

from crowdveil.errors import SettingsError
from crowdveil.estimators.threads import Threads
from crowdveil.estimators.work import Engine


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a fit may use.

    Attributes:
        memory: most bytes that blocks of reports and posteriors may take together; None for no limit.
        engine: where blocks are worked on, by its name in `crowdveil.engines.ENGINES`.
        address: of a cluster that is there already, for engines that have one.
    """

    memory: int | None = None
    engine: str = "threads"
    address: str | None = None

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
            f"{self.engine} work on this machine and have no address", value=self.address, way_out="Leave it out."
        )
