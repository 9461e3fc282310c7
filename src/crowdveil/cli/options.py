"""Shared options of the commands, and their conversion to settings of the library."""

from __future__ import annotations

import csv
import os
import pathlib
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from crowdveil.cli.verb import HEADING
from crowdveil.files.filesystem import scheme_of
from crowdveil.registry import DESIGNED_MECHANISMS, ENGINE_NAMES, MECHANISM_ENTRIES, MECHANISM_NAMES, mechanisms_with

if TYPE_CHECKING:
    from crowdveil.channels.alphabet import Alphabet
    from crowdveil.channels.guarantee import Participation
    from crowdveil.design.mechanism_from_settings import MechanismSettings
    from crowdveil.em.engines.executor import Engine

Command = TypeVar("Command", bound=Callable[..., Any])
MAX_COUNT = 10**12
"""Largest count that is accepted; no array can be larger."""
ANSWERS = "Answers"
"""Heading of the options of answers."""
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
"""Bytes of each unit of a size."""
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]I?|)B?", re.IGNORECASE)


class Shown(click.ParamType):  # type: ignore[type-arg]  # no generic in older versions of click
    """Type whose options show `metavar` in the help."""

    metavar = "N"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return the metavar of an option; arguments have their own names."""
        return None if isinstance(param, click.Argument) else self.metavar


class NonemptyPath(Shown, click.Path):
    """Path on the command line. Empty text, such as an unset shell variable, and URLs are refused."""

    def __init__(self, metavar: str, **settings: Any) -> None:
        super().__init__(path_type=pathlib.Path, **settings)
        self.metavar = metavar

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or end with wrong usage."""
        if not os.fspath(value):
            self.fail("A path must not be empty: was a shell variable not set?", param, ctx)
        if scheme_of(os.fspath(value)):
            self.fail(f"{value!r} is a URL: give a path of this machine, and copy files from or to a URL.", param, ctx)
        return super().convert(value, param, ctx)


class Count(Shown, click.types.IntParamType):
    """Whole number up to `MAX_COUNT`; at least `minimum` unless that is None."""

    def __init__(self, minimum: int | None) -> None:
        self.minimum = minimum

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or end with wrong usage."""
        number = int(super().convert(value, param, ctx))
        if number > MAX_COUNT or (self.minimum is not None and number < self.minimum):
            span = f"at most {MAX_COUNT}" if self.minimum is None else f"from {self.minimum} to {MAX_COUNT}"
            self.fail(f"{value} is not a whole number {span}.", param, ctx)
        return number


class WholeNumber(Shown, click.IntRange):
    """Whole number in a range."""


class Number(Shown, click.types.FloatParamType):
    """Number with the usual letter of its quantity."""

    def __init__(self, metavar: str) -> None:
        self.metavar = metavar


class Parsed(Shown):
    """Text with a structure; `parse` returns its value, or raises ValueError with the rule it breaks."""

    def __init__(self, metavar: str, parse: Callable[[str], Any]) -> None:
        self.name, self.metavar, self.parse = metavar.lower(), metavar, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value, or end with wrong usage."""
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def parse_words(text: str) -> tuple[str, ...]:
    """Return the words of a line of CSV; ValueError for open quotes."""
    try:
        return tuple(next(csv.reader([text], skipinitialspace=True, strict=True), []))
    except csv.Error as error:
        rule = "Labels must be separated by commas, with closed quotes"
        raise ValueError(f"{rule}; found {text[:100]!r}: {error}.") from None


def parse_numbers(text: str) -> tuple[float, ...]:
    """Return numbers separated by commas; ValueError for other text."""
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        raise ValueError(f"{text!r} is not a list of numbers.") from None


def parse_scale(text: str) -> tuple[float, ...]:
    """Return the low and high end of a scale, and its step if it is stated; ValueError for other text."""
    try:
        bounds = tuple(map(float, text.split(":")))
    except ValueError:
        bounds = ()
    if len(bounds) not in (2, 3):
        raise ValueError(f"{text!r} is not LOW:HIGH or LOW:HIGH:STEP.")
    return bounds


def parse_bytes(text: str) -> int:
    """Return the bytes of a size with a unit, such as 2GB, 1.5 GiB or 500M; ValueError for other text."""
    parts = SIZE.fullmatch(text.strip())
    if parts is None:
        raise ValueError(f"{text!r} is not a size such as 2GB or 500MB.")
    return int(float(parts[1]) * UNITS[parts[2].upper()])


