"""Files of a folder: whole or not at all, the same crowd comes back, and repeats are refused by their rows."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.guarantee import Guarantee
from crowdveil.em.estimate import Estimate, WorkerTable
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.atomic_write import write_atomically
from crowdveil.files.output_record import RECORD_FILE
from crowdveil.standalone.checks import visible_form
from crowdveil.storage.answers import read_answers
from crowdveil.storage.crowd import CrowdRecord, crowd_of_reports, find_crowd, read_crowd
from crowdveil.storage.estimate_files import write_estimate
from crowdveil.storage.evidence import EvidenceOptions, read_evidence
from crowdveil.storage.write_collection import write_reports
from tests.answers.test_reports import cells
from tests.strategies import small_numeric_reports, small_reports

CERTIFICATE = {"format": "crowdveil-channel/1", "sha256": "ab" * 32}
AWKWARD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)


def crowd_of(reports: Reports, certificate: dict[str, str] | None = None, seed: int | None = 7) -> CrowdRecord:
    """Describe reports as a simulation of a mechanism."""
    return crowd_of_reports(
        reports,
        mechanism="randomized-response",
        description="randomized-response epsilon = 1",
        guarantee=Guarantee(epsilon=1.0),
        simulation=seed is not None,
        seed=seed,
        certificate=certificate,
    )


def read_back(folder: Path) -> Reports:
    """Read a folder as a curator does: the crowd.json of the folder lists all workers."""
    crowd = read_crowd(find_crowd(folder / "reports.csv"))
    names: dict[str, Any] = {"tasks": crowd.tasks, "workers": crowd.workers, "alphabet": crowd.alphabet}
    return Reports.from_csv(folder / "reports.csv", grid="exact", duplicates="all", **names)


def assert_same(expected: Reports, actual: Reports) -> None:
    """Hold two sets of reports to each other, the silent included."""
    assert cells(expected) == cells(actual)
    assert expected.tasks.tolist() == actual.tasks.tolist()
    assert expected.workers.tolist() == actual.workers.tolist()
    assert expected.alphabet == actual.alphabet


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return one folder for a whole property test: every example overwrites the last."""
    return tmp_path_factory.mktemp("round-trip")


@pytest.mark.slow
@given(st.one_of(small_reports(min_reports=0), small_numeric_reports(min_reports=0)))
def test_reports_survive_the_files(folder, reports: Reports) -> None:
    """Written and read again, reports, silent workers and alphabet are the same, whatever stands in the names."""
    write_reports(folder, reports, CERTIFICATE, crowd_of(reports, CERTIFICATE), replace=True)

    assert_same(reports, read_back(folder))


@pytest.mark.slow
@given(
    st.lists(AWKWARD, min_size=1, max_size=4, unique_by=visible_form),
    st.lists(AWKWARD, min_size=2, max_size=4, unique_by=visible_form),
)
def test_any_text_survives_as_a_name(folder, tasks, workers) -> None:
    """Commas, quotes, line ends, blanks, byte-order marks and any script in ids come back as they were."""
    pairs = [(task, worker) for task in tasks for worker in workers]
    labels = ["yes" if k % 2 else "no" for k in range(len(pairs))]
    names: dict[str, Any] = {"tasks": np.array(tasks, dtype=object), "workers": np.array(workers, dtype=object)}
    reports = Reports.from_arrays(
        np.array([task for task, _ in pairs], dtype=object),
        np.array([worker for _, worker in pairs], dtype=object),
        labels,
        alphabet=Categories(("no", "yes")),
        **names,
    )
    write_reports(folder, reports, None, crowd_of(reports), replace=True)

    assert_same(reports, read_back(folder))


def test_numbers_on_a_scale_survive(tmp_path) -> None:
    """Points of a scale are written as numbers under the header value and read back exactly."""
    reports = Reports.from_arrays(["a", "b"], [1, 1], [0.1, 0.3], alphabet=Scale(0, 1, 0.1))
    write_reports(tmp_path, reports, None, crowd_of(reports))

    assert "task,worker,value\na,1,0.1\nb,1,0.3\n" == (tmp_path / "reports.csv").read_text()
    assert [1, 3] == read_back(tmp_path).value.tolist()


