"""What commands say of a folder, without what may change: paths, digests, sentences."""

import contextlib
import csv
import json
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from crowdveil.cli import main

SAVED = Path(__file__).parent / "folders"
EXPECTED = Path(__file__).parent / "expected"
SOURCES = ("reports.csv", "reports.blocks", "sums.json", "answers.csv", "answers.json")
"""Files of which a folder has one."""
LABEL_STUDIO = "answers.json"
Said = dict[str, Any]


@dataclass(frozen=True)
class Command:
    """A command on a folder that was copied to `in`.

    Attributes:
        words: of the command; SOURCE stands for the file or folder of the reports.
        tables: CSV files that it writes, which are compared row by row.
        first: commands that make its input.
        needs: a file without which the command does not go with the folder.
    """

    words: str
    tables: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    needs: str = ""


ESTIMATES = ("found/truths.csv", "found/workers.csv")
INFER = "infer SOURCE --out found"
COMMANDS: dict[str, Command] = {
    "infer": Command(f"{INFER} --score in/gold.csv", ESTIMATES, needs="gold.csv"),
    "infer gold": Command(f"{INFER} --gold in/gold.csv", ESTIMATES, needs="gold.csv"),
    "infer as answers": Command(f"{INFER} --no-certificate", ESTIMATES),
    "infer majority": Command(f"{INFER} --method majority-vote", ESTIMATES),
    "infer prior": Command(f"{INFER} --prior in/prior.csv --costs in/costs.csv", ESTIMATES, needs="prior.csv"),
    "infer history": Command(
        f"{INFER} --history before/workers.csv",
        ESTIMATES,
        first=("infer SOURCE --out before",),
        needs="prior.csv",
    ),
    "infer saved fit": Command(
        f"{INFER} --start-from fit",
        ESTIMATES,
        first=("infer SOURCE --save-fit fit --max-steps 2 --out before",),
        needs="prior.csv",
    ),
    "infer panel": Command(f"{INFER} --truths low,high --score in/sides.csv", ESTIMATES, needs="sides.csv"),
    "review panel": Command("review SOURCE --truths low,high --out review.csv", ("review.csv",), needs="sides.csv"),
    "conclude panel": Command(
        "conclude SOURCE --truths low,high --gold in/sides.csv --random --out conclusions.csv",
        ("conclusions.csv",),
        needs="sides.csv",
    ),
    "infer blocks": Command(
        "infer blocks --out found", ESTIMATES, first=("data encode SOURCE --out blocks",), needs="crowd.json"
    ),
    "data encode": Command("data encode SOURCE --out blocks"),
    "data draw-gold": Command("data draw-gold SOURCE --number 3 --seed 1 --out drawn.csv", ("drawn.csv",)),
    "data export": Command(
        "data export label-studio found --tasks in/answers.json --out predictions.json",
        first=(INFER,), needs=LABEL_STUDIO,
    ),
    "share": Command("share SOURCE --out shares.csv", ("shares.csv",)),
    "agreement": Command("agreement SOURCE --out agreement.csv", ("agreement.csv",)),
    "review": Command("review SOURCE --out review.csv", ("review.csv",)),
    "next": Command("next SOURCE --budget 4 --out next.csv", ("next.csv",)),
    "conclude": Command(
        "conclude SOURCE --gold in/gold.csv --random --out conclusions.csv", ("conclusions.csv",), needs="gold.csv"
    ),
    "report": Command("report found --out page.html", first=(INFER,)),
    "statement": Command("statement in"),
    "statement of results": Command("statement found", first=(INFER,)),
    "statement of certificate": Command("statement in/certificate.json --answers 8", needs="certificate.json"),
    "verify": Command("verify in"),
    "verify certificate": Command("verify in/certificate.json", needs="certificate.json"),
    "verify campaign": Command("verify in/campaign.json", needs="campaign.json"),
    "audit": Command("audit in/certificate.json --tasks 3", needs="certificate.json"),
    "audit campaign": Command("audit in/campaign.json", needs="campaign.json"),
}  # fmt: skip
"""Commands by name."""
AGGREGATE = "aggregate in Python"
ACCEPT_EDITED = {"infer", "data encode"}
"""Commands that are run on edited reports a second time, which they accept then."""

