"""What false reports gain, exactly, by mechanism: `python -m experiments.robustness.gains`.

Each mechanism of the registry with a channel for one answer, participation public, is inverted by the weights H of
`crowdveil.share` for even answers. A share is then the mean of H over reports, and right on average. k fakes among n
people, in place of honest 0s, raise it on average by at most (k / n) G, where G is the largest entry of H for the
answer; of numbers on [0, 1] the same holds for the mean. Mechanisms with the channel of an earlier one are left out.
Writes `results/gains.csv`, and the table of docs/explanation/threat-model.md, within seconds.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from experiments.rows import four_digits, read_rows, write_rows
from numpy.typing import NDArray

from crowdveil import Categories, Channel, Scale
from crowdveil.channels.alphabet import Alphabet
from crowdveil.design.mechanism_from_settings import MechanismSettings, build_mechanism
from crowdveil.errors import CrowdveilError
from crowdveil.quality.shares.score import right_inverse
from crowdveil.registry import MECHANISM_NAMES

RESULTS = Path(__file__).parent / "results" / "gains.csv"
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "threat-model.md"
TABLE = re.compile(r"^\| estimated \|.*?(?=^[^|])", re.DOTALL | re.MULTILINE)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
LABELS = (2, 4, 10)
UNBIASED = 1e-6
"""Largest bias of weights that counts as none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Gain of a fake report.

    Attributes:
        estimated: "share of a label", or "mean on [0, 1]".
        answers: number of possible answers.
        mechanism: its name.
        epsilon: asked for, of one answer.
        exact: epsilon of the integer table.
        gain: G, the largest over labels; None where no weights are right on average.
    """

    estimated: str
    answers: int
    mechanism: str
    epsilon: float
    exact: float
    gain: float | None


def weights(channel: Channel, numbers: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the weight of each report whose mean is the mean number of the answers; None where none is.

    Args:
        channel: of one answer, participation public.
        numbers: number of each answer, shape (answers,): 1 for a label and 0 for others for its share.
    """
    table = channel.probabilities
    found = right_inverse(table, table.mean(axis=0)[None])[0] @ numbers
    return found if np.abs(table @ found - numbers).max() < UNBIASED else None


def share_gain(channel: Channel) -> float | None:
    """Return the largest gain of a fake report for a share, over labels."""
    found = [weights(channel, one) for one in np.eye(channel.alphabet.size)]
    gains = [float(one.max()) for one in found if one is not None]
    return max(gains) if len(gains) == len(found) else None


def mean_gain(channel: Channel) -> float | None:
    """Return the gain of a fake report for the mean of numbers from 0 to 1, in place of an honest 0."""
    found = weights(channel, np.linspace(0.0, 1.0, channel.alphabet.size))
    return None if found is None else float(found.max())


def channels(alphabet: Alphabet, epsilon: float) -> Iterator[tuple[str, Channel]]:
    """Yield name and channel of each mechanism of the registry that has one of its own, participation public."""
    seen: list[Channel] = []
    for name in MECHANISM_NAMES:
        settings = MechanismSettings(name=name, epsilon=epsilon, participation="public")
        try:
            channel = build_mechanism(settings, alphabet, tasks=1).channel()
        except CrowdveilError:
            continue
        if isinstance(channel, Channel) and all(channel.rows != one.rows for one in seen):
            seen.append(channel)
            yield name, channel


def rows() -> Iterator[Row]:
    """Yield all rows."""
    alphabets: list[Alphabet] = [Categories(tuple(map(str, range(labels)))) for labels in LABELS]
    for alphabet in (*alphabets, Scale(0, 10)):
        numbers = isinstance(alphabet, Scale)
        for epsilon in EPSILONS:
            for name, channel in channels(alphabet, epsilon):
                yield Row(
                    estimated="mean on [0, 1]" if numbers else "share of a label",
                    answers=alphabet.size,
                    mechanism=name,
                    epsilon=epsilon,
                    exact=channel.epsilon,
                    gain=mean_gain(channel) if numbers else share_gain(channel),
                )


def table_of_page(found: list[Row]) -> str:
    """Return the rows as a table, one line for each mechanism, without those whose gain is unknown at every epsilon."""
    lines = {
        (row.estimated, row.answers, row.mechanism): ["-"] * len(EPSILONS) for row in found if row.gain is not None
    }
    for row in found:
        if row.gain is not None:
            lines[row.estimated, row.answers, row.mechanism][EPSILONS.index(row.epsilon)] = f"{row.gain:.2f}"
    heads = ("estimated", "answers", "mechanism", *(f"epsilon {one:g}" for one in EPSILONS))
    rows = [(what, str(answers), f"`{name}`", *cells) for (what, answers, name), cells in lines.items()]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (heads, ("---",) * len(heads), *rows))


if __name__ == "__main__":
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, Row, rows(), four_digits)
    found = table_of_page(read_rows(RESULTS, Row))
    PAGE.write_text(TABLE.sub(lambda _: found, PAGE.read_text("utf-8"), count=1), encoding="utf-8")
