"""Whole campaigns whose reports have fewer symbols than there are answers: devices, service and inference."""

import csv
import io
from dataclasses import replace

import pytest

from crowdveil.campaign.document import Task
from crowdveil.channels.alphabet import Scale
from crowdveil.mechanisms import ChannelMechanism, Designed, QuantizedResponse
from crowdveil.service.demo import demo_content
from crowdveil.service.loopback import run_on_loopback

pytestmark = pytest.mark.slow

BLOCKS = QuantizedResponse(alphabet=Scale(0, 5), epsilon=8.0, cuts=(2, 4))


@pytest.mark.parametrize("mechanism", [BLOCKS, Designed.from_channel(BLOCKS.channel())], ids=lambda one: one.name)
def test_a_campaign_of_blocks_runs_from_devices_to_its_results(mechanism: ChannelMechanism) -> None:
    """Six workers report blocks; every task gets its number.

    At epsilon 8 a report is another than the answer's block with probability 0.001; that more than two of six differ,
    which alone could move a number to another block, has probability 4e-8 for both tasks together.
    """
    tasks = (Task("low", "About 1"), Task("high", "About 5"))
    content = replace(demo_content(), channels=(mechanism.channel(),), tasks=tasks, min_reports=6)

    found = run_on_loopback(content, [[0, 1]] * 6, [{0: "1", 1: "5"}] * 6)
    rows = csv.DictReader(io.StringIO(found.result.files["truths.csv"].decode("utf-8")))
    truth = {row["task"]: float(row["truth"]) for row in rows}

    assert ("0..1", "2..3", "4..5", "NULL") == found.campaign.channels[0].outputs
    assert truth["low"] < 2 < 3.5 < truth["high"]
