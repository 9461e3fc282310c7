"""Program text of the one-file device, to be handed to workers."""

from hashlib import sha256
from importlib.resources import files

PROGRAM = "device.py"


def program_bytes() -> bytes:
    """Return the program: one Python file that needs the standard library only."""
    return files("crowdveil.campaign.standalone").joinpath(PROGRAM).read_bytes()


def program_digest() -> str:
    """Return the SHA-256 of the program, in hexadecimal; print it with the invitations."""
    return sha256(program_bytes()).hexdigest()


def is_program(data: bytes) -> bool:
    """Return whether a file is the program of this or of another version: it has the same first two lines."""
    return data.splitlines()[:2] == program_bytes().splitlines()[:2]
