"""Print the release notes of a tag: `python tools/release_notes.py v0.1.0`.

The tag must name the version of pyproject.toml and CITATION.cff, and CHANGELOG.md must have a dated section for it.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def release_notes(tag: str, root: Path) -> str:
    """Return the section of the changelog that belongs to a tag; refuse a tag that the project's files contradict."""
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    cited = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    if tag != f"v{version}" or cited is None or cited[1] != version:
        raise SystemExit(f"{tag} must name the version of pyproject.toml ({version}) and CITATION.cff.")
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    section = re.search(
        rf"^## {re.escape(version)}, \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)", changelog, re.DOTALL | re.MULTILINE
    )
    if section is None or not section[1].strip():
        raise SystemExit(f"CHANGELOG.md must have a section '## {version}, YYYY-MM-DD' with changes.")
    return section[1].strip() + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("give one tag: python tools/release_notes.py v0.1.0")
    print(release_notes(sys.argv[1], ROOT), end="")
