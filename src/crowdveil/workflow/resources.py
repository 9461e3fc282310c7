"""Resources of a fit: memory limit and engine."""

from dataclasses import dataclass, fields
from typing import Any

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
        from crowdveil.engines import ENGINES

        if self.engine not in ENGINES:
            raise SettingsError(f"the engine is one of {', '.join(ENGINES)}", value=self.engine)
        engine: Any = ENGINES[self.engine]
        if self.address is None:
            return engine()
        if "address" not in {field.name for field in fields(engine)}:
            raise SettingsError(f"the engine {self.engine} has no address", value=self.address, hint="Leave it out.")
        return engine(address=self.address)
