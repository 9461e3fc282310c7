"""The independent check of certificates and campaigns, and the one-file program."""

import ast
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdveil.standalone.verification as checker
from crowdveil.campaign.rules.document import Campaign
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.channel import DENOMINATOR, Channel
from crowdveil.channels.channel_table import table_by_task
from crowdveil.channels.rounding import format_bound
from crowdveil.cli import main
from crowdveil.errors import CertificateError
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from crowdveil.standalone import device
from crowdveil.standalone.checks import CERTIFIED, Claim, digest
from crowdveil.standalone.program import is_program, joined_program, program_digest
from crowdveil.standalone.verification import epsilon_of, verify
from tests.device_vectors import VECTORS, read_vectors

CERTIFICATES = json.loads((VECTORS / "certificates.json").read_text("utf-8"))
LABELS = Categories(("no", "yes", "maybe"))


def name_of(vector: dict[str, object]) -> str:
    """Return the name of a vector."""
    return str(vector["name"])


def response(epsilon: float = 1.0) -> Channel:
    """Return a channel of randomized response."""
    return RandomizedResponse(alphabet=LABELS, epsilon=epsilon).channel()


def sealed(data: dict[str, object]) -> bytes:
    """Return a certificate whose SHA-256 fits its fields."""
    return json.dumps(data | {"sha256": digest(data)}).encode()


def is_accepted(data: bytes) -> bool:
    """Return whether the library accepts a certificate."""
    try:
        Channel.from_certificate(data)
    except CertificateError:
        return False
    return True


@pytest.mark.parametrize("vector", CERTIFICATES["positive"], ids=name_of)
def test_sound_certificates_hold(vector: dict[str, str]) -> None:
    """Each shared sound certificate holds, with the same epsilon; a marked one has none."""
    checked = verify(vector["text"].encode())

    assert checked.holds
    assert (None if checked.marked else vector["epsilon"]) == checked.answer_epsilon
    assert vector["sha256"] == checked.digest


@pytest.mark.parametrize("vector", read_vectors("campaigns.json"), ids=name_of)
def test_sound_campaigns_hold(vector: dict[str, object]) -> None:
    """Each shared campaign holds with its parts; name, epsilons and number of answers are those of the library."""
    source = str(vector["campaign"]).encode()
    parts: list[str] = vector["parts"]  # type: ignore[assignment]
    checked, campaign = verify(source, dict(enumerate(part.encode() for part in parts))), Campaign.from_bytes(source)

    assert [] == [claim for claim in checked.claims if not claim.holds]
    assert (campaign.name, campaign.participation) == (checked.digest, checked.participation)
    assert (campaign.epsilon, campaign.cells) == (checked.answer_epsilon, checked.answers)
    assert pytest.approx(campaign.worker_epsilon, rel=1e-12) == checked.worker_epsilon


@st.composite
def tables(draw: st.DrawFn) -> dict[str, object]:
    """Draw a certificate of two labels: random rows, sometimes with another sum, and a claim near the true ratio."""
    entries = [draw(st.lists(st.integers(0, DENOMINATOR), min_size=2, max_size=2)) for _ in range(2)]
    rows = [[*sorted(row), DENOMINATOR] for row in entries]
    rows = [[row[0], row[1] - row[0], row[2] - row[1] + draw(st.sampled_from((0, 0, 0, 0, 1)))] for row in rows]
    columns = list(zip(*rows, strict=True))
    worst = max(Fraction(max(column), max(min(column), 1)) for column in columns)
    change = draw(st.integers(-1, 1))
    return {
        "format": "crowdveil-channel/1", "mechanism": "designed", "participation": "public",
        "alphabet": {"kind": "categories", "names": ["no", "yes"], "ordered": False}, "outputs": ["a", "b", "c"],
        "denominator": DENOMINATOR, "rows": rows, "ratio": [max(worst.numerator + change, 1), worst.denominator],
    }  # fmt: skip


def keeps_its_claim(data: dict[str, Any]) -> bool:
    """Return whether every row is a distribution without a 0, and no two entries of a column exceed the claim."""
    rows, (top, bottom) = data["rows"], data["ratio"]
    sound = all(sum(row) == 2**48 and min(row) > 0 for row in rows)
    return sound and all(
        a * bottom <= top * b for one in rows for other in rows for a, b in zip(one, other, strict=True)
    )


