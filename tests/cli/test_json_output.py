"""JSON of every command, done and failed: one documented schema, and nothing else on stdout."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator

import crowdveil.campaign.relay.receiver
import crowdveil.campaign.service.campaign_demo
import crowdveil.campaign.service.server
import crowdveil.comparison.demo
from crowdveil.campaign.pages.results import DOWNLOADS, CampaignResult
from crowdveil.campaign.rules.document import Relay
from crowdveil.campaign.service.server import ServerSettings
from crowdveil.campaign.service.store import Store
from crowdveil.cli import main
from crowdveil.cli.display import FILE_HINT, has_json_flag, json_text
from crowdveil.comparison.demo import Demo
from crowdveil.comparison.trials import NotRun, Row
from crowdveil.errors import (
    CertificateError,
    CrowdveilError,
    EngineError,
    NoMinimiserError,
    ReportsError,
    SettingsError,
)
from crowdveil.privacy.statement import PrivacyStatement
from tests.campaign.builders import PUBLIC_KEY, BuiltCampaign, build_campaign
from tests.cli.conftest import LABELS, Run

DOCS = Path(__file__).parent.parent.parent / "docs"
SCHEMA = json.loads((DOCS / "reference" / "schemas" / "crowdveil-json-1.json").read_text("utf-8"))
PAGE = (DOCS / "reference" / "json-output.md").read_text("utf-8")

Words = tuple[object, ...]
RESPONSE: Words = ("--mechanism", "randomized-response", "--epsilon", 3)
LISTS: Words = ("--tasks", "tasks.csv", "--workers", "every-worker.csv")
PERTURB: Words = ("perturb", "labels.csv", *RESPONSE, *LISTS, "--labels", ",".join(LABELS), "--seed", 1)
ASKED = "asked/campaign.json"
STUDIO, QUESTION = DOCS / "samples" / "label-studio.json", ("--question", "sentiment")
SERVE: Words = ("campaign", "serve", ASKED, "--port", 0)
SIZE: Words = ("--tasks", 40, "--workers", 30, "--participation-rate", 0.5)

RELAYED: Words = ("relayed/campaign.json",)
RELAY = Relay("The library", PUBLIC_KEY, 2, "report")

BY_HAND = build_campaign(url=None, tasks=8, assignment=[range(4)] * 2)


def answer_words(slot: int) -> Words:
    """Return the options with which a worker answers `BY_HAND`."""
    folders = ("--files", "by-hand", "--out", "handed", "--home", f"home{slot}")
    return (BY_HAND.link(slot).text, "--answers", "labels-of-one.csv", *folders)


DONE: dict[str, tuple[list[Words], Words]] = {
    "demo": ([], ("--out", "shown")),
    "import": ([], ("wide", DOCS / "samples" / "wide.csv", "--out", "answers.csv")),
    "plan": ([], (*SIZE, "--labels", "no,yes", "--target-error", 0.2, "--epsilon", "1,4", "--out", "planned")),
    "data assign": ([], (*LISTS, "--per-task", 5, "--out", "asked.csv")),
    "data draw-gold": ([], ("labels.csv", "--number", 3, "--out", "gold.csv")),
    "perturb": ([], (*PERTURB[1:], "--out", "sent")),
    "data encode": ([(*PERTURB, "--out", "sent")], ("sent/reports.csv", "--out", "blocks")),
    "infer": ([(*PERTURB, "--out", "sent")], ("sent/reports.csv", "--score", "labels-gold.csv", "--out", "found")),
    "data export": (
        [("infer", STUDIO, *QUESTION, "--out", "found")],
        ("label-studio", "found", "--tasks", STUDIO, *QUESTION, "--out", "predictions.json"),
    ),
    "agreement": ([], ("labels.csv", "--out", "agreement.csv")),
    "next": ([], ("labels.csv", "--budget", 4, "--out", "next.csv")),
    "conclude": ([], ("labels.csv", "--gold", "labels-gold.csv", "--random", "--out", "conclusions.csv")),
    "review": ([], ("labels.csv", "--out", "review.csv")),
    "rank": ([], (DOCS / "samples" / "comparisons.csv", "--out", "ranked")),
    "share": ([], ("labels.csv", "--out", "shares.csv")),
    "report": ([(*PERTURB, "--out", "sent"), ("infer", "sent/reports.csv")], ("sent", "--out", "page.html")),
    "account": ([], (*RESPONSE, "--labels", "no,yes", "--tasks", 9, "--delta", 1e-6)),
    "verify": ([(*PERTURB, "--out", "sent")], ("sent/certificate.json",)),
    "statement": ([], (ASKED,)),
    "audit": ([], ("randomized-response", "--epsilon", 3, "--labels", "no,yes", "--draws", 2000)),
    "data synthesize": ([], ("numbers.csv", "--bounds", "-2:7", "--epsilon", 1, "--seed", 1, "--out", "made")),
    "campaign init": ([], ("--out", "new.toml")),
    "campaign invite": ([("campaign", "new", "campaign.toml", "--out", "essays")], ("essays",)),
    "campaign new": ([], ("campaign.toml", "--out", "essays")),
    "campaign page": ([("campaign", "new", "campaign.toml", "--out", "essays")], ("essays", "--out", "device.html")),
    "campaign demo": ([], ("--out", "shown")),
    "campaign serve": ([], (ASKED, "--port", 0)),
    "campaign backup": ([SERVE], (ASKED, "--out", "monday.sqlite")),
    "campaign close": ([SERVE], (ASKED,)),
    "campaign export": ([SERVE, ("campaign", "close", ASKED)], (ASKED, "--out", "collected")),
    "campaign purge": ([SERVE, ("campaign", "close", ASKED)], (ASKED, "--yes")),
    "campaign answer": ([], answer_words(0)),
    "campaign relay": ([], (*RELAYED, "--port", 0, "--to", "http://127.0.0.1:1", "--token-file", "relayed/token.txt")),
    "campaign receive": ([], (*RELAYED, "--port", 0, "--out", "batches")),
    "campaign collect": (
        [("campaign", "answer", *answer_words(0)), ("campaign", "answer", *answer_words(1))],
        ("handed", "--campaign", "by-hand/campaign.json", "--out", "got"),
    ),
    "data list": ([], ()),
    "data sources": ([], ("duchenne", "--from", "published", "--out", "converted")),
}
"""For every command: the commands that make its input, and the options of a run that is done."""

WRITES_INTO_ITS_FOLDER = {"campaign invite"}
"""Commands that write into the folder that they are given."""

REFUSED: dict[str, Words] = {
    "plan": (*SIZE, "--labels", "no,yes", "--target-error", -1),
    "infer": ("none.csv",),
    "verify": ("labels.csv",),
    "audit": ("randomized-response", "--epsilon", 99, "--labels", "no,yes"),
    "data synthesize": ("none.csv", "--bounds", "-2:7", "--epsilon", 1, "--out", "made"),
    "campaign serve": ("none/campaign.json", "--port", 0),
    "campaign answer": ("no link", "--answers", "labels.csv", "--home", "home"),
}
"""Runs that must end with exit code 1, by command."""


def leaves(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, by its name without the program's."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(leaves())


def check(document: dict[str, Any], part: str) -> None:
    """Hold a document to one part of the schema, and to the whole."""
    validator = Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": SCHEMA["$defs"]})

    assert [] == [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
    assert Draft202012Validator(SCHEMA).is_valid(document)


@pytest.fixture
def made_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """List tasks and workers, have one data set and the sample campaign, and replace the work of the demo."""
    for name in ("campaign.toml", "essays.csv", "students.csv"):
        shutil.copy(DOCS / "samples" / name, name)
    for name, most in (("task", 20), ("worker", 30)):
        rows = "".join(f"{number}\n" for number in range(1, most + 1))
        Path(f"{name}s.csv").write_text(f"{name}\n{rows}")
    Path("data/tiny").mkdir(parents=True)
    Path("data/tiny/answers.csv").write_text("task,worker,answer\na,u,x\na,v,y\nb,v,x\n")
    Path("data/tiny/meta.json").write_text(json.dumps({"kind": "binary", "labels": ["x", "y"]}))
    answer_at_once(build_campaign(), monkeypatch)
    monkeypatch.setenv("CROWDVEIL_DATA", "data")
    Path("published").mkdir()
    Path("published/workerResponses.txt").write_text("u\ta\t1\nv\ta\t0\n")
    Path("published/groundTruth.txt").write_text("a\t1\n")
    BY_HAND.write(Path("by-hand"))
    build_campaign(content={"relay": RELAY}).write(Path("relayed"))
    Path("relayed/token.txt").write_text("A" * 43)
    for running in ("run_relay", "run_receiver"):
        monkeypatch.setattr(crowdveil.campaign.relay.receiver, running, lambda *_: None)
    Path("labels-of-one.csv").write_text("task,label\nt0,quokka\n")
    monkeypatch.setattr(crowdveil.comparison.demo.crowds, "demo_crowds", lambda load: ())
    monkeypatch.setattr(crowdveil.comparison.demo, "_rows_of", lambda trials, progress: [demo_row()])
    monkeypatch.setattr(crowdveil.comparison.demo, "compare_with_unprotected", tuple)
    monkeypatch.setattr(crowdveil.comparison.demo, "page_html", lambda *_: "a page")
    files = dict.fromkeys(DOWNLOADS, b"truth\ntrue\n") | {"truths.csv": b"truth\n" + b"true\nfalse\n" * 6}
    result = CampaignResult(files, PrivacyStatement(status="none"), (), "0" * 64, ())
    campaign = build_campaign().campaign
    monkeypatch.setattr(crowdveil.campaign.service.campaign_demo, "run_on_loopback", lambda *_: (campaign, result))


def answer_at_once(built: BuiltCampaign, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a campaign into asked/; `campaign serve` then stores a report of every worker and ends."""
    built.write(Path("asked"))

    def answer(settings: ServerSettings, *_: object) -> None:
        store = Store.open(settings.database)
        for token in built.tokens:
            store.store_report(built.campaign.digest, token, f"{token.slot:032x}", bytes(built.campaign.body_bytes))
        store.close()

    monkeypatch.setattr(crowdveil.campaign.service.server, "run", answer)


