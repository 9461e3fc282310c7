"""Functions that claim epsilon and do not keep it; each has the defect of a real program, or a usual mistake."""

import math
from collections.abc import Callable

import numpy as np
from experiments.papers.huai2019.algorithm1.huai_published import HuaiPublished
from experiments.papers.huai2019.algorithm1.kernel_density import Bandwidth
from experiments.papers.huai2019.algorithm1.weights import Weighting
from numpy.typing import NDArray

from crowdveil.randomness import Seeded
from crowdveil.synthesis.claims import Claims
from crowdveil.synthesis.private.histogram import Histogram


def unary_encoding(source: Seeded, *, labels: int, epsilon: float) -> Callable[[int], NDArray[np.int64]]:
    """Symmetric unary encoding of pure-ldp before 1.2.0: the line that clears the bit of the label is missing."""
    keep = math.exp(epsilon / 2) / (math.exp(epsilon / 2) + 1)

    def perturb(label: int) -> NDArray[np.int64]:
        bits = (source.generator.random(labels) < 1 - keep).astype(np.int64)
        if source.generator.random() < keep:
            bits[label] = 1
        return bits

    return perturb


def floating_point_laplace(source: Seeded, *, high: float, epsilon: float) -> Callable[[float], float]:
    """Laplace noise in double precision: the last bits of the sum depend on the answer (Mironov 2012)."""
    return lambda answer: answer + source.generator.laplace(scale=high / epsilon)


def shuffled_reports(
    source: Seeded, *, epsilon: float, reports: int, keeps_order: bool
) -> Callable[[int], NDArray[np.int64]]:
    """Batch of randomized responses; a shuffler that keeps the order sends the first worker's report first.

    The input is the first worker's bit; all others have 0.
    """
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))

    def release(bit: int) -> NDArray[np.int64]:
        bits = (source.generator.random(reports) > keep).astype(np.int64)
        bits[0] ^= bit
        return bits if keeps_order else source.generator.permutation(bits)

    return release


def length_leak(source: Seeded, *, epsilon: float) -> Callable[[list[int]], list[int]]:
    """Randomized response of every bit of a list; the length of the report is that of the input."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    return lambda bits: [bit if source.generator.random() < keep else 1 - bit for bit in bits]


def wrong_denominator(source: Seeded, *, labels: int, epsilon: float) -> Callable[[int], int]:
    """k-ary randomized response that divides by e^epsilon + k - 2, not by e^epsilon + k - 1."""
    keep = math.exp(epsilon) / (math.exp(epsilon) + labels - 2)

    def perturb(label: int) -> int:
        kept = source.generator.random() < keep
        return label if kept else (label + int(source.generator.integers(1, labels))) % labels

    return perturb


def repeated_response(source: Seeded, *, uses: int, epsilon: float) -> Callable[[int], NDArray[np.int64]]:
    """Randomized response of the same bit, `uses` times."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    return lambda bit: np.where(source.generator.random(uses) < keep, bit, 1 - bit)


def visible_failures(source: Seeded, *, claims: int) -> Callable[[float], NDArray[np.float64]]:
    """Records of Huai et al., one attempt each, with public weights and bandwidth; who fails the test is missing.

    The input is one claim; the others, `claims` - 1, are 10.
    """
    method = HuaiPublished(
        records=30,
        bandwidth=Bandwidth(rule="given", width=1.0),
        weighting=Weighting(kind="uniform"),
        attempts=1,
    )

    def release(claim: float) -> NDArray[np.float64]:
        values = [10.0] * (claims - 1) + [claim]
        return method.release(Claims.from_arrays(["t"] * claims, range(claims), values, bounds=(0, 100)), source).value

    return release


def task_list_from_claims(source: Seeded, *, epsilon: float) -> Callable[[list[str]], dict[str, NDArray[np.float64]]]:
    """Private histograms with protected participation; the "public" list of tasks holds those with a claim.

    The input is the list of tasks on which one worker has a claim; another worker has one on task a.
    """
    method = Histogram(epsilon=epsilon, participation="protected", expected_claims=2, records=2)

    def release(tasks: list[str]) -> dict[str, NDArray[np.float64]]:
        listed, values = ["a", *tasks], [50.0] * (len(tasks) + 1)
        workers = ["other", *["worker"] * len(tasks)]
        claims = Claims.from_arrays(listed, workers, values, bounds=(0, 100), tasks=sorted(set(listed)))
        made = method.release(claims, source)
        return {str(name): made.value[made.task == code] for code, name in enumerate(claims.tasks)}

    return release


def full_precision_candidates(source: Seeded, *, bandwidth: float) -> Callable[[float], float]:
    """A claim plus kernel noise, or a public draw, each with probability 1/2, as a float of full precision.

    On the real numbers the density is at least 1/200 on 0..100 and at most 1/200 + 1 / (2 bandwidth sqrt(2 pi)).
    """

    def release(claim: float) -> float:
        while True:
            candidate = claim + bandwidth * source.generator.standard_normal()
            value = 100 * source.generator.random() if source.generator.random() < 0.5 else candidate
            if 0 <= value <= 100:
                return float(value)

    return release
