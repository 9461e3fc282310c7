"""Loss of one person over all campaigns in a device's ledger."""

from itertools import product

import numpy as np
import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.errors import SettingsError
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.privacy.ledger import ledger_losses
from crowdveil.standalone.checks import Refused, canonical, epsilon
from crowdveil.standalone.device import read_ledger

YES_NO = Categories(("no", "yes"))


def line(channel, cells, host="a.example.org"):
    """Line of a ledger for cells of one table."""
    return {
        "campaign": "c", "report": "r", "title": "t", "day": "2026-01-01", "participation": "public", "host": host,
        "cells": cells, "numerator": channel.ratio.numerator, "denominator": channel.ratio.denominator,
    }  # fmt: skip


def test_losses_bound_the_enumeration_of_all_reports():
    """Two campaigns, five binary cells: no delta of any two answer vectors is above the stated one, and nearly met."""
    tables = [RandomizedResponse(alphabet=YES_NO, epsilon=e, participation="public").channel() for e in (1.0, 0.5)]
    cells = [tables[0]] * 3 + [tables[1]] * 2
    rows = [
        np.prod(
            np.meshgrid(*(one.probabilities[x] for one, x in zip(cells, answers, strict=True)), indexing="ij"), axis=0
        )
        for answers in product((0, 1), repeat=5)
    ]

    loss = ledger_losses([line(tables[0], 3), line(tables[1], 2, "b.example.org")], 0.01)[-1]
    delta = max(float(np.maximum(a - np.exp(loss.exact) * b, 0).sum()) for a in rows for b in rows)
    less = max(float(np.maximum(a - np.exp(loss.exact - 0.01) * b, 0).sum()) for a in rows for b in rows)

    assert delta <= 0.01 < less
    assert loss.pure == pytest.approx(4.0, abs=1e-9)
    assert (None, 5) == (loss.host, loss.cells)


@pytest.mark.slow
def test_each_host_has_its_own_loss_and_all_have_less_than_the_sum():
    """Lines are composed by host; the loss to all is at least that to each, and below the sum."""
    table = RandomizedResponse(alphabet=YES_NO, epsilon=0.3).channel()
    one, two, both = ledger_losses([line(table, 40), line(table, 60, "b.example.org"), line(table, 10)], 1e-6)

    assert ("a.example.org", 50) == (one.host, one.cells)
    assert max(one.exact, two.exact) < both.exact < both.pure
    assert both.exact <= both.advanced
    assert both.pure == pytest.approx(33.0, rel=1e-9)


def test_a_line_with_a_ratio_below_1_is_refused(tmp_path):
    """A numerator below its denominator would lower the sum: -169 instead of 1; no reader of the ledger takes it."""
    sound = line(RandomizedResponse(alphabet=YES_NO, epsilon=1.0).channel(), 1)
    forged = {**sound, "report": "s", "cells": 170, "numerator": 10**6, "denominator": 2718282}
    (tmp_path / "ledger.json").write_bytes(canonical({"format": "crowdveil-ledger/1", "lines": [sound, forged]}))

    for read in (epsilon, lambda lines: ledger_losses(lines, 1e-6)):
        with pytest.raises(Refused, match="ledger"):
            read([sound, forged])
    with pytest.raises(Refused, match="is damaged"):
        read_ledger(tmp_path)


def test_an_empty_ledger_has_no_loss_and_a_wrong_delta_is_refused():
    """Nothing was promised; delta must be in its interval."""
    assert () == ledger_losses([], 1e-6)
    with pytest.raises(SettingsError, match="delta"):
        ledger_losses([], 0.0)
