"""`crowdveil plan`: its table, JSON document, files and commands."""

import json
import re
import shlex
import shutil
from pathlib import Path

import jsonschema
import pytest

from tests.cli.conftest import Refusal, Run, RunJson

SAMPLES = Path(__file__).parents[2] / "docs" / "samples"
SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "schemas" / "crowdveil-json-1.json"
SIZE = ("plan", "--tasks", 40, "--workers", 30, "--participation-rate", 0.5)
LABELS = (*SIZE, "--labels", "no,yes,maybe", "--target-error", 0.2)


def write_parts(source: str, parts: dict[str, range]) -> None:
    """Write the tasks of a crowd, and its workers and answers divided into parts named by their suffix."""
    header, *lines = Path(source).read_text("utf-8").splitlines()
    Path("tasks.csv").write_text("task\n" + "".join(f"{task}\n" for task in range(1, 21)), "utf-8")
    for ending, workers in parts.items():
        names = {str(worker) for worker in workers}
        mine = [line for line in lines if line.split(",")[1].strip('"') in names]
        Path(f"answers{ending}.csv").write_text("\n".join([header, *mine]) + "\n", "utf-8")
        Path(f"workers{ending}.csv").write_text("worker\n" + "".join(f"{name}\n" for name in workers), "utf-8")


def carry_out(run: Run, commands: list[str]) -> None:
    """Run printed commands; after `data assign`, keep only the answers in assigned cells."""
    for command in commands:
        run(*shlex.split(command)[1:])
        if " assign " in command:
            asked = {tuple(line.split(",")) for line in Path("asked.csv").read_text("utf-8").splitlines()}
            kept = [
                line
                for line in Path("answers.csv").read_text("utf-8").splitlines()
                if tuple(line.split(",")[:2]) in asked
            ]
            Path("answers.csv").write_text("\n".join(kept) + "\n", "utf-8")


@pytest.mark.slow
def test_table_and_json_agree(run: Run, run_json: RunJson) -> None:
    """Both have every epsilon and candidate, the constant and the unprotected error."""
    words = (*LABELS, "--epsilon", "1,4", "--epsilon", 2)
    table, data = " ".join(run(*words).stdout.split()), run_json(*words)

    assert [1, 2, 4] == sorted({row["epsilon"] for row in data["candidates"]})
    for row in data["candidates"]:
        shown = f"{row['candidate']} {row['shown'].replace('less than', '<')} {row['shown_interval']}"
        same = f"{row['candidate']} sends the same as {row['same_as']} at epsilon"
        assert (same if row["same_as"] else shown) in table
    assert f"constant {data['constant_error']:.3g}" in table
    assert f"unprotected {data['unprotected']['shown']}" in table
    assert data["real_sets"] in table
    assert all(" ".join(sentence.split()) in table for sentence in data["verdict"])
    assert 40 == data["candidates"][0]["cells_per_worker"]
    assert data["recommended"]["error"] <= 0.2


@pytest.mark.slow
def test_no_epsilon_is_shown_below_its_value(run: Run) -> None:
    """An epsilon of many digits is rounded up in the table of candidates."""
    table = run(*LABELS, "--epsilon", "1.2345614").stdout

    assert "1.23457 " in table
    assert "1.23456" not in table