def test_an_old_certificate_does_not_stay(tmp_path) -> None:
    """Reports without a certificate that replace others remove the certificate of those."""
    reports = Reports.from_arrays(["a", "b"], ["v", "v"], ["x", "y"])
    write_reports(tmp_path, reports, CERTIFICATE, crowd_of(reports, CERTIFICATE))
    assert CERTIFICATE == json.loads((tmp_path / "certificate.json").read_text())

    write_reports(tmp_path, reports, None, crowd_of(reports), replace=True)

    assert [RECORD_FILE, "crowd.json", "reports.csv"] == sorted(os.listdir(tmp_path))


def test_plain_files_are_not_quoted(tmp_path) -> None:
    """Where no cell needs quotes there are none; where one does, names with commas and quotes are quoted."""
    plain = Reports.from_arrays(["a", "b"], ["v", "v"], ["x", "y"])
    write_reports(tmp_path, plain, None, crowd_of(plain))
    assert "task,worker,label\na,v,x\nb,v,y\n" == (tmp_path / "reports.csv").read_text()

    quoted = Reports.from_arrays(['a,"1"', "b"], ["v", "v"], ["x", "y"])
    write_reports(tmp_path, quoted, None, crowd_of(quoted), replace=True)

    assert 'task,worker,label\n"a,""1""","v","x"\n"b","v","y"\n' == (tmp_path / "reports.csv").read_text()


def test_one_file_appears_whole_with_ordinary_rights(tmp_path) -> None:
    """A single file is written to its place, folders made on the way, readable by whom new files are readable."""
    path = tmp_path / "deep" / "page.html"
    write_atomically(path, "é", kind="demo")
    (tmp_path / "plain").write_text("")

    assert "é" == path.read_text("utf-8")
    assert [RECORD_FILE, "page.html"] == sorted(os.listdir(path.parent))
    assert (tmp_path / "plain").stat().st_mode == path.stat().st_mode


def estimate(posterior, quality_name: str, participation=None) -> Estimate:
    """Build a two-task, two-worker estimate."""
    return Estimate(
        method="test",
        alphabet=Categories(("no", "yes, sure")) if np.ndim(posterior) == 2 else None,
        tasks=np.array(["a", "b,c"]),
        posterior=np.asarray(posterior, dtype=float),
        reports_per_task=np.array([2, 0]),
        worker_names=np.array(["v", "w"]),
        workers=WorkerTable(np.array([0.75, 0.5]), quality_name, participation=participation),
        reports_per_worker=np.array([1, 1]),
    )


def test_labels_are_written_with_their_probabilities(tmp_path) -> None:
    """truths.csv has truth, confidence and a probability per label; workers.csv ability, participation and reports."""
    write_estimate(tmp_path, estimate([[0.25, 0.75], [0.5, 0.5]], "ability", np.array([1.0, 0.5])))
    truths = pyarrow.csv.read_csv(tmp_path / "truths.csv").to_pydict()
    workers = pyarrow.csv.read_csv(tmp_path / "workers.csv").to_pydict()

    assert {
        "task": ["a", "b,c"],
        "truth": ["yes, sure", "no"],
        "confidence": [0.75, 0.5],
        "probability_no": [0.25, 0.5],
        "probability_yes, sure": [0.75, 0.5],
        "n_tied_labels": [1, 2],
        "reports": [2, 0],
    } == truths
    assert {"worker": ["v", "w"], "ability": [0.75, 0.5], "participation": [1.0, 0.5], "reports": [1, 1]} == workers


def test_unknown_numbers_are_empty_cells(tmp_path) -> None:
    """A numeric truth without reports is an empty cell, not nan; weights keep their name."""
    write_estimate(tmp_path, estimate([1.5, np.nan], "weight"))

    assert 'task,truth,reports\n"a",1.5,2\n"b,c",,0\n' == (tmp_path / "truths.csv").read_text()
    assert "worker,weight,reports\nv,0.75,1\nw,0.5,1\n" == (tmp_path / "workers.csv").read_text()


