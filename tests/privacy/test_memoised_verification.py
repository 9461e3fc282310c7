"""The independent check of memoised reports agrees with the library on sound, altered and random certificates."""

import ast
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.certificate import digest
from crowdveil.errors import CertificateError
from crowdveil.mechanisms.memoised import Memoised, MemoisedTables
from crowdveil.privacy import memoised_verification, verification
from crowdveil.privacy.memoised_verification import FORMAT, KIND, verify
from crowdveil.privacy.verification import Verification

YES_NO = Categories(("no", "yes"))
USUAL = Memoised(alphabet=YES_NO, epsilon=2.0, report_epsilon=1.0).tables
LATER = Memoised(alphabet=YES_NO, epsilon=2.0, report_epsilon=0.5).tables
PUBLIC = Memoised(alphabet=YES_NO, epsilon=2.0, report_epsilon=1.0, participation="public").tables
OTHER_LABELS = Memoised(alphabet=Categories(("a", "b")), epsilon=2.0, report_epsilon=1.0).tables
Change = Callable[[dict[str, Any]], object]


def sealed(data: dict[str, Any]) -> dict[str, Any]:
    """Return a certificate whose SHA-256 fits its fields."""
    return data | {"sha256": digest(data)}


def altered(change: Change, table: str | None = None, tables: MemoisedTables = USUAL) -> bytes:
    """Return a certificate after a change of it, or of one of its tables, with right checksums."""
    data: dict[str, Any] = json.loads(json.dumps(tables.certificate()))
    change(data if table is None else data[table])
    if table is not None:
        data[table] = sealed(data[table])
    return json.dumps(sealed(data)).encode()


