"""Options that several commands share; each group of options reaches a command as one value.

Options that say what a fit may use.
"""

from __future__ import annotations

import csv
import os
import pathlib
import re
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from crowdveil.registry import DESIGNED_MECHANISMS, ENGINE_NAMES, MECHANISM_ENTRIES, MECHANISM_NAMES, mechanisms_with

if TYPE_CHECKING:
    from crowdveil.channels.alphabet import Alphabet
    from crowdveil.channels.guarantee import Participation
    from crowdveil.workflow import MechanismWanted


class GivenPath(click.Path):
    """A path on the command line; empty text, such as a shell variable that is not set, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or end with wrong usage."""
        if not os.fspath(value):
            self.fail("A path must not be empty: was a shell variable not set?", param, ctx)
        return super().convert(value, param, ctx)


MOST = 10**12
"""The largest count: of more things than this no array could be made."""


class Count(click.types.IntParamType):
    """A whole number up to `MOST`, and of at least `least` where that is given."""

    def __init__(self, least: int | None) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or end with wrong usage."""
        number = int(super().convert(value, param, ctx))
        if number > MOST or (self.least is not None and number < self.least):
            span = f"at most {MOST}" if self.least is None else f"from {self.least} to {MOST}"
            self.fail(f"{value} is not a whole number {span}.", param, ctx)
        return number


COUNT, CHECKED_COUNT = Count(1), Count(None)
"""The second is for counts whose smallest value the library knows."""
PATH = GivenPath(path_type=pathlib.Path)
Command = TypeVar("Command", bound=Callable[..., Any])


def as_one(name: str, build: Callable[..., object], *options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Declare options that reach the command as one argument `name`: what `build` makes of them."""

    def declare(command: Command) -> Command:
        @wraps(command)
        def gathered(**given: Any) -> Any:
            parts = {part: given.pop(part) for part in build.__annotations__ if part != "return"}
            return command(**{name: build(**parts)}, **given)

        declared: Any = gathered
        for option in reversed(options):
            declared = option(declared)
        return declared

    return declare


def _alphabet(*, labels: str | None, scale: str | None, ordered: bool) -> Alphabet | None:
    from crowdveil.channels.alphabet import Categories, Scale

    if labels is not None and scale is not None:
        raise click.UsageError("Give --labels or --scale, not both.")
    if ordered and labels is None:
        raise click.UsageError("--ordered says how to read --labels: give both.")
    if labels is not None:
        return Categories(_words(labels), ordered)
    return None if scale is None else Scale(*_bounds(scale))


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(next(csv.reader([text], skipinitialspace=True, strict=True), []))
    except csv.Error as error:
        raise click.UsageError(
            f"Write labels with commas between them, and odd ones in closed quotes; found {text[:100]!r}: {error}."
        ) from None


