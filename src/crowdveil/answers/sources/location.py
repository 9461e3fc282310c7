"""Sources of answers as a user names and describes them: locations, and the layout as far as it is stated."""

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from crowdveil.answers.columnar_store import STORE_FILES
from crowdveil.answers.importers.registry import TOOLS
from crowdveil.answers.ingest.choices import ChoiceOptions, NothingTicked
from crowdveil.answers.ingest.column_checks import Missing
from crowdveil.answers.ingest.column_readers import NO_NAMES, ColumnNames
from crowdveil.answers.ingest.csv_errors import DELIMITERS
from crowdveil.answers.ingest.csv_files import ENCODINGS
from crowdveil.answers.ingest.labels import LabelMap
from crowdveil.answers.spreadsheets.sheets import SUFFIXES as WORKBOOKS
from crowdveil.arguments import require_choice
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.filesystem import scheme_of

STDIN, DATASET = "-", "dataset:"
TABLE = re.compile(r"(?P<database>.+?\.(?:duckdb|ddb))(?:\?(?P<table>.+))?", re.IGNORECASE | re.DOTALL)
"""DuckDB file, and the table or query after the question mark."""
QUERY = re.compile(
    r"""(?:[\s(]|--[^\n]*\n|/\*.*?\*/)*(?:select|with|from|values)[\s*("'\d]""", re.IGNORECASE | re.DOTALL
)
"""Start of a query, in place of the name of a table; comments and parentheses may come first."""
WIDE = "wide"
"""Tool of wide tables."""
COMPANIONS = ("certificate.json", "crowd.json", "assignment.csv")
"""Files of a collection beside its reports."""
MAX_LINKS = 40
"""Links of links that are followed; Linux opens no file behind more."""
REPORT_FOLDER_FILES = ("reports.csv", "reports.parquet")
TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl")
SUFFIXES = (
    *(".parquet", ".arrow", *WORKBOOKS, *TEXT_SUFFIXES),
    *(f"{suffix}.{end}" for suffix in TEXT_SUFFIXES for end in ("gz", "bz2", "xz", "zst")),
)
"""Ends of the names of files that are read from a folder; all files read must have the same end."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Layout of a source as far as a user states it.

    Attributes:
        names: columns of task, worker and answer.
        delimiter: character between the cells of text files.
        encoding: encoding of text files without byte-order mark; None for UTF-8.
        decimal: decimal mark of the answers, a point or comma.
        missing: whether empty answers are refused ("error") or no answers ("skip").
        question: question of an export or table with several.
        tool: tool whose export it is; None to recognise it.
        transpose: whether a wide table has one row for each respondent, and one column for each task.
        multiple, nothing_ticked: as of `ChoiceOptions`.
        label_map: labels that are replaced by others.
        sheet: sheet of a workbook; None for the only one.
    """

    names: ColumnNames = NO_NAMES
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str = "."
    missing: Missing = "error"
    question: str | None = None
    tool: str | None = None
    transpose: bool = False
    multiple: str | None = None
    nothing_ticked: NothingTicked = "no"
    label_map: LabelMap = ()
    sheet: str | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or self.delimiter in '"\r\n' or self.delimiter > "\x7f"
        ):
            raise SettingsError(
                "the delimiter must be one ASCII character, and no quote or line end",
                value=self.delimiter,
                hint="For a tab, write '\\t'.",
            )
        hint = "Save the file as UTF-8, or state the one that it has."
        require_choice("the encoding", self.encoding, (*ENCODINGS, None), hint=hint)
        require_choice("the decimal mark", self.decimal, (".", ","), hint="State the one that the numbers have.")
        require_choice("missing", self.missing, get_args(Missing), hint="NULL is skipped in any case.")
        require_choice("the tool", self.tool, (*TOOLS, None))
        if self.transpose and self.tool != WIDE:
            hint = f"State the tool {WIDE!r}, or leave it out."
            raise SettingsError("only a wide table can be transposed", value=self.tool, hint=hint)
        # JSON has lists in place of pairs.
        object.__setattr__(self, "label_map", tuple((str(label), str(other)) for label, other in self.label_map))
        if self.multiple is not None or self.nothing_ticked != "no":
            _ = self.choices  # which checks them

    @property
    def choices(self) -> ChoiceOptions:
        """How answers of several choices are read."""
        return ChoiceOptions(multiple=self.multiple, nothing_ticked=self.nothing_ticked)

    @property
    def delimiters(self) -> tuple[str, ...]:
        """Delimiters that text files may have."""
        return tuple(DELIMITERS) if self.delimiter is None else (self.delimiter,)


