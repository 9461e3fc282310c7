"""Campaigns in rounds, as files: joint collection of all rounds, and thresholds of the next round."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crowdveil.adaptive_rounds import Round, join_rounds, next_thresholds
from crowdveil.channels.alphabet import Alphabet
from crowdveil.data.ingest.csv_files import csv_row, read_csv
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.workflow.evidence import Evidence, guarantee_notes
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
    """All rounds as one collection, with its `crowd.json`."""

    round: Round
    crowd: Crowd

    def write(self, directory: Path, *, replace: bool = False) -> None:
        """Write `JOINED_FILES`; `replace` removes an earlier collection.

        Raises:
            SettingsError: the folder holds another collection, or the folder cannot be written.
        """
        certificate = self.round.channel.certificate()
        write_reports(directory, self.round.reports, certificate, self.crowd, replace=replace)


def join_collections(collections: Sequence[Evidence]) -> Joined:
    """Return the collections of several rounds, with different workers, as one.

    Raises:
        SettingsError: no collection, or one without a channel or a crowd, or with an assignment.
        ReportsError: different tasks, or a worker of two rounds.
        CertificateError: different alphabets, or too many channels.
    """
    rounds = []
    for index, one in enumerate(collections, start=1):
        if one.channel is None or one.crowd is None or one.assignment is not None:
            raise SettingsError(
                "a round needs a certificate and a crowd.json, and no assignment",
                value=f"round {index}",
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
        participation="protected" if whole.channel.protects_participation else "public",
        notes=guarantee_notes(assigned=False, protected=True, simulation=simulation),
        simulation=simulation,
        certificate=whole.channel.certificate(),
    )
    return Joined(round=whole, crowd=as_edited(crowd) if any(one["edited"] for one in crowds) else crowd)


def next_cuts(truths: Path, alphabet: Alphabet, *, most: int) -> dict[str, str]:
    """Return the threshold label of each task for the next round, from a file with the columns task and truth.

    Args:
        truths: output of `infer` for numbers; an empty truth is unknown.
        alphabet: what an answer can be.
        most: largest number of distinct cuts.

    Raises:
        ReportsError: a damaged file, or a truth that is not a number.
        SettingsError: unordered labels.
    """
    columns = read_csv(truths, ["task", "truth"])
    tasks = np.array([str(name) for name in columns["task"].to_pylist()])
    found = np.array([_number(str(text), truths) for text in columns["truth"].to_pylist()], dtype=float)
    return {task: alphabet.names[cut] for task, cut in next_thresholds(tasks, found, alphabet, most=most).items()}


def cuts_csv(cuts: Mapping[str, str]) -> str:
    """Return cuts as the CSV input of `perturb --channels`, columns task and cuts."""
    return "".join(csv_row(row) + "\n" for row in [("task", "cuts"), *cuts.items()])


def _number(text: str, source: Path) -> float:
    try:
        return math.nan if text in ("", "None") else float(text)
    except ValueError as error:
        raise ReportsError(
            "truths must be numbers, or empty if unknown",
            source=str(source),
            examples=repr(text),
            hint="Infer with --method gaussian.",
        ) from error
