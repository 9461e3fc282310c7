"""False claims that an audit must refute, as functions that are drawn.

Each function claims epsilon and does not keep it; it has the defect of a real program, or a usual mistake.
"""

import math
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from experiments.audit import commands
from experiments.audit.bounds import YES_NO, Row, row_of
from experiments.papers.huai2019.algorithm1.huai_published import HuaiPublished
from experiments.papers.huai2019.algorithm1.kernel_density import Bandwidth
from experiments.papers.huai2019.algorithm1.weights import Weighting
from numpy.typing import NDArray

from crowdveil.campaign.statement.claims import audit_claim_by_draws
from crowdveil.channels.alphabet import Scale
from crowdveil.mechanisms import Mechanism, RandomizedResponse, TwoLayer
from crowdveil.privacy.audit.black_box import Pair
from crowdveil.privacy.loss_distribution import channel_profile, composed_epsilon
from crowdveil.privacy.shuffling import shuffled_cell_guarantee
from crowdveil.published import MatrixFactorizationPublished
from crowdveil.randomness import seeded
from crowdveil.synthesis.original_claims import Claims
from crowdveil.synthesis.private.histogram import Histogram

SOURCE = seeded(secrets.randbits(63))
USES, RESPONSE_EPSILON = 50, 1.7918
CELLS, ANSWERED = 20, 4
BATCH, SHUFFLED_EPSILON, SHUFFLED_DELTA = 40, 2.0, 0.01


def _reports(mechanism: Mechanism, answers: list[int | None]) -> Any:
    null = mechanism.alphabet.size
    return mechanism.perturb(np.array([null if answer is None else answer for answer in answers]), SOURCE)


def unary_encoding(*, labels: int, epsilon: float) -> Callable[[int], NDArray[np.int64]]:
    """Symmetric unary encoding of pure-ldp before 1.2.0: the line that clears the bit of the label is missing."""
    keep = math.exp(epsilon / 2) / (math.exp(epsilon / 2) + 1)

    def perturb(label: int) -> NDArray[np.int64]:
        bits = (SOURCE.generator.random(labels) < 1 - keep).astype(np.int64)
        if SOURCE.generator.random() < keep:
            bits[label] = 1
        return bits

    return perturb


def floating_point_laplace(*, high: float, epsilon: float) -> Callable[[float], float]:
    """Laplace noise in double precision: the last bits of the sum depend on the answer (Mironov 2012)."""
    return lambda answer: answer + SOURCE.generator.laplace(scale=high / epsilon)


def shuffled_reports(*, epsilon: float, reports: int, keeps_order: bool) -> Callable[[int], NDArray[np.int64]]:
    """Batch of randomized responses; a shuffler that keeps the order sends the first worker's report first.

    The input is the first worker's bit; all others have 0.
    """
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))

    def release(bit: int) -> NDArray[np.int64]:
        bits = (SOURCE.generator.random(reports) > keep).astype(np.int64)
        bits[0] ^= bit
        return bits if keeps_order else SOURCE.generator.permutation(bits)

    return release


def length_leak(*, epsilon: float) -> Callable[[list[int]], list[int]]:
    """Randomized response of every bit of a list; the length of the report is that of the input."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    return lambda bits: [bit if SOURCE.generator.random() < keep else 1 - bit for bit in bits]


def wrong_denominator(*, labels: int, epsilon: float) -> Callable[[int], int]:
    """k-ary randomized response that divides by e^epsilon + k - 2, not by e^epsilon + k - 1."""
    keep = math.exp(epsilon) / (math.exp(epsilon) + labels - 2)

    def perturb(label: int) -> int:
        kept = SOURCE.generator.random() < keep
        return label if kept else (label + int(SOURCE.generator.integers(1, labels))) % labels

    return perturb


def repeated_response(*, uses: int, epsilon: float) -> Callable[[int], NDArray[np.int64]]:
    """Randomized response of the same bit, `uses` times."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    return lambda bit: np.where(SOURCE.generator.random(uses) < keep, bit, 1 - bit)


def visible_failures(*, claims: int) -> Callable[[float], NDArray[np.float64]]:
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
        return method.release(Claims.from_arrays(["t"] * claims, range(claims), values, bounds=(0, 100)), SOURCE).value

    return release


def task_list_from_claims(*, epsilon: float) -> Callable[[list[str]], dict[str, NDArray[np.float64]]]:
    """Private histograms with protected participation; the "public" list of tasks holds those with a claim.

    The input is the list of tasks on which one worker has a claim; another worker has one on task a.
    """
    method = Histogram(epsilon=epsilon, participation="protected", expected_claims=2, records=2)

    def release(tasks: list[str]) -> dict[str, NDArray[np.float64]]:
        listed, values = ["a", *tasks], [50.0] * (len(tasks) + 1)
        workers = ["other", *["worker"] * len(tasks)]
        claims = Claims.from_arrays(listed, workers, values, bounds=(0, 100), tasks=sorted(set(listed)))
        made = method.release(claims, SOURCE)
        return {str(name): made.value[made.task == code] for code, name in enumerate(claims.tasks)}

    return release


