"""Cases of the table of audits: every registered mechanism, rounds, synthesis and whole commands' outputs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from experiments.rows import read_rows, write_rows
from numpy.typing import NDArray

from crowdveil.campaign.statement.claims import Audit, audit_claim_by_draws, audit_mechanism
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.rounding import format_bound, format_delta
from crowdveil.mechanisms import (
    Designed,
    Laplace,
    MatrixFactorization,
    Mechanism,
    OneLayer,
    QuantizedResponse,
    RandomizedResponse,
    TwoLayer,
)
from crowdveil.privacy.audit.black_box import Pair
from crowdveil.privacy.audit.exact_loss import Neighbours
from crowdveil.published import MatrixFactorizationPublished, SunTwoLayer
from crowdveil.randomness import secure
from crowdveil.synthesis.discrete_noise import noisy_counts
from crowdveil.synthesis.original_claims import Claims, scaled_claims
from crowdveil.synthesis.private.histogram import Histogram, bin_counts
from crowdveil.synthesis.private.pooled_shape import PooledShape

RESULTS = Path(__file__).parent / "results"
BOUNDS = "bounds.csv"
YES_NO, GRID = Categories(("no", "yes")), Scale(0, 4)
CELL_DRAWS, VECTOR_DRAWS, COUNT_DRAWS, RELEASES = 1_000_000, 40_000, 400_000, 1_000
COUNTS = "`histogram`, its noisy counts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Audit of one case.

    Attributes:
        name: mechanism or method, with its settings.
        neighbours: what differs between the inputs.
        claimed, exact: epsilon of the source's claim, and the proved one; infinity is none.
        bound: lower bound from draws.
        draws: draws of each input.
        refuted: whether the claim is refuted.
        event: event that gives the bound.
        claimed_delta, delta_bound: claimed delta, and the lower bound on it at the claimed epsilon.
    """

    name: str
    neighbours: str
    claimed: float
    exact: float
    bound: float
    draws: int
    refuted: bool
    event: str
    claimed_delta: float = 0.0
    delta_bound: float = 0.0

    @property
    def verdict(self) -> str:
        """Whether the claim is refuted, in a word."""
        return "refuted" if self.refuted else "stands"


def mechanisms() -> Iterator[tuple[str, Mechanism, int, Neighbours | None, int]]:
    """Yield name, mechanism, cells of a worker, neighbours and rounds of every case."""
    response = RandomizedResponse(alphabet=YES_NO, epsilon=1.0)
    yield "`randomized-response`", response, 1, None, 1
    yield "`randomized-response`, 3 rounds", response, 1, None, 3
    yield "`randomized-response`, 4 cells", response, 4, "worker", 1
    yield "`one-layer`", OneLayer(alphabet=YES_NO, epsilon=1.0), 1, None, 1
    yield "`laplace`", Laplace(alphabet=GRID, epsilon=1.0), 1, None, 1
    yield "`quantized-response`", QuantizedResponse(alphabet=GRID, epsilon=1.0, cuts=(2,)), 1, None, 1
    yield (
        "`designed`",
        Designed.from_channel(QuantizedResponse(alphabet=Scale(0, 4), epsilon=1.0, cuts=(1,)).channel()),
        1,
        None,
        1,
    )
    published = TwoLayer.as_published(alphabet=YES_NO, epsilon=1.0, participation="public", answers=50)
    yield "`two-layer` as published, 50 cells", published, 50, None, 1
    yield "`two-layer`, 10 cells", TwoLayer.widest_for_cell_epsilon(alphabet=YES_NO, epsilon=1.0), 10, None, 1
    yield "`sun-two-layer`, 10 cells", SunTwoLayer(alphabet=YES_NO, epsilon=1.0, answers=10), 10, None, 1
    yield "`matrix-factorization`, 3 tasks", MatrixFactorization(alphabet=GRID, epsilon=1.0), 3, None, 1
    factors = MatrixFactorizationPublished(alphabet=Scale(0, 9), epsilon=1.0, tasks=8, dimensions=3, ridge=1e-6)
    yield "`matrix-factorization-published`, 8 tasks", factors, 8, "participation", 1


def measured() -> Iterator[Row]:
    """Yield the audits of all cases."""
    for name, mechanism, tasks, neighbours, rounds in mechanisms():
        single = mechanism.channel() is not None and neighbours != "worker" and rounds == 1
        draws = CELL_DRAWS if single else VECTOR_DRAWS
        yield row_of(name, audit_mechanism(mechanism, neighbours, tasks=tasks, rounds=rounds, draws=draws), draws)
    for name, method, first, second in releases():
        moved = "one claim moved" if second else "one claim against none"
        pair = Pair.of_function(release_of(method), first, second, name=moved)
        yield row_of(name, audit_claim_by_draws(name, [pair], epsilon=1.0, draws=RELEASES), RELEASES, exact=1.0)
    yield row_of(
        COUNTS, audit_claim_by_draws(COUNTS, [pair_of_counts()], epsilon=1.0, draws=COUNT_DRAWS), COUNT_DRAWS, exact=1.0
    )


