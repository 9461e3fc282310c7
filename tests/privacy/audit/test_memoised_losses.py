"""Exact losses of memoised reports: claims of a file in integers, and a mechanism that redraws its permanent answer."""

from fractions import Fraction

import numpy as np
import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import Memoised
from crowdveil.privacy.audit.claims import audit_mechanism
from crowdveil.privacy.audit.memoised_losses import memoised_losses
from crowdveil.randomness import seeded

ONE = Memoised(alphabet=Categories(("no", "yes")), epsilon=1.0, report_epsilon=0.5)
RATIOS = ONE.tables.permanent.ratio, ONE.tables.report.ratio


class Forgetful(Memoised):  # type: ignore[misc]
    """Memoised mechanism that draws the permanent answer again for every report."""

    def perturb_rounds(self, answers, rounds, source):
        """Return the reports of several rounds, each of new permanent answers."""
        return np.stack([self.perturb(answers, source) for _ in range(rounds)])

    def perturb(self, answers, source):
        """Return one report per task."""
        return Memoised.perturb_rounds(self, answers, 1, source)[0]


@pytest.mark.parametrize("table", [0, 1])
@pytest.mark.parametrize(("step", "refuted"), [(-1, True), (0, False), (1, False)])
def test_a_stated_ratio_is_compared_in_integers(table, step, refuted):
    """A claim of one unit less in the numerator is refuted, the exact one and a larger one hold."""
    claims = [Fraction(ratio.numerator + step * (at == table), ratio.denominator) for at, ratio in enumerate(RATIOS)]
    losses = memoised_losses(ONE.tables, (claims[0], claims[1]), ["value", "participation"], 1)

    assert [refuted and at // 2 == table for at in range(4)] == [loss.refuted for loss in losses]
    assert [ONE.tables.permanent.epsilon] * 2 + [ONE.tables.report.epsilon] * 2 == [x.exact.epsilon for x in losses]


def test_participation_that_is_public_has_no_loss():
    """An answer and NULL are no neighbours where participation is public."""
    public = Memoised.examples()[2].tables

    with pytest.raises(SettingsError, match="participation is public"):
        memoised_losses(public, (1.0, 0.5), ["participation"], 1)


@pytest.mark.parametrize(("kind", "refuted"), [(Memoised, False), (Forgetful, True)])
def test_a_redrawn_permanent_answer_is_refuted(kind, refuted):
    """Twelve reports of a kept answer lose at most epsilon; of answers drawn anew, more. Fixed seed."""
    mechanism = kind(alphabet=ONE.alphabet, epsilon=1.0, report_epsilon=0.5)
    audit = audit_mechanism(mechanism, "value", rounds=12, draws=800, source=seeded(3))

    assert refuted == audit.refuted
    assert ("12 reports", refuted) == (audit.reports, "refuted: epsilon 1 is claimed" in audit.verdict)
