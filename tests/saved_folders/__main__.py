"""Write what every command says of the saved folders, and with `--folders` the folders themselves, again.

`python -m tests.saved_folders [--folders] [NAME ...]`. The folders are what earlier versions wrote: draw one again only
if it is to be another one, never because its format has changed.
"""

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.saved_folders.commands import EXPECTED, SAVED, commands_of, say
from tests.saved_folders.folders import FOLDERS, write_folders


def main() -> int:
    """Write the folders, if asked to, and what commands say of them."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.saved_folders")
    parser.add_argument("--folders", action="store_true", help="draw the folders again, too")
    parser.add_argument("names", nargs="*", metavar="NAME", help="folders; by default all")
    given = parser.parse_args()
    names = given.names or list(FOLDERS)
    for folder in (SAVED, EXPECTED):
        folder.mkdir(exist_ok=True)
    if given.folders:
        write_folders(SAVED, names)
    for name in names:
        found = {}
        for command in commands_of(SAVED / name):
            with TemporaryDirectory() as work:
                found[command] = say(SAVED / name, command, Path(work))
        lines = (f"{json.dumps(command)}: {json.dumps(found[command], sort_keys=True)}" for command in found)
        (EXPECTED / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
        print(name, {command: said["exit"] for command, said in found.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
