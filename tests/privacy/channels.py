"""Small channels for tests of shuffling, among them tables on which other amplification bounds fail."""

import numpy as np

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.mechanisms import Laplace, QuantizedResponse, RandomizedResponse


def table(probabilities) -> Channel:
    """Integer channel nearest to a table of positive probabilities, participation public."""
    rows = np.array(probabilities, dtype=float)
    names = Categories(tuple(f"a{k}" for k in range(len(rows))))
    outputs = tuple(f"y{k}" for k in range(rows.shape[1]))
    return Channel.from_probabilities(names, "public", outputs, rows / rows.sum(axis=1, keepdims=True), None)


def randomized_response(symbols: int, epsilon: float) -> Channel:
    """Randomized response over `symbols` labels, participation public."""
    names = Categories(tuple(f"a{k}" for k in range(symbols)))
    return RandomizedResponse(alphabet=names, epsilon=epsilon, participation="public").channel()


SMALL = {
    "2-rr": randomized_response(2, 1.0),
    "3-rr": randomized_response(3, 1.5),
    "geometric": Laplace(alphabet=Scale(0, 2), epsilon=1.2, participation="public").channel(),
    "quantised": QuantizedResponse(alphabet=Scale(0, 2), epsilon=1.0, participation="public", cuts=(1,)).channel(),
    "asymmetric": table([[0.9, 0.1], [0.3, 0.7]]),
    "rest": table([[0.3, 0.2, 0.5], [0.2, 0.3, 0.5], [0.45, 0.45, 0.1]]),
    "rare rest": table([[0.30, 0.25, 0.45], [0.25, 0.30, 0.45], [0.49, 0.49, 0.02]]),
    "null": RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=1.0).channel(),
    "random 1": table(np.random.default_rng(1).uniform(0.05, 1, (3, 3))),
    "random 2": table(np.random.default_rng(2).uniform(0.05, 1, (3, 3))),
    "random 3": table(np.random.default_rng(3).uniform(0.05, 1, (2, 3))),
}
"""Two or three inputs and outputs each; `rest` and `rare rest` refute the variation-ratio pair."""
