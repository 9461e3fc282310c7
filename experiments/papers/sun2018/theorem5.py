"""Theorem 5: bound on the error of matrix factorization, below what its row space allows."""

import numpy as np
from experiments.papers.exhibit import Configuration, Exhibit, OpenParameter, Row, Size, Verdict
from experiments.papers.sun2018.accuracy import SEED_OF_REPORTS
from experiments.papers.sun2018.bounds import COLUMNS as BOUND_COLUMNS
from experiments.papers.sun2018.bounds import NOTES as BOUND_NOTES
from experiments.papers.sun2018.bounds import SCALE, draw, measured
from experiments.papers.sun2018.crowds import SunCrowd
from experiments.papers.sun2018.published import settings
from experiments.theory.published_bounds import factorization_error_bound, row_space_error_floor

from crowdveil.mechanisms import MatrixFactorizationPublished
from crowdveil.randomness import seeded
from crowdveil.simulate import numeric_crowd

COLUMNS = (*BOUND_COLUMNS, "floor")
NOTES = (
    *BOUND_NOTES,
    "`floor` is the error below which no vector u V falls, whatever the noise; the mean over the repeats. Truths are "
    "uniform on 0 to 9 and answers have sigma 1, half of the cells are answered; the best constant is 4.5.",
)
CLAIMS: dict[Size, tuple[float, ...]] = {"quick": (1.0,), "default": (1.0, 5.0), "full": (0.5, 1.0, 2.0, 5.0)}
CROWDS: dict[Size, tuple[int, int, int, int]] = {
    "quick": (60, 200, 20, 2),
    "default": (100, 1000, 100, 2),
    "full": (500, 1000, 100, 5),
}
"""Workers, tasks, rank d and repeats."""
PROFILES = ("gaussian", "uniform")


def configurations(size: Size) -> list[Configuration]:
    """Return one step per epsilon and distribution of V."""
    workers, tasks, rank, repeats = CROWDS[size]
    base: Configuration = {"mechanism": "MF", "workers": workers, "tasks": tasks, "repeats": repeats, "seed": 1}
    settled = {name: base | settings("MF", dimensions=rank, profiles=name, ridge=1e-6) for name in PROFILES}
    return [
        settled[name] | {"case": f"{name} V", "claimed_epsilon": claimed}
        for claimed in CLAIMS[size]
        for name in PROFILES
    ]


def crowd_of(configuration: Configuration, seed: int) -> SunCrowd:
    """Return equal workers with sigma 1 and truths uniform on 0 to 9."""
    crowd = numeric_crowd(
        workers=int(configuration["workers"]), tasks=int(configuration["tasks"]), sparsity=0.5, sigmas=(1.0,),
        truth=lambda generator, count: generator.uniform(0, 9, count), source=seeded(seed),
    )  # fmt: skip
    return SunCrowd(crowd.answers, crowd.truth, (4.5, 2.6))


def floor(configuration: Configuration, seed: int) -> float:
    """Return the least error of any vector in the row space of the V of a repeat."""
    mechanism = MatrixFactorizationPublished(
        alphabet=SCALE, epsilon=1.0, tasks=int(configuration["tasks"]), dimensions=int(configuration["dimensions"]),
        profiles="uniform" if configuration["profiles"] == "uniform" else "gaussian",
        profile_seed=seed + SEED_OF_REPORTS,
    )  # fmt: skip
    return row_space_error_floor(mechanism.profile_table, crowd_of(configuration, seed).truth)


def measure(configuration: Configuration) -> list[Row]:
    """Return bound, measured error and floor of one case; workers have equal quality 1 / m."""
    first, repeats = int(configuration["seed"]), int(configuration["repeats"])
    scale = SCALE.size / float(configuration["claimed_epsilon"])
    bound = factorization_error_bound(
        largest_quality=1.0, workers=1, dimensions=int(configuration["dimensions"]), noise_scale=scale,
        tasks=int(configuration["tasks"]),
    )  # fmt: skip
    (row,) = measured(configuration, lambda seed: crowd_of(configuration, seed), lambda _: bound, 4.5)
    floors = [floor(configuration, seed) for seed in range(first, first + repeats)]
    return [row | {"floor": float(np.mean(floors))}]


def verdict(rows: list[Row]) -> Verdict:
    """Return that the measured error exceeds the bound and the constant."""
    example = [row for row in rows if row["claimed_epsilon"] == 1]
    above = all(row["error"] > row["bound"] for row in rows) and all(row["error"] >= row["floor"] for row in rows)
    gaussian = example[0]
    errors = " and ".join(f"{row['error']:.2f} ({row['case']})" for row in example)
    sentence = (
        f"at epsilon 1 the bound is {gaussian['bound']:.2f}, the measured errors are {errors}, and with a Gaussian V "
        f"no estimate in its row space has an error below {gaussian['floor']:.2f}; the constant 4.5 errs by "
        f"{gaussian['constant']:.2f}."
    )
    return Verdict("not reproduced", sentence, above and gaussian["floor"] > gaussian["bound"])


EXHIBIT = Exhibit(
    name="sun2018/theorem5",
    title="Error bound of matrix factorization",
    source="Sun et al. 2018, Theorem 5",
    columns=COLUMNS,
    configurations=configurations,
    measure=measure,
    paper=({"tasks": 1000, "rank": 100, "claimed_epsilon": 1, "bound": 1.8, "read_off": "printed"},),
    draw=draw,
    verdict=verdict,
    open_parameters=(
        OpenParameter("distribution of V", "Gaussian", "Gaussian, uniform", "both exceed the bound"),
        OpenParameter("number of workers", "100", "60 to 500", "little: the row space limits the error"),
        OpenParameter("truths", "uniform on 0 to 9", "none", "half 0, half 9 with unit profiles gives a floor of 4.5"),
    ),
    notes=NOTES,
)
