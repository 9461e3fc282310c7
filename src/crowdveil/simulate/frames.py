"""Reports of a frame of answers by one call, as the kind of frame of the answers."""

from typing import Any, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.answers.facts.asked import missing_lists_reason
from crowdveil.answers.frame_answers import PERTURBED, ColumnKeywords, read_frame_answers
from crowdveil.answers.frames import OriginalColumns, as_same_kind, as_table
from crowdveil.answers.ingest.column_readers import ANSWERS
from crowdveil.answers.read_options import IdentifierList
from crowdveil.answers.reports import Reports
from crowdveil.answers.write_reports import ordered_reports_table
from crowdveil.arguments import require_instance
from crowdveil.channels.alphabet import Scale
from crowdveil.errors import SettingsError
from crowdveil.hints import advising_own_arguments
from crowdveil.mechanisms import Mechanism
from crowdveil.randomness import Secure, Seeded, Source, secure
from crowdveil.simulate.perturbation import perturb_reports


@advising_own_arguments
def perturb(answers: Any, mechanism: Mechanism, source: Source | None = None, **options: Unpack[ColumnKeywords]) -> Any:
    """Return the reports that the devices of all workers would send, as the kind of frame of the answers.

    Columns: task and worker under their own names, and the symbol sent. A cell whose report is NULL has no row. Rows
    are in the order of tasks, then workers, whatever the order of the answers. `aggregate` reads them with
    `channel=mechanism.channel()` and the same lists of tasks and workers; without channel it takes the reports for
    answers. It warns then if the frame is of pandas (`DataFrame.attrs` keeps the mechanism); others cannot keep it.

    Who calls this sees the answers: in a campaign each device draws its own report.

    Args:
        answers: as in `aggregate`; `Reports` give `Reports`.
        mechanism: sends one symbol per task; its alphabet is that of the answers.
        source: `seeded(n)` for a simulation without privacy. Without it the randomness is secure, and the guarantee of
            the mechanism needs public lists: `tasks` and `workers` name all of them if participation is protected.
        options: names of columns and options of reading, as in `aggregate`.

    Raises:
        ReportsError: the answers, another alphabet, or two answers of a worker to one task.
        SettingsError: lists taken from the answers, or a mechanism that does not send one symbol per task.

    >>> import crowdveil as cv
    >>> votes = {"task": [1, 1, 2], "worker": ["v", "w", "v"], "label": ["no", "yes", "yes"]}
    >>> mechanism = cv.RandomizedResponse(alphabet=cv.Categories(("no", "yes")), epsilon=4.0)
    >>> cv.perturb(votes, mechanism, tasks=[1, 2, 3], workers=["v", "w"]).keys()
    dict_keys(['task', 'worker', 'label'])
    """
    hint = "Such as RandomizedResponse(alphabet=Categories(('no', 'yes')), epsilon=2.0)."
    require_instance("mechanism", mechanism, Mechanism, what="a mechanism", hint=hint)
    if source is not None:
        require_instance("source", source, (Secure, Seeded), what="a source of randomness", hint="Such as seeded(1).")
    given = answers
    if not isinstance(answers, Reports):
        _refuse_comparisons(answers, options)
        options = {"alphabet": mechanism.alphabet, **options}
        given = read_frame_answers(answers, options)
    drawn = secure() if source is None else source
    missing = given.asked.missing_lists(mechanism.participation)
    if isinstance(drawn, Secure) and missing:
        hint = f"Give {' and '.join(f'{name}=' for name in missing)}, or source=seeded(n) for a simulation."
        raise SettingsError(missing_lists_reason(missing), value=", ".join(missing), hint=hint)
    reports = perturb_reports(given, mechanism, drawn)
    if isinstance(answers, Reports):
        return reports
    frame = _reports_as_frame(answers, given.original, reports, options)
    if hasattr(frame, "attrs"):
        frame.attrs[PERTURBED] = mechanism.name
    return frame


def _refuse_comparisons(answers: Any, options: ColumnKeywords) -> None:
    """Refuse a frame of comparisons: which pairs are asked, and in which order, is no column of the answers."""
    names = set(as_table(answers).column_names) if "task" not in options else set()
    if {"left", "right"} <= names and not names & {*ANSWERS["task"]}:
        raise SettingsError(
            "frames of comparisons are not randomized by perturb",
            value="the columns left and right",
            hint="Write them to a file for the command perturb; or draw the reports by sample of the channel, "
            "where everybody may see who compared what, and give them to rank with channel=.",
        )


def _reports_as_frame(answers: Any, original: OriginalColumns | None, reports: Reports, options: ColumnKeywords) -> Any:
    """Return reports as a frame with the names of the answers' columns; numbers on a scale are numbers.

    Tasks and workers have the type of their list where it is given: no type or category follows from answers then.
    """
    assert original is not None
    columns = [column.cast(column.type.value_type) for column in ordered_reports_table(reports).columns]
    if isinstance(reports.alphabet, Scale):
        columns[2] = columns[2].cast(pa.float64())
    names, sources = [original.task, original.worker, original.label_name], {}
    for place, listed in enumerate((options.get("tasks"), options.get("workers"))):
        if listed is None:
            columns[place] = columns[place].cast((original.task_type, original.worker_type)[place])
            sources[names[place]] = names[place]
        else:
            columns[place] = _names_as_elements_of_list(columns[place], listed)
    return as_same_kind(answers, pa.table(columns, names=names), sources)


def _names_as_elements_of_list(column: Any, listed: IdentifierList) -> Any:
    """Return names as the elements of the list that names them all; as text, if these have no common type."""
    try:
        places = pc.index_in(column, pa.array([str(name) for name in listed]))
        return column if places.null_count else pa.array(list(listed)).take(places)
    except (pa.ArrowException, OverflowError):
        return column
