"""Inputs of a result: each by its digest, and the guarantee that covers it, if there is one.

A result is a function of its inputs, so its privacy loss is at most the sum over inputs that were randomized
independently (post-processing and basic composition, Dwork and Roth 2014, theorem 3.16). An input that may depend on
answers and has no guarantee ends every claim. Inputs that were stated before anyone answered, or that the user states
to be independent of the answers, cost nothing.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from crowdveil.channels.guarantee import Guarantee, Participation, Unit
from crowdveil.channels.rounding import sum_rounded_up
from crowdveil.standalone.checks import HEX, fits
from crowdveil.standalone.verification import parse_json

Role = Literal[
    "reports",
    "certificate",
    "crowd",
    "assignment",
    "tasks",
    "workers",
    "prior",
    "costs",
    "gold",
    "score",
    "history",
    "start_from",
    "weight",
]
"""Argument by which an input was given."""
_GUARANTEE = {"epsilon": float, "delta": float, "unit": "cell|worker", "participation": "protected|public"}
MAX_CELLS, MAX_DEPTH = 1 << 53, 20
"""Bounds of a count of cells, and of inputs within inputs."""


@dataclass(frozen=True, kw_only=True)
class Input:
    """One input of a result.

    Attributes:
        role: argument by which it was given.
        sha256: digest of its contents, in hexadecimal.
        guarantee: of one cell, by the randomization that it went through; None if it is public, or has none.
        cells: largest number of cells of one worker under that guarantee.
        public: whether it is stated to be independent of all answers, or no written result depends on it.
        origin: digest of the reports and their channel; inputs of one origin are one release. Empty without a
            guarantee.
        inputs: inputs of which it is a function, such as those of an earlier estimate.
    """

    role: Role
    sha256: str
    guarantee: Guarantee | None = None
    cells: int = 0
    public: bool = False
    origin: str = ""
    inputs: tuple["Input", ...] = ()

    @property
    def releases(self) -> tuple["Input", ...]:
        """The inputs that depend on answers, down to those that are no function of others; itself if it is one."""
        if self.public:
            return ()
        return tuple(one for inner in self.inputs for one in inner.releases) if self.inputs else (self,)

    def as_json(self) -> dict[str, Any]:
        """Return the input as JSON data."""
        data: dict[str, Any] = {"role": self.role, "sha256": self.sha256, "public": self.public, "origin": self.origin}
        if self.guarantee is not None:
            promise = {name: getattr(self.guarantee, name) for name in _GUARANTEE}
            data |= {"guarantee": promise, "cells": self.cells}
        return data | ({"inputs": [one.as_json() for one in self.inputs]} if self.inputs else {})

    @classmethod
    def from_json(cls, data: Any, depth: int = MAX_DEPTH) -> Self:
        """Return the input in JSON data.

        Raises:
            ValueError: it is none.
        """
        form: dict[str, Any] = {"role": "|".join(get_args(Role)), "sha256": HEX, "public": bool, "origin": str}
        if isinstance(data, dict) and "guarantee" in data:
            form |= {"guarantee": _GUARANTEE, "cells": range(1, MAX_CELLS), "public": False, "origin": ".+"}
        if isinstance(data, dict) and "inputs" in data:
            form |= {"inputs": [dict], "public": False}
        if depth < 0 or not fits(data, form):
            raise ValueError("an input has a role, a digest, an origin, and says whether it is public")
        promise = Guarantee(**data["guarantee"]) if "guarantee" in data else None
        inner = tuple(cls.from_json(one, depth - 1) for one in data.get("inputs", ()))
        return cls(**{**data, "guarantee": promise, "inputs": inner})


def derived_input(role: Role, sha256: str, recorded: Iterable[Input]) -> Input:
    """Return a file that was made from recorded inputs as an input; its releases stand in it once, not nested.

    Without a record it has no guarantee.
    """
    made_from = tuple(recorded)
    releases = tuple(dict.fromkeys(release for one in made_from for release in one.releases))
    return Input(role=role, sha256=sha256, inputs=releases, public=bool(made_from) and not releases)


def inputs_to_json(inputs: Iterable[Input]) -> str:
    """Return inputs as JSON text."""
    return json.dumps([one.as_json() for one in inputs], ensure_ascii=False)


def inputs_of_json(text: str) -> tuple[Input, ...]:
    """Return the inputs in JSON text.

    Raises:
        ValueError: they are none.
    """
    data = parse_json(text.encode())
    if not isinstance(data, list) or not data:
        raise ValueError("inputs must be a list")
    return tuple(map(Input.from_json, data))


@dataclass(frozen=True, kw_only=True)
class JointGuarantee:
    """Guarantees of a result of several inputs.

    Attributes:
        per_cell: of one answer.
        per_worker: of all answers of one worker.
    """

    per_cell: Guarantee
    per_worker: Guarantee


def joint_guarantee(inputs: Iterable[Input]) -> JointGuarantee | None:
    """Return the guarantee of a result with these inputs; None if one of them has none, or all are public.

    Inputs of one origin are one release: they count once, with the largest epsilon, delta and number of cells.
    """
    dependent = [one for given in inputs for one in given.releases]
    if not dependent or any(one.guarantee is None or one.guarantee.unit != "cell" for one in dependent):
        return None
    releases: dict[str, list[Input]] = {}
    for one in dependent:
        releases.setdefault(one.origin, []).append(one)
    public = any(one.guarantee is not None and one.guarantee.participation == "public" for one in dependent)
    participation: Participation = "public" if public else "protected"

    def summed(unit: Unit) -> Guarantee:
        counts = [1 if unit == "cell" else max(one.cells for one in same) for same in releases.values()]
        return Guarantee(
            epsilon=sum_rounded_up(zip(map(_largest_epsilon, releases.values()), counts, strict=True)),
            delta=min(1.0, sum_rounded_up(zip(map(_largest_delta, releases.values()), counts, strict=True))),
            unit=unit,
            participation=participation,
        )

    return JointGuarantee(per_cell=summed("cell"), per_worker=summed("worker"))


def _largest_epsilon(same: Iterable[Input]) -> float:
    return max(one.guarantee.epsilon for one in same if one.guarantee is not None)


def _largest_delta(same: Iterable[Input]) -> float:
    return max(one.guarantee.delta for one in same if one.guarantee is not None)
