"""A campaign in rounds, as files: where the next round cuts, and all rounds as one collection."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crowdveil.adaptive_rounds import Round, join_rounds, next_thresholds
from crowdveil.channels.alphabet import Alphabet
from crowdveil.data.ingest.csv_files import csv_row, read_csv
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.workflow.evidence import Evidence, notes_of, protects_participation
from crowdveil.workflow.export import (
    CERTIFICATE_FILE,
    CROWD_FILE,
    REPORTS_FILE,
    Crowd,
    as_edited,
    describe_crowd,
    write_reports,
)

JOINED_FILES = (CERTIFICATE_FILE, CROWD_FILE, REPORTS_FILE)


@dataclass(frozen=True, kw_only=True, eq=False)
class Joined:
    """All rounds as one collection, and what `crowd.json` says of it."""

    round: Round
    crowd: Crowd

    def write(self, directory: Path, *, replace: bool = False) -> None:
        """Write `JOINED_FILES`; with `replace`, in place of the collection that is there.

        Raises:
            SettingsError: another collection is there, or the folder cannot be written.
        """
        certificate = self.round.channel.certificate()
        write_reports(directory, self.round.reports, certificate, self.crowd, replace=replace)


def join_collections(collections: Sequence[Evidence]) -> Joined:
    """Return several collections, of other workers each, as one.

    Raises:
        SettingsError: none, or one that cannot be joined: without a channel or a crowd, or with an assignment.
        ReportsError: other tasks, or a worker of two rounds.
        CertificateError: other answers, or too many channels.
    """
    rounds = []
    for number, one in enumerate(collections, start=1):
        if one.channel is None or one.crowd is None or one.assignment is not None:
            raise SettingsError(
                "rounds that are joined have a certificate and a crowd.json, and no assignment",
                value=f"round {number}",
                hint="Keep the files of one collection together.",
            )
        rounds.append(Round(reports=one.reports, channel=one.channel))
    whole = join_rounds(rounds)
    crowds = [one.crowd for one in collections if one.crowd is not None]
    simulation = any(crowd["simulation"] for crowd in crowds)
    crowd = describe_crowd(
        whole.reports,
        mechanism=f"{len(rounds)} rounds: {' / '.join(dict.fromkeys(one.channel.mechanism for one in rounds))}",
        guarantee=whole.channel.guarantee,
        participation="protected" if protects_participation(whole.channel) else "public",
        notes=notes_of(assigned=False, protected=True, simulation=simulation),
        simulation=simulation,
        certificate=whole.channel.certificate(),
    )
    return Joined(round=whole, crowd=as_edited(crowd) if any(one["edited"] for one in crowds) else crowd)


def cuts_from(truths: Path, alphabet: Alphabet, *, most: int) -> dict[str, str]:
    """Return the label at which each task is cut next, from a file with the columns task and truth.

    Args:
        truths: as `infer` writes it for numbers; an empty truth is unknown.
        alphabet: what an answer can be.
        most: different cuts, at most.

    Raises:
        ReportsError: a damaged file, or a truth that is no number.
        SettingsError: labels in no order.
    """
    columns = read_csv(truths, ["task", "truth"])
    tasks = np.array([str(name) for name in columns["task"].to_pylist()])
    found = np.array([_number(str(text), truths) for text in columns["truth"].to_pylist()], dtype=float)
    return {task: alphabet.names[cut] for task, cut in next_thresholds(tasks, found, alphabet, most=most).items()}


def cuts_text(cuts: Mapping[str, str]) -> str:
    """Return cuts as `perturb --channels` reads them: columns task and cuts."""
    return "".join(csv_row(row) + "\n" for row in [("task", "cuts"), *cuts.items()])


def _number(text: str, source: Path) -> float:
    try:
        return math.nan if text in ("", "None") else float(text)
    except ValueError as error:
        raise ReportsError(
            "truths must be numbers, or nothing where they are unknown",
            source=str(source),
            examples=repr(text),
            hint="Infer with --method gaussian.",
        ) from error
