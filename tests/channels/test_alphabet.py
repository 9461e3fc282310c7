"""Alphabets and guarantees as values, and the vectors that devices read."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import MAX_LABELS, Categories, Scale, alphabet_from_json, alphabet_to_json
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Guarantee
from crowdveil.errors import SettingsError
from tests.device_vectors import Replayed, read_vectors


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        (("only",), "2 to 1024"),
        (tuple(map(str, range(MAX_LABELS + 1))), "2 to 1024"),
        (("a", "a"), "distinct"),
        (("a", "NULL"), "cannot be labels"),
        (("a", ""), "cannot be labels"),
        (("a", "\ud800"), "written in UTF-8"),
    ],
)
def test_categories_refuse_bad_names(names, rule):
    """Too few, too many, repeated, reserved and empty labels are refused."""
    with pytest.raises(SettingsError, match=rule):
        Categories(names)


def test_categories_count_and_number_their_labels():
    """Labels are numbered in their order, NULL not counted."""
    ratings = Categories(("G", "P", "R"), ordered=True)

    assert (3, [0.0, 1.0, 2.0]) == (ratings.size, ratings.values.tolist())


@pytest.mark.parametrize(
    ("low", "high", "step"), [(1, 1, 1), (2, 1, 1), (0, 1, 0), (0, 1, -1), (math.nan, 1, 1), (0, math.inf, 1)]
)
def test_scale_needs_a_finite_rising_range(low, high, step):
    """low < high, step > 0, all finite."""
    with pytest.raises(SettingsError, match="finite low < high"):
        Scale(low, high, step)


@pytest.mark.parametrize(("low", "high", "step"), [(0, 1e101, 1e101), (-1e101, 0, 1e101), (0, 1e-101, 1e-101)])
def test_scale_has_numbers_that_can_be_squared(low, high, step):
    """Numbers beyond 1e100, or nearer to 0 than 1e-100, are refused."""
    assert 2 == Scale(0, 1e100, 1e100).size == Scale(0, 1e-100, 1e-100).size
    with pytest.raises(SettingsError, match="must be 0, or between 1e-100 and 1e\\+100 in size"):
        Scale(low, high, step)


def test_scale_is_a_whole_number_of_steps():
    """A range that the step does not divide is refused, by the decimals written."""
    with pytest.raises(SettingsError, match="whole number of steps"):
        Scale(0, 1, 0.3)


def test_scale_has_at_most_1024_points():
    """1024 points are accepted, one more is refused."""
    assert MAX_LABELS == Scale(0, 1023).size
    with pytest.raises(SettingsError, match="at most 1024"):
        Scale(0, 1024)


def test_scale_reads_decimals_as_written():
    """0.1 is one tenth: ten steps of it make one, and the names are the shortest decimals."""
    tenths = Scale(0, 1, 0.1)

    assert 11 == tenths.size
    assert ("0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1") == tenths.names


def test_scale_names_stay_distinct_far_from_zero():
    """Names keep all digits of a number, so that two grid points never share one."""
    assert ("1000000", "1000000.5", "1000001") == Scale(1_000_000, 1_000_001, 0.5).names


def test_scale_knows_its_range_and_order():
    """The range is the sensitivity of a cell; numbers are ordered."""
    scale = Scale(-1, 2, 0.5)

    assert (3.0, True) == (scale.range, scale.ordered)
    np.testing.assert_allclose(scale.values, [-1, -0.5, 0, 0.5, 1, 1.5, 2])


def test_scale_refuses_nan():
    """An absent answer is NULL, not NaN."""
    with pytest.raises(SettingsError, match="must be numbers"):
        Scale(0, 1).encode([0.5, math.nan])


@given(st.integers(-50, 50), st.integers(1, 60), st.sampled_from([1.0, 0.5, 0.25, 0.1, 3.0]), st.data())
def test_encode_finds_the_nearest_point(low, points, step, data):
    """No grid point is nearer to the clipped answer than the coded one."""
    high = float(f"{low + points * step:.10g}")
    scale = Scale(low, high, step)
    answer = data.draw(st.floats(low - 5, high + 5))

    code = int(scale.encode(answer))

    distances = np.abs(scale.values - min(max(answer, low), high))
    assert distances[code] <= distances.min() + 1e-9


@pytest.mark.parametrize(
    "alphabet", [Categories(("no", "yes")), Categories(("a", "ü"), ordered=True), Scale(0, 9), Scale(-0.5, 1, 0.1)]
)
def test_alphabets_survive_json(alphabet):
    """Writing and reading an alphabet gives it back."""
    assert alphabet == alphabet_from_json(json.loads(json.dumps(alphabet_to_json(alphabet))))


def test_whole_numbers_are_written_as_integers():
    """A scale has one JSON form, whether it was made of integers or floats, and any language writes it so."""
    assert '{"kind": "scale", "low": 0, "high": 9, "step": 0.5}' == json.dumps(alphabet_to_json(Scale(0.0, 9, 0.5)))


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {"kind": "colours"},
        {"kind": "scale", "low": 0, "high": 1},
        {"kind": "scale", "low": True, "high": 2, "step": 1},
        {"kind": "scale", "low": 0, "high": 10**400, "step": 1},
        {"kind": "scale", "low": "0", "high": 1, "step": 1},
        {"kind": "categories", "names": ["a", 1], "ordered": False},
        {"kind": "categories", "names": ["a", "b"], "ordered": 1},
        {"kind": "categories", "names": "ab", "ordered": False},
    ],
)
def test_malformed_descriptions_are_refused(data):
    """What is neither a scale nor categories is refused as a setting."""
    with pytest.raises(SettingsError, match="must be described as"):
        alphabet_from_json(data)


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", -0.1), ("epsilon", math.nan), ("claimed", -1.0), ("claimed", math.nan)]
    + [("delta", value) for value in (-1e-9, 1.1, math.nan)],
)
def test_figures_out_of_range_are_refused(name, value):
    """Epsilon and what is claimed are not negative, delta is a probability, and none is nan."""
    with pytest.raises(SettingsError, match=name):
        Guarantee(**{"epsilon": 1.0, name: value})


@pytest.mark.parametrize(("delta", "spent"), [(0.01, 0.1), (0.7, 1.0)])
def test_a_worker_pays_for_every_cell(delta, spent):
    """Epsilon and delta of all cells add up; delta is a probability however often it is spent."""
    worker = Guarantee(epsilon=0.5, delta=delta).per_worker(10)

    assert (5.0, pytest.approx(spent), "worker") == (worker.epsilon, worker.delta, worker.unit)


def test_times_multiplies_the_claim():
    """What a paper claims is spent as often."""
    assert 3.0 == Guarantee(epsilon=2.0, claimed=1.0).times(3).claimed


def test_a_release_happens_at_least_once():
    """Zero releases are no guarantee."""
    with pytest.raises(SettingsError, match="number of releases must be"):
        Guarantee(epsilon=1.0).times(0)


def test_text_shows_claim_delta_and_reason():
    """A false claim is printed with the exact epsilon."""
    shown = str(Guarantee(epsilon=math.inf, delta=0.25, claimed=1.0, reason="leaks"))

    assert "epsilon = none (infinite) (claimed 1), delta = 0.25 per cell, participation protected; leaks" == shown


@pytest.mark.parametrize("vector", read_vectors("sampling.json"), ids=lambda vector: vector["name"])
def test_channel_draws_the_symbols_of_the_vectors(vector):
    """`Channel.sample` returns the vector's report from its answers and random bytes."""
    channel = Channel.from_certificate(vector["certificate"])

    report = channel.sample(np.array(vector["answers"]), Replayed(bytearray.fromhex(vector["random"])))

    assert vector["inputs"] == list(channel.inputs)
    assert vector["report"] == report.tolist()
