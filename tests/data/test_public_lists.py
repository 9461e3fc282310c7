"""Reports know which of their lists were given: a library that forgets to ask cannot promise anything."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.certificate import LISTS_MARK
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.guarantee import Guarantee
from crowdveil.data.assignment import Assignment
from crowdveil.data.public_lists import ALL_LISTS, join_words, missing_lists
from crowdveil.data.reports import Reports
from crowdveil.errors import SettingsError
from crowdveil.folder.answers import read_answers
from crowdveil.folder.crowd import describe_crowd, read_crowd
from crowdveil.folder.write_collection import write_reports
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.randomness import secure, seeded
from crowdveil.simulate import categorical_crowd, perturb, perturb_cells
from crowdveil.simulate.channel_assignment import ChannelAssignment
from crowdveil.simulate.perturbed_collection import perturb_collection, write_collection

LABELS = Categories(("no", "yes"))
NAMES = {"tasks": ["a", "b"], "workers": ["u", "v"]}
MECHANISM = RandomizedResponse(alphabet=LABELS, epsilon=1.0)


def answers(*given: str, duplicates: str = "error") -> Reports:
    """Return three answers, read with some of the lists."""
    lists = {**NAMES, "alphabet": LABELS}
    columns = ["a", "a", "b"], ["u", "v", "v"], ["no", "yes", "no"]
    chosen = {name: lists[name] for name in given}
    return Reports.from_arrays(*columns, duplicates=duplicates, **chosen)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [(), ("tasks",), ("workers",), ("alphabet",), ("tasks", "workers", "alphabet")])
def test_reading_says_which_lists_were_given(given: tuple[str, ...], tmp_path: Path) -> None:
    """Arrays, CSV files and both ways of putting rows in order count what was given, and nothing else."""
    wanted = {"labels" if name == "alphabet" else name for name in given}
    path = tmp_path / "answers.csv"
    path.write_text("task,worker,label\na,u,no\na,v,yes\nb,v,no\nb,v,no\n")
    lists = {**NAMES, "alphabet": LABELS}
    read = Reports.from_csv(path, duplicates="first", **{name: lists[name] for name in given})  # type: ignore[arg-type]

    assert wanted == answers(*given).public_lists == answers(*given, duplicates="all").public_lists == read.public_lists


def test_what_does_not_say_so_is_not_public(tmp_path: Path) -> None:
    """Constructed reports and opened folders have no public lists by default."""
    made = Reports([0], [0], [0], np.array(["a"]), np.array(["u"]), LABELS)  # type: ignore[arg-type]
    made.with_public_lists(ALL_LISTS).save(tmp_path)

    assert frozenset() == made.public_lists == Reports.open(tmp_path).public_lists
    assert ALL_LISTS == made.with_public_lists(ALL_LISTS).public_lists
    assert made.worker is made.with_public_lists(ALL_LISTS).worker


def test_what_is_sent_has_the_lists_of_the_answers() -> None:
    """Devices, the vectorised path and a table of channels neither add nor lose a list."""
    held = answers("tasks", "alphabet")
    channel = MECHANISM.channel()
    asked = Assignment.from_arrays(["a", "a", "b"], ["u", "v", "v"])
    sent = [
        perturb(held, MECHANISM, secure()),
        perturb(held, MECHANISM, seeded(1)),
        perturb_cells(held, channel, seeded(1)),
        perturb_cells(held, channel, seeded(1), assignment=asked),
    ]

    assert [{"tasks", "labels"}] * 4 == [one.public_lists for one in sent]
    crowd = categorical_crowd(workers=3, tasks=4, labels=LABELS, sparsity=0.5, source=seeded(1))
    assert ALL_LISTS == crowd.answers.public_lists


def test_needed_lists_follow_from_participation() -> None:
    """Protected participation needs all lists, public participation the labels only."""
    assert ("labels", "tasks", "workers") == missing_lists((), "protected")
    assert ("labels",) == missing_lists(("tasks",), "public")
    assert ("tasks",) == missing_lists(("labels", "workers"), "protected")
    assert ("labels, tasks and workers", "tasks") == (join_words(["labels", "tasks", "workers"]), join_words(["tasks"]))


@pytest.mark.parametrize("missing", ["labels", "tasks", "workers"])
def test_the_library_refuses_what_the_command_refuses(missing: str, tmp_path: Path) -> None:
    """`campaign collect` without a seed refuses a list taken from answers; with permission it writes no epsilon."""
    held = answers("tasks", "workers", "alphabet").with_public_lists(ALL_LISTS - {missing})
    setup = ChannelAssignment(mechanism=MECHANISM)

    with pytest.raises(SettingsError, match=f"{missing} taken from the answers"):
        perturb_collection(held, setup)
    collection = perturb_collection(held, setup, lists_from_answers=True)
    write_collection(tmp_path, collection)
    written = (tmp_path / "crowd.json").read_text()

    assert () == collection.accounts
    assert "epsilon" not in written
    assert [missing] == read_crowd(tmp_path / "crowd.json")["lists_from_answers"]


def test_a_crowd_describes_no_guarantee_that_its_lists_do_not_carry() -> None:
    """Whatever guarantee a program passes, `describe_crowd` says why there is none: missing lists, or a simulation."""
    protected, public = Guarantee(epsilon=1.0), Guarantee(epsilon=1.0, participation="public")
    hidden = describe_crowd(answers("alphabet"), mechanism="mine", guarantee=protected, simulation=False)
    seen = describe_crowd(answers("alphabet"), mechanism="mine", guarantee=public, simulation=False)
    mixed = describe_crowd(
        answers("alphabet"), mechanism="mine", guarantee=public, participation="protected", simulation=False
    )
    held = answers("tasks", "workers", "alphabet")
    made_up = describe_crowd(held, mechanism="mine", guarantee=protected, simulation=True)

    assert hidden["guarantee"].startswith("none: tasks and workers were taken from the answers")
    assert (str(public), []) == (seen["guarantee"], seen["lists_from_answers"])
    assert (hidden["guarantee"], ["tasks", "workers"]) == (mixed["guarantee"], mixed["lists_from_answers"])
    assert made_up["guarantee"].startswith("none: a simulation carries no privacy; ")


def test_lists_from_answers_are_not_written_with_a_certificate_of_privacy(tmp_path: Path) -> None:
    """A certificate without the mark of lists from answers is refused where lists are missing; a marked one is not."""
    held = answers("alphabet")
    channel = MECHANISM.channel()
    table = ChannelTable(channels=(channel,), choice=((0,),))
    marked = replace(channel, mechanism=channel.mechanism + LISTS_MARK)
    for one in (channel, table):
        crowd = describe_crowd(
            held, mechanism="mine", guarantee=one.guarantee, simulation=False, certificate=one.certificate()
        )
        with pytest.raises(SettingsError, match="must be marked as without privacy"):
            write_reports(tmp_path, held, one.certificate(), crowd)
    sealed = marked.certificate()
    crowd = describe_crowd(held, mechanism="mine", guarantee=marked.guarantee, simulation=False, certificate=sealed)
    write_reports(tmp_path, held, sealed, crowd)

    assert ["tasks", "workers"] == read_crowd(tmp_path / "crowd.json")["lists_from_answers"]


def test_a_scale_is_a_list_of_labels(tmp_path: Path) -> None:
    """Numbers read on a scale have public labels: those of the scale."""
    (tmp_path / "n.csv").write_text("task,worker,value\na,u,3.2\n")
    read = read_answers(str(tmp_path / "n.csv"), alphabet=Scale(0, 9), tasks=["a"], workers=["u"])

    assert ALL_LISTS == read.answers.public_lists