def database_and_table(source: str) -> tuple[str, str] | None:
    """Return database and table, or query, of a source such as `answers.duckdb?votes`; None for other sources.

    Raises:
        ReportsError: a DuckDB file without the name of a table.
    """
    found = None if scheme_of(source) else TABLE.fullmatch(source)
    if found is None:
        return None
    if found["table"] is None:
        raise ReportsError(
            "a database needs the name of a table",
            source=source,
            hint=f"Name it after a question mark, such as '{source}?answers', or give a query that begins with SELECT.",
        )
    return found["database"], found["table"]


def is_block_folder(path: Path) -> bool:
    """Return whether a folder has a file of encoded blocks."""
    return any((path / name).exists() for name in STORE_FILES)


def local_files(source: str) -> list[Path]:
    """Return the files of a path: itself, those of a folder, or those that match a glob.

    Raises:
        ReportsError: no file, or a folder whose files have different forms, or two files of reports.
    """
    path = Path(source)
    if not path.exists() and glob.has_magic(source):
        found = [Path(name) for name in sorted(glob.glob(source, recursive=True))]
        files = [file for file in found if file.is_file()]
        if not files:
            raise ReportsError("a pattern must match at least one file", source=source, hint="Check the pattern.")
        return files
    return data_files_of_folder(path) if path.is_dir() else [path]


def data_files_of_folder(folder: Path) -> list[Path]:
    """Return the files of a folder in the order of names, of a collection its reports; errors as `local_files`."""
    reports = [folder / name for name in REPORT_FOLDER_FILES if (folder / name).is_file()]
    if len(reports) > 1:
        rule = "a folder of a collection must have one file of reports"
        raise ReportsError(rule, source=str(folder), hint=f"Give one of them: {', '.join(map(str, reports))}.")
    if reports:
        return reports
    visible = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.name not in COMPANIONS
        and not any(part[:1] in "._" for part in path.relative_to(folder).parts)
    ]
    by_suffix = {suffix: [path for path in visible if _known_suffix(path) == suffix] for suffix in SUFFIXES}
    kinds = {suffix: files for suffix, files in by_suffix.items() if files}
    if len(kinds) != 1:
        raise ReportsError(
            "a folder must have files of one form: Parquet, Arrow, CSV, TSV, JSON or spreadsheets",
            source=str(folder),
            examples=", ".join(f"{len(files)} of {suffix}" for suffix, files in kinds.items()) or "none of them",
            hint="Name the files, or a pattern such as 'folder/*.parquet'.",
        )
    return next(iter(kinds.values()))


def _known_suffix(path: Path) -> str:
    """Return the end of a name among `SUFFIXES`, the longest; empty without one."""
    return max((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), key=len, default="")


def folders_of_links(path: Path) -> list[Path]:
    """Return the folder of a file and, of a link, those of the links and of the file to which it leads."""
    folders = [path.parent]
    while path.is_symlink() and len(folders) < MAX_LINKS:
        path = path.parent / os.readlink(path)
        folders.append(path.parent)
    return folders


def refuse_files_beside_companions(paths: Sequence[Path]) -> None:
    """Refuse several files beside which there is a file of a collection, such as its certificate.

    Raises:
        ReportsError: there is one.
    """
    for path in paths:
        for name in COMPANIONS:
            if any((folder / name).is_file() for folder in folders_of_links(path)):
                raise ReportsError(
                    f"files of reports with a {name} are read one by one",
                    source=str(path),
                    hint="Infer each collection by itself; move answers to a separate folder.",
                )
