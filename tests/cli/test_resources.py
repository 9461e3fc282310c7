"""`crowdveil infer` with limits: the same numbers, or a refusal that says what is needed."""

from collections.abc import Callable
from typing import Any

import pytest

from crowdveil.cli.options import parse_bytes
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("text", "count"),
    [("1", 1), ("2GB", 2 * 10**9), ("1.5 GiB", 3 * 2**29), ("500m", 5 * 10**8), ("8KB", 8000), ("3TiB", 3 * 2**40)],
)
def test_sizes_are_read(text: str, count: int) -> None:
    """A size is a number with a unit, decimal or binary, in any case, with or without a blank or the B."""
    assert count == parse_bytes(text)


@pytest.mark.parametrize("text", ["", "GB", "2 XB", "-1GB", "2GB4", "1e9"])
def test_other_sizes_are_refused(text: str) -> None:
    """What is no size is a wrong use of the command."""
    with pytest.raises(ValueError, match="is not a size such as 2GB"):
        parse_bytes(text)


def test_memory_changes_no_number(run: Run, run_json: Callable[..., dict[str, Any]]) -> None:
    """Under a limit the command prints what it prints without."""
    run("data", "encode", "labels.csv", "--out", "blocks")

    found = [run_json("infer", "blocks", *words) for words in ((), ("--memory", "8GB"))]

    assert found[0] | {"replaced": ["blocks/truths.csv", "blocks/workers.csv"]} == found[1]


@pytest.mark.slow
def test_an_engine_changes_no_number(run_json: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a local cluster the command prints what it prints without, of encoded blocks."""
    monkeypatch.setenv("CROWDVEIL_THREADS", "1")
    run_json("data", "encode", "labels.csv", "--out", "blocks")

    found = [run_json("infer", "blocks", *words) for words in ((), ("--engine", "dask"))]

    assert found[0] | {"replaced": ["blocks/truths.csv", "blocks/workers.csv"]} == found[1]
