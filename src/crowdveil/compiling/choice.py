"""Whether compiled code is used: as the environment says, or where there is enough to do."""

import os
from importlib.util import find_spec

from crowdveil.errors import SettingsError

KERNELS = "CROWDVEIL_KERNELS"
"""Environment variable: `plain` or `compiled` whatever the size, `auto` (or nothing) by size."""


def compiled_pays(size: int, enough: int) -> bool:
    """Return whether work of that size, in whatever unit, runs on compiled code; never without numba.

    Raises:
        SettingsError: an unknown choice in the environment, or compiled code is asked for where numba is not installed.
    """
    choice = os.environ.get(KERNELS, "auto")
    if choice not in ("auto", "plain", "compiled"):
        raise SettingsError(f"{KERNELS} must be auto, plain or compiled", value=choice)
    installed = choice != "plain" and find_spec("numba") is not None
    if choice == "compiled" and not installed:
        raise SettingsError(
            f"{KERNELS}=compiled needs numba", value=choice, way_out="Install it with crowdveil[fast], or say auto."
        )
    return installed and (choice == "compiled" or size >= enough)
