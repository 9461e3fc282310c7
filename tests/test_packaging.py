"""Dependencies: each has a range, and `constraints/` pins the lowest and the newest versions that are tested."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OPTIONAL = PROJECT["optional-dependencies"]
PINNED = ("plots", "test", "test-slow", "lint")
REQUIREMENTS = sorted({*PROJECT["dependencies"], *(one for extra in PINNED for one in OPTIONAL[extra])})
RANGE = re.compile(r"([a-z0-9-]+)>=([0-9.]+),<([0-9.]+)")


def pins(name: str) -> dict[str, str]:
    """Return the version of every package that a file of constraints names."""
    return dict(line.split("==") for line in (ROOT / "constraints" / f"{name}.txt").read_text("utf-8").split())


def numbers(version: str) -> tuple[int, ...]:
    """Return the parts of a version, without zeros at its end: 3.8.0 equals 3.8."""
    parts = [int(part) for part in re.findall(r"\d+", version)]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


@pytest.mark.parametrize(
    "requirement", sorted({text for extra in OPTIONAL.values() for text in extra} | {*REQUIREMENTS})
)
def test_a_dependency_has_a_range(requirement: str) -> None:
    """A requirement names its lowest version, and the first version that it excludes."""
    assert RANGE.fullmatch(requirement)


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_the_lowest_pin_is_the_lower_bound(requirement: str) -> None:
    """`constraints/lowest.txt` pins the first release that a range allows."""
    name, low, _ = RANGE.fullmatch(requirement).groups()  # type: ignore[union-attr]
    pinned = numbers(pins("lowest")[name])

    assert numbers(low) == pinned[: len(numbers(low))]


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_the_newest_pin_is_within_the_range(requirement: str) -> None:
    """`constraints/newest.txt` pins a version between the two bounds."""
    name, low, stop = RANGE.fullmatch(requirement).groups()  # type: ignore[union-attr]

    assert numbers(low) <= numbers(pins("newest")[name]) < numbers(stop)