REPORTS = Reports.from_arrays(["a", "b"], ["v", "v"], ["x", "y"])
PROMISE = json.loads(crowd_of(REPORTS).to_json_bytes())["guarantee"]
MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "another format": ({"format": "crowdveil-crowd/9"}, "format 'crowdveil-crowd/3'"),
    "an unknown field": ({"extra": 1}, "'extra' of a crowd of format .* is unknown"),
    "a wrong type": ({"simulation": "yes"}, "'simulation' of a crowd .* is of another form"),
    "a boolean seed": ({"seed": True}, "'seed' of a crowd .* is of another form"),
    "a repeated task": ({"tasks": ["a", "a"]}, "'tasks' of a crowd must be distinct"),
    "a number for a worker": ({"workers": [1]}, "'workers' of a crowd .* is of another form"),
    "confusable workers": ({"workers": ["r1a", " r1a"]}, "'workers' of a crowd must be distinguishable"),
    "confusable tasks": ({"tasks": ["\u00e9", "e\u0301"]}, "'tasks' of a crowd must be distinguishable"),
    "a mechanism with an escape sequence": ({"mechanism": "laplace\x1b[8m"}, "'mechanism' of a crowd must be printing"),
    "a guarantee in words": ({"guarantee": "epsilon = 1"}, "'guarantee' of a crowd of format .* is of another form"),
    "a stated guarantee on two lines": (
        {"stated_guarantee": "epsilon = 1\nnone"},
        "'stated_guarantee' of a crowd must be printing",
    ),
    "a stated guarantee in free words": ({"stated_guarantee": "secret"}, "must be a guarantee as crowdveil writes it"),
    "a reason on two lines": ({"guarantee": PROMISE | {"reason": "a\nb"}}, "'guarantee' of a crowd must be printing"),
    "a negative epsilon": ({"guarantee": PROMISE | {"epsilon": -1.0}}, "epsilon must be non-negative"),
    "an impossible delta": ({"guarantee": PROMISE | {"delta": 2.0}}, "delta must be in"),
    "no guarantee and no reason": (
        {"simulation": False, "seed": None, "guarantee": None, "lists_from_answers": []},
        "a crowd has a guarantee, or",
    ),
    "a guarantee without lists": (
        {"simulation": False, "seed": None, "lists_from_answers": ["labels"]},
        "a crowd has a guarantee, or names the lists that void it",
    ),
    "a question beyond the last": ({"question": [3, 2]}, "'question' of a crowd must be its number"),
    "a campaign that is none": ({"campaign": "x"}, "'campaign' of a crowd"),
    "another digest": ({"certificate_sha256": "x"}, "'certificate_sha256' of a crowd"),
    "an unknown key of the alphabet": (
        {"alphabet": {"kind": "categories", "names": ["x", "y"], "ordered": False, "note": 1}},
        "an alphabet must be described",
    ),
    "an empty name": ({"workers": [""]}, "'workers' of a crowd must be distinct, non-empty texts"),
    "no list of tasks": ({"tasks": None}, "'tasks' must be listed by a crowd, or by blocks"),
    "a list with blocks": ({"blocks_sha256": "0" * 64}, "'tasks' must be listed by a crowd, or by blocks"),
    "no digest": ({"reports_sha256": None}, "by 'reports_sha256' or blocks by 'blocks_sha256'"),
    "a seed that is real": ({"simulation": False}, "with a seed is a simulation"),
    "a field of the second format": ({"kind": "numeric"}, "'kind' of a crowd of format .* is unknown"),
    "an unknown list": ({"lists_from_answers": ["colours"]}, r"'lists_from_answers\[0\]' of a crowd"),
    "a bad alphabet": ({"alphabet": {"kind": "categories", "names": ["x"], "ordered": False}}, "2 to 1024 labels"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_crowd_is_refused(tmp_path, name) -> None:
    """A crowd.json that was edited is refused with its name and the rule."""
    change, message = MALFORMED[name]
    path = tmp_path / "crowd.json"
    data = json.loads(crowd_of(REPORTS).to_json_bytes())
    path.write_text(json.dumps({**data, "reports_sha256": "0" * 64, **change}))

    with pytest.raises(ReportsError, match=message) as caught:
        read_crowd(path)
    assert str(path) == caught.value.source


def test_a_crowd_without_an_alphabet_is_one_of_numbers(tmp_path) -> None:
    """Labels beside a crowd.json that lists none are refused: those of the rows are not all that could be answered."""
    write_reports(tmp_path, REPORTS, None, crowd_of(REPORTS))
    data = json.loads((tmp_path / "crowd.json").read_bytes())
    (tmp_path / "crowd.json").write_text(json.dumps(data | {"alphabet": None}))

    with pytest.raises((ReportsError, SettingsError)):
        read_evidence(tmp_path / "reports.csv")


@pytest.mark.parametrize("name", ["format", "simulation", "seed", "ordered"])
def test_a_crowd_with_a_key_twice_is_refused(tmp_path, name) -> None:
    """A key that stands twice, of the crowd or of its alphabet, leaves open which of the two counts."""
    text = crowd_of(REPORTS).to_json_bytes().decode()
    (tmp_path / "crowd.json").write_text(text.replace(f'"{name}":', f'"{name}": true, "{name}":', 1))

    with pytest.raises(ReportsError, match=f"'{name}' is repeated"):
        read_crowd(tmp_path / "crowd.json")


@pytest.mark.parametrize("text", ["", "[1]", "{", '"\\ud800', "[" * 100_000])
def test_what_is_no_json_object_is_refused(tmp_path, text) -> None:
    """Empty, cut, foreign and bottomless JSON is a clear error."""
    (tmp_path / "crowd.json").write_text(text)

    with pytest.raises(ReportsError, match=r"crowd\.json: (a crowd|the crowd) must be"):
        read_crowd(tmp_path / "crowd.json")


def test_a_crowd_must_belong_to_its_reports(tmp_path) -> None:
    """A crowd of other reports, or of another certificate, is refused before anything is written."""
    other = Reports.from_arrays(["a", "c"], ["v", "v"], ["x", "y"])

    with pytest.raises(SettingsError, match="tasks and workers of the reports"):
        write_reports(tmp_path, REPORTS, None, crowd_of(other))
    with pytest.raises(SettingsError, match="certificate written with it"):
        write_reports(tmp_path, REPORTS, CERTIFICATE, crowd_of(REPORTS))
    assert [] == os.listdir(tmp_path)


def test_truths_are_written_in_parts(tmp_path, monkeypatch) -> None:
    """Parts of one task, of which only the second needs quotes, give the same files as the whole, in either form."""
    whole = estimate([[0.25, 0.75], [0.5, 0.5]], "ability")
    for form in ("csv", "parquet"):
        write_estimate(tmp_path / f"whole-{form}", whole, form=form)
    monkeypatch.setattr("crowdveil.em.estimate.WRITTEN_TASKS", 1)
    for form in ("csv", "parquet"):
        write_estimate(tmp_path / f"parts-{form}", whole, form=form)  # type: ignore[arg-type]
    texts = [(tmp_path / f"{name}-csv" / "truths.csv").read_text() for name in ("whole", "parts")]
    folders = [tmp_path / f"{name}-parquet" for name in ("whole", "parts")]
    tables = [pyarrow.parquet.read_table(folder / "truths.parquet") for folder in folders]

    assert texts[0] == texts[1]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(whole.tasks_frame())
    assert pyarrow.parquet.read_table(folders[1] / "workers.parquet").equals(whole.workers_frame())


LINES = ["task,worker,label", *(f"t{task},w{task % 7},{'yes' if task % 2 else 'no'}" for task in range(30))]
AFTER = 20
"""Line of the file after which a row is repeated."""


def write(path: Path, *, earlier: str = "") -> Path:
    """Write a file in which the row after a line repeats that line."""
    lines = [*LINES[:1], *([earlier] if earlier else []), *LINES[1:AFTER], LINES[AFTER - 1], *LINES[AFTER:]]
    text = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("read", [read_evidence, read_answers])
@pytest.mark.parametrize("name", ["answers.csv", "answers.csv.gz"])
@pytest.mark.parametrize(("earlier", "line"), [("", AFTER + 1), ("t0,w0,NULL", AFTER + 2)])
def test_a_repeat_is_refused_by_its_line(tmp_path: Path, read, name: str, earlier: str, line: int) -> None:
    """The error names file and line; a row with NULL before it does not shift its number, and repeats no answer."""
    with pytest.raises(ReportsError, match=rf"{name}, line {line}: a worker answers a task once, but 1 row repeats"):
        read(write(tmp_path / name, earlier=earlier))


@pytest.mark.parametrize("policy", ["first", "last", "all"])
def test_other_policies_read_the_file(tmp_path: Path, policy) -> None:
    """Repeats that a policy resolves are no error."""
    reports = read_evidence(write(tmp_path / "answers.csv"), EvidenceOptions(duplicates=policy)).reports

    assert len(LINES) - 1 + (policy == "all") == len(reports)
