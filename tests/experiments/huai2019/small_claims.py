"""Small tables of claims for the tests of synthesis, and a kernel's density written plainly."""

import numpy as np
from hypothesis import strategies as st

from crowdveil.synthesis.original_claims import Claims

SQRT_5 = 5**0.5


def plain_density(name: str, z: float) -> float:
    """Density of a kernel of mean 0 and variance 1, straight from the textbook."""
    if name == "gaussian":
        return float(np.exp(-z * z / 2) / np.sqrt(2 * np.pi))
    return 0.75 * (1 - z * z / 5) / SQRT_5 if abs(z) < SQRT_5 else 0.0


def one_task(values: list[float]) -> Claims:
    """One task, one claim per worker."""
    return Claims.from_arrays(
        ["t"] * len(values), range(len(values)), values, bounds=(min(values) - 1, max(values) + 1)
    )


@st.composite
def small_claims(draw: st.DrawFn, *, max_tasks: int = 4, max_workers: int = 6) -> Claims:
    """Draw claims on a few tasks of different degree, some of them equal, some far away."""
    number = st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0, 40.0]) | st.floats(-5, 5, allow_nan=False, width=32)
    workers = range(draw(st.integers(1, max_workers)))
    rows = [
        (task, worker, draw(number))
        for task in range(draw(st.integers(1, max_tasks)))
        for worker in workers
        if draw(st.booleans())
    ]
    return Claims.from_arrays(
        [row[0] for row in rows],
        [row[1] for row in rows],
        [row[2] for row in rows],
        tasks=list(range(max_tasks)),
        workers=list(range(max_workers)),
        bounds=(-50, 50),
    )
