"""Call depth of `crowdveil infer`: package frames from the command to the kernel of the E-step."""

import sys
from pathlib import Path
from types import FrameType

import pytest

import crowdveil
from tests.cli.conftest import Run

PACKAGE = str(Path(crowdveil.__file__).parent)
MAX_FRAMES = 9
"""Verbs.invoke, cli.infer, inference.infer, Estimator.fit, run_em, the block worker, e_step, the kernel, one more."""


def package_frames(frame: FrameType | None) -> list[str]:
    """Return the package functions on the stack of a frame, outermost first."""
    found = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            found.insert(0, f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}")
        frame = frame.f_back
    return found


def test_infer_reaches_its_kernel_in_few_frames(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dawid-Skene through a channel reaches its numpy kernel in nine package frames, ten with the entry point."""
    monkeypatch.setenv("CROWDVEIL_KERNELS", "plain")
    monkeypatch.setenv("CROWDVEIL_THREADS", "1")
    lists = ("--tasks", "tasks.csv", "--workers", "every-worker.csv", "--labels", "no,yes,maybe")
    run("perturb", "labels.csv", "--mechanism", "randomized-response", "--epsilon", 3, *lists, "--out", "sent")
    stacks: list[list[str]] = []

    def record(frame: FrameType, event: str, _: object) -> None:
        if (
            event == "call"
            and "/kernels/numpy" in frame.f_code.co_filename
            and frame.f_code.co_name == "confusion_step"
        ):
            stacks.append(package_frames(frame))

    sys.setprofile(record)
    try:
        run("infer", "sent/reports.csv", "--method", "dawid-skene")
    finally:
        sys.setprofile(None)

    assert stacks
    assert len(stacks[0]) <= MAX_FRAMES, stacks[0]