def pair_of_counts() -> Pair:
    """Return the pair of noisy counts of `histogram`, from which everything else follows; one claim moves."""

    def draw(value: float) -> Callable[[int], NDArray[np.float64]]:
        def counts(draws: int) -> NDArray[np.float64]:
            names = [str(number) for number in range(draws)]
            claims = Claims.from_arrays(names, np.zeros(draws), np.full(draws, value), bounds=(0, 100), tasks=names)
            scaled = scaled_claims(claims, np.arange(draws), np.ones(draws, dtype=bool))
            return noisy_counts(bin_counts(scaled, 8), Fraction(1), secure())[0]

        return counts

    return Pair("one claim moved", draw(1.0), draw(99.0))


def releases() -> Iterator[tuple[str, Histogram | PooledShape, list[float], list[float]]]:
    """Yield name, method and the claims about one task that differ in one claim."""
    yield "`histogram`", Histogram(epsilon=1.0, records=3), [50.0], [90.0]
    hidden = Histogram(epsilon=1.0, records=3, participation="protected", expected_claims=2)
    yield "`histogram`, participation protected", hidden, [50.0], []
    yield "`pooled-shape`", PooledShape(epsilon=1.0, records=3), [50.0, 50.0], [50.0, 90.0]


def release_of(method: Histogram | PooledShape) -> Callable[[Sequence[float]], NDArray[np.float64]]:
    """Return the function from claims about one task to the released numbers."""

    def release(values: Sequence[float]) -> NDArray[np.float64]:
        names = ["t"] * len(values)
        claims = Claims.from_arrays(
            names, np.arange(len(values)), list(values), bounds=(0, 100), tasks=["t"], workers=range(2)
        )
        return method.release(claims, secure()).value

    return release


def row_of(name: str, result: Audit, draws: int, *, exact: float | None = None) -> Row:
    """Return the row of an audit by draws; `exact` is the proved epsilon where the audit does not know it."""
    found = result.draws.finding
    return Row(
        name=name,
        neighbours=result.neighbours,
        claimed=result.claimed_epsilon,
        exact=result.exact if result.exact is not None else exact or 0.0,
        bound=found.epsilon,
        draws=draws,
        refuted=result.refuted,
        event=found.event,
        claimed_delta=result.claimed_delta,
        delta_bound=found.delta if result.claimed_delta else 0.0,
    )


def write(rows: Iterable[Any], name: str = BOUNDS, kind: type = Row) -> None:
    """Write the rows of a kind as CSV."""
    with open(RESULTS / name, "w", newline="", encoding="utf-8") as stream:
        write_rows(stream, kind, rows)


def read(name: str = BOUNDS, kind: type = Row) -> list[Any]:
    """Return the rows of a CSV file."""
    return read_rows(RESULTS / name, kind)


def table(rows: Sequence[Row]) -> str:
    """Return the Markdown table of the rows; bounds are rounded down, exact losses up."""
    lines = []
    for row in rows:
        exact = "none" if row.exact == float("inf") else format_bound(row.exact, 4)
        numbers = format_bound(row.claimed, 4), exact, _rounded_down(row.bound), f"{row.draws:,}"
        lines.append((row.name, row.neighbours, *numbers, row.verdict))
    return _markdown(("case", "neighbours", "claim", "exact", "lower bound", "draws", "verdict"), lines)


def short_table(rows: Sequence[Row], kind: str, *, with_events: bool = False) -> str:
    """Return the Markdown table of rows without an exact epsilon; the bound is on delta if a delta is claimed."""
    lines = []
    for row in rows:
        claim, bound = format_bound(row.claimed, 4), _rounded_down(row.bound)
        if row.claimed_delta:
            claim, bound = (
                f"{claim}, delta {format_delta(row.claimed_delta)}",
                f"delta {_rounded_down(row.delta_bound)}",
            )
        last = row.event.replace("|", "/") if with_events else row.verdict
        lines.append((row.name, claim, bound, f"{row.draws:,}", last))
    return _markdown((kind, "claim", "lower bound", "draws", "event" if with_events else "verdict"), lines)


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows))


def _rounded_down(bound: float) -> str:
    return f"{int(bound * 1000) / 1000:.3f}"
