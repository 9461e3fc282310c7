"""Privacy of a settings file: mechanism, epsilon or budget, cuts and prior; all of it is public and stated before."""

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from crowdveil.campaign.settings.section import Section
from crowdveil.channels.alphabet import Alphabet, Scale
from crowdveil.channels.guarantee import Participation
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import ChannelMechanism, Designed, Laplace, QuantizedResponse, RandomizedResponse, TwoLayer
from crowdveil.mechanisms.randomized_response import OneLayer
from crowdveil.standalone.checks import MAX_CHANNELS

PLAN = "plan"
"""In place of a mechanism: what a plan recommends."""
MECHANISMS = (
    PLAN,
    RandomizedResponse.name,
    QuantizedResponse.name,
    Designed.name,
    Laplace.name,
    OneLayer.name,
    TwoLayer.name,
)
"""Mechanisms of a campaign: one certified channel for every cell.

Two-layer with a flip probability of its own for every cell has the table of one-layer at the mean, and is certified as
that.
"""
MIN_LEVELS, MAX_LEVELS = 2, 4
MAX_BUDGET = 1_000.0
MAX_PATH = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyRequest:
    """Requested privacy: exactly one of the two epsilons, in nats.

    Attributes:
        mechanism: one of `MECHANISMS`.
        budget_per_worker: largest privacy loss of all answers of one worker, or None.
        epsilon_per_answer: largest privacy loss of a single answer, or None.
        null_value: laplace: public value that replaces "no answer", or "uniform".
        cuts: quantized-response: ascending first codes of the blocks after the first; empty: the best ones for what is
            expected.
        dealt_cuts: quantized-response: cuts of several groups of workers, to which slots are dealt in turn; the first
            are `cuts`. Empty with one group.
        levels: ascending budgets of a worker, of which each worker chooses one; `budget_per_worker` is the least. Empty
            without a choice.
        prior: plan, designed, and quantized-response without cuts: file with the public probability of each label as
            truth; None for equal ones.
    """

    mechanism: str
    budget_per_worker: float | None = None
    epsilon_per_answer: float | None = None
    null_value: float | str = "uniform"
    cuts: tuple[int, ...] = ()
    dealt_cuts: tuple[tuple[int, ...], ...] = ()
    levels: tuple[float, ...] = ()
    prior: Path | None = None

    @property
    def one_request_per_channel(self) -> "tuple[PrivacyRequest, ...]":
        """One request for each channel: of each level, or of each group of cuts, else the request itself."""
        if self.levels:
            return tuple(replace(self, budget_per_worker=level, levels=()) for level in self.levels)
        return tuple(replace(self, cuts=cuts, dealt_cuts=()) for cuts in self.dealt_cuts) or (self,)

    @property
    def is_designed_for_answers(self) -> bool:
        """Whether the table is chosen for what the settings expect of the answers."""
        return self.mechanism in (PLAN, Designed.name) or (self.mechanism == QuantizedResponse.name and not self.cuts)

    def mechanism_of_answer_epsilon(
        self, alphabet: Alphabet, participation: Participation, epsilon: float
    ) -> ChannelMechanism:
        """Return the mechanism with an epsilon of a single answer; not for one that is designed.

        Raises:
            SettingsError: epsilon or alphabet are refused.
        """
        assert not self.is_designed_for_answers
        if self.mechanism == Laplace.name:
            return Laplace(
                alphabet=alphabet,
                epsilon=epsilon,
                participation=participation,
                null_value=self.null_value,  # type: ignore[arg-type]
            )
        if self.mechanism == QuantizedResponse.name:
            return QuantizedResponse(alphabet=alphabet, epsilon=epsilon, participation=participation, cuts=self.cuts)
        if self.mechanism in (OneLayer.name, TwoLayer.name):
            return OneLayer(alphabet=alphabet, epsilon=epsilon, participation=participation)
        return RandomizedResponse(alphabet=alphabet, epsilon=epsilon, participation=participation)


