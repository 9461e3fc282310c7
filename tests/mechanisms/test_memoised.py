"""Memoised randomized response: exact tables, one report, several reports, and the limit."""

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.certificate import canonical, digest
from crowdveil.channels.channel import Channel
from crowdveil.errors import CertificateError, SettingsError
from crowdveil.mechanisms.memoised import MAX_JOINT, Memoised, MemoisedTables
from crowdveil.randomness import seeded

YES_NO = Categories(("no", "yes"))
USUAL = Memoised(alphabet=YES_NO, epsilon=2.0, report_epsilon=1.0)


def sequence_probability(tables: MemoisedTables, answer: int, reports: tuple[int, ...]) -> Fraction:
    """Exact probability of a sequence of reports, summed over the permanent answers."""
    first, later = tables.permanent, tables.instantaneous
    total = sum(
        Fraction(weight, first.denominator)
        * math.prod(Fraction(later.rows[kept][y], later.denominator) for y in reports)
        for kept, weight in enumerate(first.rows[answer])
    )
    return Fraction(total)


@given(
    labels=st.integers(2, 6),
    epsilon=st.floats(0.2, 8.0),
    share=st.floats(0.05, 0.95),
    protected=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_both_claims_hold_in_integers_and_are_nearly_used(labels, epsilon, share, protected):
    """One report loses at most report_epsilon, the permanent answer at most epsilon; neither wastes more than 0.002."""
    names = Categories(tuple(f"label {k}" for k in range(labels)))
    participation = "protected" if protected else "public"
    one = Memoised(alphabet=names, epsilon=epsilon, report_epsilon=epsilon * share, participation=participation)

    assert one.report_epsilon - 2e-3 <= one.channel().epsilon <= one.report_epsilon
    assert epsilon - 2e-3 <= one.tables.permanent.epsilon <= epsilon


@pytest.mark.parametrize("mechanism", Memoised.examples(), ids=repr)
@pytest.mark.parametrize("reports", [1, 2, 3])
def test_joint_table_is_the_enumeration_of_all_sequences(mechanism, reports):
    """The table of k reports has the exact sum over all sequences with the same counts, and their worst ratio."""
    tables, symbols = mechanism.tables, range(len(mechanism.channel().outputs))
    channel = tables.joint(reports)
    exact = [
        {y: sequence_probability(tables, x, y) for y in product(symbols, repeat=reports)}
        for x in range(len(channel.rows))
    ]

    for x, row in enumerate(channel.rows):
        sums = [Fraction(0)] * len(row)
        for y, probability in exact[x].items():
            code = int(tables.codes(np.array(y)[:, None])[0])
            sums[code] += probability
        assert [Fraction(entry, channel.denominator) for entry in row] == sums
    assert channel.ratio == max(one[y] / two[y] for one in exact for two in exact for y in one)


@pytest.mark.parametrize("mechanism", Memoised.examples(), ids=repr)
def test_loss_grows_with_the_reports_up_to_the_permanent_epsilon(mechanism):
    """Every further report adds loss; the sum stays below the permanent table's, and comes within 1 % of it."""
    losses = [mechanism.over_rounds(rounds)[0].epsilon for rounds in range(1, 12)]
    lasting = mechanism.lasting_channel.epsilon

    assert sorted(losses) == losses
    assert losses[0] == mechanism.channel().epsilon
    assert losses[-1] <= lasting
    assert losses[-1] >= 0.99 * lasting
    assert (mechanism.lasting_channel, 1) == mechanism.over_rounds(MAX_JOINT + 1)


def test_account_charges_repeated_reports_once():
    """Twenty rounds cost a worker at most the cells times epsilon, and the stated reason names the kept answer."""
    cell, worker = USUAL.guarantees_over(10, 20)

    assert cell.epsilon <= 2.0
    assert worker.epsilon <= 20.0
    assert cell.epsilon > 1.99
    assert "keeps one permanent answer" in cell.reason


def test_reports_of_several_rounds_follow_the_joint_table():
    """Counts of three reports of a device are within five standard deviations of the joint table; fixed seed."""
    drawn = USUAL.perturb_rounds(np.zeros(200_000, dtype=int), 3, seeded(1))
    counts = np.bincount(USUAL.tables.codes(drawn), minlength=10)
    expected = USUAL.tables.joint(3).probabilities[0] * 200_000

    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected))


