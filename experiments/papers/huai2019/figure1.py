"""Figure 1: a kernel density of five claims, its components, and a private density of the same claims."""

from collections.abc import Callable
from typing import Any

import numpy as np
from experiments.papers.exhibit import Configuration, Row, Verdict
from experiments.papers.huai2019.algorithm1.kernel_density import GaussianKernel, WeightedKernelDensity
from experiments.synthesis.density_error import DensityCurve, histogram_curve, integrated_squared_error, kernel_curve

from crowdveil.randomness import seeded
from crowdveil.synthesis.original_claims import Claims
from crowdveil.synthesis.private.histogram import Histogram

POINTS, BOUNDS = (5.0, 6.5, 8.0, 10.0, 11.5), (2.0, 14.0)
EPSILON = 5.0
KERNEL, PRIVATE, CONSTANT = "kernel density", "histogram", "constant"


def measure(configuration: Configuration) -> list[Row]:
    """Return the curves, and the distance of each whole curve from the kernel density."""
    width, seed = configuration["bandwidth"], configuration["seed"]
    claims = Claims.from_arrays(["object"] * 5, range(5), POINTS, bounds=BOUNDS)
    whole = _density(POINTS, width)
    curve = kernel_curve(whole)
    method, releases = Histogram(epsilon=EPSILON), range(configuration["releases"])
    private = [histogram_curve(method.private_densities(claims, seeded(seed + place))[0], 0) for place in releases]
    level = 1 / (BOUNDS[1] - BOUNDS[0])
    flat = DensityCurve(lambda x: np.where((x >= BOUNDS[0]) & (x <= BOUNDS[1]), level, 0.0), np.array(BOUNDS))
    curves: dict[str, tuple[float | None, Callable[[Any], Any], float | None]] = {
        f"component {place}": (None, _density((at,), width).pdf, None) for place, at in enumerate(POINTS, 1)
    }
    curves[KERNEL] = (np.inf, whole.pdf, 0.0)
    error = float(np.mean([integrated_squared_error(one, curve) for one in private]))
    curves[PRIVATE] = (EPSILON, private[0].at, error)
    curves[CONSTANT] = (0.0, flat.at, integrated_squared_error(flat, curve))
    grid = np.linspace(*BOUNDS, 49)
    rows: list[Row] = []
    for name, (exact, at, distance) in curves.items():
        share = 0.2 if name.startswith("component") else 1.0
        heights = share * at(grid)
        rows += [_row(width, name, exact, float(x), float(y), None) for x, y in zip(grid, heights, strict=True)]
        if distance is not None:
            rows.insert(0, _row(width, name, exact, None, None, distance))
    return rows


def _density(points: tuple[float, ...], width: float) -> WeightedKernelDensity:
    """Return the kernel density of some points with equal weights."""
    weight = np.full(len(points), 1 / len(points))
    return WeightedKernelDensity(value=np.array(points), weight=weight, bandwidth=width, kernel=GaussianKernel())


def _row(
    width: float, curve: str, exact: float | None, x: float | None, density: float | None, error: float | None
) -> Row:
    return {
        "bandwidth": width, "curve": curve, "exact_epsilon": exact, "x": x, "density": density, "error": error,
    }  # fmt: skip


def verdict(rows: list[Row]) -> Verdict:
    """Return that the components add up to the density, which integrates to 1."""
    holds = True
    for width in {row["bandwidth"] for row in rows}:
        mine = [row for row in rows if row["bandwidth"] == width and row["x"] is not None]
        whole = np.array([row["density"] for row in mine if row["curve"] == KERNEL], dtype=float)
        parts = [row["density"] for row in mine if str(row["curve"]).startswith("component")]
        holds &= bool(np.abs(np.reshape(parts, (5, -1)).sum(axis=0) - whole).max() < 1e-5)
        error = {row["curve"]: row["error"] for row in rows if row["bandwidth"] == width and row["x"] is None}
        holds &= error[KERNEL] < error[PRIVATE] < error[CONSTANT]
    first = {row["curve"]: row["error"] for row in reversed(rows) if row["error"] is not None}
    holds &= all(row["exact_epsilon"] == EPSILON for row in rows if row["curve"] == PRIVATE)
    sentence = (
        "the five components add up to the density; publishing such a curve protects nothing (exact epsilon infinite), "
        f"and a private one of five claims, at epsilon {EPSILON:g}, is less distant than the constant "
        f"at every bandwidth tried (ISE {first[PRIVATE]:.3g} against {first[CONSTANT]:.3g} at h = "
        f"{rows[0]['bandwidth']:g})."
    )
    return Verdict("reproduced", sentence, holds)