@pytest.mark.slow
@settings(max_examples=300)
@given(tables())
def test_random_tables_are_judged_as_by_brute_force(data: dict[str, Any]) -> None:
    """A table holds exactly if each pair of entries keeps the claim, down to one unit; the library judges alike."""
    source = sealed(data)

    assert keeps_its_claim(data) == verify(source).holds == is_accepted(source)


@given(st.binary(max_size=200) | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(str).map(str.encode))
def test_no_content_raises(source: bytes) -> None:
    """Any bytes give an outcome with a false claim."""
    assert not verify(source).holds


def test_deep_nesting_has_a_false_claim() -> None:
    """Nesting beyond the depth of the interpreter is a false claim."""
    for depth in (900, 100_000):
        assert not verify(b'{"format": "crowdveil-campaign/1", "a": ' + b"[" * depth + b"]" * depth + b"}").holds


def test_tables_of_channels() -> None:
    """A table of channels has the epsilon of its weakest channel; unprotected answers leave no bound."""
    table = table_by_task((response(1.0), response(2.0)), {"a": 0, "b": 1})
    bare = table_by_task((response(1.0), Channel.identity(LABELS, "public")), {"a": 0, "b": 1})
    checked, unprotected = (verify(json.dumps(one.certificate()).encode()) for one in (table, bare))

    assert (True, table.guarantee.epsilon) == (checked.holds, checked.answer_epsilon)
    assert (True, None) == (unprotected.holds, unprotected.answer_epsilon)
    changed = table.certificate() | {"tasks": {"a": 0, "b": 7}}
    assert Claim("Every named worker and task is in a group.", False) in verify(sealed(changed)).claims


def test_the_weakest_column_decides() -> None:
    """The claim on the ratio names the value found, and is false from one unit on."""
    data: dict[str, Any] = response().certificate()
    top, bottom = data["ratio"]
    claims = verify(sealed(data | {"ratio": [top - 1, bottom]})).claims

    assert not claims[-1].holds
    assert claims[-1].found.startswith("2.719")


@given(st.integers(1, DENOMINATOR), st.integers(1, DENOMINATOR), st.integers(1, 1000))
def test_epsilon_is_rounded_up(a: int, b: int, answers: int) -> None:
    """Epsilon of several answers is at least its multiple; the text is not below it."""
    ratio = Fraction(max(a, b), min(a, b))

    assert epsilon_of(ratio, answers) >= epsilon_of(ratio) * answers * (1 - 1e-15)
    assert float(format_bound(epsilon_of(ratio), 4)) >= epsilon_of(ratio)


def test_parts_have_one_name_each(tmp_path: Path) -> None:
    """Of the parts only 0000.json, 0001.json, ... are read: no other spelling of a number replaces one."""
    (tmp_path / "parts").mkdir()
    for name in ("0000", "00000", "00001", "0002\u00b2", "0003"):
        (tmp_path / "parts" / f"{name}.json").write_text(name, "utf-8")

    assert {0: b"0000", 3: b"0003"} == checker.read_parts(tmp_path / "campaign.json")


