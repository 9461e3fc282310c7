"""Privacy of a settings file: mechanism, epsilon or budget, cuts and prior; all of it is public and stated before."""

from dataclasses import dataclass, replace
from pathlib import Path

from crowdveil.campaign.source.section import Section
from crowdveil.channels.alphabet import Alphabet, Scale
from crowdveil.channels.guarantee import Participation
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import ChannelMechanism, Designed, Laplace, QuantizedResponse, RandomizedResponse

PLAN = "plan"
"""In place of a mechanism: what a plan recommends."""
MECHANISMS = (PLAN, RandomizedResponse.name, QuantizedResponse.name, Designed.name, Laplace.name)
"""Mechanisms of a campaign: one certified channel for every cell."""
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
        prior: plan, designed, and quantized-response without cuts: file with the public probability of each label as
            truth; None for equal ones.
    """

    mechanism: str
    budget_per_worker: float | None = None
    epsilon_per_answer: float | None = None
    null_value: float | str = "uniform"
    cuts: tuple[int, ...] = ()
    prior: Path | None = None

    @property
    def is_designed(self) -> bool:
        """Whether the table is chosen for what the settings expect of the answers."""
        return self.mechanism in (PLAN, Designed.name) or (self.mechanism == QuantizedResponse.name and not self.cuts)

    def build(self, alphabet: Alphabet, participation: Participation, epsilon: float) -> ChannelMechanism:
        """Return the mechanism with an epsilon of a single answer; not for one that is designed.

        Raises:
            SettingsError: epsilon or alphabet are refused.
        """
        assert not self.is_designed
        if self.mechanism == Laplace.name:
            return Laplace(
                alphabet=alphabet,
                epsilon=epsilon,
                participation=participation,
                null_value=self.null_value,  # type: ignore[arg-type]
            )
        if self.mechanism == QuantizedResponse.name:
            return QuantizedResponse(alphabet=alphabet, epsilon=epsilon, participation=participation, cuts=self.cuts)
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
    kind = section.one_of("budget_per_worker", "epsilon_per_answer")
    epsilon = section.number(kind)
    if not 0 < epsilon <= MAX_BUDGET:
        raise SettingsError(f"{section.title(kind)} must be above 0 and at most {MAX_BUDGET:g}", value=epsilon)
    null_value: float | str = "uniform"
    if mechanism == Laplace.name and "null_value" in section and section.take("null_value") != "uniform":
        null_value = section.number("null_value")
    cuts = _cuts(section, alphabet) if mechanism == QuantizedResponse.name and "cuts" in section else ()
    epsilons = {kind: epsilon}
    found = PrivacyRequest(
        mechanism=mechanism,
        budget_per_worker=epsilons.get("budget_per_worker"),
        epsilon_per_answer=epsilons.get("epsilon_per_answer"),
        null_value=null_value,
        cuts=cuts,
    )
    prior = folder / section.text("prior", MAX_PATH) if found.is_designed and "prior" in section else None
    section.close()
    return replace(found, prior=prior)


def _cuts(section: Section, alphabet: Alphabet) -> tuple[int, ...]:
    """Return the codes of the cuts, which are labels or numbers of the scale."""
    title, given = section.title("cuts"), section.take("cuts")
    if not alphabet.ordered:
        raise SettingsError(
            f"{title} need numbers or ordered labels",
            value=given,
            hint="Declare the labels ordered, or leave out the cuts: blocks are then chosen for what is expected.",
        )
    if not isinstance(given, list) or not given:
        raise SettingsError(f"{title} must be a list of labels", value=given, hint="Example: cuts = [3, 6, 8].")
    codes = tuple(_code(title, cut, alphabet) for cut in given)
    if codes[0] == 0 or list(codes) != sorted(set(codes)):
        raise SettingsError(
            f"{title} must ascend, after the first label",
            value=given,
            hint="Each is the first label of a block; the first block needs none.",
        )
    return codes


def _code(title: str, cut: object, alphabet: Alphabet) -> int:
    """Return the code of a label, which is given by its name, or on a scale by its number."""
    values = alphabet.values.tolist() if isinstance(alphabet, Scale) and type(cut) in (int, float) else alphabet.names
    if cut not in values:
        raise SettingsError(f"{title} must be labels of the answers", value=cut, hint="Each is the first of a block.")
    return list(values).index(cut)
