"""Inputs of a result: they survive their record, and their guarantees add up as their releases do."""

import json
import math
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.answers.facts.inputs import MAX_DEPTH, Input, Role, inputs_of_json, inputs_to_json, joint_guarantee
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import lower_exact_value
from crowdveil.errors import SettingsError

DIGEST = "0f" * 32
PUBLIC = Input(role="prior", sha256=DIGEST, public=True)


def covered(epsilon: float, origin: str, *, cells: int = 4, delta: float = 0.0, **guarantee: Any) -> Input:
    """Return reports under a guarantee of one cell."""
    promise = Guarantee(epsilon=epsilon, delta=delta, **guarantee)
    return Input(role="reports", sha256=DIGEST, guarantee=promise, cells=cells, origin=origin)


def of(*inputs: Input, role: Role = "history") -> Input:
    """Return an input that was made from others."""
    return Input(role=role, sha256=DIGEST, inputs=inputs)


LEAVES = st.builds(
    Input,
    role=st.sampled_from(get_args(Role)),
    sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
    public=st.booleans(),
) | st.builds(
    covered,
    st.floats(0, 50),
    st.text(min_size=1, max_size=5).filter(lambda text: "\n" not in text and text.isprintable()),
    cells=st.integers(1, 1 << 40),
    delta=st.floats(0, 1),
    participation=st.sampled_from(["protected", "public"]),
)
TREES = st.recursive(LEAVES, lambda inner: st.builds(of, inner, inner) | st.builds(of, inner), max_leaves=6)


@given(st.lists(TREES, min_size=1, max_size=4))
def test_inputs_survive_their_record(inputs: list[Input]) -> None:
    """What is written is read back, guarantees and inputs of inputs too."""
    assert tuple(inputs) == inputs_of_json(inputs_to_json(inputs))