WORDS, NUMBERS = Parsed("A,B,...", parse_words), Parsed("X,Y,...", parse_numbers)
GRID = Parsed("LOW:HIGH[:STEP]", parse_scale)
COUNT, CHECKED_COUNT = Count(1), Count(None)
"""The library checks the lower bound of the second."""
POSITIVE, SEED = WholeNumber(min=1), WholeNumber(min=0)
EPSILON, DELTA = Number("E"), Number("D")
FILE_PATH, FOLDER_PATH = NonemptyPath("FILE"), NonemptyPath("FOLDER")
FOLDER = NonemptyPath("FOLDER", file_okay=False)
"""Folder; a file is refused, and the library says what a missing folder should hold."""


class CampaignPath(NonemptyPath):
    """Campaign folder or its `campaign.json`: either is accepted for the other.

    Args:
        folder: convert to the path of the folder, otherwise to that of the file.
    """

    def __init__(self, *, folder: bool) -> None:
        super().__init__("FOLDER" if folder else "FILE")
        self.folder = folder

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> pathlib.Path:
        """Return the path of the folder or of the file, or end with wrong usage."""
        path = pathlib.Path(super().convert(value, param, ctx))
        if self.folder:
            return path.parent if path.name == CAMPAIGN_NAME else path
        return path / CAMPAIGN_NAME if path.is_dir() else path


CAMPAIGN_NAME = "campaign.json"
CAMPAIGN_FOLDER, CAMPAIGN_FILE = CampaignPath(folder=True), CampaignPath(folder=False)


def stated_options() -> set[str]:
    """Return the parameter names of the options that the command line states."""
    context = click.get_current_context()
    names = (parameter.name for parameter in context.command.params if parameter.name)
    return {name for name in names if context.get_parameter_source(name) is not ParameterSource.DEFAULT}


def option_group(*declared: Callable[[Any], Any], heading: str | None = None) -> Callable[[Command], Command]:
    """Return a decorator that declares several options, in this order of help, under a heading of --help-all."""

    def declare(command: Command) -> Command:
        decorated: Any = command
        earlier = list(getattr(command, "__click_params__", ()))
        for option in reversed(declared):
            decorated = option(decorated)
        for parameter in decorated.__click_params__[len(earlier) :]:
            if heading is not None:
                setattr(parameter, HEADING, heading)
        return decorated

    return declare


alphabet_options = option_group(
    click.option("--labels", type=WORDS, help="Possible labels; lowest first if --ordered."),
    click.option("--scale", type=GRID, help="Grid of possible numbers. [default of STEP: 1]"),
    click.option("--ordered", is_flag=True, help="The labels are in order of meaning (laplace, weighted-mean)."),
    heading=ANSWERS,
)


def alphabet_of(labels: tuple[str, ...] | None, scale: tuple[float, ...] | None, ordered: bool) -> Alphabet | None:
    """Return the alphabet of answers from `alphabet_options`, None without --labels and --scale."""
    from crowdveil.channels.alphabet import Categories, Scale

    if labels is not None and scale is not None:
        raise click.UsageError("Give --labels or --scale, not both.")
    if ordered and labels is None:
        raise click.UsageError("--ordered requires --labels.")
    if labels is not None:
        return Categories(labels, ordered)
    return None if scale is None else Scale(*scale)


def required_alphabet(labels: tuple[str, ...] | None, scale: tuple[float, ...] | None, ordered: bool) -> Alphabet:
    """Return the alphabet of answers; without one, end with wrong usage."""
    alphabet = alphabet_of(labels, scale, ordered)
    if alphabet is None:
        raise click.UsageError("Give the possible answers: --labels or --scale.")
    return alphabet


participation_option = click.option(
    "--participation",
    type=click.Choice(["protected", "public"]),
    default="protected",
    help='protected: epsilon also hides whether a worker answered ("no answer" is NULL); public: this is visible.',
)


class NameChoice(Shown, click.Choice[str]):
    """Choice whose error suggests the nearest name."""

    metavar = "NAME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the choice; an unknown name raises BadParameter with the nearest name, if one is near."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = get_close_matches(str(value), map(str, self.choices), n=1)
            if not near:
                raise
            raise click.BadParameter(f"{error.message} Did you mean {near[0]!r}?", ctx, param) from error


