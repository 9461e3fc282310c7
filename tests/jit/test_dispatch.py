"""Whether code is compiled."""

import pytest

from crowdveil.errors import SettingsError
from crowdveil.jit import dispatch
from crowdveil.jit.dispatch import compiled_pays


def test_size_decides_unless_the_environment_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little work is done without compiled code, much with it, unless the environment says which."""
    monkeypatch.delenv(dispatch.KERNELS, raising=False)
    assert [False, True] == [compiled_pays(size, 10) for size in (9, 10)]
    monkeypatch.setenv(dispatch.KERNELS, "plain")
    assert not compiled_pays(10**9, 10)
    monkeypatch.setenv(dispatch.KERNELS, "compiled")
    assert compiled_pays(1, 10)


def test_a_misspelt_choice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown word in the environment is named."""
    monkeypatch.setenv(dispatch.KERNELS, "fast")

    with pytest.raises(SettingsError, match="'fast'"):
        compiled_pays(1, 10)
