"""Upward rounding of privacy losses: floats and texts that are never below the exact value; lower bounds go down.

A float represents two numbers: its binary value, and the decimal number that Python and JSON write for it. They differ
by less than half a unit in the last place. Both are kept at or above the exact loss.
"""

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

DIGITS = 6
"""Significant digits of a printed epsilon."""
DELTA_DIGITS = 3
"""Significant digits of a printed delta."""
CERTAIN, CERTAIN_PERCENT = "more than 99.9 %", 100
"""Text of a probability above 99.9 %, which rounded up would be 100.0 %: no report tells an answer for certain."""
LARGEST_EXPONENT, THOUSAND = 700, 1000
"""From this epsilon on odds are written as infinite; from this factor on without decimals."""


def lower_exact_value(value: float) -> Fraction:
    """Return the smaller of a finite float's binary value and the decimal number it prints as."""
    return min(Fraction(value), Fraction(repr(float(value))))


def float_rounded_up(exact: Fraction) -> float:
    """Return the smallest float whose least reading is at least `exact`; infinity beyond the largest float."""
    try:
        found = float(exact)
    except OverflowError:
        return math.inf
    return found if lower_exact_value(found) >= exact else math.nextafter(found, math.inf)


def sum_rounded_up(terms: Iterable[tuple[float, int]]) -> float:
    """Return the sum of losses times counts, rounded up; infinite if a term with positive count is infinite.

    Args:
        terms: pairs (loss, count), both at least 0.
    """
    spent = [(value, count) for value, count in terms if count]
    if any(math.isinf(value) for value, _ in spent):
        return math.inf
    return float_rounded_up(sum((lower_exact_value(value) * count for value, count in spent), Fraction(0)))


def format_bound(value: float, digits: int = DIGITS) -> str:
    """Return a loss as text, rounded up: read back as a float, it is never below `value`.

    Args:
        value: epsilon or delta; may be infinite.
        digits: significant digits, at most 15.
    """
    if math.isinf(value):
        return "none (infinite)"
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(value)))
    return f"{float(rounded):.{digits}g}"


def format_lower(value: float, digits: int = DIGITS) -> str:
    """Return a lower bound as text, rounded down: read back as a float, it is never above `value`."""
    rounded = Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(repr(float(value)))
    return f"{float(rounded):.{digits}g}"


def format_three_decimals(epsilon: float) -> str:
    """Return a finite epsilon with three decimals, rounded up: the form of promises to workers."""
    return str(Decimal(repr(float(epsilon))).quantize(Decimal("0.001"), ROUND_CEILING))


def format_delta(delta: float) -> str:
    """Return a delta as text, rounded up to three significant digits."""
    return format_bound(delta, DELTA_DIGITS)


def percent_rounded_up(probability: float) -> str:
    """Return a probability in percent with one decimal, rounded up; `CERTAIN` above 99.9 %."""
    percent = (100 * Decimal(probability)).quantize(Decimal("0.1"), ROUND_CEILING)
    return CERTAIN if percent >= CERTAIN_PERCENT else f"{percent} %"


def format_odds(epsilon: float) -> str:
    """Return the largest factor exp(epsilon) of odds, rounded up: one decimal below a thousand, none from there on."""
    if epsilon >= LARGEST_EXPONENT:
        return "∞"
    factor = math.ceil(math.exp(epsilon) * 10) / 10
    return f"{factor:.1f}" if factor < THOUSAND else f"{math.ceil(factor):,}"