def read_privacy(section: Section, alphabet: Alphabet, folder: Path) -> PrivacyRequest:
    """Return the requested privacy of a settings file.

    Args:
        section: the table `privacy`.
        alphabet: possible answers.
        folder: of the settings file, which a file of the prior is relative to.

    Raises:
        SettingsError: a setting is missing, unknown, out of range, or of another mechanism.
    """
    mechanism = section.choice("mechanism", MECHANISMS)
    levels = _budgets_of_levels(section)
    kind = "budget_per_worker" if levels else section.which_of_two_keys("budget_per_worker", "epsilon_per_answer")
    epsilon = levels[0] if levels else section.number(kind)
    if not 0 < epsilon <= MAX_BUDGET:
        raise SettingsError(f"{section.title(kind)} must be above 0 and at most {MAX_BUDGET:g}", value=epsilon)
    null_value: float | str = "uniform"
    if mechanism == Laplace.name and "null_value" in section and section.take_required_value("null_value") != "uniform":
        null_value = section.number("null_value")
    groups = _groups_of_cuts(section, alphabet) if mechanism == QuantizedResponse.name and "cuts" in section else ((),)
    if levels and len(groups) > 1:
        raise SettingsError(f"{section.title('levels')} need one group of cuts", value=len(groups))
    epsilons = {kind: epsilon}
    found = PrivacyRequest(
        mechanism=mechanism,
        budget_per_worker=epsilons.get("budget_per_worker"),
        epsilon_per_answer=epsilons.get("epsilon_per_answer"),
        null_value=null_value,
        cuts=groups[0],
        dealt_cuts=groups if len(groups) > 1 else (),
        levels=levels,
    )
    prior = folder / section.text("prior", MAX_PATH) if found.is_designed_for_answers and "prior" in section else None
    section.close()
    return replace(found, prior=prior)


def _budgets_of_levels(section: Section) -> tuple[float, ...]:
    """Return the budgets that workers choose from; empty without levels."""
    if "levels" not in section:
        return ()
    title, given = section.title("levels"), section.take_required_value("levels")
    others = [key for key in ("budget_per_worker", "epsilon_per_answer") if key in section]
    if others:
        raise SettingsError(f"exactly one is needed: {title} or {section.title(others[0])}", value=others)
    numbers = isinstance(given, list) and all(type(level) in (int, float) for level in given)
    if not (numbers and MIN_LEVELS <= len(given) <= MAX_LEVELS):
        raise SettingsError(
            f"{title} must be a list of {MIN_LEVELS} to {MAX_LEVELS} numbers", value=given, hint="Example: [1, 2, 4]."
        )
    levels = tuple(map(float, given))
    if not (levels[0] > 0 and levels[-1] <= MAX_BUDGET and all(low < high for low, high in pairwise(levels))):
        raise SettingsError(
            f"{title} must ascend, above 0 and up to {MAX_BUDGET:g}",
            value=given,
            hint="Each is the epsilon of all answers of a worker; the first is preselected.",
        )
    return levels


def _groups_of_cuts(section: Section, alphabet: Alphabet) -> tuple[tuple[int, ...], ...]:
    """Return the codes of the cuts of each group of workers, given as one list of cuts or as a list of such lists."""
    title, given = section.title("cuts"), section.take_required_value("cuts")
    nested = isinstance(given, list) and any(isinstance(cuts, list) for cuts in given)
    groups = tuple(_codes_of_ascending_cuts(title, cuts, alphabet) for cuts in (given if nested else [given]))
    if len(set(groups)) < len(groups) or len(groups) > MAX_CHANNELS:
        raise SettingsError(f"{title} of groups must differ, in at most {MAX_CHANNELS} groups", value=given)
    return groups


def _codes_of_ascending_cuts(title: str, given: object, alphabet: Alphabet) -> tuple[int, ...]:
    """Return the codes of the cuts, which are labels or numbers of the scale."""
    if not alphabet.ordered:
        raise SettingsError(
            f"{title} need numbers or ordered labels",
            value=given,
            hint="Declare the labels ordered, or leave out the cuts: blocks are then chosen for the expected answers.",
        )
    if not isinstance(given, list) or not given:
        raise SettingsError(f"{title} must be a list of labels", value=given, hint="Example: cuts = [3, 6, 8].")
    codes = tuple(_code_of_cut(title, cut, alphabet) for cut in given)
    if codes[0] == 0 or list(codes) != sorted(set(codes)):
        raise SettingsError(
            f"{title} must ascend, after the first label",
            value=given,
            hint="Each is the first label of a block; the first block needs none.",
        )
    return codes


def _code_of_cut(title: str, cut: object, alphabet: Alphabet) -> int:
    """Return the code of a label, which is given by its name, or on a scale by its number."""
    values = alphabet.values.tolist() if isinstance(alphabet, Scale) and type(cut) in (int, float) else alphabet.names
    if cut not in values:
        raise SettingsError(f"{title} must be labels of the answers", value=cut, hint="Each is the first of a block.")
    return list(values).index(cut)
