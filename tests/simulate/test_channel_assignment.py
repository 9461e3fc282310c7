"""What cells go through is built from files and words, one channel for each distinct row."""

from pathlib import Path

import numpy as np

from crowdveil.channels.alphabet import Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.assignment import Assignment
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.privacy.accounting import account_channel_table
from crowdveil.privacy.mechanism_settings import MechanismSettings
from crowdveil.simulate.channel_assignment import read_table

SCALE = Scale(0, 4)
WANTED = MechanismSettings(name="quantized-response", epsilon=2.0, cuts=("1",))


def test_equal_rows_share_a_channel(tmp_path: Path) -> None:
    """Four workers with two distinct pairs of settings make two channels; what is empty is the command's own."""
    path = tmp_path / "channels.csv"
    path.write_text("worker,epsilon,cuts\na,1,\nb,,2|4\nc,1,\nd,,2|4\n", encoding="utf-8")

    table = read_table(path, WANTED, SCALE, tasks=3)

    assert {"a": 0, "b": 1, "c": 0, "d": 1} == table.workers
    assert [("0", "1..4", "NULL"), ("0..1", "2..3", "4", "NULL")] == [one.outputs for one in table.channels]
    assert [1.0, 2.0] == [round(one.epsilon, 6) for one in table.channels]


def test_a_table_is_accounted_for_by_cells() -> None:
    """A worker's loss is the sum over the worker's own cells; the worst worker is shown, assigned cells only count."""
    half, two = (RandomizedResponse(alphabet=SCALE, epsilon=epsilon).channel() for epsilon in (0.5, 2.0))
    table = ChannelTable(
        channels=(half, two), choice=((0, 1), (1, 1)), workers={"a": 0, "b": 1}, tasks={"t": 0, "u": 1, "v": 0}
    )
    names = {"tasks": np.array(["t", "u", "v"]), "workers": np.array(["a", "b"])}
    few = Assignment.from_arrays(["t", "u", "t"], ["a", "a", "b"])

    everything = account_channel_table(table, **names)
    assigned = account_channel_table(table, **names, assignment=few)

    assert [two.epsilon, 3 * two.epsilon] == [row.exact for row in everything]
    assert [1, 3] == [row.cells for row in everything]
    assert [two.epsilon, half.epsilon + two.epsilon, 2] == [*(row.exact for row in assigned), assigned[1].cells]


def test_unprotected_cells_cost_everything_to_those_who_have_them() -> None:
    """One unprotected cell makes its worker's loss infinite, and no other's."""
    open_task = ChannelTable.by_task(
        [RandomizedResponse(alphabet=SCALE, epsilon=1.0).channel(), Channel.identity(SCALE, "public")],
        {"t": 0, "u": 1},
    )
    names = {"tasks": np.array(["t", "u"]), "workers": np.array(["a"])}

    assert np.inf == account_channel_table(open_task, **names)[1].exact
    protected = account_channel_table(open_task, **names, assignment=Assignment.from_arrays(["t"], ["a"]))[1]
    assert np.isclose(1.0, protected.exact, atol=1e-6)
