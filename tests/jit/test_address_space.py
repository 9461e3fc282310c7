"""Address space under a limit, and what is not compiled where there is too little of it."""

import pytest

from crowdveil.jit import address_space
from crowdveil.jit.dispatch import KERNELS, compiled_pays

resource = pytest.importorskip("resource")


@pytest.fixture
def limit(monkeypatch, tmp_path):
    """Return a function that pretends a limit of the address space, of which 1,000 pages are used."""
    monkeypatch.delenv(KERNELS, raising=False)
    (tmp_path / "statm").write_text("1000 10 10 1 0 10 0\n")
    monkeypatch.setattr(address_space, "SIZE", tmp_path / "statm")
    return lambda size: monkeypatch.setattr(resource, "getrlimit", lambda _: (size, size))


def test_what_is_left_is_the_limit_less_what_is_mapped(limit) -> None:
    """Pages in use are counted off; nothing is left beyond the limit, and without one nothing is known."""
    used = 1000 * resource.getpagesize()
    found = []
    for size in (used + 5, used - 5, resource.RLIM_INFINITY):
        limit(size)
        found.append(address_space.left())

    assert [5, 0, None] == found


def test_nothing_is_compiled_without_space_for_the_compiler(limit, monkeypatch) -> None:
    """By size alone work would be compiled; under a tight limit it is not, unless the environment insists."""
    found = []
    for size in (resource.RLIM_INFINITY, 1 << 40, 1 << 30):
        limit(size)
        found.append(compiled_pays(10, 5))
    monkeypatch.setenv(KERNELS, "compiled")

    assert [True, True, False] == found
    assert compiled_pays(10, 5)
