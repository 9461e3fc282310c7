"""Table 1: sizes of the data sets, with the error rates without protection that the text of section 7 gives."""

import numpy as np
from experiments.papers.exhibit import Configuration, Row, Verdict, standard_error
from experiments.papers.li2018.crowds import DUCHENNE, PEER, crowd_of, peer_grading
from experiments.papers.li2018.truth_discovery import WEIGHT_FUNCTIONS, Crowd, majority_vote, truth_discovery

SIZES = {DUCHENNE: (2134, 64, 17729, 159), PEER: (26, 72, 360, 26)}
QUANTITIES = ("questions", "users", "answers", "questions with known truth")
ACCURACY = {DUCHENNE: 0.76, PEER: 0.73}


def measure(configuration: Configuration) -> list[Row]:
    """Return the sizes of a crowd, the shares of answers, and the accuracies without protection."""
    name = configuration["crowd"]
    if "ability" in configuration:
        return _swept(configuration)
    crowds = [crowd_of(name, [seed]) for seed in range(configuration.get("crowds", 1))]
    first = crowds[0]
    sizes = (first.tasks, first.workers, len(first.task), len(first.gold))
    rows = [
        _row(name, *pair, printed=own)
        for pair, own in zip(zip(QUANTITIES, sizes, strict=True), SIZES[name], strict=True)
    ]
    rows.append(_row(name, "answers of a user, median", float(np.median(first.per_worker))))
    rows.append(_row(name, "answers of a user, largest", int(first.per_worker.max())))
    return [*rows, *_accuracies(name, "accuracy without protection", crowds, ACCURACY[name])]


def _swept(configuration: Configuration) -> list[Row]:
    """Return the accuracies of one worker model."""
    ability, concentration = configuration["ability"], configuration["concentration"]
    crowds = [
        peer_grading(seed, ability=ability, concentration=concentration) for seed in range(configuration["crowds"])
    ]
    name = f"accuracy, mean ability {ability:g}, concentration {concentration:g}"
    return _accuracies(configuration["crowd"], name, crowds, None)[:2]


def _accuracies(crowd: str, quantity: str, crowds: list[Crowd], printed: float | None) -> list[Row]:
    """Return the accuracies of majority vote, truth discovery by weight function, and the better constant."""
    found = {"majority vote": [1 - one.error_rate(majority_vote(one, one.answer)) for one in crowds]}
    for name, weight in WEIGHT_FUNCTIONS.items():
        found[f"truth discovery, g = {name}"] = [
            1 - one.error_rate(truth_discovery(one, one.answer, weight)[0]) for one in crowds
        ]
    found["best constant"] = [1 - one.constant for one in crowds]
    rows = [
        _row(crowd, quantity, float(np.mean(own)), name, standard_error(own), printed) for name, own in found.items()
    ]
    return [*rows[:-1], rows[-1] | {"printed": None}]


def _row(
    crowd: str,
    quantity: str,
    value: float,
    inference: str | None = None,
    spread: float | None = None,
    printed: float | None = None,
) -> Row:
    numbers = {"value": value, "standard_error": spread, "printed": printed}
    return {"crowd": crowd, "quantity": quantity, "inference": inference} | numbers


def verdict(rows: list[Row]) -> Verdict:
    """Return that the sizes agree, and which accuracies of Duchenne do."""
    sizes = {(r["crowd"], r["quantity"]): r["value"] for r in rows if r["quantity"] in QUANTITIES}
    equal = all(sizes[name, q] == own for name in SIZES for q, own in zip(QUANTITIES, SIZES[name], strict=True))
    own = {str(r["inference"]): r["value"] for r in rows if (r["crowd"], r["printed"]) == (DUCHENNE, 0.76)}
    vote, odds = own["majority vote"], own["truth discovery, g = ln(p / (1 - p))"]
    linear = own["truth discovery, g = p"]
    sentence = (
        "all four sizes of Duchenne are those of the public set; peer grading is private and has them by construction. "
        f"The printed accuracy .76 of Duchenne is above our majority vote ({vote:.3f}) and truth discovery with "
        f"log-odds weights ({odds:.3f}), and below truth discovery with g(p) = p ({linear:.3f})."
    )
    return Verdict("reproduced in part", sentence, equal and max(vote, odds) < ACCURACY[DUCHENNE] < linear)
