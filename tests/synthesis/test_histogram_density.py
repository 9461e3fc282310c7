"""Densities: they integrate to one, and records drawn from them are spread as they are."""

import numpy as np
import pytest

from crowdveil.errors import SettingsError
from crowdveil.randomness import seeded
from crowdveil.synthesis.histogram_density import Densities
from tests.chi_square import chi_square_p_value

MASS = np.array([[0.1, 0.0, 0.5, 0.0, 0.2, 0.2], [0.0, 0.25, 0.25, 0.25, 0.25, 0.0]])
MADE = Densities(
    task=np.array([3, 7]),
    low=np.array([0.0, -1.0]),
    high=np.array([10.0, 1.0]),
    window_low=np.array([2.0, -1.0]),
    window_high=np.array([6.0, 1.0]),
    mass=MASS,
)


def test_a_density_is_mass_over_width() -> None:
    """Every cell has its mass over its width, outside the bounds there is nothing, and all integrates to one."""
    points = np.linspace(-0.999, 10.999, 24_000, endpoint=False)

    np.testing.assert_allclose(MADE.at(0, np.array([1.0, 2.5, 3.5, 5.5, 9.0])), [0.05, 0.0, 0.5, 0.2, 0.05])
    np.testing.assert_array_equal(MADE.at(0, np.array([-0.1, 10.1])), 0.0)
    np.testing.assert_allclose(MADE.at(1, np.array([-1.0, 0.3, 1.0])), [0.5, 0.5, 0.0])
    assert np.mean(MADE.at(0, points)) * 12 == pytest.approx(1, abs=1e-3)


def test_every_record_is_distributed_as_the_density() -> None:
    """20,000 draws of 5 records, one position looked at, pass a chi-square test at 1e-4; fixed seed."""
    many = Densities(
        task=np.arange(20_000),
        **{name: np.repeat(getattr(MADE, name)[:1], 20_000) for name in ("low", "high", "window_low", "window_high")},
        mass=np.repeat(MASS[:1], 20_000, axis=0),
    )
    drawn = many.sample(5, seeded(1))[:, 2]
    counts = np.histogram(drawn, bins=[0, 2, 3, 4, 5, 6, 10])[0]

    assert counts[[1, 3]].sum() == 0
    assert chi_square_p_value(counts[[0, 2, 4, 5]], MASS[0][[0, 2, 4, 5]]) > 1e-4


def test_records_spread_over_the_density() -> None:
    """Of 20 records every cell gets its share to within one, and none leaves the bounds."""
    drawn = MADE.sample(20, seeded(2))

    assert drawn.shape == (2, 20)
    assert abs(int(((drawn[0] >= 3) & (drawn[0] < 4)).sum()) - 10) <= 1
    assert ((drawn >= MADE.low[:, None]) & (drawn <= MADE.high[:, None])).all()
    assert (np.diff(drawn, axis=1) < 0).any(), "records are shuffled"


def test_no_records_are_refused() -> None:
    """A release has at least one record per task."""
    with pytest.raises(SettingsError, match="at least one record"):
        MADE.sample(0, seeded(1))
