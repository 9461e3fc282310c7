"""Upward rounding of privacy losses: floats and texts that never state less than the exact value.

A float is read in two ways, as its binary value and as the decimal number that Python and JSON write for it; the two
differ by less than half a unit in the last place. A loss is at most the smaller of them.
"""

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

DIGITS = 6
"""Significant digits of a printed epsilon."""
DELTA_DIGITS = 3
"""Significant digits of a printed delta."""


def least_reading(value: float) -> Fraction:
    """Return the smaller of a finite float's binary value and the decimal number written for it."""
    return min(Fraction(value), Fraction(repr(float(value))))


def float_rounded_up(exact: Fraction) -> float:
    """Return the smallest float that states at least `exact`; infinity beyond the largest float."""
    try:
        found = float(exact)
    except OverflowError:
        return math.inf
    return found if least_reading(found) >= exact else math.nextafter(found, math.inf)


def sum_rounded_up(terms: Iterable[tuple[float, int]]) -> float:
    """Return the sum of losses, each times its count, rounded up; infinite if an infinite loss occurs at all.

    Args:
        terms: pairs of a loss of at least 0 and how often it is spent, at least 0.
    """
    spent = [(value, count) for value, count in terms if count]
    if any(math.isinf(value) for value, _ in spent):
        return math.inf
    return float_rounded_up(sum((least_reading(value) * count for value, count in spent), Fraction(0)))


def log_rounded_up(ratio: Fraction) -> float:
    """Return the smallest convenient float that states at least ln(ratio), for ratio >= 1."""
    up = Context(prec=60, rounding=ROUND_CEILING)
    quotient = up.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    # ln ignores the rounding mode, hence the margin; the product must be taken in 60 digits, not in the default 28.
    return float_rounded_up(Fraction(up.multiply(up.ln(quotient), up.add(1, Decimal(10) ** -50))))


def format_bound(value: float, digits: int = DIGITS) -> str:
    """Return a loss bound for people, rounded up: read back as a float, the text is never below `value`.

    Args:
        value: epsilon or delta; infinity promises nothing.
        digits: significant digits, at most 15.
    """
    if math.isinf(value):
        return "none (infinite)"
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(value)))
    return f"{float(rounded):.{digits}g}"


def format_delta(delta: float) -> str:
    """Return a delta for people, rounded up."""
    return format_bound(delta, DELTA_DIGITS)
