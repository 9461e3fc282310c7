"""Whether compiled code is used: as the environment says, or where there is enough to do."""

import os

from crowdveil.errors import SettingsError
from crowdveil.jit.address_space import compiler_fits

KERNELS = "CROWDVEIL_KERNELS"
"""Environment variable: `plain` or `compiled` whatever the size, `auto` (or nothing) by size and address space."""


def compiled_pays(size: int, enough: int) -> bool:
    """Return whether work of that size, in whatever unit, runs on compiled code.

    Raises:
        SettingsError: an unknown choice in the environment.
    """
    choice = os.environ.get(KERNELS, "auto")
    if choice not in ("auto", "plain", "compiled"):
        raise SettingsError(f"{KERNELS} must be auto, plain or compiled", value=choice)
    return choice == "compiled" or (choice == "auto" and size >= enough and compiler_fits())
