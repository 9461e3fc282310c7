"""JSON schemas of the reference documentation, against files that `crowdveil perturb` and `encode` write."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator, ValidationError

from crowdveil.channels.alphabet import Categories
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.cli import main
from crowdveil.mechanisms import RandomizedResponse

SCHEMAS = Path(__file__).parents[2] / "docs" / "reference" / "schemas"
LISTS = ("--tasks", "tasks.csv", "--workers", "workers.csv", "--seed", "1", "--epsilon", "1")
COLLECTIONS = {
    "labels": ("labels.csv", "--mechanism", "randomized-response", "--labels", "x,y"),
    "public": ("labels.csv", "--mechanism", "randomized-response", "--labels", "x,y", "--participation", "public"),
    "blocks": ("labels.csv", "--mechanism", "randomized-response", "--labels", "x,y", "--format", "blocks"),
    "numbers": ("numbers.csv", "--mechanism", "laplace", "--scale", "0:5"),
    "sums": ("numbers.csv", "--mechanism", "matrix-factorization", "--scale", "0:5"),
}


def validator(name: str) -> Draft202012Validator:
    """Return the validator of one schema."""
    schema = json.loads((SCHEMAS / name).read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """Return the folder of a simulated collection."""
    monkeypatch.chdir(tmp_path)
    Path("labels.csv").write_text("task,worker,label\na,v,x\nb,w,y\n")
    Path("numbers.csv").write_text("task,worker,value\na,v,1\nb,w,4\n")
    Path("tasks.csv").write_text("task\na\nb\n")
    Path("workers.csv").write_text("worker\nv\nw\n")
    result = CliRunner().invoke(main, ["perturb", *COLLECTIONS[request.param], *LISTS, "--out", "sent"])
    assert 0 == result.exit_code, result.output
    return tmp_path / "sent"


@pytest.mark.parametrize("collection", COLLECTIONS, indirect=True)
def test_written_files_match_their_schemas(collection: Path) -> None:
    """Certificates and crowds of every form of collection are valid."""
    validator("crowd.json").validate(json.loads((collection / "crowd.json").read_text("utf-8")))
    if (collection / "certificate.json").exists():
        validator("certificate.json").validate(json.loads((collection / "certificate.json").read_text("utf-8")))


@pytest.mark.parametrize("collection", ["labels"], indirect=True)
@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("crowd.json", {"extra": 1}),
        ("crowd.json", {"reports_sha256": None}),
        ("crowd.json", {"lists_from_answers": ["answers"]}),
        ("crowd.json", {"format": "crowdveil-crowd/2"}),
        ("crowd.json", {"guarantee": "epsilon = 1 per cell, participation protected"}),
        ("crowd.json", {"question": [1]}),
        ("crowd.json", {"campaign": "a name"}),
        ("certificate.json", {"denominator": 2}),
        ("certificate.json", {"rows": [[-1]]}),
        ("certificate.json", {"format": "crowdveil-channel/2"}),
    ],
)
def test_schemas_refuse_other_files(collection: Path, file: str, change: dict[str, Any]) -> None:
    """Unknown fields, another version and values out of range are invalid."""
    data = json.loads((collection / file).read_text("utf-8"))

    with pytest.raises(ValidationError):
        validator(file).validate({**data, **change})


def test_a_table_of_channels_matches_the_schema() -> None:
    """The certificate of a table with an unprotected channel is valid."""
    alphabet = Categories(("x", "y"))
    protected = RandomizedResponse(alphabet=alphabet, epsilon=1.0, participation="public").channel()
    table = ChannelTable(
        channels=(protected, Channel.identity(alphabet, "public")), choice=((0, 1),), workers={}, tasks={"a": 1, "b": 0}
    )

    validator("certificate.json").validate(table.certificate())
