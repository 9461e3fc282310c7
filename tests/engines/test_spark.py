"""The engine `spark` on this machine: the bits of one thread."""

from pathlib import Path

import pytest

from crowdveil import DawidSkene, OneCoin, Reports
from crowdveil.engines import Spark
from crowdveil.errors import ReportsError
from tests.engines.crowds import GOLD, REPORTS, assert_same, in_blocks

# Spark speaks of the versions of its own dependencies.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("pyspark", reason="Spark is not installed (crowdveil[spark])")


def test_spark_gives_the_same_bits(tmp_path: Path) -> None:
    """Estimates are those of one thread, whether blocks are sent to executors or read by them."""
    REPORTS.save(tmp_path)
    with in_blocks(50):
        for reports in (REPORTS, Reports.open(tmp_path)):
            for estimator in (DawidSkene(max_steps=4), OneCoin(max_steps=3)):
                assert_same(estimator.fit(reports, gold=GOLD, engine=Spark()), estimator.fit(REPORTS, gold=GOLD))


def test_refusals_arrive_as_they_are(tmp_path: Path) -> None:
    """What an executor refuses is refused with the same class and message as in one thread."""
    REPORTS.save(tmp_path)
    reports = Reports.open(tmp_path, verify=True)
    with in_blocks(50):
        OneCoin().fit(reports)
        path = tmp_path / "worker.i32"
        path.write_bytes(b"\1" + path.read_bytes()[1:])
        with pytest.raises(ReportsError, match=r"worker\.i32: encoded blocks must be whole"):
            OneCoin().fit(reports, engine=Spark())
