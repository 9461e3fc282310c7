"""Figure 1: density of the product of n flip probabilities from U(0, b), the paper's error rate change."""

import math

import numpy as np
from experiments.papers.exhibit import Configuration, Row, Verdict, standard_error
from experiments.papers.li2018.truth_discovery import Numbers
from experiments.theory.published_bounds import smaller_change_probability

BINS = 20


def product_density(product: Numbers, users: int, high: float) -> Numbers:
    """Return f(product) = ln(b^n / product)^(n-1) / (b^n (n-1)!) on (0, b^n], of n = `users` draws from U(0, b)."""
    top = high**users
    return np.asarray(np.log(top / product) ** (users - 1) / (top * math.factorial(users - 1)))


def product_distribution(product: Numbers, users: int, high: float) -> Numbers:
    """Return P(product of the draws <= `product`), the integral of `product_density`, for products in (0, b^n]."""
    fraction = product / high**users
    terms = [(-np.log(fraction)) ** j / math.factorial(j) for j in range(users)]
    return np.asarray(fraction * np.sum(terms, axis=0))


def measure(step: Configuration) -> list[Row]:
    """Return one row per bin: the mean density over the bin, and the share of draws in it."""
    users, high, draws = step["users"], step["high"], step["draws"]
    products = (np.random.default_rng([step["seed"], users]).random((draws, users)) * high).prod(axis=1)
    edges = np.linspace(0, high**users, BINS + 1)
    below = np.concatenate(([0.0], product_distribution(edges[1:], users, high)))
    counts, _ = np.histogram(products, edges)
    constant = (high / 2) ** users
    shared = {
        "one_layer_product": constant,
        "drawn_mean": float(products.mean()),
        "standard_error": standard_error(products),
        "smaller_probability": smaller_change_probability(users),
        "drawn_smaller": float((products < constant).mean()),
        "draws": draws,
    }
    width = edges[1]
    return [
        {"users": users, "high": high, "product": float(left + width / 2), "density": float(mass / width)}
        | {"drawn_density": float(count / draws / width)}
        | shared
        for left, mass, count in zip(edges, np.diff(below), counts, strict=False)
    ]


def verdict(rows: list[Row]) -> Verdict:
    """Return that the density is right and its mean is one-layer's product."""
    widths = {(r["users"], r["high"]): r["high"] ** r["users"] / BINS for r in rows}
    gaps = [abs(r["density"] - r["drawn_density"]) * widths[r["users"], r["high"]] for r in rows]
    means = [abs(r["drawn_mean"] - r["one_layer_product"]) < 4 * r["standard_error"] for r in rows]
    two = next(r["smaller_probability"] for r in rows if r["users"] == 2)
    draws = min(r["draws"] for r in rows)
    sentence = (
        f"the density agrees with {draws:,} draws (largest difference of a bin's probability {max(gaps):.4f}), and a "
        f"product below one-layer's (b / 2)^n has probability {two:.3f} for two users. But the mean product equals "
        "(b / 2)^n, in every setting here within noise: the figure shows no advantage of two-layer in the mean."
    )
    return Verdict(
        "reproduced but trivial", sentence, max(gaps) < 4 * 0.5 / math.sqrt(draws) and all(means) and two > 0.5
    )
