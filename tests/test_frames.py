"""Depth of the call stack: package frames between a call of the library and the kernel of its E-step."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from crowdveil import Categories, DawidSkene, Reports
from tests.cli.conftest import Run, folder, run

__all__ = ["folder", "run"]


KERNEL = ("crowdveil.em.kernels.numpy_backend", "confusion_step")
"""Module and name of the kernel of Dawid-Skene's E-step."""


def package_frames_at_kernel(run: Callable[[], Any], kernel: tuple[str, str] = KERNEL) -> list[int]:
    """Return the number of package frames on the stack, the kernel's own included, whenever it is entered."""
    depths: list[int] = []

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and (frame.f_globals.get("__name__"), frame.f_code.co_name) == kernel:
            depths.append(len(package_frames(frame)))

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return depths


def package_frames(frame: FrameType | None) -> list[str]:
    """Return the names of the package's functions on the stack, innermost first."""
    found = []
    while frame is not None:
        if str(frame.f_globals.get("__name__")).split(".")[0] == "crowdveil":
            found.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return found


@pytest.mark.slow
def test_a_fit_reaches_its_kernel_in_five_frames() -> None:
    """`fit`, `run_em`, `run_step_on_block`, `e_step` and the kernel; one more where few reports need the search for
    saddle points."""
    rng = np.random.default_rng(0)
    labels = Categories(("no", "yes"))
    many, few = (
        Reports.from_arrays(
            rng.integers(0, 100, size), rng.integers(0, 20, size), rng.choice(labels.names, size), duplicates="first"
        )
        for size in (1000, 100)
    )

    assert 5 == max(package_frames_at_kernel(lambda: DawidSkene().fit(many)))
    assert 6 >= max(package_frames_at_kernel(lambda: DawidSkene().fit(few)))


def test_infer_reaches_its_kernel_in_nine_frames(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through a channel: Verbs.invoke, the command, inference, two of the fit, the loop, block worker, step, kernel."""
    monkeypatch.setenv("CROWDVEIL_KERNELS", "plain")
    monkeypatch.setenv("CROWDVEIL_THREADS", "1")
    words = ("--mechanism", "randomized-response", "--epsilon", 3, "--labels", "no,yes,maybe", "--seed", 1)
    run("perturb", "labels.csv", *words, "--out", "sent")

    first, *_ = package_frames_at_kernel(lambda: run("infer", "sent/reports.csv", "--method", "dawid-skene"))
    assert first <= 9
