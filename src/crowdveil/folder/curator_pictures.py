"""Pictures for the curator only: raw claims, three kernel densities of them, and the records (Huai, Figure 3).

They are not private; their file names say so.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import SettingsError
from crowdveil.plotting import file_bytes, styled_figure
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.huai2019.kernel_density import KERNELS, WeightedKernelDensity
from crowdveil.synthesis.huai2019.methods import HuaiPublished
from crowdveil.synthesis.huai2019.weights import Kind, Weighting
from crowdveil.synthesis.release import Release

PREFIX = "CURATOR-ONLY-raw-claims-"
WARNING = "CURATOR ONLY: this picture shows raw claims and is not protected"
DRAWN: tuple[tuple[Kind, str], ...] = (("combined", "#dc2626"), ("global", "#111827"), ("uniform", "#16a34a"))
POINTS = 600
BINS = 20
LEAST_AXIS_SHARE = 0.1
"""Smallest width of the axis, as a share of the bounds."""
SMALL_WEIGHT = 0.25
"""Share of an equal weight below which a claim is drawn as a cross."""


def draw_pictures(claims: Claims, release: Release, tasks: Sequence[str], *, logarithmic: bool) -> dict[str, bytes]:
    """Return one PNG picture per named task, by file name; names start with `PREFIX`.

    Args:
        claims: raw, as the release saw them (logarithms if `logarithmic`).
        release: synthetic claims, in the units of the file.
        tasks: identifiers of tasks with claims.
        logarithmic: whether the axis shows logarithms to base 10.

    Raises:
        SettingsError: no such task, or one without claims.
    """
    if not tasks:
        return {}
    codes = [_code(claims, name) for name in tasks]
    weights = {kind: HuaiPublished(weighting=Weighting(kind=kind)).densities(claims) for kind, _ in DRAWN}
    found = {}
    for name, code in zip(tasks, codes, strict=True):
        held = slice(int(claims.pointers[code]), int(claims.pointers[code + 1]))
        densities = {
            kind: WeightedKernelDensity(
                value=claims.value[held],
                weight=sampler.weight[held],
                bandwidth=float(sampler.bandwidth[code]),
                kernel=KERNELS["gaussian"],
            )
            for kind, sampler in weights.items()
        }
        made = release.value[release.task == code]
        synthetic = np.log10(made) if logarithmic else made
        axis = f"{name} (log10)" if logarithmic else name
        drawn = _picture(axis, claims.of_task(code), synthetic, densities, _shown(claims, code, densities))
        found[f"{PREFIX}{code + 1}-{_slug(name)}.png"] = drawn
    return found


def _shown(claims: Claims, code: int, densities: dict[Kind, WeightedKernelDensity]) -> tuple[float, float]:
    """Return the ends of the axis."""
    claimed = claims.of_task(code)
    # The middle half of the claims sets the scale; an outlier would hide everything else.
    middle = float(np.median(claimed))
    spread = float(np.quantile(np.abs(claimed - middle), 0.5))
    least = LEAST_AXIS_SHARE * float(claims.high[code] - claims.low[code]) / 2
    reach = max(6 * spread + 4 * densities["uniform"].bandwidth, least)
    return middle - reach, middle + reach


def _picture(
    name: str,
    claimed: NDArray[np.float64],
    made: NDArray[np.float64],
    densities: dict[Kind, WeightedKernelDensity],
    ends: tuple[float, float],
) -> bytes:
    low, high = ends
    points = np.linspace(low, high, POINTS)
    with styled_figure(6.4, 3.8) as figure:
        axes = figure.add_subplot()
        for kind, color in DRAWN:
            axes.plot(points, densities[kind].pdf(points), color=color, lw=1.5, label=kind)
        small = densities["combined"].weight < SMALL_WEIGHT / len(claimed)
        for marker, some, label in (("o", ~small, "claims"), ("x", small, "claims of little weight")):
            axes.plot(claimed[some], np.zeros(some.sum()), marker, color="#c026d3", ms=5, mfc="none", label=label)
        shown = made[(made >= low) & (made <= high)]
        if len(made):
            axes.hist(
                shown,
                bins=BINS,
                range=(low, high),
                weights=np.full(len(shown), BINS / (high - low) / len(made)),
                color="#93c5fd",
                alpha=0.6,
                label=f"released ({len(shown)} of {len(made)} shown)",
            )
        axes.set_xlim(low, high)
        axes.set_xlabel(name)
        axes.set_title(WARNING, fontsize=8.5, color="#b91c1c")
        axes.legend(frameon=False, fontsize=8)
        return file_bytes(figure, "png")


def _code(claims: Claims, name: str) -> int:
    found = np.flatnonzero(claims.tasks.astype(str) == name)
    if not len(found) or not claims.per_task[found[0]]:
        raise SettingsError("a picture needs a task with claims", value=name)
    return int(found[0])


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:40] or "task"
