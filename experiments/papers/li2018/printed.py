"""Tables 2 and 3 as printed: error rate change by claimed epsilon."""

from collections.abc import Sequence

from experiments.papers.exhibit import Row
from experiments.papers.li2018.crowds import DUCHENNE, PEER

EPSILONS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.01, 0.001, 0.0)
VOTE, TRUTH = "majority vote", "truth discovery"
TABLE_2 = (
    (0.1019, 0.0850, 0.0885, 0.0619), (0.1135, 0.0954, 0.1112, 0.0800), (0.1300, 0.1127, 0.1212, 0.0827),
    (0.1404, 0.1135, 0.1265, 0.0923), (0.1615, 0.1408, 0.1554, 0.1138), (0.1669, 0.1546, 0.1631, 0.1262),
    (0.1788, 0.1604, 0.1696, 0.1354), (0.1842, 0.1658, 0.1785, 0.1415), (0.2042, 0.1823, 0.1938, 0.1581),
    (0.2269, 0.2088, 0.2165, 0.1723), (0.2373, 0.2135, 0.2327, 0.1865), (0.2485, 0.2196, 0.2377, 0.1958),
    (0.2504, 0.2212, 0.2419, 0.1992),
)  # fmt: skip
TABLE_3 = (
    (0.1228, 0.0735, 0.1240, 0.0560), (0.1296, 0.0870, 0.1337, 0.0629), (0.1438, 0.1104, 0.1447, 0.0709),
    (0.1459, 0.1157, 0.1564, 0.0821), (0.1699, 0.1321, 0.1701, 0.0906), (0.1784, 0.1562, 0.1738, 0.0962),
    (0.1917, 0.1769, 0.1903, 0.1081), (0.2126, 0.1930, 0.2133, 0.1271), (0.2218, 0.2016, 0.2160, 0.1379),
    (0.2335, 0.2086, 0.2248, 0.1511), (0.2406, 0.2150, 0.2362, 0.1742), (0.2414, 0.2178, 0.2426, 0.1774),
    (0.2516, 0.2277, 0.2447, 0.1793),
)  # fmt: skip


def printed_rows(table: Sequence[Sequence[float]]) -> tuple[Row, ...]:
    """Return the rows of Table 2 or 3: per epsilon one-layer MV and TD, two-layer MV and TD."""
    names = [(mechanism, inference) for mechanism in ("one-layer", "two-layer") for inference in (VOTE, TRUTH)]
    return tuple(
        {
            "mechanism": mechanism,
            "inference": inference,
            "claimed_epsilon": claimed,
            "change": change,
            "read_off": "printed",
        }
        for claimed, changes in zip(EPSILONS, table, strict=True)
        for (mechanism, inference), change in zip(names, changes, strict=True)
    )


PEER_GRADING, DUCHENNE_SMILES = printed_rows(TABLE_2), printed_rows(TABLE_3)
PRINTED = {PEER: PEER_GRADING, DUCHENNE: DUCHENNE_SMILES}
"""Printed rows by crowd."""
