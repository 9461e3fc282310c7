"""Execution of the example notebooks: `python -m tools.execute_notebooks` runs them and stores their outputs.

Outputs are committed, so that the notebooks can be read where they are stored. The tests execute them again.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent / "examples"
SECONDS = 300
"""Largest time of one cell."""


def executed(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of all its cells; raises CellExecutionError where one fails."""
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", record_timing=False).execute(cwd=str(path.parent))
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def main(names: list[str]) -> None:
    """Execute the named notebooks, or all, and write them."""
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        if not names or path.stem in names:
            nbformat.write(executed(path), path)  # type: ignore[no-untyped-call]
            print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