def numbers(text: str, option: str) -> tuple[float, ...]:
    """Read a list of numbers with commas between them, given to an option."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of numbers.", param_hint=f"'{option}'") from None


def _bounds(text: str) -> list[float]:
    try:
        bounds = [float(part) for part in text.split(":")]
    except ValueError:
        bounds = []
    if len(bounds) not in (2, 3):
        raise click.BadParameter(f"{text!r} is not LOW:HIGH or LOW:HIGH:STEP.", param_hint="'--scale'")
    return bounds


def _wanted(
    *,
    mechanism: str,
    epsilon: float | None,
    participation: Participation,
    null_value: str | None,
    low: float | None,
    high: float | None,
    most_answers: int | None,
    dimensions: int | None,
    ridge: float | None,
    cuts: tuple[str, ...],
    prior: pathlib.Path | None,
    participation_rate: float | None,
    ability: float | None,
    sigmas: str | None,
) -> MechanismWanted:
    from crowdveil.workflow import Expectation, MechanismWanted

    expected = {"prior": prior, "participation_rate": participation_rate, "ability": ability, "sigmas": sigmas}
    given = [name for name, value in expected.items() if value is not None]
    if given and (mechanism not in DESIGNED_MECHANISMS or cuts):
        flag = "--" + given[0].replace("_", "-")
        raise click.UsageError(
            f"{flag} is an option of {' and '.join(DESIGNED_MECHANISMS)}, and of these without --cuts."
        )

    wanted = MechanismWanted(
        name=mechanism,
        epsilon=epsilon,
        participation=participation,
        null_value=null_value,
        low=low,
        high=high,
        answers=most_answers,
        dimensions=dimensions,
        ridge=ridge,
        cuts=_words(cuts[0]) if cuts else (),
        dealt_cuts=tuple(map(_words, cuts)) if len(cuts) > 1 else (),
        expected=Expectation(
            prior=prior,
            participation_rate=1.0 if participation_rate is None else participation_rate,
            ability=ability,
            sigmas=() if sigmas is None else numbers(sigmas, "--sigmas"),
        ),
    )
    _check_usage(wanted)
    return wanted


def _check_usage(wanted: MechanismWanted) -> None:
    """Refuse options that mean nothing to the mechanism, and an epsilon that is missing or said twice."""
    settings = dict.fromkeys(name for entry in MECHANISM_ENTRIES.values() for name in entry.settings)
    for setting in settings:
        if getattr(wanted, setting) not in (None, ()) and setting not in MECHANISM_ENTRIES[wanted.name].settings:
            flag = "--" + setting.replace("_", "-")
            owners = " and ".join(mechanisms_with(setting))
            raise click.UsageError(f"{flag} is an option of {owners}, not of {wanted.name}.")
    if wanted.high is not None and (wanted.low is None or wanted.epsilon is not None):
        raise click.UsageError("--high goes with --low and without --epsilon, which the two determine.")
    if wanted.epsilon is None and wanted.high is None:
        raise click.UsageError("Missing option '--epsilon'.")


alphabet_options = as_one(
    "alphabet",
    _alphabet,
    click.option("--labels", metavar="A,B,C", help="Labels an answer can be, in order if they have one."),
    click.option("--scale", metavar="LOW:HIGH[:STEP]", help="Grid of numbers an answer can be; the step is 1."),
    click.option("--ordered", is_flag=True, help="Labels are in order of meaning (laplace, weighted-mean)."),
)

mechanism_options = as_one(
    "wanted",
    _wanted,
    click.option(
        "--mechanism",
        type=click.Choice(MECHANISM_NAMES),
        required=True,
        metavar="NAME",
        help=f"How answers are randomized: {', '.join(MECHANISM_NAMES)}.",
    ),
    click.option(
        "--epsilon",
        type=float,
        metavar="E",
        help="Privacy loss in nats of one cell (one worker's answer to one task), in [1e-06, 20].",
    ),
    click.option(
        "--participation",
        type=click.Choice(["protected", "public"]),
        default="protected",
        show_default=True,
        help="protected: epsilon also hides whether a cell was answered; public: who answered what is visible.",
    ),
    click.option("--null-value", metavar="V", help="laplace: what stands for no answer. [default: uniform]"),
    click.option(
        "--low",
        type=float,
        metavar="A",
        help="two-layer: smallest flip probability of a worker; sun-two-layer: smallest budget. [default: 0]",
    ),
    click.option("--high", type=float, metavar="B", help="two-layer: largest; with --low, in place of --epsilon."),
    click.option(
        "--answers",
        "most_answers",
        type=COUNT,
        metavar="N",
        help="two-layer, sun-two-layer: most cells one worker sends; the exact epsilon per cell depends on it. "
        "[default: all tasks]",
    ),
    click.option(
        "--dimensions",
        type=COUNT,
        metavar="D",
        help="matrix-factorization: length of its two sums [default: one per task]; the published one needs it.",
    ),
    click.option(
        "--ridge", type=float, metavar="R", help="matrix-factorization-published: without it, often no report."
    ),
    click.option(
        "--cuts",
        metavar="A,B",
        multiple=True,
        help="quantized-response: first label of each block after the first; else chosen. Given several times, the "
        "cuts are dealt to the workers in turn.",
    ),
    click.option(
        "--prior",
        type=PATH,
        metavar="FILE",
        help="quantized-response, designed: public label,probability of truths. [default: all alike]",
    ),
    click.option(
        "--participation-rate",
        type=float,
        metavar="S",
        help="quantized-response, designed: share of cells expected to be answered. [default: 1]",
    ),
    click.option("--ability", type=float, metavar="P", help="The same: probability of a right answer. [default: 0.75]"),
    click.option(
        "--sigmas", metavar="S,T", help="The same, on a scale: workers' standard deviations, in equal shares."
    ),
)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of the table; nothing else on stdout."
)

replace_option = click.option(
    "--replace",
    is_flag=True,
    help="Remove the collection that is in the folder: the files recorded there as one, and no others. What it "
    "revealed stays revealed to those who have it.",
)


accept_edited_option = click.option(
    "--accept-edited",
    is_flag=True,
    help="Go on with reports that were edited after crowd.json was written; the result says so.",
)


merge_labels_option = click.option(
    "--merge-labels",
    is_flag=True,
    help="Read labels that differ only in spaces at their ends, invisible characters, case, Unicode form or the way a "
    "number is written as one: as --labels spells it, or else most rows.",
)


def duplicates_option(default: str | None) -> Callable[[Command], Command]:
    """Declare the policy for repeated (task, worker) pairs."""
    return click.option(
        "--duplicates",
        type=click.Choice(["error", "first", "last", "all"]),
        default=default,
        help="Where a worker answers a task twice: refuse, keep the first or the last in file order, or all. "
        "[default: error]",
    )


if TYPE_CHECKING:
    from crowdveil.workflow import Resources

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]I?|)B?", re.IGNORECASE)


def size(text: str) -> int:
    """Read a number of bytes with a unit: 2GB, 1.5 GiB, 500M."""
    parts = SIZE.fullmatch(text.strip())
    if parts is None:
        raise click.BadParameter(f"{text!r} is not a size such as 2GB or 500MB.", param_hint="'--memory'")
    return int(float(parts[1]) * UNITS[parts[2].upper()])


def _resources(*, memory: str | None, engine: str, address: str | None) -> Resources:
    from crowdveil.workflow import Resources

    return Resources(memory=None if memory is None else size(memory), engine=engine, address=address)


resource_options = as_one(
    "resources",
    _resources,
    click.option(
        "--memory",
        metavar="SIZE",
        help="Memory limit of the fit, such as 2GB; the results stay the same. [default: no limit]",
    ),
    click.option(
        "--engine",
        type=click.Choice(ENGINE_NAMES),
        default=ENGINE_NAMES[0],
        show_default=True,
        help="Where blocks of reports are worked on; the numbers stay the same.",
    ),
    click.option("--address", metavar="URL", help="dask: address of a running scheduler, such as tcp://HOST:8786."),
)
