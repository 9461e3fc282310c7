"""Programs of one file for readers without the package: the device, and the check of certificates and campaigns.

python -m crowdveil.standalone.program verification.py > check.py
"""

import ast
import sys
from hashlib import sha256
from importlib.resources import files

CHECKS = "crowdveil.standalone.checks"
PROGRAM = "device.py"


def joined_program(name: str = PROGRAM) -> bytes:
    """Return a program that needs the standard library only: its file, with that of the checks for their import."""
    folder = files("crowdveil.standalone")
    text = folder.joinpath(name).read_text("utf-8")
    imports = (node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom) and node.module == CHECKS)
    node, lines = next(imports), text.splitlines(keepends=True)
    checks = folder.joinpath("checks.py").read_text("utf-8").splitlines(keepends=True)
    once = [line for line in checks if not (line.startswith(("import ", "from ")) and line in lines)]
    return "".join([*lines[: node.lineno - 1], *once, "\n\n", *lines[node.end_lineno :]]).encode()


def program_digest() -> str:
    """Return the SHA-256 of the device, in hexadecimal; print it with the invitations."""
    return sha256(joined_program()).hexdigest()


def is_program(data: bytes) -> bool:
    """Return whether a file is the device of this or of another version: it has the same first two lines."""
    return data.splitlines()[:2] == joined_program().splitlines()[:2]


if __name__ == "__main__":
    sys.stdout.buffer.write(joined_program(*sys.argv[1:]))