def test_certificate_names_both_claims_and_comes_back():
    """The claims for ever and per report are the ratios of the two tables; reading checks and returns the tables."""
    certificate = USUAL.tables.certificate()
    back = MemoisedTables.from_certificate(json.dumps(certificate))

    assert {"for_ever", "per_report"} == set(certificate["claims"])
    assert certificate["claims"]["for_ever"] == [back.permanent.ratio.numerator, back.permanent.ratio.denominator]
    assert certificate["claims"]["per_report"] == [back.report.ratio.numerator, back.report.ratio.denominator]
    assert (USUAL.tables.permanent.rows, USUAL.channel().rows) == (back.permanent.rows, back.report.rows)


def changed(**parts) -> str:
    """Certificate of `USUAL` with other parts and a right checksum."""
    data = {**USUAL.tables.certificate(), **parts}
    return canonical({**data, "sha256": digest(data)}).decode()


def test_changed_certificates_are_refused():
    """A report's table that is not the product, a smaller claim, or a wrong checksum is an error that names it."""
    other = Memoised(alphabet=YES_NO, epsilon=2.0, report_epsilon=0.5).tables.certificate()
    claims = dict(USUAL.tables.certificate()["claims"])

    with pytest.raises(CertificateError, match="product"):
        MemoisedTables.from_certificate(changed(report=other["report"]))
    with pytest.raises(CertificateError, match="ratio"):
        MemoisedTables.from_certificate(changed(claims={**claims, "for_ever": [2, 1]}))
    with pytest.raises(CertificateError, match="ratio"):
        MemoisedTables.from_certificate(changed(claims={**claims, "for_ever": [float(n) for n in claims["for_ever"]]}))
    with pytest.raises(CertificateError, match="claims"):
        MemoisedTables.from_certificate(changed(claims={"for_ever": claims["for_ever"]}))
    with pytest.raises(CertificateError, match="object"):
        MemoisedTables.from_certificate(changed(permanent=3))
    with pytest.raises(CertificateError, match="SHA-256"):
        MemoisedTables.from_certificate(json.dumps({**USUAL.tables.certificate(), "sha256": "0" * 64}))


def test_tables_over_different_symbols_are_refused():
    """A permanent answer must be an input of the second table."""
    other = Memoised(alphabet=Categories(("no", "yes", "maybe")), epsilon=2.0, report_epsilon=1.0).tables

    with pytest.raises(CertificateError, match="same symbols"):
        MemoisedTables(USUAL.tables.permanent, other.instantaneous, USUAL.channel())


@pytest.mark.parametrize("report", [2.0, 3.0])
def test_a_report_must_lose_less_than_all_reports(report):
    """The epsilon of one report is below that of all."""
    with pytest.raises(SettingsError, match="must be below"):
        Memoised(alphabet=YES_NO, epsilon=2.0, report_epsilon=report)


def test_epsilon_that_24_bits_cannot_keep_is_refused():
    """A thousand labels at epsilon 0.001 would need finer tables: an error, not a larger loss."""
    with pytest.raises(SettingsError, match="24 bits"):
        Memoised(alphabet=Scale(0, 1000), epsilon=1e-3, report_epsilon=5e-4)


def test_a_joint_table_that_is_too_large_is_replaced_by_the_bound():
    """Many labels and many reports have no joint table; the account states the permanent epsilon."""
    many = Memoised(alphabet=Scale(0, 99), epsilon=2.0, report_epsilon=1.0)

    assert many.tables.joint(3) is None
    assert many.guarantees_over(1, 3)[0].epsilon == many.lasting_channel.epsilon
    assert isinstance(many.tables.joint(1), Channel)
