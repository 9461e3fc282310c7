"""A table of channels: who goes through which, what devices send, and what a damaged table is refused for."""

import json
import math
from typing import Any

import numpy as np
import pytest

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable, is_channel_table, table_by_task
from crowdveil.errors import CertificateError, SettingsError
from crowdveil.mechanisms import QuantizedResponse, RandomizedResponse
from crowdveil.randomness import seeded
from crowdveil.standalone.checks import MAX_CHANNELS, digest
from crowdveil.standalone.verification import TABLE_FORMAT
from tests.chi_square import chi_square_p_value

SCALE = Scale(0, 4)
OWN = {"ann": 0, "bob": 1}


def response(epsilon: float, participation: str = "protected") -> Channel:
    """Return randomized response over the scale."""
    return RandomizedResponse(alphabet=SCALE, epsilon=epsilon, participation=participation).channel()  # type: ignore[arg-type]


def cut(at: int) -> Channel:
    """Return randomized response over two blocks of the scale."""
    return QuantizedResponse(alphabet=SCALE, epsilon=1.0, cuts=(at,)).channel()


def mixed() -> ChannelTable:
    """Return a table by worker and task, in which one group of tasks is not protected."""
    return ChannelTable(
        channels=(cut(1), cut(3), Channel.identity(SCALE, "public")),
        choice=((0, 2), (1, 2)),
        workers=OWN,
        tasks={"secret": 0, "open": 1},
    )


def test_each_cell_goes_through_the_channel_of_its_groups() -> None:
    """A device's reports on protected tasks are its own blocks; on open tasks they are the answers, NULL included."""
    table = mixed()
    names = np.array([*table.report_alphabet.names, "NULL"])
    (secret, opened), workers = table.groups(["secret", "open"], list(OWN))

    sent = [names[table.sample(table.choice[who][secret], np.full(200, 2), seeded(1))] for who in workers]
    shown = [names[table.sample(table.choice[who][opened], np.array([3, 5]), seeded(1))] for who in workers]

    assert [{"0", "1..4", "NULL"}, {"0..2", "3..4", "NULL"}] == list(map(set, sent))
    assert [["3", "NULL"]] * 2 == [own.tolist() for own in shown]


def test_reports_follow_the_channel() -> None:
    """100,000 reports through one channel of a table have its probabilities (chi-square, false alarm 1e-6)."""
    table = ChannelTable.by_worker([response(1.0), response(2.0)], OWN)

    reports = table.sample(1, np.full(100_000, 1), seeded(2))

    assert chi_square_p_value(np.bincount(reports, minlength=6), response(2.0).probabilities[1]) > 1e-6


def test_public_blanks_stay_blank() -> None:
    """Through a public channel NULL is sent as NULL, for all to see."""
    table = table_by_task([response(1.0, "public"), response(2.0, "public")], {"t": 0, "u": 1})

    assert [5, 5] == [int(table.sample(index, np.array([5]), seeded(3))[0]) for index in (0, 1)]


def test_reports_are_in_the_answers_alphabet_where_they_can_be() -> None:
    """Channels that send labels keep the alphabet; blocks of several cuts are named side by side."""
    labels = ChannelTable.by_worker([response(1.0), response(2.0)], OWN)
    blocks = ChannelTable.by_worker([cut(1), cut(3)], OWN)

    assert labels.report_alphabet == SCALE
    assert blocks.report_alphabet == Categories(("0", "1..4", "0..2", "3..4"))


def test_the_guarantee_is_that_of_the_worst_cell() -> None:
    """The largest epsilon counts, and one public channel makes participation public."""
    protected = ChannelTable.by_worker([response(1.0), response(2.0)], OWN).guarantee

    assert (response(2.0).epsilon, "protected") == (protected.epsilon, protected.participation)
    assert (math.inf, "public") == (mixed().guarantee.epsilon, mixed().guarantee.participation)
    assert "the weakest of 3 channels" in str(mixed().guarantee)
    assert "the weakest of 2 channels, whose smallest epsilon is 1" in str(protected)


def test_names_without_a_channel_are_refused() -> None:
    """A worker or task that the table does not name is never sent through anything."""
    with pytest.raises(SettingsError, match=r"every worker needs a channel.*'eve'.*1 have none"):
        mixed().groups(["open"], ["eve"])
    with pytest.raises(SettingsError, match=r"every task needs a channel.*'new'"):
        mixed().groups(np.array(["open", "new"]), np.array(["ann"]))


