"""Figure 1: distribution of the answers of the two real sets."""

import numpy as np
from experiments.papers.exhibit import Configuration, Row, Verdict
from experiments.papers.sun2018.crowds import REAL, real


def measure(configuration: Configuration) -> list[Row]:
    """Return the shares of every value; `right_answers` is the share among answers to tasks with a known truth."""
    name = configuration["data"]
    crowd = real(name)
    answers, known = crowd.answers, np.isfinite(crowd.truth)
    scored = known[answers.task]
    right = float((answers.value == crowd.truth[answers.task])[scored].mean())
    return [
        {
            "data": name,
            "set": REAL[name],
            "value": value,
            "share_of_answers": float((answers.value == value).mean()),
            "share_of_truths": float((crowd.truth[known] == value).mean()),
            "known_truths": int(known.sum()),
            "right_answers": right,
        }
        for value in range(answers.alphabet.size)
    ]


def verdict(rows: list[Row]) -> Verdict:
    """Return that both sets are skewed, and which truths are known."""
    zero = {row["data"]: row for row in rows if row["value"] == 0}
    truths = {name: row["share_of_truths"] for name, row in zero.items()}
    skewed = all(row["share_of_answers"] > 0.5 and row["right_answers"] > 0.5 for row in zero.values())
    sentence = (
        "both sets are skewed to 0 and most answers are right, as printed; value 0 is the truth of "
        f"{truths['Web']:.1%} of the tasks of Web, but of only {truths['AdultContent']:.1%} of the "
        f"{zero['AdultContent']['known_truths']} tasks of AdultContent2 with a known truth."
    )
    return Verdict("reproduced in part", sentence, skewed and truths["Web"] > 0.72 > truths["AdultContent"])