choice_options = option_group(
    click.option(
        "--mechanism",
        type=NameChoice(MECHANISM_NAMES),
        required=True,
        help=f"How answers are randomized: {', '.join(MECHANISM_NAMES)}.",
    ),
    click.option("--epsilon", type=EPSILON, help="Privacy loss of an answer (cell), 1e-6 to 20 nats."),
    click.option("--budget", type=EPSILON, help="Privacy loss of a worker, instead of --epsilon."),
    participation_option,
    heading="Mechanism",
)
setting_options = option_group(
    click.option(
        "--null-value", metavar="V", help="laplace: public value that replaces NULL (no answer). [default: uniform]"
    ),
    click.option(
        "--low",
        type=float,
        metavar="A",
        help="two-layer: smallest flip probability of a worker; sun-two-layer: smallest budget. [default: 0]",
    ),
    click.option(
        "--high",
        type=float,
        metavar="B",
        help="two-layer: largest flip probability; with --low, instead of --epsilon.",
    ),
    click.option(
        "--answers",
        "most_answers",
        type=COUNT,
        help="two-layer, sun-two-layer: largest number of cells of one worker; the exact epsilon depends on it. "
        "[default: all tasks]",
    ),
    click.option(
        "--dimensions",
        type=COUNT,
        help=(
            "matrix-factorization: length of its two sums [default: one per task]; "
            "matrix-factorization-published requires it."
        ),
    ),
    click.option(
        "--ridge",
        type=float,
        metavar="R",
        help="matrix-factorization-published: weight of the ridge penalty; without it, often no report exists.",
    ),
    click.option(
        "--cuts",
        type=WORDS,
        multiple=True,
        help=(
            "quantized-response: first label of each block after the first. Repeat it for groups of cuts, "
            "which are assigned to workers in turn. [default: optimal for the expected answers]"
        ),
    ),
    heading="Settings of single mechanisms",
)
expectation_options = option_group(
    click.option(
        "--prior",
        type=FILE_PATH,
        help="quantized-response, designed: public prior of truths: label,probability. [default: uniform]",
    ),
    click.option(
        "--participation-rate",
        type=float,
        metavar="S",
        help="quantized-response, designed: expected share of answered cells. [default: 1]",
    ),
    click.option(
        "--ability",
        type=float,
        metavar="P",
        help="quantized-response, designed: probability of a right answer. [default: 0.75]",
    ),
    click.option(
        "--sigmas",
        type=NUMBERS,
        help="quantized-response, designed, on a scale: workers' standard deviations, in equal shares.",
    ),
    heading="Expected answers",
)
mechanism_options = option_group(choice_options, setting_options, expectation_options)


@dataclass(frozen=True, kw_only=True)
class MechanismOptions:
    """Options of single mechanisms and of expected answers, by parameter name; None or empty where none is given."""

    null_value: str | None
    low: float | None
    high: float | None
    most_answers: int | None
    dimensions: int | None
    ridge: float | None
    cuts: tuple[tuple[str, ...], ...]
    prior: pathlib.Path | None
    participation_rate: float | None
    ability: float | None
    sigmas: tuple[float, ...] | None


def mechanism_settings(
    *,
    mechanism: str,
    epsilon: float | None,
    budget: float | None,
    participation: Participation,
    own: MechanismOptions,
) -> MechanismSettings:
    """Return the requested mechanism from `mechanism_options`; a contradiction ends with wrong usage."""
    from crowdveil.answers.ingest.column_readers import load_prior
    from crowdveil.design.mechanism_from_settings import Expectation, MechanismSettings

    expected = {name: getattr(own, name) for name in ("prior", "participation_rate", "ability", "sigmas")}
    stated = {name: value for name, value in expected.items() if value is not None}
    if stated and (mechanism not in DESIGNED_MECHANISMS or own.cuts):
        owners = " and ".join(DESIGNED_MECHANISMS)
        raise click.UsageError(f"{flag_of(next(iter(stated)))} is an option of {owners}, and of these without --cuts.")
    if own.prior is not None:
        stated["prior"] = load_prior(own.prior)
    shared = {name: getattr(own, name) for name in ("null_value", "low", "high", "dimensions", "ridge")}
    requested = MechanismSettings(
        name=mechanism,
        epsilon=epsilon,
        budget=budget,
        participation=participation,
        answers=own.most_answers,
        cuts=own.cuts[0] if own.cuts else (),
        dealt_cuts=own.cuts if len(own.cuts) > 1 else (),
        expected=Expectation(**stated),
        **shared,
    )
    _refuse_wrong_mechanism_options(requested)
    return requested