def demo_row() -> Row:
    """Row whose exact epsilon is above the claimed one."""
    return Row(
        crowd="small", mechanism="one-layer", requested=1.0, claimed=1.0, exact=float("inf"),
        exact_worker=float("inf"), unit="cell", participation="public", reason="a reason", method="majority-vote",
        channel_used=False,
        error=0.25, error_name="error_rate", unprotected=0.125, constant="no", constant_error=0.5, correlation=0.5,
        scored=4, reports=9, steps=1, converged=True,
    )  # fmt: skip


def test_every_command_has_its_cases() -> None:
    """Every command has a run that succeeds and a part of the schema; `infer` has two, `next` three, `plan` four."""
    names = sorted(COMMANDS)

    assert names == sorted(DONE)
    assert sorted([*names, "infer", "next", "next", "plan", "plan", "plan"]) == sorted(
        part["properties"]["command"]["const"] for part in parts().values()
    )


def parts() -> dict[str, dict[str, Any]]:
    """Return the parts of the schema that describe a command."""
    return {
        name: part for name, part in SCHEMA["$defs"].items() if "const" in part.get("properties", {}).get("command", {})
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [{"extra": 1}, {"tasks": "20"}, {"files": "asked.csv"}, {"status": "error"}, {"format": "crowdveil-json/2"}],
    ids=lambda change: next(iter(change)),
)
def test_the_schema_refuses_other_documents(change: dict[str, Any]) -> None:
    """A member that is not described, another type, and another format do not pass."""
    Draft202012Validator.check_schema(SCHEMA)
    document = {
        "format": "crowdveil-json/1",
        "command": "data assign",
        "status": "done",
        "warnings": [],
        "files": [],
        "replaced": [],
    }
    counted: dict[str, Any] = dict.fromkeys(("tasks", "workers", "cells", "gold_cells", "fewest", "most"), 2)
    document |= counted

    check(document, "data-assign")
    assert not Draft202012Validator(SCHEMA).is_valid(document | change)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_done_is_one_document(name: str, run: Run, made_up: None) -> None:
    """A command that is done prints one object of its part of the schema; the files that it lists exist."""
    before, words = DONE[name]
    for line in before:
        run(*line)
    document = json.loads(run(*name.split(), *words, "--json").stdout)

    check(document, name.replace(" ", "-"))
    assert name == document["command"]
    assert [] == [path for path in document["files"] if not Path(path).is_file()]
    assert bool(document["files"]) == ("--out" in words or name in WRITES_INTO_ITS_FOLDER)


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_one_document(name: str, run: Run, made_up: None) -> None:
    """A command that cannot be met prints an error with rule, hint and message, and the line on stderr."""
    result = run(*name.split(), *REFUSED[name], "--json", code=3 if name in ("audit", "statement", "verify") else 1)
    document = json.loads(result.stdout)

    check(document, "error")
    assert name == document["command"]
    assert document["error"]["rule"]
    assert document["error"]["hint"]
    assert f"Error: {document['error']['message']}\n" == result.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_usage_is_one_document(name: str, run: Run) -> None:
    """An option that does not exist ends with exit code 2 and an object that names the rule and the help."""
    document = json.loads(run(*name.split(), "--json", "--nonsense", code=2).stdout)

    check(document, "error")
    assert (name, "UsageError") == (document["command"], document["error"]["type"])
    assert f"{name} --help" in document["error"]["hint"]


