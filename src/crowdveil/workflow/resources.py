"""What a fit may use: how much memory, and whose processors."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a fit may use.

    Attributes:
        memory: most bytes that blocks of reports and posteriors may take together; None for no limit.
    """

    memory: int | None = None