def flag_of(name: str) -> str:
    """Return the option of a parameter, which is named as the option is."""
    return "--" + name.replace("_", "-")


def _refuse_wrong_mechanism_options(requested: MechanismSettings) -> None:
    """Refuse settings of another mechanism, and a missing or doubly determined epsilon."""
    settings = dict.fromkeys(name for entry in MECHANISM_ENTRIES.values() for name in entry.settings)
    for setting in settings:
        if getattr(requested, setting) not in (None, ()) and setting not in MECHANISM_ENTRIES[requested.name].settings:
            owners = " and ".join(mechanisms_with(setting))
            raise click.UsageError(f"{flag_of(setting)} is an option of {owners}, not of {requested.name}.")
    if requested.high is not None and (requested.low is None or requested.epsilon is not None):
        raise click.UsageError("Give --high with --low and without --epsilon: the two determine epsilon.")
    if requested.budget is not None and (requested.epsilon is not None or requested.high is not None):
        raise click.UsageError("--budget determines epsilon: leave out --epsilon and --high.")
    if requested.epsilon is None and requested.high is None and requested.budget is None:
        raise click.UsageError("Missing option '--epsilon' (or '--budget', the epsilon of a worker).")


shuffling_options = option_group(
    click.option("--shuffled", type=COUNT, help="Another party mixes N honest reports per task."),
    click.option(
        "--linked", type=COUNT, help="Number of reports of a worker that stay together when mixed. [default: 1]"
    ),
    heading="Shuffled reports",
)


def require_shuffled_options(shuffled: int | None, linked: int | None, delta: float | None) -> None:
    """Refuse --shuffled without --delta, and --linked without --shuffled."""
    if shuffled is not None and delta is None:
        raise click.UsageError("--shuffled needs --delta, such as 1e-6.")
    if shuffled is None and linked is not None:
        raise click.UsageError("--linked requires --shuffled.")


resource_options = option_group(
    click.option(
        "--memory",
        type=Parsed("SIZE", parse_bytes),
        help="Limit on the memory that reading and the fit add, such as 2GB. [default: no limit]",
    ),
    click.option(
        "--engine",
        type=click.Choice(ENGINE_NAMES),
        default=ENGINE_NAMES[0],
        help="Where the fit runs; dask needs encoded blocks. Results stay the same.",
    ),
    click.option("--address", metavar="URL", help="dask: address of a running cluster, such as tcp://HOST:8786."),
    heading="Memory and engine",
)


class Resources(NamedTuple):
    """Memory limit of a fit in bytes, None for no limit; and its engine."""

    memory: int | None
    engine: Engine


def resources_of(memory: int | None, engine: str, address: str | None) -> Resources:
    """Return memory limit and engine from `resource_options`.

    Raises:
        SettingsError: an address for an engine without one.
    """
    from crowdveil.errors import SettingsError
    from crowdveil.registry import ENGINE_ENTRIES

    made: Any = ENGINE_ENTRIES[engine].import_class()
    if address is None:
        return Resources(memory, made())
    if "address" not in {field.name for field in fields(made)}:
        raise SettingsError(f"the engine {engine} has no address", value=address, hint="Leave it out.")
    return Resources(memory, made(address=address))


replace_option = click.option(
    "--replace",
    is_flag=True,
    help="Remove the earlier output in the folder (only its recorded files). Its privacy loss remains.",
)
accept_edited_option = click.option(
    "--accept-edited",
    is_flag=True,
    help="Accept reports that were edited after crowd.json was written; the result is marked.",
)
kind_option = option_group(
    click.option(
        "--kind",
        type=click.Choice(["categorical", "numeric"]),
        help="Type of the reports, if the column name does not determine it.",
    ),
    heading=ANSWERS,
)
merge_labels_option = option_group(
    click.option(
        "--merge-labels",
        is_flag=True,
        help=(
            "Merge labels that differ only in surrounding spaces, invisible characters, case, Unicode form or "
            "number format. The spelling is that in --labels, or else the most frequent one."
        ),
    ),
    heading=ANSWERS,
)


def duplicates_option(default: str | None) -> Callable[[Command], Command]:
    """Return the option for repeated (task, worker) pairs."""
    return option_group(
        click.option(
            "--duplicates",
            type=click.Choice(["error", "first", "last", "all"]),
            default=default,
            show_default=False,
            help="If a worker answers a task twice: refuse, keep the first or the last in file order, or keep all. "
            "[default: error]",
        ),
        heading=ANSWERS,
    )
