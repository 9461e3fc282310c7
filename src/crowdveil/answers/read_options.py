"""Options for reading answers or reports: alphabet, kind, identifiers, duplicates, grid and label spellings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, get_args

from numpy.typing import NDArray

from crowdveil.answers.facts.asked import UNKNOWN, Asked
from crowdveil.answers.identifiers import Identifiers
from crowdveil.answers.ingest.choices import ChoiceOptions, NothingTicked
from crowdveil.answers.ingest.column_checks import (
    Duplicates,
    Grid,
    Missing,
    encode_on_scale,
    parse_number_column,
)
from crowdveil.answers.ingest.column_readers import ReportColumns
from crowdveil.answers.ingest.labels import (
    LabelMap,
    alphabet_and_label_codes,
    merge_spellings,
    refuse_unstated_numbers,
)
from crowdveil.arguments import require_choice, require_instance, require_list
from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.errors import SettingsError

Kind = Literal["categorical", "numeric"]
IdentifierList = Sequence[Any] | Identifiers


class ReadKeywords(TypedDict, total=False):
    """Keyword arguments of the readers of reports, as of `Reports.from_csv`."""

    alphabet: Alphabet | None
    kind: Kind | None
    tasks: IdentifierList | None
    workers: IdentifierList | None
    duplicates: Duplicates
    grid: Grid
    merge_labels: bool
    missing: Missing
    multiple: str | None
    nothing_ticked: NothingTicked
    map_labels: Mapping[str, str] | None


@dataclass(frozen=True, slots=True, eq=False)
class ReadOptions:
    """Options of every reader of reports; documented at `Reports.from_csv`.

    Raises:
        SettingsError: an unknown kind, duplicates policy or grid, a kind that contradicts the alphabet, or
            `merge_labels` with numbers.
    """

    alphabet: Alphabet | None = None
    kind: Kind | None = None
    tasks: IdentifierList | None = None
    workers: IdentifierList | None = None
    duplicates: Duplicates = "error"
    grid: Grid = "round"
    merge_labels: bool = False
    missing: Missing = "error"
    multiple: str | None = None
    nothing_ticked: NothingTicked = "no"
    map_labels: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        hint = "Such as 'first'; if the mean of the answers is meant, average them before reading."
        require_choice("duplicates", self.duplicates, get_args(Duplicates), hint=hint)
        require_choice("grid", self.grid, get_args(Grid))
        require_choice("missing", self.missing, get_args(Missing), hint="NULL is skipped in any case.")
        require_choice("kind", self.kind, (*get_args(Kind), None), hint="None chooses.")
        if self.multiple is not None or self.nothing_ticked != "no":
            ChoiceOptions(multiple=self.multiple, nothing_ticked=self.nothing_ticked)
        if self.alphabet is not None:
            hint = "Such as Categories(('no', 'yes')), or Scale(0, 10) for numbers."
            require_instance("alphabet", self.alphabet, (Categories, Scale), what="Categories or a Scale", hint=hint)
        if self.map_labels is not None:
            require_instance("map_labels", self.map_labels, Mapping, what="a dict", hint="Such as {'Y': 'yes'}.")
        for name, listed in (("task", self.tasks), ("worker", self.workers)):
            if listed is not None and not isinstance(listed, str):
                require_list(f"{name}s", listed, example="[1, 2, 3]")
                if not (isinstance(listed, Sequence) or hasattr(listed, "__array__")):
                    listed = list(listed)  # such as the keys of a dict, or a generator
                    object.__setattr__(self, f"{name}s", listed)
                if isinstance(listed, list | tuple) and None in listed:
                    raise SettingsError(f"{name}s must have names", value=None, hint="Leave missing ones out.")
            if isinstance(listed, str):
                hint = f"The name of a column is given as {name}=."
                raise SettingsError(f"{name}s must be the list of all {name}s", value=listed, hint=hint)
        on_scale = isinstance(self.alphabet, Scale)
        if self.alphabet is not None and self.kind is not None and (self.kind == "numeric") != on_scale:
            raise SettingsError(
                "numeric answers need a Scale, categorical answers need Categories",
                value=(self.kind, self.alphabet),
                hint="Leave kind out: it follows from the alphabet.",
            )
        if on_scale or self.kind == "numeric":
            self._refuse_merging_numbers()

    def with_ordered_labels(self, names: tuple[str, ...] | None) -> "ReadOptions":
        """Return the options with these labels, in order, as alphabet; unchanged if there is one, or for numbers."""
        if names is None or self.alphabet is not None or self.kind == "numeric":
            return self
        return replace(self, alphabet=Categories(names, ordered=True))

    @property
    def choices(self) -> ChoiceOptions:
        """How answers of several choices are read; labels of the alphabet are read as they are."""
        known = () if self.alphabet is None else self.alphabet.names
        return ChoiceOptions(
            multiple=self.multiple, nothing_ticked=self.nothing_ticked, known=frozenset(map(str, known))
        )

    @property
    def label_map(self) -> LabelMap:
        """Pairs of a label and the one that replaces it."""
        return tuple((str(label), str(other)) for label, other in (self.map_labels or {}).items())

    def with_missing_policy(self, columns: ReportColumns) -> ReportColumns:
        """Return the columns, whose empty answers are none if requested; labels of the alphabet are answers."""
        if self.missing == "error" and not columns.skip_empty:
            return columns
        known = () if self.alphabet is None else self.alphabet.names
        return replace(columns, skip_empty=True, labels=frozenset(map(str, known)))

    @property
    def asked(self) -> Asked:
        """The lists that are given, and so do not follow from the rows."""
        if self.alphabet is None and self.tasks is None and self.workers is None:
            return UNKNOWN
        return Asked.of_given(labels=self.alphabet, tasks=self.tasks, workers=self.workers)

    def encode_values(self, columns: ReportColumns) -> tuple[Alphabet | None, NDArray[Any]]:
        """Return the alphabet, and int16 codes into it or, without an alphabet, float64 numbers, shape (rows,).

        Raises:
            ReportsError: a value is not a label or number, or is outside the alphabet.
            SettingsError: `merge_labels` for a column of numbers.
        """
        if self._stated_or_inferred_kind(columns) == "categorical":
            alphabet = self.alphabet if isinstance(self.alphabet, Categories) else None
            column = columns.value
            if self.merge_labels:
                column = merge_spellings(column, () if alphabet is None else alphabet.names)
            return alphabet_and_label_codes(column, alphabet, columns.source, merged=self.merge_labels)
        self._refuse_merging_numbers()
        numbers = parse_number_column(columns.value, columns.source)
        if isinstance(self.alphabet, Scale):
            return self.alphabet, encode_on_scale(numbers, self.alphabet, self.grid, columns.source)
        return None, numbers

    def _stated_or_inferred_kind(self, columns: ReportColumns) -> Kind:
        """Return the stated kind; by default that of the alphabet, else numeric for a column named `value`."""
        if self.kind is not None:
            return self.kind
        if self.alphabet is not None:
            return "numeric" if isinstance(self.alphabet, Scale) else "categorical"
        if columns.value_name == "value":
            return "numeric"
        refuse_unstated_numbers(columns.value, columns.source)
        return "categorical"

    def _refuse_merging_numbers(self) -> None:
        if self.merge_labels:
            raise SettingsError("merge_labels is for label columns only", value="numbers", hint="Leave it out.")