@pytest.mark.parametrize(
    ("changes", "defect"),
    [
        ({"channels": ()}, "shape"),
        ({"channels": (cut(1),) * (MAX_CHANNELS + 1)}, "shape"),
        ({"channels": (cut(1), RandomizedResponse(alphabet=Scale(0, 5), epsilon=1.0).channel())}, "alphabet"),
        ({"choice": ((0,), (1, 0))}, "shape"),
        ({"choice": ((0,), (2,))}, "shape"),
        ({"choice": ((0,), (0,))}, "shape"),
        ({"workers": {}}, "shape"),
        ({"workers": {"ann": 2}}, "shape"),
        ({"workers": {"ann": True}}, "shape"),
    ],
)
def test_tables_that_do_not_hold_together_are_refused(changes: dict[str, Any], defect: str) -> None:
    """Every rule of a table has its defect's name."""
    sound: dict[str, Any] = {"channels": (cut(1), cut(3)), "choice": ((0,), (1,)), "workers": OWN}

    with pytest.raises(CertificateError) as refused:
        ChannelTable(**(sound | changes))

    assert defect == refused.value.defect


def test_certificates_come_back() -> None:
    """A table's certificate gives the same table; only a table's says that it is one."""
    text = json.dumps(mixed().certificate())
    back = ChannelTable.from_certificate(text)

    assert mixed().certificate() == back.certificate()
    assert [one.rows for one in mixed().channels] == [one.rows for one in back.channels]
    assert is_channel_table(text)
    assert is_channel_table(text.encode())
    assert not is_channel_table(json.dumps(cut(1).certificate()))


def test_a_label_may_be_named_like_the_format_of_a_table() -> None:
    """Whether a certificate is a table's says its field `format`, not a text anywhere in it."""
    named = RandomizedResponse(alphabet=Categories((TABLE_FORMAT, "b")), epsilon=1.0).channel()

    assert not is_channel_table(json.dumps(named.certificate()))
    assert not is_channel_table("[]")
    assert not is_channel_table("{")


@pytest.mark.parametrize("changes", [{"workers": {"ann": 0, "ann\u200b": 1}}, {"workers": {"ann": 0, "ann ": 1}}])
def test_a_table_with_confusable_names_is_not_certified(changes: dict[str, Any]) -> None:
    """Two workers with confusable names have no certificate."""
    sound: dict[str, Any] = {"channels": (cut(1), cut(3)), "choice": ((0,), (1,)), "workers": OWN}

    with pytest.raises(CertificateError, match="are confusable"):
        ChannelTable(**(sound | changes)).certificate()


def test_a_table_with_invisible_names_is_not_certified() -> None:
    """A worker whose name has no visible character has no certificate."""
    with pytest.raises(CertificateError, match="without visible characters"):
        ChannelTable(channels=(cut(1), cut(3)), choice=((0,), (1,)), workers={"ann": 0, "\u3164": 1}).certificate()


def sealed(**changes: Any) -> str:
    """Return a certificate with some fields changed, under a seal that fits."""
    data = mixed().certificate() | changes
    return json.dumps(data | {"sha256": digest(data)})


@pytest.mark.parametrize(
    ("text", "defect"),
    [
        ("{", "not json"),
        ("[]", "format"),
        (json.dumps(cut(1).certificate()), "format"),
        (sealed(channels="all"), "format"),
        (sealed(choice=[1]), "format"),
        (sealed(choice=[[0.0, 2], [1, 2]]), "format"),
        (sealed(workers=[]), "format"),
        (sealed(channels=[{"unprotected": "all"}]), "alphabet"),
        (sealed(channels=[{"mechanism": "none"}]), "format"),
        (sealed(choice=[[0, 1], [1, 0]]), "shape"),
        (sealed(workers={"ann": 0, " ann": 1}), "text"),
        (sealed(workers={"": 0, "ann": 1}), "text"),
        (sealed(tasks={"\u3164": 0, "b": 1}), "text"),
        (sealed(tasks={"\u00e9": 0, "e\u0301": 1}), "text"),
        (sealed(channels=[{"unprotected": {"kind": "categories", "names": ["a", "b "], "ordered": False}}]), "text"),
        (sealed(channels=[cut(1).certificate() | {"note": "hello"}]), "format"),
        (
            json.dumps(mixed().certificate()).replace('"mechanism":', '"mechanism": "designed", "mechanism":', 1),
            "not json",
        ),
        (json.dumps(mixed().certificate()).replace('"ann":', '"ann": 1, "ann":', 1), "not json"),
        (json.dumps(mixed().certificate() | {"sha256": "0"}), "hash"),
        (" " * 33_000_000, "oversize"),
    ],
    ids=lambda value: value[:30] if len(value) < 1000 else "long",
)
def test_damaged_certificates_are_refused(text: str, defect: str) -> None:
    """Every way in which a table's certificate may be wrong has its defect's name."""
    with pytest.raises(CertificateError) as refused:
        ChannelTable.from_certificate(text)

    assert defect == refused.value.defect
