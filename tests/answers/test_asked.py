"""Who was asked: lists that were stated, and what a guarantee and an estimate need of them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdveil import DawidSkene, aggregate
from crowdveil.answers.assignment import Assignment
from crowdveil.answers.evidence import Evidence
from crowdveil.answers.facts.asked import LISTED, LISTS, STATED, UNKNOWN, Asked, ListName, join_words
from crowdveil.answers.facts.collection import GUARANTEE_SCOPE
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.certificate import LISTS_MARK
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.guarantee import Guarantee
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.inference.infer import infer
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.randomness import secure, seeded
from crowdveil.simulate import categorical_crowd, perturb_cells, perturb_reports
from crowdveil.simulate.channel_assignment import ChannelAssignment
from crowdveil.simulate.perturbed_collection import perturb_collection
from crowdveil.storage.crowd import CrowdRecord, crowd_of_reports, read_crowd
from crowdveil.storage.perturbed_collection import write_collection
from crowdveil.storage.write_collection import write_reports

LABELS = Categories(("no", "yes"))
NAMES: dict[str, Any] = {"tasks": ["a", "b"], "workers": ["u", "v"]}
MECHANISM = RandomizedResponse(alphabet=LABELS, epsilon=1.0)


def answers(*given: str, duplicates: str = "error") -> Reports:
    """Return three answers, read with some of the lists."""
    lists: dict[str, Any] = {**NAMES, "alphabet": LABELS}
    columns = ["a", "a", "b"], ["u", "v", "v"], ["no", "yes", "no"]
    chosen = {name: lists[name] for name in given}
    return Reports.from_arrays(*columns, duplicates=duplicates, **chosen)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [(), ("tasks",), ("workers",), ("alphabet",), ("tasks", "workers", "alphabet")])
def test_reading_says_which_lists_were_given(given: tuple[str, ...], tmp_path: Path) -> None:
    """Arrays, CSV files and both ways of putting rows in order count what was given, and nothing else."""
    wanted = {"labels" if name == "alphabet" else name for name in given}
    path = tmp_path / "answers.csv"
    path.write_text("task,worker,label\na,u,no\na,v,yes\nb,v,no\nb,v,no\n")
    lists: dict[str, Any] = {**NAMES, "alphabet": LABELS}
    read = Reports.from_csv(path, duplicates="first", **{name: lists[name] for name in given})

    assert Asked(stated=frozenset(wanted)) == answers(*given).asked  # type: ignore[arg-type]
    assert answers(*given).asked == answers(*given, duplicates="all").asked == read.asked


def test_what_does_not_say_so_is_not_public(tmp_path: Path) -> None:
    """Constructed reports name all that were asked, which were not stated; of opened folders nothing is known."""
    made = Reports([0], [0], [0], np.array(["a"]), np.array(["u"]), LABELS)
    made.with_asked(STATED).save(tmp_path)

    assert (LISTED, frozenset()) == (made.asked, made.asked.stated)
    assert UNKNOWN == Reports.open(tmp_path).asked
    assert STATED == made.with_asked(STATED).asked
    assert made.worker is made.with_asked(STATED).worker


def test_what_is_sent_has_the_lists_of_the_answers() -> None:
    """Devices, the vectorised path and a table of channels neither add nor lose a list; all of them sent."""
    held = answers("tasks", "alphabet")
    channel = MECHANISM.channel()
    asked = Assignment.from_arrays(["a", "a", "b"], ["u", "v", "v"])
    sent = [
        perturb_reports(held, MECHANISM, secure()),
        perturb_reports(held, MECHANISM, seeded(1)),
        perturb_cells(held, channel, seeded(1)),
        perturb_cells(held, channel, seeded(1), assignment=asked),
    ]

    assert [Asked(stated=frozenset(("tasks", "labels")), complete=True)] * 4 == [one.asked for one in sent]
    assert not held.asked.complete
    crowd = categorical_crowd(workers=3, tasks=4, labels=LABELS, sparsity=0.5, source=seeded(1))
    assert STATED == crowd.answers.asked


def test_needed_lists_follow_from_participation() -> None:
    """Protected participation needs all lists, public participation the labels only."""
    assert ("labels", "tasks", "workers") == UNKNOWN.missing_lists("protected") == LISTED.missing_lists("protected")
    assert ("labels",) == Asked.of_given(tasks=()).missing_lists("public")
    assert ("tasks",) == Asked.of_given(labels=LABELS, workers=()).missing_lists("protected")
    assert () == STATED.missing_lists("protected") == STATED.missing_lists("public")
    assert ("labels, tasks and workers", "tasks") == (join_words(["labels", "tasks", "workers"]), join_words(["tasks"]))


CELLS = Assignment.from_arrays(["a", "a", "b", "b"], ["u", "v", "u", "v"])
KNOWN: dict[str, tuple[Asked, bool]] = {
    "nothing": (UNKNOWN, False),
    "labels": (Asked.of_given(labels=LABELS), False),
    "tasks": (Asked.of_given(labels=LABELS, tasks=()), False),
    "workers": (Asked.of_given(workers=()), False),
    "both lists": (Asked.of_given(tasks=(), workers=()), True),
    "lists of devices": (UNKNOWN.of_reports, True),
    "names of a collection": (LISTED, True),
    "stated names": (STATED, True),
    "assigned cells": (Asked(assignment=CELLS), True),
}


@pytest.mark.parametrize("name", KNOWN)
def test_absent_reports_count_where_those_asked_are_known(name: str) -> None:
    """Cells are known by both lists, by an assignment, or if the names are all that were asked; else they are refused,
    with the ways out."""
    asked, known = KNOWN[name]

    assert known == asked.cells_known
    if known:
        asked.require_cells()
        return
    with pytest.raises(ReportsError, match=r"those without a report count as no answer.*tasks and workers"):
        asked.require_cells()


@pytest.mark.parametrize("name", KNOWN)
def test_reports_with_null_are_refused_everywhere_where_those_asked_are_unknown(name: str) -> None:
    """Evidence, an estimator, and the calls on frames refuse a channel that sends NULL; public participation does not
    need to know who was asked."""
    asked, known = KNOWN[name]
    channel = MECHANISM.channel()
    public = replace(MECHANISM, participation="public").channel()
    reports = answers().with_asked(replace(asked, assignment=None))
    calls: list[Callable[[Channel], object]] = [
        lambda channel: Evidence(observed=reports, channel=channel, asked=asked),
        lambda channel: DawidSkene().fit(reports, channel=channel, assignment=asked.assignment),
        lambda channel: infer(reports, "dawid-skene", channel=channel, assignment=asked.assignment),
        lambda channel: aggregate(reports, "dawid-skene", channel=channel, assignment=asked.assignment),
    ]

    for call in calls:
        if known:
            call(channel)
            continue
        with pytest.raises(ReportsError, match="need the lists of all tasks and workers"):
            call(channel)
    if asked.assignment is None:
        for call in calls:
            call(public)


def test_a_frame_of_reports_with_null_needs_its_lists() -> None:
    """Names that are given to the call are those asked; without them a frame of reports is refused."""
    frame = {"task": ["a", "a", "b"], "worker": ["u", "v", "v"], "label": ["no", "yes", "no"]}
    channel = MECHANISM.channel()

    assert ["a", "b"] == aggregate(frame, channel=channel, **NAMES)["task"]
    for given in ({}, {"tasks": NAMES["tasks"]}, {"workers": NAMES["workers"]}):
        with pytest.raises(ReportsError, match="need the lists of all tasks and workers"):
            aggregate(frame, channel=channel, **given)


@pytest.mark.parametrize("missing", LISTS)
def test_the_library_refuses_what_the_command_refuses(missing: ListName, tmp_path: Path) -> None:
    """`campaign collect` without a seed refuses a list taken from answers; with permission it writes no epsilon."""
    held = answers("tasks", "workers", "alphabet").with_asked(replace(STATED, stated=STATED.stated - {missing}))
    setup = ChannelAssignment(mechanism=MECHANISM)

    with pytest.raises(SettingsError, match=f"{missing} taken from the answers"):
        perturb_collection(held, setup)
    collection = perturb_collection(held, setup, lists_from_answers=True)
    write_collection(tmp_path, collection)
    written = (tmp_path / "crowd.json").read_text()

    assert () == collection.accounts
    assert "epsilon" not in written
    assert (missing,) == read_crowd(tmp_path / "crowd.json").collection.lists_from_answers
    assert {missing} == set(LISTS) - read_crowd(tmp_path / "crowd.json").asked.stated


def crowd_of(reports: Reports, guarantee: Guarantee, **facts: Any) -> CrowdRecord:
    """Describe reports of a mechanism."""
    return crowd_of_reports(reports, mechanism="mine", description="mine", guarantee=guarantee, **facts)


def test_a_crowd_describes_no_guarantee_that_its_lists_do_not_carry() -> None:
    """Whatever guarantee is passed, `crowd_of_reports` says why there is none: missing lists, or a simulation."""
    protected, public = Guarantee(epsilon=1.0), Guarantee(epsilon=1.0, participation="public")
    hidden = crowd_of(answers("alphabet"), protected).collection
    seen = crowd_of(answers("alphabet"), public).collection
    mixed = crowd_of(answers("alphabet"), public, participation="protected").collection
    made_up = crowd_of(answers("tasks", "workers", "alphabet"), protected, simulation=True).collection

    assert hidden.guarantee_text.startswith("none: tasks and workers were taken from the answers")
    assert (f"{public}; {GUARANTEE_SCOPE}", ()) == (seen.guarantee_text, seen.lists_from_answers)
    assert (hidden.guarantee_text, ("tasks", "workers")) == (mixed.guarantee_text, mixed.lists_from_answers)
    assert [None, public, None] == [one.guarantee for one in (hidden, seen, mixed)]
    assert made_up.guarantee_text.startswith("none: a simulation carries no privacy; ")
    assert [True, False, True, True] == [one.voided for one in (hidden, seen, mixed, made_up)]


def test_lists_from_answers_are_not_written_with_a_certificate_of_privacy(tmp_path: Path) -> None:
    """A certificate without the mark of lists from answers is refused where lists are missing; a marked one is not."""
    held = answers("alphabet")
    channel = MECHANISM.channel()
    table = ChannelTable(channels=(channel,), choice=((0,),))
    marked = replace(channel, mechanism=channel.mechanism + LISTS_MARK)
    for one in (channel, table):
        crowd = crowd_of(held, one.guarantee, certificate=one.certificate())
        with pytest.raises(SettingsError, match="must be marked as without privacy"):
            write_reports(tmp_path, held, one.certificate(), crowd)
    sealed = marked.certificate()
    write_reports(tmp_path, held, sealed, crowd_of(held, marked.guarantee, certificate=sealed))

    assert ("tasks", "workers") == read_crowd(tmp_path / "crowd.json").collection.lists_from_answers
