"""Resources of a fit: memory limit and engine."""

from dataclasses import dataclass, fields
from typing import Any

from crowdveil.em.executor import Engine
from crowdveil.errors import SettingsError
from crowdveil.registry import ENGINE_ENTRIES


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Memory limit and engine of a fit.

    Attributes:
        memory: limit of the fit in bytes; None for no limit.
        engine: name of the engine, from `crowdveil.registry.ENGINE_ENTRIES`.
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
        entry = ENGINE_ENTRIES.get(self.engine)
        if entry is None:
            raise SettingsError(f"the engine must be one of {', '.join(ENGINE_ENTRIES)}", value=self.engine)
        engine: Any = entry.load()
        if self.address is None:
            return engine()
        if "address" not in {field.name for field in fields(engine)}:
            raise SettingsError(f"the engine {self.engine} has no address", value=self.address, hint="Leave it out.")
        return engine(address=self.address)
