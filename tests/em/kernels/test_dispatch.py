"""Which kernels run, and in how many threads."""

from typing import Any

import pytest

from crowdveil.em.kernels import dispatch
from crowdveil.errors import SettingsError


def test_size_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are done without compiled code, large ones with it."""
    monkeypatch.delenv(dispatch.KERNELS_VARIABLE, raising=False)

    assert not dispatch.use_compiled(dispatch.MIN_COMPILED_REPORTS - 1)
    assert dispatch.use_compiled(dispatch.MIN_COMPILED_REPORTS)


def test_threads_are_idle_cores_or_as_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment variable decides; else there is one thread per idle core, at least one."""
    monkeypatch.setenv(dispatch.THREADS_VARIABLE, "3")
    assert dispatch.thread_count() == 3
    monkeypatch.delenv(dispatch.THREADS_VARIABLE)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.setattr("os.getloadavg", lambda: (2.7, 0.0, 0.0), raising=False)
    assert dispatch.thread_count() == 6
    monkeypatch.setattr("os.getloadavg", lambda: (90.0, 0.0, 0.0), raising=False)
    assert dispatch.thread_count() == 1


def test_results_come_in_order_and_few_wait() -> None:
    """Threads give results in the order of the arguments, and begin few of them before the first one is taken."""
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        return number

    with dispatch.parallel_map(2) as each:
        results = iter(each(work, range(50)))
        first = next(results)
        assert len(begun) <= 4
        assert list(range(50)) == [first, *results]


@pytest.mark.parametrize("given", ["0", "two", "-1", "1.5"])
def test_wrong_thread_counts_are_refused(monkeypatch: pytest.MonkeyPatch, given: Any) -> None:
    """The number of threads is a whole number from 1."""
    monkeypatch.setenv(dispatch.THREADS_VARIABLE, given)

    with pytest.raises(SettingsError, match=dispatch.THREADS_VARIABLE):
        dispatch.thread_count()


def test_blocks_never_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of blocks follows from the data alone: two or more, neither tiny nor beyond memory."""
    asked = [(10**5, 10), (4 * 10**6, 10**8), (8 * 10**6, 10**5), (10**9, 10**5), (10**9, 10**9)]
    monkeypatch.setenv(dispatch.THREADS_VARIABLE, "1")
    sizes = [dispatch.reports_per_reproducible_block(reports, cells, compiled=True) for reports, cells in asked]
    monkeypatch.setenv(dispatch.THREADS_VARIABLE, "7")

    assert sizes == [dispatch.reports_per_reproducible_block(reports, cells, compiled=True) for reports, cells in asked]
    assert sizes == [
        dispatch.MIN_BLOCK_REPORTS,
        2_015_626,
        1_031_251,
        dispatch.MAX_BLOCK_REPORTS,
        dispatch.MAX_BLOCK_REPORTS,
    ]