@pytest.mark.parametrize("words", [("nonsense", "--json"), ("data", "nonsense", "--json"), ("--nonsense", "--json")])
def test_unknown_commands_are_documents_too(words: tuple[str, ...], run: Run) -> None:
    """What names no command gives an object whose command is null, or the group's name."""
    document = json.loads(run(*words, "--json", code=2).stdout)

    check(document, "error")
    assert ("data" if "data" in words else None) == document["command"]


def test_the_flag_after_two_dashes_is_a_name() -> None:
    """`--json` asks for JSON as an option only."""
    assert has_json_flag(["infer", "a.csv", "--json"])
    assert not has_json_flag(["infer", "--", "--json"])


@pytest.mark.parametrize(
    ("error", "rule", "value", "hint", "details"),
    [
        (SettingsError("a rule", value=3, hint="Do."), "a rule", 3, "Do.", {}),
        (ReportsError("a rule", source="a.csv", rows=(1, 2), examples="x"), "a rule", "x", None,
         {"source": "a.csv", "rows": [1, 2]}),
        (ReportsError("a rule", hint="Do."), "a rule", None, "Do.", {"source": "data", "rows": []}),
        (CertificateError("shape", "no rows.", hint="Do."), "no rows.", None, "Do.",
         {"defect": "shape", "detail": "no rows."}),
        (EngineError("It died", hint="Do."), "It died", None, "Do.", {}),
        (NoMinimiserError(answers=2, dimensions=3),
         "the loss of a worker with fewer answers than dimensions has no minimiser", 2,
         "Use mechanism matrix-factorization (corrected), or a smaller d.", {"answers": 2, "dimensions": 3}),
        (FileNotFoundError(2, "No such file", "a.csv"), "No such file", "a.csv", FILE_HINT, {"errno": 2}),
        (SettingsError("a rule", value=(float("-inf"), Path("b"))), "a rule", ["-infinity", "b"], None, {}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)  # fmt: skip
def test_errors_keep_their_parts(
    error: Exception, rule: str, value: object, hint: str | None, details: object, run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Rule, value, way out and further attributes of every kind of error have members of their own."""

    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("crowdveil.privacy.accounting.account", broken)
    document = json.loads(run("account", *DONE["account"][1], "--json", code=1).stdout)
    found = document["error"]

    check(document, "error")
    assert ("OSError" if isinstance(error, OSError) else type(error).__name__) == found["type"]
    assert (rule, value, hint, details) == tuple(found[name] for name in ("rule", "value", "hint", "details"))
    assert str(error) == found["message"]


def test_every_error_class_is_on_the_page() -> None:
    """The page names each class of refusals of `crowdveil.errors`, which are those that commands raise."""
    kinds = [kind for kind in CrowdveilError.__subclasses__() if kind.__module__ == CrowdveilError.__module__]

    assert [] == [kind.__name__ for kind in kinds if f"`{kind.__name__}`" not in PAGE]


def test_lists_that_are_cut_say_so(run: Run, made_up: None) -> None:
    """`infer` gives five of twenty truths, and says both numbers; the file has all."""
    truths = json.loads(run("infer", "labels.csv", "--out", "found", "--json").stdout)["truths"]

    assert (5, 20, 5) == (truths["shown"], truths["of"], len(truths["items"]))
    assert 1 + 20 == len(Path("found/truths.csv").read_text().splitlines())


@pytest.mark.slow
def test_the_file_holds_what_is_printed(run: Run, made_up: None) -> None:
    """plan.json is the document that --json prints."""
    printed = run("plan", *DONE["plan"][1], "--json").stdout

    assert printed == Path(str(DONE["plan"][1][-1]), "plan.json").read_text("utf-8")


def test_the_schema_describes_every_member() -> None:
    """Each member of each command has a description in the schema."""
    envelope = {"format", "command", "status"}
    for part in parts().values():
        assert envelope == {name for name, member in part["properties"].items() if "description" not in member}


def test_every_command_takes_the_flag() -> None:
    """Each command has --json, with the same words of help."""
    texts = {name: next((p.help for p in command.params if p.name == "as_json"), None)
        for name, command in COMMANDS.items()}  # fmt: skip

    assert 1 == len(set(texts.values()))
    assert None not in texts.values()


def test_the_demo_without_a_patch_has_rows_of_this_form() -> None:
    """The members of a demo's lines in the schema are those of their records."""
    members = SCHEMA["$defs"]["demo"]["properties"]

    assert sorted(members["rows"]["items"]["required"]) == sorted(Row.__dataclass_fields__)
    assert sorted(members["not_run"]["items"]["required"]) == sorted(NotRun.__dataclass_fields__)
    assert Demo.__dataclass_fields__.keys() == {"crowds", "rows", "seed", "not_run"}


@pytest.mark.parametrize("text", re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
def test_the_pages_examples_are_documents(text: str) -> None:
    """Each object that the page shows is valid under the schema."""
    document = json.loads(text)

    check(document, "error" if document["status"] == "error" else document["command"].replace(" ", "-"))


def test_infinity_and_nan_have_one_spelling() -> None:
    """Infinity is a text with its sign, nan is null, at any depth."""
    values = {"a": [float("inf"), -float("inf"), float("nan"), 1.5, 2, True, None, "x"]}

    assert {"a": ["infinity", "-infinity", None, 1.5, 2, True, None, "x"]} == json.loads(json_text(values))
