"""From a file of reports to a folder of encoded blocks that can be opened without reading it."""

from pathlib import Path

from crowdveil.errors import SettingsError
from crowdveil.ingest.coding import Duplicates
from crowdveil.labels import Alphabet
from crowdveil.output import ASSIGNMENT_FILE, CERTIFICATE_FILE, CROWD_FILE, crowd_of_blocks, home
from crowdveil.reports import Kind, Reports
from crowdveil.storage.encoded import FILES, write_encoded
from crowdveil.storage.manifest import MANIFEST_FILE
from crowdveil.storage.placing import placed
from crowdveil.workflow.evidence import read_evidence

BESIDE = (CERTIFICATE_FILE, ASSIGNMENT_FILE, CROWD_FILE)


def encode(
    path: Path,
    out: Path,
    *,
    alphabet: Alphabet | None = None,
    kind: Kind | None = None,
    duplicates: Duplicates = "error",
) -> Reports:
    """Write reports as encoded blocks, with what lies beside them; return them as opened from there.

    Args:
        path: CSV or Parquet file, or other encoded blocks; read and checked as for inference.
        out: folder for the blocks, and for `crowd.json`, `certificate.json` and `assignment.csv` where there are any.
        alphabet, kind, duplicates: as `read_evidence`.

    Raises:
        ReportsError, CertificateError: as `read_evidence`.
        SettingsError: the folder cannot be written, or is the one that is read.
    """
    if out.resolve() == home(path).resolve():
        raise SettingsError("blocks must go to a folder of their own", value=str(out), way_out="Choose another --out.")
    evidence = read_evidence(path, alphabet=alphabet, kind=kind, duplicates=duplicates)
    reports, crowd = evidence.reports, evidence.crowd
    beside = [name for name in BESIDE if (home(path) / name).is_file()]
    with placed(out, [*beside, *FILES]) as temporary:
        for name in beside:
            (temporary / name).write_bytes((home(path) / name).read_bytes())
        write_encoded(temporary, reports.parts(), reports.tasks, reports.workers, reports.alphabet)
        if crowd is not None:
            (temporary / CROWD_FILE).write_bytes(crowd_of_blocks(crowd, temporary))
        for name in {MANIFEST_FILE, *BESIDE}:
            (out / name).unlink(missing_ok=True)
    return Reports.open(out)


def encoded_files(folder: Path) -> list[Path]:
    """Return the files that `encode` wrote into a folder."""
    return [folder / name for name in (*BESIDE, *FILES) if (folder / name).is_file()]