def test_no_more_than_the_limit_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file that is too long one byte too many is read, so that its claim is false."""
    monkeypatch.setattr(checker, "MAX_CERTIFICATE_BYTES", 10)
    (tmp_path / "certificate.json").write_bytes(b"1" * 20)

    data = checker.read_bounded(tmp_path / "certificate.json")

    assert 11 == len(data)
    assert not verify(data).holds


def test_the_file_runs_alone(tmp_path: Path) -> None:
    """The checker is a program without the package: 0 for a sound certificate, 1 for an altered one, 3 for another."""
    program = tmp_path / "check.py"
    program.write_bytes(joined_program("verification.py"))
    data = response().certificate()
    for name, change, code in (
        ("good.json", {}, 0),
        ("bad.json", {"ratio": [1, 1]}, 1),
        ("other.json", {"format": 1}, 3),
    ):
        (tmp_path / name).write_bytes(sealed(data | change))
        done = subprocess.run(
            [sys.executable, "-I", program, tmp_path / name], capture_output=True, text=True, check=False
        )

        assert code == done.returncode
        assert ("FALSE" in done.stdout) == bool(code)


@pytest.mark.parametrize(
    "name", ["piecewise", "designed+piecewise, LISTS FROM ANSWERS: no privacy", "designed, no privacy"]
)
def test_an_unknown_mechanism_is_named(name: str) -> None:
    """A certificate that is sound but for its mechanism is refused with this name and the known ones."""
    checked = verify(sealed(response().certificate() | {"mechanism": name}))
    false = [claim for claim in checked.claims if not claim.holds]

    assert [repr(name)] == [claim.found for claim in false]
    assert all(known in false[0].claim for known in CERTIFIED)
    assert None is checked.answer_epsilon


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"note": 1}, "'note' is unknown"),
        ({"ratio": 7}, "'ratio' is of another form"),
        ({"outputs": None}, "'outputs' is absent"),
        ({"a\u202eb": 1}, r"'a\u202eb' is unknown"),
        ({".": 1}, "'.' is unknown"),
        ({"-.": 1, "ratio": [1, -1]}, "'-.' is unknown"),
        ({"!.x": 1, "rows": 7}, "'!.x' is unknown"),
        ({"\n.": 1}, r"'\n.' is unknown"),
    ],
)
def test_a_field_that_does_not_belong_is_named(changes: dict[str, object], found: str) -> None:
    """Of fields that are unknown, absent or of another form the first is named, as printable text."""
    data = {name: value for name, value in {**response().certificate(), **changes}.items() if value is not None}
    false = [claim for claim in verify(sealed(data)).claims if not claim.holds]

    assert [found] == [claim.found for claim in false]


def test_the_program_is_written(tmp_path):
    """`campaign page --python` writes the program, and prints its SHA-256; it replaces programs only."""
    path = tmp_path / "my.py"
    words = ["campaign", "page", "--python", str(path), "--json"]
    printed = [json.loads(CliRunner().invoke(main, words).stdout) for _ in range(2)]

    assert path.read_bytes() == joined_program()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == printed[0]["sha256"] == program_digest()
    assert [[], [str(path)]] == [run["replaced"] for run in printed]


def test_another_file_is_not_replaced(tmp_path):
    """A file that is no device program stays."""
    path = tmp_path / "my.py"
    path.write_text("print('mine')\n")
    refused = CliRunner().invoke(main, ["campaign", "page", "--python", str(path)])

    assert (1, "print('mine')\n") == (refused.exit_code, path.read_text())
    assert not is_program(b"")


@pytest.mark.parametrize("name", ["device.py", "verification.py"])
def test_a_program_of_one_file_needs_python_alone(name, tmp_path):
    """A joined program is the same each time, runs without the package, and defines no name twice."""
    path = tmp_path / "program.py"
    path.write_bytes(joined_program(name))
    tree = ast.parse(path.read_text("utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    defined += [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    done = subprocess.run([sys.executable, "-I", path, "--help"], capture_output=True, text=True, check=False)

    assert path.read_bytes() == joined_program(name)
    assert set() == {module.split(".")[0] for module in imported} - sys.stdlib_module_names
    assert [] == [one for one, count in Counter(defined).items() if count > 1]
    assert "Traceback" not in done.stderr


def without_docstrings(program):
    """Return a Python program with an empty line for each line of a docstring."""
    lines = program.splitlines()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return "\n".join(lines)


def code_lines(text):
    """Return the number of lines that are neither blank nor comment."""
    return sum(re.fullmatch(r"\s*((#|//|/?\*).*)?", line) is None for line in text.splitlines())


def test_what_a_worker_must_trust_is_short():
    """What checks, draws, stores and sends is one Python program, with its screens, and two files in JavaScript."""
    static = Path(device.__file__).parents[1] / "campaign" / "service" / "static"
    script = sum(code_lines((static / name).read_text("utf-8")) for name in ("device.mjs", "hpke.mjs"))

    assert code_lines(without_docstrings(joined_program().decode())) + script <= 1500
    assert script <= 750
