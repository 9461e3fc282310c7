"""Sampling vectors, which every device passes: the words at each border of each row give the stated symbols."""

import numpy as np
import pytest

from crowdveil.channels.channel import Channel
from tests.device_vectors import Replayed, read_vectors


@pytest.mark.parametrize("vector", read_vectors("sampling.json"), ids=lambda vector: vector["name"])
def test_channel_draws_the_symbols_of_the_vectors(vector):
    """`Channel.sample` returns the vector's report from its answers and random bytes."""
    channel = Channel.from_certificate(vector["certificate"])

    report = channel.sample(np.array(vector["answers"]), Replayed(bytearray.fromhex(vector["random"])))

    assert vector["inputs"] == list(channel.inputs)
    assert vector["report"] == report.tolist()
