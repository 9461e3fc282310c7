"""Folders of every kind that commands read, made by the installed version: campaigns, reports from files, answers.

They are small and saved, so that a later version is held to what this one read. Campaigns and simulations are drawn
with seeds; the reports of `perturb` without a seed, and whatever has a name of its own (a campaign), differ each time.
"""

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
from click.testing import CliRunner

from crowdveil import cli
from crowdveil.answers.write_reports import ordered_reports_table, write_table
from crowdveil.campaign.files.campaign_reports import AcceptedReport, write_questions
from crowdveil.campaign.rules.document import Relay
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.guarantee import Participation
from crowdveil.mechanisms import Laplace
from crowdveil.randomness import Seeded, seeded
from crowdveil.simulate import Crowd, categorical_crowd, numeric_crowd
from tests.campaign.builders import PUBLIC_KEY, BuiltCampaign, build_campaign, build_questions, response

LABELS, SCALE = Categories(("no", "yes")), Scale(0, 6)
TASKS, WORKERS, GOLD = 12, 16, 10
RESPONSE = ("--mechanism", "randomized-response", "--epsilon", 2, "--labels", "no,yes")
LISTS = ("--tasks", "tasks.csv", "--workers", "workers.csv")


def command(*words: object) -> None:
    """Run a command that must succeed."""
    result = CliRunner().invoke(cli.main, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def label_crowd(tasks: int = TASKS) -> Crowd:
    """Return a crowd of labels in which a fifth of the cells has no answer."""
    return categorical_crowd(workers=WORKERS, tasks=tasks, labels=LABELS, sparsity=0.2, source=seeded(1))


def number_crowd() -> Crowd:
    """Return a crowd of numbers in which a fifth of the cells has no answer."""
    return numeric_crowd(workers=WORKERS, tasks=TASKS, sparsity=0.2, scale=SCALE, source=seeded(2))


def write_known_truths(folder: Path, truths: Sequence[tuple[object, object]]) -> None:
    """Write `gold.csv`: task and truth."""
    rows = "".join(f"{task},{truth}\n" for task, truth in truths)
    (folder / "gold.csv").write_text("task,truth\n" + rows, "utf-8")


def write_prior_and_costs(folder: Path) -> None:
    """Write the public prior of the labels, and the costs of decisions."""
    (folder / "prior.csv").write_text("label,probability\nno,0.7\nyes,0.3\n", "utf-8")
    (folder / "costs.csv").write_text("truth,decision,cost\nno,yes,5\nyes,no,1\n", "utf-8")


def write_crowd(folder: Path, crowd: Crowd) -> None:
    """Write `answers.csv`, the lists of tasks and workers, and the known truths of the first tasks."""
    with open(folder / "answers.csv", "wb") as stream:
        write_table(stream, ordered_reports_table(crowd.answers))
    for name, most in (("task", TASKS), ("worker", WORKERS)):
        (folder / f"{name}s.csv").write_text(f"{name}\n" + "".join(f"{number}\n" for number in range(1, most + 1)))
    write_known_truths(folder, list(crowd.gold.items())[:GOLD])


def perturbed(crowd: Crowd, *options: object, form: str = "reports.csv") -> Callable[[Path], None]:
    """Return a function that writes the folder of `perturb` with these options, with known truths."""

    def write(folder: Path) -> None:
        write_crowd(Path(), crowd)
        rows = [f"{worker},{2 if worker % 2 else 1}\n" for worker in range(1, WORKERS + 1)]
        Path("channels.csv").write_text("worker,epsilon\n" + "".join(rows))
        cells = [f"{task},{worker}" for task in range(1, TASKS + 1) for worker in range(1, WORKERS + 1)]
        given = {line.rpartition(",")[0] for line in Path("answers.csv").read_text("utf-8").splitlines()}
        asked = [cell for place, cell in enumerate(cells) if cell in given or place % 2]
        Path("asked.csv").write_text("\n".join(["task,worker", *asked]) + "\n", "utf-8")
        command("perturb", "answers.csv", *options, "--out", folder)
        assert (folder / form).exists()
        shutil.copy("gold.csv", folder)
        if "--labels" in options:
            write_prior_and_costs(folder)

    return write


def edited(folder: Path) -> None:
    """Write reports of which one row was removed after they were sent."""
    perturbed(label_crowd(), *RESPONSE, *LISTS)(folder)
    reports = folder / "reports.csv"
    reports.write_text("".join(reports.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")


def plain_answers(folder: Path) -> None:
    """Write answers of a crowd in which a worker copies another one, with enough known truths to combine methods."""
    folder.mkdir()
    crowd = label_crowd(30)
    write_crowd(folder, crowd)
    write_known_truths(folder, list(crowd.gold.items())[:24])
    lines = (folder / "answers.csv").read_text("utf-8").splitlines(keepends=True)
    copies = [line.replace(",1,", ",copy,") for line in lines if ",1," in line]
    (folder / "answers.csv").write_text("".join([*lines, *copies]), "utf-8")
    write_prior_and_costs(folder)
    for name in ("tasks.csv", "workers.csv"):
        (folder / name).unlink()


def plain_numbers(folder: Path) -> None:
    """Write answers that are numbers, and for each known truth the side of the scale on which it is."""
    folder.mkdir()
    crowd = number_crowd()
    write_crowd(folder, crowd)
    sides = [(task, "high" if float(truth) > 1 else "low") for task, truth in crowd.gold.items()]
    (folder / "sides.csv").write_text("task,truth\n" + "".join(f"{task},{side}\n" for task, side in sides), "utf-8")
    for name in ("tasks.csv", "workers.csv"):
        (folder / name).unlink()


def label_studio(folder: Path) -> None:
    """Write an export of Label Studio with the answers of a crowd."""
    folder.mkdir()
    answers = label_crowd().answers
    tasks: list[dict[str, object]] = [
        {"id": number, "data": {"text": f"Text {number}"}, "annotations": []} for number in range(1, TASKS + 1)
    ]
    for place, (task, worker, value) in enumerate(zip(answers.task, answers.worker, answers.value, strict=True)):
        given = {"from_name": "q", "to_name": "t", "type": "choices", "value": {"choices": [LABELS.names[int(value)]]}}
        found = {"id": place + 1, "completed_by": int(worker) + 1, "result": [given]}
        tasks[task]["annotations"].append(found)
    (folder / "answers.json").write_text(json.dumps(tasks, separators=(",", ":")) + "\n", "utf-8")


def sampled(built: BuiltCampaign, answers: Sequence[int], source: Seeded) -> Iterator[AcceptedReport]:
    """Yield the report of every worker, whose answer to a task is that of `answers` four times in five.

    With levels, workers choose them in turn.
    """
    campaign = built.campaign
    generator = np.random.default_rng(source.generator.integers(1 << 30))
    for slot in range(campaign.slots):
        level = None if campaign.levels is None else slot % campaign.levels
        codes = []
        for task in built.tasks(slot):
            channel = campaign.channel_of(slot, task, level)
            size = channel.alphabet.size
            kept = generator.random() < 0.8
            answer = answers[task] if kept else int(generator.integers(size + channel.protects_participation))
            codes.append(int(channel.sample(np.array([answer]), source)[0]))
        yield AcceptedReport(slot, built.tasks(slot), codes, level)


def collected(
    build: Callable[[], BuiltCampaign],
    answers: Sequence[int],
    names: Sequence[str],
    *,
    question: str = "",
    shuffled: bool = False,
) -> Callable[[Path], None]:
    """Return a function that writes the collected reports of a campaign, or those of one of its questions.

    Args:
        build: returns the campaign.
        answers: code of the right answer to each task.
        names: labels or numbers of the right answers.
        question: folder of the question.
        shuffled: whether a relay mixed the cells of each task, so that no cell has a name.
    """

    def write(folder: Path) -> None:
        built = build()
        reports = list(sampled(built, answers, seeded(3)))
        write_questions("all", built.campaign, mixed(reports) if shuffled else reports)
        shutil.copytree(Path("all") / question, folder)
        tasks = [task.id for task in built.campaign.tasks]
        truths = [(task, name) for task, name in zip(tasks, names, strict=True) if name]
        write_known_truths(folder, truths[:GOLD])

    return write


def mixed(reports: Sequence[AcceptedReport]) -> list[AcceptedReport]:
    """Return the reports as the batches of a relay give them: the k-th has the k-th code of each task, in order."""
    tasks = reports[0].tasks
    columns = [sorted(report.codes[place] for report in reports) for place in range(len(tasks))]
    return [AcceptedReport(number, tasks, codes) for number, codes in enumerate(zip(*columns, strict=True))]


def levels() -> BuiltCampaign:
    """Return a campaign with two levels of privacy."""
    channels = [response(LABELS, epsilon) for epsilon in (1.0, 3.0)]
    return build_campaign(channels=channels, tasks=TASKS, slots=WORKERS, url=None, content={"levels": 2})


def single(participation: Participation = "protected") -> BuiltCampaign:
    """Return a campaign of one question, in which every worker is asked three tasks in four."""
    asked = [[task for task in range(TASKS) if (task + slot) % 4] for slot in range(WORKERS)]
    return build_campaign(channels=[response(LABELS, 2.0, participation)], tasks=TASKS, assignment=asked, url=None)


def relayed(unit: Literal["report", "cell"]) -> BuiltCampaign:
    """Return a campaign with a relay that mixes whole reports or single cells."""
    content = {"relay": Relay("The library", PUBLIC_KEY, 2, unit)}
    return build_campaign(channels=[response(LABELS, 2.0)], tasks=TASKS, slots=WORKERS, content=content)


def questions() -> BuiltCampaign:
    """Return a campaign of a question with labels and one with numbers."""
    grades = Laplace(alphabet=Scale(0, 4), epsilon=2.0, participation="protected").channel()
    channels = [response(LABELS, 2.0), grades]
    return build_questions(channels, [TASKS, GOLD], [range(TASKS + GOLD)] * WORKERS, url=None)


RIGHT = [0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1]
NAMES = [LABELS.names[code] for code in RIGHT]
RIGHT_NUMBERS = [0, 4, 2, 3, 1, 2, 2, 4, 0, 3]
BOTH = [*RIGHT, *RIGHT_NUMBERS]
OF_LABELS, OF_NUMBERS = [*NAMES, *[""] * GOLD], [*[""] * TASKS, *map(str, RIGHT_NUMBERS)]

FOLDERS: dict[str, Callable[[Path], None]] = {
    "campaign": collected(single, RIGHT, NAMES),
    "campaign-public": collected(lambda: single("public"), RIGHT, NAMES),
    "question-of-labels": collected(questions, BOTH, OF_LABELS, question="question-1"),
    "question-of-numbers": collected(questions, BOTH, OF_NUMBERS, question="question-2"),
    "shuffled-cells": collected(lambda: relayed("cell"), RIGHT, NAMES, shuffled=True),
    "shuffled-reports": collected(lambda: relayed("report"), RIGHT, NAMES),
    "levels": collected(levels, RIGHT, NAMES),
    "channels-of-workers": perturbed(label_crowd(), *RESPONSE, *LISTS, "--channels", "channels.csv"),
    "assignment": perturbed(label_crowd(), *RESPONSE, *LISTS, "--assignment", "asked.csv"),
    "public-participation": perturbed(label_crowd(), *RESPONSE, "--participation", "public"),
    "protected": perturbed(label_crowd(), *RESPONSE, *LISTS),
    "simulation": perturbed(label_crowd(), *RESPONSE, "--seed", 4),
    "lists-from-answers": perturbed(label_crowd(), *RESPONSE, "--lists-from-answers"),
    "edited": edited,
    "sums": perturbed(
        number_crowd(), "--mechanism", "matrix-factorization", "--epsilon", 4, "--scale", "0:6", *LISTS,
        form="sums.json",
    ),
    "blocks": perturbed(label_crowd(), *RESPONSE, *LISTS, "--format", "blocks", form="crowd.json"),
    "numbers": perturbed(number_crowd(), "--mechanism", "laplace", "--epsilon", 4, "--scale", "0:6", *LISTS),
    "answers": plain_answers,
    "answers-of-numbers": plain_numbers,
    "label-studio": label_studio,
}  # fmt: skip
"""Name of each saved folder, and what writes it into a new one."""


def write_folders(folder: Path, names: Sequence[str]) -> None:
    """Draw the named folders again, in place of those that are there."""
    for name in names:
        with TemporaryDirectory() as work:
            with contextlib.chdir(work):
                FOLDERS[name](Path("made"))
            shutil.rmtree(folder / name, ignore_errors=True)
            shutil.move(Path(work) / "made", folder / name)
