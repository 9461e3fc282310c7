"""Theorem 1: privacy of Laplace noise whose scale is the size of the domain, where the range decides."""

from experiments.papers.exhibit import Configuration, Row, Verdict
from experiments.theory.published_bounds import laplace_exact_epsilon

from crowdveil import Laplace, Scale

PRINTED = "LP as printed"
DOMAINS: dict[str, tuple[float, ...]] = {
    "integers 0 to 9": tuple(range(10)),
    "integers 0 to 4": tuple(range(5)),
    "0 and 100": (0.0, 100.0),
}


def measure(configuration: Configuration) -> list[Row]:
    """Return the exact epsilon per cell: range of the domain over scale of the noise; and that of our mechanism."""
    values = DOMAINS[configuration["domain"]]
    claimed, width = configuration["claimed_epsilon"], max(values) - min(values)
    exact = laplace_exact_epsilon(claimed, value_range=width, domain_size=len(values))
    domain: Row = {"domain": configuration["domain"], "domain_size": len(values), "domain_range": width}
    ours = Laplace(alphabet=Scale(values[0], values[-1], values[1] - values[0]), epsilon=claimed)
    found = {PRINTED: exact, "laplace (crowdveil)": ours.guarantee.epsilon}
    return [
        {"mechanism": name, **domain, "claimed_epsilon": claimed, "exact_epsilon": loss} for name, loss in found.items()
    ]


def verdict(rows: list[Row]) -> Verdict:
    """Return that the theorem holds for consecutive integers and fails for a wide domain."""
    printed = [row for row in rows if row["mechanism"] == PRINTED]
    exact = {(row["domain"], row["claimed_epsilon"]): row["exact_epsilon"] for row in printed}
    holds = all((loss <= claimed) == (domain != "0 and 100") for (domain, claimed), loss in exact.items())
    ratios = {domain: loss / claimed for (domain, claimed), loss in exact.items()}
    as_said = abs(ratios["integers 0 to 9"] - 0.9) < 1e-3 and abs(ratios["0 and 100"] - 50) < 1e-3
    sentence = (
        "a scale of |Gamma| / epsilon is safe for consecutive integers (0.9 of the claim on 0 to 9), but not "
        "as a rule: on the domain {0, 100} the exact epsilon is 50 times the claim, since the range decides; "
        "crowdveil scales the noise by the range."
    )
    ours = all(row["exact_epsilon"] <= row["claimed_epsilon"] for row in rows if row not in printed)
    return Verdict("reproduced in part", sentence, holds and ours and as_said)
