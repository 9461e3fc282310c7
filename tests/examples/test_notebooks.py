"""Example notebooks: they run from top to bottom, and their stored outputs are whole."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
EXECUTE = """
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
from tools.execute_notebooks import executed

executed(Path(sys.argv[1]))
"""


def code_cells(path: Path) -> list[Any]:
    """Return the cells of code."""
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def test_there_are_three() -> None:
    """Consensus from a frame, a private campaign, and a comparison of mechanisms."""
    assert ["a_private_campaign_simulated", "compare_mechanisms", "consensus_from_a_data_frame"] == [
        path.stem for path in NOTEBOOKS
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    """Every cell runs in a new kernel; a cell that fails ends the program with its error."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), *sys.path])}

    done = subprocess.run([sys.executable, "-c", EXECUTE, path], capture_output=True, text=True, env=environment)

    assert 0 == done.returncode, done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_whole(path: Path) -> None:
    """Cells are stored as run in order, without an error, a warning, or a path of the computer that ran them."""
    cells = code_cells(path)
    outputs = [output for cell in cells for output in cell.outputs]

    assert list(range(1, len(cells) + 1)) == [cell.execution_count for cell in cells]
    assert [] == [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert any("crowdveil" in output.get("data", {}).get("text/html", "") for output in outputs)
    assert str(Path.home()) not in path.read_text("utf-8")