def full_precision_candidates(*, bandwidth: float) -> Callable[[float], float]:
    """A claim plus kernel noise, or a public draw, each with probability 1/2, as a float of full precision.

    On the real numbers the density is at least 1/200 on 0..100 and at most 1/200 + 1 / (2 bandwidth sqrt(2 pi)).
    """

    def release(claim: float) -> float:
        while True:
            candidate = claim + bandwidth * SOURCE.generator.standard_normal()
            value = 100 * SOURCE.generator.random() if SOURCE.generator.random() < 0.5 else candidate
            if 0 <= value <= 100:
                return float(value)

    return release


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "matrix_factorization": partial(
        _reports, MatrixFactorizationPublished(alphabet=Scale(0, 9), epsilon=1.0, tasks=8, dimensions=3, ridge=1e-6)
    ),
    "two_layer": partial(
        _reports, TwoLayer.as_published(alphabet=YES_NO, epsilon=1.0, participation="public", answers=50)
    ),
    "unary_encoding": unary_encoding(labels=4, epsilon=1.0),
    "floating_point_laplace": floating_point_laplace(high=9, epsilon=1.0),
    "length_leak": length_leak(epsilon=1.0),
    "wrong_denominator": wrong_denominator(labels=4, epsilon=1.0),
    "repeated_response": repeated_response(uses=USES, epsilon=RESPONSE_EPSILON),
    "visible_failures": visible_failures(claims=6),
    "task_list_from_claims": task_list_from_claims(epsilon=1.0),
    "full_precision_candidates": full_precision_candidates(bandwidth=50),
    "cells_dropped": repeated_response(uses=CELLS, epsilon=1.0),
    "shuffler_keeps_order": shuffled_reports(epsilon=SHUFFLED_EPSILON, reports=BATCH, keeps_order=True),
    "batch_of_one": shuffled_reports(epsilon=SHUFFLED_EPSILON, reports=1, keeps_order=False),
}
"""Functions that do not keep their claims, by name."""


@dataclass(frozen=True, slots=True)
class FalseClaim:
    """False claim about one of `FUNCTIONS`, with neighbouring inputs that show it.

    Attributes:
        title: the mistake.
        name: name of the function.
        first, second: inputs.
        epsilon, delta: claim.
        draws: draws of each input.
    """

    title: str
    name: str
    first: Any
    second: Any
    epsilon: float = 1.0
    delta: float = 0.0
    draws: int = 8000

    @property
    def function(self) -> Callable[[Any], Any]:
        """Function that is drawn."""
        return FUNCTIONS[self.name]


def false_claims() -> list[FalseClaim]:
    """Return all false claims; those of accounts are computed with the mistake."""
    nobody, zeros = [None] * 8, [0] * 50
    response = RandomizedResponse(alphabet=YES_NO, epsilon=1.0, participation="public").channel()
    answered = composed_epsilon([(channel_profile(response), ANSWERED)], 1e-6)
    channel = RandomizedResponse(alphabet=YES_NO, epsilon=SHUFFLED_EPSILON, participation="public").channel()
    batch = shuffled_cell_guarantee(channel, reports=BATCH, delta=SHUFFLED_DELTA).epsilon
    density = math.log(1 + 200 * 0.5 / (50 * math.sqrt(2 * math.pi)))
    accountant = accounted_epsilon(USES)
    shuffled_claim: dict[str, Any] = {"epsilon": batch, "delta": SHUFFLED_DELTA, "draws": 2000}
    failures: dict[str, Any] = {"epsilon": 1 + math.log1p(4), "delta": 6 * math.exp(-4), "draws": 600}
    return [
        FalseClaim(
            "published matrix factorization, participation",
            "matrix_factorization",
            [9, *nobody[1:]],
            nobody,
            draws=2000,
        ),
        FalseClaim("published two-layer, 50 answers", "two_layer", zeros, [1, *zeros[1:]], draws=20_000),
        FalseClaim("unary encoding without the line that clears a bit", "unary_encoding", 0, 1),
        FalseClaim("floating-point Laplace", "floating_point_laplace", 0.0, 9.0, draws=4000),
        FalseClaim("report as long as its input", "length_leak", [0, 1], [0, 1, 0], draws=400),
        FalseClaim("wrong denominator", "wrong_denominator", 0, 1),
        FalseClaim("accountant: 50 uses priced as one", "repeated_response", 0, 1, accountant, 1e-6, draws=400),
        FalseClaim("synthetic release with visible failures", "visible_failures", 10.0, 90.0, **failures),
        FalseClaim("task list from claims", "task_list_from_claims", ["b"], [], draws=100),
        FalseClaim("candidates of full precision", "full_precision_candidates", 0.0, 64.0, density, draws=40_000),
        FalseClaim("composition of answered cells only, 4 of 20", "cells_dropped", 0, 1, answered, 1e-6),
        FalseClaim("shuffler that keeps the order, batch of 40", "shuffler_keeps_order", 0, 1, **shuffled_claim),
        FalseClaim("batch of one with the claim of 40", "batch_of_one", 0, 1, **shuffled_claim),
    ]


def accounted_epsilon(uses: int) -> float:
    """Return epsilon of several randomized responses at delta 1e-6 by the accountant of dp_accounting."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    noise = 2 / (1 + math.exp(RESPONSE_EPSILON))
    event = dp_accounting.RandomizedResponseDpEvent(noise_parameter=noise, num_buckets=2)
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(event, uses)
    return float(accountant.get_epsilon(1e-6))


def measured() -> Iterator[Row]:
    """Yield the audits of all false claims."""
    for claim in false_claims():
        pair = Pair.of_function(claim.function, claim.first, claim.second)
        result = audit_claim_by_draws(claim.title, [pair], epsilon=claim.epsilon, delta=claim.delta, draws=claim.draws)
        yield row_of(f"`{claim.name}`: {claim.title}", result, claim.draws, exact=math.inf)
    yield from commands.measured_leaks()
