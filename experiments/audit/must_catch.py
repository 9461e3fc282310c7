"""False claims that an audit must refute, as functions that are drawn.

Each function has the defect of a real program, or a usual mistake; `broken` describes them.
"""

import math
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from experiments.audit import broken, commands
from experiments.audit.bounds import Row, row_of

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.mechanisms import MatrixFactorizationPublished, Mechanism, RandomizedResponse, TwoLayer
from crowdveil.privacy.audit.black_box import Pair
from crowdveil.privacy.audit.stated_claims import audit_pairs
from crowdveil.privacy.loss_distribution import channel_profile, composed_epsilon
from crowdveil.privacy.shuffling import shuffled_cell_guarantee
from crowdveil.randomness import seeded

SOURCE = seeded(secrets.randbits(63))
YES_NO = Categories(("no", "yes"))
USES, RESPONSE_EPSILON = 50, 1.7918
CELLS, ANSWERED = 20, 4
BATCH, SHUFFLED_EPSILON, SHUFFLED_DELTA = 40, 2.0, 0.01


def _reports(mechanism: Mechanism, answers: list[int | None]) -> Any:
    null = mechanism.alphabet.size
    return mechanism.perturb(np.array([null if answer is None else answer for answer in answers]), SOURCE)


matrix_factorization = partial(
    _reports, MatrixFactorizationPublished(alphabet=Scale(0, 9), epsilon=1.0, tasks=8, dimensions=3, ridge=1e-6)
)
two_layer = partial(_reports, TwoLayer.as_published(alphabet=YES_NO, epsilon=1.0, participation="public", answers=50))
unary_encoding = broken.unary_encoding(SOURCE, labels=4, epsilon=1.0)
floating_point_laplace = broken.floating_point_laplace(SOURCE, high=9, epsilon=1.0)
length_leak = broken.length_leak(SOURCE, epsilon=1.0)
wrong_denominator = broken.wrong_denominator(SOURCE, labels=4, epsilon=1.0)
repeated_response = broken.repeated_response(SOURCE, uses=USES, epsilon=RESPONSE_EPSILON)
visible_failures = broken.visible_failures(SOURCE, claims=6)
task_list_from_claims = broken.task_list_from_claims(SOURCE, epsilon=1.0)
full_precision_candidates = broken.full_precision_candidates(SOURCE, bandwidth=50)
cells_dropped = broken.repeated_response(SOURCE, uses=CELLS, epsilon=1.0)
shuffler_keeps_order = broken.shuffled_reports(SOURCE, epsilon=SHUFFLED_EPSILON, reports=BATCH, keeps_order=True)
batch_of_one = broken.shuffled_reports(SOURCE, epsilon=SHUFFLED_EPSILON, reports=1, keeps_order=False)


@dataclass(frozen=True, slots=True)
class FalseClaim:
    """False claim about a function of this module, with neighbouring inputs that show it.

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
        found: Callable[[Any], Any] = globals()[self.name]
        return found


def false_claims() -> list[FalseClaim]:
    """Return all false claims; those of accounts are computed with the mistake."""
    nobody, zeros = [None] * 8, [0] * 50
    response = RandomizedResponse(alphabet=YES_NO, epsilon=1.0, participation="public").channel()
    answered = composed_epsilon([(channel_profile(response), ANSWERED)], 1e-6)
    channel = RandomizedResponse(alphabet=YES_NO, epsilon=SHUFFLED_EPSILON, participation="public").channel()
    batch = shuffled_cell_guarantee(channel, reports=BATCH, delta=SHUFFLED_DELTA).epsilon
    density = math.log(1 + 200 * 0.5 / (50 * math.sqrt(2 * math.pi)))
    accountant = accounted_epsilon(USES)
    shuffled_claim = {"epsilon": batch, "delta": SHUFFLED_DELTA, "draws": 2000}
    failures = {"epsilon": 1 + math.log1p(4), "delta": 6 * math.exp(-4), "draws": 600}
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
        result = audit_pairs(claim.title, [pair], epsilon=claim.epsilon, delta=claim.delta, draws=claim.draws)
        yield row_of(f"`{claim.name}`: {claim.title}", result, claim.draws, exact=math.inf)
    yield from commands.measured_leaks()
