"""Exhibit: a table, figure or theorem of a paper, declared in the paper's `exhibits.toml`.

A table of that file has the texts (title, source, notes, open_parameters), the numbers that the paper prints (paper),
the columns of the rows, the data sets (data), the picture (see `picture.py`) and the sweeps (steps). In a sweep a list
is swept, the first key outermost; a table with the keys quick and full has a value per size, and default where it
differs from full. The module of the same name has what computes: `measure`, `verdict`, and `configurations` and `draw`
where steps and picture do not suffice. The key of such a name gives another function, "module.function", and `paper` a
constant. An exhibit that is `like` a table of [shared] has its functions, and its lists before its own.
"""

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from experiments.papers.picture import Figure, Row, draw
from numpy.typing import ArrayLike

PAPERS = Path(__file__).parent
Size = Literal["quick", "default", "full"]
"""quick: seconds, in the test suite; default: minutes; full: the paper's own grid and repeats."""
Configuration = dict[str, Any]
"""Everything that one step depends on, seed included: the key of the cache."""
Outcome = Literal["reproduced", "reproduced but trivial", "reproduced in part", "not reproduced", "cannot be judged"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Comparison of the paper's numbers with ours.

    Attributes:
        outcome: whether the exhibit was reproduced.
        sentence: the comparison in one sentence.
        inequality: the inequality that the sentence depends on, evaluated on the given rows.
    """

    outcome: Outcome
    sentence: str
    inequality: bool


@dataclass(frozen=True, slots=True)
class Exhibit:
    """Table, figure or theorem of a paper.

    Attributes:
        name: "paper/exhibit", such as "sun2018/figure2".
        title: what is shown.
        source: place in the paper, such as "Sun et al. 2018, Figure 2".
        columns: names of the columns of every row, in order.
        configurations: steps of a size.
        measure: rows of one step; deterministic.
        paper: numbers printed in the paper; a column says which were read off a figure.
        draw: draws all rows on an empty figure.
        verdict: verdict on all rows.
        open_parameters: parameters that the paper does not give: name, value of the main rows (used), values that were
            tried (swept), and what the choice changed, in one sentence (effect).
        notes: sentences for the page: unit of epsilon, participation, what is compared.
        data: data sets that are read; without them the exhibit cannot run.
    """

    name: str
    title: str
    source: str
    columns: tuple[str, ...]
    configurations: Callable[[Size], list[Configuration]]
    measure: Callable[[Configuration], list[Row]]
    paper: tuple[Row, ...]
    draw: Callable[[list[Row], Figure], None]
    verdict: Callable[[list[Row]], Verdict]
    open_parameters: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    data: tuple[str, ...] = ()


def standard_error(values: ArrayLike) -> float | None:
    """Return the standard error of the mean of some numbers; None for one number."""
    numbers = np.asarray(values, dtype=float)
    return float(numbers.std(ddof=1) / math.sqrt(len(numbers))) if len(numbers) > 1 else None


def seed_of_point(seed: int, *point: float) -> int:
    """Return a seed of a point of a sweep, so that no two points of an exhibit share their draws."""
    numbers = [round(1_000_000 * one) for one in point]
    return int(np.random.SeedSequence([seed, *numbers]).generate_state(1)[0])


def exhibits_of(paper: str) -> list[str]:
    """Return the names of a paper's exhibits in the paper."""
    return [stem for stem in _declarations(paper) if stem != "shared"]


@cache
def _declarations(paper: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads((PAPERS / paper / "exhibits.toml").read_text("utf-8"))


def entry_of(paper: str, stem: str) -> dict[str, Any]:
    """Return the table of an exhibit, with what it is `like`."""
    entry, shared = _declarations(paper)[stem], _declarations(paper).get("shared", {})
    base = shared.get(entry.get("like"), {})
    lists = {name: base[name] + entry[name] for name in base if name in entry and isinstance(base[name], list)}
    return base | entry | lists


def declared(name: str) -> Exhibit:
    """Return an exhibit by its name, "paper/exhibit"."""
    paper, _, stem = name.partition("/")
    entry = entry_of(paper, stem)
    printed = entry.get("paper", [])
    return Exhibit(
        name=name,
        title=entry["title"],
        source=entry["source"],
        columns=tuple(entry["columns"]),
        configurations=_sweeps(entry["steps"]) if "steps" in entry else _found(name, "configurations"),
        measure=_found(name, "measure"),
        paper=tuple(_found(name, "paper") if isinstance(printed, str) else printed),
        draw=partial(draw, entry["picture"]) if "picture" in entry else _found(name, "draw"),
        verdict=_found(name, "verdict"),
        open_parameters=tuple(entry.get("open_parameters", [])),
        notes=tuple(entry["notes"]),
        data=tuple(entry.get("data", [])),
    )


def _found(name: str, role: str) -> Any:
    """Return a function or constant of an exhibit."""
    paper, _, stem = name.partition("/")
    module, _, found = entry_of(paper, stem).get(role, f"{stem}.{role}").partition(".")
    return getattr(import_module(f"experiments.papers.{paper}.{module}"), found)


def _sweeps(steps: list[dict[str, Any]]) -> Callable[[Size], list[Configuration]]:
    """Return the configurations of all sweeps, one after the other."""
    return lambda size: [one for sweep in steps for one in _sweep(sweep, size)]


def _sweep(sweep: dict[str, Any], size: Size) -> list[Configuration]:
    values = [value.get(size, value["full"]) if isinstance(value, dict) else value for value in sweep.values()]
    swept = product(*(value if isinstance(value, list) else [value] for value in values))
    return [dict(zip(sweep, one, strict=True)) for one in swept]