@pytest.mark.parametrize("width", [60, 80])
def test_the_first_lines_state_assumptions_and_real_sets(width: int, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Assumptions with their sources come first, then departures of real sets, then the recommendation."""
    monkeypatch.setenv("COLUMNS", str(width))
    text, given = (" ".join(run(*LABELS, "--epsilon", 4, *more).stdout.split()) for more in ((), ("--ability", 0.8)))

    assert text.startswith("assumed ability 0.75 on average, 0.54 to 0.92 (default); each worker answers ")
    assert "0.5 of the tasks (given), participation protected (default); every label equally likely (default)." in text
    assert "assumed ability 0.8 on average" in given
    assert "0.95 (given)" in given
    order = [text.index(words) for words in ("assumed", "real crowds Such predictions were optimistic", "plan Use")]
    assert sorted(order) == order
    headline = (
        "at epsilon 4 per answer and 160 per worker (40 cells, participation protected) with 30 workers: expected"
    )
    assert headline in text


@pytest.mark.parametrize(
    ("more", "losses"),
    [
        (("--participation", "public"), "per worker (about 20 answers, participation public)"),
        (("--assigned-per-task", 15), "per worker (20 assigned cells, participation protected)"),
    ],
)
def test_the_headline_counts_a_workers_cells(more: tuple[object, ...], losses: str, run_json: RunJson) -> None:
    """Epsilon per worker sums over expected answers if participation is public, else over assigned cells."""
    data = run_json(*LABELS, "--epsilon", 4, *more)

    assert f"epsilon 4 per answer and 80 {losses}" in data["verdict"][0]
    assert 80 == pytest.approx(data["recommended"]["epsilon_per_worker"])


@pytest.mark.slow
def test_assumptions_have_their_source(run_json: RunJson) -> None:
    """Assumptions say whether they were given; workers on a scale have standard deviations instead of an ability."""
    Path("prior.csv").write_text("label,probability\nno,0.6\nyes,0.3\nmaybe,0.1\n", "utf-8")
    words = ("--epsilon", 4, "--ability", 0.8, "--prior", "prior.csv", "--participation", "protected")
    given = run_json(*LABELS, *words)["assumptions"]
    guessed = run_json(*SIZE, "--scale", "0:4", "--target-error", 0.3, "--epsilon", 4)["assumptions"]

    assert [("ability", "given"), ("participation_rate", "given"), ("participation", "given"), ("prior", "given")] == [
        (one["name"], one["source"]) for one in given
    ]
    assert [0.8, 0.5, "protected", [0.6, 0.3, 0.1]] == [
        pytest.approx(one["value"]) if not isinstance(one["value"], str) else one["value"] for one in given
    ]
    assert ["default", "given", "default", "default"] == [one["source"] for one in guessed]
    assert ("sigmas", [0.4, 2.0]) == (guessed[0]["name"], guessed[0]["value"])


def test_no_expected_error_is_more_exact_than_its_simulation(run: Run, run_json: RunJson) -> None:
    """An error without a wrong simulated task is shown as a bound in the table, in JSON and in the sentences."""
    words = ("plan", "--tasks", 100, "--workers", 400, "--participation-rate", 0.8, "--labels", "no,yes")
    asked = (*words, "--target-error", 0.05, "--epsilon", 6)
    data, table = run_json(*asked), run(*asked).stdout
    bound = data["recommended"]["less_than"]

    assert data["recommended"]["error"] < bound < 0.05
    assert data["recommended"]["shown"].startswith("less than 0.00")
    assert f"expected error {data['recommended']['shown']}" in " ".join(table.split())
    assert [] == [figure for figure in re.findall(r"0\.0*[1-9]\d*", table) if len(figure.lstrip("0.")) > 4]


@pytest.mark.slow
def test_the_commands_can_be_run(run: Run, run_json: RunJson) -> None:
    """The printed commands run and end with truths, with and without an assignment."""
    write_parts("labels.csv", {"": range(1, 31)})
    words = ("--labels", "no,yes,maybe", "--tasks", 20, "--workers", 30, "--participation-rate", 0.5)
    for more in ((), ("--assigned-per-task", 24), ("--participation", "public", "--ability", 0.8)):
        data = run_json("plan", *words, "--target-error", 0.3, "--epsilon", 4, *more)
        carry_out(run, data["commands"])

        assert 21 == len(Path("found/truths.csv").read_text("utf-8").splitlines())
        assert f"{data['recommended']['epsilon']:g}" in data["commands"][-2]
        for name in ("found", "sent"):
            shutil.rmtree(name)


@pytest.mark.slow
def test_a_merged_prior_is_written_for_the_commands(run_json: RunJson) -> None:
    """With --out the prior of the coarsen_scale scale is written, sums to 1, and the commands name it."""
    rows = "".join(f"{label},{0.305 if label < 2 else 0.01}\n" for label in range(41))
    Path("fine.csv").write_text("label,probability\n" + rows, "utf-8")
    sized = ("plan", "--tasks", 10, "--workers", 9, "--participation-rate", 0.5, "--target-error", 7)
    data = run_json(*sized, "--scale", "0:40", "--prior", "fine.csv", "--epsilon", 8, "--out", "planned")
    shares = [float(line.split(",")[1]) for line in Path("planned/prior.csv").read_text("utf-8").splitlines()[1:]]

    assert data["recommended"] is not None
    assert "planned/prior.csv" in data["files"]
    assert (21, pytest.approx(1.0)) == (len(shares), sum(shares))
    assert "--prior planned/prior.csv" in data["commands"][-1]
    assert "--scale 0:40:2" in data["commands"][0]


def test_narrow_terminals_break_no_word(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """On 60 columns names of mechanisms are whole, and omitted columns are named."""
    monkeypatch.setenv("COLUMNS", "60")
    said = run(*LABELS, "--epsilon", 2).stdout

    assert " randomized-response " in said
    assert "A wider terminal" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 60


@pytest.mark.slow
def test_ordered_labels_have_ordinal_candidates(run_json: RunJson) -> None:
    """Ordered labels have candidates with both estimators, or with the given one alone."""
    both = run_json(*LABELS, "--ordered", "--epsilon", 2)
    one = run_json(*LABELS, "--ordered", "--epsilon", 2, "--method", "ordinal-dawid-skene")

    assert {"dawid-skene", "ordinal-dawid-skene"} == {row["method"] for row in both["candidates"]}
    assert {"ordinal-dawid-skene"} == {row["method"] for row in one["candidates"]}


@pytest.mark.slow
def test_a_settings_file_gives_the_prior(run_json: RunJson) -> None:
    """A public prior of the settings is that of the plan; an option replaces it."""
    for name in ("essays.csv", "students.csv"):
        shutil.copy(SAMPLES / name, name)
    text = (SAMPLES / "campaign.toml").read_text("utf-8").replace("high = 10", "high = 1")
    Path("campaign.toml").write_text(text.replace('"plan",', '"plan", prior = "settings.csv",'), "utf-8")
    for name, low in (("settings.csv", 0.7), ("other.csv", 0.2)):
        Path(name).write_text(f"label,probability\n0,{low}\n1,{1 - low}\n", "utf-8")
    words = ("plan", "--campaign", "campaign.toml")

    given, replaced = run_json(*words), run_json(*words, "--prior", "other.csv")

    priors = [[one["value"] for one in data["assumptions"] if one["name"] == "prior"] for data in (given, replaced)]
    assert [[pytest.approx([0.7, 0.3])], [pytest.approx([0.2, 0.8])]] == priors


@pytest.mark.slow
@pytest.mark.parametrize(
    "privacy", ['"plan", budget_per_worker = 5.0', '"randomized-response", epsilon_per_answer = 1.0']
)
def test_a_plan_says_of_a_campaign_what_its_creation_says(privacy: str, run: Run, run_json: RunJson) -> None:
    """Mechanism, losses, expected, unprotected and constant error are equal; without a budget the target is .9."""
    run("campaign", "init", "--out", "campaign.toml")
    text = Path("campaign.toml").read_text("utf-8")
    Path("campaign.toml").write_text(text.replace('"plan", budget_per_worker = 5.0', privacy), "utf-8")
    Path("tasks.csv").write_text("id,text\n" + "".join(f"{one},Is it so?\n" for one in range(10)), "utf-8")

    planned, made = (
        run_json("plan", "--campaign", "campaign.toml"),
        run_json("campaign", "new", "campaign.toml", "--out", "new"),
    )
    same = ("mechanism", "planned", "epsilon_per_answer", "epsilon_per_worker", "expected")
    assert [made[name] for name in same] == [planned["campaign"][name] for name in same]
    assert (made["most"], True) == (planned["campaign"]["tasks_per_worker"], planned["campaign"]["worth_asking"])
    if made["planned"]:
        assert [pytest.approx(made["expected"]["protected"]["error"])] == [
            one["error"] for one in planned["candidates"]
        ]
    else:
        assert pytest.approx(0.45) == planned["target_error"]


@pytest.mark.slow
def test_a_settings_file_gives_the_size_and_the_budget(run: Run, run_json: RunJson) -> None:
    """Answers, tasks, workers, participation and budget are those of campaign.toml; an option replaces one."""
    for name in ("campaign.toml", "essays.csv", "students.csv"):
        shutil.copy(SAMPLES / name, name)
    words = ("plan", "--campaign", "campaign.toml")
    data = run_json(*words)
    changed = run_json(*words, "--labels", "no,yes", "--tasks", 20, "--epsilon", 2, "--target-error", 0.2)

    assert (12, 24, 11, [5.0]) == (
        data["tasks"], data["workers"], len(data["labels"]), [one["budget"] for one in data["candidates"]],
    )  # fmt: skip
    assert {"protected"} == {one["participation"] for one in data["candidates"]}
    offered = Path("campaign.toml").read_text("utf-8").replace("budget_per_worker = 5.0", "levels = [5, 8]")
    Path("campaign.toml").write_text(offered, "utf-8")
    assert [5.0, 8.0] == [one["budget"] for one in run_json(*words)["candidates"]]
    assert (20, 24, ["no", "yes"], 4) == (
        changed["tasks"], changed["workers"], changed["labels"], changed["assigned_per_task"],
    )  # fmt: skip
    assert [2.0] == [row["epsilon"] for row in changed["candidates"]][:1]
    assert "'--workers' (or '--campaign'" in run("plan", "--tasks", 3, code=2).stderr


@pytest.mark.slow
def test_several_questions_are_planned_one_by_one(run: Run, run_json: RunJson) -> None:
    """Each question has its part of the budget, of the file or given, and a plan of its own; the sum is printed."""
    for name in ("questions.toml", "essays.csv", "students.csv"):
        shutil.copy(SAMPLES / name, name)
    words = ("plan", "--campaign", "questions.toml")
    planned = run_json(*words, "--budget", 6, "--out", "planned")
    jsonschema.validate(planned, json.loads(SCHEMA.read_text("utf-8")))
    shares = [
        [one["budget"] for one in json.loads(Path(f"planned/question-{k}/plan.json").read_text("utf-8"))["candidates"]]
        for k in (1, 2)
    ]

    assert ["How good is this essay?", "Does it name its sources?"] == [one["question"] for one in planned["questions"]]
    assert [[pytest.approx(3.0)]] * 2 == shares
    assert pytest.approx(8.0) == planned["epsilon_per_worker"]
    assert ["crowdveil campaign new questions.toml --out questions-asked"] == planned["commands"]
    assert "--ability needs one question" in run(*words, "--ability", 0.8, code=2).stderr


def test_every_worker_is_expected_to_answer_every_task(run_json: RunJson) -> None:
    """Without a rate of participation it is 1, and said to be the default."""
    words = ("--tasks", 10, "--workers", 9, "--labels", "no,yes", "--target-error", 0.3, "--epsilon", 2)
    planned = run_json("plan", *words)

    assert {"name": "participation_rate", "value": 1.0, "source": "default"} in planned["assumptions"]
    assert planned["candidates"] == run_json("plan", *words, "--participation-rate", 1)["candidates"]


@pytest.mark.slow
def test_a_pilot_gives_ability_labels_and_shared_mistakes(run: Run, run_json: RunJson, refusal: Refusal) -> None:
    """`--pilot` replaces ability and labels; `--gold` narrows the interval; each is refused where it does not fit."""
    cells = [(task, worker) for task in range(20) for worker in range(5)]
    rows = [f"{task},{worker},{'yes' if (task + (worker == task % 5)) % 2 else 'no'}" for task, worker in cells]
    Path("pilot.csv").write_text("task,worker,label\n" + "\n".join(rows) + "\n", "utf-8")
    truths = [f"{task},{'yes' if task % 2 else 'no'}" for task in range(20)]
    Path("truths.csv").write_text("task,truth\n" + "\n".join(truths) + "\n", "utf-8")
    words = (*SIZE, "--labels", "no,yes", "--target-error", 0.2, "--epsilon", 4)
    blind = run_json(*words, "--pilot", "pilot.csv")
    known = run_json(*words, "--pilot", "pilot.csv", "--gold", "truths.csv")

    sources = {one["name"]: one["source"] for one in blind["assumptions"]}
    assert {"ability": "pilot", "prior": "pilot", "participation_rate": "given", "participation": "default"} == sources
    assert blind["real_sets"].startswith("A pilot of 20 tasks: ability 0.78 against the consensus, no gold")
    assert "0 wrong of 20 with gold" in known["real_sets"]
    first, second = blind["candidates"][0], known["candidates"][0]
    assert second["real_high"] - second["real_low"] < first["real_high"] - first["real_low"]
    assert "--gold requires --pilot" in run(*words, "--gold", "truths.csv", code=2).stderr
    assert "the pilot determines the ability" in refusal(*words, "--pilot", "pilot.csv", "--ability", 0.8)