WHOLE = covered(1.0, "a").as_json()
MALFORMED: dict[str, dict[str, Any]] = {
    "another role": {"role": "answers"},
    "no digest": {"sha256": "x"},
    "an unknown field": {"note": ""},
    "no cells": {"cells": 0},
    "cells in part": {"cells": 1.5},
    "a guarantee of public data": {"public": True},
    "a guarantee without an origin": {"origin": ""},
    "a guarantee in words": {"guarantee": "epsilon = 1"},
    "a guarantee without delta": {"guarantee": {"epsilon": 1.0, "unit": "cell", "participation": "protected"}},
    "inputs of public data": {"public": True, "inputs": [PUBLIC.as_json()]},
    "inputs that are none": {"inputs": [1]},
    "a malformed input": {"inputs": [{**WHOLE, "role": "answers"}]},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_record_is_refused(name: str) -> None:
    """A record that was edited states no guarantee: every field has its form, and a guarantee is no public data's."""
    with pytest.raises((ValueError, SettingsError)):
        inputs_of_json(json.dumps([{**WHOLE, **MALFORMED[name]}]))


@pytest.mark.parametrize("epsilon", [-1.0, math.inf, math.nan])
def test_an_impossible_epsilon_is_refused(epsilon: float) -> None:
    """A guarantee in a record is a finite number from 0."""
    promise = {"epsilon": epsilon, "delta": 0.0, "unit": "cell", "participation": "protected"}
    with pytest.raises((ValueError, SettingsError)):
        inputs_of_json(json.dumps([{**WHOLE, "guarantee": promise}]))


@pytest.mark.parametrize("text", ["[]", "{}", "", "null", "[", "1"])
def test_what_names_no_input_is_refused(text: str) -> None:
    """A record names at least one input."""
    with pytest.raises((ValueError, TypeError)):
        inputs_of_json(text)


def test_inputs_within_inputs_have_a_bound() -> None:
    """A bottomless record is refused, not followed."""
    one = covered(1.0, "a")
    for _ in range(MAX_DEPTH + 2):
        one = of(one)

    with pytest.raises(ValueError, match="an input has a role"):
        inputs_of_json(inputs_to_json([one]))


def test_inputs_of_different_origins_add() -> None:
    """Two releases cost the sum per answer, and the sum over their cells per worker."""
    found = joint_guarantee([covered(1.0, "a", cells=4, delta=0.001), covered(0.5, "b", cells=10, delta=0.002)])

    assert found is not None
    assert ("cell", "worker") == (found.per_cell.unit, found.per_worker.unit)
    assert found.per_cell.epsilon == pytest.approx(1.5)
    assert found.per_worker.epsilon == pytest.approx(4 * 1.0 + 10 * 0.5)
    assert found.per_cell.delta == pytest.approx(0.003)
    assert found.per_worker.delta == pytest.approx(4 * 0.001 + 10 * 0.002)


@given(
    first=st.floats(0, 20),
    second=st.floats(0, 20),
    deltas=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    cells=st.tuples(st.integers(1, 1000), st.integers(1, 1000)),
)
def test_sums_are_never_below_the_exact_ones(
    first: float, second: float, deltas: tuple[float, float], cells: tuple[int, int]
) -> None:
    """Both sums are at least those of exact fractions, read as binary or decimal numbers; delta is at most 1."""
    inputs = [
        covered(epsilon, origin, cells=count, delta=delta)
        for epsilon, delta, count, origin in zip((first, second), deltas, cells, "ab", strict=True)
    ]
    found = joint_guarantee(inputs)

    assert found is not None
    for guarantee, counts in ((found.per_cell, (1, 1)), (found.per_worker, cells)):
        exact = [
            sum(lower_exact_value(one) * count for one, count in zip(losses, counts, strict=True))
            for losses in ((first, second), deltas)
        ]
        assert lower_exact_value(guarantee.epsilon) >= exact[0]
        assert 1 >= lower_exact_value(guarantee.delta) >= min(1, exact[1])


def test_inputs_of_one_origin_count_once() -> None:
    """The same release, read twice or in part, counts once: by the largest epsilon, delta and number of cells."""
    twice = joint_guarantee([covered(1.0, "a"), of(covered(1.0, "a")), of(of(covered(1.0, "a")), role="start_from")])
    parts = [
        covered(1.0, "a", cells=9, delta=0.01),
        covered(2.0, "a", cells=3),
    ]

    assert twice == joint_guarantee([covered(1.0, "a")])
    assert twice is not None
    assert (1.0, 4.0) == (twice.per_cell.epsilon, twice.per_worker.epsilon)
    for order in (parts, parts[::-1]):
        found = joint_guarantee(order)
        assert found is not None
        assert found.per_cell.epsilon == pytest.approx(2.0)
        assert found.per_cell.delta == pytest.approx(0.01)
        assert found.per_worker.epsilon == pytest.approx(18.0)


NO_GUARANTEE = Input(role="gold", sha256=DIGEST)
OF_WORKER = covered(1.0, "b", unit="worker")
ENDS = {
    "gold": [NO_GUARANTEE],
    "answers behind a history": [of(NO_GUARANTEE)],
    "answers far behind": [of(covered(1.0, "b"), of(of(NO_GUARANTEE)))],
    "a guarantee of another unit": [OF_WORKER],
    "a history of which nothing is recorded": [Input(role="history", sha256=DIGEST)],
}


@pytest.mark.parametrize("name", ENDS)
def test_an_input_without_a_guarantee_ends_every_claim(name: str) -> None:
    """One uncovered input, however deep, leaves no guarantee, whatever covers the others."""
    for inputs in ([covered(1.0, "a"), *ENDS[name]], [*ENDS[name], covered(1.0, "a")], ENDS[name]):
        assert joint_guarantee(inputs) is None


def test_public_inputs_cost_nothing() -> None:
    """What is stated to be independent of all answers changes no guarantee, and has none of its own."""
    one, gold = covered(1.0, "a"), replace(NO_GUARANTEE, public=True)

    assert joint_guarantee([one]) == joint_guarantee([PUBLIC, one, gold, of(one, gold)])
    assert joint_guarantee([]) is joint_guarantee([PUBLIC, gold]) is None


def test_one_release_with_public_participation_makes_all_public() -> None:
    """Who answered what is hidden by the whole only if every release hides it."""
    hidden, seen = covered(1.0, "a"), covered(1.0, "b", participation="public")

    for inputs, participation in (([hidden], "protected"), ([hidden, seen], "public"), ([of(seen), hidden], "public")):
        found = joint_guarantee(inputs)
        assert found is not None
        assert (participation, participation) == (found.per_cell.participation, found.per_worker.participation)


def test_releases_of_a_history_are_those_of_all_its_inputs() -> None:
    """An input is a function of its inputs: these count, public ones do not, and an input without any counts itself."""
    first, second = covered(1.0, "a"), covered(2.0, "b")

    assert (first, second, NO_GUARANTEE) == of(of(first, PUBLIC), second, NO_GUARANTEE).releases
    assert (first,) == first.releases
    assert () == PUBLIC.releases == of(PUBLIC).releases
