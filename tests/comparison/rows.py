"""Rows of comparisons for tests of pictures and tables, without a simulation."""

from crowdveil.comparison.trials import UNPROTECTED, Row

METHODS = (
    *("majority-vote", "dawid-skene", "hierarchical-dawid-skene", "one-coin", "ordinal-dawid-skene", "glad"),
    *("private-dawid-skene", "pooled-dawid-skene", "gold-majority-vote", "zero-based-skill", "mace", "ebcc"),
)
MECHANISMS = ("randomized-response", "matrix-factorization-published", "optimized-unary-encoding")


def made_row(
    mechanism: str,
    requested: float | None,
    method: str,
    error: float,
    *,
    exact: float | None = None,
    plain: float = 0.1,
) -> Row:
    """Return a row on 80 gold tasks; the exact epsilon is the requested one unless it is given."""
    return Row(
        crowd="crowd",
        mechanism=mechanism,
        requested=requested,
        claimed=requested,
        exact=requested if exact is None else exact,
        exact_worker=requested,
        unit="cell",
        participation="-" if requested is None else "protected",
        reason="",
        method=method if requested is None else f"{method} + channel",
        channel_used=requested is not None,
        error=error,
        error_name="error_rate",
        unprotected=plain,
        constant="no_1",
        constant_error=0.4,
        correlation=0.5,
        scored=80,
        reports=900,
        steps=10,
        converged=True,
    )


def made_rows(methods: int, mechanisms: int, epsilons: tuple[float, ...]) -> tuple[Row, ...]:
    """Return a row for each method on unprotected answers, and for each mechanism, epsilon and method."""
    names = METHODS[:methods]
    plain = [made_row(UNPROTECTED, None, name, 0.1) for name in names]
    private = [
        made_row(mechanism, epsilon, name, 0.1 + 0.3 / (1 + epsilon) + 0.01 * (place + shift))
        for shift, mechanism in enumerate(MECHANISMS[:mechanisms])
        for epsilon in epsilons
        for place, name in enumerate(names)
    ]
    return (*plain, *private)
