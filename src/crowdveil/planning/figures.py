"""Figures of a plan as text, with no more digits than a simulation resolves."""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context

from crowdveil.planning.trials import Prediction

DIGITS = 2
"""Significant digits of a predicted error."""


def two_digits(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a number with at most `DIGITS` significant digits, without an exponent.

    Args:
        value: finite.
        rounding: a mode of `decimal`: to nearest, up or down.
    """
    rounded = Context(prec=DIGITS, rounding=rounding).create_decimal(f"{value:.12g}")
    digits = max(0, DIGITS - 1 - rounded.adjusted())
    return f"{rounded:,.{digits}f}" if rounded else "0"


def expected_error(prediction: Prediction, below: str = "less than") -> str:
    """Return the predicted error; where the simulation cannot resolve it, `below` and a bound."""
    if prediction.less_than is not None:
        return f"{below} {two_digits(prediction.less_than, ROUND_CEILING)}"
    return two_digits(prediction.error)


def real_interval(prediction: Prediction) -> str:
    """Return the interval with the model error of real sets, its ends rounded outwards."""
    return f"{two_digits(prediction.real_low, ROUND_FLOOR)} to {two_digits(prediction.real_high, ROUND_CEILING)}"


def assumed_interval(prediction: Prediction) -> str:
    """Return the interval for a crowd as assumed, its ends rounded outwards."""
    return f"{two_digits(prediction.low, ROUND_FLOOR)} to {two_digits(prediction.high, ROUND_CEILING)}"
