"""Depth of the call stack: package frames between a call of the library and the kernel of its E-step."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from crowdveil import Categories, DawidSkene, Reports

pytestmark = pytest.mark.slow

KERNEL = ("crowdveil.em.kernels.numpy_backend", "confusion_step")
"""Module and name of the kernel of Dawid-Skene's E-step."""


def package_frames_at_kernel(run: Callable[[], Any], kernel: tuple[str, str] = KERNEL) -> int:
    """Return the largest number of package frames on the stack, the kernel's own included, when it is entered."""
    deepest = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal deepest
        if event == "call" and (frame.f_globals.get("__name__"), frame.f_code.co_name) == kernel:
            deepest = max(deepest, len(package_frames(frame)))

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return deepest


def package_frames(frame: FrameType | None) -> list[str]:
    """Return the names of the package's functions on the stack, innermost first."""
    found = []
    while frame is not None:
        if str(frame.f_globals.get("__name__")).split(".")[0] == "crowdveil":
            found.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return found


def test_a_fit_reaches_its_kernel_in_five_frames() -> None:
    """`fit`, `run_em`, `BlockWorker.step`, `e_step` and the kernel; one more where few reports need the search for
    saddle points."""
    rng = np.random.default_rng(0)
    labels = Categories(("no", "yes"))
    many, few = (
        Reports.from_arrays(
            rng.integers(0, 100, size), rng.integers(0, 20, size), rng.choice(labels.names, size), duplicates="first"
        )
        for size in (1000, 100)
    )

    assert 5 == package_frames_at_kernel(lambda: DawidSkene().fit(many))
    assert 6 >= package_frames_at_kernel(lambda: DawidSkene().fit(few))
