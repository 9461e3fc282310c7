"""Encoded blocks changed at random under fitting checksums; run as a program of its own, since a crash is a finding.

`python -m tests.files.mutations FOLDER COUNT` prints how many changed folders were refused and how many were read.
"""

import json
import random
import shutil
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

from crowdveil.answers.identifiers import index_of
from crowdveil.answers.reports import Reports
from crowdveil.answers.store_manifest import DATA_FILES, MANIFEST_FILE, NAMES_FILES
from crowdveil.answers.write_reports import ordered_reports_table
from crowdveil.channels.alphabet import Categories
from crowdveil.errors import ReportsError
from crowdveil.estimators import MajorityVote
from crowdveil.standalone.checks import digest

NUMBERS = (0, -1, 1, 7, 255, 2**31 - 1, 2**31, 10**12, 2**62, 2**63 - 1, -(2**63))
VALUES: tuple[object, ...] = (
    *(None, True, -1, 0, 1.5, 2**70, "", "../x", "\ud800"),
    *([], [[]], {}, {"../x": {}}, ["a", "a"], float("nan")),
)


def reseal(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest with the checksums of the files as they are, and a seal that fits."""
    for name in DATA_FILES:
        data, piece = (folder / name).read_bytes(), manifest["piece_bytes"]
        pieces = [data[first : first + piece] for first in range(0, len(data), piece)]
        manifest["files"][name] = {"bytes": len(data), "crc32": list(map(zlib.crc32, pieces))}
    write_sealed(folder, manifest)


def write_sealed(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest as it is, with a seal that fits."""
    (folder / MANIFEST_FILE).write_text(json.dumps({**manifest, "sha256": digest(manifest)}))


def change_file(draw: random.Random, path: Path) -> None:
    """Change a few words or bytes of a file, or its length."""
    data = bytearray(path.read_bytes())
    match draw.randrange(4):
        case 0:
            at = draw.randrange(max(len(data) - 8, 1)) // 8 * 8
            data[at : at + 8] = struct.pack("<q", draw.choice(NUMBERS))
        case 1:
            at = draw.randrange(max(len(data) - 4, 1)) // 4 * 4
            data[at : at + 4] = struct.pack("<I", draw.choice(NUMBERS) % 2**32)
        case 2:
            for _ in range(draw.randint(1, 4)):
                data[draw.randrange(len(data))] = draw.randrange(256)
        case 3:
            del data[draw.randrange(len(data)) // 8 * 8 :]
    path.write_bytes(data)


def change_manifest(draw: random.Random, manifest: dict[str, Any]) -> None:
    """Replace a field, at any depth, by something else."""
    place: Any = manifest
    key: Any = draw.choice([name for name in manifest if name not in ("format", "sha256")])
    while isinstance(place[key], dict | list) and place[key] and draw.random() < 0.7:
        place = place[key]
        key = draw.choice(list(place)) if isinstance(place, dict) else draw.randrange(len(place))
    if isinstance(place, dict) and draw.random() < 0.2:
        del place[key]
    else:
        place[key] = draw.choice(VALUES)


def read_all(folder: Path) -> None:
    """Use everything that a folder holds."""
    reports = Reports.open(folder)
    for names in (reports.tasks, reports.workers):
        listed = names.tolist()
        assert listed == list(names[:2].tolist()) + list(names[2:].tolist())
        assert set(index_of(names, listed[:3])) == set(map(str, listed[:3]))
    for block in reports.blocks(7):
        assert len(block.worker) == len(block.value) == block.pointers[-1]
    if isinstance(reports.alphabet, Categories):
        MajorityVote().fit(reports).tasks_frame()
    assert ordered_reports_table(reports).num_rows == len(reports) == reports.per_task.sum() == reports.per_worker.sum()


def run(folder: Path, count: int) -> dict[str, int]:
    """Return how many of so many changed folders were refused, and how many could be read."""
    found = {"refused": 0, "read": 0}
    for seed in range(count):
        draw, changed = random.Random(seed), folder.parent / "changed"
        shutil.copytree(folder, changed, dirs_exist_ok=True)
        manifest = json.loads((changed / MANIFEST_FILE).read_bytes())
        if draw.random() < 0.25:
            change_manifest(draw, manifest)
            write_sealed(changed, manifest)
        else:
            names = NAMES_FILES if draw.random() < 0.7 else DATA_FILES
            change_file(draw, changed / draw.choice(names))
            reseal(changed, manifest)
        try:
            read_all(changed)
            found["read"] += 1
        except ReportsError:
            found["refused"] += 1
    return found


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), int(sys.argv[2]))))