CHANGEABLE = {"files", "written", "out", "target", "bytes", "claims", "digest", "filed"}
"""Members of JSON that are paths, sizes of files, dates or lists of claims, which a later version may change."""
TEXT = "a text"
"""Stands for a text of several words, which a later version may word in another way."""


def source_of(folder: Path) -> str:
    """Return the reports of a folder, as they are given to a command that runs beside it."""
    found = [name for name in SOURCES if (folder / name).exists()]
    return f"in/{found[0]}" if found else "in"


def commands_of(folder: Path) -> list[str]:
    """Return the names of the commands that go with a folder."""
    names = [name for name, one in COMMANDS.items() if not one.needs or (folder / one.needs).exists()]
    edited = [f"{name} accepted" for name in names if name in ACCEPT_EDITED] if folder.name == "edited" else []
    return [*names, *edited, *([AGGREGATE] if (folder / "reports.csv").exists() else [])]


def say(folder: Path, name: str, work: Path) -> Said:
    """Return what a command says of a folder: exit code, JSON and the rows of its tables; it runs in an empty folder.

    Warnings are notes, which are not compared.
    """
    shutil.copytree(folder, work / "in")
    with contextlib.chdir(work), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return aggregated(Path("in")) if name == AGGREGATE else run(name)


def run(name: str) -> Said:
    """Run a command in the current folder, with those that make its input."""
    one, accepted = COMMANDS[name.removesuffix(" accepted")], name.endswith(" accepted")
    source = source_of(Path("in"))
    for words in (*one.first, one.words):
        given = [source if word == "SOURCE" else word for word in words.split()]
        result = CliRunner().invoke(main, [*given, *(["--accept-edited"] if accepted else []), "--json"])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        said: Said = {"exit": result.exit_code, "json": without_changeable(json.loads(result.stdout))}
        if result.exit_code:
            return said
    return said | {"tables": {table: rows(Path(table)) for table in one.tables if Path(table).exists()}}


def aggregated(folder: Path) -> Said:
    """Return the tables of truths and workers that `aggregate` gives, with the channel and the assignment."""
    import crowdveil as cv
    from crowdveil.errors import CrowdveilError
    from crowdveil.storage.evidence import read_evidence

    try:
        evidence = read_evidence(folder / "reports.csv")
    except CrowdveilError as error:
        return {"exit": 1, "json": type(error).__name__}
    given: Any = {"channel": evidence.channel, "assignment": evidence.assignment}
    truths, workers = cv.aggregate(evidence.reports, with_workers=True, **given)
    return {"exit": 0, "tables": {"truths": truths.to_pydict(), "workers": workers.to_pydict()}}


def rows(path: Path) -> dict[str, list[Any]]:
    """Return the columns of a CSV file, with numbers where all values are."""
    with path.open(newline="", encoding="utf-8") as stream:
        names, *found = list(csv.reader(stream))
    columns = {name: numbers([row[place] for row in found]) for place, name in enumerate(names)}
    return without_changeable(columns)


def numbers(column: list[str]) -> list[Any]:
    """Return a column as numbers, an empty value as None; as it is if one of them is no number."""
    try:
        return [float(value) if value else None for value in column]
    except ValueError:
        return [*column]


def without_changeable(value: Any) -> Any:
    """Return JSON without paths and digests, with `TEXT` for sentences; lists and tables of sentences are empty.

    Of an error its class stays.
    """
    if isinstance(value, dict):
        if {"type", "rule", "hint"} <= value.keys():
            return value["type"]
        texts = [name for name in value if name in CHANGEABLE or " " in name or "sha256" in name]
        return {name: without_changeable(one) for name, one in value.items() if name not in texts}
    if isinstance(value, list):
        return [one for one in map(without_changeable, value) if one != TEXT]
    return TEXT if isinstance(value, str) and " " in value else value
