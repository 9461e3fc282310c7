"""Digest of a file's content, which ties the files of one collection together.

It finds accidents: a file that was changed, cut, or laid beside another collection. Whoever can write the file can
write the digest as well.
"""

import hashlib
from os import PathLike
from pathlib import Path

from crowdveil.data.ingest.csv_reader import opened

PART_BYTES = 1 << 20
"""Bytes read at a time."""


def content_digest(path: str | PathLike[str]) -> str:
    """Return the SHA-256 of a file in hexadecimal, read once in small parts; of a gzipped file, that of its content.

    Raises:
        ReportsError: the file cannot be read, or its compression is damaged.
    """
    digest = hashlib.sha256()
    with opened(Path(path)) as stream:
        while part := stream.read(PART_BYTES):
            digest.update(part)
    return digest.hexdigest()
