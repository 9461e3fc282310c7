"""Versioned documentation: build the site of each tag from its own files and environment into site/<tag>/.

Usage: python tools/build_versions.py v0.1.0 v0.2.0. A version that is already built is kept; the last one named becomes
the start page.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
REDIRECT = '<!doctype html><meta http-equiv="refresh" content="0; url={tag}/"><a href="{tag}/">crowdveil {tag}</a>\n'


def build(tag: str, target: Path) -> None:
    """Build the documentation of one tag; every warning is an error."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "-C", ROOT, "archive", tag], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], check=True, input=archive)
        subprocess.run([sys.executable, "-m", "venv", f"{folder}/.venv"], check=True)
        python = Path(folder, ".venv", "Scripts" if sys.platform == "win32" else "bin", "python")
        subprocess.run([python, "-m", "pip", "install", "-q", f"{folder}[docs]"], check=True)
        subprocess.run([python, "-m", "sphinx", "-W", "--keep-going", "-q", f"{folder}/docs", target], check=True)


def main(tags: list[str]) -> None:
    """Build the missing versions and point the start page to the last tag."""
    if not tags:
        raise SystemExit("give at least one tag, oldest first: python tools/build_versions.py v0.1.0")
    for tag in tags:
        if not (ROOT / "site" / tag / "index.html").exists():
            build(tag, ROOT / "site" / tag)
    (ROOT / "site" / "index.html").write_text(REDIRECT.format(tag=tags[-1]), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
