"""What the modes built on Algorithm 1 share: the densities to sample, the tasks that may release, the bookkeeping."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.randomness import Source
from crowdveil.synthesis.bandwidth import Bandwidth
from crowdveil.synthesis.candidates import Sampler
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.global_weights import Progress
from crowdveil.synthesis.kernels import KERNELS
from crowdveil.synthesis.privacy_test import PrivacyTest
from crowdveil.synthesis.release import Curve, Release, Withheld, fresh_workers
from crowdveil.synthesis.weights import Weighting

KernelName = Literal["gaussian", "epanechnikov"]


def check_settings(records: int, kernel: str) -> None:
    """Refuse settings that both modes refuse.

    Raises:
        SettingsError: fewer than one record a task, or an unknown kernel.
    """
    if records < 1:
        raise SettingsError("records must be at least 1", value=records)
    if kernel not in KERNELS:
        raise SettingsError(f"kernel must be one of {', '.join(KERNELS)}", value=kernel)


def build_sampler(
    claims: Claims,
    test: PrivacyTest,
    kernel: KernelName,
    bandwidth: Bandwidth,
    weighting: Weighting,
    *,
    progress: Progress | None = None,
) -> Sampler:
    """Return the weighted densities of all tasks, ready to be sampled; `progress` as `Weighting.of`."""
    width = bandwidth.of(claims)
    weight = weighting.of(claims, width, KERNELS[kernel], progress=progress)
    return Sampler(claims=claims, weight=weight, bandwidth=width, kernel=KERNELS[kernel], test=test)


def trials(claims: Claims, test: PrivacyTest, records: int) -> NDArray[np.int64]:
    """Return the task of every record to be made, ascending: `records` for each task with at least k claims."""
    return np.repeat(np.flatnonzero(claims.per_task >= test.k), records)


def data_dependence(claims: Claims, bandwidth: Bandwidth, weighting: Weighting) -> tuple[str, ...]:
    """Return what of the settings is learned from the claims, one clause each; empty if nothing is."""
    found = []
    if not weighting.public:
        found.append(f"{weighting.kind} weights follow from the claims")
    if not bandwidth.public(claims):
        found.append("bandwidths follow from the claims")
    return tuple(found)


def gather(
    mode: str,
    claims: Claims,
    test: PrivacyTest,
    records: int,
    task: NDArray[np.int64],
    value: NDArray[np.float64],
    curves: tuple[Curve, ...],
    source: Source,
) -> Release:
    """Return the records that were made, fresh workers and what was withheld; `value` is NaN where a trial failed."""
    made = ~np.isnan(value)
    small = int((claims.per_task < test.k).sum())
    failed = task[~made]
    notes = (
        Withheld(f"fewer than k = {test.k} claims", small, small * records),
        Withheld("no candidate passed the test within the attempts", len(np.unique(failed)), len(failed)),
    )
    return Release(
        mode=mode,
        task=task[made].astype(np.int32),
        worker=fresh_workers(task[made]),
        value=value[made],
        tasks=claims.tasks,
        curves=curves,
        withheld=tuple(note for note in notes if note.tasks),
        simulation=source.simulation,
    )
