"""What is publicly expected, in the words of a request, as a question that a channel can be chosen for."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crowdveil.design import normal_answers, one_coin_answers
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.guarantee import Participation
from crowdveil.ingest.tables import load_prior
from crowdveil.labels import Alphabet, Scale
from crowdveil.mechanisms import Question

USUAL_ABILITY = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What is publicly known before anyone answers; nothing of it may come from the answers.

    Attributes:
        prior: file with the probability of each label as truth; every label alike by default.
        participation_rate: share of cells that are answered.
        ability: probability that an answer is right; `USUAL_ABILITY` by default.
        sigmas: in its place, for a scale: standard deviations of equal shares of the workers.
    """

    prior: Path | None = None
    participation_rate: float = 1.0
    ability: float | None = None
    sigmas: tuple[float, ...] = ()

    def question(self, alphabet: Alphabet, participation: Participation) -> Question:
        """Return the question for truths in the alphabet of the answers.

        Raises:
            SettingsError: a number out of range, ability and sigmas both, or sigmas for labels.
            ReportsError: the prior's file is damaged, or does not name just the labels.
        """
        return Question(
            alphabet=alphabet,
            prior=_prior(self.prior, alphabet),
            answers=self._answers(alphabet),
            participation_rate=self.participation_rate,
            participation=participation,
        )

    def _answers(self, alphabet: Alphabet) -> NDArray[np.float64]:
        if not self.sigmas:
            return one_coin_answers(alphabet.size, USUAL_ABILITY if self.ability is None else self.ability)
        if self.ability is not None or not isinstance(alphabet, Scale):
            raise SettingsError("sigmas describe workers on a scale, in place of an ability", value=self.sigmas)
        return normal_answers(alphabet, self.sigmas)


def _prior(path: Path | None, alphabet: Alphabet) -> NDArray[np.float64]:
    """Return the file's probabilities in the alphabet's order; it names every label, as inference needs it."""
    if path is None:
        return np.full(alphabet.size, 1 / alphabet.size)
    given = load_prior(path)
    wrong = sorted(given.keys() ^ set(alphabet.names))
    if wrong:
        raise ReportsError(
            "a prior has one row for each of the labels", source=str(path), examples=", ".join(wrong[:3])
        )
    return np.array([given[name] for name in alphabet.names])