def test_the_checker_imports_the_other_check_only() -> None:
    """The file names no module outside the standard library but the check of one table."""
    tree = ast.parse(Path(memoised_verification.__file__).read_text("utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert {"crowdveil.privacy.verification"} == {n for n in names if n.split(".")[0] not in sys.stdlib_module_names}


def false_claims(checked: Verification) -> str:
    """Return all false claims as one text."""
    return " ".join(claim.claim for claim in checked.claims if not claim.holds)


def is_accepted(data: bytes) -> bool:
    """Return whether the library accepts a certificate."""
    try:
        MemoisedTables.from_certificate(data)
    except CertificateError:
        return False
    return True


@pytest.mark.parametrize(
    "one",
    [*Memoised.examples(), Memoised(alphabet=Scale(0, 2, 0.5), epsilon=3.0, report_epsilon=1.0)],
    ids=repr,
)
def test_sound_certificates_hold_with_both_losses(one: Memoised) -> None:
    """Each claim holds, and both losses are the exact ones of the library."""
    checked = verify(json.dumps(one.tables.certificate()).encode())

    assert "" == false_claims(checked)
    assert (KIND, one.participation, "") == (checked.kind, checked.participation, checked.marked)
    assert one.tables.permanent.epsilon == pytest.approx(checked.answer_epsilon, rel=1e-12)
    assert one.tables.report.epsilon == pytest.approx(checked.report_epsilon, rel=1e-12)
    assert checked.report_epsilon < checked.answer_epsilon <= one.epsilon
    assert one.tables.certificate()["sha256"] == checked.digest


def move_one_unit(table: dict[str, Any]) -> None:
    """Move one unit of probability within the first row, from the first to the second report."""
    table["rows"][0][0] -= 1
    table["rows"][0][1] += 1


@pytest.mark.parametrize("table", ["permanent", "instantaneous", "report"])
def test_a_product_that_is_off_by_one_unit_is_false(table: str) -> None:
    """A change of 2^-48 in any of the three tables is found; the tables' own claims are made to hold."""

    def change(data: dict[str, Any]) -> None:
        move_one_unit(data)
        data["ratio"] = [10, 1]

    assert "The table of reports is exactly the product" in false_claims(verify(altered(change, table)))


@pytest.mark.parametrize(
    ("claim", "words"), [("for_ever", "for ever, lose"), ("per_report", "One report of an answer")]
)
@pytest.mark.parametrize(("factor", "holds"), [(-1, False), (1, True)])
def test_a_claim_is_exact_to_one_unit(claim: str, words: str, factor: int, holds: bool) -> None:
    """A claim that is one unit too small is false; one too large is not that of its table."""

    def change(data: dict[str, Any]) -> None:
        data["claims"][claim][0] += factor

    checked = verify(altered(change))
    false = false_claims(checked)

    assert holds == (words not in false)
    assert "This is the claim of the table" in false
    assert (None, None) == (checked.answer_epsilon, checked.report_epsilon)


def named(name: str, value: object) -> Change:
    """Return the change of one field."""
    return lambda data: data.update({name: value})


DAMAGES = {
    "a field too many": (named("more", 1), None),
    "no claims": (lambda data: data.pop("claims"), None),
    "one claim": (named("claims", {"for_ever": [8, 1]}), None),
    "a claim that is no integer": (named("claims", {"for_ever": [8.0, 1], "per_report": [3, 1]}), None),
    "a table that is no object": (named("permanent", 3), None),
    "a memoised table": (named("report", USUAL.certificate()), None),
    "a table of channels": (named("report", {"format": "crowdveil-channel-table/1"}), None),
    "a report of other tables": (named("report", LATER.report.certificate()), None),
    "instantaneous of other tables": (named("instantaneous", LATER.instantaneous.certificate()), None),
    "permanent of other labels": (named("permanent", OTHER_LABELS.permanent.certificate()), None),
    "instantaneous of other participation": (named("instantaneous", PUBLIC.instantaneous.certificate()), None),
    "other permanent answers": (named("outputs", ["yes", "no", "NULL"]), "permanent"),
    "other reports": (named("outputs", ["a", "b", "c"]), "report"),
    "a false ratio of permanent": (named("ratio", [2, 1]), "permanent"),
    "a false ratio of instantaneous": (named("ratio", [1, 1]), "instantaneous"),
    "a false ratio of report": (named("ratio", [2, 1]), "report"),
    "no rows": (named("rows", []), "report"),
    "another denominator": (named("denominator", 1 << 47), "instantaneous"),
    "an unknown mechanism": (named("mechanism", "magic"), "permanent"),
    "an unknown participation": (named("participation", "hidden"), "report"),
    "another alphabet": (named("alphabet", {"kind": "categories", "names": ["no", "yes"], "ordered": True}), "report"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damaged_field_is_false(name: str) -> None:
    """A damaged field is found here and by the library, and no loss is stated."""
    source = altered(*DAMAGES[name])
    checked = verify(source)

    assert not checked.holds
    assert not is_accepted(source)
    assert (KIND, None, None, None) == (
        checked.kind, checked.participation, checked.answer_epsilon, checked.report_epsilon,
    )  # fmt: skip


def test_a_wrong_checksum_is_false() -> None:
    """The checksum of the whole and that of each table are checked."""
    data: dict[str, Any] = dict(USUAL.certificate())
    inner = sealed(data | {"permanent": {**data["permanent"], "sha256": "0" * 64}})

    assert "The SHA-256 in the file" in false_claims(verify(json.dumps(data | {"sha256": "0" * 64}).encode()))
    assert "permanent answers: The SHA-256" in false_claims(verify(json.dumps(inner).encode()))


def test_a_public_report_named_null_is_false() -> None:
    """Where participation is public a report named NULL would look like a missing answer."""
    data: dict[str, Any] = json.loads(json.dumps(PUBLIC.certificate()))
    for table in ("instantaneous", "report"):
        data[table] = sealed(data[table] | {"outputs": ["no", "NULL"]})
    source = json.dumps(sealed(data)).encode()

    assert "no report is NULL" in false_claims(verify(source))
    assert not is_accepted(source)


def test_a_marked_table_has_no_loss() -> None:
    """A mark of a simulation on one table leaves the certificate without a stated loss."""
    mark = named("mechanism", "memoised, SIMULATION from seed 1: no privacy")
    checked = verify(altered(mark, "report"))

    assert checked.holds
    assert "memoised, SIMULATION from seed 1: no privacy" == checked.marked
    assert (None, None) == (checked.answer_epsilon, checked.report_epsilon)


def test_a_nested_file_is_false() -> None:
    """Deep nesting in a field ends in a false claim, not in an error."""
    for depth in (500, 900, 100_000):
        nested = b'{"format": "' + FORMAT.encode() + b'", "claims": ' + b"[" * depth + b"]" * depth + b"}"

        assert not verify(nested).holds


def test_other_files_are_checked_as_before() -> None:
    """A certificate of one table has the outcome of the check of one table."""
    source = json.dumps(USUAL.report.certificate()).encode()

    assert verification.verify(source) == verify(source)
    assert verification.verify(b"{") == verify(b"{")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_altered_bytes_are_judged_as_by_the_library(data: st.DataObject) -> None:
    """A certificate with one altered byte holds exactly if the library accepts it."""
    source = bytearray(json.dumps(USUAL.certificate()).encode())
    source[data.draw(st.integers(0, len(source) - 1))] = data.draw(st.integers(0, 255))

    assert is_accepted(bytes(source)) == verify(bytes(source)).holds
